// Norms over the last axis.
#include <cmath>

#include "frontend/graph/eval/reference.h"

namespace modelc::graph::eval::reference {

namespace {
// Calls f(x, y) for each row of n numbers.
template <class F> void each_row(Call& c, F f) {
  const Array& x = c.in(0);
  const auto n = static_cast<std::size_t>(x.shape.back());
  for (std::size_t at = 0; at + n <= x.count(); at += n) f(x.reals.data() + at, c.out().reals.data() + at, n);
}
}  // namespace

Status rms_norm(Call& c) {
  const double eps = real_attr(c.op, "eps", 0), offset = real_attr(c.op, "offset", 0);
  const bool after_cast = string_attr(c.op, "multiply", "after_cast") == "after_cast";
  const DType dtype = c.out().dtype;
  each_row(c, [&](const float* x, float* y, std::size_t n) {
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) squares += double{x[i]} * x[i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
    for (std::size_t i = 0; i < n; ++i) {
      double v = x[i] * scale;
      if (after_cast) v = round_to(dtype, v);
      if (c.has(1)) v *= c.in(1).reals[i] + offset;
      y[i] = round_to(dtype, v);
    }
  });
  return {};
}

Status layer_norm(Call& c) {
  const double eps = real_attr(c.op, "eps", 0);
  each_row(c, [&](const float* x, float* y, std::size_t n) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < n; ++i) sum += x[i];
    const double mean = sum / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
    for (std::size_t i = 0; i < n; ++i) {
      double v = (x[i] - mean) * scale;
      if (c.has(1)) v *= c.in(1).reals[i];
      if (c.has(2)) v += c.in(2).reals[i];
      y[i] = round_to(c.out().dtype, v);
    }
  });
  return {};
}

Status l2_normalize(Call& c) {
  const double eps = real_attr(c.op, "eps", 1e-12);
  each_row(c, [&](const float* x, float* y, std::size_t n) {
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) squares += double{x[i]} * x[i];
    const double length = std::max(std::sqrt(squares), eps);
    for (std::size_t i = 0; i < n; ++i) y[i] = round_to(c.out().dtype, x[i] / length);
  });
  return {};
}

}  // namespace modelc::graph::eval::reference

// Products, summed in f64.
#include "frontend/graph/eval/reference.h"

namespace modelc::graph::eval::reference {

// y[r, o] = Σ_i x[r, i] · w[o, i] + b[o]
Status linear(Call& c) {
  const Array &x = c.in(0), &w = c.in(1);
  Array& y = c.out();
  const auto outputs = static_cast<std::size_t>(w.shape[0]), inputs = static_cast<std::size_t>(w.shape[1]);
  const std::size_t rows = y.count() / outputs;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = 0; o < outputs; ++o) {
      double sum = c.has(2) ? c.in(2).reals[o] : 0.0;
      for (std::size_t i = 0; i < inputs; ++i) sum += double{x.reals[r * inputs + i]} * w.reals[o * inputs + i];
      y.reals[r * outputs + o] = round_to(y.dtype, sum);
    }
  return {};
}

// y[…, i, j] = Σ_l a[…, i, l] · b[…, l, j]
Status matmul(Call& c) {
  const Array &a = c.in(0), &b = c.in(1);
  Array& y = c.out();
  const auto m = static_cast<std::size_t>(y.shape[y.shape.size() - 2]), n = static_cast<std::size_t>(y.shape.back());
  const auto k = static_cast<std::size_t>(a.shape.back());
  const Shape lead(y.shape.begin(), y.shape.end() - 2);
  const Broadcast at_a(Shape(a.shape.begin(), a.shape.end() - 2), lead),
      at_b(Shape(b.shape.begin(), b.shape.end() - 2), lead);
  for_each_index(lead, [&](const Shape& index, std::size_t flat) {
    const float* p = a.reals.data() + at_a(index) * m * k;
    const float* q = b.reals.data() + at_b(index) * k * n;
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::size_t l = 0; l < k; ++l) sum += double{p[i * k + l]} * q[l * n + j];
        y.reals[(flat * m + i) * n + j] = round_to(y.dtype, sum);
      }
  });
  return {};
}

Status outer(Call& c) {
  const Array &a = c.in(0), &b = c.in(1);
  Array& y = c.out();
  for (std::size_t i = 0; i < a.count(); ++i)
    for (std::size_t j = 0; j < b.count(); ++j)
      y.reals[i * b.count() + j] = round_to(y.dtype, double{a.reals[i]} * b.reals[j]);
  return {};
}

}  // namespace modelc::graph::eval::reference

// Rows by index, and indices by size.
#include <algorithm>
#include <numeric>

#include "frontend/graph/eval/reference.h"

namespace modelc::graph::eval::reference {

namespace {

Status in_range(const Call& c, const Array& index, std::int64_t n) {
  for (std::size_t i = 0; i < index.count(); ++i)
    if (index.integers[i] < 0 || index.integers[i] >= n)
      return Error{"index-range",
                   std::string(info(c.op.kind).name) + ": index " + std::to_string(index.integers[i]) + " at " + std::to_string(i) +
                       " is not in 0.." + std::to_string(n),
                   {},
                   ""};
  return {};
}

}  // namespace

Status take(Call& c) {
  const Array &x = c.in(0), &rows = c.in(1);
  if (Status s = in_range(c, rows, x.shape[0]); !s) return s;
  const std::size_t width = x.count() / static_cast<std::size_t>(x.shape[0]);
  for (std::size_t r = 0; r < rows.count(); ++r)
    for (std::size_t i = 0; i < width; ++i) copy_element(x, static_cast<std::size_t>(rows.integers[r]) * width + i, c.out(), r * width + i);
  return {};
}

Status put(Call& c) {
  const Array &x = c.in(0), &rows = c.in(1), &v = c.in(2);
  if (Status s = in_range(c, rows, x.shape[0]); !s) return s;
  Array& y = c.out();
  const std::size_t width = x.count() / static_cast<std::size_t>(x.shape[0]);
  for (std::size_t i = 0; i < x.count(); ++i) copy_element(x, i, y, i);
  for (std::size_t r = 0; r < rows.count(); ++r)
    for (std::size_t i = 0; i < width; ++i) copy_element(v, r * width + i, y, static_cast<std::size_t>(rows.integers[r]) * width + i);
  return {};
}

Status one_hot(Call& c) {
  const Array& index = c.in(0);
  Array& y = c.out();
  if (Status s = in_range(c, index, y.shape.back()); !s) return s;
  for (std::size_t i = 0; i < index.count(); ++i)
    y.reals[i * static_cast<std::size_t>(y.shape.back()) + static_cast<std::size_t>(index.integers[i])] = 1;
  return {};
}

Status top_k(Call& c) {
  const Array& x = c.in(0);
  const auto n = static_cast<std::size_t>(x.shape.back());
  const auto k = static_cast<std::size_t>(c.out(0).shape.back());
  std::vector<std::size_t> order(n);
  for (std::size_t row = 0; row < x.count() / n; ++row) {
    std::iota(order.begin(), order.end(), 0);
    // Stable, so that of equals the lower index comes first.
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return x.number(row * n + a) > x.number(row * n + b); });
    for (std::size_t i = 0; i < k; ++i) {
      copy_element(x, row * n + order[i], c.out(0), row * k + i);
      c.out(1).integers[row * k + i] = static_cast<std::int64_t>(order[i]);
    }
  }
  return {};
}

Status take_along(Call& c) {
  const Array &x = c.in(0), &index = c.in(1);
  const std::size_t axis = axis_attr(c.op, x.shape.size());
  if (Status s = in_range(c, index, x.shape[axis]); !s) return s;
  const AxisView from(x.shape, axis), to(index.shape, axis);
  for (std::size_t o = 0; o < to.outer; ++o)
    for (std::size_t j = 0; j < to.n; ++j)
      for (std::size_t i = 0; i < to.inner; ++i) {
        const std::size_t at = to.at(o, j, i);
        copy_element(x, from.at(o, static_cast<std::size_t>(index.integers[at]), i), c.out(), at);
      }
  return {};
}

}  // namespace modelc::graph::eval::reference

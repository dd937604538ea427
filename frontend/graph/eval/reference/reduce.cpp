// Reductions over one axis; `where`, a bool over the axes up to it, says which elements count.
#include <cmath>
#include <limits>

#include "frontend/graph/eval/reference.h"

namespace modelc::graph::eval::reference {

namespace {

// x as [outer, n, inner], and which of its elements count.
struct Reduced {
  const Call& call;
  AxisView view;
  explicit Reduced(const Call& c) : call(c), view(c.in(0).shape, axis_attr(c.op, c.in(0).shape.size())) {}
  bool counts(std::size_t o, std::size_t j) const { return !call.has(1) || call.in(1).integers[o * view.n + j] != 0; }
  // f(o, i) for each line along the axis.
  template <class F> void each_line(F f) const {
    for (std::size_t o = 0; o < view.outer; ++o)
      for (std::size_t i = 0; i < view.inner; ++i) f(o, i);
  }
};

// What a line of the reduction's integers gives.
std::int64_t reduce_integers(OpKind kind, const std::vector<std::int64_t>& line) {
  if (kind == OpKind::sum) {
    std::int64_t sum = 0;
    for (std::int64_t v : line) sum += v;
    return sum;
  }
  const bool largest = kind == OpKind::max_reduce;
  std::int64_t best = largest ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int32_t>::max();
  for (std::int64_t v : line) best = largest ? std::max(best, v) : std::min(best, v);
  return best;
}

double reduce_reals(OpKind kind, const std::vector<double>& line) {
  if (kind == OpKind::sum || kind == OpKind::mean) {
    double sum = 0;
    for (double v : line) sum += v;
    return kind == OpKind::sum || line.empty() ? sum : sum / static_cast<double>(line.size());
  }
  const OpKind pick = kind == OpKind::max_reduce ? OpKind::max : OpKind::min;
  double best = pick == OpKind::max ? -INFINITY : INFINITY;
  for (double v : line) best = apply(pick, best, v);
  return best;
}

}  // namespace

Status softmax(Call& c) {
  const Reduced r(c);
  const Array& x = c.in(0);
  Array& y = c.out();
  r.each_line([&](std::size_t o, std::size_t i) {
    double largest = -INFINITY, total = 0;
    for (std::size_t j = 0; j < r.view.n; ++j)
      if (r.counts(o, j)) largest = std::max(largest, double{x.reals[r.view.at(o, j, i)]});
    auto weight = [&](std::size_t j) { return r.counts(o, j) ? std::exp(x.reals[r.view.at(o, j, i)] - largest) : 0.0; };
    for (std::size_t j = 0; j < r.view.n; ++j) total += weight(j);
    for (std::size_t j = 0; j < r.view.n; ++j) y.reals[r.view.at(o, j, i)] = total == 0 ? 0.0f : round_to(y.dtype, weight(j) / total);
  });
  return {};
}

Status reduce(Call& c) {
  const Reduced r(c);
  const Array& x = c.in(0);
  Array& y = c.out();
  r.each_line([&](std::size_t o, std::size_t i) {
    std::vector<double> reals;
    std::vector<std::int64_t> integers;
    for (std::size_t j = 0; j < r.view.n; ++j) {
      if (!r.counts(o, j)) continue;
      if (is_float(x.dtype)) reals.push_back(x.reals[r.view.at(o, j, i)]);
      else integers.push_back(x.integers[r.view.at(o, j, i)]);
    }
    const std::size_t at = o * r.view.inner + i;
    if (is_float(x.dtype)) y.reals[at] = round_to(y.dtype, reduce_reals(c.op.kind, reals));
    else y.integers[at] = reduce_integers(c.op.kind, integers);
  });
  return {};
}

Status argmax(Call& c) {
  const Reduced r(c);
  const Array& x = c.in(0);
  r.each_line([&](std::size_t o, std::size_t i) {
    std::optional<std::size_t> best;
    for (std::size_t j = 0; j < r.view.n; ++j)
      if (r.counts(o, j) && (!best || x.number(r.view.at(o, j, i)) > x.number(r.view.at(o, *best, i)))) best = j;
    c.out().integers[o * r.view.inner + i] = static_cast<std::int64_t>(best.value_or(0));
  });
  return {};
}

Status cumsum(Call& c) {
  const Reduced r(c);
  const Array& x = c.in(0);
  Array& y = c.out();
  r.each_line([&](std::size_t o, std::size_t i) {
    double real = 0;
    std::int64_t integer = 0;
    for (std::size_t j = 0; j < r.view.n; ++j) {
      const std::size_t at = r.view.at(o, j, i);
      if (is_float(x.dtype)) y.reals[at] = round_to(y.dtype, real += r.counts(o, j) ? x.reals[at] : 0.0f);
      else y.integers[at] = integer += r.counts(o, j) ? x.integers[at] : 0;
    }
  });
  return {};
}

}  // namespace modelc::graph::eval::reference

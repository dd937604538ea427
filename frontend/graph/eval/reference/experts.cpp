// Mixture of experts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "frontend/graph/eval/reference.h"

namespace modelc::graph::eval::reference {

namespace {

// The positions of the k largest, largest first; of equals the lower one.
std::vector<std::size_t> largest(const std::vector<double>& values, std::size_t k) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  order.resize(k);
  return order;
}

// Scores outside of the best groups become -inf.
void keep_best_groups(std::vector<double>& scores, std::size_t groups, std::size_t keep, bool sum_of_two) {
  const std::size_t size = scores.size() / groups;
  std::vector<double> of_group;
  for (std::size_t g = 0; g < groups; ++g) {
    std::vector<double> one(scores.begin() + static_cast<std::ptrdiff_t>(g * size),
                            scores.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
    std::stable_sort(one.begin(), one.end(), std::greater<>());
    of_group.push_back(sum_of_two ? round_to(DType::f32, one[0] + one[1]) : one[0]);
  }
  std::vector<bool> kept(groups);
  for (std::size_t g : largest(of_group, keep)) kept[g] = true;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (!kept[i / size]) scores[i] = -std::numeric_limits<double>::infinity();
}

// w x + b for one expert: row `e` of the stacked w [E, n, k].
Array product(const Array& w, std::size_t e, const Array* b, const float* x, DType dtype) {
  const auto n = static_cast<std::size_t>(w.shape[1]), k = static_cast<std::size_t>(w.shape[2]);
  Array y = zeros(dtype, {w.shape[1]});
  for (std::size_t i = 0; i < n; ++i) {
    double sum = b == nullptr ? 0 : b->reals[e * n + i];
    for (std::size_t j = 0; j < k; ++j) sum += static_cast<double>(w.reals[(e * n + i) * k + j]) * x[j];
    y.reals[i] = round_to(dtype, sum);
  }
  return y;
}

}  // namespace

Status route(Call& c) {
  const Array& scores = c.in(0);
  const auto n = static_cast<std::size_t>(scores.shape.back()), k = static_cast<std::size_t>(c.out(0).shape.back());
  const auto groups = static_cast<std::size_t>(integer_attr(c.op, "groups", 1));
  const auto keep = static_cast<std::size_t>(integer_attr(c.op, "keep_groups", static_cast<std::int64_t>(groups)));
  const bool sum_of_two = string_attr(c.op, "group_score", "max") == "top2_sum";
  const bool renormalize = boolean_attr(c.op, "renormalize", false);
  const double scale = real_attr(c.op, "scale", 1);
  for (std::size_t row = 0; row < scores.count() / n; ++row) {
    std::vector<double> choice(n);
    for (std::size_t i = 0; i < n; ++i)
      choice[i] = round_to(DType::f32, scores.reals[row * n + i] + (c.has(1) ? double{c.in(1).reals[i]} : 0.0));
    if (keep < groups) keep_best_groups(choice, groups, keep, sum_of_two);
    const std::vector<std::size_t> best = largest(choice, k);
    double sum = 0;
    for (std::size_t e : best) sum += scores.reals[row * n + e];
    const double factor = renormalize ? scale / (sum + 1e-20) : scale;
    for (std::size_t i = 0; i < k; ++i) {
      c.out(0).integers[row * k + i] = static_cast<std::int64_t>(best[i]);
      c.out(1).reals[row * k + i] = round_to(DType::f32, scores.reals[row * n + best[i]] * factor);
    }
  }
  return {};
}

Status moe(Call& c) {
  const Array &x = c.in(0), &chosen = c.in(1), &weights = c.in(2);
  const auto d = static_cast<std::size_t>(x.shape.back()), k = static_cast<std::size_t>(chosen.shape.back());
  const std::int64_t experts = c.in(3).shape[0];
  const auto bias = [&](std::size_t i) { return c.has(i) ? &c.in(i) : nullptr; };
  for (std::size_t row = 0; row < x.count() / d; ++row) {
    std::vector<double> sum(d, 0.0);
    for (std::size_t i = 0; i < k; ++i) {
      const std::int64_t at = chosen.integers[row * k + i];
      if (at < 0 || at >= experts)
        return Error{"index-range", "moe: expert " + std::to_string(at) + " is not in 0.." + std::to_string(experts), {}, ""};
      const auto e = static_cast<std::size_t>(at);
      const Array gate = product(c.in(3), e, bias(6), &x.reals[row * d], x.dtype);
      const Array up = product(c.in(4), e, bias(7), &x.reals[row * d], x.dtype);
      Result<Array> inner = c.body({gate, up});
      if (!inner) return inner.error();
      const Array y = product(c.in(5), e, bias(8), inner->reals.data(), x.dtype);
      for (std::size_t j = 0; j < d; ++j) sum[j] += static_cast<double>(weights.reals[row * k + i]) * y.reals[j];
    }
    for (std::size_t j = 0; j < d; ++j) c.out().reals[row * d + j] = round_to(x.dtype, sum[j]);
  }
  return {};
}

}  // namespace modelc::graph::eval::reference

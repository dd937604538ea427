// Mixture of experts: the choice, and the chosen ones' products. Tokens are sorted by expert, so that each expert's rows
// are read once for all tokens that chose it.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <numeric>

#include "runtime/base/strings.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/device/step.h"

namespace modelc::cpu {
namespace {

constexpr std::int64_t expert_rows = 64;                   // of weights, in one piece

// The positions of the k largest, largest first; of equals the lower one.
void largest(const float* values, std::int64_t n, std::int64_t k, std::vector<std::int32_t>& order) {
  order.resize(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + k, order.end(),
                    [&](std::int32_t a, std::int32_t b) { return values[a] > values[b] || (values[a] == values[b] && a < b); });
}

// Scores outside of the best groups become -inf.
void keep_best_groups(std::vector<float>& scores, const RouteArgs& args) {
  const std::int64_t size = static_cast<std::int64_t>(scores.size()) / args.groups;
  std::vector<float> of_group;
  std::vector<std::int32_t> order;
  for (std::int64_t g = 0; g < args.groups; ++g) {
    const float* s = scores.data() + g * size;
    largest(s, size, args.top2_sum ? 2 : 1, order);
    of_group.push_back(args.top2_sum ? s[order[0]] + s[order[1]] : s[order[0]]);
  }
  largest(of_group.data(), args.groups, args.keep_groups, order);
  std::vector<bool> kept(static_cast<std::size_t>(args.groups));
  for (std::int64_t i = 0; i < args.keep_groups; ++i) kept[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (!kept[i / static_cast<std::size_t>(size)]) scores[i] = -INFINITY;
}

// Rows [from, from + n) of a matrix times m rows of x, from row `first` of what was rounded on; bias as long as the matrix's
// rows, or null.
void rows_product(const Kernels& kernels, const Matrix& w, std::int64_t from, std::int64_t n, const float* x, const RoundedRows& rounded,
                  std::int64_t first, std::int64_t m, const float* bias, float* out, std::int64_t out_stride, float* scratch) {
  for (const RowBlock& b : w.blocks) {
    const std::int64_t begin = std::max(from, b.first), end = std::min(from + n, b.first + b.rows);
    if (begin >= end) continue;
    ProductArgs p;
    p.x = x + first * w.columns;
    p.x_stride = w.columns;
    if (rounded.data != nullptr && is_quantised(*stored(b.encoding))) {
      p.rounded = rounded.data + first * rounded.stride;
      p.rounded_stride = rounded.stride;
    }
    p.w = b.data.host<std::byte>() + (begin - b.first) * b.row_bytes;
    p.w_stride = b.row_bytes;
    p.encoding = *stored(b.encoding);
    p.m = m;
    p.n = end - begin;
    p.k = w.columns;
    p.bias = bias ? bias + begin : nullptr;
    p.out = out + (begin - from);
    p.out_stride = out_stride;
    p.scratch = scratch;
    kernels.product(p);
  }
}

// Which tokens chose which expert: pair (token, i) number `pair` stands at place[pair] among all, experts in order.
struct Assigned {
  std::vector<std::int64_t> begin;                         // of each expert's pairs; one more at the end
  std::vector<std::int64_t> place, pair;                   // place of a pair, pair at a place
  std::vector<std::int64_t> used;                          // experts with pairs

  Assigned(const std::int32_t* chosen, std::int64_t pairs, std::int64_t experts)
      : begin(static_cast<std::size_t>(experts) + 1), place(static_cast<std::size_t>(pairs)), pair(static_cast<std::size_t>(pairs)) {
    for (std::int64_t p = 0; p < pairs; ++p) {
      if (chosen[p] < 0 || chosen[p] >= experts)
        throw StepFailure{{"index-range",
                           "expert " + std::to_string(chosen[p]) + " is chosen of " + grouped(experts),
                           {},
                           "the model computes an index that its own type does not allow"}};
      ++begin[static_cast<std::size_t>(chosen[p]) + 1];
    }
    for (std::size_t e = 0; e < static_cast<std::size_t>(experts); ++e) {
      if (begin[e + 1] > 0) used.push_back(static_cast<std::int64_t>(e));
      begin[e + 1] += begin[e];
    }
    std::vector<std::int64_t> next(begin.begin(), begin.end() - 1);
    for (std::int64_t p = 0; p < pairs; ++p) {
      const std::int64_t at = next[static_cast<std::size_t>(chosen[p])]++;
      place[static_cast<std::size_t>(p)] = at;
      pair[static_cast<std::size_t>(at)] = p;
    }
  }
  std::int64_t first(std::int64_t e) const { return begin[static_cast<std::size_t>(e)]; }
  std::int64_t count(std::int64_t e) const { return begin[static_cast<std::size_t>(e) + 1] - first(e); }
};

}  // namespace

void CpuDevice::route(const Tensor& scores, const Tensor& bias, const RouteArgs& args, const Tensor& chosen, const Tensor& weights) {
  const std::int64_t n = scores.shape[-1], k = chosen.shape[-1];
  assert(chosen.dtype == DType::i32 && weights.count() == chosen.count() && k <= n && k >= 1);
  const float* b = bias.host<float>();
  spread_rows(n > 0 ? scores.count() / n : 0, n, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> choice(static_cast<std::size_t>(n));
    std::vector<std::int32_t> order;
    for (std::int64_t row = begin; row < end; ++row) {
      const float* s = scores.host<float>() + row * n;
      for (std::int64_t i = 0; i < n; ++i) choice[static_cast<std::size_t>(i)] = s[i] + (b ? b[i] : 0.0F);
      if (args.keep_groups < args.groups) keep_best_groups(choice, args);
      largest(choice.data(), n, k, order);
      double sum = 0;
      for (std::int64_t i = 0; i < k; ++i) sum += s[order[static_cast<std::size_t>(i)]];
      const double factor = args.renormalize ? args.scale / (sum + 1e-20) : args.scale;
      for (std::int64_t i = 0; i < k; ++i) {
        const std::int32_t e = order[static_cast<std::size_t>(i)];
        chosen.host<std::int32_t>()[row * k + i] = e;
        weights.host<float>()[row * k + i] = static_cast<float>(s[e] * factor);
      }
    }
  });
}

void CpuDevice::experts(const Tensor& x, const Tensor& chosen, const Tensor& weights, const ExpertArgs& args, const MapKernel& f,
                        const Tensor& out) {
  const std::int64_t d = args.gate->columns, inner = args.down->columns, k = chosen.shape[-1], pairs = chosen.count();
  const std::int64_t tokens = pairs / std::max<std::int64_t>(k, 1);
  assert(x.count() == tokens * d && out.count() == tokens * d && weights.count() == pairs);
  assert(args.gate->rows() == args.experts * inner && args.up->rows() == args.experts * inner);
  assert(args.down->rows() == args.experts * d && chosen.dtype == DType::i32);
  if (pairs == 0) return;
  const Assigned assigned(chosen.host<std::int32_t>(), pairs, args.experts);
  const auto used = static_cast<std::int64_t>(assigned.used.size());
  std::int64_t most = 0;
  for (const std::int64_t e : assigned.used) most = std::max(most, assigned.count(e));

  const std::lock_guard guard(lock_);
  // For every pair: x, what stands between the products, and the expert's result.
  float* gathered = packed_.at_least(pairs * (2 * d + inner));
  float* hidden = gathered + pairs * d;
  float* results = hidden + pairs * inner;
  const std::int64_t product =
      (std::max(kernels_.product_scratch(most, expert_rows, d), kernels_.product_scratch(most, expert_rows, inner)) + 15) / 16 * 16;
  const std::int64_t scratch = product + 3 * most * expert_rows;
  for (Scratch& s : scratch_) s.at_least(scratch);
  spread_rows(pairs, d, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at)
      std::memcpy(gathered + at * d, x.host<float>() + assigned.pair[static_cast<std::size_t>(at)] / k * d,
                  static_cast<std::size_t>(d) * sizeof(float));
  });
  const std::int64_t inner_pieces = (inner + expert_rows - 1) / expert_rows, outer_pieces = (d + expert_rows - 1) / expert_rows;
  RoundedRows rounded = round(gathered, pairs, *args.gate);
  if (rounded.data == nullptr) rounded = round(gathered, pairs, *args.up);
  spread(used * inner_pieces, 1, pairs * inner * d * 2, [&](std::int64_t begin, std::int64_t end, int worker) {
    float* own = scratch_[static_cast<std::size_t>(worker)].at_least(scratch);
    float* gate = own + product;
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t e = assigned.used[static_cast<std::size_t>(unit / inner_pieces)], m = assigned.count(e);
      const std::int64_t from = unit % inner_pieces * expert_rows, width = std::min(expert_rows, inner - from);
      float* up = gate + m * width;
      float* mapped = up + m * width;
      const std::int64_t first = assigned.first(e);
      rows_product(kernels_, *args.gate, e * inner + from, width, gathered, rounded, first, m, args.gate_bias.host<float>(), gate, width,
                   own);
      rows_product(kernels_, *args.up, e * inner + from, width, gathered, rounded, first, m, args.up_bias.host<float>(), up, width, own);
      MapArgs a;
      a.shape = {m, width};
      a.inputs = 2;
      a.input[0].data = gate;
      a.input[1].data = up;
      a.input[0].strides = a.input[1].strides = {width, 1};
      a.out = mapped;
      f.cpu(a, 0, m);
      for (std::int64_t i = 0; i < m; ++i)
        std::memcpy(hidden + (assigned.first(e) + i) * inner + from, mapped + i * width, static_cast<std::size_t>(width) * sizeof(float));
    }
  });
  rounded = round(hidden, pairs, *args.down);
  spread(used * outer_pieces, 1, pairs * inner * d, [&](std::int64_t begin, std::int64_t end, int worker) {
    float* own = scratch_[static_cast<std::size_t>(worker)].at_least(scratch);
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t e = assigned.used[static_cast<std::size_t>(unit / outer_pieces)];
      const std::int64_t from = unit % outer_pieces * expert_rows, width = std::min(expert_rows, d - from);
      rows_product(kernels_, *args.down, e * d + from, width, hidden, rounded, assigned.first(e), assigned.count(e),
                   args.down_bias.host<float>(), results + assigned.first(e) * d + from, d, own);
    }
  });
  spread_rows(tokens, d * k, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      float* to = out.host<float>() + t * d;
      std::fill_n(to, d, 0.0F);
      for (std::int64_t i = 0; i < k; ++i) {               // in order of choice, whatever the other tokens chose
        const float weight = weights.host<float>()[t * k + i];
        const float* y = results + assigned.place[static_cast<std::size_t>(t * k + i)] * d;
        for (std::int64_t j = 0; j < d; ++j) to[j] += weight * y[j];
      }
    }
  });
}

}  // namespace modelc::cpu

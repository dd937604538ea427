// Reductions along one axis: x is [outer, n, inner], and up to `lanes` neighbours of the inner axis go together.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "runtime/cpu/cpu_device.h"
#include "runtime/device/math.h"

namespace modelc::cpu {
namespace {

constexpr std::int64_t lanes = 32;

// Some lines of x that lie side by side: element (j, l) is at j · stride + l.
template <class T> struct Lines {
  const T* x = nullptr;
  std::int64_t n = 0, stride = 1;
  std::int64_t width = 1;                                  // lines, at most `lanes`
  const std::uint8_t* bools = nullptr;                     // which j count: one of the two, or neither
  const float* reals = nullptr;
  bool counts(std::int64_t j) const { return bools ? bools[j] != 0 : reals == nullptr || reals[j] != 0; }
};

// Σ f(x) of each line, in an order that depends on n alone.
template <class T, class F> void sums(const Lines<T>& s, double* out, F f) {
  std::fill_n(out, s.width, 0.0);
  if (s.width == 1 && s.stride == 1 && !s.bools && !s.reals) {
    double part[8] = {};
    std::int64_t j = 0;
    for (; j + 8 <= s.n; j += 8)
      for (std::int64_t l = 0; l < 8; ++l) part[l] += f(static_cast<double>(s.x[j + l]));
    for (; j < s.n; ++j) part[0] += f(static_cast<double>(s.x[j]));
    for (const double p : part) out[0] += p;
    return;
  }
  for (std::int64_t j = 0; j < s.n; ++j)
    if (s.counts(j))
      for (std::int64_t l = 0; l < s.width; ++l) out[l] += f(static_cast<double>(s.x[j * s.stride + l]));
}

// The largest (smallest) of each line; not a number if any is not.
template <class T> void extremes(const Lines<T>& s, bool largest, T* best) {
  using Limits = std::numeric_limits<T>;
  const T low = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  const T high = Limits::has_infinity ? Limits::infinity() : Limits::max();
  std::fill_n(best, s.width, largest ? low : high);
  for (std::int64_t j = 0; j < s.n; ++j) {
    if (!s.counts(j)) continue;
    const T* x = s.x + j * s.stride;
    for (std::int64_t l = 0; l < s.width; ++l) {
      const bool better = largest ? x[l] > best[l] : x[l] < best[l];
      best[l] = better || x[l] != x[l] ? x[l] : best[l];
    }
  }
}

template <class T> void argmax(const Lines<T>& s, std::int32_t* out) {
  for (std::int64_t l = 0; l < s.width; ++l) {
    std::int64_t best = -1;
    for (std::int64_t j = 0; j < s.n; ++j)
      if (s.counts(j) && (best < 0 || s.x[j * s.stride + l] > s.x[best * s.stride + l])) best = j;
    out[l] = static_cast<std::int32_t>(std::max<std::int64_t>(best, 0));
  }
}

void softmax(const Lines<float>& s, float* out) {
  float best[lanes];
  std::fill_n(best, s.width, -INFINITY);
  for (std::int64_t j = 0; j < s.n; ++j)
    if (s.counts(j))
      for (std::int64_t l = 0; l < s.width; ++l) best[l] = std::max(best[l], s.x[j * s.stride + l]);
  for (std::int64_t j = 0; j < s.n; ++j) {
    const bool counts = s.counts(j);
    for (std::int64_t l = 0; l < s.width; ++l) out[j * s.stride + l] = counts ? math::exp(s.x[j * s.stride + l] - best[l]) : 0.0F;
  }
  Lines<float> made = s;
  made.x = out;
  made.bools = nullptr;
  made.reals = nullptr;
  double total[lanes];
  sums(made, total, [](double v) { return v; });
  float factor[lanes];
  for (std::int64_t l = 0; l < s.width; ++l) factor[l] = total[l] == 0 ? 0.0F : static_cast<float>(1 / total[l]);
  for (std::int64_t j = 0; j < s.n; ++j)
    for (std::int64_t l = 0; l < s.width; ++l) out[j * s.stride + l] *= factor[l];
}

void l2_normalize(const Lines<float>& s, float eps, float* out) {
  double squares[lanes];
  sums(s, squares, [](double v) { return v * v; });
  for (std::int64_t l = 0; l < s.width; ++l) squares[l] = 1 / std::max(std::sqrt(squares[l]), static_cast<double>(eps));
  for (std::int64_t j = 0; j < s.n; ++j)
    for (std::int64_t l = 0; l < s.width; ++l) out[j * s.stride + l] = static_cast<float>(s.x[j * s.stride + l] * squares[l]);
}

template <class T> void cumsum(const Lines<T>& s, T* out) {
  double sum[lanes] = {};
  for (std::int64_t j = 0; j < s.n; ++j) {
    const bool counts = s.counts(j);
    for (std::int64_t l = 0; l < s.width; ++l) {
      if (counts) sum[l] += static_cast<double>(s.x[j * s.stride + l]);
      out[j * s.stride + l] = static_cast<T>(sum[l]);
    }
  }
}

// `kept`: where the lines of a result that keeps the axis begin; `one`: of a result without it.
template <class T> void reduce_lines(Reduction kind, const Lines<T>& s, float eps, const Tensor& out, std::int64_t kept, std::int64_t one) {
  switch (kind) {
    case Reduction::max:
    case Reduction::min: return extremes(s, kind == Reduction::max, out.host<T>() + one);
    case Reduction::argmax: return argmax(s, out.host<std::int32_t>() + one);
    case Reduction::cumsum: return cumsum(s, out.host<T>() + kept);
    case Reduction::sum:
    case Reduction::mean: {
      double total[lanes];
      sums(s, total, [](double v) { return v; });
      std::int64_t count = 0;
      for (std::int64_t j = 0; j < s.n; ++j) count += s.counts(j) ? 1 : 0;
      const double divisor = kind == Reduction::mean && count > 0 ? static_cast<double>(count) : 1.0;
      for (std::int64_t l = 0; l < s.width; ++l) out.host<T>()[one + l] = static_cast<T>(total[l] / divisor);
      return;
    }
    case Reduction::softmax:
    case Reduction::l2_normalize: break;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (kind == Reduction::softmax) softmax(s, out.host<float>() + kept);
    else l2_normalize(s, eps, out.host<float>() + kept);
  }
}

}  // namespace

void CpuDevice::reduce(Reduction kind, const Tensor& x, const ReduceArgs& args, const Tensor& out) {
  assert(args.axis >= 0 && args.axis < x.shape.rank() && (x.dtype == DType::f32 || x.dtype == DType::i32));
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (i < args.axis) outer *= x.shape[i];
    if (i > args.axis) inner *= x.shape[i];
  }
  const std::int64_t n = x.shape[args.axis], groups = (inner + lanes - 1) / lanes;
  assert(!args.where || args.where.count() == outer * n);
  const auto run = [&]<class T>(const T* from) {
    spread_rows(outer * groups, n * std::min(inner, lanes), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t unit = begin; unit < end; ++unit) {
        const std::int64_t o = unit / groups, i = unit % groups * lanes;
        Lines<T> s{from + o * n * inner + i, n, inner, std::min(lanes, inner - i)};
        if (args.where && args.where.dtype == DType::boolean) s.bools = args.where.host<std::uint8_t>() + o * n;
        else if (args.where) s.reals = args.where.host<float>() + o * n;
        reduce_lines(kind, s, args.eps, out, o * n * inner + i, o * inner + i);
      }
    });
  };
  if (x.dtype == DType::i32) run(x.host<std::int32_t>());
  else run(x.host<float>());
}

}  // namespace modelc::cpu

// Copies between two orders of the same elements.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "runtime/cpu/cpu_device.h"
#include "runtime/device/strided.h"

namespace modelc::cpu {
namespace {

// Both sides under one shape, neighbouring axes joined where both allow it.
struct Loop {
  int rank = 0;
  std::array<std::int64_t, Strided::max_rank> shape{}, from{}, to{};
};

// `s`, which lies together, under another shape.
Strided under(const Strided& s, const Strided& shape) {
  assert(s.contiguous() && s.count() == shape.count());
  Strided r = shape;
  r.tensor = s.tensor;
  r.offset = s.offset;
  std::int64_t stride = 1;
  for (int i = r.rank - 1; i >= 0; --i) {
    r.strides[static_cast<std::size_t>(i)] = stride;
    stride *= r.shape[static_cast<std::size_t>(i)];
  }
  return r;
}

Loop loop_over(const Strided& from, const Strided& to) {
  Loop l;
  for (int i = 0; i < from.rank; ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (from.shape[k] == 1) continue;
    const auto last = static_cast<std::size_t>(l.rank > 0 ? l.rank - 1 : 0);
    if (l.rank > 0 && l.from[last] == from.strides[k] * from.shape[k] && l.to[last] == to.strides[k] * from.shape[k]) {
      l.shape[last] *= from.shape[k];
      l.from[last] = from.strides[k];
      l.to[last] = to.strides[k];
      continue;
    }
    const auto next = static_cast<std::size_t>(l.rank++);
    l.shape[next] = from.shape[k];
    l.from[next] = from.strides[k];
    l.to[next] = to.strides[k];
  }
  if (l.rank == 0) l.rank = 1, l.shape[0] = l.from[0] = l.to[0] = 1;
  return l;
}

// Rows [begin, end) of the loop, a row being its last axis.
template <class From, class To> void copy_rows(const Loop& l, const From* from, To* to, std::int64_t begin, std::int64_t end) {
  const auto last = static_cast<std::size_t>(l.rank - 1);
  const std::int64_t n = l.shape[last], a = l.from[last], b = l.to[last];
  for (std::int64_t row = begin; row < end; ++row) {
    std::int64_t rest = row, at = 0, out = 0;
    for (std::size_t k = last; k-- > 0;) {
      at += rest % l.shape[k] * l.from[k];
      out += rest % l.shape[k] * l.to[k];
      rest /= l.shape[k];
    }
    const From* x = from + at;
    To* y = to + out;
    if constexpr (std::is_same_v<From, To>) {
      if (a == 1 && b == 1) {
        std::memcpy(y, x, static_cast<std::size_t>(n) * sizeof(To));
        continue;
      }
    }
    for (std::int64_t i = 0; i < n; ++i) y[i * b] = static_cast<To>(x[i * a]);
  }
}

}  // namespace

void CpuDevice::copy_strided(const Strided& from, const Strided& to) {
  const bool same = from.rank == to.rank && from.shape == to.shape;
  const Strided a = same || !from.contiguous() ? from : under(from, to);
  const Strided b = same || from.contiguous() ? to : under(to, from);
  if (a.count() == 0) return;
  const Loop l = loop_over(a, b);
  const std::int64_t width = l.shape[static_cast<std::size_t>(l.rank - 1)], rows = a.count() / width;
  const auto run = [&]<class From, class To>(From*, To*) {
    spread_rows(rows, width, [&](std::int64_t begin, std::int64_t end) {
      copy_rows(l, a.tensor.host<From>() + a.offset, b.tensor.host<To>() + b.offset, begin, end);
    });
  };
  const DType x = a.tensor.dtype, y = b.tensor.dtype;
  std::uint32_t* word = nullptr;
  std::uint8_t* byte = nullptr;
  std::int32_t* whole = nullptr;
  float* real = nullptr;
  if (x == y && bytes(x) == 4) return run(word, word);
  if (x == y && bytes(x) == 1) return run(byte, byte);
  assert(y == DType::f32 && (x == DType::i32 || x == DType::boolean));
  if (x == DType::i32) return run(whole, real);
  run(byte, real);
}

void CpuDevice::fill(double value, const Tensor& out) {
  if (out.dtype == DType::i32) std::fill_n(out.host<std::int32_t>(), out.count(), static_cast<std::int32_t>(value));
  else std::fill_n(out.host<float>(), out.count(), static_cast<float>(value));
}

}  // namespace modelc::cpu

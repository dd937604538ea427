// The loop of map kernels; included by map.h alone.
#pragma once

#include <cstring>
#include <utility>

#include "runtime/device/map.h"

namespace modelc {
namespace detail {

inline constexpr std::int64_t map_block = 32;              // elements computed together; a whole number of vectors

// `count` elements of an input from element `at` on, `stride` apart, as f32.
inline void load_block(const MapArgs::Input& in, std::int64_t at, std::int64_t stride, std::int64_t count, float* to) {
  if (in.dtype == DType::f32 && stride == 1) {
    const float* from = static_cast<const float*>(in.data) + at;
    if (count == map_block) std::memcpy(to, from, map_block * sizeof(float));
    else std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
  } else if (stride == 0) {
    const float v = load(in, at);
    for (std::int64_t i = 0; i < map_block; ++i) to[i] = v;
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = load(in, at + i * stride);
  }
}

// One run of n elements of the result: input i begins at element at[i] and moves on by stride[i].
template <int N, class F, std::size_t... I>
void map_run(const MapArgs& a, const std::int64_t* at, const std::int64_t* stride, float* out, std::int64_t n, F& f,
             std::index_sequence<I...>) {
  float in[N == 0 ? 1 : N][map_block] = {};
  float result[map_block];
  // What is constant along the run is loaded once.
  for (int i = 0; i < N; ++i)
    if (stride[i] == 0) load_block(a.input[static_cast<std::size_t>(i)], at[i], 0, map_block, in[i]);
  for (std::int64_t done = 0; done < n; done += map_block) {
    const std::int64_t count = n - done < map_block ? n - done : map_block;
    for (int i = 0; i < N; ++i)
      if (stride[i] != 0)
        load_block(a.input[static_cast<std::size_t>(i)], at[i] + done * stride[i], stride[i], count, in[i]);
    for (std::int64_t j = 0; j < map_block; ++j) result[j] = f(in[I][j]...);
    std::memcpy(out + done, result, static_cast<std::size_t>(count) * sizeof(float));
  }
}

}  // namespace detail

template <int N, class F>
void map_rows(const MapArgs& a, std::int64_t begin, std::int64_t end, F f) {
  static_assert(N <= MapArgs::max_inputs);
  assert(a.inputs == N);
  const int last = a.shape.rank() - 1;
  const std::int64_t n = last >= 0 ? a.shape[last] : 1;
  std::int64_t at[N == 0 ? 1 : N] = {};
  std::int64_t stride[N == 0 ? 1 : N] = {};

  // Rows are one run when every input lies as the result does, or is one number.
  bool flat = true;
  for (int i = 0; i < N; ++i) {
    const auto& s = a.input[static_cast<std::size_t>(i)].strides;
    bool same = true, constant = true;
    std::int64_t expected = 1;
    for (int k = last; k >= 0; --k) {
      const auto axis = static_cast<std::size_t>(k);
      if (a.shape[k] != 1) {
        if (s[axis] != expected) same = false;
        if (s[axis] != 0) constant = false;
      }
      expected *= a.shape[k];
    }
    if (!same && !constant) flat = false;
    stride[i] = constant ? 0 : 1;
  }
  if (flat) {
    for (int i = 0; i < N; ++i) at[i] = begin * n * stride[i];
    detail::map_run<N>(a, at, stride, a.out + begin * n, (end - begin) * n, f, std::make_index_sequence<N>{});
    return;
  }

  for (std::int64_t row = begin; row < end; ++row) {
    for (int i = 0; i < N; ++i) {
      const auto& s = a.input[static_cast<std::size_t>(i)].strides;
      std::int64_t rest = row;
      at[i] = 0;
      for (int k = last - 1; k >= 0; --k) {
        at[i] += rest % a.shape[k] * s[static_cast<std::size_t>(k)];
        rest /= a.shape[k];
      }
      stride[i] = last >= 0 ? s[static_cast<std::size_t>(last)] : 0;
    }
    detail::map_run<N>(a, at, stride, a.out + row * n, n, f, std::make_index_sequence<N>{});
  }
}

}  // namespace modelc

// The loop of map kernels; included by map.h alone.
#pragma once

#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "runtime/device/map.h"

namespace modelc {
namespace detail {

inline constexpr std::int64_t map_block = 32;              // elements computed together; a whole number of vectors

template <class T> struct MapBlock {
  T v[map_block] = {};
};

// `count` elements of an input from element `at` on, `stride` apart, as T.
template <class T> void load_block(const MapArgs::Input& in, std::int64_t at, std::int64_t stride, std::int64_t count, MapBlock<T>& to) {
  constexpr DType same = std::is_same_v<T, float> ? DType::f32 : DType::i32;
  if (in.dtype == same && stride == 1) {
    const T* from = static_cast<const T*>(in.data) + at;
    if (count == map_block) std::memcpy(to.v, from, map_block * sizeof(T));
    else std::memcpy(to.v, from, static_cast<std::size_t>(count) * sizeof(T));
  } else if (stride == 0) {
    const T v = load<T>(in, at);
    for (std::int64_t i = 0; i < map_block; ++i) to.v[i] = v;
  } else {
    for (std::int64_t i = 0; i < count; ++i) to.v[i] = load<T>(in, at + i * stride);
  }
}

// `count` results to elements `at` on.
template <class T> void store_block(const MapArgs& a, std::int64_t at, std::int64_t count, const MapBlock<T>& from) {
  constexpr DType same = std::is_same_v<T, float> ? DType::f32 : DType::i32;
  const auto n = static_cast<std::size_t>(count);
  if (a.out_dtype == same) std::memcpy(static_cast<T*>(a.out) + at, from.v, n * sizeof(T));
  else if (a.out_dtype == DType::boolean)
    for (std::size_t i = 0; i < n; ++i) static_cast<std::uint8_t*>(a.out)[static_cast<std::size_t>(at) + i] = from.v[i] != 0;
  else if (a.out_dtype == DType::f32)
    for (std::size_t i = 0; i < n; ++i) static_cast<float*>(a.out)[static_cast<std::size_t>(at) + i] = static_cast<float>(from.v[i]);
  else
    for (std::size_t i = 0; i < n; ++i)
      static_cast<std::int32_t*>(a.out)[static_cast<std::size_t>(at) + i] = static_cast<std::int32_t>(from.v[i]);
}

// One run of n elements of the result from element `out` on: input i begins at element at[i] and moves on by stride[i].
template <class... In, class F, std::size_t... I> void map_run(const MapArgs& a, const std::int64_t* at, const std::int64_t* stride,
                                                               std::int64_t out, std::int64_t n, F& f, std::index_sequence<I...>) {
  std::tuple<MapBlock<In>...> in;
  using Out = std::decay_t<decltype(f(In{}...))>;
  static_assert(std::is_same_v<Out, float> || std::is_same_v<Out, std::int32_t>);
  MapBlock<Out> result;
  // What is constant along the run is loaded once.
  ((stride[I] == 0 ? load_block(a.input[I], at[I], 0, map_block, std::get<I>(in)) : void()), ...);
  for (std::int64_t done = 0; done < n; done += map_block) {
    const std::int64_t count = n - done < map_block ? n - done : map_block;
    ((stride[I] != 0 ? load_block(a.input[I], at[I] + done * stride[I], stride[I], count, std::get<I>(in)) : void()), ...);
    for (std::int64_t j = 0; j < map_block; ++j) result.v[j] = f(std::get<I>(in).v[j]...);
    store_block(a, out + done, count, result);
  }
}

template <std::size_t> using AsFloat = float;
template <class F, std::size_t... I>
void map_floats(const MapArgs& a, std::int64_t begin, std::int64_t end, F& f, std::index_sequence<I...>) {
  map_typed<AsFloat<I>...>(a, begin, end, f);
}

}  // namespace detail

template <int N, class F> void map_rows(const MapArgs& a, std::int64_t begin, std::int64_t end, F f) {
  detail::map_floats(a, begin, end, f, std::make_index_sequence<N>{});
}

template <class... In, class F> void map_typed(const MapArgs& a, std::int64_t begin, std::int64_t end, F f) {
  constexpr int N = sizeof...(In);
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
    detail::map_run<In...>(a, at, stride, begin * n, (end - begin) * n, f, std::make_index_sequence<N>{});
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
    detail::map_run<In...>(a, at, stride, row * n, n, f, std::make_index_sequence<N>{});
  }
}

}  // namespace modelc

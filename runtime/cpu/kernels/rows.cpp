// Kernels that work on one row, or one token, at a time: conversion, norms, rope.
#include "runtime/cpu/kernels/encodings.h"
#include "runtime/cpu/kernels/simd.h"
#include "runtime/cpu/kernels/table.h"

namespace modelc::cpu::MODELC_ISA {
namespace {

template <class W> void convert_row(const std::byte* from, int64_t n, float scale, float* to) {
  const F s = splat(scale);
  if constexpr (W::block > 1) {
    for (int64_t g = 0; g < n / group_elements; ++g) {
      F v[group_vectors];
      W::group(from, g, v);
      for (int64_t i = 0; i < group_vectors; ++i) store(to + g * group_elements + i * lanes, v[i] * s);
    }
  } else {
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) store(to + i, W::get(from + W::bytes(i)) * s);
    if (i < n) store_part(to + i, get_part<W>(from + W::bytes(i), n - i) * s, n - i);
  }
}

// out = x · factor · (w + offset); w may be null.
MODELC_INLINE void scale_row(const float* x, const float* w, float factor, float offset, int64_t n, float* out) {
  const F f = splat(factor), o = splat(offset);
  for (int64_t i = 0; i < n; i += lanes) {
    F y = load_up_to(x + i, n - i) * f;
    if (w != nullptr) y = y * (load_up_to(w + i, n - i) + o);
    store_up_to(out + i, y, n - i);
  }
}

MODELC_INLINE float norm_factor(F squares, float eps, int64_t n) {
  return 1.0F / __builtin_sqrtf(sum(squares) / static_cast<float>(n) + eps);
}

}  // namespace

void convert(Stored encoding, const std::byte* from, int64_t n, float scale, float* to) {
  with_encoding(encoding, [&](auto w) { convert_row<decltype(w)>(from, n, scale, to); });
}

void narrow(Stored as, const float* from, int64_t n, std::uint16_t* to) {
  if (as == Stored::bf16) {
    for (int64_t i = 0; i < n; ++i) {
      std::uint32_t u;
      copy_bytes(&u, from + i, 4);
      const std::uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
      to[i] = static_cast<std::uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? u >> 16 | 0x40u : rounded);
    }
    return;
  }
  const F most = splat(65504.0F), beyond = splat(3.4028235e38F);
  for (int64_t i = 0; i < n; i += lanes) {
    const F v = load_up_to(from + i, n - i);
    const F size = max(v, zero() - v), bounded = max(zero() - most, min(most, v));   // in this order NaN goes through
    std::uint16_t h[lanes];
    halves_of_floats(pick_less(beyond, size, v, bounded), h);
    copy_bytes(to + i, h, (n - i < lanes ? n - i : lanes) * 2);
  }
}

void rms_norm(const float* x, const float* w, float eps, float offset, int64_t n, float* out) {
  F squares = zero();
  for (int64_t i = 0; i < n; i += lanes) {
    const F v = load_up_to(x + i, n - i);
    squares = fma(v, v, squares);
  }
  scale_row(x, w, norm_factor(squares, eps, n), offset, n, out);
}

void add_rms_norm(const float* x, const float* y, const float* w, float eps, float offset, int64_t n, float* sum_out, float* out) {
  F squares = zero();
  for (int64_t i = 0; i < n; i += lanes) {
    const F v = load_up_to(x + i, n - i) + load_up_to(y + i, n - i);
    store_up_to(sum_out + i, v, n - i);
    squares = fma(v, v, squares);
  }
  scale_row(sum_out, w, norm_factor(squares, eps, n), offset, n, out);
}

void layer_norm(const float* x, const float* w, const float* b, float eps, int64_t n, float* out) {
  F total = zero();
  for (int64_t i = 0; i < n; i += lanes) total = total + load_up_to(x + i, n - i);
  const F mean = splat(sum(total) / static_cast<float>(n));
  F squares = zero();                                      // of the differences, so that a large mean costs no digits
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const F v = load(x + i) - mean;
    squares = fma(v, v, squares);
  }
  if (i < n) {
    float rest[lanes] = {};
    store(rest, load_part(x + i, n - i) - mean);
    const F v = load_part(rest, n - i);
    squares = fma(v, v, squares);
  }
  const F factor = splat(norm_factor(squares, eps, n));
  for (i = 0; i < n; i += lanes) {
    F y = (load_up_to(x + i, n - i) - mean) * factor;
    if (w != nullptr) y = y * load_up_to(w + i, n - i);
    if (b != nullptr) y = y + load_up_to(b + i, n - i);
    store_up_to(out + i, y, n - i);
  }
}

void rope(const float* x, const float* cos, const float* sin, int64_t heads, int64_t d, int64_t half, bool adjacent, float* out) {
  for (int64_t h = 0; h < heads; ++h, x += d, out += d) {
    if (adjacent) {
      for (int64_t i = 0; i < half; ++i) {
        const float a = x[2 * i], b = x[2 * i + 1];
        out[2 * i] = a * cos[i] - b * sin[i];
        out[2 * i + 1] = b * cos[i] + a * sin[i];
      }
    } else {
      for (int64_t i = 0; i < half; i += lanes) {
        const int64_t left = half - i;
        const F a = load_up_to(x + i, left), b = load_up_to(x + half + i, left);
        const F c = load_up_to(cos + i, left), s = load_up_to(sin + i, left);
        store_up_to(out + i, a * c - b * s, left);
        store_up_to(out + half + i, b * c + a * s, left);
      }
    }
    if (x != out)
      for (int64_t i = 2 * half; i < d; ++i) out[i] = x[i];
  }
}

}  // namespace modelc::cpu::MODELC_ISA

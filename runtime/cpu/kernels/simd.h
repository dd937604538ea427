// A vector of floats of the instruction set that this file is compiled for: F, of `lanes` elements. MODELC_ISA names
// the set (portable, avx2, avx512) and is the namespace of everything compiled for it.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "runtime/cpu/kernels.h"

#define MODELC_INLINE static inline __attribute__((always_inline))

namespace modelc::cpu::MODELC_ISA {

using std::int64_t;

MODELC_INLINE void copy_bytes(void* to, const void* from, int64_t n) { __builtin_memcpy(to, from, static_cast<std::size_t>(n)); }

// ---- 16 lanes: AVX-512 (F, BW, DQ, VL) -----------------------------------------------------------------------------
#if defined(__AVX512F__)

using F = __m512;
using I = __m512i;
constexpr int64_t lanes = 16;

MODELC_INLINE __mmask16 first(int64_t n) { return static_cast<__mmask16>((1u << n) - 1u); }
MODELC_INLINE F zero() { return _mm512_setzero_ps(); }
MODELC_INLINE F splat(float x) { return _mm512_set1_ps(x); }
MODELC_INLINE F load(const float* p) { return _mm512_loadu_ps(p); }
MODELC_INLINE F load_part(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
MODELC_INLINE void store(float* p, F v) { _mm512_storeu_ps(p, v); }
MODELC_INLINE void store_part(float* p, F v, int64_t n) { _mm512_mask_storeu_ps(p, first(n), v); }
MODELC_INLINE F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
MODELC_INLINE F max(F a, F b) { return _mm512_max_ps(a, b); }
MODELC_INLINE F min(F a, F b) { return _mm512_min_ps(a, b); }
// a where x < y, else b.
MODELC_INLINE F pick_less(F x, F y, F a, F b) { return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), b, a); }
MODELC_INLINE I bits(F v) { return _mm512_castps_si512(v); }
MODELC_INLINE F floats(I v) { return _mm512_castsi512_ps(v); }
MODELC_INLINE I splat_int(std::int32_t x) { return _mm512_set1_epi32(x); }
MODELC_INLINE I add_int(I a, I b) { return _mm512_add_epi32(a, b); }
MODELC_INLINE I sub_int(I a, I b) { return _mm512_sub_epi32(a, b); }
template <int N> MODELC_INLINE I shift_left(I a) { return _mm512_slli_epi32(a, N); }
template <int N> MODELC_INLINE I shift_right(I a) { return _mm512_srai_epi32(a, N); }
MODELC_INLINE I and_int(I a, I b) { return _mm512_and_si512(a, b); }
MODELC_INLINE I or_int(I a, I b) { return _mm512_or_si512(a, b); }

MODELC_INLINE F load_bf16(const std::byte* p) {
  return floats(shift_left<16>(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))));
}
MODELC_INLINE F load_f16(const std::byte* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
MODELC_INLINE I load_u8(const std::byte* p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
MODELC_INLINE I load_s8(const std::byte* p) { return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
MODELC_INLINE F to_floats(I a) { return _mm512_cvtepi32_ps(a); }
MODELC_INLINE I shift_right_by(I a, int n) { return _mm512_srlv_epi32(a, _mm512_set1_epi32(n)); }
// Lane i by i.
MODELC_INLINE I shift_right_lanes(I a) {
  return _mm512_srlv_epi32(a, _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
MODELC_INLINE void halves_of_floats(F v, std::uint16_t* to) {
  const __m256i h = _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
  copy_bytes(to, &h, 32);
}
// Makes the compiler load v once, where it would rather read memory again in every instruction that uses it.
MODELC_INLINE void hold(F& v) { __asm__("" : "+v"(v)); }
// The sum of each of four vectors: lanes 8 apart are added, then 4, 2 and 1.
MODELC_INLINE __m128 sums(F a, F b, F c, F d) {
  const F ab = _mm512_shuffle_f32x4(a, b, 0x44) + _mm512_shuffle_f32x4(a, b, 0xEE);
  const F cd = _mm512_shuffle_f32x4(c, d, 0x44) + _mm512_shuffle_f32x4(c, d, 0xEE);
  F s = _mm512_shuffle_f32x4(ab, cd, 0x88) + _mm512_shuffle_f32x4(ab, cd, 0xDD);
  s = s + _mm512_permute_ps(s, 0x4E);
  s = s + _mm512_permute_ps(s, 0xB1);
  return _mm512_castps512_ps128(_mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), s));
}

// ---- 8 lanes: AVX2, FMA, F16C --------------------------------------------------------------------------------------
#elif defined(__AVX2__)

using F = __m256;
using I = __m256i;
constexpr int64_t lanes = 8;

MODELC_INLINE __m256i first(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
MODELC_INLINE F zero() { return _mm256_setzero_ps(); }
MODELC_INLINE F splat(float x) { return _mm256_set1_ps(x); }
MODELC_INLINE F load(const float* p) { return _mm256_loadu_ps(p); }
MODELC_INLINE F load_part(const float* p, int64_t n) { return _mm256_maskload_ps(p, first(n)); }
MODELC_INLINE void store(float* p, F v) { _mm256_storeu_ps(p, v); }
MODELC_INLINE void store_part(float* p, F v, int64_t n) { _mm256_maskstore_ps(p, first(n), v); }
MODELC_INLINE F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
MODELC_INLINE F max(F a, F b) { return _mm256_max_ps(a, b); }
MODELC_INLINE F min(F a, F b) { return _mm256_min_ps(a, b); }
MODELC_INLINE F pick_less(F x, F y, F a, F b) { return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, y, _CMP_LT_OQ)); }
MODELC_INLINE I bits(F v) { return _mm256_castps_si256(v); }
MODELC_INLINE F floats(I v) { return _mm256_castsi256_ps(v); }
MODELC_INLINE I splat_int(std::int32_t x) { return _mm256_set1_epi32(x); }
MODELC_INLINE I add_int(I a, I b) { return _mm256_add_epi32(a, b); }
MODELC_INLINE I sub_int(I a, I b) { return _mm256_sub_epi32(a, b); }
template <int N> MODELC_INLINE I shift_left(I a) { return _mm256_slli_epi32(a, N); }
template <int N> MODELC_INLINE I shift_right(I a) { return _mm256_srai_epi32(a, N); }
MODELC_INLINE I and_int(I a, I b) { return _mm256_and_si256(a, b); }
MODELC_INLINE I or_int(I a, I b) { return _mm256_or_si256(a, b); }

MODELC_INLINE F load_bf16(const std::byte* p) {
  return floats(shift_left<16>(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))));
}
MODELC_INLINE F load_f16(const std::byte* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
MODELC_INLINE I load_u8(const std::byte* p) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))); }
MODELC_INLINE I load_s8(const std::byte* p) { return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))); }
MODELC_INLINE F to_floats(I a) { return _mm256_cvtepi32_ps(a); }
MODELC_INLINE I shift_right_by(I a, int n) { return _mm256_srlv_epi32(a, _mm256_set1_epi32(n)); }
MODELC_INLINE I shift_right_lanes(I a) { return _mm256_srlv_epi32(a, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }
MODELC_INLINE void halves_of_floats(F v, std::uint16_t* to) {
  const __m128i h = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
  copy_bytes(to, &h, 16);
}
MODELC_INLINE void hold(F& v) { __asm__("" : "+x"(v)); }
// The sum of each of four vectors: lanes 1 apart are added, then 2, then 4.
MODELC_INLINE __m128 sums(F a, F b, F c, F d) {
  const F s = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
  return _mm256_castps256_ps128(s) + _mm256_extractf128_ps(s, 1);
}

// ---- 4 lanes: whatever vectors of 16 bytes the compiler has --------------------------------------------------------
#else

typedef float F __attribute__((vector_size(16)));
typedef std::int32_t I __attribute__((vector_size(16)));
typedef std::uint16_t U16 __attribute__((vector_size(8)));
constexpr int64_t lanes = 4;

MODELC_INLINE F zero() { return F{0, 0, 0, 0}; }
MODELC_INLINE F splat(float x) { return F{x, x, x, x}; }
MODELC_INLINE F load(const float* p) {
  F v;
  copy_bytes(&v, p, 16);
  return v;
}
MODELC_INLINE F load_part(const float* p, int64_t n) {
  F v = zero();
  copy_bytes(&v, p, n * 4);
  return v;
}
MODELC_INLINE void store(float* p, F v) { copy_bytes(p, &v, 16); }
MODELC_INLINE void store_part(float* p, F v, int64_t n) { copy_bytes(p, &v, n * 4); }
MODELC_INLINE F fma(F a, F b, F c) { return a * b + c; }   // two roundings: compiled with -ffp-contract=off
MODELC_INLINE I bits(F v) { return reinterpret_cast<I>(v); }
MODELC_INLINE F floats(I v) { return reinterpret_cast<F>(v); }
MODELC_INLINE I splat_int(std::int32_t x) { return I{x, x, x, x}; }
MODELC_INLINE I add_int(I a, I b) { return a + b; }
MODELC_INLINE I sub_int(I a, I b) { return a - b; }
template <int N> MODELC_INLINE I shift_left(I a) { return a << N; }
template <int N> MODELC_INLINE I shift_right(I a) { return a >> N; }
MODELC_INLINE I and_int(I a, I b) { return a & b; }
MODELC_INLINE I or_int(I a, I b) { return a | b; }
MODELC_INLINE F pick_less(F x, F y, F a, F b) {
  const I m = x < y;
  return floats((bits(a) & m) | (bits(b) & ~m));
}
// As the x86 instructions: b when one is NaN.
MODELC_INLINE F max(F a, F b) { return pick_less(b, a, a, b); }
MODELC_INLINE F min(F a, F b) { return pick_less(a, b, a, b); }

MODELC_INLINE I load_u16(const std::byte* p) {
  U16 v;
  copy_bytes(&v, p, 8);
  return __builtin_convertvector(v, I);
}
MODELC_INLINE F load_bf16(const std::byte* p) { return floats(shift_left<16>(load_u16(p))); }
// The exponent moves by 112; a multiplication does it, subnormals included. Infinity and NaN are put right after it.
MODELC_INLINE F load_f16(const std::byte* p) {
  const I h = load_u16(p);
  const I magnitude = h & 0x7fff;
  const F v = floats(shift_left<13>(magnitude)) * 0x1p112F;
  const I special = (magnitude >= 0x7c00) & 0x7f800000;
  return floats(bits(v) | special | shift_left<16>(h & 0x8000));
}
typedef std::uint8_t U8 __attribute__((vector_size(4)));
typedef std::int8_t S8 __attribute__((vector_size(4)));
MODELC_INLINE I load_u8(const std::byte* p) {
  U8 v;
  copy_bytes(&v, p, 4);
  return __builtin_convertvector(v, I);
}
MODELC_INLINE I load_s8(const std::byte* p) {
  S8 v;
  copy_bytes(&v, p, 4);
  return __builtin_convertvector(v, I);
}
MODELC_INLINE F to_floats(I a) { return __builtin_convertvector(a, F); }
MODELC_INLINE I shift_right_by(I a, int n) { return a >> n; }
MODELC_INLINE I shift_right_lanes(I a) { return a >> I{0, 1, 2, 3}; }
// To the nearest, ties to even. Normal numbers: the exponent moves by 112, half a unit and the last bit that stays are added.
// Subnormal ones: adding 0.5 leaves the number in units of 2^-24 in the low bits.
MODELC_INLINE void halves_of_floats(F v, std::uint16_t* to) {
  for (int i = 0; i < 4; ++i) {
    std::uint32_t u;
    const float f = v[i];
    copy_bytes(&u, &f, 4);
    const std::uint32_t sign = u >> 16 & 0x8000u, size = u & 0x7fffffffu;
    std::uint32_t h;
    if (size >= 0x7f800000u) {
      h = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
    } else if (size < 0x38800000u) {                       // below 2^-14
      float moved;
      copy_bytes(&moved, &size, 4);
      moved += 0.5F;
      std::uint32_t m;
      copy_bytes(&m, &moved, 4);
      h = m - 0x3f000000u;
    } else {
      h = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
      h = h > 0x7c00u ? 0x7c00u : h;
    }
    to[i] = static_cast<std::uint16_t>(sign | h);
  }
}
MODELC_INLINE void hold(F&) {}
// The sum of each of four vectors: lanes 2 apart are added, then 1.
MODELC_INLINE F sums(F a, F b, F c, F d) {
  const F ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const F cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
  return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

#endif

// ---- for all -------------------------------------------------------------------------------------------------------
using Quad = decltype(sums(zero(), zero(), zero(), zero()));

MODELC_INLINE float sum(F v) {
  const Quad s = sums(v, zero(), zero(), zero());
  return s[0];
}
MODELC_INLINE float largest(F v) {
  float a[lanes];
  store(a, v);
  float m = a[0];
  for (int64_t i = 1; i < lanes; ++i) m = a[i] > m ? a[i] : m;
  return m;
}

// The f16 at p.
MODELC_INLINE float half_at(const std::byte* p) {
  std::uint16_t h;
  copy_bytes(&h, p, 2);
#if defined(__AVX2__)
  return _cvtsh_ss(h);
#else
  std::uint32_t u = (h & 0x7fffu) << 13;
  float v;
  copy_bytes(&v, &u, 4);
  v *= 0x1p112F;
  copy_bytes(&u, &v, 4);
  u |= ((h & 0x7fffu) >= 0x7c00u ? 0x7f800000u : 0u) | (h & 0x8000u) << 16;
  copy_bytes(&v, &u, 4);
  return v;
#endif
}

// e^x, 0 below -87.3 and for -inf; within 2 units in the last place. The derivation is in runtime/device/math.h.
MODELC_INLINE F exp(F x) {
  const F magic = splat(12582912.0F);
  const F c = max(splat(-104.0F), min(splat(89.0F), x));   // in this order NaN goes through
  const F shifted = fma(c, splat(1.44269504F), magic);
  const F n = shifted - magic;
  const F r = fma(n, splat(2.12194440e-4F), fma(n, splat(-0.693359375F), c));
  F p = splat(1.0F / 5040);
  p = fma(p, r, splat(1.0F / 720));
  p = fma(p, r, splat(1.0F / 120));
  p = fma(p, r, splat(1.0F / 24));
  p = fma(p, r, splat(1.0F / 6));
  p = fma(p, r, splat(0.5F));
  p = fma(p, r, splat(1.0F));
  p = fma(p, r, splat(1.0F));
  const I i = sub_int(bits(shifted), bits(magic));
  const I half = shift_right<1>(i);
  const F a = floats(shift_left<23>(add_int(half, splat_int(127))));
  const F b = floats(shift_left<23>(add_int(sub_int(i, half), splat_int(127))));
  const F y = pick_less(x, splat(-87.3365402F), zero(), p * a * b);
  return pick_less(splat(88.7228394F), x, splat(__builtin_inff()), y);
}
MODELC_INLINE F tanh(F x) {
  const F a = max(x, zero() - x);
  const F e = exp(splat(-2.0F) * a);
  const F far = (splat(1.0F) - e) / (splat(1.0F) + e);
  const F s = x * x;
  F p = splat(-1382.0F / 155925);
  p = fma(p, s, splat(62.0F / 2835));
  p = fma(p, s, splat(-17.0F / 315));
  p = fma(p, s, splat(2.0F / 15));
  p = fma(p, s, splat(-1.0F / 3));
  const F near = fma(x, s * p, x);
  return pick_less(a, splat(0.3F), near, pick_less(x, zero(), zero() - far, far));
}

// A vector of which `left` elements are there: the missing ones are 0, and are not written.
MODELC_INLINE F load_up_to(const float* p, int64_t left) { return left >= lanes ? load(p) : load_part(p, left); }
MODELC_INLINE void store_up_to(float* p, F v, int64_t left) {
  if (left >= lanes) store(p, v);
  else store_part(p, v, left);
}

}  // namespace modelc::cpu::MODELC_ISA

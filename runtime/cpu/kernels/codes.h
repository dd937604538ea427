// Quantised weights as whole numbers, for products with activations that are rounded to 13 bits: of two rows at a time,
// 4 groups of 32 elements, without any float. Needs AVX2; the portable kernels have scalar_codes.h.
//
//   bias        what is taken from a code to get the number: codes are bytes without sign
//   as_signed   codes are bytes with sign
//   moved       a group has a minimum that is added to all its elements
//   halved      a group's two halves have scales of their own, whole numbers below the group's scale
//
//   at(row, g)               where groups g, … g + 3 of a row are, g a multiple of 4: a and b below
//   codes<J>(a, b, lo, hi)   group J of the 4: its first 16 codes of row a in the low lane, of row b in the high one; then
//                            the other 16
//   scales(a, b, n, d, m)    [a: groups 0, 1, 2, 3 | b: …]; only n of them are read, the others 0
//   halves(a, b)             the same order, two 16-bit numbers each
#pragma once

#include "runtime/cpu/kernels/simd.h"

namespace modelc::cpu::MODELC_ISA {

using Bytes = __m256i;                                     // 32 bytes: 16 of one row, 16 of another
using F8 = __m256;

MODELC_INLINE __m128i bytes16(const std::byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
MODELC_INLINE Bytes two(const std::byte* a, const std::byte* b) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(bytes16(a)), bytes16(b), 1);
}
MODELC_INLINE Bytes low_nibbles(Bytes v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
MODELC_INLINE Bytes high_nibbles(Bytes v) { return low_nibbles(_mm256_srli_epi16(v, 4)); }
MODELC_INLINE std::uint32_t u32_at(const std::byte* p) {
  std::uint32_t v;
  copy_bytes(&v, p, 4);
  return v;
}
MODELC_INLINE int u16_at(const std::byte* p) {
  std::uint16_t v;
  copy_bytes(&v, p, 2);
  return v;
}
// Two f32 in all lanes of one half each.
MODELC_INLINE F8 halves_of(float a, float b) { return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_set1_ps(a)), _mm_set1_ps(b), 1); }
// The f16 at p, p + gap, …, n of them, of two rows.
MODELC_INLINE F8 f16_scales(const std::byte* a, const std::byte* b, int64_t gap, int n) {
  __m128i h = _mm_setzero_si128();
  if (n == 4) {
    h = _mm_cvtsi32_si128(u16_at(a));
    h = _mm_insert_epi16(h, u16_at(a + gap), 1);
    h = _mm_insert_epi16(h, u16_at(a + 2 * gap), 2);
    h = _mm_insert_epi16(h, u16_at(a + 3 * gap), 3);
    h = _mm_insert_epi16(h, u16_at(b), 4);
    h = _mm_insert_epi16(h, u16_at(b + gap), 5);
    h = _mm_insert_epi16(h, u16_at(b + 2 * gap), 6);
    h = _mm_insert_epi16(h, u16_at(b + 3 * gap), 7);
  } else {
    std::uint16_t some[8] = {};
    for (int i = 0; i < n; ++i) {
      copy_bytes(some + i, a + i * gap, 2);
      copy_bytes(some + 4 + i, b + i * gap, 2);
    }
    copy_bytes(&h, some, 16);
  }
  return _mm256_cvtph_ps(h);
}

// Of the encodings in blocks of 32: `size` bytes each, the f16 scale first.
template <int size> struct SmallBlocks {
  static constexpr int64_t block = 32;
  static constexpr bool as_signed = false, moved = false, halved = false;
  MODELC_INLINE const std::byte* at(const std::byte* row, int64_t g) { return row + g * size; }
  MODELC_INLINE void scales(const std::byte* a, const std::byte* b, int n, F8& d, F8&) { d = f16_scales(a, b, size, n); }
};
struct Q4_0Codes : SmallBlocks<18> {
  static constexpr int bias = 8;
  template <int J> MODELC_INLINE void codes(const std::byte* a, const std::byte* b, Bytes& lo, Bytes& hi) {
    const Bytes v = two(a + J * 18 + 2, b + J * 18 + 2);
    lo = low_nibbles(v);
    hi = high_nibbles(v);
  }
};
struct Q4_1Codes : SmallBlocks<20> {
  static constexpr int bias = 0;
  static constexpr bool moved = true;
  template <int J> MODELC_INLINE void codes(const std::byte* a, const std::byte* b, Bytes& lo, Bytes& hi) {
    const Bytes v = two(a + J * 20 + 4, b + J * 20 + 4);
    lo = low_nibbles(v);
    hi = high_nibbles(v);
  }
  MODELC_INLINE void scales(const std::byte* a, const std::byte* b, int n, F8& d, F8& m) {
    d = f16_scales(a, b, 20, n);
    m = f16_scales(a + 2, b + 2, 20, n);
  }
};
// 16 where bit i of a row's word is set: bits 0 to 15 go to lo, the others to hi.
MODELC_INLINE void fifth(std::uint32_t a, std::uint32_t b, Bytes& lo, Bytes& hi) {
  const Bytes words = _mm256_set_epi32(0, 0, 0, static_cast<int>(b), 0, 0, 0, static_cast<int>(a));
  const Bytes bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ull));
  const Bytes first = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  const Bytes second = _mm256_add_epi8(first, _mm256_set1_epi8(2)), sixteen = _mm256_set1_epi8(16);
  const Bytes low = _mm256_and_si256(_mm256_shuffle_epi8(words, first), bit);
  const Bytes high = _mm256_and_si256(_mm256_shuffle_epi8(words, second), bit);
  lo = _mm256_or_si256(lo, _mm256_and_si256(_mm256_cmpeq_epi8(low, bit), sixteen));
  hi = _mm256_or_si256(hi, _mm256_and_si256(_mm256_cmpeq_epi8(high, bit), sixteen));
}
struct Q5_0Codes : SmallBlocks<22> {
  static constexpr int bias = 16;
  template <int J> MODELC_INLINE void codes(const std::byte* a, const std::byte* b, Bytes& lo, Bytes& hi) {
    const Bytes v = two(a + J * 22 + 6, b + J * 22 + 6);
    lo = low_nibbles(v);
    hi = high_nibbles(v);
    fifth(u32_at(a + J * 22 + 2), u32_at(b + J * 22 + 2), lo, hi);
  }
};
struct Q5_1Codes : SmallBlocks<24> {
  static constexpr int bias = 0;
  static constexpr bool moved = true;
  template <int J> MODELC_INLINE void codes(const std::byte* a, const std::byte* b, Bytes& lo, Bytes& hi) {
    const Bytes v = two(a + J * 24 + 8, b + J * 24 + 8);
    lo = low_nibbles(v);
    hi = high_nibbles(v);
    fifth(u32_at(a + J * 24 + 4), u32_at(b + J * 24 + 4), lo, hi);
  }
  MODELC_INLINE void scales(const std::byte* a, const std::byte* b, int n, F8& d, F8& m) {
    d = f16_scales(a, b, 24, n);
    m = f16_scales(a + 2, b + 2, 24, n);
  }
};
struct Q8_0Codes : SmallBlocks<34> {
  static constexpr int bias = 0;
  static constexpr bool as_signed = true;
  template <int J> MODELC_INLINE void codes(const std::byte* a, const std::byte* b, Bytes& lo, Bytes& hi) {
    lo = two(a + J * 34 + 2, b + J * 34 + 2);
    hi = two(a + J * 34 + 18, b + J * 34 + 18);
  }
};

// Of the encodings in blocks of 256: `size` bytes each. Four groups are a half of a block.
struct HalfBlock {
  const std::byte* block;
  int64_t second;                                          // 0 or 1
};
template <int size> struct LargeBlocks {
  static constexpr int64_t block = 256;
  static constexpr bool as_signed = false, moved = false, halved = false;
  MODELC_INLINE HalfBlock at(const std::byte* row, int64_t g) { return {row + g / 8 * size, g / 4 % 2}; }
};

// Four scales and four minima of 6 bits each, as bytes, from the 12 that hold eight of both.
struct KBytes {
  std::uint32_t scales, minima;
};
MODELC_INLINE KBytes k_bytes(const std::byte* p, int64_t second) {
  const std::uint32_t a = u32_at(p), b = u32_at(p + 4), c = u32_at(p + 8);
  if (second == 0) return {a & 0x3f3f3f3fu, b & 0x3f3f3f3fu};
  return {(c & 0x0f0f0f0fu) | (a >> 2 & 0x30303030u), (c >> 4 & 0x0f0f0f0fu) | (b >> 2 & 0x30303030u)};
}
MODELC_INLINE F8 byte_floats(std::uint32_t a, std::uint32_t b) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(static_cast<unsigned long long>(b) << 32 | a))));
}
MODELC_INLINE void k_scales(HalfBlock a, HalfBlock b, F8& d, F8& m) {
  const KBytes p = k_bytes(a.block + 4, a.second), q = k_bytes(b.block + 4, b.second);
  const F8 df = halves_of(half_at(a.block), half_at(b.block)), mf = halves_of(half_at(a.block + 2), half_at(b.block + 2));
  d = df * byte_floats(p.scales, q.scales);
  m = _mm256_setzero_ps() - mf * byte_floats(p.minima, q.minima);
}
// Groups J of a half of the block: two share 32 bytes, low nibbles and high ones.
template <int J> MODELC_INLINE void k_codes(const std::byte* a, const std::byte* b, Bytes& lo, Bytes& hi) {
  const Bytes v = two(a + J / 2 * 32, b + J / 2 * 32), w = two(a + J / 2 * 32 + 16, b + J / 2 * 32 + 16);
  lo = J % 2 == 0 ? low_nibbles(v) : high_nibbles(v);
  hi = J % 2 == 0 ? low_nibbles(w) : high_nibbles(w);
}
struct Q4_KCodes : LargeBlocks<144> {
  static constexpr int bias = 0;
  static constexpr bool moved = true;
  template <int J> MODELC_INLINE void codes(HalfBlock a, HalfBlock b, Bytes& lo, Bytes& hi) {
    k_codes<J>(a.block + 16 + a.second * 64, b.block + 16 + b.second * 64, lo, hi);
  }
  MODELC_INLINE void scales(HalfBlock a, HalfBlock b, int, F8& d, F8& m) { k_scales(a, b, d, m); }
};
struct Q5_KCodes : LargeBlocks<176> {
  static constexpr int bias = 0;
  static constexpr bool moved = true;
  template <int J> MODELC_INLINE void codes(HalfBlock a, HalfBlock b, Bytes& lo, Bytes& hi) {
    k_codes<J>(a.block + 48 + a.second * 64, b.block + 48 + b.second * 64, lo, hi);
    // Bit 4 · second + J of byte i is the fifth one of element i.
    const __m128i by = _mm_cvtsi32_si128(static_cast<int>(4 * a.second));
    const Bytes v = _mm256_srl_epi16(two(a.block + 16, b.block + 16), by);
    const Bytes w = _mm256_srl_epi16(two(a.block + 32, b.block + 32), by);
    lo = _mm256_or_si256(lo, _mm256_and_si256(_mm256_slli_epi16(v, 4 - J), _mm256_set1_epi8(16)));
    hi = _mm256_or_si256(hi, _mm256_and_si256(_mm256_slli_epi16(w, 4 - J), _mm256_set1_epi8(16)));
  }
  MODELC_INLINE void scales(HalfBlock a, HalfBlock b, int, F8& d, F8& m) { k_scales(a, b, d, m); }
};
struct Q6_KCodes : LargeBlocks<210> {
  static constexpr int bias = 32;
  static constexpr bool halved = true;
  template <int J> MODELC_INLINE void codes(HalfBlock a, HalfBlock b, Bytes& lo, Bytes& hi) {
    const std::byte *p = a.block + a.second * 64 + J % 2 * 32, *q = b.block + b.second * 64 + J % 2 * 32;
    const Bytes v = two(p, q), w = two(p + 16, q + 16);
    const std::byte *r = a.block + 128 + a.second * 32, *s = b.block + 128 + b.second * 32;
    lo = _mm256_or_si256(J < 2 ? low_nibbles(v) : high_nibbles(v), high_pair<J>(two(r, s)));
    hi = _mm256_or_si256(J < 2 ? low_nibbles(w) : high_nibbles(w), high_pair<J>(two(r + 16, s + 16)));
  }
  MODELC_INLINE void scales(HalfBlock a, HalfBlock b, int, F8& d, F8&) { d = halves_of(half_at(a.block + 208), half_at(b.block + 208)); }
  MODELC_INLINE __m256i halves(HalfBlock a, HalfBlock b) {
    const auto eight = [](HalfBlock h) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(h.block + 192 + h.second * 8)); };
    return _mm256_cvtepi8_epi16(_mm_unpacklo_epi64(eight(a), eight(b)));
  }

 private:
  // Bits 2 J and 2 J + 1 of each byte as bits 4 and 5.
  template <int J> MODELC_INLINE Bytes high_pair(Bytes v) {
    const Bytes moved_bits = J < 2 ? _mm256_slli_epi16(v, 4 - 2 * J) : J == 2 ? v : _mm256_srli_epi16(v, 2);
    return _mm256_and_si256(moved_bits, _mm256_set1_epi8(0x30));
  }
};

// f(C{}) for the struct of a quantised encoding.
template <class Function> MODELC_INLINE void with_codes(Stored encoding, Function f) {
  switch (encoding) {
    case Stored::q4_0: return f(Q4_0Codes{});
    case Stored::q4_1: return f(Q4_1Codes{});
    case Stored::q5_0: return f(Q5_0Codes{});
    case Stored::q5_1: return f(Q5_1Codes{});
    case Stored::q8_0: return f(Q8_0Codes{});
    case Stored::q4_k: return f(Q4_KCodes{});
    case Stored::q5_k: return f(Q5_KCodes{});
    case Stored::q6_k: return f(Q6_KCodes{});
    default: return;
  }
}

}  // namespace modelc::cpu::MODELC_ISA

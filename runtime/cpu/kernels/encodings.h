// Weights as they are stored, decoded into vectors of f32: one struct an encoding. Plain elements are read a vector at a
// time; blocks of quantised ones a group of 32 at a time. Every product and sum of a decoded value is rounded as the
// format's own definition rounds it, so that kernels see the numbers that a dequantised file would hold.
//
//   block      elements that share what is decoded with them; 1 for plain types
//   bytes(n)   of n elements, n a multiple of block
//   Plain:     get(p), one vector at p
//   Blocks:    group(row, g, out), elements [32 g, 32 g + 32) of a row
#pragma once

#include "runtime/cpu/kernels/simd.h"

namespace modelc::cpu::MODELC_ISA {

constexpr int64_t group_elements = 32;
constexpr int64_t group_vectors = group_elements / lanes, half_vectors = 16 / lanes;

struct F32Weights {
  static constexpr int64_t block = 1;
  MODELC_INLINE int64_t bytes(int64_t n) { return n * 4; }
  MODELC_INLINE F get(const std::byte* p) {
    F v;
    copy_bytes(&v, p, sizeof v);
    return v;
  }
};
struct F16Weights {
  static constexpr int64_t block = 1;
  MODELC_INLINE int64_t bytes(int64_t n) { return n * 2; }
  MODELC_INLINE F get(const std::byte* p) { return load_f16(p); }
};
struct BF16Weights {
  static constexpr int64_t block = 1;
  MODELC_INLINE int64_t bytes(int64_t n) { return n * 2; }
  MODELC_INLINE F get(const std::byte* p) { return load_bf16(p); }
};
// The first n elements, the others 0; reads no byte beyond them.
template <class W> MODELC_INLINE F get_part(const std::byte* p, int64_t n) {
  std::byte whole[lanes * 4] = {};
  copy_bytes(whole, p, W::bytes(n));
  return W::get(whole);
}

// ---- blocks ----------------------------------------------------------------------------------------------------------
MODELC_INLINE std::uint32_t byte_at(const std::byte* p) { return static_cast<std::uint32_t>(*p); }
MODELC_INLINE std::uint32_t word_at(const std::byte* p) {
  std::uint32_t v;
  copy_bytes(&v, p, 4);
  return v;
}

// 16 bytes of nibbles as 32 numbers, the low ones first.
MODELC_INLINE void nibbles(const std::byte* p, I (&out)[group_vectors]) {
  for (int64_t i = 0; i < half_vectors; ++i) {
    const I v = load_u8(p + i * lanes);
    out[i] = and_int(v, splat_int(15));
    out[half_vectors + i] = shift_right<4>(v);
  }
}
// Adds 16 to those whose bit in `bits` is set.
MODELC_INLINE void fifth_bits(std::uint32_t bits, I (&v)[group_vectors]) {
  for (int64_t i = 0; i < group_vectors; ++i) {
    const I bit = and_int(shift_right_lanes(splat_int(static_cast<std::int32_t>(bits >> (i * lanes)))), splat_int(1));
    v[i] = or_int(v[i], shift_left<4>(bit));
  }
}
MODELC_INLINE void scaled(const I (&v)[group_vectors], float scale, std::int32_t zero, F (&out)[group_vectors]) {
  for (int64_t i = 0; i < group_vectors; ++i) out[i] = splat(scale) * to_floats(sub_int(v[i], splat_int(zero)));
}
MODELC_INLINE void scaled_and_moved(const I (&v)[group_vectors], float scale, float minimum, F (&out)[group_vectors]) {
  for (int64_t i = 0; i < group_vectors; ++i) out[i] = to_floats(v[i]) * splat(scale) + splat(minimum);
}

// f16 scale, 16 bytes of nibbles: scale · (n - 8).
struct Q4_0Weights {
  static constexpr int64_t block = 32;
  MODELC_INLINE int64_t bytes(int64_t n) { return n / 32 * 18; }
  MODELC_INLINE void group(const std::byte* row, int64_t g, F (&out)[group_vectors]) {
    const std::byte* b = row + g * 18;
    I v[group_vectors];
    nibbles(b + 2, v);
    scaled(v, half_at(b), 8, out);
  }
};
// f16 scale and minimum, 16 bytes of nibbles: scale · n + minimum.
struct Q4_1Weights {
  static constexpr int64_t block = 32;
  MODELC_INLINE int64_t bytes(int64_t n) { return n / 32 * 20; }
  MODELC_INLINE void group(const std::byte* row, int64_t g, F (&out)[group_vectors]) {
    const std::byte* b = row + g * 20;
    I v[group_vectors];
    nibbles(b + 4, v);
    scaled_and_moved(v, half_at(b), half_at(b + 2), out);
  }
};
// f16 scale, a fifth bit for each, 16 bytes of nibbles: scale · (n - 16).
struct Q5_0Weights {
  static constexpr int64_t block = 32;
  MODELC_INLINE int64_t bytes(int64_t n) { return n / 32 * 22; }
  MODELC_INLINE void group(const std::byte* row, int64_t g, F (&out)[group_vectors]) {
    const std::byte* b = row + g * 22;
    I v[group_vectors];
    nibbles(b + 6, v);
    fifth_bits(word_at(b + 2), v);
    scaled(v, half_at(b), 16, out);
  }
};
// f16 scale and minimum, a fifth bit for each, 16 bytes of nibbles: scale · n + minimum.
struct Q5_1Weights {
  static constexpr int64_t block = 32;
  MODELC_INLINE int64_t bytes(int64_t n) { return n / 32 * 24; }
  MODELC_INLINE void group(const std::byte* row, int64_t g, F (&out)[group_vectors]) {
    const std::byte* b = row + g * 24;
    I v[group_vectors];
    nibbles(b + 8, v);
    fifth_bits(word_at(b + 4), v);
    scaled_and_moved(v, half_at(b), half_at(b + 2), out);
  }
};
// f16 scale, 32 signed bytes.
struct Q8_0Weights {
  static constexpr int64_t block = 32;
  MODELC_INLINE int64_t bytes(int64_t n) { return n / 32 * 34; }
  MODELC_INLINE void group(const std::byte* row, int64_t g, F (&out)[group_vectors]) {
    const std::byte* b = row + g * 34;
    const F scale = splat(half_at(b));
    for (int64_t i = 0; i < group_vectors; ++i) out[i] = scale * to_floats(load_s8(b + 2 + i * lanes));
  }
};

// Scale and minimum of group j of 8, of 6 bits each in 12 bytes: whole bytes for the first four, and for the others four
// bits in the last four bytes and the top two of the first eight.
struct KScale {
  float scale, minimum;
};
MODELC_INLINE KScale k_scale(const std::byte* scales, int64_t j, float d, float dmin) {
  std::uint32_t s, m;
  if (j < 4) {
    s = byte_at(scales + j) & 63u;
    m = byte_at(scales + j + 4) & 63u;
  } else {
    const std::uint32_t low = byte_at(scales + j + 4);
    s = (low & 15u) | byte_at(scales + j - 4) >> 6 << 4;
    m = low >> 4 | byte_at(scales + j) >> 6 << 4;
  }
  return {d * static_cast<float>(s), dmin * static_cast<float>(m)};
}
// Group j of 8 in 128 bytes: two groups share 32 bytes, the low and the high nibbles.
MODELC_INLINE void k_nibbles(const std::byte* p, int64_t j, I (&out)[group_vectors]) {
  for (int64_t i = 0; i < group_vectors; ++i) {
    const I v = load_u8(p + j / 2 * 32 + i * lanes);
    out[i] = j % 2 == 0 ? and_int(v, splat_int(15)) : shift_right<4>(v);
  }
}

// f16 scale of the scales and of the minima, 12 bytes of those, 128 bytes of nibbles.
struct Q4_KWeights {
  static constexpr int64_t block = 256;
  MODELC_INLINE int64_t bytes(int64_t n) { return n / 256 * 144; }
  MODELC_INLINE void group(const std::byte* row, int64_t g, F (&out)[group_vectors]) {
    const std::byte* b = row + g / 8 * 144;
    const int64_t j = g % 8;
    const KScale k = k_scale(b + 4, j, half_at(b), half_at(b + 2));
    I v[group_vectors];
    k_nibbles(b + 16, j, v);
    for (int64_t i = 0; i < group_vectors; ++i) out[i] = splat(k.scale) * to_floats(v[i]) - splat(k.minimum);
  }
};
// As Q4_K, with 32 bytes of fifth bits before the nibbles: bit j of byte i is that of element i of group j.
struct Q5_KWeights {
  static constexpr int64_t block = 256;
  MODELC_INLINE int64_t bytes(int64_t n) { return n / 256 * 176; }
  MODELC_INLINE void group(const std::byte* row, int64_t g, F (&out)[group_vectors]) {
    const std::byte* b = row + g / 8 * 176;
    const int64_t j = g % 8;
    const KScale k = k_scale(b + 4, j, half_at(b), half_at(b + 2));
    I v[group_vectors];
    k_nibbles(b + 48, j, v);
    for (int64_t i = 0; i < group_vectors; ++i) {
      const I bit = and_int(shift_right_by(load_u8(b + 16 + i * lanes), static_cast<int>(j)), splat_int(1));
      out[i] = splat(k.scale) * to_floats(or_int(v[i], shift_left<4>(bit))) - splat(k.minimum);
    }
  }
};
// 128 bytes of low nibbles, 64 of high pairs of bits, 16 signed scales, f16 scale of those: scale · (n - 32). Each half of
// the block has four groups: group r's nibbles are the low (r < 2) or high ones of bytes 32 (r % 2) on, its pairs at bit 2 r.
struct Q6_KWeights {
  static constexpr int64_t block = 256;
  MODELC_INLINE int64_t bytes(int64_t n) { return n / 256 * 210; }
  MODELC_INLINE void group(const std::byte* row, int64_t g, F (&out)[group_vectors]) {
    const std::byte* b = row + g / 8 * 210;
    const int64_t half = g / 4 % 2, r = g % 4;
    const float d = half_at(b + 208);
    const std::byte* low = b + half * 64 + r % 2 * 32;
    const std::byte* high = b + 128 + half * 32;
    for (int64_t i = 0; i < group_vectors; ++i) {
      const auto scale = static_cast<std::int8_t>(byte_at(b + 192 + half * 8 + r * 2 + i / half_vectors));
      const I nibble = load_u8(low + i * lanes);
      const I four = r < 2 ? and_int(nibble, splat_int(15)) : shift_right<4>(nibble);
      const I two = and_int(shift_right_by(load_u8(high + i * lanes), static_cast<int>(2 * r)), splat_int(3));
      out[i] = splat(d * static_cast<float>(scale)) * to_floats(sub_int(or_int(four, shift_left<4>(two)), splat_int(32)));
    }
  }
};

// f(W{}) for the struct of an encoding.
template <class Function> MODELC_INLINE void with_encoding(Stored encoding, Function f) {
  switch (encoding) {
    case Stored::f32: return f(F32Weights{});
    case Stored::f16: return f(F16Weights{});
    case Stored::bf16: return f(BF16Weights{});
    case Stored::q4_0: return f(Q4_0Weights{});
    case Stored::q4_1: return f(Q4_1Weights{});
    case Stored::q5_0: return f(Q5_0Weights{});
    case Stored::q5_1: return f(Q5_1Weights{});
    case Stored::q8_0: return f(Q8_0Weights{});
    case Stored::q4_k: return f(Q4_KWeights{});
    case Stored::q5_k: return f(Q5_KWeights{});
    case Stored::q6_k: return f(Q6_KWeights{});
  }
}

}  // namespace modelc::cpu::MODELC_ISA

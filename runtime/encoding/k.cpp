// Blocks of 256 elements whose parts have scales of their own, in units of the block's: d, and m for minima, are f16.
//
//   Q2_K    84 bytes:  0 … 15 scales s (low nibble) and minima n (high) of 16 elements each · 16 … 79 2-bit values q ·
//                      80 d · 82 m                                      d · s · q - m · n
//   Q3_K   110 bytes:  0 … 31 third bits · 32 … 95 2-bit values · 96 … 107 scales s of 6 bits, of 16 elements each ·
//                      108 d                                            d · (s - 32) · (q - 4)
//   Q4_K   144 bytes:  0 d · 2 m · 4 … 15 scales s and minima n of 6 bits, of 32 elements each · 16 … 143 nibbles q
//                                                                       d · s · q - m · n
//   Q5_K   176 bytes:  0 d · 2 m · 4 … 15 as in Q4_K · 16 … 47 fifth bits · 48 … 175 nibbles
//                                                                       d · s · q - m · n
//   Q6_K   210 bytes:  0 … 127 nibbles · 128 … 191 fifth and sixth bits · 192 … 207 signed scales s of 16 elements
//                      each · 208 d                                     d · s · (q - 32)
//   Q8_K   292 bytes:  0 d as f32 · 4 … 259 signed bytes q · 260 … 291 sums of 16 q each, i16      d · q
//
// Values of less than a byte lie in planes: with 2 bits, 32 bytes hold elements 0 … 31 in their lowest bits, 32 … 63
// in the next, and so on, 128 elements in all; with 4 bits, 32 bytes hold 64 elements (Q6_K: 64 bytes hold 128); single
// bits, 32 bytes hold 256.
//
// Q3_K's scale j: low 4 bits in the low (j < 8) or high nibble of byte j % 8, high 2 bits in byte 8 + j % 4 at 2 · (j /
// 4). The 6-bit pairs of Q4_K: j < 4: s in the low 6 bits of byte j, n in those of byte 4 + j; j ≥ 4: low 4 bits of s
// and n in the nibbles of byte 4 + j, high 2 bits in the upper 2 of bytes j - 4 (s) and j (n).
#include <bit>

#include "runtime/encoding/blocks.h"
#include "runtime/encoding/convert.h"
#include "runtime/encoding/k_scales.h"

namespace modelc::blocks {
namespace {

float half(const Byte* p) { return f32_from_f16(static_cast<std::uint16_t>(u16(p))); }

// Element i of a plane of `bits` bits: `run` bytes hold run · 8 / bits elements.
unsigned plane(const Byte* p, int i, int bits, int run) {
  const int per = run * 8 / bits;
  const int inside = i % per;
  return u8(p + i / per * run + inside % run) >> bits * (inside / run) & ((1u << bits) - 1);
}

}  // namespace

void q2_k(const Byte* b, float* to) {
  const float d = half(b + 80), m = half(b + 82);
  for (int part = 0; part < 16; ++part) {
    const float scale = d * static_cast<float>(u8(b + part) & 15u), minimum = m * static_cast<float>(u8(b + part) >> 4);
    for (int i = 16 * part; i < 16 * part + 16; ++i) to[i] = scale * static_cast<float>(plane(b + 16, i, 2, 32)) - minimum;
  }
}

void q3_k(const Byte* b, float* to) {
  const float d = half(b + 108);
  for (int part = 0; part < 16; ++part) {
    const float scale = d * static_cast<float>(q3_k_scale(b + 96, part));
    for (int i = 16 * part; i < 16 * part + 16; ++i) {
      const int q = static_cast<int>(plane(b + 32, i, 2, 32) | plane(b, i, 1, 32) << 2) - 4;
      to[i] = scale * static_cast<float>(q);
    }
  }
}

void q4_k(const Byte* b, float* to) {
  const float d = half(b), m = half(b + 2);
  for (int part = 0; part < 8; ++part) {
    const ScaleAndMinimum pair = q4_k_scale(b + 4, part);
    const float scale = d * static_cast<float>(pair.scale), minimum = m * static_cast<float>(pair.minimum);
    for (int i = 32 * part; i < 32 * part + 32; ++i) to[i] = scale * static_cast<float>(plane(b + 16, i, 4, 32)) - minimum;
  }
}

void q5_k(const Byte* b, float* to) {
  const float d = half(b), m = half(b + 2);
  for (int part = 0; part < 8; ++part) {
    const ScaleAndMinimum pair = q4_k_scale(b + 4, part);
    const float scale = d * static_cast<float>(pair.scale), minimum = m * static_cast<float>(pair.minimum);
    for (int i = 32 * part; i < 32 * part + 32; ++i)
      to[i] = scale * static_cast<float>(plane(b + 48, i, 4, 32) | plane(b + 16, i, 1, 32) << 4) - minimum;
  }
}

void q6_k(const Byte* b, float* to) {
  const float d = half(b + 208);
  for (int part = 0; part < 16; ++part) {
    const float scale = d * static_cast<float>(i8(b + 192 + part));
    for (int i = 16 * part; i < 16 * part + 16; ++i) {
      const int q = static_cast<int>(plane(b, i, 4, 64) | plane(b + 128, i, 2, 32) << 4) - 32;
      to[i] = scale * static_cast<float>(q);
    }
  }
}

void q8_k(const Byte* b, float* to) {
  const float d = std::bit_cast<float>(u32(b));
  for (int i = 0; i < 256; ++i) to[i] = d * static_cast<float>(i8(b + 4 + i));
}

}  // namespace modelc::blocks

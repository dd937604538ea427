// Blocks of 32 elements with one scale d, an f16 at their beginning; m is an f16, too.
//
//   Q4_0   18 bytes:  0 d · 2 … 17 nibbles                           d · (q - 8)
//   Q4_1   20 bytes:  0 d · 2 m · 4 … 19 nibbles                     d · q + m
//   Q5_0   22 bytes:  0 d · 2 … 5 high bits · 6 … 21 nibbles         d · (q - 16)
//   Q5_1   24 bytes:  0 d · 2 m · 4 … 7 high bits · 8 … 23 nibbles   d · q + m
//   Q8_0   34 bytes:  0 d · 2 … 33 signed bytes                      d · q
//   Q8_1   36 bytes:  0 d · 2 d times the sum of q · 4 … 35 signed bytes   d · q
//
// The low nibbles are elements 0 … 15, the high ones 16 … 31; element i has bit i of the high bits, little-endian.
#include "runtime/encoding/blocks.h"
#include "runtime/encoding/convert.h"

namespace modelc::blocks {
namespace {

float half(const Byte* p) { return f32_from_f16(static_cast<std::uint16_t>(u16(p))); }

unsigned nibble(const Byte* p, int i) { return i < 16 ? u8(p + i) & 15u : u8(p + i - 16) >> 4; }

}  // namespace

void q4_0(const Byte* b, float* to) {
  const float d = half(b);
  for (int i = 0; i < 32; ++i) to[i] = d * static_cast<float>(static_cast<int>(nibble(b + 2, i)) - 8);
}
void q4_1(const Byte* b, float* to) {
  const float d = half(b), m = half(b + 2);
  for (int i = 0; i < 32; ++i) to[i] = d * static_cast<float>(nibble(b + 4, i)) + m;
}
void q5_0(const Byte* b, float* to) {
  const float d = half(b);
  const std::uint32_t high = u32(b + 2);
  for (int i = 0; i < 32; ++i) to[i] = d * static_cast<float>(static_cast<int>(nibble(b + 6, i) | (high >> i & 1u) << 4) - 16);
}
void q5_1(const Byte* b, float* to) {
  const float d = half(b), m = half(b + 2);
  const std::uint32_t high = u32(b + 4);
  for (int i = 0; i < 32; ++i) to[i] = d * static_cast<float>(nibble(b + 8, i) | (high >> i & 1u) << 4) + m;
}
void q8_0(const Byte* b, float* to) {
  const float d = half(b);
  for (int i = 0; i < 32; ++i) to[i] = d * static_cast<float>(i8(b + 2 + i));
}
void q8_1(const Byte* b, float* to) {
  const float d = half(b);
  for (int i = 0; i < 32; ++i) to[i] = d * static_cast<float>(i8(b + 4 + i));
}

}  // namespace modelc::blocks

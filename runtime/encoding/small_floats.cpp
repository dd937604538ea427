// Floating-point numbers of a byte and less. s sign, e exponent, m fraction, from the highest bit:
//
//   F8_E4M3   seeeemmm   bias 7, no infinity, all ones is NaN
//   F8_E5M2   seeeeemm   bias 15, the upper byte of an f16
//   F8_E8M0   eeeeeeee   2^(e - 127), 255 is NaN; no sign, no zero: a scale
//   F6_E2M3   seemmm     bias 1, no infinity, no NaN
//   F6_E3M2   seeemm     bias 3, no infinity, no NaN
//   F4_E2M1   seem       bias 1, no infinity, no NaN: 0 0.5 1 1.5 2 3 4 6
//
// Several elements to a byte, or four to three bytes, follow each other from the lowest bit.
#include <bit>
#include <limits>

#include "runtime/encoding/blocks.h"
#include "runtime/encoding/convert.h"

namespace modelc::blocks {
namespace {

// A number without infinity and NaN, of `exponent_bits` and `fraction_bits`; its value in f32 is exact.
float small_float(unsigned bits, int exponent_bits, int fraction_bits, int bias) {
  const unsigned fraction = bits & ((1u << fraction_bits) - 1);
  const unsigned exponent = bits >> fraction_bits & ((1u << exponent_bits) - 1);
  const bool negative = bits >> (exponent_bits + fraction_bits) & 1u;
  const float significand = static_cast<float>(exponent ? fraction | 1u << fraction_bits : fraction);
  const int power = static_cast<int>(exponent ? exponent : 1u) - bias - fraction_bits;
  const float value = significand * std::bit_cast<float>(static_cast<std::uint32_t>(127 + power) << 23);
  return negative ? -value : value;
}

}  // namespace

void f8_e4m3(const Byte* b, float* to) {
  const unsigned bits = u8(b);
  *to = (bits & 127u) == 127u ? std::bit_cast<float>(0x7fc00000u | (bits & 128u) << 24) : small_float(bits, 4, 3, 7);
}
void f8_e5m2(const Byte* b, float* to) { *to = f32_from_f16(static_cast<std::uint16_t>(u8(b) << 8)); }
void f8_e8m0(const Byte* b, float* to) {
  const std::uint32_t e = u8(b);
  // 2^-127 is subnormal in f32.
  *to = std::bit_cast<float>(e == 255 ? 0x7fc00000u : e == 0 ? 0x00400000u : e << 23);
}
void f4_e2m1(const Byte* b, float* to) {
  to[0] = small_float(u8(b) & 15u, 2, 1, 1);
  to[1] = small_float(u8(b) >> 4, 2, 1, 1);
}
void f6_e2m3(const Byte* b, float* to) {
  const unsigned bits = u16(b) | u8(b + 2) << 16;
  for (int i = 0; i < 4; ++i) to[i] = small_float(bits >> 6 * i & 63u, 2, 3, 1);
}
void f6_e3m2(const Byte* b, float* to) {
  const unsigned bits = u16(b) | u8(b + 2) << 16;
  for (int i = 0; i < 4; ++i) to[i] = small_float(bits >> 6 * i & 63u, 3, 2, 3);
}

}  // namespace modelc::blocks

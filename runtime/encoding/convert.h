// Numbers between the storage types and f32, bit by bit, from little-endian bytes at any address.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/abi/dtype.h"

namespace modelc {

// Exact, NaN payload and sign kept.
constexpr float f32_from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
constexpr float f32_from_f16(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = (bits >> 10) & 31u;
  const std::uint32_t fraction = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  // Subnormal: fraction · 2^-24, normal in f32.
  if (fraction == 0) return std::bit_cast<float>(sign);
  const int shift = std::countl_zero(fraction) - 21;  // moves the first bit to the implicit one (bit 10)
  return std::bit_cast<float>(sign | static_cast<std::uint32_t>(113 - shift) << 23 | ((fraction << shift) & 0x3ffu) << 13);
}
// Rounded to nearest, ties to even; what is too large becomes infinity, NaN stays NaN.
constexpr std::uint16_t bf16_from_f32(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
std::uint16_t f16_from_f32(float value);

// One value at `p`, which needs no alignment.
std::uint16_t load_u16(const std::byte* p);
std::uint32_t load_u32(const std::byte* p);
std::uint64_t load_u64(const std::byte* p);

// `count` elements of f64, f32, f16 or bf16 at `from` into f32. False for any other type, and nothing is written.
bool convert_to_f32(DType from_type, const std::byte* from, std::span<float> to);

}  // namespace modelc

// Rounding to the types of a `policy`, for map kernels and steps (Step::round).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace modelc::math {

// The nearest number of a narrower type, ties to even; beyond its largest, infinity. NaN stays NaN. Without branches: integer
// arithmetic on the bits, of which all beyond the type's are 0 then.
inline float bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const float rounded = std::bit_cast<float>((bits + 0x7FFFU + ((bits >> 16) & 1U)) & 0xFFFF0000U);
  return x == x ? rounded : x;
}
inline float f16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const float normal = std::bit_cast<float>((bits + 0xFFFU + ((bits >> 13) & 1U)) & 0xFFFFE000U);
  const float a = x < 0 ? -x : x;
  const float small = (a + 0.5F) - 0.5F;                   // below 2^-14 the distance is 2^-24, as between 0.5 and 1
  const float magnitude = a < 6.103515625e-5F ? small : (normal < 0 ? -normal : normal);
  const float bounded = magnitude > 65504.0F ? INFINITY : magnitude;
  return x == x ? std::copysign(bounded, x) : x;
}

}  // namespace modelc::math

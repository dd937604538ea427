// The elementwise functions of the language, as map kernels call them: on f32, in f32. Those of exp's family have no
// branches and no calls, so that the host compiler turns the loop around them into vector code; the others are libm's.
//
// Errors against the exact value, measured over all magnitudes: exp, sigmoid and silu below 2 units in the last place,
// tanh below 4, gelu_tanh below 1e-6 · max(1, |x|).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace modelc::math {

// e^x. Above 88.7 it is infinity; below -87.3 the result is 0 (no subnormals). NaN stays NaN.
inline float exp(float x) {
  // x = n ln 2 + r, |r| <= ln 2 / 2; ln 2 in two parts, so that n · the first is exact. e^r: Taylor's polynomial, whose
  // next term is 3e-9 of it. 2^n is built from its bits in two factors, as n reaches 128.
  float c = x > 89.0F ? 89.0F : x;
  c = c < -104.0F ? -104.0F : c;
  constexpr float to_integer = 12582912.0F;                // 1.5 · 2^23: adding it rounds to a whole number
  const float shifted = c * 1.44269504F + to_integer;
  const float n = shifted - to_integer;
  const float r = (c - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.0F / 5040;
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const std::int32_t i = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(to_integer);
  const std::int32_t half = i >> 1;
  const float a = std::bit_cast<float>((half + 127) << 23);
  const float b = std::bit_cast<float>((i - half + 127) << 23);
  const float y = p * a * b;
  const float bounded = x > 88.7228394F ? INFINITY : (x < -87.3365402F ? 0.0F : y);
  return x == x ? bounded : x;
}

inline float sigmoid(float x) { return 1.0F / (1.0F + exp(-x)); }
inline float silu(float x) { return x / (1.0F + exp(-x)); }
inline float quick_gelu(float x) { return x / (1.0F + exp(-1.702F * x)); }
// Near 0 by its series (the quotient would lose the low bits), elsewhere by exp.
inline float tanh(float x) {
  const float a = x < 0 ? -x : x;
  const float e = exp(-2.0F * a);
  const float far = (1.0F - e) / (1.0F + e);
  const float s = x * x;
  // tanh x = x (1 - x²/3 + 2x⁴/15 - 17x⁶/315 + 62x⁸/2835 - …); at 0.3 the next term is 4e-9 of the sum.
  float p = -1382.0F / 155925;
  p = p * s + 62.0F / 2835;
  p = p * s - 17.0F / 315;
  p = p * s + 2.0F / 15;
  p = p * s - 1.0F / 3;
  const float near = x + x * (s * p);
  return a < 0.3F ? near : (x < 0 ? -far : far);
}
inline float gelu_tanh(float x) { return 0.5F * x * (1.0F + tanh(0.797884561F * (x + 0.044715F * x * x * x))); }

inline float erf(float x) { return std::erf(x); }
inline float gelu(float x) { return 0.5F * x * (1.0F + std::erf(x * 0.707106781F)); }
inline float relu(float x) { return x > 0 ? x : (x == x ? 0.0F : x); }
// log(1 + e^x); above 20 it is x, as PyTorch has it.
inline float softplus(float x) { return x > 20.0F ? x : std::log1p(std::exp(x)); }
inline float exp2(float x) { return std::exp2(x); }
inline float expm1(float x) { return std::expm1(x); }
inline float log(float x) { return std::log(x); }
inline float sqrt(float x) { return std::sqrt(x); }
inline float rsqrt(float x) { return 1.0F / std::sqrt(x); }
inline float cos(float x) { return std::cos(x); }
inline float sin(float x) { return std::sin(x); }
inline float abs(float x) { return x < 0 ? -x : (x == 0 ? 0.0F : x); }
inline float floor(float x) { return std::floor(x); }
inline float ceil(float x) { return std::ceil(x); }
inline float pow(float x, float y) { return std::pow(x, y); }
// NaN if one is NaN, as PyTorch's minimum and maximum.
inline float min(float a, float b) { return a != a ? a : (b < a || b != b ? b : a); }
inline float max(float a, float b) { return a != a ? a : (b > a || b != b ? b : a); }
inline float clamp(float x, float lo, float hi) { return min(max(x, lo), hi); }
// The remainder with the sign of b, as Python's %.
inline float mod(float a, float b) {
  const float r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
// bools are 0 and 1 inside a map kernel.
inline float where(float c, float a, float b) { return c != 0 ? a : b; }
// Of whole numbers, exact.
inline std::int32_t abs(std::int32_t x) { return x < 0 ? -x : x; }
inline std::int32_t min(std::int32_t a, std::int32_t b) { return b < a ? b : a; }
inline std::int32_t max(std::int32_t a, std::int32_t b) { return b > a ? b : a; }
inline std::int32_t where(float c, std::int32_t a, std::int32_t b) { return c != 0 ? a : b; }

}  // namespace modelc::math

// Quantisers whose scale is that of the largest element: blocks of 32 (layouts: q.cpp), the ternary ones (ternary.cpp)
// and MXFP4 (fp4.cpp). Every operation is in f32 and in the order of the package `gguf`, so that the bytes are equal.
#include <algorithm>
#include <cmath>

#include "runtime/encoding/convert.h"
#include "runtime/encoding/encoders.h"

namespace modelc::blocks {
namespace {

constexpr std::int8_t doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// The element that is farthest from zero, the first of equals.
float farthest(const float* x, int n) {
  float at = x[0];
  for (int i = 1; i < n; ++i)
    if (std::abs(x[i]) > std::abs(at)) at = x[i];
  return at;
}

float inverse(float d) { return d == 0 ? 0.0f : 1.0f / d; }

// Rounded towards zero and cut to 0 … top. The inverse of a subnormal scale may be infinite: such elements become 0.
unsigned level(float v, unsigned top) {
  if (!(v > -1e9f && v < 1e9f)) return 0;
  return static_cast<unsigned>(std::clamp(static_cast<int>(v), 0, static_cast<int>(top)));
}

// Halves away from zero.
int nearest_int(float v) {
  if (!(v > -1e9f && v < 1e9f)) return 0;
  return static_cast<int>(std::round(v));
}

void put_nibbles(const unsigned* q, std::byte* b) {
  for (int i = 0; i < 16; ++i) b[i] = static_cast<std::byte>((q[i] & 15u) | (q[16 + i] & 15u) << 4);
}
void put_high_bits(const unsigned* q, std::byte* b) {
  std::uint32_t high = 0;
  for (int i = 0; i < 32; ++i) high |= (q[i] >> 4 & 1u) << i;
  for (int i = 0; i < 4; ++i) b[i] = static_cast<std::byte>(high >> 8 * i);
}

// Around zero: the farthest element is `-half` steps from it.
float around_zero(const float* x, int half, unsigned* q) {
  const float d = farthest(x, 32) / static_cast<float>(-half), id = inverse(d);
  for (int i = 0; i < 32; ++i) q[i] = level(x[i] * id + (static_cast<float>(half) + 0.5f), static_cast<unsigned>(2 * half - 1));
  return d;
}

struct Range {
  float d, m;
};
Range between(const float* x, unsigned top, unsigned* q) {
  const float m = *std::min_element(x, x + 32);
  const float d = (*std::max_element(x, x + 32) - m) / static_cast<float>(top), id = inverse(d);
  for (int i = 0; i < 32; ++i) q[i] = level((x[i] - m) * id + 0.5f, top);
  return {d, m};
}

// -1, 0 and 1 as 0, 1 and 2.
float ternary(const float* x, unsigned* q) {
  const float d = std::abs(farthest(x, 256)), id = inverse(d);
  for (int i = 0; i < 256; ++i) q[i] = static_cast<unsigned>(nearest_int(x[i] * id) + 1);
  return d;
}

// Five elements as digits to base 3, the first the highest, as a fraction in units of 1/256, rounded up.
void put_digits(const unsigned* q, int run, int count, std::byte* b) {
  constexpr unsigned power[] = {81, 27, 9, 3, 1};
  for (int i = 0; i < run; ++i) {
    unsigned sum = 0;
    for (int k = 0; k < count; ++k) sum += q[run * k + i] * power[k];
    b[i] = static_cast<std::byte>((sum * 256 + 242) / 243);
  }
}

}  // namespace

void to_q4_0(const float* x, std::byte* b) {
  unsigned q[32];
  put_u16(b, f16_from_f32(around_zero(x, 8, q)));
  put_nibbles(q, b + 2);
}
void to_q5_0(const float* x, std::byte* b) {
  unsigned q[32];
  put_u16(b, f16_from_f32(around_zero(x, 16, q)));
  put_high_bits(q, b + 2);
  put_nibbles(q, b + 6);
}
void to_q4_1(const float* x, std::byte* b) {
  unsigned q[32];
  const Range r = between(x, 15, q);
  put_u16(b, f16_from_f32(r.d));
  put_u16(b + 2, f16_from_f32(r.m));
  put_nibbles(q, b + 4);
}
void to_q5_1(const float* x, std::byte* b) {
  unsigned q[32];
  const Range r = between(x, 31, q);
  put_u16(b, f16_from_f32(r.d));
  put_u16(b + 2, f16_from_f32(r.m));
  put_high_bits(q, b + 4);
  put_nibbles(q, b + 8);
}
void to_q8_0(const float* x, std::byte* b) {
  const float d = std::abs(farthest(x, 32)) / 127.0f, id = inverse(d);
  put_u16(b, f16_from_f32(d));
  for (int i = 0; i < 32; ++i) b[2 + i] = static_cast<std::byte>(nearest_int(x[i] * id));
}

void to_tq1_0(const float* x, std::byte* b) {
  unsigned q[256];
  const float d = ternary(x, q);
  put_digits(q, 32, 5, b);
  put_digits(q + 160, 16, 5, b + 32);
  put_digits(q + 240, 4, 4, b + 48);
  put_u16(b + 52, f16_from_f32(d));
}
void to_tq2_0(const float* x, std::byte* b) {
  unsigned q[256];
  const float d = ternary(x, q);
  for (int i = 0; i < 64; ++i) {
    const unsigned* p = q + i / 32 * 128 + i % 32;
    b[i] = static_cast<std::byte>(p[0] | p[32] << 2 | p[64] << 4 | p[96] << 6);
  }
  put_u16(b + 64, f16_from_f32(d));
}

void to_mxfp4(const float* x, std::byte* b) {
  const float largest = std::abs(farthest(x, 32));
  // The logarithm is rounded to f32 before it is cut, which makes an element just below a power of two that power.
  // Blocks below 2^-125 have no exponent of their own and take the least (the package lets the number wrap).
  int e = 0;
  if (largest > 0) e = static_cast<int>(std::floor(static_cast<float>(std::log2(double{largest})))) - 2 + 127;
  e = std::clamp(e, 0, 254);
  const float half = std::ldexp(1.0f, e - 128);
  unsigned q[32];
  for (int i = 0; i < 32; ++i) {
    float least = std::abs(half * 0.0f - x[i]);
    q[i] = 0;
    for (unsigned k = 1; k < 16; ++k)
      if (const float error = std::abs(half * static_cast<float>(doubled[k]) - x[i]); error < least) {
        least = error;
        q[i] = k;
      }
  }
  b[0] = static_cast<std::byte>(e);
  put_nibbles(q, b + 1);
}

}  // namespace modelc::blocks

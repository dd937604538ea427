// Numbers of 4 bits (F4_E2M1, small_floats.cpp) with a scale for each few of them.
//
//   MXFP4    32 elements, 17 bytes:  0 scale e, 2^(e - 127) · 1 … 16 nibbles
//   NVFP4    64 elements, 36 bytes:  0 … 3 scales of 16 elements each, F8_E4M3 whose sign is not read and whose all
//            ones is 0 · 4 … 35 nibbles, 8 bytes for each scale
//
// Of each run of nibbles the low ones are the first half of its elements, the high ones the second. Products are of
// twice the element and half the scale, which keeps both whole; so the scale 2^128 of e = 255 is finite here.
#include <bit>

#include "runtime/encoding/blocks.h"

namespace modelc::blocks {
namespace {

constexpr std::int8_t doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace

void mxfp4(const Byte* b, float* to) {
  const std::uint32_t e = u8(b);
  const float half = std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1) << 23);
  for (int i = 0; i < 16; ++i) {
    to[i] = half * static_cast<float>(doubled[u8(b + 1 + i) & 15u]);
    to[16 + i] = half * static_cast<float>(doubled[u8(b + 1 + i) >> 4]);
  }
}

void nvfp4(const Byte* b, float* to) {
  for (int run = 0; run < 4; ++run) {
    Byte magnitude = b[run] & Byte{127};
    // All ones is the NaN of F8_E4M3 when the sign is clear; with it set, readers take the number that it would be.
    float scale = 0;
    if (b[run] == Byte{255}) scale = 480.0f;
    else if (magnitude != Byte{127}) f8_e4m3(&magnitude, &scale);
    const float half = scale * 0.5f;
    const Byte* q = b + 4 + 8 * run;
    for (int i = 0; i < 8; ++i) {
      to[16 * run + i] = half * static_cast<float>(doubled[u8(q + i) & 15u]);
      to[16 * run + 8 + i] = half * static_cast<float>(doubled[u8(q + i) >> 4]);
    }
  }
}

}  // namespace modelc::blocks

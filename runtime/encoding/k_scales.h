// The 6-bit scales of the K types, packed in 12 bytes; the layouts stand in k.cpp.
#pragma once

#include <cstddef>

#include "runtime/encoding/blocks.h"

namespace modelc::blocks {

// Q3_K: scale j of 16, from -32 to 31.
inline int q3_k_scale(const Byte* p, int j) {
  const unsigned low = j < 8 ? u8(p + j) & 15u : u8(p + j - 8) >> 4;
  const unsigned high = u8(p + 8 + j % 4) >> 2 * (j / 4) & 3u;
  return static_cast<int>(low | high << 4) - 32;
}

struct ScaleAndMinimum {
  unsigned scale, minimum;
};
// Q4_K and Q5_K: pair j of 8.
inline ScaleAndMinimum q4_k_scale(const Byte* p, int j) {
  if (j < 4) return {u8(p + j) & 63u, u8(p + 4 + j) & 63u};
  const unsigned low = u8(p + 4 + j);
  return {(low & 15u) | (u8(p + j - 4) >> 6) << 4, low >> 4 | (u8(p + j) >> 6) << 4};
}

}  // namespace modelc::blocks

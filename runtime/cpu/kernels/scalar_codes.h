// Quantised weights as whole numbers with sign, a group of 32 at a time: what codes.h has for two rows in vectors. The
// layouts are those of encodings.h.
#pragma once

#include "runtime/cpu/kernels/encodings.h"

namespace modelc::cpu::MODELC_ISA {

struct GroupCodes {
  float scale = 0, minimum = 0;
  std::int32_t halves[2] = {1, 1};                         // scales of the first 16 and the others, below `scale`
  bool halved = false;
};

MODELC_INLINE GroupCodes group_codes(Stored encoding, const std::byte* row, int64_t g, std::int8_t* out) {
  GroupCodes c;
  const auto put = [&](int64_t i, std::uint32_t code, int bias) { out[i] = static_cast<std::int8_t>(static_cast<int>(code) - bias); };
  // 16 bytes of nibbles, the low ones first, with a fifth bit each.
  const auto small = [&](const std::byte* p, std::uint32_t fifth, int bias) {
    for (int64_t i = 0; i < 16; ++i) {
      put(i, (byte_at(p + i) & 15u) | (fifth >> i & 1u) << 4, bias);
      put(16 + i, byte_at(p + i) >> 4 | (fifth >> (16 + i) & 1u) << 4, bias);
    }
  };
  const int64_t j = g % 8;
  switch (encoding) {
    case Stored::q4_0: {
      const std::byte* b = row + g * 18;
      c.scale = half_at(b);
      small(b + 2, 0, 8);
      break;
    }
    case Stored::q4_1: {
      const std::byte* b = row + g * 20;
      c.scale = half_at(b);
      c.minimum = half_at(b + 2);
      small(b + 4, 0, 0);
      break;
    }
    case Stored::q5_0: {
      const std::byte* b = row + g * 22;
      c.scale = half_at(b);
      small(b + 6, word_at(b + 2), 16);
      break;
    }
    case Stored::q5_1: {
      const std::byte* b = row + g * 24;
      c.scale = half_at(b);
      c.minimum = half_at(b + 2);
      small(b + 8, word_at(b + 4), 0);
      break;
    }
    case Stored::q8_0: {
      const std::byte* b = row + g * 34;
      c.scale = half_at(b);
      copy_bytes(out, b + 2, 32);
      break;
    }
    case Stored::q4_k:
    case Stored::q5_k: {
      const bool five = encoding == Stored::q5_k;
      const std::byte* b = row + g / 8 * (five ? 176 : 144);
      const KScale k = k_scale(b + 4, j, half_at(b), half_at(b + 2));
      c.scale = k.scale;
      c.minimum = -k.minimum;
      const std::byte* nibble = b + (five ? 48 : 16) + j / 2 * 32;
      for (int64_t i = 0; i < 32; ++i)
        put(i, (byte_at(nibble + i) >> (j % 2 * 4) & 15u) | (five ? (byte_at(b + 16 + i) >> j & 1u) << 4 : 0u), 0);
      break;
    }
    case Stored::q6_k: {
      const std::byte* b = row + g / 8 * 210;
      const int64_t half = j / 4, r = j % 4;
      c.scale = half_at(b + 208);
      c.halved = true;
      for (int64_t i = 0; i < 2; ++i) c.halves[i] = static_cast<std::int8_t>(byte_at(b + 192 + half * 8 + r * 2 + i));
      for (int64_t i = 0; i < 32; ++i)
        put(i, (byte_at(b + half * 64 + r % 2 * 32 + i) >> (r / 2 * 4) & 15u) | (byte_at(b + 128 + half * 32 + i) >> (2 * r) & 3u) << 4,
            32);
      break;
    }
    default: break;
  }
  return c;
}

}  // namespace modelc::cpu::MODELC_ISA

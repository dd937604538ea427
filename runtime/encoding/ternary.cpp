// Blocks of 256 elements of -1, 0 and 1 times a scale d, an f16 at their end.
//
//   TQ1_0   54 bytes:  0 … 31, five elements to a byte, of elements 0 … 159 those that are equal modulo 32 · 32 … 47,
//                      five to a byte, of elements 160 … 239 modulo 16 · 48 … 51, four to a byte, of elements 240 …
//                      255 modulo 4 · 52 d
//   TQ2_0   66 bytes:  0 … 63, four elements to a byte, 2 bits each, in planes of 32 bytes as the K types · 64 d
//
// Of a TQ1_0 byte b, (b · 3^k mod 256) · 3 / 256, rounded down, is element k plus 1: b is the fraction that has the
// elements as its digits to base 3, in units of 1/256.
#include "runtime/encoding/blocks.h"
#include "runtime/encoding/convert.h"

namespace modelc::blocks {
namespace {

// `count` elements of each of the bytes at `p`, `run` bytes in all.
void digits(const Byte* p, int run, int count, float d, float* to) {
  unsigned power = 1;
  for (int k = 0; k < count; ++k, power *= 3)
    for (int i = 0; i < run; ++i) {
      const unsigned digit = (u8(p + i) * power & 255u) * 3 >> 8;
      to[run * k + i] = d * static_cast<float>(static_cast<int>(digit) - 1);
    }
}

}  // namespace

void tq1_0(const Byte* b, float* to) {
  const float d = f32_from_f16(static_cast<std::uint16_t>(u16(b + 52)));
  digits(b, 32, 5, d, to);
  digits(b + 32, 16, 5, d, to + 160);
  digits(b + 48, 4, 4, d, to + 240);
}

void tq2_0(const Byte* b, float* to) {
  const float d = f32_from_f16(static_cast<std::uint16_t>(u16(b + 64)));
  for (int i = 0; i < 256; ++i) {
    const unsigned q = u8(b + i / 128 * 32 + i % 32) >> 2 * (i / 32 % 4) & 3u;
    to[i] = d * static_cast<float>(static_cast<int>(q) - 1);
  }
}

}  // namespace modelc::blocks

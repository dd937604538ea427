// Blocks of 256 elements (IQ4_NL: 32) that index tables of directions (grids.h). d is an f16. Of 8 directions of 4, or
// 4 of 8, consists a run of 32 elements; s is the scale of a part of the block.
//
//   IQ1_S     50 bytes:  0 d · 2 … 33 low 8 bits of 32 indices · 34 … 49 one u16 for each run: high 3 bits of its 4
//                        indices, from bit 0 · bits 12 … 14 s · bit 15 sign of the shift
//                                                      d · (2 s + 1) · (g ± 1/8)
//   IQ1_M     56 bytes:  0 … 31 low 8 bits of indices · 32 … 47 for each index a nibble: high 3 bits, sign of the
//                        shift · 48 … 55 four u16 of 3-bit s, for 16 elements each, from bit 0; their upper 4 bits are
//                        d, the lowest first        d · (2 s + 1) · (g ± 1/8)
//   IQ2_XXS   66 bytes:  0 d · 2 … 65 two u32 for each run: 4 indices · four times 7 bits of signs, bits 28 … 31 s
//                                                      d · (1/2 + s) / 4 · ±g
//   IQ2_XS    74 bytes:  0 d · 2 … 65 32 u16: 9 bits index, 7 bits signs · 66 … 73 nibbles s, of 16 elements each
//   IQ2_S     82 bytes:  0 d · 2 … 33 low 8 bits of 32 indices · 34 … 65 their 8 signs · 66 … 73 their high 2 bits ·
//                        74 … 81 nibbles s, of 16 elements each         (both as IQ2_XXS)
//   IQ3_XXS   98 bytes:  0 d · 2 … 65 64 indices · 66 … 97 one u32 for each run: four times 7 bits of signs, bits 28 …
//                        31 s                          d · (1/2 + s) / 2 · ±g
//   IQ3_S    110 bytes:  0 d · 2 … 65 low 8 bits of 64 indices · 66 … 73 their ninth bits · 74 … 105 signs · 106 … 109
//                        nibbles s, of 32 elements each                 d · (2 s + 1) · ±g
//   IQ4_NL    18 bytes:  0 d · 2 … 17 nibbles, which index 16 values    d · v
//   IQ4_XS   136 bytes:  0 d · 2 u16, high 2 bits of s · 4 … 7 nibbles, low 4 bits of s, of 32 elements each · 8 … 135
//                        16 bytes of nibbles for each run               d · (s - 32) · v
//
// Sevens of signs have an eighth that makes the number of minuses even.
#include "runtime/encoding/blocks.h"
#include "runtime/encoding/convert.h"
#include "runtime/encoding/grids.h"

namespace modelc::blocks {
namespace {

float half(const Byte* p) { return f32_from_f16(static_cast<std::uint16_t>(u16(p))); }

unsigned nibble(const Byte* p, int i) { return u8(p + i / 2) >> 4 * (i % 2) & 15u; }

// Magnitudes times their signs times `scale`.
template <std::size_t n> void put(float scale, const std::array<std::int8_t, n>& g, unsigned signs, float* to) {
  for (std::size_t i = 0; i < n; ++i) {
    const float v = scale * static_cast<float>(g[i]);
    to[i] = signs >> i & 1u ? -v : v;
  }
}

constexpr float shift = 0.125f;

}  // namespace

void iq1_s(const Byte* b, float* to) {
  const IqGrids& grids = iq_grids();
  const float d = half(b);
  for (int run = 0; run < 8; ++run) {
    const unsigned h = u16(b + 34 + 2 * run);
    const float scale = d * static_cast<float>(2 * (h >> 12 & 7u) + 1), delta = h & 0x8000u ? -shift : shift;
    for (int k = 0; k < 4; ++k) {
      const auto& g = grids.iq1[u8(b + 2 + 4 * run + k) | (h >> 3 * k & 7u) << 8];
      for (std::size_t i = 0; i < 8; ++i) *to++ = scale * (static_cast<float>(g[i]) + delta);
    }
  }
}

void iq1_m(const Byte* b, float* to) {
  const IqGrids& grids = iq_grids();
  unsigned d_bits = 0;
  for (int i = 0; i < 4; ++i) d_bits |= (u16(b + 48 + 2 * i) >> 12) << 4 * i;
  const float d = f32_from_f16(static_cast<std::uint16_t>(d_bits));
  for (int k = 0; k < 32; ++k) {
    const int part = k / 2;
    const float scale = d * static_cast<float>(2 * (u16(b + 48 + 2 * (part / 4)) >> 3 * (part % 4) & 7u) + 1);
    const unsigned h = nibble(b + 32, k);
    const float delta = h & 8u ? -shift : shift;
    const auto& g = grids.iq1[u8(b + k) | (h & 7u) << 8];
    for (std::size_t i = 0; i < 8; ++i) *to++ = scale * (static_cast<float>(g[i]) + delta);
  }
}

void iq2_xxs(const Byte* b, float* to) {
  const IqGrids& grids = iq_grids();
  const float d = half(b);
  for (int run = 0; run < 8; ++run) {
    const Byte* p = b + 2 + 8 * run;
    const std::uint32_t bits = u32(p + 4);
    const float scale = d * (0.5f + static_cast<float>(bits >> 28)) * 0.25f;
    for (int k = 0; k < 4; ++k, to += 8) put(scale, grids.iq2_xxs[u8(p + k)], even_signs(bits >> 7 * k), to);
  }
}

void iq2_xs(const Byte* b, float* to) {
  const IqGrids& grids = iq_grids();
  const float d = half(b);
  for (int k = 0; k < 32; ++k, to += 8) {
    const float scale = d * (0.5f + static_cast<float>(nibble(b + 66, k / 2))) * 0.25f;
    const unsigned bits = u16(b + 2 + 2 * k);
    put(scale, grids.iq2_xs[bits & 511u], even_signs(bits >> 9), to);
  }
}

void iq2_s(const Byte* b, float* to) {
  const IqGrids& grids = iq_grids();
  const float d = half(b);
  for (int k = 0; k < 32; ++k, to += 8) {
    const float scale = d * (0.5f + static_cast<float>(nibble(b + 74, k / 2))) * 0.25f;
    const unsigned index = u8(b + 2 + k) | (u8(b + 66 + k / 4) >> 2 * (k % 4) & 3u) << 8;
    put(scale, grids.iq2_s[index], u8(b + 34 + k), to);
  }
}

void iq3_xxs(const Byte* b, float* to) {
  const IqGrids& grids = iq_grids();
  const float d = half(b);
  for (int run = 0; run < 8; ++run) {
    const std::uint32_t bits = u32(b + 66 + 4 * run);
    const float scale = d * (0.5f + static_cast<float>(bits >> 28)) * 0.5f;
    for (int k = 0; k < 8; ++k, to += 4)
      put(scale, grids.iq3_xxs[u8(b + 2 + 8 * run + k)], even_signs(bits >> 7 * (k / 2)) >> 4 * (k % 2), to);
  }
}

void iq3_s(const Byte* b, float* to) {
  const IqGrids& grids = iq_grids();
  const float d = half(b);
  for (int k = 0; k < 64; ++k, to += 4) {
    const float scale = d * static_cast<float>(1 + 2 * nibble(b + 106, k / 8));
    const unsigned index = u8(b + 2 + k) | (u8(b + 66 + k / 8) >> k % 8 & 1u) << 8;
    put(scale, grids.iq3_s[index], u8(b + 74 + k / 2) >> 4 * (k % 2), to);
  }
}

void iq4_nl(const Byte* b, float* to) {
  const float d = half(b);
  for (int i = 0; i < 16; ++i) {
    to[i] = d * static_cast<float>(iq4_values[u8(b + 2 + i) & 15u]);
    to[16 + i] = d * static_cast<float>(iq4_values[u8(b + 2 + i) >> 4]);
  }
}

void iq4_xs(const Byte* b, float* to) {
  const float d = half(b);
  for (int run = 0; run < 8; ++run, to += 32) {
    const unsigned s = nibble(b + 4, run) | (u16(b + 2) >> 2 * run & 3u) << 4;
    const float scale = d * static_cast<float>(static_cast<int>(s) - 32);
    for (int i = 0; i < 16; ++i) {
      to[i] = scale * static_cast<float>(iq4_values[u8(b + 8 + 16 * run + i) & 15u]);
      to[16 + i] = scale * static_cast<float>(iq4_values[u8(b + 8 + 16 * run + i) >> 4]);
    }
  }
}

}  // namespace modelc::blocks

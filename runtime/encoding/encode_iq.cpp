// Quantisers of IQ4_NL and IQ4_XS (layouts: iq.cpp): 16 levels that lie closer together near zero, the same for every block.
// What is minimised is the sum of squared errors of the values that come back, as in encode_k.cpp. The other IQ types need a
// record of activations to be worth their bits, and have no quantiser here.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "runtime/encoding/convert.h"
#include "runtime/encoding/encoders.h"
#include "runtime/encoding/grids.h"

namespace modelc::blocks {
namespace {

// The level nearest to v; of two as near the lower one.
int nearest_level(float v) {
  int i = 0;
  while (i < 15 && v > 0.5f * static_cast<float>(iq4_values[i] + iq4_values[i + 1])) ++i;
  return i;
}

double error_of(const float* x, float scale) {
  const float inverse = scale != 0 ? 1 / scale : 0;
  double sum = 0;
  for (int i = 0; i < 32; ++i) {
    const double d = x[i] - double{scale} * iq4_values[nearest_level(x[i] * inverse)];
    sum += d * d;
  }
  return sum;
}

// The scale of least error for 32 elements. Guesses put the farthest element at places around either end of the levels, which
// are not the same on both sides; each is improved by least squares for the levels that it gives.
float fit(const float* x) {
  float farthest = 0;
  for (int i = 0; i < 32; ++i)
    if (std::abs(x[i]) > std::abs(farthest)) farthest = x[i];
  if (farthest == 0) return 0;
  float best = farthest / static_cast<float>(iq4_values[0]);
  double least = error_of(x, best);
  for (const float end : {static_cast<float>(iq4_values[0]), static_cast<float>(iq4_values[15])})
    for (int guess = -6; guess <= 6; ++guess) {
      float scale = farthest / (end * (1 + 0.03f * static_cast<float>(guess)));
      for (int round = 0; round < 2; ++round) {
        double xq = 0, qq = 0;
        for (int i = 0; i < 32; ++i) {
          const double q = iq4_values[nearest_level(x[i] / scale)];
          xq += x[i] * q;
          qq += q * q;
        }
        if (qq > 0 && xq != 0) scale = static_cast<float>(xq / qq);
        if (const double e = error_of(x, scale); e < least) {
          least = e;
          best = scale;
        }
      }
    }
  return best;
}

void put_levels(const float* x, float scale, std::byte* b) {
  const float inverse = scale != 0 ? 1 / scale : 0;
  for (int i = 0; i < 16; ++i) b[i] = static_cast<std::byte>(nearest_level(x[i] * inverse) | nearest_level(x[16 + i] * inverse) << 4);
}

}  // namespace

void to_iq4_nl(const float* x, std::byte* b) {
  // Stored in 16 bits: of the fitted scale and its neighbours there the one of least error.
  const std::uint16_t fitted = f16_from_f32(fit(x));
  std::uint16_t best = fitted;
  double least = error_of(x, f32_from_f16(fitted));
  for (const int step : {-1, 1}) {
    const auto bits = static_cast<std::uint16_t>(fitted + step);
    const float scale = f32_from_f16(bits);
    if ((fitted & 0x7FFFu) == 0 || !std::isfinite(scale)) continue;
    if (const double e = error_of(x, scale); e < least) {
      least = e;
      best = bits;
    }
  }
  put_u16(b, best);
  put_levels(x, f32_from_f16(best), b + 2);
}

void to_iq4_xs(const float* x, std::byte* b) {
  float fits[8], farthest = 0;
  for (int run = 0; run < 8; ++run) {
    fits[run] = fit(x + 32 * run);
    if (std::abs(fits[run]) > std::abs(farthest)) farthest = fits[run];
  }
  // Whole numbers from -32 to 31 times d: the largest scale becomes -32.
  const std::uint16_t stored = f16_from_f32(farthest / -32.0f);
  const float d = f32_from_f16(stored);
  unsigned high = 0;
  std::byte* levels = b + 8;
  std::fill(b, levels, std::byte{0});
  for (int run = 0; run < 8; ++run) {
    const float* part = x + 32 * run;
    const int near = d != 0 ? static_cast<int>(std::lround(std::clamp(fits[run] / d, -32.0f, 31.0f))) : 0;
    int best = near;
    double least = error_of(part, d * static_cast<float>(near));
    for (int s = std::max(near - 2, -32); s <= std::min(near + 2, 31); ++s)
      if (const double e = error_of(part, d * static_cast<float>(s)); e < least) {
        least = e;
        best = s;
      }
    const auto bits = static_cast<unsigned>(best + 32);
    b[4 + run / 2] |= static_cast<std::byte>((bits & 15u) << 4 * (run % 2));
    high |= bits >> 4 << 2 * run;
    put_levels(part, d * static_cast<float>(best), levels + 16 * run);
  }
  put_u16(b, stored);
  put_u16(b + 2, static_cast<std::uint16_t>(high));
}

}  // namespace modelc::blocks

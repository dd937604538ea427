// Quantisers of the K types (layouts: k.cpp). What is minimised is the sum of squared errors of the values that come
// back. For each part of a block the best real scale (and minimum) is searched: a range of first guesses, each improved
// by least squares for the levels that it gives. The block's scale makes the largest of them the largest whole number;
// then each part's whole numbers are chosen among their neighbours by the error that they really have.
#include <algorithm>
#include <cmath>

#include "runtime/encoding/convert.h"
#include "runtime/encoding/encoders.h"

namespace modelc::blocks {
namespace {

float round_f16(float v) { return f32_from_f16(f16_from_f32(v)); }

int level(float v, int low, int high) {
  if (!(v > static_cast<float>(low))) return low;
  if (!(v < static_cast<float>(high))) return high;
  return static_cast<int>(std::lround(v));
}

// ---- x ≈ scale · q, q from `low` to `high` ----

double error_of(const float* x, int n, float scale, int low, int high) {
  const float inverse = scale != 0 ? 1 / scale : 0;
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    const double d = x[i] - double{scale} * level(x[i] * inverse, low, high);
    sum += d * d;
  }
  return sum;
}

// The scale of least error; its sign puts the farthest element where there is one more level.
float fit(const float* x, int n, int low, int high) {
  float farthest = 0;
  for (int i = 0; i < n; ++i)
    if (std::abs(x[i]) > std::abs(farthest)) farthest = x[i];
  if (farthest == 0) return 0;
  float best = 0;
  double least = error_of(x, n, 0, low, high);
  for (int guess = -9; guess <= 9; ++guess) {
    float scale = farthest / (static_cast<float>(low) - 0.1f * static_cast<float>(guess));
    for (int round = 0; round < 2; ++round) {
      double xq = 0, qq = 0;
      for (int i = 0; i < n; ++i) {
        const int q = level(x[i] / scale, low, high);
        xq += double{x[i]} * q;
        qq += q * q;
      }
      if (qq > 0 && xq != 0) scale = static_cast<float>(xq / qq);
      if (const double e = error_of(x, n, scale, low, high); e < least) {
        least = e;
        best = scale;
      }
    }
  }
  return best;
}

// ---- x ≈ scale · q - minimum, q from 0 to `high`, minimum ≥ 0 ----

struct Affine {
  float scale = 0, minimum = 0;
};

double error_of(const float* x, int n, Affine a, int high) {
  const float inverse = a.scale > 0 ? 1 / a.scale : 0;
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    const double d = x[i] - (double{a.scale} * level((x[i] + a.minimum) * inverse, 0, high) - a.minimum);
    sum += d * d;
  }
  return sum;
}

Affine fit(const float* x, int n, int high) {
  const float low = std::min(*std::min_element(x, x + n), 0.0f), top = *std::max_element(x, x + n);
  if (!(top > low)) return {0, -low};
  Affine best{(top - low) / static_cast<float>(high), -low};
  double least = error_of(x, n, best, high);
  for (int guess = -5; guess <= 20; ++guess) {
    Affine a{(top - low) / (static_cast<float>(high) + 0.1f * static_cast<float>(guess)), -low};
    for (int round = 0; round < 3; ++round) {
      double q1 = 0, q2 = 0, x1 = 0, xq = 0;
      for (int i = 0; i < n; ++i) {
        const int q = level((x[i] + a.minimum) / a.scale, 0, high);
        q1 += q;
        q2 += q * q;
        x1 += x[i];
        xq += double{x[i]} * q;
      }
      const double determinant = n * q2 - q1 * q1;
      if (determinant <= 0) break;
      double scale = (n * xq - x1 * q1) / determinant, minimum = (q1 * xq - q2 * x1) / determinant;
      if (minimum < 0) {
        minimum = 0;
        scale = xq / q2;
      }
      if (!(scale > 0)) break;
      a = {static_cast<float>(scale), static_cast<float>(minimum)};
      const double e = error_of(x, n, a, high);
      if (e < least) {
        least = e;
        best = a;
      }
    }
  }
  return best;
}

struct AffineBlock {
  float d = 0, m = 0;          // as they are stored
  int scale[16] = {}, minimum[16] = {};
  int q[256] = {};
};

// Parts of n elements; their scales and minima are whole numbers up to `top`.
AffineBlock affine_block(const float* x, int n, int high, int top) {
  AffineBlock out;
  const int parts = 256 / n;
  Affine fits[16];
  float largest_scale = 0, largest_minimum = 0;
  for (int p = 0; p < parts; ++p) {
    fits[p] = fit(x + p * n, n, high);
    largest_scale = std::max(largest_scale, fits[p].scale);
    largest_minimum = std::max(largest_minimum, fits[p].minimum);
  }
  out.d = round_f16(largest_scale / static_cast<float>(top));
  out.m = round_f16(largest_minimum / static_cast<float>(top));
  for (int p = 0; p < parts; ++p) {
    const int s0 = out.d > 0 ? level(fits[p].scale / out.d, 0, top) : 0;
    const int m0 = out.m > 0 ? level(fits[p].minimum / out.m, 0, top) : 0;
    double least = -1;
    for (int s = std::max(s0 - 1, 0); s <= std::min(s0 + 1, top); ++s)
      for (int m = std::max(m0 - 2, 0); m <= std::min(m0 + 2, top); ++m) {
        const double e = error_of(x + p * n, n, {out.d * static_cast<float>(s), out.m * static_cast<float>(m)}, high);
        if (least >= 0 && e >= least) continue;
        least = e;
        out.scale[p] = s;
        out.minimum[p] = m;
      }
    const float scale = out.d * static_cast<float>(out.scale[p]), minimum = out.m * static_cast<float>(out.minimum[p]);
    for (int i = p * n; i < p * n + n; ++i) out.q[i] = scale > 0 ? level((x[i] + minimum) / scale, 0, high) : 0;
  }
  return out;
}

struct SymmetricBlock {
  float d = 0;
  int scale[16] = {};
  int q[256] = {};             // counted from `low`
};

// Parts of 16; their scales are whole numbers from `least_scale` to -least_scale - 1.
SymmetricBlock symmetric_block(const float* x, int low, int high, int least_scale) {
  SymmetricBlock out;
  float fits[16], farthest = 0;
  for (int p = 0; p < 16; ++p) {
    fits[p] = fit(x + 16 * p, 16, low, high);
    if (std::abs(fits[p]) > std::abs(farthest)) farthest = fits[p];
  }
  out.d = round_f16(farthest / static_cast<float>(least_scale));
  for (int p = 0; p < 16; ++p) {
    const int s0 = out.d != 0 ? level(fits[p] / out.d, least_scale, -least_scale - 1) : 0;
    double least = -1;
    for (int s = std::max(s0 - 2, least_scale); s <= std::min(s0 + 2, -least_scale - 1); ++s) {
      const double e = error_of(x + 16 * p, 16, out.d * static_cast<float>(s), low, high);
      if (least >= 0 && e >= least) continue;
      least = e;
      out.scale[p] = s;
    }
    const float scale = out.d * static_cast<float>(out.scale[p]);
    for (int i = 16 * p; i < 16 * p + 16; ++i) out.q[i] = (scale != 0 ? level(x[i] / scale, low, high) : 0) - low;
  }
  return out;
}

// Adds the lowest `bits` bits of 256 numbers, shifted right by `shift`, as planes: `run` bytes hold run · 8 / bits.
void put_planes(const int* q, int shift, int bits, int run, std::byte* b) {
  const int per = run * 8 / bits;
  std::fill(b, b + 256 * bits / 8, std::byte{0});
  for (int i = 0; i < 256; ++i) {
    const unsigned v = static_cast<unsigned>(q[i]) >> shift & ((1u << bits) - 1);
    b[i / per * run + i % run] |= static_cast<std::byte>(v << bits * (i % per / run));
  }
}

void put_pairs(const AffineBlock& a, std::byte* b) {
  std::fill(b, b + 12, std::byte{0});
  for (int j = 0; j < 8; ++j) {
    const auto s = static_cast<unsigned>(a.scale[j]), m = static_cast<unsigned>(a.minimum[j]);
    if (j < 4) {
      b[j] |= static_cast<std::byte>(s);
      b[4 + j] |= static_cast<std::byte>(m);
    } else {
      b[4 + j] |= static_cast<std::byte>((s & 15u) | (m & 15u) << 4);
      b[j - 4] |= static_cast<std::byte>(s >> 4 << 6);
      b[j] |= static_cast<std::byte>(m >> 4 << 6);
    }
  }
}

}  // namespace

void to_q2_k(const float* x, std::byte* b) {
  const AffineBlock a = affine_block(x, 16, 3, 15);
  for (int p = 0; p < 16; ++p) b[p] = static_cast<std::byte>(a.scale[p] | a.minimum[p] << 4);
  put_planes(a.q, 0, 2, 32, b + 16);
  put_u16(b + 80, f16_from_f32(a.d));
  put_u16(b + 82, f16_from_f32(a.m));
}

void to_q3_k(const float* x, std::byte* b) {
  const SymmetricBlock a = symmetric_block(x, -4, 3, -32);
  put_planes(a.q, 2, 1, 32, b);
  put_planes(a.q, 0, 2, 32, b + 32);
  std::fill(b + 96, b + 108, std::byte{0});
  for (int j = 0; j < 16; ++j) {
    const auto s = static_cast<unsigned>(a.scale[j] + 32);
    b[96 + j % 8] |= static_cast<std::byte>((s & 15u) << 4 * (j / 8));
    b[104 + j % 4] |= static_cast<std::byte>(s >> 4 << 2 * (j / 4));
  }
  put_u16(b + 108, f16_from_f32(a.d));
}

void to_q4_k(const float* x, std::byte* b) {
  const AffineBlock a = affine_block(x, 32, 15, 63);
  put_u16(b, f16_from_f32(a.d));
  put_u16(b + 2, f16_from_f32(a.m));
  put_pairs(a, b + 4);
  put_planes(a.q, 0, 4, 32, b + 16);
}

void to_q5_k(const float* x, std::byte* b) {
  const AffineBlock a = affine_block(x, 32, 31, 63);
  put_u16(b, f16_from_f32(a.d));
  put_u16(b + 2, f16_from_f32(a.m));
  put_pairs(a, b + 4);
  put_planes(a.q, 4, 1, 32, b + 16);
  put_planes(a.q, 0, 4, 32, b + 48);
}

void to_q6_k(const float* x, std::byte* b) {
  const SymmetricBlock a = symmetric_block(x, -32, 31, -128);
  put_planes(a.q, 0, 4, 64, b);
  put_planes(a.q, 4, 2, 32, b + 128);
  for (int p = 0; p < 16; ++p) b[192 + p] = static_cast<std::byte>(a.scale[p]);
  put_u16(b + 208, f16_from_f32(a.d));
}

}  // namespace modelc::blocks

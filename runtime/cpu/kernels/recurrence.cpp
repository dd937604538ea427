// Kernels of what goes over a state token by token: a short convolution, a state-space scan, a gated delta rule.
#include "runtime/cpu/kernels/simd.h"
#include "runtime/cpu/kernels/table.h"

namespace modelc::cpu::MODELC_ISA {
namespace {

// `rows` rows of a head's state over all tokens: b and c are read once for them.
template <int rows> void scan_rows(const SsdPiece& s, int64_t first) {
  for (int64_t t = 0; t < s.tokens; ++t) {
    const float* x = s.x + t * s.x_stride + first;
    const float *b = s.b + t * s.shared_stride, *c = s.c + t * s.shared_stride;
    const F decay = splat(s.decay[t]);
    F input[rows], sums[rows];
    for (int i = 0; i < rows; ++i) input[i] = splat(s.step[t] * x[i]), sums[i] = zero();
    for (int64_t j = 0; j < s.n; j += lanes) {
      const F in = load_up_to(b + j, s.n - j), out = load_up_to(c + j, s.n - j);
      for (int i = 0; i < rows; ++i) {
        float* at = s.state + (first + i) * s.n + j;
        const F v = fma(input[i], in, load_up_to(at, s.n - j) * decay);
        store_up_to(at, v, s.n - j);
        sums[i] = fma(v, out, sums[i]);
      }
    }
    for (int i = 0; i < rows; ++i) s.out[t * s.out_stride + first + i] = sum(sums[i]) + s.skip * x[i];
  }
}

// `vectors` vectors of columns of a head's state over all tokens; the last one may be a part, of `left` columns.
template <int vectors> void delta_columns(const DeltaPiece& d, int64_t first, int64_t left) {
  for (int64_t t = 0; t < d.tokens; ++t) {
    const float *q = d.q + t * d.key_stride, *k = d.k + t * d.key_stride;
    const F kept = splat(d.decay[t]);
    F held[vectors], read[vectors];
    for (int j = 0; j < vectors; ++j) held[j] = zero(), read[j] = zero();
    for (int64_t i = 0; i < d.dk; ++i) {
      const float* row = d.state + i * d.dv + first;
      const F key = splat(k[i]);
      for (int j = 0; j < vectors; ++j) held[j] = fma(load_up_to(row + j * lanes, left - j * lanes) * kept, key, held[j]);
    }
    F change[vectors];
    for (int j = 0; j < vectors; ++j)
      change[j] = (load_up_to(d.v + t * d.v_stride + first + j * lanes, left - j * lanes) - held[j]) * splat(d.beta[t]);
    for (int64_t i = 0; i < d.dk; ++i) {
      float* row = d.state + i * d.dv + first;
      const F key = splat(k[i]), query = splat(q[i]);
      for (int j = 0; j < vectors; ++j) {
        const F v = fma(key, change[j], load_up_to(row + j * lanes, left - j * lanes) * kept);
        store_up_to(row + j * lanes, v, left - j * lanes);
        read[j] = fma(v, query, read[j]);
      }
    }
    float* out = d.out + t * d.out_stride + first;
    for (int j = 0; j < vectors; ++j) store_up_to(out + j * lanes, read[j] * splat(d.scale), left - j * lanes);
  }
}

}  // namespace

void conv_row(const float* const* rows, const float* w, int64_t w_stride, const float* bias, int64_t k, int64_t c, float* out) {
  for (int64_t i = 0; i < c; i += lanes) {
    F s = bias != nullptr ? load_up_to(bias + i, c - i) : zero();
    for (int64_t j = 0; j < k; ++j) s = fma(load_up_to(w + j * w_stride + i, c - i), load_up_to(rows[j] + i, c - i), s);
    store_up_to(out + i, s, c - i);
  }
}

void ssd_scan(const SsdPiece& s) {
  int64_t i = 0;
  for (; i + 4 <= s.p; i += 4) scan_rows<4>(s, i);
  for (; i < s.p; ++i) scan_rows<1>(s, i);
}

void gated_delta(const DeltaPiece& d) {
  int64_t j = 0;
  for (; j + 4 * lanes <= d.columns; j += 4 * lanes) delta_columns<4>(d, j, d.columns - j);
  for (; j < d.columns; j += lanes) delta_columns<1>(d, j, d.columns - j);
}

}  // namespace modelc::cpu::MODELC_ISA

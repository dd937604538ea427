// x · w, where product.cpp has x · wᵀ: every row of w is multiplied with one number of a token and added to its result. Some rows of w,
// some columns wide, are decoded once into a panel that stays in the first-level cache while all tokens pass by. An element's sum goes
// over the rows in their order, whatever the tile, the panel or the number of tokens.
#include "runtime/cpu/kernels/encodings.h"
#include "runtime/cpu/kernels/simd.h"
#include "runtime/cpu/kernels/table.h"

namespace modelc::cpu::MODELC_ISA {
namespace {

// tile_m · tile_k vectors of sums and tile_k of w must fit the registers.
#if defined(__AVX512F__)
constexpr int tile_m = 4, tile_k = 4;
#else
constexpr int tile_m = 2, tile_k = 4;
#endif
constexpr int64_t panel_rows = 16, panel_columns = 256; // 16 kB; whole blocks of every encoding

// M tokens, V vectors of columns, of which the last has `last` elements; over `rows` rows of the panel.
template <int M, int V>
MODELC_INLINE void tile(const CombineArgs& args, const float* x, const float* panel, int64_t rows, bool fresh, float* out, int64_t last) {
  F acc[M][V];
  const bool part = last < lanes;
  for (int i = 0; i < M; ++i)
    for (int v = 0; v < V; ++v) {
      const float* from = out + i * args.out_stride + v * lanes;
      acc[i][v] = fresh ? zero() : part && v == V - 1 ? load_part(from, last) : load(from);
    }
  for (int64_t n = 0; n < rows; ++n) {
    F w[V];
    for (int v = 0; v < V; ++v) w[v] = load(panel + n * panel_columns + v * lanes);
    for (int i = 0; i < M; ++i) {
      const F a = splat(x[i * args.x_stride + n]);
      for (int v = 0; v < V; ++v) acc[i][v] = fma(a, w[v], acc[i][v]);
    }
  }
  for (int i = 0; i < M; ++i)
    for (int v = 0; v < V; ++v) {
      float* to = out + i * args.out_stride + v * lanes;
      if (part && v == V - 1) store_part(to, acc[i][v], last);
      else store(to, acc[i][v]);
    }
}

template <int M> void columns_of(const CombineArgs& args, const float* x, int64_t rows, bool fresh, float* out, int64_t columns) {
  const float* panel = args.scratch;
  int64_t c = 0;
  for (; c + tile_k * lanes <= columns; c += tile_k * lanes) tile<M, tile_k>(args, x, panel + c, rows, fresh, out + c, lanes);
  for (; c + lanes <= columns; c += lanes) tile<M, 1>(args, x, panel + c, rows, fresh, out + c, lanes);
  if (c < columns) tile<M, 1>(args, x, panel + c, rows, fresh, out + c, columns - c);
}

} // namespace

int64_t combine_scratch() { return panel_rows * panel_columns; }

void combine(const CombineArgs& args) {
  for (int64_t k = 0; k < args.k; k += panel_columns) {
    const int64_t columns = args.k - k < panel_columns ? args.k - k : panel_columns;
    int64_t skipped = 0;
    with_encoding(args.encoding, [&](auto w) { skipped = decltype(w)::bytes(k); });
    for (int64_t n = 0; n < args.n; n += panel_rows) {
      const int64_t rows = args.n - n < panel_rows ? args.n - n : panel_rows;
      for (int64_t i = 0; i < rows; ++i) {
        float* to = args.scratch + i * panel_columns;
        convert(args.encoding, args.w + (n + i) * args.w_stride + skipped, columns, 1.0F, to);
        for (int64_t c = columns; c % lanes != 0; ++c) to[c] = 0;
      }
      const bool fresh = n == 0 && !args.add;
      int64_t m = 0;
      for (; m + tile_m <= args.m; m += tile_m)
        columns_of<tile_m>(args, args.x + m * args.x_stride + n, rows, fresh, args.out + m * args.out_stride + k, columns);
      for (; m < args.m; ++m) columns_of<1>(args, args.x + m * args.x_stride + n, rows, fresh, args.out + m * args.out_stride + k, columns);
    }
  }
}

} // namespace modelc::cpu::MODELC_ISA

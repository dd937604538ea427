// x · wᵀ by dot products along k, in tiles of tile_m tokens by tile_n rows of w: each element has one vector of partial
// sums, lane j of which adds up the elements j, j + lanes, j + 2 lanes, … in this order, and one fixed way of adding
// the lanes at the end. So an element's bits depend neither on the tile that it fell into nor on the number of tokens.
//
// Few tokens (decode): weights are converted in registers as they stream by, several rows at a time that lie far apart:
// the hardware fetches ahead for several long streams, but loses its way among short rows side by side (measured: twice
// the speed). Many tokens: a panel of tile_n rows, panel_k columns wide, is converted once into f32 that stays in the
// first-level cache while a block of tokens passes by; the tokens' columns stay in the second-level cache while the
// panels of all rows pass; partial sums wait there too, as whole vectors.
#include "runtime/cpu/kernels/encodings.h"
#include "runtime/cpu/kernels/simd.h"
#include "runtime/cpu/kernels/table.h"

namespace modelc::cpu::MODELC_ISA {
namespace {

// tile_m · tile_n vectors of sums, tile_m of x and one of w must fit the registers: 32, 16 and 16 of them.
#if defined(__AVX512F__)
constexpr int tile_m = 3, tile_n = 8;
constexpr int64_t panel_k = 640;                           // 8 · 640 · 4 = 20 kB
#elif defined(__AVX2__)
constexpr int tile_m = 3, tile_n = 4;
constexpr int64_t panel_k = 1024;                          // 4 · 1024 · 4 = 16 kB
#else
constexpr int tile_m = 2, tile_n = 4;
constexpr int64_t panel_k = 1024;
#endif

constexpr int64_t direct_m = 2 * tile_m;                   // up to so many tokens no panel is made
constexpr int streams = 4;                                 // rows that are read at a time for one token
constexpr int64_t most_block_m = 72;                       // tokens of a block: 72 · 640 · 4 = 180 kB of x

// acc[i][j] += x[i] · w[j] over one vector of columns.
template <int M, int N> MODELC_INLINE void step(const F (&x)[M], F w, int j, F (&acc)[M][N]) {
  hold(w);
  for (int i = 0; i < M; ++i) acc[i][j] = fma(x[i], w, acc[i][j]);
}

// All columns of M tokens and N rows of w as they are stored, `gap` bytes apart.
template <int M, int N, class W>
MODELC_INLINE void stored_tile(const float* x, int64_t x_stride, const std::byte* w, int64_t gap, int64_t k, F (&acc)[M][N]) {
  F a[M];
  if constexpr (W::block > 1) {
    for (int64_t g = 0; g < k / group_elements; ++g)
      for (int j = 0; j < N; ++j) {
        F v[group_vectors];
        W::group(w + j * gap, g, v);
        for (int64_t c = 0; c < group_vectors; ++c) {
          for (int i = 0; i < M; ++i) a[i] = load(x + i * x_stride + g * group_elements + c * lanes);
          step(a, v[c], j, acc);
        }
      }
  } else {
    int64_t c = 0;
    for (; c + lanes <= k; c += lanes) {
      for (int i = 0; i < M; ++i) a[i] = load(x + i * x_stride + c);
      for (int j = 0; j < N; ++j) step(a, W::get(w + j * gap + W::bytes(c)), j, acc);
    }
    if (c < k) {
      for (int i = 0; i < M; ++i) a[i] = load_part(x + i * x_stride + c, k - c);
      for (int j = 0; j < N; ++j) step(a, get_part<W>(w + j * gap + W::bytes(c), k - c), j, acc);
    }
  }
}

// `vectors` vectors of columns of M tokens and N rows, both packed: [vector][token or row][lane], filled up with zeros.
template <int M, int N> MODELC_INLINE void packed_tile(const float* x, const float* w, int64_t vectors, F (&acc)[M][N]) {
  for (int64_t v = 0; v < vectors; ++v) {
    F a[M];
    for (int i = 0; i < M; ++i) a[i] = load(x + (v * M + i) * lanes);
    for (int j = 0; j < N; ++j) step(a, load(w + (v * N + j) * lanes), j, acc);
  }
}

// Adds the lanes up, then bias and residual; writes M x N results, rows n0, n0 + gap, … of w.
template <int M, int N> MODELC_INLINE void finish(const ProductArgs& args, int64_t m0, int64_t n0, int64_t gap, const F (&acc)[M][N]) {
  for (int i = 0; i < M; ++i) {
    float s[(N + 3) / 4 * 4];
    for (int j = 0; j < N; j += 4) {
      const Quad q =
          sums(acc[i][j], j + 1 < N ? acc[i][j + 1] : zero(), j + 2 < N ? acc[i][j + 2] : zero(), j + 3 < N ? acc[i][j + 3] : zero());
      copy_bytes(s + j, &q, 16);
    }
    if (args.bias != nullptr)
      for (int j = 0; j < N; ++j) s[j] = s[j] + args.bias[n0 + j * gap];
    if (args.residual != nullptr) {
      const float* r = args.residual + (m0 + i) * args.residual_stride + n0;
      for (int j = 0; j < N; ++j) s[j] = s[j] + r[j * gap];
    }
    float* out = args.out + (m0 + i) * args.out_stride + n0;
    if (gap == 1) copy_bytes(out, s, N * 4);
    else
      for (int j = 0; j < N; ++j) out[j * gap] = s[j];
  }
}

// Rows n0, n0 + gap, … for M tokens.
template <int M, int N, class W> void direct(const ProductArgs& args, int64_t m0, int64_t n0, int64_t gap) {
  F acc[M][N];
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) acc[i][j] = zero();
  stored_tile<M, N, W>(args.x + m0 * args.x_stride, args.x_stride, args.w + n0 * args.w_stride, gap * args.w_stride, args.k, acc);
  finish<M, N>(args, m0, n0, gap, acc);
}

template <int N, class W> void direct_tokens(const ProductArgs& args, int64_t n0, int64_t gap) {
  int64_t m = 0;
  for (; m + tile_m <= args.m; m += tile_m) direct<tile_m, N, W>(args, m, n0, gap);
  if constexpr (tile_m > 2)
    if (args.m - m == 2) return direct<2, N, W>(args, m, n0, gap);
  if (m < args.m) direct<1, N, W>(args, m, n0, gap);
}

template <int N, class W> void all_direct(const ProductArgs& args) {
  const int64_t gap = args.n / N;
  for (int64_t n = 0; n < gap; ++n) direct_tokens<N, W>(args, n, gap);
  for (int64_t n = gap * N; n < args.n; ++n) direct_tokens<1, W>(args, n, 1);
}

// Rows of something stored as W, columns [0, k), packed.
template <class W> MODELC_INLINE void pack(const std::byte* from, int64_t stride, int64_t rows, int64_t k, float* to) {
  for (int64_t j = 0; j < rows; ++j) {
    const std::byte* row = from + j * stride;
    float* at = to + j * lanes;
    if constexpr (W::block > 1) {
      for (int64_t g = 0; g < k / group_elements; ++g) {
        F v[group_vectors];
        W::group(row, g, v);
        for (int64_t i = 0; i < group_vectors; ++i, at += rows * lanes) store(at, v[i]);
      }
    } else {
      int64_t c = 0;
      for (; c + lanes <= k; c += lanes, at += rows * lanes) store(at, W::get(row + W::bytes(c)));
      if (c < k) store(at, get_part<W>(row + W::bytes(c), k - c));
    }
  }
}

// How many of `left` tokens the next tile takes.
MODELC_INLINE int64_t tile_tokens(int64_t left) { return left < tile_m ? left : tile_m; }

struct Pass {                                              // one panel against a block of tokens
  const float* x;                                          // the block's tiles, packed one after another
  const float* panel;
  int64_t vectors;                                         // of columns
  int64_t n0, m0, m1;
  bool first, last;                                        // of the panels along k
  float* partial;                                          // [m1 - m0][N] vectors
  // The next panel's rows as stored, asked for while this one is used: so many rows, bytes of each, and their distance.
  const std::byte* next;
  int64_t next_rows, next_bytes, next_stride;
};

// The share of the tile that begins at token m in asking for the next panel, which takes a cache line at a time.
MODELC_INLINE void ask_ahead(const Pass& p, int64_t m, int64_t tokens) {
  const int64_t lines = (p.next_bytes + 63) / 64, all = lines * p.next_rows, block = p.m1 - p.m0;
  const int64_t end = all * (m - p.m0 + tokens) / block;
  int64_t i = all * (m - p.m0) / block, row = lines > 0 ? i / lines : 0, line = i - row * lines;
  for (; i < end; ++i) {
    __builtin_prefetch(p.next + row * p.next_stride + line * 64, 0, 2);
    if (++line == lines) line = 0, ++row;
  }
}

template <int M, int N> void pass_tile(const ProductArgs& args, const Pass& p, int64_t m) {
  F acc[M][N];
  float* partial = p.partial + (m - p.m0) * N * lanes;
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) acc[i][j] = p.first ? zero() : load(partial + (i * N + j) * lanes);
  ask_ahead(p, m, M);
  packed_tile<M, N>(p.x + (m - p.m0) * p.vectors * lanes, p.panel, p.vectors, acc);
  if (p.last) return finish<M, N>(args, m, p.n0, 1, acc);
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) store(partial + (i * N + j) * lanes, acc[i][j]);
}

template <int N> void pass(const ProductArgs& args, const Pass& p) {
  int64_t m = p.m0;
  for (; m + tile_m <= p.m1; m += tile_m) pass_tile<tile_m, N>(args, p, m);
  if constexpr (tile_m > 2)
    if (p.m1 - m == 2) return pass_tile<2, N>(args, p, m);
  if (m < p.m1) pass_tile<1, N>(args, p, m);
}

// Blocks of about the same number of tokens, in whole tiles.
int64_t block_m(int64_t m) {
  const int64_t blocks = (m + most_block_m - 1) / most_block_m;
  return ((m + blocks - 1) / blocks + tile_m - 1) / tile_m * tile_m;
}

template <class W> void by_panels(const ProductArgs& args) {
  // Panels hold whole vectors, and whole blocks.
  constexpr int64_t unit = W::block > lanes ? W::block : lanes, most = panel_k / unit * unit;
  const int64_t parts = (args.k + most - 1) / most;
  const int64_t width = ((args.k + parts - 1) / parts + unit - 1) / unit * unit;
  const int64_t block = block_m(args.m);
  float* panel = args.scratch;
  float* x = panel + tile_n * panel_k;
  for (int64_t m0 = 0; m0 < args.m; m0 += block) {
    const int64_t m1 = m0 + block < args.m ? m0 + block : args.m;
    for (int64_t k0 = 0; k0 < args.k; k0 += width) {
      const int64_t k1 = k0 + width < args.k ? k0 + width : args.k, vectors = (k1 - k0 + lanes - 1) / lanes;
      for (int64_t m = m0; m < m1; m += tile_m)
        pack<F32Weights>(reinterpret_cast<const std::byte*>(args.x + m * args.x_stride + k0), args.x_stride * 4, tile_tokens(m1 - m),
                         k1 - k0, x + (m - m0) * vectors * lanes);
      float* partial = x + block * panel_k;
      for (int64_t n = 0; n < args.n;) {
        const int64_t rows = args.n - n < tile_n ? 1 : tile_n;
        const std::byte* w = args.w + n * args.w_stride + W::bytes(k0);
        if (rows == 1) pack<W>(w, args.w_stride, 1, k1 - k0, panel);
        else pack<W>(w, args.w_stride, tile_n, k1 - k0, panel);
        const int64_t left = args.n - n - rows;            // rows that later panels hold; in memory only the first time
        const Pass p = {x,
                        panel,
                        vectors,
                        n,
                        m0,
                        m1,
                        k0 == 0,
                        k1 == args.k,
                        partial,
                        w + rows * args.w_stride,
                        m0 > 0          ? 0
                        : left < tile_n ? left
                                        : tile_n,
                        W::bytes(k1 - k0),
                        args.w_stride};
        if (rows == 1) pass<1>(args, p);
        else pass<tile_n>(args, p);
        n += rows;
        partial += (m1 - m0) * rows * lanes;
      }
    }
  }
}

template <class W> void product_of(const ProductArgs& args) {
  if (args.m == 1) all_direct<streams, W>(args);
  else if (args.m <= direct_m) all_direct<tile_n, W>(args);
  else by_panels<W>(args);
}

}  // namespace

int64_t product_scratch(int64_t m, int64_t n, int64_t k) {
  const int64_t rounded = rounded_scratch(m, k);
  if (m <= direct_m) return rounded;
  // Panels of long blocks are narrower: the partial sums of two of them wait for a row of more than that.
  const int64_t own = tile_n * panel_k + block_m(m) * panel_k + (k > panel_k / 256 * 256 ? block_m(m) * n * lanes : 0);
  return own > rounded ? own : rounded;
}

void product(const ProductArgs& args) {
  if (args.m <= 0 || args.n <= 0) return;
  if (args.k <= 0) {                                       // an empty sum
    for (int64_t m = 0; m < args.m; ++m)
      for (int64_t n = 0; n < args.n; ++n)
        args.out[m * args.out_stride + n] =
            (args.bias != nullptr ? args.bias[n] : 0.0F) + (args.residual != nullptr ? args.residual[m * args.residual_stride + n] : 0.0F);
    return;
  }
  if (args.rounded != nullptr) return rounded_product(args);
  with_encoding(args.encoding, [&](auto w) { product_of<decltype(w)>(args); });
}

int product_rows() { return lanes > tile_n ? lanes : tile_n; }

}  // namespace modelc::cpu::MODELC_ISA

// x · wᵀ by dot products along k, in tiles of tile_m tokens by tile_n rows of w: each element has one vector of partial
// sums, lane j of which adds up the elements j, j + lanes, j + 2 lanes, … in this order, and one fixed way of adding the
// lanes at the end. So an element's bits depend neither on the tile that it fell into nor on the number of tokens.
//
// Few tokens (decode): weights are converted in registers as they stream by, tile_n rows at a time. Many tokens: a panel of
// tile_n rows, panel_k columns wide, is converted once into f32 that stays in the first-level cache while all tokens pass
// by; partial sums of a panel that is not the last wait in memory as whole vectors.
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

// Tokens that pass by a panel before the next one is made: their rows of x should stay in the second-level cache.
constexpr int64_t cached_x = 768 * 1024 / 4;               // floats
constexpr int64_t least_block_m = 48;

struct F32Panel {                                          // a panel's rows, padded with zeros to whole vectors
  static constexpr int64_t size = 4;
  MODELC_INLINE F get(const std::byte* p) { return load(reinterpret_cast<const float*>(p)); }
};

// Adds x[i][k0..k1) · w[j][k0..k1) to the sums. k1 - k0 is a multiple of lanes, but for `rest` elements that follow it.
template <int M, int N, class W>
MODELC_INLINE void tile(const float* x, int64_t x_stride, const std::byte* w, int64_t w_stride, int64_t count, int64_t rest,
                        F (&acc)[M][N]) {
  const float* xs[M];
  const std::byte* ws[N];
  for (int i = 0; i < M; ++i) xs[i] = x + i * x_stride;
  for (int j = 0; j < N; ++j) ws[j] = w + j * w_stride;
  for (int64_t k = 0; k < count; k += lanes) {
    F a[M];
    for (int i = 0; i < M; ++i) a[i] = load(xs[i] + k);
    for (int j = 0; j < N; ++j) {
      const F b = W::get(ws[j] + k * W::size);
      for (int i = 0; i < M; ++i) acc[i][j] = fma(a[i], b, acc[i][j]);
    }
  }
  if (rest > 0) {
    F a[M];
    for (int i = 0; i < M; ++i) a[i] = load_part(xs[i] + count, rest);
    for (int j = 0; j < N; ++j) {
      const F b = get_part<W>(ws[j] + count * W::size, rest);
      for (int i = 0; i < M; ++i) acc[i][j] = fma(a[i], b, acc[i][j]);
    }
  }
}

// Adds the lanes up, then bias and residual; writes M x N results that begin at row n0 of w.
template <int M, int N>
MODELC_INLINE void finish(const ProductArgs& args, int64_t m0, int64_t n0, const F (&acc)[M][N]) {
  for (int i = 0; i < M; ++i) {
    float* out = args.out + (m0 + i) * args.out_stride + n0;
    float s[(N + 3) / 4 * 4];
    for (int j = 0; j < N; j += 4) {
      const Quad q = sums(acc[i][j], j + 1 < N ? acc[i][j + 1] : zero(), j + 2 < N ? acc[i][j + 2] : zero(),
                          j + 3 < N ? acc[i][j + 3] : zero());
      copy_bytes(s + j, &q, 16);
    }
    if (args.bias != nullptr)
      for (int j = 0; j < N; ++j) s[j] = s[j] + args.bias[n0 + j];
    if (args.residual != nullptr) {
      const float* r = args.residual + (m0 + i) * args.residual_stride + n0;
      for (int j = 0; j < N; ++j) s[j] = s[j] + r[j];
    }
    copy_bytes(out, s, N * 4);
  }
}

template <int M, int N, class W>
void direct(const ProductArgs& args, int64_t n0) {
  F acc[M][N];
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) acc[i][j] = zero();
  const int64_t whole = args.k / lanes * lanes;
  tile<M, N, W>(args.x, args.x_stride, args.w + n0 * args.w_stride, args.w_stride, whole, args.k - whole, acc);
  finish<M, N>(args, 0, n0, acc);
}

template <int M, class W>
void direct_rows(const ProductArgs& args) {
  int64_t n = 0;
  for (; n + tile_n <= args.n; n += tile_n) direct<M, tile_n, W>(args, n);
  for (; n < args.n; ++n) direct<M, 1, W>(args, n);
}

// Rows n0.. of w, columns k0..k1, as f32 rows of `width` floats.
template <class W>
void make_panel(const ProductArgs& args, int64_t n0, int64_t rows, int64_t k0, int64_t k1, int64_t width, float* panel) {
  for (int64_t j = 0; j < rows; ++j) {
    const std::byte* from = args.w + (n0 + j) * args.w_stride + k0 * W::size;
    float* to = panel + j * width;
    int64_t k = 0;
    for (; k + lanes <= k1 - k0; k += lanes) store(to + k, W::get(from + k * W::size));
    if (k < k1 - k0) store(to + k, get_part<W>(from + k * W::size, k1 - k0 - k));
  }
}

struct Pass {                                              // one panel against a block of tokens
  const float* panel;
  int64_t width;
  int64_t n0, m0, m1, k0, k1;
  bool first, last;                                        // of the panels along k
  float* partial;                                          // [m1 - m0][N] vectors
};

template <int M, int N>
void pass_tile(const ProductArgs& args, const Pass& p, int64_t m) {
  F acc[M][N];
  float* partial = p.partial + (m - p.m0) * N * lanes;
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) acc[i][j] = p.first ? zero() : load(partial + (i * N + j) * lanes);
  const int64_t whole = (p.k1 - p.k0) / lanes * lanes;
  const float* x = args.x + m * args.x_stride + p.k0;
  tile<M, N, F32Panel>(x, args.x_stride, reinterpret_cast<const std::byte*>(p.panel), p.width * 4, whole,
                       0, acc);
  if (const int64_t rest = p.k1 - p.k0 - whole; rest > 0) {
    for (int j = 0; j < N; ++j) {
      const F b = load(p.panel + j * p.width + whole);
      for (int i = 0; i < M; ++i) acc[i][j] = fma(load_part(x + i * args.x_stride + whole, rest), b, acc[i][j]);
    }
  }
  if (p.last) return finish<M, N>(args, m, p.n0, acc);
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) store(partial + (i * N + j) * lanes, acc[i][j]);
}

template <int N>
void pass(const ProductArgs& args, const Pass& p) {
  int64_t m = p.m0;
  for (; m + tile_m <= p.m1; m += tile_m) pass_tile<tile_m, N>(args, p, m);
  if constexpr (tile_m > 2)
    if (p.m1 - m == 2) return pass_tile<2, N>(args, p, m);
  if (m < p.m1) pass_tile<1, N>(args, p, m);
}

int64_t block_m(int64_t m, int64_t k) {
  const int64_t fits = cached_x / (k > 0 ? k : 1);
  const int64_t b = fits < least_block_m ? least_block_m : fits;
  return m < b ? m : b;
}

template <class W>
void by_panels(const ProductArgs& args) {
  const int64_t parts = (args.k + panel_k - 1) / panel_k;
  const int64_t width = ((args.k + parts - 1) / parts + lanes - 1) / lanes * lanes;
  const int64_t block = block_m(args.m, args.k);
  float* panel = args.scratch;
  float* partial = panel + tile_n * panel_k;
  for (int64_t m0 = 0; m0 < args.m; m0 += block) {
    const int64_t m1 = m0 + block < args.m ? m0 + block : args.m;
    for (int64_t n = 0; n < args.n;) {
      const int64_t rows = args.n - n < tile_n ? 1 : tile_n;
      for (int64_t k0 = 0; k0 < args.k; k0 += width) {
        const int64_t k1 = k0 + width < args.k ? k0 + width : args.k;
        make_panel<W>(args, n, rows, k0, k1, width, panel);
        const Pass p = {panel, width, n, m0, m1, k0, k1, k0 == 0, k1 == args.k, partial};
        if (rows == 1) pass<1>(args, p);
        else pass<tile_n>(args, p);
      }
      n += rows;
    }
  }
}

template <class W>
void product_of(const ProductArgs& args) {
  switch (args.m) {
    case 1: return direct_rows<1, W>(args);
    case 2: return direct_rows<2, W>(args);
#if defined(__AVX2__)
    case 3: return direct_rows<3, W>(args);
#endif
    default: return by_panels<W>(args);
  }
}

}  // namespace

int64_t product_scratch(int64_t m, int64_t k) { return tile_n * panel_k + block_m(m, k) * tile_n * lanes; }

void product(const ProductArgs& args) {
  if (args.m <= 0 || args.n <= 0) return;
  if (args.k <= 0) {                                       // an empty sum
    for (int64_t m = 0; m < args.m; ++m)
      for (int64_t n = 0; n < args.n; ++n)
        args.out[m * args.out_stride + n] = (args.bias != nullptr ? args.bias[n] : 0.0F) +
            (args.residual != nullptr ? args.residual[m * args.residual_stride + n] : 0.0F);
    return;
  }
  switch (args.encoding) {
    case Stored::f32: return product_of<F32Weights>(args);
    case Stored::f16: return product_of<F16Weights>(args);
    case Stored::bf16: return product_of<BF16Weights>(args);
  }
}

int product_rows() { return tile_n; }

}  // namespace modelc::cpu::MODELC_ISA

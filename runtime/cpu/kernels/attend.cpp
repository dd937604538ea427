// Attention of some query rows over one chunk of positions, with the softmax kept running over blocks of 64 positions
// (max, sum and weighted values are rescaled when the max grows). Scores are summed along d one channel after another,
// values one position after another: the order for a row does not depend on which rows are computed beside it. Keys and
// values are stored as W, f32, f16 or bf16, and computed with in f32.
#include "runtime/cpu/kernels/encodings.h"
#include "runtime/cpu/kernels/simd.h"
#include "runtime/cpu/kernels/table.h"

namespace modelc::cpu::MODELC_ISA {
namespace {

constexpr int64_t key_vectors = key_block / lanes;         // vectors of one channel of 16 keys
#if defined(__AVX512F__)
constexpr int score_rows = 6, score_keys = 4;              // rows by key blocks whose sums stay in registers
constexpr int value_rows = 4, value_vectors = 4;
#elif defined(__AVX2__)
constexpr int score_rows = 4, score_keys = 1;
constexpr int value_rows = 3, value_vectors = 4;
#else
constexpr int score_rows = 2, score_keys = 1;
constexpr int value_rows = 2, value_vectors = 4;
#endif

// s[row][key] = q · k for R rows and B blocks of 16 keys.
template <int R, int B, class W> void score_tile(const float* const* q, const std::byte* keys, int64_t d, float* scores) {
  constexpr int V = B * static_cast<int>(key_vectors);
  F acc[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) acc[r][v] = zero();
  for (int64_t c = 0; c < d; ++c) {
    F k[V];
    for (int v = 0; v < V; ++v) k[v] = W::get(keys + W::bytes(v / key_vectors * (d * key_block) + c * key_block + v % key_vectors * lanes));
    for (int r = 0; r < R; ++r) {
      const F a = splat(q[r][c]);
      for (int v = 0; v < V; ++v) acc[r][v] = fma(a, k[v], acc[r][v]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) store(scores + r * score_block + v * lanes, acc[r][v]);
}

template <int B, class W> MODELC_INLINE void score_some(int rows, const float* const* q, const std::byte* keys, int64_t d, float* scores) {
  int r = 0;
  for (; r + score_rows <= rows; r += score_rows) score_tile<score_rows, B, W>(q + r, keys, d, scores + r * score_block);
  if constexpr (score_rows > 4) {
    for (; r + 3 <= rows; r += 3) score_tile<3, B, W>(q + r, keys, d, scores + r * score_block);
  }
  if constexpr (score_rows > 2) {
    for (; r + 2 <= rows; r += 2) score_tile<2, B, W>(q + r, keys, d, scores + r * score_block);
  }
  for (; r < rows; ++r) score_tile<1, B, W>(q + r, keys, d, scores + r * score_block);
}

// Scores of `blocks` blocks of 16 keys.
template <class W> void score(int rows, const float* const* q, const std::byte* keys, int64_t blocks, int64_t d, float* scores) {
  int64_t b = 0;
  if constexpr (score_keys > 1) {
    for (; b + score_keys <= blocks; b += score_keys)
      score_some<score_keys, W>(rows, q, keys + W::bytes(b * d * key_block), d, scores + b * key_block);
  }
  for (; b < blocks; ++b) score_some<1, W>(rows, q, keys + W::bytes(b * d * key_block), d, scores + b * key_block);
}

// The same with keys that lie position after position: products of q's rows with theirs.
template <class W> void score_stored(const AttendChunk& a, int64_t block, int64_t positions) {
  ProductArgs p;
  p.x = a.q[0];
  p.x_stride = a.d;
  p.w = a.keys + W::bytes(block * a.key_stride);
  p.w_stride = W::bytes(a.key_stride);
  p.encoding = a.stored;
  p.m = a.rows;
  p.n = positions;
  p.k = a.d;
  p.out = a.scratch;
  p.out_stride = score_block;
  p.scratch = a.scratch + attend_max_rows * score_block;
  product(p);
}

// acc[row][columns] += sum over the positions of p[row][position] · v[position][columns], V vectors wide.
template <int R, int V, class W> MODELC_INLINE void value_tile(const float* p, const std::byte* v, int64_t stride, int64_t positions,
                                                               float* acc, int64_t acc_stride, int64_t last_lanes) {
  F a[R][V];
  const bool part = last_lanes < lanes;
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < V; ++i)
      a[r][i] = part && i == V - 1 ? load_part(acc + r * acc_stride + i * lanes, last_lanes) : load(acc + r * acc_stride + i * lanes);
  for (int64_t t = 0; t < positions; ++t) {
    F x[V];
    for (int i = 0; i < V; ++i)
      x[i] =
          part && i == V - 1 ? get_part<W>(v + W::bytes(t * stride + i * lanes), last_lanes) : W::get(v + W::bytes(t * stride + i * lanes));
    for (int r = 0; r < R; ++r) {
      const F w = splat(p[r * score_block + t]);
      for (int i = 0; i < V; ++i) a[r][i] = fma(w, x[i], a[r][i]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < V; ++i) {
      float* to = acc + r * acc_stride + i * lanes;
      if (part && i == V - 1) store_part(to, a[r][i], last_lanes);
      else store(to, a[r][i]);
    }
}

template <int R, class W> void add_values(const float* p, const std::byte* v, int64_t stride, int64_t positions, float* acc, int64_t dv) {
  int64_t c = 0;
  for (; c + value_vectors * lanes <= dv; c += value_vectors * lanes)
    value_tile<R, value_vectors, W>(p, v + W::bytes(c), stride, positions, acc + c, dv, lanes);
  for (; c + lanes <= dv; c += lanes) value_tile<R, 1, W>(p, v + W::bytes(c), stride, positions, acc + c, dv, lanes);
  if (c < dv) value_tile<R, 1, W>(p, v + W::bytes(c), stride, positions, acc + c, dv, dv - c);
}

// Scores of one row into weights exp(score - max); rescales what the row has gathered. False: it sees none of them.
MODELC_INLINE bool soften(const AttendChunk& a, int r, int64_t from, int64_t to, float* s) {
  const float none = -__builtin_inff();
  F m = splat(none);
  for (int64_t i = 0; i < score_block; i += lanes) {
    F v = load(s + i) * splat(a.scale);
    if (a.softcap > 0) v = splat(a.softcap) * tanh(v / splat(a.softcap));
    store(s + i, v);
  }
  for (int64_t i = 0; i < from; ++i) s[i] = none;
  for (int64_t i = to; i < score_block; ++i) s[i] = none;
  if (from >= to) return false;
  for (int64_t i = 0; i < score_block; i += lanes) m = max(load(s + i), m);
  const float block_max = largest(m);
  const float old = a.max[r];
  const float now = block_max > old ? block_max : old;
  if (now == none) {                                       // a NaN is no max; what it spoils must show
    for (int64_t i = from; i < to; ++i)
      if (s[i] != s[i]) a.max[r] = 0, a.sum[r] = s[i];
    return false;
  }
  F total = zero();
  for (int64_t i = 0; i < score_block; i += lanes) {
    const F e = exp(load(s + i) - splat(now));
    store(s + i, e);
    total = total + e;
  }
  float* acc = a.acc + r * a.dv;
  if (old != now && old != none) {
    float f[lanes];
    store(f, exp(splat(old - now)));
    a.sum[r] = a.sum[r] * f[0];
    for (int64_t i = 0; i < a.dv; i += lanes) {
      if (a.dv - i >= lanes) store(acc + i, load(acc + i) * splat(f[0]));
      else store_part(acc + i, load_part(acc + i, a.dv - i) * splat(f[0]), a.dv - i);
    }
  }
  a.sum[r] = a.sum[r] + sum(total);
  a.max[r] = now;
  return true;
}

MODELC_INLINE float exp1(float x) {
  float f[lanes];
  store(f, exp(splat(x)));
  return f[0];
}

template <class W> void attend_as(const AttendChunk& a) {
  int64_t lo = a.end, hi = a.begin;
  for (int r = 0; r < a.rows; ++r) {
    a.max[r] = -__builtin_inff();
    a.sum[r] = 0;
    for (int64_t i = 0; i < a.dv; ++i) a.acc[r * a.dv + i] = 0;
    if (a.lo[r] >= a.hi[r]) continue;
    lo = a.lo[r] < lo ? a.lo[r] : lo;
    hi = a.hi[r] > hi ? a.hi[r] : hi;
  }
  lo = lo < a.begin ? a.begin : lo;
  hi = hi > a.end ? a.end : hi;
  for (int64_t block = lo / score_block * score_block; block < hi; block += score_block) {
    const int64_t held = hi - block < score_block ? hi - block : score_block;
    if (a.key_stride > 0) score_stored<W>(a, block, held);
    else score<W>(a.rows, a.q, a.keys + W::bytes(block * a.d), (held + key_block - 1) / key_block, a.d, a.scratch);
    int64_t from[attend_max_rows], to[attend_max_rows];    // what each row sees of the block
    for (int r = 0; r < a.rows; ++r) {
      from[r] = a.lo[r] > block ? a.lo[r] - block : 0;
      to[r] = a.hi[r] - block < held ? a.hi[r] - block : held;
      if (to[r] < 0) to[r] = 0;
      if (from[r] > to[r]) from[r] = to[r];
      if (!soften(a, r, from[r], to[r], a.scratch + r * score_block)) to[r] = from[r];
    }
    const std::byte* v = a.values + W::bytes(block * a.value_stride);
    for (int r = 0; r < a.rows;) {
      bool together = r + value_rows <= a.rows;            // only rows that see the same: what one row does not see may
      for (int i = 1; together && i < value_rows; ++i)     // hold anything, and 0 · NaN is NaN
        together = from[r + i] == from[r] && to[r + i] == to[r];
      const float* p = a.scratch + r * score_block + from[r];
      float* acc = a.acc + r * a.dv;
      const std::byte* seen = v + W::bytes(from[r] * a.value_stride);
      if (together) add_values<value_rows, W>(p, seen, a.value_stride, to[r] - from[r], acc, a.dv);
      else add_values<1, W>(p, seen, a.value_stride, to[r] - from[r], acc, a.dv);
      r += together ? value_rows : 1;
    }
  }
}

}  // namespace

void attend(const AttendChunk& a) {
  if (a.stored == Stored::f16) attend_as<F16Weights>(a);
  else if (a.stored == Stored::bf16) attend_as<BF16Weights>(a);
  else attend_as<F32Weights>(a);
}

void attend_join(float* max, float* sum, float* acc, float other_max, float other_sum, const float* other_acc, int64_t dv) {
  const float none = -__builtin_inff();
  if (other_max == none) return;
  if (*max == none) {
    *max = other_max;
    *sum = other_sum;
    for (int64_t i = 0; i < dv; ++i) acc[i] = other_acc[i];
    return;
  }
  const float now = other_max > *max ? other_max : *max;
  const float a = exp1(*max - now), b = exp1(other_max - now);
  *max = now;
  *sum = *sum * a + other_sum * b;
  for (int64_t i = 0; i < dv; ++i) acc[i] = acc[i] * a + other_acc[i] * b;
}

void attend_finish(float max, float sum, const float* acc, const float* sink, int64_t dv, float* out) {
  const float none = -__builtin_inff();
  float factor = 0;
  if (max != none) {
    if (sink != nullptr) {
      const float now = *sink > max ? *sink : max;
      const float a = exp1(max - now);
      factor = a / (sum * a + exp1(*sink - now));
    } else {
      factor = 1.0F / sum;
    }
  }
  for (int64_t i = 0; i < dv; ++i) out[i] = max == none ? 0.0F : acc[i] * factor;
}

}  // namespace modelc::cpu::MODELC_ISA

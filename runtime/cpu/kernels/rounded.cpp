// Products of quantised weights with activations that are rounded to 13 bits: sums of a group of 32 products are whole
// numbers, exact in any order, and are then scaled and added in f32: groups 0, 4, 8, … of an element go into one sum,
// 1, 5, … into another, and the four are added last, two and two. So here too an element has one order, and a token the
// same bits alone and in a batch.
//
// Few tokens: two rows of weights at a time in one vector, as codes.h gives them, from rows that lie far apart. Many
// tokens: a panel of some vectors of rows is unpacked once, so that a lane is a row, and its sums need no adding across
// lanes. A number that is loaded is used several times, since loads are what limits this: two vectors of rows by four
// tokens are twice as fast as one by two (measured: AVX2, prompts of 128 tokens).
#include "runtime/cpu/kernels/simd.h"
#include "runtime/cpu/kernels/table.h"
#if defined(__AVX2__)
#include "runtime/cpu/kernels/codes.h"
#else
#include "runtime/cpu/kernels/scalar_codes.h"
#endif

namespace modelc::cpu::MODELC_ISA {
namespace {

// The largest code of an activation. Sums stay below 2^31 for every encoding: where the halves of a group have scales of 8 bits, of codes
// up to 63, 2 · 16 · 63 · 4095 · 127 is 1.05e9.
constexpr float most_code = 4095;

// Where the parts of a token's record are; entries of groups beyond k are 0, up to a multiple of 4 groups.
struct Record {
  const std::byte* codes;                                  // [groups][32] i16
  const float* scale;                                      // [groups]
  const float* moved;                                      // scale · sum of the codes: what a minimum is multiplied by
  const std::int32_t* sum;                                 // of the codes
  const std::int32_t* low;                                 // of the first 16 of them
  const std::int32_t* high;                                // of the others
};
MODELC_INLINE int64_t groups_of(int64_t k) { return (k / 32 + 3) / 4 * 4; }
MODELC_INLINE Record record(const std::byte* at, int64_t groups) {
  const std::byte* numbers = at + groups * 64;
  return {at,
          reinterpret_cast<const float*>(numbers),
          reinterpret_cast<const float*>(numbers) + groups,
          reinterpret_cast<const std::int32_t*>(numbers) + 2 * groups,
          reinterpret_cast<const std::int32_t*>(numbers) + 3 * groups,
          reinterpret_cast<const std::int32_t*>(numbers) + 4 * groups};
}

// One result: bias and residual in the order of every product.
MODELC_INLINE void put(const ProductArgs& args, int64_t m, int64_t n, float s) {
  if (args.bias != nullptr) s = s + args.bias[n];
  if (args.residual != nullptr) s = s + args.residual[m * args.residual_stride + n];
  args.out[m * args.out_stride + n] = s;
}

}  // namespace

int64_t rounded_size(int64_t k) { return (groups_of(k) * 84 + 63) / 64 * 64; }

void round(const float* x, int64_t k, std::byte* to) {
  const int64_t groups = groups_of(k);
  auto* codes = reinterpret_cast<std::int16_t*>(to);
  auto* scale = reinterpret_cast<float*>(to + groups * 64);
  float* moved = scale + groups;
  auto* sum_of = reinterpret_cast<std::int32_t*>(moved + groups);
  std::int32_t* low_of = sum_of + groups;
  std::int32_t* high_of = low_of + groups;
  const F magic = splat(12582912.0F);                      // 1.5 · 2^23: adding it rounds to a whole number
  for (int64_t g = 0; g < groups; ++g) {
    if (g * 32 >= k) {
      for (int64_t i = 0; i < 32; ++i) codes[g * 32 + i] = 0;
      scale[g] = moved[g] = 0;
      sum_of[g] = low_of[g] = high_of[g] = 0;
      continue;
    }
    F most = zero(), nothing = zero();
    for (int64_t i = 0; i < 32; i += lanes) {
      const F v = load(x + g * 32 + i);
      most = max(max(v, zero() - v), most);
      nothing = fma(v, zero(), nothing);                   // NaN if one is not finite
    }
    const float largest_of = largest(most);
    const F factor = splat(largest_of > 0 ? most_code / largest_of : 0.0F);
    std::int32_t whole[32];
    for (int64_t i = 0; i < 32; i += lanes) {
      const I v = sub_int(bits(load(x + g * 32 + i) * factor + magic), bits(magic));
      copy_bytes(whole + i, &v, lanes * 4);
    }
    std::int32_t low = 0, high = 0;
    for (int64_t i = 0; i < 16; ++i) {
      const auto a = static_cast<std::int16_t>(whole[i]), b = static_cast<std::int16_t>(whole[16 + i]);
      codes[g * 32 + i] = a;
      codes[g * 32 + 16 + i] = b;
      low += a;
      high += b;
    }
    scale[g] = largest_of / most_code + sum(nothing);
    moved[g] = scale[g] * static_cast<float>(low + high);
    sum_of[g] = low + high;
    low_of[g] = low;
    high_of[g] = high;
  }
}

#if !defined(__AVX2__)

int64_t rounded_scratch(int64_t, int64_t k) { return 12 * groups_of(k) + 4; }

// A row's codes are unpacked once for all tokens: [groups][32] bytes with sign, then scale, minimum and the halves' scales.
void rounded_product(const ProductArgs& args) {
  const int64_t groups = groups_of(args.k), held = args.k / 32;
  auto* codes = reinterpret_cast<std::int8_t*>(args.scratch);
  float* scale = args.scratch + groups * 8;
  float* minimum = scale + groups;
  auto* halves = reinterpret_cast<std::int32_t*>(minimum + groups);
  for (int64_t n = 0; n < args.n; ++n) {
    bool halved = false;
    for (int64_t g = 0; g < held; ++g) {
      const GroupCodes c = group_codes(args.encoding, args.w + n * args.w_stride, g, codes + g * 32);
      scale[g] = c.scale;
      minimum[g] = c.minimum;
      halves[2 * g] = c.halves[0];
      halves[2 * g + 1] = c.halves[1];
      halved = c.halved;
    }
    for (int64_t m = 0; m < args.m; ++m) {
      const Record x = record(args.rounded + m * args.rounded_stride, groups);
      float sums_of[4] = {};
      for (int64_t g = 0; g < held; ++g) {
        const std::int8_t* w = codes + g * 32;
        const auto* v = reinterpret_cast<const std::int16_t*>(x.codes) + g * 32;
        std::int32_t low = 0, high = 0;
        for (int64_t i = 0; i < 16; ++i) low += w[i] * v[i];
        for (int64_t i = 16; i < 32; ++i) high += w[i] * v[i];
        const std::int32_t all = halved ? low * halves[2 * g] + high * halves[2 * g + 1] : low + high;
        float& s = sums_of[g % 4];
        s = static_cast<float>(all) * scale[g] * x.scale[g] + s;
        s = minimum[g] * x.moved[g] + s;
      }
      put(args, m, n, (sums_of[0] + sums_of[1]) + (sums_of[2] + sums_of[3]));
    }
  }
}

#else

namespace {

constexpr int64_t rounded_direct_m = 4;                    // up to so many tokens no panel is made
// A tile of a panel: vectors of rows, and tokens. The whole sums of a group, one of the tokens' numbers and the weights must fit
// the registers; the sums in f32 wait in memory, where each is touched once in a group.
constexpr int panel_vectors = 2;
#if defined(__AVX512F__)
constexpr int rounded_tile_m = 8;
#else
constexpr int rounded_tile_m = 4;
#endif

// ---- few tokens

MODELC_INLINE Bytes twice(const void* p);
// Adds four sums, of 16 codes of each lane with those at x: 8 of 16 bits at a time.
template <class C> MODELC_INLINE __m256i add_dot(__m256i acc, Bytes v, const std::byte* x) {
  const __m256i above = C::as_signed ? _mm256_cmpgt_epi8(_mm256_setzero_si256(), v) : _mm256_setzero_si256();
  const __m256i a = _mm256_unpacklo_epi8(v, above), b = _mm256_unpackhi_epi8(v, above);
#if defined(__AVX512VNNI__)
  return _mm256_dpwssd_epi32(_mm256_dpwssd_epi32(acc, a, twice(x)), b, twice(x + 16));
#else
  return _mm256_add_epi32(acc, _mm256_add_epi32(_mm256_madd_epi16(a, twice(x)), _mm256_madd_epi16(b, twice(x + 16))));
#endif
}
template <class C> MODELC_INLINE __m256i dot(Bytes lo, Bytes hi, const std::byte* x) {
  return add_dot<C>(add_dot<C>(_mm256_setzero_si256(), lo, x), hi, x + 32);
}
// The same with the scales of the two halves of group J.
template <class C, int J> MODELC_INLINE __m256i dot_halves(Bytes lo, Bytes hi, const std::byte* x, __m256i scales) {
  const __m256i both = _mm256_shuffle_epi32(scales, J * 0x55);
  const __m256i low = _mm256_srai_epi32(_mm256_slli_epi32(both, 16), 16), high = _mm256_srai_epi32(both, 16);
  const __m256i none = _mm256_setzero_si256();
  return _mm256_add_epi32(_mm256_mullo_epi32(add_dot<C>(none, lo, x), low), _mm256_mullo_epi32(add_dot<C>(none, hi, x + 32), high));
}
MODELC_INLINE Bytes twice(const void* p) { return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(p))); }
MODELC_INLINE F8 twice_f32(const float* p) { return _mm256_broadcast_ps(reinterpret_cast<const __m128*>(p)); }
// Four vectors' sums over each lane of 16 bytes, in order.
MODELC_INLINE __m256i four_sums(const __m256i (&v)[4]) {
  const __m256i ab = _mm256_add_epi32(_mm256_unpacklo_epi32(v[0], v[1]), _mm256_unpackhi_epi32(v[0], v[1]));
  const __m256i cd = _mm256_add_epi32(_mm256_unpacklo_epi32(v[2], v[3]), _mm256_unpackhi_epi32(v[2], v[3]));
  return _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
}
constexpr int log2_of(int v) { return v <= 1 ? 0 : 1 + log2_of(v / 2); }

// N groups from g on of M tokens and one pair of rows.
template <class C, int M, int N>
MODELC_INLINE void pair_step(const std::byte* a, const std::byte* b, const Record (&x)[M], int64_t g, F8 (&acc)[M]) {
  const auto at_a = C::at(a, g), at_b = C::at(b, g);
  F8 d = _mm256_setzero_ps(), minimum = d;
  C::scales(at_a, at_b, N, d, minimum);
  __m256i halves = _mm256_setzero_si256();
  if constexpr (C::halved) halves = C::halves(at_a, at_b);
  Bytes lo[4], hi[4];
  C::template codes<0>(at_a, at_b, lo[0], hi[0]);
  if constexpr (N > 1) C::template codes<1>(at_a, at_b, lo[1], hi[1]);
  if constexpr (N > 2) C::template codes<2>(at_a, at_b, lo[2], hi[2]);
  if constexpr (N > 3) C::template codes<3>(at_a, at_b, lo[3], hi[3]);
  for (int t = 0; t < M; ++t) {
    const std::byte* codes = x[t].codes + g * 64;
    __m256i parts[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
    if constexpr (C::halved) {
      static_assert(!C::halved || N == 4);
      parts[0] = dot_halves<C, 0>(lo[0], hi[0], codes + 0, halves);
      parts[1] = dot_halves<C, 1>(lo[1], hi[1], codes + 64, halves);
      parts[2] = dot_halves<C, 2>(lo[2], hi[2], codes + 128, halves);
      parts[3] = dot_halves<C, 3>(lo[3], hi[3], codes + 192, halves);
    } else {
      for (int j = 0; j < N; ++j) parts[j] = dot<C>(lo[j], hi[j], codes + j * 64);
    }
    __m256i s = four_sums(parts);
    if constexpr (C::halved) {
      const __m256i low = _mm256_srai_epi32(_mm256_slli_epi32(halves, 16), 16), high = _mm256_srai_epi32(halves, 16);
      const __m256i of = _mm256_add_epi32(_mm256_mullo_epi32(low, twice(x[t].low + g)), _mm256_mullo_epi32(high, twice(x[t].high + g)));
      s = _mm256_sub_epi32(s, _mm256_slli_epi32(of, log2_of(C::bias)));
    }
    if constexpr (!C::halved && C::bias != 0) s = _mm256_sub_epi32(s, _mm256_slli_epi32(twice(x[t].sum + g), log2_of(C::bias)));
    acc[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(s) * d, twice_f32(x[t].scale + g), acc[t]);
    if constexpr (C::moved) acc[t] = _mm256_fmadd_ps(minimum, twice_f32(x[t].moved + g), acc[t]);
  }
}

// Rows n0, n0 + gap, … of P pairs, for M tokens.
template <class C, int M, int P> void pairs(const ProductArgs& args, int64_t m0, int64_t n0, int64_t gap) {
  const int64_t padded = groups_of(args.k), groups = args.k / 32;
  Record x[M];
  F8 acc[P][M];
  for (int t = 0; t < M; ++t) x[t] = record(args.rounded + (m0 + t) * args.rounded_stride, padded);
  for (int p = 0; p < P; ++p)
    for (int t = 0; t < M; ++t) acc[p][t] = _mm256_setzero_ps();
  const std::byte* rows = args.w + n0 * args.w_stride;
  const int64_t next = gap * args.w_stride;
  int64_t g = 0;
  for (; g + 4 <= groups; g += 4)
    for (int p = 0; p < P; ++p) pair_step<C, M, 4>(rows + 2 * p * next, rows + (2 * p + 1) * next, x, g, acc[p]);
  if constexpr (C::block == 32) {
    for (int p = 0; p < P; ++p) {
      const std::byte *a = rows + 2 * p * next, *b = rows + (2 * p + 1) * next;
      if (groups - g == 1) pair_step<C, M, 1>(a, b, x, g, acc[p]);
      if (groups - g == 2) pair_step<C, M, 2>(a, b, x, g, acc[p]);
      if (groups - g == 3) pair_step<C, M, 3>(a, b, x, g, acc[p]);
    }
  }
  for (int p = 0; p < P; ++p)
    for (int t = 0; t < M; ++t) {
      F8 s = acc[p][t] + _mm256_permute_ps(acc[p][t], 0xB1);
      s = s + _mm256_permute_ps(s, 0x4E);
      put(args, m0 + t, n0 + 2 * p * gap, _mm256_cvtss_f32(s));
      if (gap > 0) put(args, m0 + t, n0 + (2 * p + 1) * gap, _mm_cvtss_f32(_mm256_extractf128_ps(s, 1)));
    }
}

template <class C, int M> void direct_tokens(const ProductArgs& args) {
  constexpr int P = M == 1 ? 2 : 1;
  const int64_t gap = args.n / (2 * P);
  for (int64_t n = 0; n < gap; ++n) pairs<C, M, P>(args, 0, n, gap);
  for (int64_t n = gap * 2 * P; n < args.n; ++n) pairs<C, M, 1>(args, 0, n, 0);   // one row, as both of a pair
}

// ---- many tokens

MODELC_INLINE I multiply(I a, I b) {
#if defined(__AVX512F__)
  return _mm512_mullo_epi32(a, b);
#else
  return _mm256_mullo_epi32(a, b);
#endif
}
MODELC_INLINE I load_int(const void* p) {
  I v;
  copy_bytes(&v, p, sizeof v);
  return v;
}
// acc += w · x: in each lane two numbers of 16 bits.
MODELC_INLINE I add_products(I acc, I w, I x) {
#if defined(__AVX512VNNI__)
  return _mm512_dpwssd_epi32(acc, w, x);
#elif defined(__AVX512F__)
  return add_int(acc, _mm512_madd_epi16(w, x));
#else
  return add_int(acc, _mm256_madd_epi16(w, x));
#endif
}
constexpr int64_t group_vectors_of_panel = 16;             // each of all rows, two numbers of 16 bits a row

// A panel of R rows: [group][16][R][2 numbers of 16 bits] codes; [group][R] scales; minima or the halves' scales, if any.
template <int64_t R> struct Panel {
  std::byte* codes;
  float* scale;
  float* minimum;
  std::int32_t* halves;                                    // [group][2][R]
};
template <int64_t R> MODELC_INLINE Panel<R> panel_at(float* scratch, int64_t groups) {
  float* scale = scratch + groups * group_vectors_of_panel * R;
  float* minimum = scale + groups * R;
  return {reinterpret_cast<std::byte*>(scratch), scale, minimum, reinterpret_cast<std::int32_t*>(minimum)};
}

// Four vectors of 4 numbers in each lane of 16 bytes become those of 4 rows: v[j] the j-th number of all.
MODELC_INLINE void turn(__m256i (&v)[4]) {
  const __m256i a = _mm256_unpacklo_epi32(v[0], v[1]), b = _mm256_unpackhi_epi32(v[0], v[1]);
  const __m256i c = _mm256_unpacklo_epi32(v[2], v[3]), d = _mm256_unpackhi_epi32(v[2], v[3]);
  v[0] = _mm256_unpacklo_epi64(a, c);
  v[1] = _mm256_unpackhi_epi64(a, c);
  v[2] = _mm256_unpacklo_epi64(b, d);
  v[3] = _mm256_unpackhi_epi64(b, d);
}

// Four bytes of each of 8 rows, of elements 4 i … of a group, into the panel's group.
template <class C, int64_t R> MODELC_INLINE void put_codes(__m256i v, int i, std::byte* group, int64_t row) {
  // As numbers of 16 bits with sign, two and two.
  const __m256i first =
      _mm256_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13);
  const __m256i second = _mm256_setr_epi8(-1, 2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1, 2, -1, 3, -1, 6, -1, 7, -1, 10,
                                          -1, 11, -1, 14, -1, 15);
  __m256i a = _mm256_shuffle_epi8(v, first), b = _mm256_shuffle_epi8(v, second);
  a = C::as_signed ? _mm256_srai_epi16(a, 8) : _mm256_sub_epi16(_mm256_srli_epi16(a, 8), _mm256_set1_epi16(C::bias));
  b = C::as_signed ? _mm256_srai_epi16(b, 8) : _mm256_sub_epi16(_mm256_srli_epi16(b, 8), _mm256_set1_epi16(C::bias));
  copy_bytes(group + (2 * i * R + row) * 4, &a, 32);
  copy_bytes(group + ((2 * i + 1) * R + row) * 4, &b, 32);
}

template <class C, int64_t R, int J, class At>
MODELC_INLINE void fill_group(const At (&a)[4], const At (&b)[4], std::byte* group, int64_t row) {
  Bytes lo[4], hi[4];
  for (int i = 0; i < 4; ++i) C::template codes<J>(a[i], b[i], lo[i], hi[i]);
  turn(lo);
  turn(hi);
  for (int i = 0; i < 4; ++i) {
    put_codes<C, R>(lo[i], i, group, row);
    put_codes<C, R>(hi[i], 4 + i, group, row);
  }
}

// Rows n0, … of w; beyond the last one that one again.
template <class C, int64_t R> void fill(const ProductArgs& args, int64_t n0, const Panel<R>& p) {
  const int64_t groups = args.k / 32, held = args.n - n0 < R ? args.n - n0 : R;
  const auto row_at = [&](int64_t r) { return args.w + (n0 + (r < held ? r : held - 1)) * args.w_stride; };
  for (int64_t row = 0; row < R; row += 8)
    for (int64_t g = 0; g < groups; g += 4) {
      using At = decltype(C::at(args.w, 0));
      At a[4], b[4];
      for (int i = 0; i < 4; ++i) {
        a[i] = C::at(row_at(row + i), g);
        b[i] = C::at(row_at(row + 4 + i), g);
      }
      const int64_t left = groups - g, size = group_vectors_of_panel * R * 4;
      std::byte* group = p.codes + g * size;
      fill_group<C, R, 0>(a, b, group, row);
      if (left > 1) fill_group<C, R, 1>(a, b, group + size, row);
      if (left > 2) fill_group<C, R, 2>(a, b, group + 2 * size, row);
      if (left > 3) fill_group<C, R, 3>(a, b, group + 3 * size, row);
      F8 d[4], m[4];
      for (int i = 0; i < 4; ++i) {
        d[i] = m[i] = _mm256_setzero_ps();
        C::scales(a[i], b[i], left < 4 ? static_cast<int>(left) : 4, d[i], m[i]);
      }
      __m256i v[4];
      for (int i = 0; i < 4; ++i) v[i] = _mm256_castps_si256(d[i]);
      turn(v);
      for (int i = 0; i < 4 && i < left; ++i) copy_bytes(p.scale + (g + i) * R + row, &v[i], 32);
      if constexpr (C::moved) {
        for (int i = 0; i < 4; ++i) v[i] = _mm256_castps_si256(m[i]);
        turn(v);
        for (int i = 0; i < 4 && i < left; ++i) copy_bytes(p.minimum + (g + i) * R + row, &v[i], 32);
      }
      if constexpr (C::halved) {
        for (int i = 0; i < 4; ++i) v[i] = C::halves(a[i], b[i]);
        turn(v);
        for (int i = 0; i < 4; ++i) {
          const __m256i low = _mm256_srai_epi32(_mm256_slli_epi32(v[i], 16), 16), high = _mm256_srai_epi32(v[i], 16);
          copy_bytes(p.halves + (g + i) * 2 * R + row, &low, 32);
          copy_bytes(p.halves + ((g + i) * 2 + 1) * R + row, &high, 32);
        }
      }
    }
}

// Group g of M tokens against V vectors of rows: acc += scaled sums.
template <class C, int V, int M> MODELC_INLINE void panel_step(const Panel<V * lanes>& p, const Record (&x)[M], int64_t g, F (&acc)[V][M]) {
  constexpr int64_t row_bytes = V * lanes * 4;
  constexpr int half = static_cast<int>(group_vectors_of_panel / 2);
  const std::byte* w = p.codes + g * group_vectors_of_panel * row_bytes;
  I sums_of[V][M], first[V][M];
  for (int part = 0; part < 2; ++part) {
    if (part == 0 || C::halved)
      for (int v = 0; v < V; ++v)
        for (int t = 0; t < M; ++t) sums_of[v][t] = splat_int(0);
    for (int i = part * half; i < (part + 1) * half; ++i) {
      I rows[V];
      for (int v = 0; v < V; ++v) rows[v] = load_int(w + i * row_bytes + v * lanes * 4);
      for (int t = 0; t < M; ++t) {
        std::int32_t both;
        copy_bytes(&both, x[t].codes + g * 64 + i * 4, 4);
        const I two_of = splat_int(both);
        for (int v = 0; v < V; ++v) sums_of[v][t] = add_products(sums_of[v][t], rows[v], two_of);
      }
    }
    if constexpr (C::halved) {
      for (int v = 0; v < V; ++v) {
        const I scales = load_int(p.halves + (g * 2 + part) * V * lanes + v * lanes);
        for (int t = 0; t < M; ++t) {
          const I scaled = multiply(sums_of[v][t], scales);
          if (part == 0) first[v][t] = scaled;
          else sums_of[v][t] = add_int(first[v][t], scaled);
        }
      }
    }
  }
  for (int v = 0; v < V; ++v) {
    const F d = load(p.scale + g * V * lanes + v * lanes);
    for (int t = 0; t < M; ++t) acc[v][t] = fma(to_floats(sums_of[v][t]) * d, splat(x[t].scale[g]), acc[v][t]);
    if constexpr (C::moved) {
      const F minimum = load(p.minimum + g * V * lanes + v * lanes);
      for (int t = 0; t < M; ++t) acc[v][t] = fma(minimum, splat(x[t].moved[g]), acc[v][t]);
    }
  }
}

template <class C, int V, int M> void panel_tile(const ProductArgs& args, const Panel<V * lanes>& p, int64_t m0, int64_t n0) {
  const int64_t padded = groups_of(args.k), groups = args.k / 32;
  Record x[M];
  F acc[4][V][M];
  for (int t = 0; t < M; ++t) x[t] = record(args.rounded + (m0 + t) * args.rounded_stride, padded);
  for (auto& sums_of : acc)
    for (auto& row : sums_of)
      for (F& s : row) s = zero();
  for (int64_t g = 0; g < groups; ++g) panel_step<C, V, M>(p, x, g, acc[g % 4]);
  for (int v = 0; v < V; ++v) {
    const int64_t n = n0 + v * lanes, rows = args.n - n < lanes ? args.n - n : lanes;
    for (int t = 0; t < M; ++t) {
      F s = (acc[0][v][t] + acc[1][v][t]) + (acc[2][v][t] + acc[3][v][t]);
      if (rows == lanes) {
        if (args.bias != nullptr) s = s + load(args.bias + n);
        if (args.residual != nullptr) s = s + load(args.residual + (m0 + t) * args.residual_stride + n);
        store(args.out + (m0 + t) * args.out_stride + n, s);
      } else {
        float each[lanes];
        store(each, s);
        for (int64_t r = 0; r < rows; ++r) put(args, m0 + t, n + r, each[r]);
      }
    }
  }
}

template <class C, int V> void panel_of_rows(const ProductArgs& args, int64_t n) {
  const auto p = panel_at<V * lanes>(args.scratch, groups_of(args.k));
  fill<C, V * lanes>(args, n, p);
  int64_t m = 0;
  for (; m + rounded_tile_m <= args.m; m += rounded_tile_m) panel_tile<C, V, rounded_tile_m>(args, p, m, n);
  for (; m + 2 <= args.m; m += 2) panel_tile<C, V, 2>(args, p, m, n);
  if (m < args.m) panel_tile<C, V, 1>(args, p, m, n);
}

template <class C> void rounded_by_panels(const ProductArgs& args) {
  int64_t n = 0;
  for (; n + (panel_vectors - 1) * lanes < args.n; n += panel_vectors * lanes) panel_of_rows<C, panel_vectors>(args, n);
  for (; n < args.n; n += lanes) panel_of_rows<C, 1>(args, n);
}

}  // namespace

int64_t rounded_scratch(int64_t m, int64_t k) {
  if (m <= rounded_direct_m) return 0;
  return groups_of(k) * (group_vectors_of_panel + 3) * panel_vectors * lanes;
}

void rounded_product(const ProductArgs& args) {
  with_codes(args.encoding, [&](auto c) {
    using C = decltype(c);
    switch (args.m) {
      case 1: return direct_tokens<C, 1>(args);
      case 2: return direct_tokens<C, 2>(args);
      case 3: return direct_tokens<C, 3>(args);
      case 4: return direct_tokens<C, 4>(args);
      default: return rounded_by_panels<C>(args);
    }
  });
}

#endif

}  // namespace modelc::cpu::MODELC_ISA

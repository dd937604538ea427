// Products of quantised weights with activations that are rounded to 8 bits: sums of a group of 32 products are whole
// numbers, exact in any order, and are then scaled and added in f32: groups 0, 4, 8, … of an element go into one sum,
// 1, 5, … into another, and the four are added last, two and two. So here too an element has one order, and a token the
// same bits alone and in a batch.
//
// Few tokens: two rows of weights at a time in one vector, as codes.h gives them, from rows that lie far apart. Many
// tokens: a panel of `lanes` rows is unpacked once, so that a lane is a row, and its sums need no adding across lanes.
#include "runtime/cpu/kernels/simd.h"
#include "runtime/cpu/kernels/table.h"
#if defined(__AVX2__)
#include "runtime/cpu/kernels/codes.h"
#else
#include "runtime/cpu/kernels/scalar_codes.h"
#endif

namespace modelc::cpu::MODELC_ISA {
namespace {

// Where the parts of a token's record are; entries of groups beyond k are 0, up to a multiple of 4 groups.
struct Record {
  const std::byte* codes;                                  // [groups][32] i8
  const float* scale;                                      // [groups]
  const float* moved;                                      // scale · sum of the codes: what a minimum is multiplied by
  const std::int32_t* sum;                                 // of the codes
  const std::int32_t* halves;                              // of each 16 of them: two of 16 bits
};
MODELC_INLINE int64_t groups_of(int64_t k) { return (k / 32 + 3) / 4 * 4; }
MODELC_INLINE Record record(const std::byte* at, int64_t groups) {
  const std::byte* numbers = at + groups * 32;
  return {at, reinterpret_cast<const float*>(numbers), reinterpret_cast<const float*>(numbers) + groups,
          reinterpret_cast<const std::int32_t*>(numbers) + 2 * groups, reinterpret_cast<const std::int32_t*>(numbers) + 3 * groups};
}

// One result: bias and residual in the order of every product.
MODELC_INLINE void put(const ProductArgs& args, int64_t m, int64_t n, float s) {
  if (args.bias != nullptr) s = s + args.bias[n];
  if (args.residual != nullptr) s = s + args.residual[m * args.residual_stride + n];
  args.out[m * args.out_stride + n] = s;
}

}  // namespace

int64_t rounded_size(int64_t k) { return (groups_of(k) * 48 + 63) / 64 * 64; }

void round(const float* x, int64_t k, std::byte* to) {
  const int64_t groups = groups_of(k);
  auto* codes = reinterpret_cast<std::int8_t*>(to);
  auto* scale = reinterpret_cast<float*>(to + groups * 32);
  float* moved = scale + groups;
  auto* sum_of = reinterpret_cast<std::int32_t*>(moved + groups);
  std::int32_t* halves = sum_of + groups;
  const F magic = splat(12582912.0F);                      // 1.5 · 2^23: adding it rounds to a whole number
  for (int64_t g = 0; g < groups; ++g) {
    if (g * 32 >= k) {
      for (int64_t i = 0; i < 32; ++i) codes[g * 32 + i] = 0;
      scale[g] = moved[g] = 0;
      sum_of[g] = halves[g] = 0;
      continue;
    }
    F most = zero(), nothing = zero();
    for (int64_t i = 0; i < 32; i += lanes) {
      const F v = load(x + g * 32 + i);
      most = max(max(v, zero() - v), most);
      nothing = fma(v, zero(), nothing);                   // NaN if one is not finite
    }
    const float largest_of = largest(most);
    const F factor = splat(largest_of > 0 ? 127.0F / largest_of : 0.0F);
    std::int32_t whole[32];
    for (int64_t i = 0; i < 32; i += lanes) {
      const I v = sub_int(bits(load(x + g * 32 + i) * factor + magic), bits(magic));
      copy_bytes(whole + i, &v, lanes * 4);
    }
    std::int32_t low = 0, high = 0;
    for (int64_t i = 0; i < 16; ++i) {
      const auto a = static_cast<std::int8_t>(whole[i]), b = static_cast<std::int8_t>(whole[16 + i]);
      codes[g * 32 + i] = a;
      codes[g * 32 + 16 + i] = b;
      low += a;
      high += b;
    }
    scale[g] = largest_of / 127.0F + sum(nothing);
    moved[g] = scale[g] * static_cast<float>(low + high);
    sum_of[g] = low + high;
    const std::int16_t both[2] = {static_cast<std::int16_t>(low), static_cast<std::int16_t>(high)};
    copy_bytes(halves + g, both, 4);
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
        const auto* v = reinterpret_cast<const std::int8_t*>(x.codes) + g * 32;
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
#if defined(__AVX512F__)
constexpr int rounded_tile_m = 4;                          // tokens whose sums, four each, stay in registers
#else
constexpr int rounded_tile_m = 2;
#endif

// ---- few tokens

// For the rows of both lanes: four sums of the products of the codes of one group.
template <class C> MODELC_INLINE __m256i dot(Bytes lo, Bytes hi, Bytes x_lo, Bytes x_hi) {
#if defined(__AVX512VNNI__)
  return _mm256_dpbusd_epi32(_mm256_dpbusd_epi32(_mm256_setzero_si256(), lo, x_lo), hi, x_hi);
#else
  const __m256i ones = _mm256_set1_epi16(1);
  if constexpr (C::as_signed) {
    const __m256i a = _mm256_maddubs_epi16(_mm256_abs_epi8(lo), _mm256_sign_epi8(x_lo, lo));
    const __m256i b = _mm256_maddubs_epi16(_mm256_abs_epi8(hi), _mm256_sign_epi8(x_hi, hi));
    return _mm256_add_epi32(_mm256_madd_epi16(a, ones), _mm256_madd_epi16(b, ones));
  }
  static_assert(C::as_signed || 4 * C::most * 127 <= 32767);
  return _mm256_madd_epi16(_mm256_add_epi16(_mm256_maddubs_epi16(lo, x_lo), _mm256_maddubs_epi16(hi, x_hi)), ones);
#endif
}
// The same with the scales of the two halves of group J.
template <class C, int J> MODELC_INLINE __m256i dot_halves(Bytes lo, Bytes hi, Bytes x_lo, Bytes x_hi, __m256i scales) {
  static_assert(4 * C::most * 127 <= 32767);               // four products fit 16 bits
#if defined(__AVX512VNNI__)
  const __m256i none = _mm256_setzero_si256();
  const __m256i both = _mm256_packs_epi32(_mm256_dpbusd_epi32(none, lo, x_lo), _mm256_dpbusd_epi32(none, hi, x_hi));
#else
  const __m256i both = _mm256_hadd_epi16(_mm256_maddubs_epi16(lo, x_lo), _mm256_maddubs_epi16(hi, x_hi));
#endif
  constexpr char a = 4 * J, b = 4 * J + 1, c = 4 * J + 2, d = 4 * J + 3;
  const __m256i order = _mm256_setr_epi8(a, b, a, b, a, b, a, b, c, d, c, d, c, d, c, d, a, b, a, b, a, b, a, b, c, d, c, d, c, d, c, d);
  return _mm256_madd_epi16(both, _mm256_shuffle_epi8(scales, order));
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
    const std::byte* codes = x[t].codes + g * 32;
    __m256i parts[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
    if constexpr (C::halved) {
      static_assert(!C::halved || N == 4);
      parts[0] = dot_halves<C, 0>(lo[0], hi[0], twice(codes), twice(codes + 16), halves);
      parts[1] = dot_halves<C, 1>(lo[1], hi[1], twice(codes + 32), twice(codes + 48), halves);
      parts[2] = dot_halves<C, 2>(lo[2], hi[2], twice(codes + 64), twice(codes + 80), halves);
      parts[3] = dot_halves<C, 3>(lo[3], hi[3], twice(codes + 96), twice(codes + 112), halves);
    } else {
      for (int j = 0; j < N; ++j) parts[j] = dot<C>(lo[j], hi[j], twice(codes + j * 32), twice(codes + j * 32 + 16));
    }
    __m256i s = four_sums(parts);
    if constexpr (C::halved)
      s = _mm256_sub_epi32(s, _mm256_slli_epi32(_mm256_madd_epi16(halves, twice(x[t].halves + g)), log2_of(C::bias)));
    else if constexpr (C::bias != 0) s = _mm256_sub_epi32(s, _mm256_slli_epi32(twice(x[t].sum + g), log2_of(C::bias)));
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
// acc += w · x: in each lane four codes of bytes, or two of 16 bits.
MODELC_INLINE I add_products(I acc, const std::byte* w, const std::byte* x) {
  I v;
  copy_bytes(&v, w, sizeof v);
  std::int32_t four;
  copy_bytes(&four, x, 4);
#if defined(__AVX512VNNI__)
  return _mm512_dpbusd_epi32(acc, v, splat_int(four));
#elif defined(__AVX512F__)
  return add_int(acc, _mm512_madd_epi16(v, splat_int(four)));
#else
  return add_int(acc, _mm256_madd_epi16(v, splat_int(four)));
#endif
}
#if defined(__AVX512VNNI__)
constexpr int64_t code_bytes = 1;                          // in a panel, and of the activations beside it
#else
constexpr int64_t code_bytes = 2;
#endif
constexpr int64_t group_vectors_of_panel = 8 * code_bytes; // each of all rows and 4 bytes a row

// A panel: [group][8 · code_bytes][lanes][4 bytes] codes; [group][lanes] scales; minima or the halves' scales, if any.
struct Panel {
  std::byte* codes;
  float* scale;
  float* minimum;
  std::int32_t* halves;                                    // [group][2][lanes]
};
MODELC_INLINE Panel panel_at(float* scratch, int64_t groups) {
  float* scale = scratch + groups * group_vectors_of_panel * lanes;
  float* minimum = scale + groups * lanes;
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
template <class C> MODELC_INLINE void put_codes(__m256i v, int i, std::byte* group, int64_t row) {
#if defined(__AVX512VNNI__)
  copy_bytes(group + (i * lanes + row) * 4, &v, 32);
#else
  // As numbers of 16 bits with sign, two and two.
  const __m256i first =
      _mm256_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13);
  const __m256i second = _mm256_setr_epi8(-1, 2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1, 2, -1, 3, -1, 6, -1, 7, -1, 10,
                                          -1, 11, -1, 14, -1, 15);
  __m256i a = _mm256_shuffle_epi8(v, first), b = _mm256_shuffle_epi8(v, second);
  a = C::as_signed ? _mm256_srai_epi16(a, 8) : _mm256_sub_epi16(_mm256_srli_epi16(a, 8), _mm256_set1_epi16(C::bias));
  b = C::as_signed ? _mm256_srai_epi16(b, 8) : _mm256_sub_epi16(_mm256_srli_epi16(b, 8), _mm256_set1_epi16(C::bias));
  copy_bytes(group + (2 * i * lanes + row) * 4, &a, 32);
  copy_bytes(group + ((2 * i + 1) * lanes + row) * 4, &b, 32);
#endif
}

template <class C, int J, class At> MODELC_INLINE void fill_group(const At (&a)[4], const At (&b)[4], std::byte* group, int64_t row) {
  Bytes lo[4], hi[4];
  for (int i = 0; i < 4; ++i) C::template codes<J>(a[i], b[i], lo[i], hi[i]);
  turn(lo);
  turn(hi);
  for (int i = 0; i < 4; ++i) {
    put_codes<C>(lo[i], i, group, row);
    put_codes<C>(hi[i], 4 + i, group, row);
  }
}

// Rows n0, … of w; beyond the last one that one again.
template <class C> void fill(const ProductArgs& args, int64_t n0, const Panel& p) {
  const int64_t groups = args.k / 32, held = args.n - n0 < lanes ? args.n - n0 : lanes;
  const auto row_at = [&](int64_t r) { return args.w + (n0 + (r < held ? r : held - 1)) * args.w_stride; };
  for (int64_t row = 0; row < lanes; row += 8)
    for (int64_t g = 0; g < groups; g += 4) {
      using At = decltype(C::at(args.w, 0));
      At a[4], b[4];
      for (int i = 0; i < 4; ++i) {
        a[i] = C::at(row_at(row + i), g);
        b[i] = C::at(row_at(row + 4 + i), g);
      }
      const int64_t left = groups - g, size = group_vectors_of_panel * lanes * 4;
      std::byte* group = p.codes + g * size;
      fill_group<C, 0>(a, b, group, row);
      if (left > 1) fill_group<C, 1>(a, b, group + size, row);
      if (left > 2) fill_group<C, 2>(a, b, group + 2 * size, row);
      if (left > 3) fill_group<C, 3>(a, b, group + 3 * size, row);
      F8 d[4], m[4];
      for (int i = 0; i < 4; ++i) {
        d[i] = m[i] = _mm256_setzero_ps();
        C::scales(a[i], b[i], left < 4 ? static_cast<int>(left) : 4, d[i], m[i]);
      }
      __m256i v[4];
      for (int i = 0; i < 4; ++i) v[i] = _mm256_castps_si256(d[i]);
      turn(v);
      for (int i = 0; i < 4 && i < left; ++i) copy_bytes(p.scale + (g + i) * lanes + row, &v[i], 32);
      if constexpr (C::moved) {
        for (int i = 0; i < 4; ++i) v[i] = _mm256_castps_si256(m[i]);
        turn(v);
        for (int i = 0; i < 4 && i < left; ++i) copy_bytes(p.minimum + (g + i) * lanes + row, &v[i], 32);
      }
      if constexpr (C::halved) {
        for (int i = 0; i < 4; ++i) v[i] = C::halves(a[i], b[i]);
        turn(v);
        for (int i = 0; i < 4; ++i) {
          const __m256i low = _mm256_srai_epi32(_mm256_slli_epi32(v[i], 16), 16), high = _mm256_srai_epi32(v[i], 16);
          copy_bytes(p.halves + (g + i) * 2 * lanes + row, &low, 32);
          copy_bytes(p.halves + ((g + i) * 2 + 1) * lanes + row, &high, 32);
        }
      }
    }
}

// Group g of M tokens against all rows of the panel: acc[token] += scaled sums.
template <class C, int M>
MODELC_INLINE void panel_step(const Panel& p, const Record (&x)[M], const std::byte* const (&codes)[M], int64_t g, F (&acc)[4][M], int j) {
  const std::byte* w = p.codes + g * group_vectors_of_panel * lanes * 4;
  constexpr int half = static_cast<int>(group_vectors_of_panel / 2);
  I low[M], high[M];
  for (int t = 0; t < M; ++t) {
    low[t] = high[t] = splat_int(0);
#if defined(__AVX512VNNI__)
    if constexpr (C::halved) {
      std::int16_t sums_of[2];
      copy_bytes(sums_of, x[t].halves + g, 4);
      low[t] = splat_int(-C::bias * sums_of[0]);
      high[t] = splat_int(-C::bias * sums_of[1]);
    } else if constexpr (C::bias != 0) {
      low[t] = splat_int(-C::bias * x[t].sum[g]);
    }
#endif
  }
  for (int i = 0; i < half; ++i)
    for (int t = 0; t < M; ++t) low[t] = add_products(low[t], w + i * lanes * 4, codes[t] + g * 32 * code_bytes + i * 4);
  for (int i = half; i < 2 * half; ++i)
    for (int t = 0; t < M; ++t) {
      I& s = C::halved ? high[t] : low[t];
      s = add_products(s, w + i * lanes * 4, codes[t] + g * 32 * code_bytes + i * 4);
    }
  if constexpr (C::halved) {
    I first, second;
    copy_bytes(&first, p.halves + g * 2 * lanes, sizeof first);
    copy_bytes(&second, p.halves + (g * 2 + 1) * lanes, sizeof second);
    for (int t = 0; t < M; ++t) low[t] = add_int(multiply(low[t], first), multiply(high[t], second));
  }
  const F d = load(p.scale + g * lanes);
  for (int t = 0; t < M; ++t) acc[j][t] = fma(to_floats(low[t]) * d, splat(x[t].scale[g]), acc[j][t]);
  if constexpr (C::moved) {
    const F minimum = load(p.minimum + g * lanes);
    for (int t = 0; t < M; ++t) acc[j][t] = fma(minimum, splat(x[t].moved[g]), acc[j][t]);
  }
}

template <class C, int M> void panel_tile(const ProductArgs& args, const Panel& p, const std::byte* wide, int64_t m0, int64_t n0) {
  const int64_t padded = groups_of(args.k), groups = args.k / 32;
  Record x[M];
  const std::byte* codes[M];
  F acc[4][M];
  for (int t = 0; t < M; ++t) {
    x[t] = record(args.rounded + (m0 + t) * args.rounded_stride, padded);
    codes[t] = code_bytes == 1 ? x[t].codes : wide + (m0 + t) * padded * 32 * code_bytes;
    for (int j = 0; j < 4; ++j) acc[j][t] = zero();
  }
  int64_t g = 0;
  for (; g + 4 <= groups; g += 4) {
    panel_step<C, M>(p, x, codes, g, acc, 0);
    panel_step<C, M>(p, x, codes, g + 1, acc, 1);
    panel_step<C, M>(p, x, codes, g + 2, acc, 2);
    panel_step<C, M>(p, x, codes, g + 3, acc, 3);
  }
  if (g < groups) panel_step<C, M>(p, x, codes, g, acc, 0);
  if (g + 1 < groups) panel_step<C, M>(p, x, codes, g + 1, acc, 1);
  if (g + 2 < groups) panel_step<C, M>(p, x, codes, g + 2, acc, 2);
  const int64_t rows = args.n - n0 < lanes ? args.n - n0 : lanes;
  for (int t = 0; t < M; ++t) {
    F s = (acc[0][t] + acc[1][t]) + (acc[2][t] + acc[3][t]);
    if (rows == lanes) {
      if (args.bias != nullptr) s = s + load(args.bias + n0);
      if (args.residual != nullptr) s = s + load(args.residual + (m0 + t) * args.residual_stride + n0);
      store(args.out + (m0 + t) * args.out_stride + n0, s);
    } else {
      float each[lanes];
      store(each, s);
      for (int64_t r = 0; r < rows; ++r) put(args, m0 + t, n0 + r, each[r]);
    }
  }
}

template <class C> void rounded_by_panels(const ProductArgs& args) {
  const int64_t padded = groups_of(args.k);
  const Panel p = panel_at(args.scratch, padded);
  auto* wide = reinterpret_cast<std::byte*>(args.scratch + padded * (group_vectors_of_panel + 3) * lanes);
  if constexpr (code_bytes == 2)
    for (int64_t m = 0; m < args.m; ++m)
      for (int64_t i = 0; i < padded * 32; i += 16) {
        const __m256i v = _mm256_cvtepi8_epi16(bytes16(args.rounded + m * args.rounded_stride + i));
        copy_bytes(wide + (m * padded * 32 + i) * 2, &v, 32);
      }
  for (int64_t n = 0; n < args.n; n += lanes) {
    fill<C>(args, n, p);
    int64_t m = 0;
    for (; m + rounded_tile_m <= args.m; m += rounded_tile_m) panel_tile<C, rounded_tile_m>(args, p, wide, m, n);
    for (; m + 2 <= args.m; m += 2) panel_tile<C, 2>(args, p, wide, m, n);
    if (m < args.m) panel_tile<C, 1>(args, p, wide, m, n);
  }
}

}  // namespace

int64_t rounded_scratch(int64_t m, int64_t k) {
  if (m <= rounded_direct_m) return 0;
  const int64_t padded = groups_of(k);
  return padded * (group_vectors_of_panel + 3) * lanes + (code_bytes == 2 ? m * padded * 16 : 0);
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

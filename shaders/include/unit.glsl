// As many elements of a stored row as one reading of its words gives: `unit` of them, a block of 32 or eight plain numbers. For devices on
// which each word that is read costs; after weights.glsl. The same values as decode8's.
#if ENCODING == F32 || ENCODING == F16 || ENCODING == BF16
const uint unit = 8u;
#else
const uint unit = 32u;
#endif

// n words from an even address on; none behind the last of their bytes is read.
#define WORDS(to, at, n)                                               \
  {                                                                    \
    const uint i_ = (at) >> 2;                                         \
    const bool odd_ = ((at) & 2u) != 0u;                               \
    uint lo_ = weights.w[i_];                                          \
    for (uint j_ = 0u; j_ < (n); ++j_) {                               \
      const uint hi_ = weights.w[((at) + 4u * j_ + 2u + (j_ + 1u < (n) ? 2u : 0u)) >> 2]; \
      to[j_] = odd_ ? (lo_ >> 16) | (hi_ << 16) : lo_;                 \
      lo_ = hi_;                                                       \
    }                                                                  \
  }

// n words and the two bytes behind them, as the lower half of one more.
#define WORDS_AND_HALF(to, at, n)                                      \
  {                                                                    \
    const uint i_ = (at) >> 2;                                         \
    const bool odd_ = ((at) & 2u) != 0u;                               \
    uint lo_ = weights.w[i_];                                          \
    for (uint j_ = 0u; j_ < (n); ++j_) {                               \
      const uint hi_ = weights.w[i_ + j_ + 1u];                        \
      to[j_] = odd_ ? (lo_ >> 16) | (hi_ << 16) : lo_;                 \
      lo_ = hi_;                                                       \
    }                                                                  \
    to[n] = odd_ ? lo_ >> 16 : lo_;                                    \
  }

// Elements k … k + unit - 1 of the row that begins at byte `row`; k is a multiple of unit.
void decode_unit(uint row, uint k, out vec4 v[unit / 4u]) {
#if ENCODING == F32
  decode8(row, k, v[0], v[1]);
#elif ENCODING == F16
  uint q[4];
  WORDS(q, row + 2u * k, 4u)
  v[0] = vec4(unpackHalf2x16(q[0]), unpackHalf2x16(q[1]));
  v[1] = vec4(unpackHalf2x16(q[2]), unpackHalf2x16(q[3]));
#elif ENCODING == BF16
  uint q[4];
  WORDS(q, row + 2u * k, 4u)
  for (uint i = 0u; i < 2u; ++i)
    v[i] = vec4(uintBitsToFloat(q[2u * i] << 16), uintBitsToFloat(q[2u * i] & 0xFFFF0000u), uintBitsToFloat(q[2u * i + 1u] << 16),
                uintBitsToFloat(q[2u * i + 1u] & 0xFFFF0000u));
#elif ENCODING == Q8_0
  const uint at = row + (k >> 5) * 34u;
  uint q[9];
  WORDS_AND_HALF(q, at, 8u)
  const float d = unpackHalf2x16(q[0]).x;
  for (uint i = 0u; i < 8u; ++i) v[i] = d * signed_bytes_of((q[i] >> 16) | (q[i + 1u] << 16));
#elif ENCODING == Q4_0
  const uint at = row + (k >> 5) * 18u;
  uint q[5];
  WORDS_AND_HALF(q, at, 4u)
  const float d = unpackHalf2x16(q[0]).x;
  for (uint i = 0u; i < 4u; ++i) {
    const uint n = (q[i] >> 16) | (q[i + 1u] << 16);
    v[i] = d * (low_nibbles(n) - 8.0);
    v[4u + i] = d * (low_nibbles(n >> 4) - 8.0);
  }
#elif ENCODING == Q5_0
  const uint at = row + (k >> 5) * 22u;
  uint q[6];
  WORDS_AND_HALF(q, at, 5u)
  const float d = unpackHalf2x16(q[0]).x;
  const uint high = (q[0] >> 16) | (q[1] << 16);
  for (uint i = 0u; i < 4u; ++i) {
    const uint n = (q[1u + i] >> 16) | (q[2u + i] << 16);
    v[i] = d * (low_nibbles(n) + bits_of(high, 4u * i, 16.0) - 16.0);
    v[4u + i] = d * (low_nibbles(n >> 4) + bits_of(high, 16u + 4u * i, 16.0) - 16.0);
  }
#elif ENCODING == Q4_1 || ENCODING == Q5_1
#if ENCODING == Q4_1
  const uint words = 5u, head = 1u;
#else
  const uint words = 6u, head = 2u;
#endif
  uint q[words];
  WORDS(q, row + (k >> 5) * words * 4u, words)
  const vec2 scale = unpackHalf2x16(q[0]);
  for (uint i = 0u; i < 8u; ++i) {
    vec4 a = low_nibbles(q[head + (i & 3u)] >> (i >> 2) * 4u);
#if ENCODING == Q5_1
    a += bits_of(q[1], 4u * i, 16.0);
#endif
    precise vec4 product = scale.x * a;                    // rounded as a decoded file would be
    product += scale.y;
    v[i] = product;
  }
#elif ENCODING == Q4_K || ENCODING == Q5_K
#if ENCODING == Q4_K
  const uint size = 144u, head = 16u;
#else
  const uint size = 176u, head = 48u;
#endif
  const uint at = row + (k >> 8) * size, j = (k >> 5) & 7u;
  float scale, least;
  scale_and_min(at + 4u, j, scale, least);
  const vec2 both = unpackHalf2x16(word_at(at));
  const float d = both.x * scale, m = both.y * least;
  uint q[8];
  WORDS(q, at + head + (j >> 1) * 32u, 8u)
#if ENCODING == Q5_K
  uint high[8];
  WORDS(high, at + 16u, 8u)
#endif
  for (uint i = 0u; i < 8u; ++i) {
    vec4 a = low_nibbles(q[i] >> (j & 1u) * 4u);
#if ENCODING == Q5_K
    a += bit_of_bytes(high[i], j, 16.0);
#endif
    precise vec4 product = d * a;
    product -= m;
    v[i] = product;
  }
#elif ENCODING == Q6_K
  const uint at = row + (k >> 8) * 210u, e = k & 255u, part = e >> 7, run = (e >> 5) & 3u;
  uint q[8], high[8];
  WORDS(q, at + part * 64u + (run & 1u) * 32u, 8u)
  WORDS(high, at + 128u + part * 32u, 8u)
  const float d = half_at(at + 208u);
  const uint scales = short_at(at + 192u + part * 8u + run * 2u);
  for (uint i = 0u; i < 8u; ++i) {
    const float s = d * float(signed_byte(i < 4u ? scales & 255u : scales >> 8));
    v[i] = s * (low_nibbles(q[i] >> (run >> 1) * 4u) + 16.0 * bytes_of((high[i] >> 2u * run) & 0x03030303u) - 32.0);
  }
#endif
}

// Rows of weights as they are stored, decoded where they are read. ENCODING names the format; the buffer is seen as words,
// and rows begin at even bytes. Before it: a buffer block `weights` with uint w[].
#define F32 0
#define F16 1
#define BF16 2
#define Q4_0 3
#define Q4_1 4
#define Q5_0 5
#define Q5_1 6
#define Q8_0 7
#define Q4_K 8
#define Q5_K 9
#define Q6_K 10

uint byte_at(uint a) { return (weights.w[a >> 2] >> ((a & 3u) * 8u)) & 255u; }
uint short_at(uint a) { return (weights.w[a >> 2] >> ((a & 2u) * 8u)) & 0xFFFFu; }
// Four bytes from an even address on.
uint word_at(uint a) {
  const uint lo = weights.w[a >> 2], hi = weights.w[(a + 2u) >> 2];
  return (a & 2u) == 0u ? lo : (lo >> 16) | (hi << 16);
}
float half_at(uint a) { return unpackHalf2x16(short_at(a)).x; }
int signed_byte(uint b) { return int(b << 24) >> 24; }

vec4 low_nibbles(uint q) { return vec4(float(q & 15u), float((q >> 8) & 15u), float((q >> 16) & 15u), float((q >> 24) & 15u)); }
vec4 bytes_of(uint q) { return vec4(float(q & 255u), float((q >> 8) & 255u), float((q >> 16) & 255u), float(q >> 24)); }
vec4 signed_bytes_of(uint q) {
  return vec4(float(int(q << 24) >> 24), float(int(q << 16) >> 24), float(int(q << 8) >> 24), float(int(q) >> 24));
}
// The bits at, at + 1, … at + 3 of b, each worth `worth`.
vec4 bits_of(uint b, uint at, float worth) {
  return worth * vec4(float((b >> at) & 1u), float((b >> (at + 1u)) & 1u), float((b >> (at + 2u)) & 1u), float((b >> (at + 3u)) & 1u));
}
// Bit `at` of each byte.
vec4 bit_of_bytes(uint b, uint at, float worth) {
  b >>= at;
  return worth * vec4(float(b & 1u), float((b >> 8) & 1u), float((b >> 16) & 1u), float((b >> 24) & 1u));
}

#if ENCODING == F32 || ENCODING == F16 || ENCODING == BF16
// One element.
float decode1(uint row, uint k) {
#if ENCODING == F32
  return uintBitsToFloat(weights.w[(row >> 2) + k]);
#elif ENCODING == F16
  return half_at(row + 2u * k);
#else
  return uintBitsToFloat(short_at(row + 2u * k) << 16);
#endif
}
#endif

#if ENCODING == Q4_K || ENCODING == Q5_K
// Scale and minimum number j of the 12 bytes from `at` on: 6 bits each.
void scale_and_min(uint at, uint j, out float scale, out float least) {
  if (j < 4u) {
    scale = float(byte_at(at + j) & 63u);
    least = float(byte_at(at + j + 4u) & 63u);
  } else {
    const uint both = byte_at(at + j + 4u);
    scale = float((both & 15u) | ((byte_at(at + j - 4u) >> 6) << 4));
    least = float((both >> 4) | ((byte_at(at + j) >> 6) << 4));
  }
}
#endif

// Elements k … k + 7 of the row that begins at byte `row`; k is a multiple of 8.
void decode8(uint row, uint k, out vec4 a, out vec4 b) {
#if ENCODING == F32
  const uint i = (row >> 2) + k;
  a = vec4(uintBitsToFloat(weights.w[i]), uintBitsToFloat(weights.w[i + 1u]), uintBitsToFloat(weights.w[i + 2u]), uintBitsToFloat(weights.w[i + 3u]));
  b = vec4(uintBitsToFloat(weights.w[i + 4u]), uintBitsToFloat(weights.w[i + 5u]), uintBitsToFloat(weights.w[i + 6u]), uintBitsToFloat(weights.w[i + 7u]));
#elif ENCODING == F16
  const uint i = row + 2u * k;
  a = vec4(unpackHalf2x16(word_at(i)), unpackHalf2x16(word_at(i + 4u)));
  b = vec4(unpackHalf2x16(word_at(i + 8u)), unpackHalf2x16(word_at(i + 12u)));
#elif ENCODING == BF16
  const uint i = row + 2u * k;
  const uint p = word_at(i), q = word_at(i + 4u), r = word_at(i + 8u), s = word_at(i + 12u);
  a = vec4(uintBitsToFloat(p << 16), uintBitsToFloat(p & 0xFFFF0000u), uintBitsToFloat(q << 16), uintBitsToFloat(q & 0xFFFF0000u));
  b = vec4(uintBitsToFloat(r << 16), uintBitsToFloat(r & 0xFFFF0000u), uintBitsToFloat(s << 16), uintBitsToFloat(s & 0xFFFF0000u));
#elif ENCODING == Q8_0
  const uint at = row + (k >> 5) * 34u, i = at + 2u + (k & 31u);
  const float d = half_at(at);
  a = d * signed_bytes_of(word_at(i));
  b = d * signed_bytes_of(word_at(i + 4u));
#elif ENCODING == Q4_0 || ENCODING == Q4_1 || ENCODING == Q5_0 || ENCODING == Q5_1
#if ENCODING == Q4_0
  const uint size = 18u, head = 2u;
#elif ENCODING == Q4_1
  const uint size = 20u, head = 4u;
#elif ENCODING == Q5_0
  const uint size = 22u, head = 6u;
#else
  const uint size = 24u, head = 8u;
#endif
  // The low nibbles are elements 0 … 15 of the block, the high ones 16 … 31.
  const uint at = row + (k >> 5) * size, e = k & 31u, shift = (e >> 4) * 4u, i = at + head + (e & 15u);
  const float d = half_at(at);
  a = low_nibbles(word_at(i) >> shift);
  b = low_nibbles(word_at(i + 4u) >> shift);
#if ENCODING == Q5_0 || ENCODING == Q5_1
  const uint high = word_at(at + head - 4u);
  a += bits_of(high, e, 16.0);
  b += bits_of(high, e + 4u, 16.0);
#endif
#if ENCODING == Q4_0
  a = d * (a - 8.0);
  b = d * (b - 8.0);
#elif ENCODING == Q5_0
  a = d * (a - 16.0);
  b = d * (b - 16.0);
#else
  const float m = half_at(at + 2u);
  precise vec4 first = d * a, second = d * b;              // rounded as a decoded file would be
  first += m;
  second += m;
  a = first;
  b = second;
#endif
#elif ENCODING == Q4_K || ENCODING == Q5_K
#if ENCODING == Q4_K
  const uint size = 144u, head = 16u;
#else
  const uint size = 176u, head = 48u;
#endif
  const uint at = row + (k >> 8) * size, e = k & 255u, j = e >> 5, l = e & 31u;
  float scale, least;
  scale_and_min(at + 4u, j, scale, least);
  const float d = half_at(at) * scale, m = half_at(at + 2u) * least;
  const uint i = at + head + (j >> 1) * 32u + l, shift = (j & 1u) * 4u;
  a = low_nibbles(word_at(i) >> shift);
  b = low_nibbles(word_at(i + 4u) >> shift);
#if ENCODING == Q5_K
  a += bit_of_bytes(word_at(at + 16u + l), j, 16.0);
  b += bit_of_bytes(word_at(at + 20u + l), j, 16.0);
#endif
  precise vec4 first = d * a, second = d * b;
  first -= m;
  second -= m;
  a = first;
  b = second;
#elif ENCODING == Q6_K
  // Halves of 128: four runs of 32, from the low or high nibbles of 64 bytes and two bits of 32 more.
  const uint at = row + (k >> 8) * 210u, e = k & 255u, part = e >> 7, run = (e >> 5) & 3u, l = e & 31u;
  const uint i = at + part * 64u + (run & 1u) * 32u + l, shift = (run >> 1) * 4u, h = at + 128u + part * 32u + l;
  const float d = half_at(at + 208u) * float(signed_byte(byte_at(at + 192u + part * 8u + run * 2u + (l >> 4))));
  const uint two = 2u * run;
  a = low_nibbles(word_at(i) >> shift) + 16.0 * bytes_of((word_at(h) >> two) & 0x03030303u);
  b = low_nibbles(word_at(i + 4u) >> shift) + 16.0 * bytes_of((word_at(h + 4u) >> two) & 0x03030303u);
  a = d * (a - 32.0);
  b = d * (b - 32.0);
#endif
}

// softmax(scale · q kᵀ + mask) v with the maximum and the sum carried along (online). A workgroup takes a tile of queries:
// some tokens, and of each some heads that read the same keys. It goes over the keys local_size at a time. The invocations
// lie in q_groups rows of `lanes`: each scores q_groups keys for its row's queries, then sums its own channels of v for them,
// in registers, so that what is read serves several sums. Blocks of keys begin at the same places for every query, sums go
// over channels and over keys in their order, and what a query does not see changes nothing: its bits do not depend on the
// tile.
//
// PARTS: the keys are spread over several workgroups, too. Each leaves its sums, the largest score and the total, and
// merge.comp makes one of them.
#version 450
#include "common.glsl"
#include "math.glsl"

// Where keys lie: in a cache [slots, heads, capacity, d]; one ragged sequence after another [t, heads, d]; rectangular
// sequences [s, m, heads, d]; rows [slots, capacity, d] of latents, each a key of all heads, and its first dv their value.
const uint in_cache = 0, ragged = 1, rectangular = 2, latents = 3;
layout(constant_id = 1) const uint layout_of_keys = 0;
layout(constant_id = 2) const uint causal = 1;
layout(constant_id = 3) const uint has_softcap = 0;
layout(constant_id = 4) const uint has_sinks = 0;
layout(constant_id = 5) const uint keep_type = 3;          // dtype of keep; 3: there is none
layout(constant_id = 6) const uint queries = 1;            // of a tile: tokens · tile_heads
layout(constant_id = 7) const uint tile_heads = 1;
layout(constant_id = 8) const uint channels = 1;           // of v, for one invocation
layout(constant_id = 9) const uint shared_q = 1;           // numbers of q in shared memory: queries · d; 1: it is read where it lies
layout(constant_id = 10) const uint q_groups = 1;          // divides queries and local_size

layout(binding = 0) readonly buffer Q { float v[]; } q;
layout(binding = 1) readonly buffer K { float v[]; } k;
layout(binding = 2) readonly buffer V { float v[]; } v;
layout(binding = 3) writeonly buffer Out { float v[]; } result;        // PARTS: [rows, query_heads, parts, dv + 2]
layout(binding = 4) readonly buffer Positions { int v[]; } positions;
layout(binding = 5) readonly buffer Lengths { int v[]; } lengths;
layout(binding = 6) readonly buffer Sequence { int v[]; } sequence;
layout(binding = 7) readonly buffer Places { int v[]; } places;        // in_cache, latents: slots; ragged: starts
layout(binding = 8) readonly buffer Sinks { float v[]; } sinks;
layout(binding = 9) readonly buffer Keep { uint v[]; } keep;           // in_cache, latents: what each sequence held, where less than its length
layout(push_constant) uniform Push {
  uint at[10];
  uint rows, query_heads, heads, d, dv;
  uint capacity;                                           // in_cache, latents: positions of a slot; rectangular: m
  uint n;                                                  // rectangular: rows of a sequence; in_cache: keys that every token sees, or 0
  uint window;
  uint first, held;                                        // in_cache, latents: the (slot, head) pairs that this binding holds; ragged: its first row
  float scale, softcap;
  uint first_row;                                          // of these, in the batch
  uint value_pieces;                                       // each lanes · channels of dv
  uint parts, part_keys;
} p;

const bool cached = layout_of_keys == in_cache || layout_of_keys == latents;
const uint tokens = queries / tile_heads, mine = queries / q_groups, lanes = local_size / q_groups;
shared float q_tile[shared_q];
shared float weight_of[local_size * queries];
shared float largest[queries], total[queries], fade[queries];

bool kept(uint i) {
  if (keep_type == dtype_bool) {
    const uint a = p.at[9] + i;
    return ((keep.v[a >> 2] >> ((a & 3u) * 8u)) & 255u) != 0u;
  }
  const uint word = keep.v[(p.at[9] >> 2) + i];
  return keep_type == dtype_f32 ? uintBitsToFloat(word) != 0.0 : word != 0u;
}

uint sequence_of(uint t) { return layout_of_keys == rectangular ? t / p.n : uint(sequence.v[(p.at[6] >> 2) + t]); }

// Keys of one sequence for the tokens begin … end - 1 of a tile that starts at token0; head0: the first of its heads.
void attend(uint begin, uint end, uint token0, uint head0, uint heads_here, uint kv, uint value0, uint part) {
  const uint me = gl_LocalInvocationID.x, s = sequence_of(p.first_row + begin);
  // Key j lies at k_base + j · k_step; place: of the first token.
  uint k_base, v_base, k_step, v_step, hi, place, keep_base = 0u;
  if (cached) {
    const uint at = uint(places.v[(p.at[7] >> 2) + s]) * p.heads + kv - p.first;
    if (at >= p.held) return;
    k_step = p.d;
    v_step = layout_of_keys == latents ? p.d : p.dv;
    k_base = at * p.capacity * p.d;
    v_base = at * p.capacity * v_step;
    place = uint(positions.v[(p.at[4] >> 2) + p.first_row + begin]);
    hi = p.n > 0u ? p.n : uint(lengths.v[(p.at[5] >> 2) + p.first_row + begin]);
    if (keep_type != 3u) hi = min(hi, keep.v[(p.at[9] >> 2) + s]);
  } else {
    k_step = p.heads * p.d;
    v_step = p.heads * p.dv;
    uint row;
    if (layout_of_keys == ragged) {
      row = uint(places.v[(p.at[7] >> 2) + s]);
      hi = uint(places.v[(p.at[7] >> 2) + s + 1u]) - row;
      place = p.first_row + begin - row;
      row -= p.first;
    } else {
      row = s * p.capacity;
      hi = p.capacity;
      place = (p.first_row + begin) % p.n;
      keep_base = row;
    }
    k_base = (row * p.heads + kv) * p.d;
    v_base = (row * p.heads + kv) * p.dv;
  }
  k_base += p.at[1] >> 2;
  v_base += p.at[2] >> 2;
  uint lo = 0u;
  if (causal != 0u) {
    hi = min(hi, place + end - begin);
    if (p.window > 0u && place + 1u > p.window) lo = min(place + 1u - p.window, hi);
  }
#ifdef PARTS
  lo = max(lo, part * p.part_keys);
  hi = min(hi, (part + 1u) * p.part_keys);
#endif

  const uint lane = me % lanes, mine0 = me / lanes * mine;
  float acc[channels][mine];
  for (uint c = 0u; c < channels; ++c)
    for (uint i = 0u; i < mine; ++i) acc[c][i] = 0.0;
  for (uint i = me; i < queries; i += local_size) {
    largest[i] = -math_inf;
    total[i] = 0.0;
  }
  barrier();
  for (uint j0 = lo / local_size * local_size; j0 < hi; j0 += local_size) {
    float score[q_groups][mine];
    uint key[q_groups];
    for (uint a = 0u; a < q_groups; ++a) {
      key[a] = k_base + min(j0 + lane + a * lanes, hi - 1u) * k_step;
      for (uint i = 0u; i < mine; ++i) score[a][i] = 0.0;
    }
    for (uint e = 0u; e < p.d; ++e) {
      float x[mine];
      for (uint i = 0u; i < mine; ++i) {
        if (shared_q > 1u) {
          x[i] = q_tile[e * queries + mine0 + i];
        } else {
          const uint t = min(token0 + (mine0 + i) / tile_heads, p.rows - 1u), h = min(head0 + (mine0 + i) % tile_heads, p.query_heads - 1u);
          x[i] = q.v[(p.at[0] >> 2) + (t * p.query_heads + h) * p.d + e];
        }
      }
      for (uint a = 0u; a < q_groups; ++a) {
        const float y = k.v[key[a] + e];
        for (uint i = 0u; i < mine; ++i) score[a][i] = fma(x[i], y, score[a][i]);
      }
    }
    for (uint a = 0u; a < q_groups; ++a) {
      const uint j = j0 + lane + a * lanes;
      const bool seen = j >= lo && j < hi && (keep_type == 3u || cached || kept(keep_base + j));
      for (uint i = 0u; i < mine; ++i) {
        const uint t = token0 + (mine0 + i) / tile_heads;
        bool sees = seen && t >= begin && t < end && (mine0 + i) % tile_heads < heads_here;
        if (causal != 0u) {
          const uint its = place + t - begin;
          sees = sees && j <= its && (p.window == 0u || j + p.window > its);
        }
        float x = score[a][i] * p.scale;
        if (has_softcap != 0u) x = p.softcap * math_tanh(x / p.softcap);
        weight_of[(lane + a * lanes) * queries + mine0 + i] = sees ? x : -math_inf;
      }
    }
    barrier();
    const uint count = min(local_size, hi - j0);
    for (uint i = me; i < queries; i += local_size) {
      float now = largest[i];
      for (uint jj = 0u; jj < count; ++jj) {
        const float x = weight_of[jj * queries + i];
        now = x > now ? x : now;                           // a NaN is not
      }
      fade[i] = now == -math_inf ? 1.0 : (largest[i] == -math_inf ? 0.0 : math_exp(largest[i] - now));
      largest[i] = now;
    }
    barrier();
    for (uint i = 0u; i < queries; ++i) {
      const float x = weight_of[me * queries + i];
      weight_of[me * queries + i] = x == -math_inf ? 0.0 : math_exp(x - largest[i]);
    }
    barrier();
    for (uint i = me; i < queries; i += local_size) {
      float sum = 0.0;
      for (uint jj = 0u; jj < count; ++jj) sum += weight_of[jj * queries + i];
      total[i] = fma(total[i], fade[i], sum);
    }
    for (uint i = 0u; i < mine; ++i) {
      const float faded = fade[mine0 + i];
      for (uint c = 0u; c < channels; ++c) acc[c][i] *= faded;
    }
    for (uint jj = max(j0, lo) - j0; jj < count; ++jj) {
      const uint value = v_base + (j0 + jj) * v_step;
      float x[channels], weight[mine];
      bool finite = true;
      for (uint c = 0u; c < channels; ++c) {
        x[c] = v.v[value + min(value0 + lane + c * lanes, p.dv - 1u)];
        finite = finite && (floatBitsToUint(x[c]) & 0x7F800000u) != 0x7F800000u;
      }
      for (uint i = 0u; i < mine; ++i) weight[i] = weight_of[jj * queries + mine0 + i];
      if (finite) {
        for (uint c = 0u; c < channels; ++c)
          for (uint i = 0u; i < mine; ++i) acc[c][i] = fma(weight[i], x[c], acc[c][i]);
      } else {                                             // what is not reaches only those that see it
        for (uint c = 0u; c < channels; ++c)
          for (uint i = 0u; i < mine; ++i) acc[c][i] = weight[i] != 0.0 ? fma(weight[i], x[c], acc[c][i]) : acc[c][i];
      }
    }
    barrier();
  }

  for (uint i = 0u; i < mine; ++i) {
    const uint one = mine0 + i, t = token0 + one / tile_heads, h = head0 + one % tile_heads;
    if (t < begin || t >= end || one % tile_heads >= heads_here) continue;
#ifdef PARTS
    const uint to = (p.at[3] >> 2) + ((t * p.query_heads + h) * p.parts + part) * (p.dv + 2u);
    const float factor = 1.0;
    if (value0 + lane == 0u) {
      result.v[to + p.dv] = largest[one];
      result.v[to + p.dv + 1u] = total[one];
    }
#else
    const uint to = (p.at[3] >> 2) + (t * p.query_heads + h) * p.dv;
    float sum = total[one], factor = 0.0;
    if (math_is_nan(sum)) {
      factor = sum;
    } else if (largest[one] != -math_inf) {
      float faded = 1.0;
      if (has_sinks != 0u) {
        const float sink = sinks.v[(p.at[8] >> 2) + h], now = max(largest[one], sink);
        faded = math_exp(largest[one] - now);
        sum = sum * faded + math_exp(sink - now);
      }
      factor = faded / sum;
    }
#endif
    for (uint c = 0u; c < channels; ++c) {
      const uint channel = value0 + lane + c * lanes;
      if (channel < p.dv) result.v[to + channel] = acc[c][i] * factor;
    }
  }
  barrier();                                               // largest and total are read before another sequence's
}

void main() {
  // The tile, the heads that share keys, those of them that the tile takes, the channels of v, the part of the keys.
  const uint shared_heads = p.query_heads / p.heads, head_pieces = (shared_heads + tile_heads - 1u) / tile_heads;
  uint rest = group_number();
  const uint part = rest % p.parts;
  rest /= p.parts;
  const uint value0 = rest % p.value_pieces * (lanes * channels);
  rest /= p.value_pieces;
  const uint piece = rest % head_pieces;
  rest /= head_pieces;
  const uint kv = rest % p.heads, token0 = rest / p.heads * tokens;
  if (token0 >= p.rows) return;
  const uint head0 = kv * shared_heads + piece * tile_heads, heads_here = min(tile_heads, shared_heads - piece * tile_heads);
  const uint last = min(token0 + tokens, p.rows);
  if (shared_q > 1u) {
    for (uint i = gl_LocalInvocationID.x; i < shared_q; i += local_size) {
      const uint one = i / p.d, t = token0 + one / tile_heads, h = one % tile_heads;
      const bool there = t < last && h < heads_here;
      q_tile[i % p.d * queries + one] = there ? q.v[(p.at[0] >> 2) + (t * p.query_heads + head0 + h) * p.d + i % p.d] : 0.0;
    }
    barrier();
  }
  for (uint begin = token0; begin < last;) {
    uint end = begin + 1u;
    while (end < last && sequence_of(p.first_row + end) == sequence_of(p.first_row + begin)) ++end;
    attend(begin, end, token0, head0, heads_here, kv, value0, part);
    begin = end;
  }
}

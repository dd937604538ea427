// S ← exp(decay) S + k (beta (v − (exp(decay) S)ᵀ k))ᵀ, out = scale · Sᵀ q, token by token: q and k [t, key_heads, dk], v [t, heads, dv],
// decay and beta [t, heads]; state [slots, heads, dk, dv]. A column of scan.glsl is one of S.
//
// What a token needs of the state before it goes in one round of sums: Sᵀ k and Sᵀ q, from which the new Sᵀ q follows with k · q, and
// (has_norm) the squares of q and k, whose norms are taken out of the sums afterwards.
#version 450
#include "common.glsl"
#include "math.glsl"
layout(constant_id = 4) const uint has_norm = 0;
#define SUMS 2u * columns + 1u + 2u * has_norm
#define COLUMNS_TOGETHER
#include "scan.glsl"

layout(binding = 0) readonly buffer Q { float v[]; } q;
layout(binding = 1) readonly buffer K { float v[]; } k;
layout(binding = 2) readonly buffer V { float v[]; } v;
layout(binding = 3) readonly buffer Decay { float v[]; } decay;
layout(binding = 4) readonly buffer Beta { float v[]; } beta;
layout(binding = 5) writeonly buffer Out { float v[]; } result;
layout(binding = 6) buffer State { float v[]; } state;
layout(binding = 7) readonly buffer Slots { int v[]; } slots;
layout(binding = 8) readonly buffer Starts { int v[]; } starts;
layout(push_constant) uniform Push {
  uint at[9];
  uint key_heads;
  float scale, normalize;
  uint heads, dv, dk;
  uint tokens, first_token;                                // of the batch, that the bindings show
  uint sequences, pieces;                                  // workgroups for the columns of a head
  uint first, bound;                                       // (slot, head) pairs of the state that its binding shows
} p;

// A team's columns, side by side in its subgroup's registers; elsewhere the teams' are.
#ifdef SUBGROUP
const uint column_step = 1;
uint first_column(uint piece) { return (piece * teams + scan_team) * columns; }
#else
const uint column_step = teams;
uint first_column(uint piece) { return piece * teams * columns + scan_team; }
#endif

// Of the token to come: read while one is computed.
float next_kept, next_rate, next_q[held], next_k[held], next_v[columns];

void read_token(uint t, uint head, uint column0, uint lane) {
  const uint of_head = t * p.heads + head, key_at = (t * p.key_heads + head / (p.heads / p.key_heads)) * p.dk;
  next_kept = decay.v[(p.at[3] >> 2) + of_head];
  next_rate = beta.v[(p.at[4] >> 2) + of_head];
  [[unroll]] for (uint e = 0u; e < held; ++e) {
    const uint i = min(lane + e * lanes, p.dk - 1u);
    next_q[e] = q.v[(p.at[0] >> 2) + key_at + i];
    next_k[e] = k.v[(p.at[1] >> 2) + key_at + i];
  }
  [[unroll]] for (uint c = 0u; c < columns; ++c)
    next_v[c] = v.v[(p.at[2] >> 2) + of_head * p.dv + min(column0 + c * column_step, p.dv - 1u)];
}

void main() {
  uint rest = group_number();
  const uint lane = scan_lane, column0 = first_column(rest % p.pieces);
  rest /= p.pieces;
  const uint head = rest % p.heads, sequence = rest / p.heads;
  if (sequence >= p.sequences) return;
  const uint begin = max(uint(starts.v[(p.at[8] >> 2) + sequence]), p.first_token);
  const uint end = min(uint(starts.v[(p.at[8] >> 2) + sequence + 1u]), p.first_token + p.tokens);
  const uint pair = uint(slots.v[(p.at[7] >> 2) + sequence]) * p.heads + head - p.first;
  if (begin >= end || pair >= p.bound) return;

  // Elements and columns behind the last are zeros, and are not written.
  float s[columns][held];
  const uint base = (p.at[6] >> 2) + (pair * p.dk + lane) * p.dv + column0;
  [[unroll]] for (uint e = 0u; e < held; ++e)
    [[unroll]] for (uint c = 0u; c < columns; ++c) {
      const bool there = column0 + c * column_step < p.dv && lane + e * lanes < p.dk;
      s[c][e] = there ? state.v[base + e * lanes * p.dv + c * column_step] : 0.0;
    }
  read_token(begin - p.first_token, head, column0, lane);
  for (uint t = begin - p.first_token; t < end - p.first_token; ++t) {
    const float kept = math_exp(next_kept), rate = next_rate;
    float in_q[held], in_k[held], in_v[columns];
    [[unroll]] for (uint c = 0u; c < columns; ++c) in_v[c] = next_v[c];
    [[unroll]] for (uint e = 0u; e < held; ++e) {
      const bool there = lane + e * lanes < p.dk;
      in_q[e] = there ? next_q[e] : 0.0;
      in_k[e] = there ? next_k[e] : 0.0;
    }
    if (t + 1u < end - p.first_token) read_token(t + 1u, head, column0, lane);
    [[unroll]] for (uint c = 0u; c < columns; ++c) {
      float of_key = 0.0, of_query = 0.0;
      [[unroll]] for (uint e = 0u; e < held; ++e) {
        of_key = fma(s[c][e], in_k[e], of_key);
        of_query = fma(s[c][e], in_q[e], of_query);
      }
      sum_of[c] = of_key;
      sum_of[columns + c] = of_query;
    }
    float both = 0.0, keys = 0.0, queries = 0.0;
    [[unroll]] for (uint e = 0u; e < held; ++e) {
      both = fma(in_k[e], in_q[e], both);
      keys = fma(in_k[e], in_k[e], keys);
      queries = fma(in_q[e], in_q[e], queries);
    }
    sum_of[2u * columns] = both;
    if (has_norm != 0u) {
      sum_of[sums - 2u] = keys;
      sum_of[sums - 1u] = queries;
    }
    sum_lanes();
    const float key_factor = has_norm != 0u ? 1.0 / sqrt(sum_of[sums - 2u] + p.normalize) : 1.0;
    const float query_factor = p.scale * (has_norm != 0u ? 1.0 / sqrt(sum_of[sums - 1u] + p.normalize) : 1.0);
    const float met = sum_of[2u * columns] * key_factor;
    [[unroll]] for (uint c = 0u; c < columns; ++c) {
      const float change = rate * (in_v[c] - kept * key_factor * sum_of[c]), of_element = key_factor * change;
      [[unroll]] for (uint e = 0u; e < held; ++e) s[c][e] = fma(in_k[e], of_element, kept * s[c][e]);
      if (lane == c % lanes && column0 + c * column_step < p.dv)
        result.v[(p.at[5] >> 2) + (t * p.heads + head) * p.dv + column0 + c * column_step] =
            query_factor * fma(met, change, kept * sum_of[columns + c]);
    }
  }
  [[unroll]] for (uint e = 0u; e < held; ++e)
    [[unroll]] for (uint c = 0u; c < columns; ++c)
      if (column0 + c * column_step < p.dv && lane + e * lanes < p.dk) state.v[base + e * lanes * p.dv + c * column_step] = s[c][e];
}

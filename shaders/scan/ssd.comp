// S ← exp(dt · a) S + dt · x bᵀ, out = S c + d · x, token by token: x [t, heads, rows], dt [t, heads], a and d [heads], b and c
// [t, groups, n]; state [slots, heads, rows, n]. A column of scan.glsl is a row of S.
#version 450
#include "common.glsl"
#include "math.glsl"
#define SUMS columns
#include "scan.glsl"

layout(binding = 0) readonly buffer X { float v[]; } x;
layout(binding = 1) readonly buffer Dt { float v[]; } dt;
layout(binding = 2) readonly buffer B { float v[]; } b;
layout(binding = 3) readonly buffer C { float v[]; } c;
layout(binding = 4) writeonly buffer Out { float v[]; } result;
layout(binding = 5) readonly buffer A { float v[]; } a;
layout(binding = 6) readonly buffer D { float v[]; } d;
layout(binding = 7) buffer State { float v[]; } state;
layout(binding = 8) readonly buffer Slots { int v[]; } slots;
layout(binding = 9) readonly buffer Starts { int v[]; } starts;
layout(push_constant) uniform Push {
  uint at[10];
  uint groups;
  uint heads, rows, n;
  uint tokens, first_token;                                // of the batch, that the bindings show
  uint sequences, pieces;                                  // workgroups for the rows of a head
  uint first, bound;                                       // (slot, head) pairs of the state that its binding shows
} p;

// Of the token to come: read while one is computed.
float next_step, next_x[columns], next_b[held], next_c[held];

void read_token(uint t, uint head, uint row0, uint lane) {
  const uint of_head = t * p.heads + head, shared_at = (t * p.groups + head / (p.heads / p.groups)) * p.n;
  next_step = dt.v[(p.at[1] >> 2) + of_head];
  [[unroll]] for (uint r = 0u; r < columns; ++r) next_x[r] = x.v[(p.at[0] >> 2) + of_head * p.rows + min(row0 + r, p.rows - 1u)];
  [[unroll]] for (uint e = 0u; e < held; ++e) {
    const uint i = min(lane + e * lanes, p.n - 1u);
    next_b[e] = b.v[(p.at[2] >> 2) + shared_at + i];
    next_c[e] = c.v[(p.at[3] >> 2) + shared_at + i];
  }
}

void main() {
  uint rest = group_number();
  const uint lane = scan_lane, row0 = (rest % p.pieces * teams + scan_team) * columns;
  rest /= p.pieces;
  const uint head = rest % p.heads, sequence = rest / p.heads;
  if (sequence >= p.sequences) return;
  const uint begin = max(uint(starts.v[(p.at[9] >> 2) + sequence]), p.first_token);
  const uint end = min(uint(starts.v[(p.at[9] >> 2) + sequence + 1u]), p.first_token + p.tokens);
  const uint pair = uint(slots.v[(p.at[8] >> 2) + sequence]) * p.heads + head - p.first;
  if (begin >= end || pair >= p.bound) return;

  // Elements and rows behind the last are zeros, and are not written.
  float s[columns][held];
  const uint base = (p.at[7] >> 2) + (pair * p.rows + row0) * p.n + lane;
  [[unroll]] for (uint r = 0u; r < columns; ++r)
    [[unroll]] for (uint e = 0u; e < held; ++e) {
      const bool there = row0 + r < p.rows && lane + e * lanes < p.n;
      s[r][e] = there ? state.v[base + r * p.n + e * lanes] : 0.0;
    }
  const float rate = a.v[(p.at[5] >> 2) + head], through = d.v[(p.at[6] >> 2) + head];
  read_token(begin - p.first_token, head, row0, lane);
  for (uint t = begin - p.first_token; t < end - p.first_token; ++t) {
    const float step = next_step, kept = math_exp(step * rate);
    float in_x[columns], in_b[held], in_c[held];
    [[unroll]] for (uint r = 0u; r < columns; ++r) in_x[r] = next_x[r];
    [[unroll]] for (uint e = 0u; e < held; ++e) {
      const bool there = lane + e * lanes < p.n;
      in_b[e] = there ? next_b[e] : 0.0;
      in_c[e] = there ? next_c[e] : 0.0;
    }
    if (t + 1u < end - p.first_token) read_token(t + 1u, head, row0, lane);
    [[unroll]] for (uint r = 0u; r < columns; ++r) {
      const float input_of = step * in_x[r];
      float sum = 0.0;
      [[unroll]] for (uint e = 0u; e < held; ++e) {
        s[r][e] = fma(input_of, in_b[e], kept * s[r][e]);
        sum = fma(s[r][e], in_c[e], sum);
      }
      sum_of[r] = sum;
    }
    sum_lanes();
    [[unroll]] for (uint r = 0u; r < columns; ++r)
      if (lane == r % lanes && row0 + r < p.rows)
        result.v[(p.at[4] >> 2) + (t * p.heads + head) * p.rows + row0 + r] = fma(through, in_x[r], sum_of[r]);
  }
  [[unroll]] for (uint r = 0u; r < columns; ++r)
    [[unroll]] for (uint e = 0u; e < held; ++e)
      if (row0 + r < p.rows && lane + e * lanes < p.n) state.v[base + r * p.n + e * lanes] = s[r][e];
}

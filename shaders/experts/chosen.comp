// One product for each pair of a token and a choice: out[p, r] = w[e · R + r, :] · x[p / per_row, :] + bias[e · R + r],
// e = chosen[p], for the rows of one block of w. Pair by pair; or, with `together` above 1, a row of w for up to so many
// pairs of its expert at a time, in the order that sort.comp made: the row is read and decoded once for them. An expert that
// is not there is written to `faults`, once.
#version 450
#include "common.glsl"
#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#else
#include "group.glsl"
#endif

layout(constant_id = 1) const uint has_bias = 0;
layout(constant_id = 2) const uint together = 1;

layout(binding = 0) readonly buffer Weights { uint w[]; } weights;
layout(binding = 1) readonly buffer X { float v[]; } x;
layout(binding = 2) writeonly buffer Out { float v[]; } result;
layout(binding = 3) readonly buffer Bias { float v[]; } bias;
layout(binding = 4) readonly buffer Chosen { int v[]; } chosen;
layout(binding = 5) buffer Faults { uint v[]; } faults;
layout(binding = 6) readonly buffer Sorted { uint v[]; } sorted;       // where together is above 1: sort.comp
layout(push_constant) uniform Push {
  uint at[7];
  uint pairs, per_row, rows, columns, row_bytes;           // rows: of one expert
  uint first, held, experts;                               // of this block: its first row of all experts', how many
  uint list;                                               // where the pairs begin in `sorted`
} p;

#include "weights.glsl"

void main() {
#ifdef SUBGROUP
  const uint number = group_number() * gl_NumSubgroups + gl_SubgroupID, lane = gl_SubgroupInvocationID, lanes = gl_SubgroupSize;
#else
  const uint number = group_number(), lane = gl_LocalInvocationID.x, lanes = local_size;
#endif
  const uint task = number / p.rows, r = number % p.rows;
  uint e, count = 1u, from[together], pair[together];
  if (together == 1u) {
    if (task >= p.pairs) return;
    const int wanted = chosen.v[(p.at[4] >> 2) + task];
    if (wanted < 0 || uint(wanted) >= p.experts) {
      if (r == 0u && lane == 0u && p.first == 0u && atomicCompSwap(faults.v[0], 0u, 2u) == 0u) {
        faults.v[1] = uint(wanted);
        faults.v[2] = p.experts;
      }
      return;
    }
    e = uint(wanted);
    pair[0] = task;
  } else {
    const uint at = p.at[6] >> 2, tile = at + p.experts + 1u + task * 3u;
    if (task >= sorted.v[at + p.experts]) return;
    e = sorted.v[tile];
    count = sorted.v[tile + 2u];
    for (uint t = 0u; t < together; ++t) pair[t] = sorted.v[at + p.list + sorted.v[tile + 1u] + min(t, count - 1u)];
  }
  const uint row = e * p.rows + r;
  if (row < p.first || row - p.first >= p.held) return;
  const uint base = p.at[0] + (row - p.first) * p.row_bytes, whole = p.columns & ~7u;
  float sum[together];
  for (uint t = 0u; t < together; ++t) {
    from[t] = (p.at[1] >> 2) + pair[t] / p.per_row * p.columns;
    sum[t] = 0.0;
  }
  for (uint k = lane * 8u; k < whole; k += lanes * 8u) {
    vec4 a, b;
    decode8(base, k, a, b);
    for (uint t = 0u; t < together; ++t) {
      if (t >= count) continue;
      const uint i = from[t] + k;
      sum[t] += dot(a, vec4(x.v[i], x.v[i + 1u], x.v[i + 2u], x.v[i + 3u])) +
                dot(b, vec4(x.v[i + 4u], x.v[i + 5u], x.v[i + 6u], x.v[i + 7u]));
    }
  }
#if ENCODING == F32 || ENCODING == F16 || ENCODING == BF16
  for (uint k = whole + lane; k < p.columns; k += lanes) {
    const float a = decode1(base, k);
    for (uint t = 0u; t < together; ++t) sum[t] += a * x.v[from[t] + k];
  }
#endif
  for (uint t = 0u; t < together; ++t) {
    if (t >= count) continue;
#ifdef SUBGROUP
    float all = subgroupAdd(sum[t]);
#else
    float all = group_sum(sum[t]);
#endif
    if (lane != 0u) continue;
    if (has_bias != 0u) all += bias.v[(p.at[3] >> 2) + row];
    result.v[(p.at[2] >> 2) + pair[t] * p.rows + r] = all;
  }
}

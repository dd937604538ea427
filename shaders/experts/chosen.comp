// One product for each (token, choice): out[p, r] = w[e · R + r, :] · x[p / per_row, :] + bias[e · R + r], e = chosen[p], for
// the rows of one block of w. An expert that is not there is written to `faults`, once.
#version 450
#include "common.glsl"
#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#else
#include "group.glsl"
#endif

layout(constant_id = 1) const uint has_bias = 0;

layout(binding = 0) readonly buffer Weights { uint w[]; } weights;
layout(binding = 1) readonly buffer X { float v[]; } x;
layout(binding = 2) writeonly buffer Out { float v[]; } result;
layout(binding = 3) readonly buffer Bias { float v[]; } bias;
layout(binding = 4) readonly buffer Chosen { int v[]; } chosen;
layout(binding = 5) buffer Faults { uint v[]; } faults;
layout(push_constant) uniform Push {
  uint at[6];
  uint pairs, per_row, rows, columns, row_bytes;           // rows: of one expert
  uint first, held, experts;                               // of this block: its first row of all experts', how many
} p;

#include "weights.glsl"

void main() {
#ifdef SUBGROUP
  const uint number = group_number() * gl_NumSubgroups + gl_SubgroupID, lane = gl_SubgroupInvocationID, lanes = gl_SubgroupSize;
#else
  const uint number = group_number(), lane = gl_LocalInvocationID.x, lanes = local_size;
#endif
  const uint pair = number / p.rows, r = number % p.rows;
  if (pair >= p.pairs) return;
  const int e = chosen.v[(p.at[4] >> 2) + pair];
  if (e < 0 || uint(e) >= p.experts) {
    if (r == 0u && lane == 0u && p.first == 0u && atomicCompSwap(faults.v[0], 0u, 2u) == 0u) {
      faults.v[1] = uint(e);
      faults.v[2] = p.experts;
    }
    return;
  }
  const uint row = uint(e) * p.rows + r;
  if (row < p.first || row - p.first >= p.held) return;
  const uint base = p.at[0] + (row - p.first) * p.row_bytes, from = (p.at[1] >> 2) + pair / p.per_row * p.columns, whole = p.columns & ~7u;
  float sum = 0.0;
  for (uint k = lane * 8u; k < whole; k += lanes * 8u) {
    vec4 a, b;
    decode8(base, k, a, b);
    const uint i = from + k;
    sum += dot(a, vec4(x.v[i], x.v[i + 1u], x.v[i + 2u], x.v[i + 3u])) +
           dot(b, vec4(x.v[i + 4u], x.v[i + 5u], x.v[i + 6u], x.v[i + 7u]));
  }
#if ENCODING == F32 || ENCODING == F16 || ENCODING == BF16
  for (uint k = whole + lane; k < p.columns; k += lanes) sum += decode1(base, k) * x.v[from + k];
#endif
#ifdef SUBGROUP
  float all = subgroupAdd(sum);
#else
  float all = group_sum(sum);
#endif
  if (lane != 0u) return;
  if (has_bias != 0u) all += bias.v[(p.at[3] >> 2) + row];
  result.v[(p.at[2] >> 2) + pair * p.rows + r] = all;
}

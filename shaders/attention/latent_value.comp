// Sums of latents into values: out[t, h, j] = sum_c y[t, h, c] · up[h · of_head + n + j, c]. A subgroup (or a workgroup) has one row of
// `up`, which is read and decoded once for a tile of tokens.
#version 450
#include "common.glsl"
#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#else
#include "group.glsl"
#endif

layout(constant_id = 1) const uint tokens = 1;             // of a tile

layout(binding = 0) readonly buffer Weights { uint w[]; } weights;
layout(binding = 1) readonly buffer Y { float v[]; } y;
layout(binding = 2) writeonly buffer Out { float v[]; } result;
layout(push_constant) uniform Push {
  uint at[3];
  uint all_tokens, heads, n, of_head, rank, row_bytes;
  uint first, held;                                        // of the rows of `up`: those that this binding holds
  uint first_head, end_head, across;                       // heads that have some of them; workgroups of a tile
} p;

#include "weights.glsl"

void main() {
  const uint group = group_number(), token0 = group / p.across * tokens, v = p.of_head - p.n;
#ifdef SUBGROUP
  const uint number = group % p.across * gl_NumSubgroups + gl_SubgroupID, lane = gl_SubgroupInvocationID, lanes = gl_SubgroupSize;
#else
  const uint number = group % p.across, lane = gl_LocalInvocationID.x, lanes = local_size;
#endif
  const uint h = p.first_head + number / v, j = number % v, row = h * p.of_head + p.n + j;
  if (token0 >= p.all_tokens || h >= p.end_head || row < p.first || row - p.first >= p.held) return;
  const uint base = p.at[0] + (row - p.first) * p.row_bytes, whole = p.rank & ~7u;
  uint from[tokens];
  float sum[tokens];
  for (uint t = 0u; t < tokens; ++t) {
    from[t] = (p.at[1] >> 2) + (min(token0 + t, p.all_tokens - 1u) * p.heads + h) * p.rank;
    sum[t] = 0.0;
  }
  for (uint k = lane * 8u; k < whole; k += lanes * 8u) {
    vec4 a, b;
    decode8(base, k, a, b);
    for (uint t = 0u; t < tokens; ++t) {
      const uint i = from[t] + k;
      sum[t] += dot(a, vec4(y.v[i], y.v[i + 1u], y.v[i + 2u], y.v[i + 3u])) +
                dot(b, vec4(y.v[i + 4u], y.v[i + 5u], y.v[i + 6u], y.v[i + 7u]));
    }
  }
#if ENCODING == F32 || ENCODING == F16 || ENCODING == BF16
  for (uint k = whole + lane; k < p.rank; k += lanes) {
    const float a = decode1(base, k);
    for (uint t = 0u; t < tokens; ++t) sum[t] += a * y.v[from[t] + k];
  }
#endif
  for (uint t = 0u; t < tokens; ++t) {
    if (token0 + t >= p.all_tokens) break;
#ifdef SUBGROUP
    const float all = subgroupAdd(sum[t]);
#else
    const float all = group_sum(sum[t]);
#endif
    if (lane == 0u) result.v[(p.at[2] >> 2) + ((token0 + t) * p.heads + h) * v + j] = all;
  }
}

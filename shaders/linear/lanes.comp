// Products on a processor, where invocations are lanes of its vectors: a lane has a row of weights (or two, a workgroup apart), and the lanes
// have the same tokens. out[t, first + r] = sum_k w[r, k] · x[t, k] + bias[r] + residual[t, first + r].
//
// Such a driver reads memory lane by lane, which costs far more than arithmetic: so an element of x is read by one lane and told to the
// others, words of weights are read once, and both are used for as many products as there are registers. No barrier, no shared memory.
#version 450
#include "common.glsl"
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require

layout(constant_id = 1) const uint has_bias = 0;
layout(constant_id = 2) const uint has_residual = 0;
layout(constant_id = 3) const uint tokens = 1;             // of a workgroup: at most 16
layout(constant_id = 4) const uint lane_rows = 1;          // at most 2

layout(binding = 0) readonly buffer Weights { uint w[]; } weights;
layout(binding = 1) readonly buffer X { float v[]; } x;
layout(binding = 2) buffer Out { float v[]; } result;
layout(binding = 3) readonly buffer Bias { float v[]; } bias;
layout(binding = 4) readonly buffer Residual { float v[]; } residual;
layout(push_constant) uniform Push {
  uint at[5];
  uint rows, columns, row_bytes, first, stride, all_tokens, token_tiles;
} p;

#include "weights.glsl"
#include "unit.glsl"

void main() {
  const uint group = group_number(), token0 = group % p.token_tiles * tokens, lane = gl_SubgroupInvocationID & 7u;
  const uint row0 = group / p.token_tiles * local_size * lane_rows + gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  if (row0 - gl_SubgroupInvocationID >= p.rows) return;    // all lanes or none: the others are told elements
  const uint whole = p.columns / unit * unit;
  uint from[16];
  for (uint t = 0u; t < tokens; ++t) from[t] = (p.at[1] >> 2) + min(token0 + t, p.all_tokens - 1u) * p.columns;
  float sum[32];
  for (uint i = 0u; i < tokens * lane_rows; ++i) sum[i] = 0.0;
  for (uint k = 0u; k < whole; k += unit) {
    vec4 v[2u * unit / 4u];
    for (uint r = 0u; r < lane_rows; ++r) {
      vec4 one[unit / 4u];
      decode_unit(p.at[0] + min(row0 + r * local_size, p.rows - 1u) * p.row_bytes, k, one);
      for (uint i = 0u; i < unit / 4u; ++i) v[r * (unit / 4u) + i] = one[i];
    }
    for (uint c = 0u; c < unit / 8u; ++c)
      for (uint t = 0u; t < tokens; ++t) {
        const float e = x.v[from[t] + k + c * 8u + lane];
        const vec4 f = vec4(subgroupBroadcast(e, 0u), subgroupBroadcast(e, 1u), subgroupBroadcast(e, 2u), subgroupBroadcast(e, 3u));
        const vec4 g = vec4(subgroupBroadcast(e, 4u), subgroupBroadcast(e, 5u), subgroupBroadcast(e, 6u), subgroupBroadcast(e, 7u));
        for (uint r = 0u; r < lane_rows; ++r) {
          const vec4 a = v[r * (unit / 4u) + c * 2u], b = v[r * (unit / 4u) + c * 2u + 1u];
          float s = sum[r * tokens + t];
          s = fma(a.x, f.x, s);
          s = fma(a.y, f.y, s);
          s = fma(a.z, f.z, s);
          s = fma(a.w, f.w, s);
          s = fma(b.x, g.x, s);
          s = fma(b.y, g.y, s);
          s = fma(b.z, g.z, s);
          sum[r * tokens + t] = fma(b.w, g.w, s);
        }
      }
  }
  for (uint r = 0u; r < lane_rows; ++r) {
    const uint row = row0 + r * local_size;
    if (row >= p.rows) return;
#if ENCODING == F32 || ENCODING == F16 || ENCODING == BF16
    for (uint k = whole; k < p.columns; ++k) {
      const float a = decode1(p.at[0] + row * p.row_bytes, k);
      for (uint t = 0u; t < tokens; ++t) sum[r * tokens + t] += a * x.v[from[t] + k];
    }
#endif
    for (uint t = 0u; t < tokens; ++t) {
      if (token0 + t >= p.all_tokens) break;
      const uint to = (token0 + t) * p.stride + p.first + row;
      float all = sum[r * tokens + t];
      if (has_bias != 0u) all += bias.v[(p.at[3] >> 2) + row];
      if (has_residual != 0u) all += residual.v[(p.at[4] >> 2) + to];
      result.v[(p.at[2] >> 2) + to] = all;
    }
  }
}

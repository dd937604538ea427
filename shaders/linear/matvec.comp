// Products with few tokens: out[t, first + r] = sum_k w[r, k] · x[t, k] + bias[r] + residual[t, first + r].
// A subgroup (or, without subgroup arithmetic, a workgroup) takes a row of weights, decodes it once, and multiplies it
// with TOKENS rows of x.
#version 450
#include "common.glsl"
#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#else
#include "group.glsl"
#endif

layout(constant_id = 1) const uint has_bias = 0;
layout(constant_id = 2) const uint has_residual = 0;
layout(constant_id = 3) const uint tokens = 1;             // at most 4

layout(binding = 0) readonly buffer Weights { uint w[]; } weights;
layout(binding = 1) readonly buffer X { float v[]; } x;
layout(binding = 2) buffer Out { float v[]; } result;
layout(binding = 3) readonly buffer Bias { float v[]; } bias;
layout(binding = 4) readonly buffer Residual { float v[]; } residual;
layout(push_constant) uniform Push {
  uint at[5];
  uint rows, columns, row_bytes, first, stride;            // first: column of the result; stride: its width
} p;

#include "weights.glsl"

void row_product(uint row, uint lane, uint lanes) {
  const uint base = p.at[0] + row * p.row_bytes, from = p.at[1] >> 2, whole = p.columns & ~7u;
  float sum[4] = float[4](0.0, 0.0, 0.0, 0.0);
  for (uint k = lane * 8u; k < whole; k += lanes * 8u) {
    vec4 a, b;
    decode8(base, k, a, b);
    for (uint t = 0u; t < tokens; ++t) {
      const uint i = from + t * p.columns + k;
      sum[t] += dot(a, vec4(x.v[i], x.v[i + 1u], x.v[i + 2u], x.v[i + 3u])) +
                dot(b, vec4(x.v[i + 4u], x.v[i + 5u], x.v[i + 6u], x.v[i + 7u]));
    }
  }
#if ENCODING == F32 || ENCODING == F16 || ENCODING == BF16
  for (uint k = whole + lane; k < p.columns; k += lanes) {
    const float a = decode1(base, k);
    for (uint t = 0u; t < tokens; ++t) sum[t] += a * x.v[from + t * p.columns + k];
  }
#endif
  for (uint t = 0u; t < tokens; ++t) {
#ifdef SUBGROUP
    float all = subgroupAdd(sum[t]);
#else
    float all = group_sum(sum[t]);
#endif
    if (lane == 0u) {
      const uint to = t * p.stride + p.first + row;
      if (has_bias != 0u) all += bias.v[(p.at[3] >> 2) + row];
      if (has_residual != 0u) all += residual.v[(p.at[4] >> 2) + to];
      result.v[(p.at[2] >> 2) + to] = all;
    }
  }
}

void main() {
#ifdef SUBGROUP
  const uint row = group_number() * gl_NumSubgroups + gl_SubgroupID;
  if (row < p.rows) row_product(row, gl_SubgroupInvocationID, gl_SubgroupSize);
#else
  const uint row = group_number();
  if (row < p.rows) row_product(row, gl_LocalInvocationID.x, local_size);
#endif
}

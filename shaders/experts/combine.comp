// out[t, j] = sum over i of weights[t, i] · x[t · k + i, j], in the order of choice.
#version 450
#include "common.glsl"

layout(binding = 0) readonly buffer X { float v[]; } x;
layout(binding = 1) readonly buffer W { float v[]; } weights;
layout(binding = 2) writeonly buffer Out { float v[]; } result;
layout(push_constant) uniform Push {
  uint at[3];
  uint tokens, k, d;
} p;

void main() {
  const uint me = invocation_number();
  if (me >= p.tokens * p.d) return;
  const uint t = me / p.d, j = me % p.d;
  float sum = 0.0;
  for (uint i = 0u; i < p.k; ++i) sum += weights.v[(p.at[1] >> 2) + t * p.k + i] * x.v[(p.at[0] >> 2) + (t * p.k + i) * p.d + j];
  result.v[(p.at[2] >> 2) + me] = sum;
}

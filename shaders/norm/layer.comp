// A workgroup a row: out = (x − mean) / sqrt(var + eps) · w + b.
#version 450
#include "common.glsl"
#include "group.glsl"

layout(constant_id = 1) const uint has_w = 1;
layout(constant_id = 2) const uint has_b = 1;

layout(binding = 0) readonly buffer X { float v[]; } x;
layout(binding = 1) readonly buffer W { float v[]; } w;
layout(binding = 2) writeonly buffer Out { float v[]; } result;
layout(binding = 3) readonly buffer B { float v[]; } b;
layout(push_constant) uniform Push {
  uint at[4];
  uint rows, n;
  float eps;
} p;

void main() {
  const uint row = group_number(), me = gl_LocalInvocationID.x;
  if (row >= p.rows) return;
  const uint from = (p.at[0] >> 2) + row * p.n, to = (p.at[2] >> 2) + row * p.n;
  float s = 0.0;
  for (uint i = me; i < p.n; i += local_size) s += x.v[from + i];
  const float mean = group_sum(s) / float(p.n);
  float squares = 0.0;
  for (uint i = me; i < p.n; i += local_size) squares += (x.v[from + i] - mean) * (x.v[from + i] - mean);
  const float scale = 1.0 / sqrt(group_sum(squares) / float(p.n) + p.eps);
  for (uint i = me; i < p.n; i += local_size)
    result.v[to + i] = (x.v[from + i] - mean) * scale * (has_w != 0u ? w.v[(p.at[1] >> 2) + i] : 1.0) +
                       (has_b != 0u ? b.v[(p.at[3] >> 2) + i] : 0.0);
}

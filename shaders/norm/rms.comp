// A workgroup a row: sum = x + y (ADD), out = x / sqrt(mean(x²) + eps) · (w + offset).
#version 450
#include "common.glsl"
#include "group.glsl"

layout(constant_id = 1) const uint has_w = 1;

layout(binding = 0) readonly buffer X { float v[]; } x;
layout(binding = 1) readonly buffer W { float v[]; } w;
layout(binding = 2) writeonly buffer Out { float v[]; } result;
#ifdef ADD
layout(binding = 3) readonly buffer Y { float v[]; } y;
layout(binding = 4) buffer Sum { float v[]; } sum;
#endif
layout(push_constant) uniform Push {
#ifdef ADD
  uint at[5];
#else
  uint at[3];
#endif
  uint rows, n;
  float eps, offset;
} p;

void main() {
  const uint row = group_number(), me = gl_LocalInvocationID.x;
  if (row >= p.rows) return;
  const uint from = (p.at[0] >> 2) + row * p.n, to = (p.at[2] >> 2) + row * p.n;
  float squares = 0.0;
  for (uint i = me; i < p.n; i += local_size) {
#ifdef ADD
    const float v = x.v[from + i] + y.v[(p.at[3] >> 2) + row * p.n + i];
    sum.v[(p.at[4] >> 2) + row * p.n + i] = v;
#else
    const float v = x.v[from + i];
#endif
    squares += v * v;
  }
  const float scale = 1.0 / sqrt(group_sum(squares) / float(p.n) + p.eps);
  for (uint i = me; i < p.n; i += local_size) {            // each invocation reads what it wrote itself
#ifdef ADD
    const float v = sum.v[(p.at[4] >> 2) + row * p.n + i];
#else
    const float v = x.v[from + i];
#endif
    result.v[to + i] = v * scale * (has_w != 0u ? w.v[(p.at[1] >> 2) + i] + p.offset : 1.0);
  }
}

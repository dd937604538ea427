// x [t, heads, d] turned by the angles whose cosines and sines are [t, half]: channels (i, i + half), or (2i, 2i + 1). An
// invocation takes a pair, or one of the channels that do not turn. May work in place.
#version 450
#include "common.glsl"

layout(constant_id = 1) const uint adjacent = 0;

layout(binding = 0) readonly buffer X { float v[]; } x;
layout(binding = 1) readonly buffer Cos { float v[]; } cosines;
layout(binding = 2) readonly buffer Sin { float v[]; } sines;
layout(binding = 3) writeonly buffer Out { float v[]; } result;
layout(push_constant) uniform Push {
  uint at[4];
  uint rows, heads, d, half_size;                          // rows = t · heads
} p;

void main() {
  const uint per_row = p.d - p.half_size, me = invocation_number();
  if (me >= p.rows * per_row) return;
  const uint row = me / per_row, i = me % per_row;
  const uint from = (p.at[0] >> 2) + row * p.d, to = (p.at[3] >> 2) + row * p.d;
  if (i >= p.half_size) {
    result.v[to + p.half_size + i] = x.v[from + p.half_size + i];
    return;
  }
  const uint a = adjacent != 0u ? 2u * i : i, b = adjacent != 0u ? 2u * i + 1u : i + p.half_size;
  const uint angle = row / p.heads * p.half_size + i;
  const float c = cosines.v[(p.at[1] >> 2) + angle], s = sines.v[(p.at[2] >> 2) + angle];
  const float u = x.v[from + a], v = x.v[from + b];
  result.v[to + a] = u * c - v * s;
  result.v[to + b] = v * c + u * s;
}

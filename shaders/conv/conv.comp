// x [batch, c, n…], w [o, c / groups, k…] → out [batch, o, m…] over three axes (missing ones, in front, have size 1); an
// invocation takes one element of the result.
#version 450
#include "common.glsl"

layout(constant_id = 1) const uint has_bias = 0;
layout(constant_id = 2) const uint missing = 0;            // axes in front that are not there

layout(binding = 0) readonly buffer X { float v[]; } x;
layout(binding = 1) readonly buffer W { float v[]; } w;
layout(binding = 2) writeonly buffer Out { float v[]; } result;
layout(binding = 3) readonly buffer Bias { float v[]; } bias;
layout(push_constant) uniform Push {
  uint at[4];
  uint count, channels, outs, groups;
  int n[3], k[3], m[3];
  int stride, padding, dilation;
} p;

void main() {
  const uint me = invocation_number();
  if (me >= p.count) return;
  uint rest = me;
  int place[3];
  for (int a = 2; a >= 0; --a) {
    place[a] = int(rest % uint(p.m[a]));
    rest /= uint(p.m[a]);
  }
  const uint o = rest % p.outs, sequence = rest / p.outs, inner = p.channels / p.groups;
  const uint first = sequence * p.channels + o / (p.outs / p.groups) * inner;
  for (int a = 0; a < 3; ++a)
    if (a >= int(missing)) place[a] = place[a] * p.stride - p.padding;
  float sum = has_bias != 0u ? bias.v[(p.at[3] >> 2) + o] : 0.0;
  for (uint c = 0u; c < inner; ++c)
    for (int i = 0; i < p.k[0]; ++i) {
      const int y0 = place[0] + i * p.dilation;
      if (y0 < 0 || y0 >= p.n[0]) continue;
      for (int j = 0; j < p.k[1]; ++j) {
        const int y1 = place[1] + j * p.dilation;
        if (y1 < 0 || y1 >= p.n[1]) continue;
        const uint row = (p.at[0] >> 2) + (((first + c) * uint(p.n[0]) + uint(y0)) * uint(p.n[1]) + uint(y1)) * uint(p.n[2]);
        const uint kernel = (p.at[1] >> 2) + (((o * inner + c) * uint(p.k[0]) + uint(i)) * uint(p.k[1]) + uint(j)) * uint(p.k[2]);
        for (int l = 0; l < p.k[2]; ++l) {
          const int y2 = place[2] + l * p.dilation;
          if (y2 >= 0 && y2 < p.n[2]) sum += w.v[kernel + uint(l)] * x.v[row + uint(y2)];
        }
      }
    }
  result.v[(p.at[2] >> 2) + me] = sum;
}

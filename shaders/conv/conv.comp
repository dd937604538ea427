// x [batch, c, n…], w [o, c / groups, k…] → out [batch, o, m…] over three axes (missing ones, in front, have size 1). An invocation
// takes some outputs of one group at some places along the last axis, so that what it reads is used that often; neighbours have
// neighbouring places. An element's sum goes over channels and the kernel in their order, whatever the tile.
#version 450
#extension GL_EXT_control_flow_attributes : require
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
  uint out_tiles, place_tiles;                             // of a group; of the last axis
} p;

const uint outs_of_tile = 4, places_of_tile = 4;           // as runtime/vulkan/products.cpp has them

void main() {
  const uint me = invocation_number();
  if (me >= p.count) return;
  const uint column = me % p.place_tiles;
  uint rest = me / p.place_tiles;
  int place[3];
  for (int a = 1; a >= 0; --a) {
    place[a] = int(rest % uint(p.m[a]));
    rest /= uint(p.m[a]);
  }
  const uint inner = p.channels / p.groups, of_group = p.outs / p.groups;
  const uint tile = rest % p.out_tiles, group = rest / p.out_tiles % p.groups, sequence = rest / p.out_tiles / p.groups;
  const uint first = sequence * p.channels + group * inner, out0 = tile * outs_of_tile;
  const uint length = uint(p.k[0] * p.k[1] * p.k[2]) * inner;          // of an output's kernel

  // Outputs and places behind the last are computed as the last, and not written.
  uint kernel[outs_of_tile];
  float sum[outs_of_tile * places_of_tile];
  int last[places_of_tile];
  [[unroll]] for (uint e = 0u; e < outs_of_tile; ++e) {
    const uint o = group * of_group + min(out0 + e, of_group - 1u);
    kernel[e] = (p.at[1] >> 2) + o * length;
    const float b = has_bias != 0u ? bias.v[(p.at[3] >> 2) + o] : 0.0;
    [[unroll]] for (uint t = 0u; t < places_of_tile; ++t) sum[e * places_of_tile + t] = b;
  }
  [[unroll]] for (uint t = 0u; t < places_of_tile; ++t) {
    last[t] = min(int(column + t * p.place_tiles), p.m[2] - 1) * p.stride - p.padding;
  }
  const int from0 = missing == 0u ? place[0] * p.stride - p.padding : place[0];
  const int from1 = missing < 2u ? place[1] * p.stride - p.padding : place[1];
  uint step = 0u;                                          // places of the kernel before this one
  for (uint c = 0u; c < inner; ++c)
    for (int i = 0; i < p.k[0]; ++i) {
      const int y0 = from0 + i * p.dilation;
      for (int j = 0; j < p.k[1]; ++j, step += uint(p.k[2])) {
        const int y1 = from1 + j * p.dilation;
        if (y0 < 0 || y0 >= p.n[0] || y1 < 0 || y1 >= p.n[1]) continue;
        const uint row = (p.at[0] >> 2) + (((first + c) * uint(p.n[0]) + uint(y0)) * uint(p.n[1]) + uint(y1)) * uint(p.n[2]);
        for (int l = 0; l < p.k[2]; ++l) {
          float seen[places_of_tile];
          [[unroll]] for (uint t = 0u; t < places_of_tile; ++t) {
            const int y2 = last[t] + l * p.dilation;
            seen[t] = y2 >= 0 && y2 < p.n[2] ? x.v[row + uint(y2)] : 0.0;
          }
          [[unroll]] for (uint e = 0u; e < outs_of_tile; ++e) {
            const float f = w.v[kernel[e] + step + uint(l)];
            [[unroll]] for (uint t = 0u; t < places_of_tile; ++t) sum[e * places_of_tile + t] += f * seen[t];
          }
        }
      }
    }
  [[unroll]] for (uint e = 0u; e < outs_of_tile; ++e)
    [[unroll]] for (uint t = 0u; t < places_of_tile; ++t) {
      const uint at = column + t * p.place_tiles, o = group * of_group + out0 + e;
      if (out0 + e >= of_group || at >= uint(p.m[2])) continue;
      const uint to = ((sequence * p.outs + o) * uint(p.m[0]) + uint(place[0])) * uint(p.m[1]) + uint(place[1]);
      result.v[(p.at[2] >> 2) + to * uint(p.m[2]) + at] = sum[e * places_of_tile + t];
    }
}

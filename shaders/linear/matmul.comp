// Products with many tokens, in tiles: a workgroup of 64 invocations computes 32 tokens of 32 rows, 32 columns of k at a
// time from shared memory, each invocation four tokens of four rows. out[t, first + r] = sum_k w[r, k] · x[t, k] +
// bias[r] + residual[t, first + r].
#version 450
#include "common.glsl"

layout(constant_id = 1) const uint has_bias = 0;
layout(constant_id = 2) const uint has_residual = 0;

layout(binding = 0) readonly buffer Weights { uint w[]; } weights;
layout(binding = 1) readonly buffer X { float v[]; } x;
layout(binding = 2) buffer Out { float v[]; } result;
layout(binding = 3) readonly buffer Bias { float v[]; } bias;
layout(binding = 4) readonly buffer Residual { float v[]; } residual;
layout(push_constant) uniform Push {
  uint at[5];
  uint rows, columns, row_bytes, first, stride, tokens, row_tiles;
} p;

#include "weights.glsl"

const uint tile = 32u, pitch = 33u;                        // one more than the tile, so that columns lie in other banks
shared float w_tile[tile * pitch];
shared float x_tile[tile * pitch];

void main() {
  const uint group = group_number(), me = gl_LocalInvocationID.x;
  const uint row0 = group % p.row_tiles * tile, token0 = group / p.row_tiles * tile;
  if (token0 >= p.tokens) return;
  const uint tx = me & 7u, ty = me >> 3;                   // rows tx + 8 i, tokens ty + 8 j
  float sum[16];
  for (uint i = 0u; i < 16u; ++i) sum[i] = 0.0;
  for (uint k0 = 0u; k0 < p.columns; k0 += tile) {
    for (uint piece = me; piece < tile * 4u; piece += local_size) {
      const uint r = piece >> 2, kk = (piece & 3u) * 8u, k = k0 + kk, row = row0 + r;
      vec4 a = vec4(0.0), b = vec4(0.0);
      if (row < p.rows) {
        const uint base = p.at[0] + row * p.row_bytes;
        if (k + 8u <= p.columns) decode8(base, k, a, b);
#if ENCODING == F32 || ENCODING == F16 || ENCODING == BF16
        else {
          for (uint i = 0u; i < 4u; ++i)
            if (k + i < p.columns) a[i] = decode1(base, k + i);
          for (uint i = 0u; i < 4u; ++i)
            if (k + 4u + i < p.columns) b[i] = decode1(base, k + 4u + i);
        }
#endif
      }
      const uint to = r * pitch + kk;
      w_tile[to] = a.x; w_tile[to + 1u] = a.y; w_tile[to + 2u] = a.z; w_tile[to + 3u] = a.w;
      w_tile[to + 4u] = b.x; w_tile[to + 5u] = b.y; w_tile[to + 6u] = b.z; w_tile[to + 7u] = b.w;
    }
    for (uint piece = me; piece < tile * tile; piece += local_size) {
      const uint t = piece >> 5, kk = piece & 31u, k = k0 + kk, token = token0 + t;
      x_tile[t * pitch + kk] = token < p.tokens && k < p.columns ? x.v[(p.at[1] >> 2) + token * p.columns + k] : 0.0;
    }
    barrier();
    for (uint kk = 0u; kk < tile; ++kk) {
      vec4 a, b;
      for (uint i = 0u; i < 4u; ++i) a[i] = w_tile[(tx + 8u * i) * pitch + kk];
      for (uint j = 0u; j < 4u; ++j) b[j] = x_tile[(ty + 8u * j) * pitch + kk];
      for (uint j = 0u; j < 4u; ++j)
        for (uint i = 0u; i < 4u; ++i) sum[j * 4u + i] += a[i] * b[j];
    }
    barrier();
  }
  for (uint j = 0u; j < 4u; ++j)
    for (uint i = 0u; i < 4u; ++i) {
      const uint row = row0 + tx + 8u * i, token = token0 + ty + 8u * j;
      if (row >= p.rows || token >= p.tokens) continue;
      const uint to = token * p.stride + p.first + row;
      float all = sum[j * 4u + i];
      if (has_bias != 0u) all += bias.v[(p.at[3] >> 2) + row];
      if (has_residual != 0u) all += residual.v[(p.at[4] >> 2) + to];
      result.v[(p.at[2] >> 2) + to] = all;
    }
}

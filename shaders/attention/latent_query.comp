// Queries into the latents' space: q[t, h, c] = sum_i nope[t, h, i] · up[h · of_head + i, c] for c below rank. An invocation has eight
// columns of a head, for a tile of tokens, and goes over the head's rows for keys in their order, as far as this block of `up` has them:
// it goes on with the sum of the block before where a head's rows begin there.
#version 450
#include "common.glsl"

layout(constant_id = 1) const uint tokens = 1;             // of a tile

layout(binding = 0) readonly buffer Weights { uint w[]; } weights;
layout(binding = 1) readonly buffer Nope { float v[]; } nope;
layout(binding = 2) buffer Out { float v[]; } result;      // [t, heads, width]
layout(push_constant) uniform Push {
  uint at[3];
  uint all_tokens, heads, n, of_head, rank, width, row_bytes;
  uint first, held;                                        // of the rows of `up`: those that this binding holds
  uint first_head, end_head, units, across;                // heads that have some of them; eights of columns; workgroups of a tile
} p;

#include "weights.glsl"

// Elements k … k + 7 of a row, those beyond its end 0.
void eight(uint row, uint k, out vec4 a, out vec4 b) {
#if ENCODING == F32 || ENCODING == F16 || ENCODING == BF16
  if (k + 8u > p.rank) {
    a = b = vec4(0.0);
    for (uint i = 0u; k + i < p.rank; ++i) {
      const float x = decode1(row, k + i);
      if (i < 4u) a[i] = x;
      else b[i - 4u] = x;
    }
    return;
  }
#endif
  decode8(row, k, a, b);
}

void main() {
  const uint group = group_number(), token0 = group / p.across * tokens;
  const uint number = group % p.across * local_size + gl_LocalInvocationID.x;
  const uint h = p.first_head + number / p.units, c = number % p.units * 8u;
  if (token0 >= p.all_tokens || h >= p.end_head) return;
  const uint top = h * p.of_head, stop = p.first + p.held;
  const uint begin = p.first > top ? p.first - top : 0u, end = min(p.n, stop > top ? stop - top : 0u);
  if (begin >= end) return;
  const uint columns = min(8u, p.rank - c);
  uint from[tokens], to[tokens];
  float sum[tokens * 8u];
  for (uint t = 0u; t < tokens; ++t) {
    const uint row = min(token0 + t, p.all_tokens - 1u) * p.heads + h;
    from[t] = (p.at[1] >> 2) + row * p.n;
    to[t] = (p.at[2] >> 2) + row * p.width + c;
    for (uint i = 0u; i < 8u; ++i) sum[t * 8u + i] = begin > 0u && i < columns ? result.v[to[t] + i] : 0.0;
  }
  for (uint i = begin; i < end; ++i) {
    vec4 a, b;
    eight(p.at[0] + (top + i - p.first) * p.row_bytes, c, a, b);
    for (uint t = 0u; t < tokens; ++t) {
      const float x = nope.v[from[t] + i];
      for (uint e = 0u; e < 4u; ++e) {
        sum[t * 8u + e] = fma(x, a[e], sum[t * 8u + e]);
        sum[t * 8u + 4u + e] = fma(x, b[e], sum[t * 8u + 4u + e]);
      }
    }
  }
  for (uint t = 0u; t < tokens; ++t) {
    if (token0 + t >= p.all_tokens) break;
    for (uint i = 0u; i < columns; ++i) result.v[to[t] + i] = sum[t * 8u + i];
  }
}

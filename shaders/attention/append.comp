// Rows of keys, values or latents [t, heads, d] into a cache [slots, heads, capacity, width], from a column on, at each token's position.
#version 450
#include "common.glsl"

layout(binding = 0) readonly buffer X { float v[]; } x;
layout(binding = 1) writeonly buffer Cache { float v[]; } cache;
layout(binding = 2) readonly buffer Positions { int v[]; } positions;
layout(binding = 3) readonly buffer Sequence { int v[]; } sequence;
layout(binding = 4) readonly buffer Slots { int v[]; } slots;
layout(push_constant) uniform Push {
  uint at[5];
  uint tokens, heads, d, capacity, first, held;            // (slot, head) pairs of the cache that this binding holds
  uint width, column;
} p;

void main() {
  const uint width = p.heads * p.d, me = invocation_number();
  if (me >= p.tokens * width) return;
  const uint t = me / width, h = me % width / p.d, i = me % p.d;
  const uint pair = uint(slots.v[(p.at[4] >> 2) + uint(sequence.v[(p.at[3] >> 2) + t])]) * p.heads + h - p.first;
  if (pair >= p.held) return;
  const uint position = uint(positions.v[(p.at[2] >> 2) + t]);
  cache.v[(p.at[1] >> 2) + (pair * p.capacity + position) * p.width + p.column + i] = x.v[(p.at[0] >> 2) + t * width + h * p.d + i];
}

// to[…] = from[…] in the order of the axes, each side with its own strides; an invocation takes one element. Whole numbers
// and bools may become f32.
#version 450
#include "common.glsl"

layout(constant_id = 1) const uint rank = 1;
layout(constant_id = 2) const uint from_type = 0;
layout(constant_id = 3) const uint to_type = 0;

layout(binding = 0) readonly buffer From { uint v[]; } from;
layout(binding = 1) buffer To { uint v[]; } to;
layout(push_constant) uniform Push {
  uint at[2];
  uint count;
  uint arguments[21];                                      // sizes but the first, strides of `from`, strides of `to`
} p;

void main() {
  uint rest = invocation_number();
  if (rest >= p.count) return;
  uint a = 0u, b = 0u;
  for (uint axis = rank; axis-- > 0u;) {
    uint place = rest;
    if (axis > 0u) {
      place = rest % p.arguments[axis - 1u];
      rest /= p.arguments[axis - 1u];
    }
    a += place * p.arguments[rank - 1u + axis];
    b += place * p.arguments[2u * rank - 1u + axis];
  }
  uint word;
  if (from_type == dtype_bool) {
    a += p.at[0];
    word = (from.v[a >> 2] >> ((a & 3u) * 8u)) & 255u;
  } else {
    word = from.v[(p.at[0] >> 2) + a];
  }
  if (to_type == dtype_f32 && from_type == dtype_i32) word = floatBitsToUint(float(int(word)));
  if (to_type == dtype_f32 && from_type == dtype_bool) word = floatBitsToUint(word != 0u ? 1.0 : 0.0);
  if (to_type == dtype_bool) {
    b += p.at[1];
    const uint shift = (b & 3u) * 8u;
    atomicAnd(to.v[b >> 2], ~(255u << shift));
    atomicOr(to.v[b >> 2], (word & 255u) << shift);
  } else {
    to.v[(p.at[1] >> 2) + b] = word;
  }
}

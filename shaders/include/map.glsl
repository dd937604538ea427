// Around a fused elementwise expression: which elements of its inputs a result's element is made of. Before it: INPUTS, and
// a buffer block input_0, input_1, … at bindings 1, 2, …, each with its element type in constant 4, 5, ….
#include "common.glsl"
#include "math.glsl"

layout(constant_id = 1) const uint rank = 1;
layout(constant_id = 2) const uint arguments_in_buffer = 0;            // where push constants do not hold them all
layout(constant_id = 3) const uint result_type = 0;

layout(binding = 0) buffer Result { uint v[]; } result;
layout(binding = INPUTS + 1) readonly buffer Arguments { uint v[]; } more_arguments;
layout(push_constant) uniform Push {
  uint at[INPUTS + 2];
  uint arguments[30 - INPUTS];                             // count, sizes of all axes but the first, each input's strides
} p;

uint map_argument(uint i) {
  return arguments_in_buffer != 0u ? more_arguments.v[(p.at[INPUTS + 1] >> 2) + i] : p.arguments[i];
}

// The element of input `i` that element `e` of the result is made of.
uint map_place(uint i, uint e) {
  uint place = 0u;
  for (uint axis = rank; axis-- > 0u;) {
    uint here = e;
    if (axis > 0u) {
      const uint size = map_argument(axis);
      here = e % size;
      e /= size;
    }
    place += here * map_argument(rank + i * rank + axis);
  }
  return place;
}

// The word that holds element `e` of an input of this type, and the element out of its word.
uint map_word(uint i, uint type, uint e) { return type == dtype_bool ? (p.at[i + 1u] + e) >> 2 : (p.at[i + 1u] >> 2) + e; }
float map_float(uint i, uint type, uint e, uint word) {
  if (type == dtype_bool) return ((word >> (((p.at[i + 1u] + e) & 3u) * 8u)) & 255u) != 0u ? 1.0 : 0.0;
  return type == dtype_i32 ? float(int(word)) : uintBitsToFloat(word);
}
int map_int(uint i, uint type, uint e, uint word) {
  if (type == dtype_bool) return ((word >> (((p.at[i + 1u] + e) & 3u) * 8u)) & 255u) != 0u ? 1 : 0;
  return type == dtype_i32 ? int(word) : int(uintBitsToFloat(word));
}

void map_store_bool(uint e, bool v) {
  const uint a = p.at[0] + e, shift = (a & 3u) * 8u;
  atomicAnd(result.v[a >> 2], ~(255u << shift));
  if (v) atomicOr(result.v[a >> 2], 1u << shift);
}
void map_store(uint e, float v) {
  if (result_type == dtype_bool) map_store_bool(e, v != 0.0);
  else result.v[(p.at[0] >> 2) + e] = result_type == dtype_i32 ? uint(int(v)) : floatBitsToUint(v);
}
void map_store(uint e, int v) {
  if (result_type == dtype_bool) map_store_bool(e, v != 0);
  else result.v[(p.at[0] >> 2) + e] = result_type == dtype_i32 ? uint(v) : floatBitsToUint(float(v));
}

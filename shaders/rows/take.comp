// out[r, :] = table[rows[r], :] · scale, for the rows of one block of the table; an invocation takes eight columns. A row
// that the table does not have is written to `faults`, once: its number and the table's length.
#version 450
#include "common.glsl"

layout(binding = 0) readonly buffer Weights { uint w[]; } weights;
layout(binding = 1) readonly buffer Rows { int v[]; } rows;
layout(binding = 2) writeonly buffer Out { float v[]; } result;
layout(binding = 3) buffer Faults { uint v[]; } faults;
layout(push_constant) uniform Push {
  uint at[4];
  uint count, columns, row_bytes, first, held, all;        // of this block: its first row, how many; all: of the table
  float scale;
} p;

#include "weights.glsl"

void main() {
  const uint pieces = (p.columns + 7u) / 8u, me = invocation_number();
  if (me >= p.count * pieces) return;
  const uint r = me / pieces, k = me % pieces * 8u;
  const int wanted = rows.v[(p.at[1] >> 2) + r];
  if (wanted < 0 || uint(wanted) >= p.all) {
    if (k == 0u && p.first == 0u && atomicCompSwap(faults.v[0], 0u, 1u) == 0u) {
      faults.v[1] = uint(wanted);
      faults.v[2] = p.all;
    }
    return;
  }
  if (uint(wanted) < p.first || uint(wanted) - p.first >= p.held) return;
  const uint base = p.at[0] + (uint(wanted) - p.first) * p.row_bytes, to = (p.at[2] >> 2) + r * p.columns + k;
  if (k + 8u <= p.columns) {
    vec4 a, b;
    decode8(base, k, a, b);
    for (uint i = 0u; i < 4u; ++i) {
      result.v[to + i] = a[i] * p.scale;
      result.v[to + 4u + i] = b[i] * p.scale;
    }
  }
#if ENCODING == F32 || ENCODING == F16 || ENCODING == BF16
  else {
    for (uint i = 0u; k + i < p.columns; ++i) result.v[to + i] = decode1(base, k + i) * p.scale;
  }
#endif
}

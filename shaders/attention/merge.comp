// What attend.comp left of a query's keys in parts [rows, heads, parts, dv + 2] becomes its result [rows, heads, dv]; an
// invocation takes one channel. Parts are added in order, and one that saw nothing changes nothing.
#version 450
#include "common.glsl"
#include "math.glsl"

layout(constant_id = 1) const uint has_sinks = 0;

layout(binding = 0) readonly buffer Parts { float v[]; } partial;
layout(binding = 1) writeonly buffer Out { float v[]; } result;
layout(binding = 2) readonly buffer Sinks { float v[]; } sinks;
layout(push_constant) uniform Push {
  uint at[3];
  uint rows, heads, parts, dv;                             // rows: times heads
} p;

void main() {
  const uint me = invocation_number();
  if (me >= p.rows * p.dv) return;
  const uint row = me / p.dv, channel = me % p.dv, from = (p.at[0] >> 2) + row * p.parts * (p.dv + 2u);
  float largest = -math_inf;
  for (uint i = 0u; i < p.parts; ++i) largest = max(largest, partial.v[from + i * (p.dv + 2u) + p.dv]);
  float sink = -math_inf;
  if (has_sinks != 0u && largest != -math_inf) {
    sink = sinks.v[(p.at[2] >> 2) + row % p.heads];
    largest = max(largest, sink);
  }
  float total = 0.0, sum = 0.0;
  for (uint i = 0u; i < p.parts; ++i) {
    const uint at = from + i * (p.dv + 2u);
    const float its = partial.v[at + p.dv], also = partial.v[at + p.dv + 1u];
    // A part whose every score is a NaN has a total that is one, and no largest.
    if (its == -math_inf && !math_is_nan(also)) continue;
    const float fade = its == -math_inf ? 1.0 : math_exp(its - largest);
    total = fma(also, fade, total);
    sum = fma(partial.v[at + channel], fade, sum);
  }
  if (sink != -math_inf) total += math_exp(sink - largest);
  result.v[(p.at[1] >> 2) + me] = math_is_nan(total) ? total : (largest == -math_inf ? 0.0 : sum / total);
}

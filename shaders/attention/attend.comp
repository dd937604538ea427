// softmax(scale · q kᵀ + mask) v with the maximum and the sum carried along (online): a workgroup takes one query row of
// one head, local_size keys at a time. First each invocation scores one key, then each sums its own channels of v.
#version 450
#include "common.glsl"
#include "group.glsl"
#include "math.glsl"

// Where keys lie: in a cache [slots, heads, capacity, d]; one ragged sequence after another [t, heads, d]; rectangular
// sequences [s, m, heads, d].
const uint in_cache = 0, ragged = 1, rectangular = 2;
layout(constant_id = 1) const uint layout_of_keys = 0;
layout(constant_id = 2) const uint causal = 1;
layout(constant_id = 3) const uint has_softcap = 0;
layout(constant_id = 4) const uint has_sinks = 0;
layout(constant_id = 5) const uint keep_type = 3;          // dtype of keep; 3: there is none

layout(binding = 0) readonly buffer Q { float v[]; } q;
layout(binding = 1) readonly buffer K { float v[]; } k;
layout(binding = 2) readonly buffer V { float v[]; } v;
layout(binding = 3) writeonly buffer Out { float v[]; } result;
layout(binding = 4) readonly buffer Positions { int v[]; } positions;
layout(binding = 5) readonly buffer Lengths { int v[]; } lengths;
layout(binding = 6) readonly buffer Sequence { int v[]; } sequence;
layout(binding = 7) readonly buffer Places { int v[]; } places;        // in_cache: slots; ragged: starts
layout(binding = 8) readonly buffer Sinks { float v[]; } sinks;
layout(binding = 9) readonly buffer Keep { uint v[]; } keep;           // in_cache: what each sequence held, where less than its length
layout(push_constant) uniform Push {
  uint at[10];
  uint rows, query_heads, heads, d, dv;
  uint capacity;                                           // in_cache: positions of a slot; rectangular: m
  uint n;                                                  // rectangular: rows of a sequence
  uint window;
  uint first, held;                                        // in_cache: slots that this binding holds
  float scale, softcap;
} p;

const uint most_channels = 8;                              // of v, for one invocation
shared float weight_of[local_size];

bool kept(uint i) {
  if (keep_type == dtype_bool) {
    const uint a = p.at[9] + i;
    return ((keep.v[a >> 2] >> ((a & 3u) * 8u)) & 255u) != 0u;
  }
  const uint word = keep.v[(p.at[9] >> 2) + i];
  return keep_type == dtype_f32 ? uintBitsToFloat(word) != 0.0 : word != 0u;
}

void main() {
  const uint group = group_number(), me = gl_LocalInvocationID.x;
  if (group >= p.rows * p.query_heads) return;
  const uint t = group / p.query_heads, h = group % p.query_heads, kv = h / (p.query_heads / p.heads);

  // Key j lies at k_base + j · k_step; the row sees lo <= j < hi.
  uint k_base, v_base, k_step, v_step, hi, place, keep_base = 0u;
  if (layout_of_keys == in_cache) {
    const uint slot = uint(places.v[(p.at[7] >> 2) + uint(sequence.v[(p.at[6] >> 2) + t])]) - p.first;
    if (slot >= p.held) return;
    k_step = p.d;
    v_step = p.dv;
    k_base = (slot * p.heads + kv) * p.capacity * p.d;
    v_base = (slot * p.heads + kv) * p.capacity * p.dv;
    place = uint(positions.v[(p.at[4] >> 2) + t]);
    hi = uint(lengths.v[(p.at[5] >> 2) + t]);
    if (keep_type != 3u) hi = min(hi, keep.v[(p.at[9] >> 2) + uint(sequence.v[(p.at[6] >> 2) + t])]);
  } else {
    k_step = p.heads * p.d;
    v_step = p.heads * p.dv;
    uint first_row;
    if (layout_of_keys == ragged) {
      const uint s = (p.at[7] >> 2) + uint(sequence.v[(p.at[6] >> 2) + t]);
      first_row = uint(places.v[s]);
      hi = uint(places.v[s + 1u]) - first_row;
      place = t - first_row;
    } else {
      first_row = t / p.n * p.capacity;
      hi = p.capacity;
      place = t % p.n;
      keep_base = first_row;
    }
    k_base = (first_row * p.heads + kv) * p.d;
    v_base = (first_row * p.heads + kv) * p.dv;
  }
  uint lo = 0u;
  if (causal != 0u) {
    hi = min(hi, place + 1u);
    if (p.window > 0u && place + 1u > p.window) lo = min(place + 1u - p.window, hi);
  }
  k_base += p.at[1] >> 2;
  v_base += p.at[2] >> 2;

  const uint q_base = (p.at[0] >> 2) + group * p.d;
  float acc[most_channels];
  for (uint c = 0u; c < most_channels; ++c) acc[c] = 0.0;
  float largest = -math_inf, total = 0.0;
  for (uint j0 = lo; j0 < hi; j0 += local_size) {
    const uint j = j0 + me;
    float score = -math_inf;
    if (j < hi && (keep_type == 3u || layout_of_keys == in_cache || kept(keep_base + j))) {
      float dot_product = 0.0;
      const uint key = k_base + j * k_step;
      for (uint i = 0u; i < p.d; ++i) dot_product += q.v[q_base + i] * k.v[key + i];
      score = dot_product * p.scale;
      if (has_softcap != 0u) score = p.softcap * math_tanh(score / p.softcap);
    }
    const float now = max(largest, group_max(math_is_nan(score) ? -math_inf : score));
    const float fade = now == -math_inf ? 1.0 : (largest == -math_inf ? 0.0 : math_exp(largest - now));
    const float weight = score == -math_inf ? 0.0 : math_exp(score - now);
    weight_of[me] = weight;
    total = total * fade + group_sum(weight);              // its barriers stand between weight_of's writing and reading
    largest = now;
    const uint count = min(local_size, hi - j0);
    for (uint c = 0u, i = me; i < p.dv; ++c, i += local_size) {
      float s = acc[c] * fade;
      for (uint jj = 0u; jj < count; ++jj)
        if (weight_of[jj] != 0.0) s += weight_of[jj] * v.v[v_base + (j0 + jj) * v_step + i];
      acc[c] = s;
    }
    barrier();
  }
  float factor = 0.0;
  if (math_is_nan(total)) {
    factor = total;
  } else if (largest != -math_inf) {
    float fade = 1.0;
    if (has_sinks != 0u) {
      const float sink = sinks.v[(p.at[8] >> 2) + h], now = max(largest, sink);
      fade = math_exp(largest - now);
      total = total * fade + math_exp(sink - now);
    }
    factor = fade / total;
  }
  for (uint c = 0u, i = me; i < p.dv; ++c, i += local_size) result.v[(p.at[3] >> 2) + group * p.dv + i] = acc[c] * factor;
}

// The k best of scores + bias of each row, largest first, of equals the lower index; an invocation takes a row. With groups
// only the best groups stand, 64 at most; a group's score is its best, or the sum of its two best.
#version 450
#include "common.glsl"
#include "math.glsl"

layout(constant_id = 1) const uint has_bias = 0;
layout(constant_id = 2) const uint two_best = 0;
layout(constant_id = 3) const uint renormalize = 0;

layout(binding = 0) readonly buffer Scores { float v[]; } scores;
layout(binding = 1) readonly buffer Bias { float v[]; } bias;
layout(binding = 2) buffer Chosen { int v[]; } chosen;
layout(binding = 3) buffer Weights { float v[]; } weights;
layout(push_constant) uniform Push {
  uint at[4];
  uint rows, n, k, groups, keep_groups;
  float scale;
} p;

float score(uint from, uint i) { return scores.v[from + i] + (has_bias != 0u ? bias.v[(p.at[1] >> 2) + i] : 0.0); }

float group_score(uint from, uint g) {
  const uint size = p.n / p.groups;
  float first = -math_inf, second = -math_inf;
  for (uint i = g * size; i < (g + 1u) * size; ++i) {
    const float s = score(from, i);
    if (s > first) { second = first; first = s; }
    else if (s > second) second = s;
  }
  return two_best != 0u ? (size > 1u ? first + second : first) : first;
}

void main() {
  const uint row = invocation_number();
  if (row >= p.rows) return;
  const uint from = (p.at[0] >> 2) + row * p.n, to = row * p.k, size = p.n / p.groups;
  uvec2 kept = uvec2(0xFFFFFFFFu);
  if (p.keep_groups < p.groups) {
    kept = uvec2(0u);
    for (uint g = 0u; g < p.groups; ++g) {
      const float mine = group_score(from, g);
      uint better = 0u;
      for (uint h = 0u; h < p.groups; ++h) {
        const float other = group_score(from, h);
        if (other > mine || (other == mine && h < g)) ++better;
      }
      if (better < p.keep_groups) kept[g >> 5] |= 1u << (g & 31u);
    }
  }
  float last = math_inf, sum = 0.0;
  int last_index = -1;
  for (uint i = 0u; i < p.k; ++i) {
    // The largest that comes after the one before it.
    float best = -math_inf;
    int at = -1;
    for (uint j = 0u; j < p.n; ++j) {
      const uint g = p.keep_groups < p.groups ? j / size : 0u;
      const float s = (kept[g >> 5] >> (g & 31u) & 1u) != 0u ? score(from, j) : -math_inf;
      const bool after = i == 0u || s < last || (s == last && int(j) > last_index);
      if (after && (at < 0 || s > best)) { best = s; at = int(j); }
    }
    last = best;
    last_index = at;
    at = max(at, 0);
    const float weight = scores.v[from + uint(at)];
    chosen.v[(p.at[2] >> 2) + to + i] = at;
    weights.v[(p.at[3] >> 2) + to + i] = weight;
    sum += weight;
  }
  const float factor = renormalize != 0u ? p.scale / (sum + 1e-20) : p.scale;
  for (uint i = 0u; i < p.k; ++i) weights.v[(p.at[3] >> 2) + to + i] *= factor;
}

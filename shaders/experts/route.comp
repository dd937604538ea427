// The k best of scores + bias of each row, largest first, of equals the lower index; an invocation takes a row. With groups
// only the best groups stand: those that are not behind the last of them. A group's score is its best, or the sum of its two
// best.
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

// Whether (b, j) comes after (a, i): smaller, or as large and later. Of nothing yet (i = -1) everything does.
bool behind(float a, int i, float b, int j) { return i < 0 || b < a || (b == a && j > i); }

void main() {
  const uint row = invocation_number();
  if (row >= p.rows) return;
  const uint from = (p.at[0] >> 2) + row * p.n, to = row * p.k, groups = p.keep_groups < p.groups ? p.groups : 1u, size = p.n / groups;
  // The last group that stands.
  float bound = -math_inf;
  int bound_at = -1;
  for (uint i = 0u; groups > 1u && i < p.keep_groups; ++i) {
    float best = -math_inf;
    int at = -1;
    for (uint g = 0u; g < groups; ++g) {
      const float s = group_score(from, g);
      if (behind(bound, bound_at, s, int(g)) && (at < 0 || s > best)) { best = s; at = int(g); }
    }
    if (at < 0) break;
    bound = best;
    bound_at = at;
  }
  float last = math_inf, sum = 0.0;
  int last_index = -1;
  for (uint i = 0u; i < p.k; ++i) {
    // The largest that comes after the one before it.
    float best = -math_inf;
    int at = -1;
    for (uint g = 0u; g < groups; ++g) {
      const bool stands = groups == 1u || !behind(bound, bound_at, group_score(from, g), int(g));
      for (uint j = g * size; j < (groups == 1u ? p.n : (g + 1u) * size); ++j) {
        const float s = stands ? score(from, j) : -math_inf;
        if (behind(last, last_index, s, int(j)) && (at < 0 || s > best)) { best = s; at = int(j); }
      }
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

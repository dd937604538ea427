// Along the middle axis of x [outer, n, inner]: a workgroup takes one line. sum, mean, max, min, argmax give one element;
// softmax, l2_normalize and cumsum keep the axis. What `where` [outer, n] leaves out does not count.
#version 450
#include "common.glsl"
#include "group.glsl"
#include "math.glsl"

const uint k_sum = 0, k_mean = 1, k_max = 2, k_min = 3, k_argmax = 4, k_softmax = 5, k_cumsum = 6, k_l2 = 7;
layout(constant_id = 1) const uint kind = 0;
layout(constant_id = 2) const uint where_type = 3;         // dtype of where; 3: there is none

layout(binding = 0) readonly buffer X { TYPE v[]; } x;
layout(binding = 1) buffer Out { TYPE v[]; } result;
layout(binding = 2) readonly buffer Where { uint v[]; } wanted;
layout(binding = 3) buffer Index { int v[]; } index;       // argmax alone
layout(push_constant) uniform Push {
  uint at[4];
  uint lines, n, inner;
  float eps;
} p;

shared TYPE best_scratch[local_size];
shared uint place_scratch[local_size];

bool counts(uint outer, uint j) {
  if (where_type == 3u) return true;
  const uint i = outer * p.n + j;
  if (where_type == dtype_bool) {
    const uint a = p.at[2] + i;
    return ((wanted.v[a >> 2] >> ((a & 3u) * 8u)) & 255u) != 0u;
  }
  return uintBitsToFloat(wanted.v[(p.at[2] >> 2) + i]) != 0.0;
}

const uint nowhere = 0xFFFFFFFFu;

// Whether (b, j) goes before (a, i); nothing is at `nowhere`.
bool before(TYPE a, uint i, TYPE b, uint j) {
  if (j == nowhere) return false;
  if (i == nowhere) return true;
#ifdef REAL
  if (kind != k_argmax && (math_is_nan(a) || math_is_nan(b))) return !math_is_nan(a);
#endif
  if (kind == k_min) return b < a;
  return b > a || (b == a && j < i);
}

void main() {
  const uint line = group_number(), me = gl_LocalInvocationID.x;
  if (line >= p.lines) return;
  const uint outer = line / p.inner, from = (p.at[0] >> 2) + outer * p.n * p.inner + line % p.inner;
  const uint kept = (p.at[1] >> 2) + outer * p.n * p.inner + line % p.inner, one = (p.at[1] >> 2) + line;

  if (kind == k_cumsum) {
    if (me != 0u) return;
#ifdef REAL
    precise float sum = 0.0, lost = 0.0;                   // what rounding took away is carried along
#else
    int sum = 0;
#endif
    for (uint j = 0u; j < p.n; ++j) {
      if (counts(outer, j)) {
#ifdef REAL
        precise float y = x.v[from + j * p.inner] - lost;
        precise float next = sum + y;
        lost = (next - sum) - y;
        sum = next;
#else
        sum += x.v[from + j * p.inner];
#endif
      }
      result.v[kept + j * p.inner] = sum;
    }
    return;
  }

  if (kind == k_max || kind == k_min || kind == k_argmax || kind == k_softmax) {
    TYPE best = TYPE(0);
    uint place = nowhere;
    for (uint j = me; j < p.n; j += local_size)
      if (counts(outer, j) && before(best, place, x.v[from + j * p.inner], j)) {
        best = x.v[from + j * p.inner];
        place = j;
      }
    best_scratch[me] = best;
    place_scratch[me] = place;
    barrier();
    for (uint half_size = local_size / 2; half_size > 0; half_size /= 2) {
      if (me < half_size && before(best_scratch[me], place_scratch[me], best_scratch[me + half_size], place_scratch[me + half_size])) {
        best_scratch[me] = best_scratch[me + half_size];
        place_scratch[me] = place_scratch[me + half_size];
      }
      barrier();
    }
    best = best_scratch[0];
    place = place_scratch[0];
    barrier();
    if (kind == k_argmax) {
      if (me == 0u) index.v[(p.at[3] >> 2) + line] = place == nowhere ? 0 : int(place);
      return;
    }
    if (kind != k_softmax) {
#ifdef REAL
      if (place == nowhere) best = kind == k_max ? -math_inf : math_inf;
#else
      if (place == nowhere) best = kind == k_max ? (-2147483647 - 1) : 2147483647;
#endif
      if (me == 0u) result.v[one] = best;
      return;
    }
#ifdef REAL
    float total = 0.0;
    for (uint j = me; j < p.n; j += local_size) {
      const float e = counts(outer, j) ? math_exp(x.v[from + j * p.inner] - best) : 0.0;
      result.v[kept + j * p.inner] = e;
      total += e;
    }
    total = group_sum(total);
    const float factor = total == 0.0 ? 0.0 : 1.0 / total;
    for (uint j = me; j < p.n; j += local_size) result.v[kept + j * p.inner] *= factor;
#endif
    return;
  }

#ifdef REAL
  precise float sum = 0.0, lost = 0.0;
  float count = 0.0;
  for (uint j = me; j < p.n; j += local_size) {
    if (!counts(outer, j)) continue;
    count += 1.0;
    const float v = x.v[from + j * p.inner];
    precise float y = (kind == k_l2 ? v * v : v) - lost;
    precise float next = sum + y;
    lost = (next - sum) - y;
    sum = next;
  }
  const float total = group_sum(sum);
  if (kind == k_l2) {
    const float factor = 1.0 / max(sqrt(total), p.eps);
    for (uint j = me; j < p.n; j += local_size) result.v[kept + j * p.inner] = x.v[from + j * p.inner] * factor;
    return;
  }
  const float held = group_sum(count);
  if (me == 0u) result.v[one] = kind == k_mean && held > 0.0 ? total / held : total;
#else
  int sum = 0, count = 0;
  for (uint j = me; j < p.n; j += local_size)
    if (counts(outer, j)) {
      sum += x.v[from + j * p.inner];
      ++count;
    }
  best_scratch[me] = sum;
  place_scratch[me] = uint(count);
  barrier();
  for (uint half_size = local_size / 2; half_size > 0; half_size /= 2) {
    if (me < half_size) {
      best_scratch[me] += best_scratch[me + half_size];
      place_scratch[me] += place_scratch[me + half_size];
    }
    barrier();
  }
  if (me == 0u) {
    const int held = int(place_scratch[0]);
    result.v[one] = kind == k_mean && held > 0 ? best_scratch[0] / held : best_scratch[0];
  }
#endif
}

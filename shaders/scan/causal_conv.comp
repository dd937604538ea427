// out[t] = bias + Σ_j w[:, j] · x[t − (k − 1) + j] within a token's sequence: x [t, channels], w [channels, k]; what lies before the
// call is in ring [slots, k − 1, channels]. An invocation takes one channel of one token.
//
// RING: the rows that the next call needs, an invocation for one channel of one sequence. It goes from the oldest to the newest, so
// that a row that moves up is read before it is written.
#version 450
#include "common.glsl"

layout(constant_id = 1) const uint has_bias = 0;

layout(binding = 0) readonly buffer X { float v[]; } x;
#ifdef RING
layout(binding = 1) buffer Ring { float v[]; } ring;
#else
layout(binding = 1) readonly buffer Ring { float v[]; } ring;
#endif
layout(binding = 2) readonly buffer Slots { int v[]; } slots;
layout(binding = 3) readonly buffer Starts { int v[]; } starts;
#ifndef RING
layout(binding = 4) readonly buffer Sequence { int v[]; } sequence_of;
layout(binding = 5) readonly buffer W { float v[]; } w;
layout(binding = 6) readonly buffer Bias { float v[]; } bias;
layout(binding = 7) writeonly buffer Out { float v[]; } result;
#endif
layout(push_constant) uniform Push {
#ifdef RING
  uint at[4];
#else
  uint at[8];
#endif
  uint channels, before;                                   // before: k − 1
  uint tokens, first_token;                                // of the batch, that the bindings show
  uint sequences;
  uint first, bound;                                       // slots of the ring that its binding shows
} p;

void main() {
  const uint me = invocation_number(), channel = me % p.channels;
#ifdef RING
  const uint sequence = me / p.channels;
  if (sequence >= p.sequences) return;
#else
  const uint t = me / p.channels;
  if (t >= p.tokens) return;
  const uint sequence = uint(sequence_of.v[(p.at[4] >> 2) + p.first_token + t]);
#endif
  // Rows of x that are the sequence's; where the batch is shown in parts, what came in earlier ones is in the ring.
  const uint begin = max(uint(starts.v[(p.at[3] >> 2) + sequence]), p.first_token);
  const uint slot = uint(slots.v[(p.at[2] >> 2) + sequence]) - p.first;
  if (p.before > 0u && slot >= p.bound) return;
  const uint old = (p.at[1] >> 2) + slot * p.before * p.channels + channel;
  const uint at_x = (p.at[0] >> 2) + (begin - p.first_token) * p.channels + channel;
#ifdef RING
  const uint end = min(uint(starts.v[(p.at[3] >> 2) + sequence + 1u]), p.first_token + p.tokens);
  if (begin >= end) return;
  // Row i of the ring is row i + n of what was in it with what came behind.
  for (uint i = 0u; i < p.before; ++i) {
    const uint from = i + end - begin;
    ring.v[old + i * p.channels] = from < p.before ? ring.v[old + from * p.channels] : x.v[at_x + (from - p.before) * p.channels];
  }
#else
  float sum = has_bias != 0u ? bias.v[(p.at[6] >> 2) + channel] : 0.0;
  const uint here = t + p.first_token - begin, weight = (p.at[5] >> 2) + channel * (p.before + 1u);
  for (uint j = 0u; j <= p.before; ++j) {
    const uint from = here + j;
    const float v = from < p.before ? ring.v[old + from * p.channels] : x.v[at_x + (from - p.before) * p.channels];
    sum = fma(w.v[weight + j], v, sum);
  }
  result.v[(p.at[7] >> 2) + me] = sum;
#endif
}

// What goes token by token, with a state for each sequence: written as the recurrence itself, never in chunks. The state
// is f32 between tokens, as it is between calls, so that where a prompt is cut changes nothing.
#include <cmath>

#include "frontend/graph/eval/reference.h"

namespace modelc::graph::eval::reference {

namespace {

// The slot of a sequence, zeros where it begins. A state that has not seen what came before cannot go on.
Result<State::Slot*> resume(Call& c, const Segment& g) {
  State::Slot& slot = c.state->slots[g.slot];
  if (slot.k.empty()) {
    std::size_t n = 1;
    for (std::size_t s : c.state->sizes) n *= s;
    slot.k.assign(n, 0.0f);
  }
  if (slot.seen != g.start)
    return Error{"state",
                 std::string(info(c.op.kind).name) + ": slot " + std::to_string(g.slot) + " goes on at position " +
                     std::to_string(g.start) + ", but the state " + c.op.member + " has seen " + std::to_string(slot.seen) +
                     " tokens of it",
                 {},
                 ""};
  slot.seen += g.tokens;
  return &slot;
}

}  // namespace

// y[t] = b + Σ_j w[j] · x[t - (k - 1) + j]; what lies before the call stands in the ring.
Status causal_conv1d(Call& c) {
  const Array &x = c.in(0), &w = c.in(1);
  Array& y = c.out();
  const auto channels = static_cast<std::size_t>(x.shape[1]), k = static_cast<std::size_t>(w.shape[1]);
  std::size_t first = 0;                                                      // row of the segment's first token
  for (const Segment& g : c.batch->segments) {
    const Result<State::Slot*> slot = resume(c, g);
    if (!slot) return slot.error();
    const auto tokens = static_cast<std::size_t>(g.tokens);
    std::vector<float> rows = (*slot)->k;                                     // [k - 1 + tokens, channels]
    rows.insert(rows.end(), x.reals.begin() + static_cast<std::ptrdiff_t>(first * channels),
                x.reals.begin() + static_cast<std::ptrdiff_t>((first + tokens) * channels));
    for (std::size_t t = 0; t < tokens; ++t)
      for (std::size_t i = 0; i < channels; ++i) {
        double sum = c.has(2) ? c.in(2).reals[i] : 0.0;
        for (std::size_t j = 0; j < k; ++j) sum += double{w.reals[i * k + j]} * rows[(t + j) * channels + i];
        y.reals[(first + t) * channels + i] = round_to(y.dtype, sum);
      }
    (*slot)->k.assign(rows.end() - static_cast<std::ptrdiff_t>((k - 1) * channels), rows.end());
    first += tokens;
  }
  return {};
}

// S [H, P, N]
Status ssd_scan(Call& c) {
  const Array &x = c.in(0), &dt = c.in(1), &a = c.in(2), &b = c.in(3), &out = c.in(4), &d = c.in(5);
  Array& y = c.out();
  const auto heads = static_cast<std::size_t>(x.shape[1]), p = static_cast<std::size_t>(x.shape[2]),
             groups = static_cast<std::size_t>(b.shape[1]), n = static_cast<std::size_t>(b.shape[2]);
  std::size_t t = 0;
  for (const Segment& g : c.batch->segments) {
    const Result<State::Slot*> slot = resume(c, g);
    if (!slot) return slot.error();
    for (std::int64_t token = 0; token < g.tokens; ++token, ++t)
      for (std::size_t h = 0; h < heads; ++h) {
        const double step = dt.reals[t * heads + h], decay = std::exp(step * a.reals[h]);
        const std::size_t shared = (t * groups + h / (heads / groups)) * n;
        for (std::size_t i = 0; i < p; ++i) {
          const double input = x.reals[(t * heads + h) * p + i];
          double sum = d.reals[h] * input;
          for (std::size_t j = 0; j < n; ++j) {
            float& s = (*slot)->k[(h * p + i) * n + j];
            s = static_cast<float>(decay * s + step * input * b.reals[shared + j]);
            sum += double{s} * out.reals[shared + j];
          }
          y.reals[(t * heads + h) * p + i] = round_to(y.dtype, sum);
        }
      }
  }
  return {};
}

// S [Hv, dk, dv]
Status gated_delta(Call& c) {
  const Array &q = c.in(0), &k = c.in(1), &v = c.in(2), &decay = c.in(3), &beta = c.in(4);
  Array& y = c.out();
  const auto kv_heads = static_cast<std::size_t>(k.shape[1]), dk = static_cast<std::size_t>(k.shape[2]),
             heads = static_cast<std::size_t>(v.shape[1]), dv = static_cast<std::size_t>(v.shape[2]);
  const double scale = real_attr(c.op, "scale", 1);
  // A row of q or k, its norm taken out where asked.
  const auto row = [&](const Array& of, std::size_t at) {
    std::vector<double> r(of.reals.begin() + static_cast<std::ptrdiff_t>(at * dk),
                          of.reals.begin() + static_cast<std::ptrdiff_t>((at + 1) * dk));
    if (!c.op.attrs.contains("normalize")) return r;
    double squares = real_attr(c.op, "normalize", 0);
    for (double e : r) squares += e * e;
    for (double& e : r) e /= std::sqrt(squares);
    return r;
  };
  std::size_t t = 0;
  for (const Segment& g : c.batch->segments) {
    const Result<State::Slot*> slot = resume(c, g);
    if (!slot) return slot.error();
    for (std::int64_t token = 0; token < g.tokens; ++token, ++t)
      for (std::size_t h = 0; h < heads; ++h) {
        const std::size_t shared = t * kv_heads + h / (heads / kv_heads);
        const std::vector<double> query = row(q, shared), key = row(k, shared);
        const double kept = std::exp(double{decay.reals[t * heads + h]}), rate = beta.reals[t * heads + h];
        float* s = (*slot)->k.data() + h * dk * dv;
        for (std::size_t j = 0; j < dv; ++j) {
          double held = 0;                                                    // what the state has under this key
          for (std::size_t i = 0; i < dk; ++i) held += kept * s[i * dv + j] * key[i];
          const double change = rate * (v.reals[(t * heads + h) * dv + j] - held);
          double sum = 0;
          for (std::size_t i = 0; i < dk; ++i) {
            float& e = s[i * dv + j];
            e = static_cast<float>(kept * e + key[i] * change);
            sum += e * query[i];
          }
          y.reals[(t * heads + h) * dv + j] = round_to(y.dtype, sum * scale);
        }
      }
  }
  return {};
}

}  // namespace modelc::graph::eval::reference

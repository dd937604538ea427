// Attention, head by head and query by query, and what goes with it.
#include <algorithm>
#include <cmath>

#include "frontend/graph/eval/reference.h"

namespace modelc::graph::eval::reference {

namespace {

// A key that a query sees, with its value.
struct Key {
  const float* k;                                // [d]
  const float* v;                                // [dv]
  double bias;
};

struct Settings {
  double scale = 1;
  std::optional<double> softcap;
  std::optional<double> sink;                    // the head's
};

// y = Σ_j p_j v_j with p = softmax_j(cap(scale · q·k_j) + bias_j) over the keys that are seen; the sink is one more
// logit, whose value is 0. A query that sees nothing gives 0.
void attend_one(const float* q, std::size_t d, const std::vector<Key>& keys, const Settings& s, float* y, std::size_t dv, DType dtype) {
  std::vector<double> logits;
  double largest = s.sink.value_or(-INFINITY);
  for (const Key& key : keys) {
    double dot = 0;
    for (std::size_t i = 0; i < d; ++i) dot += double{q[i]} * key.k[i];
    double logit = s.scale * dot;
    if (s.softcap) logit = *s.softcap * std::tanh(logit / *s.softcap);
    logits.push_back(logit + key.bias);
    largest = std::max(largest, logits.back());
  }
  if (keys.empty() || largest == -INFINITY) {
    std::fill(y, y + dv, 0.0f);
    return;
  }
  double total = s.sink ? std::exp(*s.sink - largest) : 0.0;
  for (double logit : logits) total += std::exp(logit - largest);
  for (std::size_t i = 0; i < dv; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < keys.size(); ++j) sum += std::exp(logits[j] - largest) * keys[j].v[i];
    y[i] = round_to(dtype, sum / total);
  }
}

// Whether the query at position p sees the key at position j of its sequence. A window counts visible positions, the
// own one included: window 1 sees itself alone.
bool sees(std::int64_t p, std::int64_t j, bool causal, std::int64_t window) {
  if (!causal) return true;
  return j <= p && p - j < window;
}

struct Mask {
  bool causal = false;
  std::int64_t window = INT64_MAX;
};

Settings settings_of(const Call& c, std::size_t head) {
  Settings s;
  s.scale = real_attr(c.op, "scale", 1);
  if (c.op.attrs.contains("softcap")) s.softcap = real_attr(c.op, "softcap", 0);
  if (c.has(4)) s.sink = c.in(4).reals[head];
  return s;
}

// Rows of the sequence that a call may see: those appended, up to its own last token; all of a CrossCache.
std::int64_t rows_of(const State& cache, const Segment& segment) {
  const auto slot = cache.slots.find(segment.slot);
  if (slot == cache.slots.end()) return 0;
  const auto rows = static_cast<std::int64_t>(slot->second.k.size() / cache.k_row());
  return cache.kind == StateKind::cross_cache ? rows : std::min(rows, segment.start + segment.tokens);
}

// attend(q, cache, at): each token sees the rows of its own sequence; of a CrossCache all that was set for it.
Status attend_state(Call& c, const Mask& mask) {
  const Array& q = c.in(0);
  Array& y = c.out();
  const State& cache = *c.state;
  const std::size_t first = cache.kind == StateKind::cross_cache ? 1 : 0;     // n, heads, dim; heads, dim, value_dim
  const std::size_t kv_heads = cache.sizes[first], d = cache.sizes[first + 1], dv = cache.sizes[2];
  const auto heads = static_cast<std::size_t>(q.shape[1]);
  const std::size_t group = heads / kv_heads;                                 // query heads to one key head
  for (std::size_t t = 0; t < static_cast<std::size_t>(q.shape[0]); ++t) {
    const Segment& segment = c.batch->segments[static_cast<std::size_t>(c.batch->sequence[t])];
    const auto slot = cache.slots.find(segment.slot);
    if (cache.kind == StateKind::cross_cache && slot == cache.slots.end())
      return Error{"state",
                   "attend: nothing has been set in the state " + c.op.member + " for slot " + std::to_string(segment.slot),
                   {"an entry of the model sets it; that comes before the sequence's first token"},
                   ""};
    const std::int64_t rows = rows_of(cache, segment);
    for (std::size_t h = 0; h < heads; ++h) {
      std::vector<Key> keys;
      for (std::int64_t j = 0; j < rows; ++j) {
        if (!sees(c.batch->positions[t], j, mask.causal, mask.window)) continue;
        const std::size_t row = static_cast<std::size_t>(j) * kv_heads + h / group;
        keys.push_back({slot->second.k.data() + row * d, slot->second.v.data() + row * dv, 0});
      }
      attend_one(q.reals.data() + (t * heads + h) * d, d, keys, settings_of(c, h), y.reals.data() + (t * heads + h) * dv, dv, y.dtype);
    }
  }
  return {};
}

// attend(q, k, v, at?): q [..., n, H, d], k [..., m, Hk, d], v [..., m, Hk, dv]; with `at` within each sequence.
Status attend_plain(Call& c, const Mask& mask) {
  const Array &q = c.in(0), &k = c.in(1), &v = c.in(2);
  Array& y = c.out();
  const std::size_t rank = q.shape.size();
  const auto n = static_cast<std::size_t>(q.shape[rank - 3]), m = static_cast<std::size_t>(k.shape[rank - 3]);
  const auto heads = static_cast<std::size_t>(q.shape[rank - 2]), kv_heads = static_cast<std::size_t>(k.shape[rank - 2]);
  const auto d = static_cast<std::size_t>(q.shape[rank - 1]), dv = static_cast<std::size_t>(v.shape[rank - 1]);
  const std::size_t group = heads / kv_heads;
  const Shape lead(q.shape.begin(), q.shape.end() - 3);
  Shape scores = lead;                                                        // [..., H, n, m]
  scores.insert(scores.end(), {q.shape[rank - 2], q.shape[rank - 3], k.shape[rank - 3]});
  const Array* bias = c.has(6) ? &c.in(6) : nullptr;
  const Broadcast at_bias(bias != nullptr ? bias->shape : Shape{}, scores);

  for_each_index(lead, [&](const Shape& index, std::size_t b) {
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t h = 0; h < heads; ++h) {
        std::vector<Key> keys;
        for (std::size_t j = 0; j < m; ++j) {
          // Rows are positions; of a Batch the tokens of one sequence stand together, so that distances are right there
          // too.
          if (!sees(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j), mask.causal, mask.window)) continue;
          if (c.batch != nullptr && c.batch->sequence[i] != c.batch->sequence[j]) continue;
          if (c.has(5) && c.in(5).integers[b * m + j] == 0) continue;
          Shape at = index;
          at.insert(at.end(), {static_cast<std::int64_t>(h), static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)});
          const std::size_t row = (b * m + j) * kv_heads + h / group;
          keys.push_back({k.reals.data() + row * d, v.reals.data() + row * dv, bias != nullptr ? bias->reals[at_bias(at)] : 0.0});
        }
        const std::size_t row = (b * n + i) * heads + h;
        attend_one(q.reals.data() + row * d, d, keys, settings_of(c, h), y.reals.data() + row * dv, dv, y.dtype);
      }
  });
  return {};
}

}  // namespace

Status attend(Call& c) {
  Mask mask;
  mask.causal = string_attr(c.op, "mask", "causal") == "causal";
  mask.window = integer_attr(c.op, "window", INT64_MAX);
  return c.state != nullptr ? attend_state(c, mask) : attend_plain(c, mask);
}

// The keys and values are worked out from the latents in f64 and never rounded: what an expanded and an absorbed kernel
// must both come to.
Status attend_latent(Call& c) {
  const Array &q_nope = c.in(0), &q_rope = c.in(1), &up = c.in(3);
  Array& y = c.out();
  const State& cache = *c.state;
  const std::size_t rank = cache.sizes[0], r = cache.sizes[1];
  const auto heads = static_cast<std::size_t>(q_nope.shape[1]), n = static_cast<std::size_t>(q_nope.shape[2]),
             v = static_cast<std::size_t>(y.shape[2]);
  const bool causal = string_attr(c.op, "mask", "causal") == "causal";
  const double scale = real_attr(c.op, "scale", 1);
  // Row `row` of up · latent.
  const auto raised = [&](std::size_t row, const float* latent) {
    double sum = 0;
    for (std::size_t i = 0; i < rank; ++i) sum += double{up.reals[row * rank + i]} * latent[i];
    return sum;
  };
  for (std::size_t t = 0; t < static_cast<std::size_t>(q_nope.shape[0]); ++t) {
    const Segment& segment = c.batch->segments[static_cast<std::size_t>(c.batch->sequence[t])];
    const auto slot = cache.slots.find(segment.slot);
    std::int64_t rows = rows_of(cache, segment);
    if (causal) rows = std::min(rows, c.batch->positions[t] + 1);
    for (std::size_t h = 0; h < heads && rows > 0; ++h) {
      std::vector<double> logits;
      for (std::size_t j = 0; j < static_cast<std::size_t>(rows); ++j) {
        double dot = 0;
        for (std::size_t i = 0; i < n; ++i)
          dot += q_nope.reals[(t * heads + h) * n + i] * raised(h * (n + v) + i, slot->second.k.data() + j * rank);
        for (std::size_t i = 0; i < r; ++i) dot += double{q_rope.reals[(t * heads + h) * r + i]} * slot->second.v[j * r + i];
        logits.push_back(scale * dot);
      }
      const double largest = *std::max_element(logits.begin(), logits.end());
      double total = 0;
      for (double& logit : logits) total += logit = std::exp(logit - largest);
      for (std::size_t i = 0; i < v; ++i) {
        double sum = 0;
        for (std::size_t j = 0; j < logits.size(); ++j) sum += logits[j] * raised(h * (n + v) + n + i, slot->second.k.data() + j * rank);
        y.reals[(t * heads + h) * v + i] = round_to(y.dtype, sum / total);
      }
    }
  }
  return {};
}

// Rows of the call go after those that the sequence had; what a failed call left beyond them is dropped.
Status append(Call& c) {
  const Array &k = c.in(0), &v = c.in(1);
  State& cache = *c.state;
  const std::size_t k_row = cache.k_row(), v_row = cache.v_row();
  std::size_t row = 0;
  for (const Segment& g : c.batch->segments) {
    State::Slot& rows = cache.slots[g.slot];
    const auto start = static_cast<std::size_t>(g.start), tokens = static_cast<std::size_t>(g.tokens);
    if (rows.k.size() < start * k_row)
      return Error{"state",
                   "append: slot " + std::to_string(g.slot) + " goes on at position " + std::to_string(g.start) + ", but the state " +
                       c.op.member + " has only " + std::to_string(rows.k.size() / k_row) + " rows of it",
                   {},
                   ""};
    rows.k.resize(start * k_row);
    rows.v.resize(start * v_row);
    rows.k.insert(rows.k.end(), k.reals.begin() + static_cast<std::ptrdiff_t>(row * k_row),
                  k.reals.begin() + static_cast<std::ptrdiff_t>((row + tokens) * k_row));
    rows.v.insert(rows.v.end(), v.reals.begin() + static_cast<std::ptrdiff_t>(row * v_row),
                  v.reals.begin() + static_cast<std::ptrdiff_t>((row + tokens) * v_row));
    row += tokens;
  }
  return {};
}

// The rows of a sequence that has no token yet: what its tokens attend to stays the same for all of them.
Status cross_set(Call& c) {
  const Array &k = c.in(0), &v = c.in(1);
  const std::size_t rows = c.sequences->slots.empty() ? 0 : k.reals.size() / c.sequences->slots.size();
  for (std::size_t s = 0; s < c.sequences->slots.size(); ++s) {
    const std::int64_t slot = c.sequences->slots[s];
    if (c.sequences->lengths[s] != 0)
      return Error{"state",
                   "set: slot " + std::to_string(slot) + " has " + std::to_string(c.sequences->lengths[s]) +
                       " tokens already, and the state " + c.op.member + " is set before the first",
                   {},
                   ""};
    const auto part = [&](const Array& x) {
      const auto begin = x.reals.begin() + static_cast<std::ptrdiff_t>(s * rows);
      return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(rows));
    };
    c.state->slots[slot] = {part(k), part(v)};
  }
  return {};
}

// The first r channels of every row, in pairs: (a, b) → magnitude · (a cos - b sin, b cos + a sin).
Status rope(Call& c) {
  const Array &x = c.in(0), &angles = c.in(1);
  Array& y = c.out();
  const bool halves = string_attr(c.op, "pairs", "") == "halves";
  const double magnitude = real_attr(c.op, "magnitude", 1);
  const auto tokens = static_cast<std::size_t>(x.shape[0]), d = static_cast<std::size_t>(x.shape.back());
  const auto half = static_cast<std::size_t>(angles.shape[1]);                // r / 2
  const std::size_t rows = tokens == 0 ? 0 : x.count() / d / tokens;          // of one token: its heads
  y.reals = x.reals;
  for (std::size_t t = 0; t < tokens; ++t)
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t i = 0; i < half; ++i) {
        const std::size_t base = (t * rows + row) * d;
        const std::size_t first = base + (halves ? i : 2 * i), second = base + (halves ? i + half : 2 * i + 1);
        const double cosine = magnitude * std::cos(double{angles.reals[t * half + i]});
        const double sine = magnitude * std::sin(double{angles.reals[t * half + i]});
        const double a = x.reals[first], b = x.reals[second];
        y.reals[first] = round_to(y.dtype, a * cosine - b * sine);
        y.reals[second] = round_to(y.dtype, b * cosine + a * sine);
      }
  return {};
}

}  // namespace modelc::graph::eval::reference

// Attention: attend in its two forms, append and cross_set, attend_latent, rope.
#include <cmath>

#include "frontend/graph/ops/rules.h"

namespace modelc::graph::rules {

namespace {

enum Operand { q_, k_, v_, at_, sinks_, keep_, bias_ };

// What a state of keys and values holds in a row: of a KVCache or a CrossCache.
struct Rows {
  std::int64_t heads = 1, dim = 1, value_dim = 1;
};
Rows rows_of(Rule& r, const StateDecl& state) {
  const bool cross = state.kind == StateKind::cross_cache;
  if (r.state(cross ? StateKind::cross_cache : StateKind::kv_cache) == nullptr) return {};
  if (cross) return {state.sizes[1], state.sizes[2], state.sizes[2]};
  return {state.sizes[0], state.sizes[1], state.sizes[2]};
}

ShapeResult attend_state(Rule& r, const StateDecl& state) {
  const Rows rows = rows_of(r, state);
  if (state.kind == StateKind::cross_cache)
    r.require(string_attr(r.query().op, "mask", "") == "full", -1, -1, "all of a CrossCache is seen: mask must be \"full\"");
  for (int i : {k_, v_, keep_, bias_}) r.none(i, "the cache is attended to");
  r.rank_is(q_, 3);
  r.batch(at_);
  r.tokens(q_);
  if (r.failed()) return r.result(Type{});
  r.is(q_, 2, r.dims().constant(rows.dim), "of the cache");
  r.multiple(q_, 1, r.dims().constant(rows.heads), "the cache");
  std::vector<DimId> shape = r.type(q_).shape;
  shape[2] = r.dims().constant(rows.value_dim);
  return r.result(tensor(r.type(q_).dtype, std::move(shape)));
}

// bias: broadcast to [..., H, n, m].
void bias_fits(Rule& r, const std::vector<DimId>& scores) {
  r.floats(bias_);
  r.require(r.rank(bias_) <= scores.size(), bias_, -1, "bias has more axes than " + shape_text(scores, r.dims()));
  if (r.failed()) return;
  const std::vector<DimId>& b = r.type(bias_).shape;
  for (std::size_t back = 1; back <= b.size(); ++back) {
    const DimId have = b[b.size() - back], want = scores[scores.size() - back];
    r.require(is_one(r.dims(), have) || DimTable::same(have, want), bias_, static_cast<int>(b.size() - back),
              r.axis_name(bias_, -static_cast<int>(back)) + " of bias is " + r.dims().text(have) + ", of the scores " +
                  shape_text(scores, r.dims()) + " it is " + r.dims().text(want) + "; it must be that, or literally 1");
  }
}

ShapeResult attend_plain(Rule& r) {
  r.need(k_);
  r.need(v_);
  for (int i : {q_, k_, v_}) {
    r.floats(i);
    r.rank_at_least(i, 3);
  }
  const int n = static_cast<int>(r.rank(q_));
  r.rank_is(k_, r.rank(q_));
  r.rank_is(v_, r.rank(q_));
  for (int axis = 0; axis < n - 3; ++axis) {
    r.same(q_, axis, k_, axis);
    r.same(k_, axis, v_, axis);
  }
  r.same(k_, n - 3, v_, n - 3);
  r.same(k_, n - 2, v_, n - 2);
  r.same(q_, n - 1, k_, n - 1);
  r.multiple(q_, n - 2, r.dim(k_, n - 2), "k");
  const bool causal = string_attr(r.query().op, "mask", "") == "causal";
  if (causal || r.has(at_)) r.same(q_, n - 3, k_, n - 3);                     // the same tokens ask and answer
  if (r.has(at_)) {
    r.batch(at_);
    r.rank_is(q_, 3);
    r.tokens(q_);
  }
  if (r.failed()) return r.result(Type{});
  const std::vector<DimId>&q = r.type(q_).shape, &k = r.type(k_).shape;
  if (r.has(keep_)) {
    r.booleans(keep_);
    r.rank_is(keep_, k.size() - 2);
    for (int axis = 0; axis < n - 2; ++axis) r.same(keep_, axis, k_, axis);
  }
  if (r.has(bias_)) {
    std::vector<DimId> scores(q.begin(), q.end() - 3);
    scores.insert(scores.end(), {q[n - 2], q[n - 3], k[n - 3]});
    bias_fits(r, scores);
  }
  std::vector<DimId> shape = q;
  shape.back() = r.dim(v_, -1);
  return r.result(tensor(r.type(q_).dtype, std::move(shape)));
}

}  // namespace

ShapeResult attend(const ShapeQuery& query) {
  Rule r(query);
  r.floats(q_);
  r.one_of("mask", {"causal", "full"});
  r.require(std::isfinite(real_attr(query.op, "scale", 1)), -1, -1, "scale is not a finite number");
  if (query.op.attrs.contains("window")) {
    r.require(integer_attr(query.op, "window", 0) >= 1, -1, -1, "window counts the own position, so it is at least 1");
    r.require(string_attr(query.op, "mask", "") == "causal", -1, -1, "a window needs mask \"causal\"");
  }
  if (query.op.attrs.contains("softcap"))
    r.require(real_attr(query.op, "softcap", 0) > 0, -1, -1,
              "softcap is " + std::to_string(real_attr(query.op, "softcap", 0)) + ", wanted more than 0");
  if (r.has(sinks_)) {
    r.floats(sinks_);
    r.rank_is(sinks_, 1);
    r.same(sinks_, 0, q_, -2);
  }
  return query.state != nullptr ? attend_state(r, *query.state) : attend_plain(r);
}

// Of a KVCache k [tokens, Hk, d] and v [tokens, Hk, dv], of a LatentCache the latent [tokens, rank] and the one key that
// was turned, [tokens, rope].
ShapeResult append(const ShapeQuery& query) {
  Rule r(query);
  const StateDecl* state = query.state;
  const bool latent = state != nullptr && state->kind == StateKind::latent_cache;
  r.state(latent ? StateKind::latent_cache : StateKind::kv_cache);
  r.batch(2);
  for (int i : {0, 1}) {
    r.floats(i);
    r.rank_is(i, latent ? 2 : 3);
    r.tokens(i);
    if (r.failed()) break;
    if (!latent) r.is(i, 1, r.dims().constant(state->sizes[0]), "the cache's heads are");
    r.is(i, latent ? 1 : 2, r.dims().constant(state->sizes[static_cast<std::size_t>(latent ? i : i + 1)]), "of the cache");
  }
  return r.result(std::vector<Type>{});
}

// q_nope [tokens, H, n], q_rope [tokens, H, r], up [H · (n + v), rank]: v is what the rows of `up` leave.
ShapeResult attend_latent(const ShapeQuery& query) {
  enum { nope, rope_, at, up };
  Rule r(query);
  const StateDecl* state = r.state(StateKind::latent_cache);
  r.one_of("mask", {"causal", "full"});
  r.require(std::isfinite(real_attr(query.op, "scale", 1)), -1, -1, "scale is not a finite number");
  r.batch(at);
  for (int i : {nope, rope_}) {
    r.floats(i);
    r.rank_is(i, 3);
    r.tokens(i);
  }
  r.same(nope, 1, rope_, 1);
  r.floats(up);
  r.rank_is(up, 2);
  if (r.failed()) return r.result(Type{});
  r.is(rope_, 2, r.dims().constant(state->sizes[1]), "of the cache");
  r.is(up, 1, r.dims().constant(state->sizes[0]), "the cache's rank is");
  const auto rows = r.dims().value(r.dim(up, 0)), heads = r.dims().value(r.dim(nope, 1)), n = r.dims().value(r.dim(nope, 2));
  const bool whole = rows && heads && n && *heads >= 1 && *rows % *heads == 0 && *rows / *heads > *n;
  r.require(whole, up, 0,
            "the first axis of up is " + r.dims().text(r.dim(up, 0)) + ", not " + r.dims().text(r.dim(nope, 1)) +
                " heads of more than the " + r.dims().text(r.dim(nope, 2)) + " channels of q_nope");
  if (r.failed()) return r.result(Type{});
  std::vector<DimId> shape = r.type(nope).shape;
  shape[2] = r.dims().constant(*rows / *heads - *n);
  return r.result(tensor(r.type(nope).dtype, std::move(shape)));
}

ShapeResult cross_set(const ShapeQuery& query) {
  Rule r(query);
  const StateDecl* state = r.state(StateKind::cross_cache);
  r.sequences(2);
  const std::optional<AxisId> batch = r.dims().find_axis("batch");
  r.require(batch.has_value(), -1, -1, "the axis batch is not declared");
  for (int i : {0, 1}) {
    r.floats(i);
    r.rank_is(i, 4);
    if (r.failed()) break;
    r.is(i, 0, r.dims().of_axis(*batch), "wanted");
    r.is(i, 1, r.dims().constant(state->sizes[0]), "the cache's rows are");
    r.is(i, 2, r.dims().constant(state->sizes[1]), "the cache's heads are");
    r.is(i, 3, r.dims().constant(state->sizes[2]), "of the cache");
  }
  return r.result(std::vector<Type>{});
}

ShapeResult rope(const ShapeQuery& query) {
  Rule r(query);
  r.floats(0);
  r.floats(1);
  r.rank_at_least(0, 2);
  r.rank_is(1, 2);
  r.same(0, 0, 1, 0);
  r.one_of("pairs", {"halves", "adjacent"});
  const DimId size = r.dim(0, -1), half = r.dim(1, -1);
  const auto d = r.dims().value(size), h = r.dims().value(half);
  r.require(d && h && *h <= *d / 2, 1, 1,
            "angles turn 2 · " + r.dims().text(half) + " channels, the last axis of x is " + r.dims().text(size));
  return r.result(tensor(r.type(0).dtype, r.type(0).shape));
}

}  // namespace modelc::graph::rules

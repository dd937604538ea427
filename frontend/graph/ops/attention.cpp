// Attention: attend in its two forms, append, rope.
#include <cmath>

#include "frontend/graph/ops/rules.h"

namespace modelc::graph::rules {

namespace {

enum Operand { q_, k_, v_, at_, sinks_, keep_, bias_ };

std::optional<DimId> tokens_axis(DimTable& dims) {
  const std::optional<AxisId> axis = dims.find_axis("tokens");
  if (!axis) return std::nullopt;
  return dims.of_axis(*axis);
}

void is_tokens(Rule& r, int operand) {
  const std::optional<DimId> tokens = tokens_axis(r.dims());
  r.require(tokens.has_value(), -1, -1, "the axis tokens is not declared");
  if (!r.failed()) r.is(operand, 0, *tokens, "wanted");
}

// Query heads fall evenly on key heads.
void heads_divide(Rule& r, DimId heads, DimId kv_heads, std::string_view whose) {
  if (r.failed()) return;
  const auto h = r.dims().value(heads), hk = r.dims().value(kv_heads);
  r.require(h && hk && *hk >= 1 && *h % *hk == 0, q_, static_cast<int>(r.rank(q_)) - 2,
            "q has " + r.dims().text(heads) + " heads, not a multiple of the " + r.dims().text(kv_heads) + " of " +
                std::string(whose));
}

ShapeResult attend_state(Rule& r, const StateDecl& state) {
  if (state.kind != StateKind::kv_cache) {
    r.require(false, -1, -1, "state " + state.name + " is no KVCache: not carried out yet");
    return r.result(Type{});
  }
  r.require(state.sizes.size() == 3, -1, -1, "state " + state.name + " wants heads, dim and value_dim");
  for (int i : {k_, v_, keep_, bias_}) r.none(i, "the cache is attended to");
  r.rank_is(q_, 3);
  r.batch(at_);
  is_tokens(r, q_);
  if (r.failed()) return r.result(Type{});
  r.is(q_, 2, r.dims().constant(state.sizes[1]), "of the cache");
  heads_divide(r, r.dim(q_, 1), r.dims().constant(state.sizes[0]), "the cache");
  std::vector<DimId> shape = r.type(q_).shape;
  shape[2] = r.dims().constant(state.sizes[2]);
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
  heads_divide(r, r.dim(q_, n - 2), r.dim(k_, n - 2), "k");
  const bool causal = string_attr(r.query().op, "mask", "") == "causal";
  if (causal || r.has(at_)) r.same(q_, n - 3, k_, n - 3);                     // the same tokens ask and answer
  if (r.has(at_)) {
    r.batch(at_);
    r.rank_is(q_, 3);
    is_tokens(r, q_);
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

ShapeResult append(const ShapeQuery& query) {
  Rule r(query);
  r.require(query.state != nullptr, -1, -1, "no state to append to");
  if (r.failed()) return r.result(Type{});
  const StateDecl& state = *query.state;
  r.require(state.kind == StateKind::kv_cache, -1, -1, "state " + state.name + " is no KVCache: not carried out yet");
  r.require(state.sizes.size() == 3, -1, -1, "state " + state.name + " wants heads, dim and value_dim");
  r.batch(2);
  for (int i : {0, 1}) {
    r.floats(i);
    r.rank_is(i, 3);
    is_tokens(r, i);
    if (r.failed()) break;
    r.is(i, 1, r.dims().constant(state.sizes[0]), "the cache's heads are");
    r.is(i, 2, r.dims().constant(state.sizes[i == 0 ? 1 : 2]), "of the cache");
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

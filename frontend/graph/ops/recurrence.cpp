// What goes token by token with a state for each sequence: causal_conv1d, ssd_scan, gated_delta.
#include <cmath>

#include "frontend/graph/ops/rules.h"

namespace modelc::graph::rules {

namespace {

// The state is of this shape.
void shape_is(Rule& r, const StateDecl* state, std::initializer_list<DimId> wanted) {
  if (state == nullptr || r.failed()) return;
  std::string have, want;
  bool equal = state->sizes.size() == wanted.size();
  for (std::int64_t s : state->sizes) have += (have.empty() ? "" : ", ") + std::to_string(s);
  std::size_t i = 0;
  for (DimId d : wanted) {
    want += (want.empty() ? "" : ", ") + r.dims().text(d);
    equal = equal && r.dims().value(d) == state->sizes[i++];
  }
  r.require(equal, -1, -1, "the state " + state->name + " is [" + have + "], wanted [" + want + "]");
}

// [tokens, …] of floats with this many axes.
void of_tokens(Rule& r, int operand, std::size_t rank) {
  r.floats(operand);
  r.rank_is(operand, rank);
  r.tokens(operand);
}

void vector(Rule& r, int operand, int like, int axis) {
  r.floats(operand);
  r.rank_is(operand, 1);
  r.same(operand, 0, like, axis);
}

}  // namespace

ShapeResult causal_conv1d(const ShapeQuery& q) {
  enum { x, w, b, at };
  Rule r(q);
  const StateDecl* ring = r.state(StateKind::ring);
  r.batch(at);
  of_tokens(r, x, 2);
  r.floats(w);
  r.rank_is(w, 2);
  r.same(w, 0, x, 1);
  if (r.has(b)) vector(r, b, x, 1);
  if (r.failed()) return r.result(Type{});
  const std::int64_t rows = ring->sizes[0];
  r.is(w, 1, r.dims().constant(rows + 1), "for a ring of " + std::to_string(rows) + " rows and the token itself it is");
  shape_is(r, ring, {r.dims().constant(rows), r.dim(x, 1)});
  return r.result(tensor(r.type(x).dtype, r.type(x).shape));
}

ShapeResult ssd_scan(const ShapeQuery& q) {
  enum { x, dt, a, b, c, d, at };
  Rule r(q);
  const StateDecl* state = r.state(StateKind::recurrent);
  r.batch(at);
  of_tokens(r, x, 3);
  of_tokens(r, dt, 2);
  r.same(dt, 1, x, 1);
  vector(r, a, x, 1);
  of_tokens(r, b, 3);
  of_tokens(r, c, 3);
  r.same(c, 1, b, 1);
  r.same(c, 2, b, 2);
  vector(r, d, x, 1);
  r.multiple(x, 1, r.dim(b, 1), "b");
  if (r.failed()) return r.result(Type{});
  shape_is(r, state, {r.dim(x, 1), r.dim(x, 2), r.dim(b, 2)});
  return r.result(tensor(r.type(x).dtype, r.type(x).shape));
}

ShapeResult gated_delta(const ShapeQuery& query) {
  enum { q, k, v, decay, beta, at };
  Rule r(query);
  const StateDecl* state = r.state(StateKind::recurrent);
  r.batch(at);
  for (int i : {q, k, v}) of_tokens(r, i, 3);
  for (int i : {decay, beta}) {
    of_tokens(r, i, 2);
    r.same(i, 1, v, 1);
  }
  r.same(q, 1, k, 1);
  r.same(q, 2, k, 2);
  r.multiple(v, 1, r.dim(k, 1), "k");
  r.require(std::isfinite(real_attr(query.op, "scale", 1)), -1, -1, "scale is not a finite number");
  const double eps = real_attr(query.op, "normalize", 1);
  r.require(std::isfinite(eps) && eps > 0, -1, -1, "normalize is an eps, wanted more than 0");
  if (r.failed()) return r.result(Type{});
  shape_is(r, state, {r.dim(v, 1), r.dim(k, 2), r.dim(v, 2)});
  return r.result(tensor(r.type(v).dtype, r.type(v).shape));
}

}  // namespace modelc::graph::rules

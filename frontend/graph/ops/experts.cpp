// Mixture of experts: the choice of experts, and what the chosen ones compute. The gate between an expert's two inner
// products is the body of a `moe` operation, which the verifier checks.
#include <cmath>

#include "frontend/graph/ops/rules.h"

namespace modelc::graph::rules {

namespace {

std::string counted(std::int64_t n) { return std::to_string(n); }

// groups, keep_groups and group_score against n scores, of which k are taken.
void groups_fit(Rule& r, std::int64_t n, std::int64_t k) {
  const Op& op = r.query().op;
  const std::int64_t groups = integer_attr(op, "groups", 1), keep = integer_attr(op, "keep_groups", groups);
  r.require(groups >= 1 && n % groups == 0, -1, -1,
            "groups is " + counted(groups) + ", which does not divide the " + counted(n) + " scores evenly");
  r.require(keep >= 1 && keep <= groups, -1, -1, "keep_groups is " + counted(keep) + ", wanted 1 to the " + counted(groups) + " groups");
  r.one_of("group_score", {"max", "top2_sum"});
  if (r.failed()) return;
  const std::int64_t size = n / groups;
  r.require(keep * size >= k, -1, -1,
            "k is " + counted(k) + ", and the " + counted(keep) + " best groups have " + counted(keep * size) + " scores");
  r.require(string_attr(op, "group_score", "max") != "top2_sum" || size >= 2, -1, -1,
            "group_score \"top2_sum\" needs groups of at least 2, these have " + counted(size));
}

}  // namespace

ShapeResult route(const ShapeQuery& q) {
  Rule r(q);
  r.floats(0);
  r.rank_at_least(0, 1);
  const DimId n = r.dim(0, -1);
  if (r.has(1)) {
    r.floats(1);
    r.rank_is(1, 1);
    r.same(1, 0, 0, -1);
  }
  const std::optional<std::int64_t> size = r.dims().value(n);
  r.require(size.has_value(), 0, -1, "the last axis of scores is " + r.dims().text(n) + ", wanted one known at compile time");
  const std::int64_t k = integer_attr(q.op, "k", 0);
  r.require(k >= 1 && k <= size.value_or(0), -1, -1, "k is " + counted(k) + ", the last axis of scores " + r.dims().text(n));
  r.require(std::isfinite(real_attr(q.op, "scale", 1)), -1, -1, "scale is not a finite number");
  if (!r.failed()) groups_fit(r, *size, k);
  std::vector<DimId> shape = r.type(0).shape;
  if (!r.failed()) shape.back() = r.dims().constant(k);
  return r.result({index_tensor(n, shape), tensor(DType::f32, shape)});
}

ShapeResult moe(const ShapeQuery& q) {
  enum { x_, chosen_, weights_, gate_, up_, down_, gate_b_, up_b_, down_b_ };
  Rule r(q);
  for (int i : {x_, weights_, gate_, up_, down_}) r.floats(i);
  for (int i : {gate_, up_, down_}) r.rank_is(i, 3);
  r.rank_at_least(x_, 1);
  r.same(x_, -1, gate_, 2);
  for (int axis : {0, 1, 2}) r.same(up_, axis, gate_, axis);
  r.same(down_, 0, gate_, 0);
  r.same(down_, 1, gate_, 2);
  r.same(down_, 2, gate_, 1);
  r.rank_is(chosen_, r.rank(x_));
  r.rank_is(weights_, r.rank(x_));
  r.index(chosen_, r.dim(gate_, 0));
  for (int axis = 0; axis + 1 < static_cast<int>(r.rank(x_)); ++axis) {
    r.same(chosen_, axis, x_, axis);
    r.same(weights_, axis, x_, axis);
  }
  r.same(weights_, -1, chosen_, -1);
  for (int i : {gate_b_, up_b_, down_b_}) {
    if (!r.has(i)) continue;
    r.floats(i);
    r.rank_is(i, 2);
    r.same(i, 0, gate_, 0);
    r.same(i, 1, i == down_b_ ? down_ : gate_, 1);
  }
  return r.result(tensor(r.type(x_).dtype, r.type(x_).shape));
}

}  // namespace modelc::graph::rules

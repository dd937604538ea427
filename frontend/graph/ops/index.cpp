// Rows by index. An index is known to lie in its axis by its type alone: an unbounded one is refused.
#include "frontend/graph/ops/rules.h"

namespace modelc::graph::rules {

ShapeResult take(const ShapeQuery& q) {
  Rule r(q);
  r.rank_at_least(0, 1);
  r.index(1, r.dim(0, 0));
  Type t = r.type(0);
  t.shape = r.type(1).shape;
  if (!r.failed()) t.shape.insert(t.shape.end(), r.type(0).shape.begin() + 1, r.type(0).shape.end());
  return r.result(std::move(t));
}

ShapeResult put(const ShapeQuery& q) {
  Rule r(q);
  r.rank_at_least(0, 1);
  r.rank_is(1, 1);
  r.index(1, r.dim(0, 0));
  r.rank_is(2, r.rank(0));
  r.same(2, 0, 1, 0);
  for (int axis = 1; axis < static_cast<int>(r.rank(0)); ++axis) r.same(2, axis, 0, axis);
  r.require(r.type(2).dtype == r.type(0).dtype, 2, -1, "v is " + r.text(2) + ", x is " + r.text(0));
  return r.result(r.type(0));
}

ShapeResult one_hot(const ShapeQuery& q) {
  Rule r(q);
  const std::int64_t count = integer_attr(q.op, "count", 0);
  r.require(count >= 1, -1, -1, "count is " + std::to_string(count) + ", wanted at least 1");
  const DimId n = r.dims().constant(count);
  r.index(0, n);
  std::vector<DimId> shape = r.type(0).shape;
  shape.push_back(n);
  return r.result(tensor(DType::f32, std::move(shape)));
}

ShapeResult top_k(const ShapeQuery& q) {
  Rule r(q);
  r.number(0);
  r.rank_at_least(0, 1);
  const std::int64_t k = integer_attr(q.op, "k", 0);
  const DimId n = r.dim(0, -1);
  const std::optional<std::int64_t> size = r.dims().value(n);
  r.require(size.has_value(), 0, -1, "the last axis of x is " + r.dims().text(n) + ", wanted one known at compile time");
  r.require(k >= 1 && k <= size.value_or(0), 0, -1, "k is " + std::to_string(k) + ", the last axis of x " + r.dims().text(n));
  std::vector<DimId> shape = r.type(0).shape;
  if (!r.failed()) shape.back() = r.dims().constant(k);
  return r.result({tensor(r.type(0).dtype, shape), index_tensor(n, shape)});
}

ShapeResult take_along(const ShapeQuery& q) {
  Rule r(q);
  r.rank_at_least(0, 1);
  const std::size_t axis = r.axis(0);
  r.rank_is(1, r.rank(0));
  r.index(1, r.dim(0, static_cast<int>(axis)));
  for (std::size_t a = 0; a < r.rank(0) && !r.failed(); ++a)
    if (a != axis) r.same(1, static_cast<int>(a), 0, static_cast<int>(a));
  Type t = r.type(0);
  t.shape = r.type(1).shape;
  return r.result(std::move(t));
}

}  // namespace modelc::graph::rules

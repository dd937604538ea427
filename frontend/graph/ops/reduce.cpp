// Reductions over one axis, with an optional bool over the axes up to it.
#include "frontend/graph/ops/rules.h"

namespace modelc::graph::rules {

namespace {

// The reduced axis, after checking x and where.
std::size_t reduced_axis(Rule& r) {
  r.rank_at_least(0, 1);
  const std::size_t axis = r.axis(0);
  if (r.has(1)) {
    r.booleans(1);
    r.rank_is(1, axis + 1);
    for (int i = 0; i <= static_cast<int>(axis) && !r.failed(); ++i) r.same(1, i, 0, i);
  }
  return axis;
}

std::vector<DimId> without(const Rule& r, std::size_t axis) {
  std::vector<DimId> shape = r.type(0).shape;
  if (!r.failed()) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return shape;
}

}  // namespace

ShapeResult softmax(const ShapeQuery& q) {
  Rule r(q);
  r.floats(0);
  reduced_axis(r);
  return r.result(r.type(0));
}

ShapeResult mean(const ShapeQuery& q) {
  Rule r(q);
  r.floats(0);
  const std::size_t axis = reduced_axis(r);
  return r.result(tensor(r.type(0).dtype, without(r, axis)));
}

ShapeResult reduce(const ShapeQuery& q) {
  Rule r(q);
  r.number(0);
  const std::size_t axis = reduced_axis(r);
  return r.result(tensor(r.type(0).dtype, without(r, axis)));
}

ShapeResult argmax(const ShapeQuery& q) {
  Rule r(q);
  r.number(0);
  const std::size_t axis = reduced_axis(r);
  return r.result(index_tensor(r.dim(0, static_cast<int>(axis)), without(r, axis)));
}

ShapeResult cumsum(const ShapeQuery& q) {
  Rule r(q);
  r.number(0);
  reduced_axis(r);
  return r.result(tensor(r.type(0).dtype, r.type(0).shape));
}

}  // namespace modelc::graph::rules

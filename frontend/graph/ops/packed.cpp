// Numbers packed into bytes, taken apart.
#include "frontend/graph/ops/rules.h"

namespace modelc::graph::rules {

namespace {

void bytes(Rule& r) {
  r.tensor(0);
  if (!r.failed()) r.require(r.type(0).dtype == DType::u8, 0, -1, r.operand(0) + " is " + r.text(0) + ", not of bytes (u8)");
}

}  // namespace

ShapeResult nibbles(const ShapeQuery& q) {
  Rule r(q);
  bytes(r);
  r.rank_at_least(0, 1);
  if (r.failed()) return r.result(Type{});
  std::vector<DimId> shape = r.type(0).shape;
  shape.back() = q.dims.mul(shape.back(), q.dims.constant(2));
  r.require(shape.back() != DimTable::too_large, 0, -1, r.operand(0) + " is " + r.text(0) + ": too large to be taken apart");
  return r.result(tensor(DType::u8, std::move(shape)));
}

ShapeResult e2m1(const ShapeQuery& q) {
  Rule r(q);
  bytes(r);
  return r.result(tensor(DType::f32, r.type(0).shape));
}

}  // namespace modelc::graph::rules

// Elementwise operations: operands broadcast as NumPy's; dtypes by graph::promoted.
#include "frontend/graph/ops/rules.h"

namespace modelc::graph::rules {

namespace {

DType promote(Rule& r, int a, int b) {
  if (r.failed()) return DType::f32;
  const std::optional<DType> t = promoted(r.type(a), r.type(b));
  r.require(t.has_value(), b, -1, r.operand(a) + " is " + r.text(a) + " and " + r.operand(b) + " " + r.text(b) + ": write `as`");
  return t.value_or(DType::f32);
}

}  // namespace

ShapeResult binary(const ShapeQuery& q) {
  Rule r(q);
  r.number(0);
  r.number(1);
  const DType t = promote(r, 0, 1);
  if (q.op.kind == OpKind::div || q.op.kind == OpKind::pow) r.require(is_float(t), -1, -1, "both operands are integers; write `as f32`");
  return r.result(tensor(t, r.broadcast({0, 1})));
}

ShapeResult compare(const ShapeQuery& q) {
  Rule r(q);
  const bool order = q.op.kind != OpKind::equal && q.op.kind != OpKind::not_equal;
  for (int i : {0, 1}) order ? r.number(i) : r.tensor(i);
  promote(r, 0, 1);
  return r.result(tensor(DType::boolean, r.broadcast({0, 1})));
}

ShapeResult logical(const ShapeQuery& q) {
  Rule r(q);
  r.booleans(0);
  if (q.op.kind == OpKind::logical_not) return r.result(tensor(DType::boolean, r.type(0).shape));
  r.booleans(1);
  return r.result(tensor(DType::boolean, r.broadcast({0, 1})));
}

ShapeResult unary(const ShapeQuery& q) {
  Rule r(q);
  r.floats(0);
  return r.result(r.type(0));
}

ShapeResult unary_number(const ShapeQuery& q) {
  Rule r(q);
  r.number(0);
  return r.result(tensor(r.type(0).dtype, r.type(0).shape));                  // -x of an index is none
}

ShapeResult where(const ShapeQuery& q) {
  Rule r(q);
  r.booleans(0);
  r.tensor(1);
  r.tensor(2);
  Type t = tensor(promote(r, 1, 2), r.broadcast({0, 1, 2}));
  if (r.type(1).index_bound == r.type(2).index_bound) t.index_bound = r.type(1).index_bound;
  return r.result(std::move(t));
}

}  // namespace modelc::graph::rules

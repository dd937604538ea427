// Products: linear, matmul, outer, einsum.
#include <map>

#include "frontend/graph/ops/rules.h"

namespace modelc::graph::rules {

ShapeResult linear(const ShapeQuery& q) {
  Rule r(q);
  r.floats(0);
  r.floats(1);
  r.rank_at_least(0, 1);
  r.rank_is(1, 2);
  r.same(0, -1, 1, -1);
  if (r.has(2)) {
    r.floats(2);
    r.rank_is(2, 1);
    r.same(2, 0, 1, 0);
  }
  std::vector<DimId> shape = r.type(0).shape;
  if (!r.failed()) shape.back() = r.dim(1, 0);
  return r.result(tensor(r.type(0).dtype, std::move(shape)));
}

ShapeResult matmul(const ShapeQuery& q) {
  Rule r(q);
  r.floats(0);
  r.floats(1);
  r.rank_at_least(0, 2);
  r.rank_at_least(1, 2);
  r.same(0, -1, 1, -2);
  if (r.failed()) return r.result(Type{});
  // The leading axes broadcast: both shapes without their last two axes.
  const std::vector<DimId>&a = r.type(0).shape, &b = r.type(1).shape;
  const std::size_t lead_a = a.size() - 2, lead_b = b.size() - 2, most = std::max(lead_a, lead_b);
  std::vector<DimId> shape(most);
  for (std::size_t back = 1; back <= most; ++back) {
    const DimId one = r.dims().constant(1);
    const DimId x = back <= lead_a ? a[lead_a - back] : one, y = back <= lead_b ? b[lead_b - back] : one;
    r.require(DimTable::same(x, y) || is_one(r.dims(), x) || is_one(r.dims(), y), 1, static_cast<int>(lead_b - back),
              "a leading axis of a is " + r.dims().text(x) + ", of b " + r.dims().text(y) + "; sizes must be equal, or literally 1");
    shape[most - back] = is_one(r.dims(), x) ? y : x;
  }
  shape.push_back(a[lead_a]);
  shape.push_back(b[lead_b + 1]);
  return r.result(tensor(promoted(r.type(0), r.type(1)).value_or(DType::f32), std::move(shape)));
}

ShapeResult outer(const ShapeQuery& q) {
  Rule r(q);
  r.floats(0);
  r.floats(1);
  r.rank_is(0, 1);
  r.rank_is(1, 1);
  const std::vector<DimId> shape = {r.dim(0, 0), r.dim(1, 0)};
  return r.result(tensor(promoted(r.type(0), r.type(1)).value_or(DType::f32), shape));
}

// "thn,hnr->thr": each operand's axes by letter; a letter is one size everywhere, and those of the result stand in it
// once.
ShapeResult einsum(const ShapeQuery& q) {
  Rule r(q);
  const std::string formula = string_attr(q.op, "formula", "");
  const std::optional<Einsum> e = parse_einsum(formula);
  r.require(e.has_value(), -1, -1,
            "\"" + formula +
                "\" is no formula as in \"ij,jk->ik\": letters for the axes of each operand, then `->` and "
                "those of the result, each once and of the operands'");
  if (!e) return r.result(Type{});
  r.require(
      e->operands.size() == q.operands.size(), -1, -1,
      "\"" + formula + "\" is of " + std::to_string(e->operands.size()) + " operands, and there are " + std::to_string(q.operands.size()));
  std::map<char, std::pair<int, int>> first;                                   // operand and axis of a letter
  std::optional<DType> dtype;
  for (std::size_t i = 0; i < q.operands.size() && !r.failed(); ++i) {
    const int operand = static_cast<int>(i);
    r.floats(operand);
    r.require(r.failed() || r.rank(operand) == e->operands[i].size(), operand, -1,
              r.operand(operand) + " is " + r.text(operand) + ", in \"" + formula + "\" it is \"" + e->operands[i] + "\"");
    for (int axis = 0; axis < static_cast<int>(e->operands[i].size()) && !r.failed(); ++axis) {
      const auto [at, fresh] = first.try_emplace(e->operands[i][static_cast<std::size_t>(axis)], operand, axis);
      if (!fresh) r.same(operand, axis, at->second.first, at->second.second);
    }
    if (!r.failed()) {
      Type so_far = r.type(operand);
      if (dtype) so_far.dtype = *dtype;
      dtype = promoted(so_far, r.type(operand));
    }
  }
  if (r.failed()) return r.result(Type{});
  std::vector<DimId> shape;
  for (char c : e->result) shape.push_back(r.dim(first[c].first, first[c].second));
  return r.result(tensor(dtype.value_or(DType::f32), std::move(shape)));
}

}  // namespace modelc::graph::rules

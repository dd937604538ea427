// Tensors from nothing.
#include "frontend/graph/ops/rules.h"
#include "runtime/abi/encoding.h"

namespace modelc::graph::rules {

ShapeResult arange(const ShapeQuery& q) {
  Rule r(q);
  const auto it = q.op.attrs.find("count");
  const std::optional<DimId> n = it == q.op.attrs.end() ? std::nullopt : dim_of(it->second, q.dims);
  r.require(n && *n != DimTable::too_large && q.dims.value(*n).value_or(1) >= 1, -1, -1, "count is no dim of at least 1");
  return r.result(tensor(DType::f32, {n.value_or(DimId{})}));
}

ShapeResult linspace(const ShapeQuery& q) {
  Rule r(q);
  const std::int64_t n = integer_attr(q.op, "count", 0);
  r.require(n >= 1, -1, -1, "count is " + std::to_string(n) + ", wanted at least 1");
  return r.result(tensor(DType::f32, {q.dims.constant(n)}));
}

ShapeResult tensor_literal(const ShapeQuery& q) {
  Rule r(q);
  const auto it = q.op.attrs.find("values");
  const auto* values = it == q.op.attrs.end() ? nullptr : std::get_if<std::vector<double>>(&it->second);
  r.require(values != nullptr && !values->empty(), -1, -1, "there are no values");
  if (r.failed()) return r.result(Type{});
  std::vector<std::int64_t> shape = {static_cast<std::int64_t>(values->size())};
  if (const auto s = q.op.attrs.find("shape"); s != q.op.attrs.end())
    if (const auto* given = std::get_if<std::vector<std::int64_t>>(&s->second)) shape = *given;
  r.require(element_count(shape) == static_cast<std::int64_t>(values->size()), -1, -1,
            std::to_string(values->size()) + " values do not fill the shape");
  std::vector<DimId> dims;
  for (std::int64_t n : shape) dims.push_back(q.dims.constant(n));
  return r.result(tensor(DType::f32, std::move(dims)));
}

}  // namespace modelc::graph::rules

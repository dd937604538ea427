// Mixture of experts: `route`, which the language writes with k second, and `moe`, whose `gated` becomes a body.
#include <algorithm>

#include "frontend/graph/types.h"
#include "frontend/sema/op_call.h"

namespace modelc::sema {

namespace code = diag::code;
using graph::OpKind;
using graph::ValueId;

// route(scores, k; bias?, groups, keep_groups, group_score, renormalize, scale)
Value FunctionBuilder::route(OpCall& call) {
  const graph::OpInfo& row = graph::info(OpKind::route);
  std::vector<Expressions::ParamSpec> specs = {{"scores", true}, {"k", true}, {"bias", false}};
  for (std::size_t i = 1; i < row.attrs.size(); ++i) specs.push_back({row.attrs[i].name, !row.attrs[i].optional});
  std::vector<const Argument*> given;
  if (!call.arrange(specs, given)) return Value::error();
  std::swap(given[1], given[2]);                     // as the table has them: operands, then attributes
  const auto results = from_table(OpKind::route, given, call);
  return results ? as_value(*results) : Value::error();
}

// moe(x, chosen, weights, gate, up, down, gate_b?, up_b?, down_b?; gated)
Value FunctionBuilder::moe(OpCall& call) {
  const graph::OpInfo& row = graph::info(OpKind::moe);
  std::vector<Expressions::ParamSpec> specs;
  for (const graph::OperandSpec& o : row.operands) specs.push_back({o.name, !o.optional});
  specs.push_back({"gated", true});
  std::vector<const Argument*> given;
  if (!call.arrange(specs, given)) return Value::error();
  const Argument& fn = *given.back();
  given.pop_back();
  if (!fn.value.is(ValueKind::closure)) {
    if (!fn.value.is_error())
      fail(code::wrong_type, fn.span, "`gated` is a fn of two tensors, not " + kind_name(fn.value))
          .help("write `gated: fn(gate, up) = silu(gate) * up`");
    return Value::error();
  }
  const auto results = from_table(OpKind::moe, given, call);
  if (!results) return Value::error();
  const graph::Op& op = blocks_.back().block.ops.back();
  const graph::Type inner = graph::tensor(type(*op.operands[0]).dtype, {type(*op.operands[3]).shape[1]});
  if (!gated(fn, inner, call)) return Value::error();
  return as_value(*results);
}

// Runs the fn on one expert's two rows; what it computes is the body of the operation that was made last.
bool FunctionBuilder::gated(const Argument& argument, const graph::Type& row, OpCall& call) {
  const std::size_t first = fn_.values.size();
  blocks_.emplace_back();
  Argument arguments[2];
  for (Argument& a : arguments) {
    const ValueId id = new_value(row);
    blocks_.back().block.arguments.push_back(id);
    a = {{}, tensor(id), argument.span, {}};
  }
  const Value value = ev_.call(argument.value, arguments, argument.span, call.span);
  std::optional<ValueId> result;
  if (!value.is_error()) result = promote(value, argument.span);
  graph::Block body = std::move(blocks_.back().block);
  blocks_.pop_back();
  if (!result) return false;
  const auto outside = [&](const std::optional<ValueId>& id) { return id && id->index < first; };
  for (const graph::Op& op : body.ops) {
    const bool elementwise = op.kind == OpKind::literal || op.kind == OpKind::cast || graph::info(op.kind).elementwise;
    if (elementwise && std::none_of(op.operands.begin(), op.operands.end(), outside)) continue;
    fail(code::wrong_operand, argument.span,
         "`gated` stands between the products of one expert: it takes numbers and elementwise operations on its two "
         "arguments, and no `" +
             (elementwise ? op.source : std::string(graph::info(op.kind).name)) + "`");
    return false;
  }
  if (outside(result) || type(*result) != row) {
    fail(code::shape_mismatch, argument.span, "`gated` gives " + shown(*result) + ", and takes and gives " + graph::text(row, dims()));
    return false;
  }
  body.results = {*result};
  blocks_.back().block.ops.back().body = std::move(body);
  return true;
}

}  // namespace modelc::sema

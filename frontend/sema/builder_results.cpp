// The end of a function: what its text returned, as its signature wants it, and what no one uses taken out.
#include <algorithm>
#include <cassert>

#include "frontend/sema/function_builder.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace code = diag::code;
using graph::OpKind;
using graph::ValueId;

// ---- results --------------------------------------------------------------------------------------------------------

std::optional<std::vector<ValueId>> FunctionBuilder::results_of(const Value& returned, const SignaturePattern& signature,
                                                                const MemberDef& method, const Instance& instance, Ellipsis& ellipsis) {
  const auto& decl = ast::as<ast::MethodMember>(*method.item);
  const ast::ReturnStatement* statement = nullptr;
  for (const ast::StatementPtr& s : decl.body.statements) {
    if (s->kind == ast::StatementKind::return_) statement = &ast::as<ast::ReturnStatement>(*s);
  }
  std::vector<Value> values;
  if (returned.is(ValueKind::tuple)) values = returned.items();
  else if (!returned.is_none()) values.push_back(returned);
  const auto place = [&](std::size_t i) {
    if (statement == nullptr) return decl.signature.span;
    return statement->values.size() == values.size() ? statement->values[i]->span : statement->span;
  };
  if (signature.results && signature.results->size() != values.size()) {
    fail(code::signature_mismatch, statement == nullptr ? decl.signature.name.span : statement->span,
         "`" + method.name + "` of `" + instance.def.name() + "` returns " + counted(values.size(), "result") + ", and declares " +
             std::to_string(signature.results->size()))
        .label(decl.signature.span, "declared here")
        .help(statement == nullptr ? "its last statement gives the result: `return …`" : "");
    return std::nullopt;
  }
  std::vector<ValueId> out;
  bool ok = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto id = promote(values[i], place(i));
    if (!id) {
      ok = false;
      continue;
    }
    if (signature.results) {
      const TypePattern& declared = (*signature.results)[i].type;
      if (const auto problem = mismatch(declared, type(*id), dims(), ellipsis)) {
        auto message = fail(code::signature_mismatch, place(i),
                            "`" + method.name + "` of `" + instance.def.name() + "` does not return what it declares: " + *problem);
        message.mark("this is " + shown(*id, &declared))
            .label(declared.span, "declared as " + wanted(declared, *id))
            .help(advice_on_type(declared, *id, place(i)));
        std::vector<AxisText> axes = axis_texts(declared);
        const std::vector<AxisText> found = axes_of(*id);
        axes.insert(axes.end(), found.begin(), found.end());
        for (std::string& line : shape_origins(axes)) message.note(std::move(line));
        ok = false;
        continue;
      }
      const graph::Type full = concrete(declared, ellipsis);
      id = rebound(*id, full, place(i));
      if (id && in_.keep_casts && declared.typed && full.dtype == DType::f32)
        id = emit_one(OpKind::cast, {{*id, place(i)}}, {{"dtype", std::string("f32")}}, place(i), {{}, nullptr, &full, nullptr});
      if (!id) ok = false;
    }
    if (id) out.push_back(*id);
  }
  if (!ok) return std::nullopt;
  return out;
}

Value FunctionBuilder::as_value(const std::vector<ValueId>& results) const {
  if (results.empty()) return Value::none();
  if (results.size() == 1) return tensor(results[0]);
  std::vector<Value> items;
  for (const ValueId id : results) items.push_back(tensor(id));
  return Value::tuple(std::move(items));
}

// ---- what nothing uses ----

namespace {

bool has_effect(const graph::Op& op) {
  if (op.kind == OpKind::call || graph::info(op.kind).has_state) return true;
  return op.body && std::any_of(op.body->ops.begin(), op.body->ops.end(), has_effect);
}

// Marks what a block uses, from its end; drops operations whose results are not used, have no effect and no name.
void drop_unused(graph::Block& block, std::vector<bool>& used, const std::vector<graph::Value>& values) {
  for (const ValueId id : block.results) used[id.index] = true;
  for (std::size_t i = block.ops.size(); i-- > 0;) {
    graph::Op& op = block.ops[i];
    const bool wanted = has_effect(op) || std::any_of(op.results.begin(), op.results.end(), [&](ValueId id) {
                          return used[id.index] || !values[id.index].name.empty() || !values[id.index].stage.empty();
                        });
    if (!wanted) {
      block.ops.erase(block.ops.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    if (op.body) drop_unused(*op.body, used, values);
    for (const auto& operand : op.operands) {
      if (operand) used[operand->index] = true;
    }
  }
}

}  // namespace

// A fn or a leaf may compute what the case at hand does not need: `let`s before a `match`. Values that have a name in
// the function itself stay, as they can be looked at.
void FunctionBuilder::finish_body() {
  std::vector<bool> used(fn_.values.size());
  drop_unused(fn_.body, used, fn_.values);
  std::vector<std::uint32_t> moved(fn_.values.size(), 0);
  std::vector<graph::Value> kept;
  const auto keep = [&](ValueId& id) {
    moved[id.index] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(std::move(fn_.values[id.index]));
    id.index = moved[id.index];
  };
  const auto number = [&](const auto& self, graph::Block& block) -> void {
    for (ValueId& id : block.arguments) keep(id);
    for (graph::Op& op : block.ops) {
      for (auto& operand : op.operands) {
        if (operand) operand->index = moved[operand->index];
      }
      if (op.body) self(self, *op.body);
      for (ValueId& id : op.results) keep(id);
    }
    for (ValueId& id : block.results) id.index = moved[id.index];
  };
  for (graph::Parameter& input : fn_.inputs) keep(input.value);
  number(number, fn_.body);
  fn_.values = std::move(kept);
}

}  // namespace modelc::sema

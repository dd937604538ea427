// Members of instances as values: weights, consts, states, children, the fields of a Batch.
#include <algorithm>
#include <cassert>

#include "frontend/graph/types.h"
#include "frontend/sema/function_builder.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace code = diag::code;
using graph::OpKind;

MemberPath MemberPath::then(const std::string& name, const std::string& path) const {
  MemberPath out;
  out.loop = loop;
  if (element) {
    out.member = "." + name;
    out.stage = path.empty() ? stage : "." + path;
    return out;
  }
  out.member = member.empty() ? name : member + "." + name;
  if (path.empty()) out.stage = stage;
  else out.stage = stage.empty() || stage == "." ? stage + path : stage + "." + path;
  return out;
}

Value FunctionBuilder::member(std::size_t index, source::Span use) {
  const Frame& frame = frames_.back();
  return member_of(*frame.info, index, frame.path, use, true);
}

// A member of the class that `path` leads to; `own`: of the text that is being run, which alone reaches states.
Value FunctionBuilder::member_of(ClassInfo& owner, std::size_t index, const MemberPath& path, source::Span use, bool own) {
  Instance& instance = *owner.instance;
  const MemberDef& def = instance.def.members[index];
  const Slot& slot = instance.slots[index];
  const std::string of = " of `" + instance.def.name() + "`";
  switch (def.kind) {
    case MemberKind::let: return instance.let(index);
    case MemberKind::function:
      fail(code::unknown_field, use, "`" + def.name + "` is a fn" + of + ": only its own text can call it")
          .label(def.span, "declared here");
      return Value::error();
    case MemberKind::method: {
      if (!own) {
        fail(code::wrong_operand, use, "`" + def.name + "`" + of + " is a function, and here it is not called")
            .label(def.span, "declared here");
        return Value::error();
      }
      auto method = std::make_shared<MethodMember>();
      method->method = &def;
      return Value::member(std::move(method));
    }
    default: break;
  }
  if (slot.failed || slot.state != Slot::State::done) return Value::error();
  if (!slot.present) return Value::absent({def.name, def.span, slot.absent_reason});
  graph::Class& made = in_.class_of(owner);
  switch (def.kind) {
    case MemberKind::param:
      return tensor(weight(owner, static_cast<std::uint32_t>(index), path.then(def.name, made.weights[slot.index].path), use));
    case MemberKind::constant:
      if (init_const_ && own && frames_.size() == 1 && slot.index >= *init_const_) {
        fail(code::member_cycle, use,
             slot.index == *init_const_ ? "the const `" + def.name + "` uses itself"
                                        : "the const `" + def.name + "` is declared after the one that uses it")
            .label(def.span, "declared here")
            .help("consts are computed in the order of the text: move it up");
        return Value::error();
      }
      return tensor(constant(owner, static_cast<std::uint32_t>(index), path.then(def.name, def.name), use));
    case MemberKind::state: {
      if (init_const_) {
        fail(code::needs_tensors, use, "the state `" + def.name + "` is empty when the consts are computed")
            .label(def.span, "declared here");
        return Value::error();
      }
      if (!own) {
        fail(code::unknown_field, use, "the state `" + def.name + "`" + of + " is reached by its own functions alone")
            .label(def.span, "declared here");
        return Value::error();
      }
      auto state = std::make_shared<StateMember>();
      state->info = &owner;
      state->index = slot.index;
      state->member = def.name;
      state->declared = def.span;
      return Value::member(std::move(state));
    }
    case MemberKind::child: {
      if (init_const_) {
        fail(code::needs_tensors, use, "the child `" + def.name + "` cannot be called where the consts are computed")
            .label(def.span, "declared here");
        return Value::error();
      }
      const MemberPath to = path.then(def.name, made.children[slot.index].path);
      if (slot.list) {
        auto list = std::make_shared<ListMember>();
        list->elements = slot.elements;
        list->path = to;
        list->name = def.name;
        list->declared = def.span;
        return Value::member(std::move(list));
      }
      auto child = std::make_shared<ChildMember>();
      child->info = slot.elements.front();
      child->path = to;
      child->name = def.name;
      child->declared = def.span;
      return Value::member(std::move(child));
    }
    default: return Value::error();
  }
}

std::optional<std::vector<Value>> FunctionBuilder::elements(const Value& member) {
  const auto* list = dynamic_cast<const ListMember*>(member.as_member().get());
  if (list == nullptr) return std::nullopt;
  std::vector<Value> out;
  for (std::size_t i = 0; i < list->elements.size(); ++i) {
    auto child = std::make_shared<ChildMember>();
    child->info = list->elements[i];
    child->path = list->path.then(std::to_string(i), std::to_string(i));
    child->name = list->name + "[" + std::to_string(i) + "]";
    child->declared = list->declared;
    out.push_back(Value::member(std::move(child)));
  }
  return out;
}

Value FunctionBuilder::field(const Value& object, const ast::Name& name) {
  if (object.is(ValueKind::batch)) {
    const GraphValue& batch = object.as_graph();
    if (batch.type.kind != graph::TypeKind::batch) {
      fail(code::unknown_field, name.span, "a Sequences says only which sequences: it has no field `" + name.text + "`")
          .help("a Batch has positions, lengths, sequence, outputs and last");
      return Value::error();
    }
    const auto type = graph::batch_field_type(name.text, dims(), in_.module().context);
    if (!type) {
      const std::vector<std::string> fields = {"positions", "lengths", "sequence", "outputs", "last"};
      const std::string near = diag::did_you_mean(name.text, fields);
      fail(code::unknown_field, name.span, "a Batch has no field `" + name.text + "`")
          .help(near.empty() ? "it has positions, lengths, sequence, outputs and last" : near);
      return Value::error();
    }
    const std::string key = "b:" + std::to_string(batch.id.index) + ":" + name.text;
    if (const auto id = known(key)) return tensor(*id);
    const graph::ValueId id = new_value(*type);
    graph::Op& op = add_op(OpKind::batch_field, name.span);
    op.operands = {batch.id};
    op.attrs["field"] = name.text;
    op.results = {id};
    op.source = fn_.values[batch.id.index].name + "." + name.text;
    blocks_.back().known[key] = id;
    return tensor(id);
  }
  if (!object.is(ValueKind::member)) {
    fail(code::unknown_field, name.span, "a tensor has no fields, so none named `" + name.text + "`");
    return Value::error();
  }
  const Member& member = *object.as_member();
  if (const auto* list = dynamic_cast<const ListMember*>(&member)) {
    fail(code::unknown_field, name.span, "`" + list->name + "` is a list of children: `" + name.text + "` belongs to one of them")
        .label(list->declared, "declared here")
        .help("take one (`" + list->name + "[0]." + name.text + "`), or run over them with `for`");
    return Value::error();
  }
  const auto* child = dynamic_cast<const ChildMember*>(&member);
  if (child == nullptr) {
    fail(code::unknown_field, name.span, member.describe() + " has no fields, so none named `" + name.text + "`");
    return Value::error();
  }
  if (child->info == nullptr) return Value::error();
  const ModuleDef& def = child->info->instance->def;
  const auto index = def.index_of(name.text);
  if (!index) {
    std::vector<std::string> names;
    for (const MemberDef& m : def.members) names.push_back(m.name);
    fail(code::unknown_field, name.span, "the module `" + def.name() + "` of `" + child->name + "` has no member `" + name.text + "`")
        .label(def.symbol->span, "declared here")
        .help(diag::did_you_mean(name.text, names));
    return Value::error();
  }
  return member_of(*child->info, *index, child->path, name.span, false);
}

}  // namespace modelc::sema

// What the members of an instance come to: sizes of weights, states, recipes of children.
#include <algorithm>
#include <cassert>

#include "frontend/graph/types.h"
#include "frontend/sema/instances.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace code = diag::code;

bool Instances::realize(Instance& instance) {
  bool ok = check_requires(instance);
  for (std::size_t i = 0; i < instance.def.members.size(); ++i) ok = realize_member(instance, i) && ok;
  return ok;
}

bool Instances::realize_member(Instance& instance, std::size_t index) {
  const MemberDef& member = instance.def.members[index];
  Slot& slot = instance.slots[index];
  bool ok = true;
  switch (member.kind) {
    case MemberKind::let: return !instance.let(index).is_error();
    case MemberKind::function:
    case MemberKind::method: return true;
    case MemberKind::param: ok = realize_param(instance, member, slot); break;
    case MemberKind::constant: ok = realize_const(instance, member, slot); break;
    case MemberKind::state: ok = realize_state(instance, member, slot); break;
    case MemberKind::child: ok = realize_child(instance, member, slot); break;
  }
  slot.state = Slot::State::done;
  slot.failed = !ok;
  return ok;
}

bool Instances::check_requires(Instance& instance) {
  bool ok = true;
  if (instance.def.requires_.empty()) return ok;
  const Evaluator::Reason reason(evaluator_, "of " + show(Value::recipe(instance.recipe)) + " in " + sources().place(instance.recipe.span));
  for (const auto& require : instance.def.requires_) {
    ok = evaluator_.require(*require.item, instance.environment(require.level), instance.title()) && ok;
  }
  return ok;
}

// Whether a member is there. False when its condition is wrong.
bool Instances::present(Instance& instance, const ast::ExprPtr& condition, const MemberDef& member, Slot& slot) {
  if (!condition) return true;
  const auto holds = evaluator_.condition(*condition, instance.environment(member.level));
  if (!holds) return false;
  slot.present = *holds;
  if (!slot.present) slot.absent_reason = "its condition `" + source_text(condition->span) + "` is false";
  return true;
}

// "a.b" of `at a.b`, "" of `at .`, the name without `at`.
std::optional<std::string> Instances::path_of(const std::optional<ast::At>& at, const std::string& name, bool child) {
  if (!at) return name;
  if (at->self) {
    if (child) return std::string();
    sink().error(code::bad_path, at->span, "`at .` is for children: the weight `" + name + "` needs a name in the checkpoint");
    return std::nullopt;
  }
  std::string path;
  bool plain = !at->path.quoted;
  for (const ast::Seg& seg : at->path.segs) {
    plain = plain && (seg.kind == ast::SegKind::name || seg.kind == ast::SegKind::integer);
    path += (path.empty() ? "" : ".") + seg.text;
  }
  if (!plain) {
    sink().error(code::bad_path, at->path.span, "the path of `" + name + "` is names joined by dots, without patterns");
    return std::nullopt;
  }
  return path;
}

bool Instances::realize_param(Instance& instance, const MemberDef& member, Slot& slot) {
  const auto& param = ast::as<ast::ParamMember>(*member.item);
  const Environment env = instance.environment(member.level);
  if (!present(instance, param.condition, member, slot)) return false;
  if (!slot.present) {
    if (param.default_value) evaluator_.touch(*param.default_value, env);
    return true;
  }
  const std::string what = "the param `" + member.name + "`";
  auto type = type_pattern(evaluator_, *param.type, env, &instance.def, member.level, what);
  const auto path = path_of(param.at, member.name, false);
  if (!type || !path) return false;
  if (type->kind != graph::TypeKind::tensor || type->is_index) {
    sink().error(code::unknown_type, param.type->span, what + " must be a tensor, as in `param " + member.name + ": [n]`");
    return false;
  }
  bool ok = true;
  for (const AxisPattern& axis : type->axes) {
    if (!axis.ellipsis && module_.dims.is_constant(axis.dim)) continue;
    sink().error(code::run_time_size, axis.span,
                 "the sizes of a weight are known when it is loaded, and this one is " +
                     (axis.ellipsis ? std::string("any number of axes") : "of run time"));
    ok = false;
  }
  // More than any machine holds is a slip in the configuration, and its product must not wrap.
  constexpr std::int64_t most = std::int64_t{1} << 48;
  std::int64_t elements = 1;
  for (const AxisPattern& axis : type->axes) {
    const std::int64_t n = axis.ellipsis ? 1 : module_.dims.value(axis.dim).value_or(1);
    if (ok && (n > most || elements > most / std::max<std::int64_t>(n, 1))) {
      const std::vector<AxisText> texts = axis_texts(*type);
      auto message =
          sink().error(code::bad_arithmetic, param.type->span, what + " has more elements than 2^48, the most a weight may have");
      message.note("found " + shape_formulas(texts, module_.dims) + " = " + shape_numbers(texts, module_.dims));
      for (const auto& origin : shape_origins(texts)) message.note(origin);
      ok = false;
    }
    if (ok) elements *= n;
  }
  graph::WeightDecl weight;
  weight.name = member.name;
  weight.path = *path;
  if (type->typed) weight.required_dtype = type->dtype;
  // Floats are computed with in f32, however they are stored.
  weight.type = concrete(*type, std::nullopt);
  if (is_float(weight.type.dtype)) weight.type.dtype = DType::f32;
  const std::vector<AxisText> axes = axis_texts(*type);
  weight.shape_text = shape_formulas(axes, module_.dims);
  weight.shape_numbers = shape_numbers(axes, module_.dims);
  if (weight.shape_numbers == graph::shape_text(weight.type.shape, module_.dims)) weight.shape_numbers.clear();
  weight.origins = shape_origins(axes);
  weight.where = where(member.span);
  if (param.default_value) {
    const Value value = evaluator_.eval(*param.default_value, env);
    if (value.is_number()) {
      weight.default_value = value.as_real();
    } else if (value.is(ValueKind::boolean)) {
      weight.default_value = value.as_bool() ? 1 : 0;
    } else {
      if (!value.is_error()) {
        sink().error(code::wrong_type, param.default_value->span,
                     "the default of " + what + " is " + kind_name(value) + ", not a number: it fills the whole weight");
      }
      ok = false;
    }
  }
  if (!ok) return false;
  slot.type = std::move(*type);
  slot.index = static_cast<std::uint32_t>(instance.made.weights.size());
  instance.made.order.emplace_back('w', slot.index);
  instance.made.weights.push_back(std::move(weight));
  return true;
}

bool Instances::realize_const(Instance& instance, const MemberDef& member, Slot& slot) {
  const auto& constant = ast::as<ast::ConstMember>(*member.item);
  const std::string what = "the const `" + member.name + "`";
  auto type = type_pattern(evaluator_, *constant.type, instance.environment(member.level), &instance.def, member.level, what);
  if (!type) return false;
  bool ok = type->kind == graph::TypeKind::tensor && !type->is_index;
  if (!ok) sink().error(code::unknown_type, constant.type->span, what + " must be a tensor, as in `const " + member.name + ": f32[n]`");
  for (const AxisPattern& axis : type->axes) {
    if (!axis.ellipsis && module_.dims.is_constant(axis.dim)) continue;
    sink().error(code::run_time_size, axis.span, "the sizes of a const are known when the model is loaded");
    ok = false;
  }
  if (!ok) return false;
  graph::ConstDecl decl;
  decl.name = member.name;
  decl.type = concrete(*type, std::nullopt);
  decl.where = where(member.span);
  slot.type = std::move(*type);
  slot.index = static_cast<std::uint32_t>(instance.made.consts.size());
  instance.made.order.emplace_back('c', slot.index);
  instance.made.consts.push_back(std::move(decl));
  return true;
}

// ---- states ---------------------------------------------------------------------------------------------------------

namespace {

struct StateSpec {
  std::string_view name;
  graph::StateKind kind;
  std::vector<std::string_view> sizes;  // whole numbers, by position
  std::string_view optional;            // one more, the last size where it is left out
  bool shape = false;                   // a list of sizes follows
  std::string_view usage;
};

const std::vector<StateSpec>& state_specs() {
  static const std::vector<StateSpec> specs = {
      {"KVCache", graph::StateKind::kv_cache, {"heads", "dim"}, "value_dim", false, "KVCache(heads, dim, value_dim = dim)"},
      {"LatentCache", graph::StateKind::latent_cache, {"rank", "rope"}, "", false, "LatentCache(rank, rope)"},
      {"CrossCache", graph::StateKind::cross_cache, {"n", "heads", "dim"}, "", false, "CrossCache(n, heads, dim)"},
      {"Ring", graph::StateKind::ring, {"n"}, "", true, "Ring(n, [shape])"},
      {"Recurrent", graph::StateKind::recurrent, {}, "", true, "Recurrent([shape])"},
  };
  return specs;
}

}  // namespace

bool Instances::realize_state(Instance& instance, const MemberDef& member, Slot& slot) {
  const auto& state = ast::as<ast::StateMember>(*member.item);
  const Environment env = instance.environment(member.level);
  if (!present(instance, state.condition, member, slot)) return false;
  if (!slot.present) {
    if (const auto* call = ast::try_as<ast::CallExpr>(*state.value)) {
      for (const ast::Arg& arg : call->args.items) evaluator_.touch(*arg.value, env);
    }
    return true;
  }
  const auto* call = ast::try_as<ast::CallExpr>(*state.value);
  const auto* callee = call == nullptr ? nullptr : ast::try_as<ast::NameExpr>(*call->callee);
  const StateSpec* spec = nullptr;
  std::vector<std::string> kinds;
  for (const StateSpec& s : state_specs()) {
    kinds.emplace_back(s.name);
    if (callee != nullptr && callee->name.text == s.name) spec = &s;
  }
  if (spec == nullptr) {
    const std::string text = callee != nullptr ? callee->name.text : source_text(state.value->span);
    const bool known =
        callee == nullptr || env.declared(text) || find_builtin(text) != nullptr || find_symbol(*env.file(), text).symbol != nullptr;
    if (!known) return false;  // said of the definition
    const std::string near = callee != nullptr ? diag::did_you_mean(text, kinds) : "";
    sink()
        .error(code::bad_state, state.value->span, "`" + text + "` is no kind of state")
        .help(near.empty() ? "the kinds are KVCache, LatentCache, CrossCache, Ring, Recurrent" : near);
    return false;
  }
  graph::StateDecl decl;
  decl.name = member.name;
  decl.kind = spec->kind;
  decl.where = where(member.span);

  std::vector<std::string_view> names(spec->sizes.begin(), spec->sizes.end());
  if (!spec->optional.empty()) names.push_back(spec->optional);
  if (spec->shape) names.push_back("shape");
  std::vector<const Argument*> given(names.size(), nullptr);
  bool ok = true;
  const auto wrong = [&](source::Span span, const std::string& message) {
    sink().error(code::bad_state, span, message).help("it is " + std::string(spec->usage));
    ok = false;
  };
  const std::vector<Argument> arguments = evaluator_.arguments(call->args, env);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    std::size_t at = i;
    if (!argument.name.empty()) {
      at = static_cast<std::size_t>(std::find(names.begin(), names.end(), argument.name) - names.begin());
      if (at == names.size()) {
        wrong(argument.name_span, std::string(spec->name) + " has no argument `" + std::string(argument.name) + "`");
        continue;
      }
    } else if (at >= names.size()) {
      wrong(argument.span, std::string(spec->name) + " takes " + counted(names.size(), "argument") + ", and this is one more");
      break;
    }
    if (given[at] != nullptr) wrong(argument.span, "`" + std::string(names[at]) + "` is given twice");
    given[at] = &argument;
  }
  const auto size = [&](const Value& value, source::Span span, std::string_view name) {
    if (value.is_error()) {
      ok = false;
    } else if (!value.is(ValueKind::integer) || value.as_int() < 1) {
      wrong(span, "`" + std::string(name) + "` of " + std::string(spec->name) + " is a whole number of at least 1, not " +
                      (value.is_number() ? show_formula(value) : kind_name(value)));
    } else {
      decl.sizes.push_back(value.as_int());
    }
  };
  for (std::size_t i = 0; i < names.size() && ok; ++i) {
    const bool is_shape = spec->shape && i + 1 == names.size();
    if (given[i] == nullptr) {
      if (names[i] == spec->optional && !decl.sizes.empty()) {
        decl.sizes.push_back(decl.sizes.back());
      } else {
        wrong(state.value->span, "`" + std::string(names[i]) + "` of " + std::string(spec->name) + " is missing");
      }
      continue;
    }
    if (!is_shape) {
      size(given[i]->value, given[i]->span, names[i]);
    } else if (given[i]->value.is(ValueKind::list)) {
      for (const Value& item : given[i]->value.items()) size(item, given[i]->span, "shape");
    } else if (given[i]->value.is_error()) {
      ok = false;
    } else {
      wrong(given[i]->span, "the shape of " + std::string(spec->name) + " is a list of sizes, not " + kind_name(given[i]->value));
    }
  }
  if (!ok) return false;
  slot.index = static_cast<std::uint32_t>(instance.made.states.size());
  instance.made.order.emplace_back('s', slot.index);
  instance.made.states.push_back(std::move(decl));
  return true;
}

// ---- children -------------------------------------------------------------------------------------------------------

ClassInfo* Instances::child_class(const Value& value, source::Span span, const MemberDef& member) {
  if (value.is_error()) return nullptr;
  if (!value.is(ValueKind::recipe)) {
    auto message =
        sink().error(code::bad_child, span, "the child `" + member.name + "` is a module with its arguments, not " + kind_name(value));
    if (value.is(ValueKind::list)) message.help("lists of lists are not children: make one list");
    if (value.is(ValueKind::closure)) message.help("call the fn");
    return nullptr;
  }
  const Recipe& recipe = value.as_recipe();
  if (!recipe.called) {
    sink()
        .error(code::bad_child, span, "the module `" + recipe.symbol->name + "` needs its arguments here")
        .label(recipe.symbol->span, "declared here")
        .help("write `" + recipe.symbol->name + "(…)`");
    return nullptr;
  }
  return make(recipe);
}

bool Instances::realize_child(Instance& instance, const MemberDef& member, Slot& slot) {
  const auto& child = ast::as<ast::ChildMember>(*member.item);
  const Environment env = instance.environment(member.level);
  if (!present(instance, child.condition, member, slot)) return false;
  if (!slot.present) {
    evaluator_.touch(*child.value, env);
    return true;
  }
  const auto path = path_of(child.at, member.name, true);
  const Value value = evaluator_.eval(*child.value, env);
  if (value.is_error() || !path) return false;
  if (value.is_none()) {
    slot.present = false;
    slot.absent_reason = "its value `" + source_text(child.value->span) + "` is none";
    return true;
  }
  bool ok = true;
  slot.list = value.is(ValueKind::list);
  if (slot.list) {
    const ClassInfo* failed_before = nullptr;
    (void)failed_before;
    for (const Value& item : value.items()) {
      slot.elements.push_back(child_class(item, child.value->span, member));
      ok = ok && slot.elements.back() != nullptr && slot.elements.back()->ok;
    }
  } else {
    slot.elements.push_back(child_class(value, child.value->span, member));
    ok = slot.elements.back() != nullptr && slot.elements.back()->ok;
  }
  // A class with mistakes inside can be called all the same; without a class there is nothing to call.
  const bool whole = std::all_of(slot.elements.begin(), slot.elements.end(), [](const ClassInfo* c) { return c != nullptr; });
  if (!whole) return false;
  graph::ChildDecl decl;
  decl.name = member.name;
  decl.path = *path;
  decl.list = slot.list;
  decl.where = where(member.span);
  for (const ClassInfo* element : slot.elements) decl.elements.push_back(element->id);
  slot.index = static_cast<std::uint32_t>(instance.made.children.size());
  instance.made.order.emplace_back('m', slot.index);
  instance.made.children.push_back(std::move(decl));
  return true;
}

}  // namespace modelc::sema

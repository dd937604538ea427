// Operations by their names in the language. Most go straight to the graph's table, which holds their operands and
// attributes; the rest of this file is for those that the language spells otherwise, or that stand for several.
#include <algorithm>
#include <cassert>
#include <cmath>

#include "frontend/graph/types.h"
#include "frontend/sema/op_call.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace code = diag::code;
using graph::OpKind;
using graph::ValueId;

namespace {

// The table's name of an operation that the language spells otherwise.
std::string_view table_name(std::string_view name) { return name == "repeat" ? "repeat_axis" : name; }

}  // namespace

Value FunctionBuilder::call_op(std::string_view name, std::span<const Argument> arguments, source::Span span) {
  OpCall call{*this, std::string(name), arguments, span};
  if (name == "attend") return attend(call);
  if (name == "activate") return activate(call);
  if (name == "softcap") return softcap(call);
  if (name == "clamp") return clamp(call);
  if (name == "max" || name == "min") return extreme(call, name == "max");
  if (name == "unflatten" || name == "flatten") return reshaped(call);
  if (name == "expand") return expanded(call);
  if (name == "tensor") return tensor_of(call);
  if (name == "concat") return joined(OpKind::concat, call);
  if (name == "stack") return joined(OpKind::stack, call);
  if (name == "einsum") return einsum(call);
  if (name == "count" || name == "dtype") return measure(call);
  if (name == "route") return route(call);
  if (name == "moe") return moe(call);
  const graph::OpInfo* row = graph::find_op(table_name(name));
  if (row == nullptr || !graph::carried_out(*row)) return not_carried_out(span, "the operation `" + std::string(name) + "` is");
  if (!row->state_name.empty()) return state_op(*row, call);
  return simple_op(row->kind, call);
}

// ---- through the table ----------------------------------------------------------------------------------------------

std::optional<graph::AttrValue> FunctionBuilder::attribute(const graph::AttrSpec& spec, const Argument& argument, std::string_view op) {
  const Value& v = argument.value;
  attribute_spans_[std::string(spec.name)] = argument.span;
  const auto wrong = [&](const std::string& wanted) -> std::optional<graph::AttrValue> {
    const bool list = spec.type == graph::AttrType::integers || spec.type == graph::AttrType::reals;
    auto message = fail(code::wrong_type, argument.span,
                        "`" + std::string(spec.name) + "` of `" + std::string(op) + "` is " + wanted + ", not " +
                            (v.is_number() ? show_formula(v) : kind_name(v)));
    // What the operation is, with its arguments: the way out where a kind of value alone says little.
    if (list && v.is_number() && op == "split") message.help("the size of each part is listed: `split(x, [n, n])`");
    else if (list && v.is_number()) message.help("a list of one is written `[" + show(v) + "]`");
    else if (const Builtin* builtin = find_builtin(op); builtin != nullptr) message.note(std::string(builtin->doc));
    if (spec.name == "mask") message.help("the masks are \"causal\" and \"full\"; a tensor that says which positions count is `keep`");
    return std::nullopt;
  };
  switch (spec.type) {
    case graph::AttrType::integer:
      if (v.is(ValueKind::integer)) return v.as_int();
      return wrong("a whole number that is known early");
    case graph::AttrType::real:
      if (v.is_number()) return v.as_real();
      return wrong("a number that is known early");
    case graph::AttrType::boolean:
      if (v.is(ValueKind::boolean)) return v.as_bool();
      return wrong("true or false, known early");
    case graph::AttrType::string:
      if (v.is(ValueKind::string)) return v.as_string();
      return wrong("a text");
    case graph::AttrType::dim:
      if (v.is(ValueKind::integer)) return v.as_int();
      if (v.is(ValueKind::dim)) return dims().text(v.as_dim());
      return wrong("a size");
    case graph::AttrType::integers: {
      std::vector<std::int64_t> items;
      if (!v.is(ValueKind::list)) return wrong("a list of whole numbers");
      for (const Value& item : v.items()) {
        if (!item.is(ValueKind::integer)) return wrong("a list of whole numbers");
        items.push_back(item.as_int());
      }
      return items;
    }
    case graph::AttrType::reals: {
      std::vector<double> items;
      if (!v.is(ValueKind::list)) return wrong("a list of numbers");
      for (const Value& item : v.items()) {
        if (!item.is_number()) return wrong("a list of numbers");
        items.push_back(item.as_real());
      }
      return items;
    }
  }
  return std::nullopt;
}

Value FunctionBuilder::simple_op(OpKind kind, OpCall& call) {
  const graph::OpInfo& row = graph::info(kind);
  std::vector<Expressions::ParamSpec> specs;
  for (const graph::OperandSpec& o : row.operands) specs.push_back({o.name, !o.optional});
  for (const graph::AttrSpec& a : row.attrs) specs.push_back({a.name, !a.optional});
  std::vector<const Argument*> given;
  if (!call.arrange(specs, given)) return Value::error();
  const auto results = from_table(kind, given, call);
  return results ? as_value(*results) : Value::error();
}

std::optional<std::vector<ValueId>> FunctionBuilder::from_table(OpKind kind, std::span<const Argument* const> given, const OpCall& call) {
  const graph::OpInfo& row = graph::info(kind);
  // A number beside an integer tensor is an integer, so that positions + 1 stays one.
  const graph::Type* beside = nullptr;
  if (row.elementwise) {
    for (const Argument* argument : given) {
      if (argument != nullptr && argument->value.is(ValueKind::tensor) && beside == nullptr) beside = &argument->value.as_graph().type;
    }
  }
  std::vector<Operand> operands;
  Attrs attrs;
  bool ok = true;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const bool is_operand = i < row.operands.size();
    const bool optional = is_operand ? row.operands[i].optional : row.attrs[i - row.operands.size()].optional;
    if (optional && left_out(given[i])) {
      if (is_operand) operands.emplace_back();
      continue;
    }
    const Argument& argument = *given[i];
    if (is_operand) {
      if (argument.value.is(ValueKind::batch)) {
        operands.emplace_back(argument.value.as_graph().id, argument.span);
        continue;
      }
      const auto id = promote(argument.value, argument.span, beside);
      ok = ok && id;
      if (id) operands.emplace_back(*id, argument.span);
      continue;
    }
    const graph::AttrSpec& spec = row.attrs[i - row.operands.size()];
    if (argument.value.is_none() || argument.value.is(ValueKind::absent)) {
      fail(code::none_used, argument.span, "`" + std::string(spec.name) + "` of `" + call.name + "` cannot be left out");
      ok = false;
      continue;
    }
    auto value = attribute(spec, argument, call.name);
    ok = ok && value;
    if (value) attrs.emplace(spec.name, std::move(*value));
  }
  if (!ok) return std::nullopt;
  return emit(kind, std::move(operands), std::move(attrs), call.span);
}

// ---- attention ------------------------------------------------------------------------------------------------------

Value FunctionBuilder::attend(OpCall& call) {
  const graph::OpInfo& row = graph::info(OpKind::attend);
  const StateMember* state = nullptr;
  for (const Argument& argument : call.arguments) {
    if (!argument.value.is(ValueKind::member)) continue;
    state = dynamic_cast<const StateMember*>(argument.value.as_member().get());
    if (state == nullptr) {
      fail(code::wrong_operand, argument.span, argument.value.as_member()->describe() + " is no state to attend to");
      return Value::error();
    }
  }
  std::vector<Expressions::ParamSpec> specs;
  if (state != nullptr) specs = {{"q", true}, {"cache", true}, {"at", true}, {"sinks", false}};
  else specs = {{"q", true}, {"k", true}, {"v", true}, {"at", false}, {"sinks", false}, {"keep", false}, {"bias", false}};
  const std::size_t operands_end = specs.size();
  for (const graph::AttrSpec& a : row.attrs) specs.push_back({a.name, !a.optional});
  std::vector<const Argument*> given;
  if (!call.arrange(specs, given)) return Value::error();

  bool ok = true;
  const auto take = [&](std::string_view name) {
    const auto it = std::find_if(specs.begin(), specs.end(), [&](const auto& s) { return s.name == name; });
    if (it == specs.end()) return Operand{};
    const Argument* argument = given[static_cast<std::size_t>(it - specs.begin())];
    if (!it->required && left_out(argument)) return Operand{};
    const auto value = operand(argument->value, argument->span, name);
    ok = ok && value;
    return value.value_or(Operand{});
  };
  std::vector<Operand> operands;
  for (const graph::OperandSpec& o : row.operands) operands.push_back(take(o.name));
  Attrs attrs;
  for (std::size_t i = operands_end; i < specs.size(); ++i) {
    if (left_out(given[i]) && !specs[i].required) continue;
    auto value = attribute(row.attrs[i - operands_end], *given[i], call.name);
    ok = ok && value;
    if (value) attrs.emplace(specs[i].name, std::move(*value));
  }
  if (!ok) return Value::error();
  EmitOptions options;
  graph::StateDecl decl;
  if (state != nullptr) {
    decl = in_.class_of(*state->info).states[state->index];
    options.member = state->member;
    options.state = &decl;
    StateUse& use = state->info->state_uses[state->index];
    use.read = true;
    const auto window = attrs.find("window");
    if (window == attrs.end()) use.unbounded = true;
    else use.widest = std::max(use.widest, std::get<std::int64_t>(window->second));
  }
  const auto id = emit_one(OpKind::attend, std::move(operands), std::move(attrs), call.span, options);
  return id ? tensor(*id) : Value::error();
}

// ---- with a state ---------------------------------------------------------------------------------------------------

// causal_conv1d(x, w, b?, ring, at), ssd_scan(…, state, at), …: the table's operands, the state before `at`.
Value FunctionBuilder::state_op(const graph::OpInfo& row, OpCall& call) {
  std::vector<Expressions::ParamSpec> specs;
  std::size_t state_at = 0;
  for (const graph::OperandSpec& o : row.operands) {
    if (o.name == "at") {
      state_at = specs.size();
      specs.push_back({row.state_name, true});
    }
    specs.push_back({o.name, !o.optional});
  }
  const std::size_t operands_end = specs.size();
  for (const graph::AttrSpec& a : row.attrs) specs.push_back({a.name, !a.optional});
  std::vector<const Argument*> given;
  if (!call.arrange(specs, given)) return Value::error();

  const Argument& state_argument = *given[state_at];
  const StateMember* state = nullptr;
  if (state_argument.value.is(ValueKind::member)) state = dynamic_cast<const StateMember*>(state_argument.value.as_member().get());
  bool ok = state != nullptr;
  if (!ok && !state_argument.value.is_error())
    fail(code::wrong_operand, state_argument.span,
         "`" + std::string(row.state_name) + "` of `" + call.name + "` is a state, not " +
             (state_argument.value.is(ValueKind::member) ? state_argument.value.as_member()->describe() : kind_name(state_argument.value)));
  std::vector<Operand> operands;
  Attrs attrs;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (i == state_at) continue;
    if (!specs[i].required && left_out(given[i])) {
      if (i < operands_end) operands.emplace_back();
      continue;
    }
    if (i < operands_end) {
      const auto value = operand(given[i]->value, given[i]->span, specs[i].name);
      ok = ok && value;
      operands.push_back(value.value_or(Operand{}));
    } else {
      auto value = attribute(row.attrs[i - operands_end], *given[i], call.name);
      ok = ok && value;
      if (value) attrs.emplace(specs[i].name, std::move(*value));
    }
  }
  if (!ok) return Value::error();
  const graph::StateDecl decl = in_.class_of(*state->info).states[state->index];
  StateUse& use = state->info->state_uses[state->index];
  use.read = use.unbounded = true;
  // A cache may be read as often as one likes; what goes token by token has one operation that moves it on.
  if (decl.kind != graph::StateKind::latent_cache &&
      !moves(state->member, {state_argument.span, state_argument.span, state->declared, false}))
    return Value::error();
  EmitOptions options;
  options.member = state->member;
  options.state = &decl;
  const auto id = emit_one(row.kind, std::move(operands), std::move(attrs), call.span, options);
  return id ? tensor(*id) : Value::error();
}

// ---- what stands for several operations -----------------------------------------------------------------------------

// transformers' table of activations, as far as it goes without parameters.
std::optional<ValueId> FunctionBuilder::activation(std::string_view name, ValueId x, source::Span name_span, source::Span span) {
  struct Row {
    std::string_view name;
    OpKind kind;
  };
  static constexpr Row table[] = {
      {"silu", OpKind::silu},
      {"swish", OpKind::silu},
      {"gelu", OpKind::gelu},
      {"gelu_python", OpKind::gelu},
      {"gelu_new", OpKind::gelu_tanh},
      {"gelu_pytorch_tanh", OpKind::gelu_tanh},
      {"gelu_python_tanh", OpKind::gelu_tanh},
      {"gelu_fast", OpKind::gelu_tanh},
      {"gelu_accurate", OpKind::gelu_tanh},
      {"quick_gelu", OpKind::quick_gelu},
      {"relu", OpKind::relu},
      {"sigmoid", OpKind::sigmoid},
      {"tanh", OpKind::tanh},
  };
  for (const Row& row : table) {
    if (row.name == name) return emit_one(row.kind, {{x, span}}, {}, span);
  }
  if (name == "linear") return x;
  if (name == "relu2") {
    const auto r = emit_one(OpKind::relu, {{x, span}}, {}, span);
    return r ? emit_one(OpKind::mul, {{*r, span}, {*r, span}}, {}, span) : std::nullopt;
  }
  std::vector<std::string> names = {"linear", "relu2"};
  for (const Row& row : table) names.emplace_back(row.name);
  const std::string near = diag::did_you_mean(name, names);
  fail(code::wrong_type, name_span, "there is no activation " + modelc::quote(name))
      .help(near.empty() ? "known are " + listed(names, names.size()) : near);
  return std::nullopt;
}

Value FunctionBuilder::activate(OpCall& call) {
  std::vector<const Argument*> given;
  if (!call.arrange({{"x", true}, {"name", true}}, given)) return Value::error();
  const auto x = promote(given[0]->value, given[0]->span);
  if (!given[1]->value.is(ValueKind::string)) {
    if (!given[1]->value.is_error())
      fail(code::wrong_type, given[1]->span, "the name of an activation is a text, not " + kind_name(given[1]->value));
    return Value::error();
  }
  if (!x) return Value::error();
  const auto y = activation(given[1]->value.as_string(), *x, given[1]->span, call.span);
  return y ? tensor(*y) : Value::error();
}

Value FunctionBuilder::softcap(OpCall& call) {
  std::vector<const Argument*> given;
  if (!call.arrange({{"x", true}, {"c", false}}, given)) return Value::error();
  const auto x = promote(given[0]->value, given[0]->span);
  if (!x) return Value::error();
  if (left_out(given[1])) return tensor(*x);
  const Value& c = given[1]->value;
  if (!c.is_number() || !(c.as_real() > 0)) {
    if (!c.is_error())
      fail(code::wrong_type, given[1]->span,
           "the cap is a number above 0, known early, not " + (c.is_number() ? show_formula(c) : kind_name(c)));
    return Value::error();
  }
  auto y = emit_one(OpKind::div, {{*x, given[0]->span}, {literal(c.as_real(), given[1]->span), given[1]->span}}, {}, call.span);
  if (y) y = emit_one(OpKind::tanh, {{*y, call.span}}, {}, call.span);
  if (y) y = emit_one(OpKind::mul, {{*y, call.span}, {literal(c.as_real(), given[1]->span), given[1]->span}}, {}, call.span);
  return y ? tensor(*y) : Value::error();
}

Value FunctionBuilder::clamp(OpCall& call) {
  std::vector<const Argument*> given;
  if (!call.arrange({{"x", true}, {"lo", true}, {"hi", true}}, given)) return Value::error();
  const graph::Type* beside = given[0]->value.is(ValueKind::tensor) ? &given[0]->value.as_graph().type : nullptr;
  const auto x = promote(given[0]->value, given[0]->span);
  const auto lo = promote(given[1]->value, given[1]->span, beside);
  const auto hi = promote(given[2]->value, given[2]->span, beside);
  if (!x || !lo || !hi) return Value::error();
  auto y = emit_one(OpKind::max, {{*x, given[0]->span}, {*lo, given[1]->span}}, {}, call.span);
  if (y) y = emit_one(OpKind::min, {{*y, call.span}, {*hi, given[2]->span}}, {}, call.span);
  return y ? tensor(*y) : Value::error();
}

// max(a, b, …) of several; max(x; axis, where) over an axis of one.
Value FunctionBuilder::extreme(OpCall& call, bool largest) {
  const auto positional = std::count_if(call.arguments.begin(), call.arguments.end(), [](const Argument& a) { return a.name.empty(); });
  if (positional < 2) return simple_op(largest ? OpKind::max_reduce : OpKind::min_reduce, call);
  const graph::Type* beside = nullptr;
  for (const Argument& argument : call.arguments) {
    if (!argument.name.empty()) {
      fail(code::wrong_arguments, argument.name_span, "`" + call.name + "` of several takes no `" + std::string(argument.name) + "`");
      return Value::error();
    }
    if (beside == nullptr && argument.value.is(ValueKind::tensor)) beside = &argument.value.as_graph().type;
  }
  std::optional<ValueId> y;
  for (const Argument& argument : call.arguments) {
    const auto x = promote(argument.value, argument.span, beside);
    if (!x) return Value::error();
    y = y ? emit_one(largest ? OpKind::max : OpKind::min, {{*y, call.span}, {*x, argument.span}}, {}, call.span) : x;
    if (!y) return Value::error();
  }
  return tensor(*y);
}

// unflatten(x, axis, sizes), flatten(x, a, b)
Value FunctionBuilder::reshaped(OpCall& call) {
  const bool apart = call.name == "unflatten";
  std::vector<const Argument*> given;
  if (!call.arrange(apart ? std::vector<Expressions::ParamSpec>{{"x", true}, {"axis", true}, {"sizes", true}}
                          : std::vector<Expressions::ParamSpec>{{"x", true}, {"a", true}, {"b", true}},
                    given)) {
    return Value::error();
  }
  const auto x = promote(given[0]->value, given[0]->span);
  if (!x) return Value::error();
  std::vector<AxisText> axes = axes_of(*x);
  const auto rank = static_cast<std::int64_t>(axes.size());
  const auto axis = [&](const Argument& argument) -> std::optional<std::int64_t> {
    if (!argument.value.is(ValueKind::integer)) {
      fail(code::wrong_type, argument.span, "an axis is a whole number, not " + kind_name(argument.value));
      return std::nullopt;
    }
    const std::int64_t at = argument.value.as_int();
    if (at < -rank || at >= rank) {
      fail(code::shape_mismatch, argument.span,
           "axis " + std::to_string(at) + " does not exist: x has " + counted(axes.size(), "axis", "axes"))
          .note("x is " + shown(*x));
      return std::nullopt;
    }
    return at < 0 ? at + rank : at;
  };
  const auto first = axis(*given[1]);
  if (!first) return Value::error();
  std::vector<AxisText> wanted(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(*first));
  std::int64_t last = *first;
  if (apart) {
    if (!given[2]->value.is(ValueKind::list)) {
      fail(code::wrong_type, given[2]->span, "the sizes are a list, not " + kind_name(given[2]->value));
      return Value::error();
    }
    for (const Value& size : given[2]->value.items()) {
      if (size.is(ValueKind::dim)) {
        wanted.push_back({size.as_dim(), size.formula(), false});
      } else if (size.is(ValueKind::integer) && size.as_int() >= 1) {
        wanted.push_back({dims().constant(size.as_int()), size.formula(), false});
      } else {
        fail(code::wrong_type, given[2]->span, "a size is a whole number of at least 1, not " + show_formula(size));
        return Value::error();
      }
    }
  } else {
    const auto end = axis(*given[2]);
    if (!end) return Value::error();
    last = *end;
    if (last < *first) {
      fail(code::shape_mismatch, given[2]->span, "the last axis to join stands before the first");
      return Value::error();
    }
    AxisText one{dims().constant(1), nullptr, false};
    FormulaPtr formula;
    bool complete = true;
    for (std::int64_t i = *first; i <= last; ++i) {
      const AxisText& a = axes[static_cast<std::size_t>(i)];
      one.dim = dims().mul(one.dim, a.dim);
      const auto size = dims().value(a.dim);
      complete = complete && size && a.formula;
      if (!complete) continue;
      const auto product = dims().value(one.dim);
      formula =
          formula ? binary_formula("*", precedence::product, formula, a.formula, product ? std::to_string(*product) : "?") : a.formula;
    }
    one.formula = complete ? formula : nullptr;
    wanted.push_back(one);
  }
  wanted.insert(wanted.end(), axes.begin() + static_cast<std::ptrdiff_t>(last) + 1, axes.end());
  const auto y = reshape(*x, wanted, given[0]->span, call.span);
  return y ? tensor(*y) : Value::error();
}

Value FunctionBuilder::expanded(OpCall& call) {
  std::vector<const Argument*> given;
  if (!call.arrange({{"x", true}, {"shape", true}}, given)) return Value::error();
  const auto x = promote(given[0]->value, given[0]->span);
  if (!x) return Value::error();
  if (!given[1]->value.is(ValueKind::list)) {
    fail(code::wrong_type, given[1]->span, "the shape is a list of sizes, not " + kind_name(given[1]->value));
    return Value::error();
  }
  graph::Type wanted = type(*x);
  wanted.shape.clear();
  std::vector<AxisText> texts;
  for (const Value& size : given[1]->value.items()) {
    if (size.is(ValueKind::dim)) {
      texts.push_back({size.as_dim(), size.formula(), false});
    } else if (size.is(ValueKind::integer) && size.as_int() >= 1) {
      texts.push_back({dims().constant(size.as_int()), size.formula(), false});
    } else {
      fail(code::wrong_type, given[1]->span, "a size is a whole number of at least 1, not " + show_formula(size));
      return Value::error();
    }
    wanted.shape.push_back(texts.back().dim);
  }
  const auto y = emit_one(OpKind::expand, {{*x, given[0]->span}}, {}, call.span, {"", nullptr, &wanted, &texts});
  return y ? tensor(*y) : Value::error();
}

// tensor([1, 2]), tensor([[1, 2], [3, 4]])
Value FunctionBuilder::tensor_of(OpCall& call) {
  std::vector<const Argument*> given;
  if (!call.arrange({{"list", true}}, given)) return Value::error();
  if (given[0]->value.is(ValueKind::tensor)) return given[0]->value;
  std::vector<std::int64_t> shape;
  for (const Value* at = &given[0]->value; at->is(ValueKind::list); at = &at->items().front()) {
    shape.push_back(static_cast<std::int64_t>(at->items().size()));
    if (at->items().empty()) break;
  }
  std::vector<double> values;
  bool even = true;
  std::size_t flags = 0;                             // true and false: all are, or none is
  const auto collect = [&](const auto& self, const Value& value, std::size_t depth) -> void {
    if (depth == shape.size()) {
      const bool flag = value.is(ValueKind::boolean);
      even = even && (value.is_number() || flag);
      if (value.is_number()) values.push_back(value.as_real());
      if (flag) values.push_back(value.as_bool() ? 1 : 0);
      flags += flag ? 1 : 0;
      return;
    }
    even = even && value.is(ValueKind::list) && static_cast<std::int64_t>(value.items().size()) == shape[depth];
    if (!even) return;
    for (const Value& item : value.items()) self(self, item, depth + 1);
  };
  collect(collect, given[0]->value, 0);
  if (!even || values.empty() || (flags > 0 && flags != values.size())) {
    const bool list = given[0]->value.is(ValueKind::list);
    fail(code::wrong_type, given[0]->span,
         "`tensor` takes a list of numbers, or of true and false, or of such lists of equal length, and not " +
             (!list            ? kind_name(given[0]->value)
              : values.empty() ? "an empty list"
                               : "a list that is none of these"));
    return Value::error();
  }
  std::optional<ValueId> id;
  if (shape.empty()) {
    id = literal(values[0], call.span);
  } else {
    Attrs attrs{{"values", std::move(values)}};
    if (shape.size() > 1) attrs.emplace("shape", std::move(shape));
    id = emit_one(OpKind::tensor_literal, {}, std::move(attrs), call.span);
  }
  if (id && flags > 0) id = emit_one(OpKind::cast, {{*id, call.span}}, {{"dtype", std::string("bool")}}, call.span);
  return id ? tensor(*id) : Value::error();
}

// concat([a, b]; axis), stack([a, b]; axis)
Value FunctionBuilder::joined(OpKind kind, OpCall& call) {
  std::vector<const Argument*> given;
  if (!call.arrange({{"xs", true}, {"axis", false}}, given)) return Value::error();
  if (!given[0]->value.is(ValueKind::list) || given[0]->value.items().empty()) {
    fail(code::wrong_type, given[0]->span,
         "`" + call.name + "` takes a list of tensors, and not " +
             (given[0]->value.is(ValueKind::list) ? "an empty list" : kind_name(given[0]->value)))
        .help("write `" + call.name + "([a, b])`");
    return Value::error();
  }
  std::vector<Operand> operands;
  for (const Value& item : given[0]->value.items()) {
    const auto id = promote(item, given[0]->span);
    if (!id) return Value::error();
    operands.emplace_back(*id, given[0]->span);
  }
  Attrs attrs;
  if (!left_out(given[1])) {
    auto axis = attribute({"axis", graph::AttrType::integer, true}, *given[1], call.name);
    if (!axis) return Value::error();
    attrs.emplace("axis", std::move(*axis));
  }
  const auto id = emit_one(kind, std::move(operands), std::move(attrs), call.span);
  return id ? tensor(*id) : Value::error();
}

// einsum("ij,jk->ik", a, b)
Value FunctionBuilder::einsum(OpCall& call) {
  std::vector<Expressions::ParamSpec> specs = {{"formula", true}};
  const auto positional = static_cast<std::size_t>(
      std::count_if(call.arguments.begin(), call.arguments.end(), [](const Argument& a) { return a.name.empty(); }));
  static constexpr std::string_view names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  for (std::size_t i = 1; i < std::max<std::size_t>(positional, 2) && i <= std::size(names); ++i) specs.push_back({names[i - 1], true});
  std::vector<const Argument*> given;
  if (!call.arrange(specs, given)) return Value::error();
  auto formula = attribute({"formula", graph::AttrType::string, false}, *given[0], call.name);
  std::vector<Operand> operands;
  bool ok = formula.has_value();
  for (std::size_t i = 1; i < given.size(); ++i) {
    const auto id = promote(given[i]->value, given[i]->span);
    ok = ok && id;
    if (id) operands.emplace_back(*id, given[i]->span);
  }
  if (!ok) return Value::error();
  const auto id = emit_one(OpKind::einsum, std::move(operands), {{"formula", std::move(*formula)}}, call.span);
  return id ? tensor(*id) : Value::error();
}

// count(x): a size; dtype(x): a text
Value FunctionBuilder::measure(OpCall& call) {
  std::vector<const Argument*> given;
  if (!call.arrange({{"x", true}}, given)) return Value::error();
  if (!given[0]->value.is(ValueKind::tensor)) {
    fail(code::wrong_operand, given[0]->span, "`" + call.name + "` takes a tensor, not " + kind_name(given[0]->value));
    return Value::error();
  }
  const graph::Type& t = given[0]->value.as_graph().type;
  if (call.name == "dtype") return Value::string(std::string(modelc::name(t.dtype)));
  graph::DimId n = dims().constant(1);
  for (const graph::DimId dim : t.shape) n = dims().mul(n, dim);
  return Value::dim(dims(), n);
}

}  // namespace modelc::sema

// Calls: of fns (expanded in place), recipes, the language's functions, members; and the binding of arguments.
#include <algorithm>

#include "frontend/sema/expressions.h"
#include "frontend/sema/habits.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

std::vector<Argument> Expressions::arguments(const ast::Args& args, const Environment& env) {
  std::vector<Argument> out;
  for (const ast::Arg& arg : args.items) {
    Argument argument;
    if (arg.name) {
      argument.name = arg.name->text;
      argument.name_span = arg.name->span;
    }
    argument.value = eval(*arg.value, env);
    argument.span = arg.value->span;
    out.push_back(std::move(argument));
  }
  return out;
}

Value Expressions::eval_call(const ast::CallExpr& expr, const Environment& env) {
  if (const auto* member = ast::try_as<ast::MemberExpr>(*expr.callee)) {
    // `child.entry(x)`: what the name is, only the maker of members knows.
    const Value object = eval(*member->object, env);
    if (object.is(ValueKind::tensor)) {
      // No tensor has a function, and what stands in brackets is meant for that function: `x.to(f32)` is one mistake.
      ev_.touch(expr, env);
      return field(object, member->name, member->object->span);
    }
    if (object.is(ValueKind::member)) {
      const std::vector<Argument> args = arguments(expr.args, env);
      if (std::any_of(args.begin(), args.end(), [](const Argument& a) { return a.value.is_error(); })) return Value::error();
      if (!have_tensors(expr.span, "`" + member->name.text + "`")) return Value::error();
      return st_.tensors->call_member(object, member->name.text, args, expr.span);
    }
    const Value callee = field(object, member->name, member->object->span);
    return call_value(callee, arguments(expr.args, env), expr.callee->span, expr.span);
  }
  const Value callee = eval(*expr.callee, env);
  return call_value(callee, arguments(expr.args, env), expr.callee->span, expr.span);
}

Value Expressions::call_value(const Value& callee, std::span<const Argument> arguments, source::Span callee_span, source::Span span) {
  if (unusable(callee, callee_span)) return Value::error();
  const bool failed = std::any_of(arguments.begin(), arguments.end(), [](const Argument& a) { return a.value.is_error(); });
  switch (callee.kind()) {
    case ValueKind::closure: return call_closure(callee.as_closure(), arguments, span);
    case ValueKind::recipe:
    case ValueKind::encoding: return call_recipe(callee.as_recipe(), arguments, callee_span, span, callee.kind());
    case ValueKind::builtin: return failed ? Value::error() : call_builtin(callee.as_builtin(), arguments, span);
    case ValueKind::op:
      if (failed) return Value::error();
      if (!have_tensors(span, "`" + callee.as_symbol().name + "`")) return Value::error();
      return st_.tensors->call_custom(callee.as_symbol(), arguments, span);
    case ValueKind::member:
      if (failed) return Value::error();
      if (!have_tensors(span, callee.as_member()->describe())) return Value::error();
      return st_.tensors->call_member(callee, {}, arguments, span);
    default: {
      auto message =
          fail(diag::code::not_callable, callee_span, "`" + text(callee_span) + "` is " + kind_name(callee) + " and cannot be called");
      if (callee.is(ValueKind::tensor)) message.help("elements are read with brackets: `" + text(callee_span) + "[…]`");
      if (callee.is(ValueKind::interface)) message.help("an interface stands where a type is asked");
      return Value::error();
    }
  }
}

Value Expressions::call_recipe(const Recipe& recipe, std::span<const Argument> arguments, source::Span callee_span, source::Span span,
                               ValueKind kind) {
  const bool is_module = kind == ValueKind::recipe;
  const std::string name = recipe.symbol == nullptr ? "plain" : recipe.symbol->name;
  // A module that has no list of parameters may be called with none.
  const bool bare = recipe.symbol != nullptr && recipe.arguments.empty() && recipe.span == callee_span;
  if (recipe.called && !(bare && arguments.empty())) {
    if (is_module) {
      fail(diag::code::not_callable, callee_span, "`" + name + "(…)` is a recipe, not a member of this module")
          .help("declare a child with it, as in `child: " + name + "(…)`, and call the child");
    } else {
      fail(diag::code::not_callable, callee_span, "the encoding `" + name + "` has its arguments already");
    }
    return Value::error();
  }
  const Symbol& symbol = *recipe.symbol;
  const auto& params = is_module ? ast::as<ast::ModuleDecl>(*symbol.decl).params : ast::as<ast::EncodingDecl>(*symbol.decl).params;
  Environment scope(symbol.file);
  auto bound = bind(params, arguments, "the " + std::string(word(symbol)) + " `" + name + "`", span, scope);
  if (!bound) return Value::error();
  Recipe called{&symbol, true, std::move(*bound), span};
  return is_module ? Value::recipe(std::move(called)) : Value::encoding(std::move(called));
}

// ---- fns ------------------------------------------------------------------------------------------------------------

Value Expressions::call_closure(const Closure& function, std::span<const Argument> arguments, source::Span span) {
  const std::string name = function.name.empty() ? "fn" : function.name;
  std::vector<ParamSpec> params;
  for (const ast::Name& param : *function.params) params.push_back({param.text, true, param.span});
  std::vector<const Argument*> arranged;
  if (!arrange(params, arguments, "the fn `" + name + "`", span, arranged)) return Value::error();
  if (st_.calls.size() >= ev_.limits_.call_depth) {
    if (!st_.exhausted) {
      st_.exhausted = true;
      fail(diag::code::too_much_work, span, "fns call each other more than " + std::to_string(ev_.limits_.call_depth) + " deep here")
          .help("`" + name + "` seems to call itself without end");
    }
    return Value::error();
  }

  Environment env = function.environment;
  const bool first = st_.checked_params.insert(function.params).second;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const ast::Name& param = (*function.params)[i];
    if (first) check_new_name(param, env);
    env.define(param.text, parameter(param.text, arranged[i]->value), param.span);
  }
  st_.calls.push_back({name, span});
  if (st_.tensors != nullptr) st_.tensors->enter_function(function, span);
  Value result;
  if (function.value != nullptr) {
    result = eval(*function.value, env);
  } else {
    st_.frames.emplace_back();
    const auto returned = run(*function.block, env);
    st_.frames.pop_back();
    if (returned) result = *returned;
  }
  if (st_.tensors != nullptr) st_.tensors->leave_function();
  st_.calls.pop_back();
  // The body was looked at for mistakes of its own.
  const bool failed = std::any_of(arguments.begin(), arguments.end(), [](const Argument& a) { return a.value.is_error(); });
  return failed ? Value::error() : result;
}

// ---- arguments ------------------------------------------------------------------------------------------------------

namespace {

// Labels the declaration of a parameter that a file declares.
void declared_at(diag::Builder& message, const Expressions::ParamSpec& param, std::string text) {
  if (param.declared.valid()) message.label(param.declared, std::move(text));
}

}  // namespace

bool Expressions::arrange(std::span<const ParamSpec> params, std::span<const Argument> arguments, std::string_view owner, source::Span span,
                          std::vector<const Argument*>& arranged) {
  arranged.assign(params.size(), nullptr);
  bool fits = true;
  std::size_t positional = 0;
  bool named_seen = false;
  for (const Argument& argument : arguments) {
    std::size_t index = 0;
    if (argument.name.empty()) {
      if (named_seen) {
        fail(diag::code::wrong_arguments, argument.span, "a positional argument stands before those with a name");
        fits = false;
        continue;
      }
      index = positional++;
      if (index >= params.size()) {
        if (index == params.size()) {
          auto message = fail(diag::code::wrong_arguments, argument.span,
                              std::string(owner) + " takes " + counted(params.size(), "argument") + ", not more");
          if (!params.empty()) declared_at(message, params.back(), "the last one");
        }
        fits = false;
        continue;
      }
    } else {
      named_seen = true;
      const auto it = std::find_if(params.begin(), params.end(), [&](const ParamSpec& p) { return p.name == argument.name; });
      if (it == params.end()) {
        std::vector<std::string> names;
        for (const ParamSpec& param : params) names.emplace_back(param.name);
        auto message = fail(diag::code::wrong_arguments, argument.name_span,
                            std::string(owner) + " has no parameter `" + std::string(argument.name) + "`");
        const auto near = diag::nearest(argument.name, names);
        message.help(near ? "did you mean `" + *near + "`?" : habit_of_argument(argument.name));
        if (!names.empty()) message.note("it has " + listed(names, 12));
        for (const ParamSpec& param : params)
          if (near && param.name == *near) declared_at(message, param, "`" + *near + "` is declared here");
        fits = false;
        continue;
      }
      index = static_cast<std::size_t>(it - params.begin());
    }
    if (arranged[index] != nullptr) {
      fail(diag::code::wrong_arguments, argument.name.empty() ? argument.span : argument.name_span,
           "`" + std::string(params[index].name) + "` is given twice")
          .label(arranged[index]->span, "here first");
      fits = false;
      continue;
    }
    arranged[index] = &argument;
  }
  std::vector<std::string> missing;
  std::vector<const ParamSpec*> unfilled;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const auto twin = std::find_if(params.begin(), params.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const ParamSpec& p) { return p.name == params[i].name; });
    if (arranged[i] == nullptr && twin != params.begin() + static_cast<std::ptrdiff_t>(i)) {
      fits = false;  // a parameter declared twice, which is said of the declaration
      continue;
    }
    if (arranged[i] != nullptr || !params[i].required) continue;
    missing.push_back("`" + std::string(params[i].name) + "`");
    unfilled.push_back(&params[i]);
  }
  if (!missing.empty() && fits) {
    auto message = fail(diag::code::wrong_arguments, span, std::string(owner) + " lacks " + listed(missing, 12) + " here");
    constexpr std::size_t most_shown = 2;
    for (std::size_t i = 0; i < std::min(unfilled.size(), most_shown); ++i)
      declared_at(message, *unfilled[i], missing[i] + " is declared here");
    // What no file declares is shown whole.
    if (!unfilled.front()->declared.valid()) {
      std::string takes;
      for (const ParamSpec& param : params) takes += (takes.empty() ? "" : ", ") + std::string(param.name) + (param.required ? "" : "?");
      message.note("it takes " + takes);
    }
    fits = false;
  }
  return fits;
}

std::optional<std::vector<std::pair<std::string, Value>>> Expressions::bind(const std::vector<ast::Param>& params,
                                                                            std::span<const Argument> arguments, std::string_view owner,
                                                                            source::Span span, Environment& scope) {
  std::vector<ParamSpec> specs;
  for (const ast::Param& param : params) specs.push_back({param.name.text, param.default_value == nullptr, param.name.span});
  std::vector<const Argument*> arranged;
  if (!arrange(specs, arguments, owner, span, arranged)) return std::nullopt;

  std::vector<std::pair<std::string, Value>> bound;
  bool failed = false;
  const bool first = st_.checked_params.insert(&params).second;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const ast::Param& param = params[i];
    if (first) check_new_name(param.name, scope);
    const Argument* given = arranged[i];
    Value value = given != nullptr ? given->value : eval(*param.default_value, scope);
    const source::Span use = given != nullptr ? given->span : param.default_value->span;
    if (!value.is_error()) {
      value = conform(value, *param.type, scope, "the argument `" + param.name.text + "` of " + std::string(owner), use);
    }
    // What a default gives has the parameter's name; what is given keeps its own.
    value = given != nullptr ? parameter(param.name.text, value) : named(param.name.text, value);
    failed = failed || value.is_error();
    scope.define(param.name.text, value, param.name.span);
    bound.emplace_back(param.name.text, std::move(value));
  }
  if (failed) return std::nullopt;
  return bound;
}

}  // namespace modelc::sema

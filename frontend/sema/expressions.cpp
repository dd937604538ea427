#include "frontend/sema/expressions.h"

#include <algorithm>
#include <numbers>

#include "frontend/sema/habits.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

// ---- messages -------------------------------------------------------------------------------------------------------

diag::Builder Expressions::fail(const diag::Code& code, source::Span span, std::string message) {
  diag::Builder builder = ev_.sink().error(code, span, std::move(message));
  // The innermost calls tell how the place was reached; more would be noise.
  constexpr std::size_t shown = 3;
  for (std::size_t i = 0; i < st_.calls.size() && i < shown; ++i) {
    const auto& call = st_.calls[st_.calls.size() - 1 - i];
    builder.label(call.span, "in this call of `" + call.name + "`");
  }
  for (auto it = st_.reasons.rbegin(); it != st_.reasons.rend(); ++it) builder.note(*it);
  return builder;
}

diag::Builder Expressions::fail(const diag::Code& code, source::Span span, std::string message,
                                std::initializer_list<const Value*> origins_of) {
  std::vector<std::string> lines;
  for (const Value* value : origins_of) {
    for (std::string& line : formula_origins(value->formula())) {
      if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
    }
  }
  diag::Builder builder = fail(code, span, std::move(message));
  for (std::string& line : lines) builder.note(std::move(line));
  return builder;
}

std::string explained(const Value& value) {
  const FormulaPtr& f = value.formula();
  return f && f->kind != Formula::Kind::constant ? "`" + formula_text(f) + "` = " + show(value) : show(value);
}

std::string Expressions::text(source::Span span) const {
  std::string out;
  bool blank = false;
  for (const char c : ev_.sources().text(span)) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      blank = !out.empty();
      continue;
    }
    if (blank) out += ' ';
    blank = false;
    out += c;
  }
  return out;
}

bool Expressions::unusable(const Value& value, source::Span span) {
  switch (value.kind()) {
    case ValueKind::error: return true;
    case ValueKind::none:
      fail(diag::code::none_used, span, "`" + text(span) + "` is none here", {&value})
          .help("say what to use instead with `??`, or guard it with `is not none`");
      return true;
    case ValueKind::absent: {
      const AbsentMember& member = value.as_absent();
      fail(diag::code::absent_used, span,
           "`" + member.name + "` is absent here" + (member.reason.empty() ? std::string() : ": " + member.reason))
          .label(member.where, "declared here")
          .help(
              "use it only where its condition holds; an absent param may be passed where an operation takes an "
              "optional");
      return true;
    }
    default: return false;
  }
}

bool Expressions::have_tensors(source::Span span, std::string_view what) {
  if (st_.tensors != nullptr) return true;
  fail(diag::code::needs_tensors, span, std::string(what) + " works on tensors, and there are none here")
      .help("tensors are in `forward`, in an `entry`, in `const`, and in the fns that these call");
  return false;
}

bool Expressions::spend(source::Span span) {
  if (st_.exhausted) return false;
  if (++st_.steps > ev_.limits_.steps) {
    st_.exhausted = true;
    fail(diag::code::too_much_work, span,
         "more than " + grouped(std::uint64_t{ev_.limits_.steps}) + " expressions are evaluated for this model")
        .help("look for a size in the configuration that is far too large, or for a fn that calls itself");
    return false;
  }
  if (st_.nesting >= max_nesting_of_evaluation) {
    st_.exhausted = true;
    fail(diag::code::too_much_work, span, "expressions and fns are nested too deep here")
        .help("a fn that calls itself without end is the usual reason");
    return false;
  }
  return true;
}

// ---- expressions ----------------------------------------------------------------------------------------------------

Value Expressions::eval(const ast::Expr& expr, const Environment& env) {
  if (!spend(expr.span)) return Value::error();
  ++st_.nesting;
  Value value = eval_kind(expr, env);
  --st_.nesting;
  return value;
}

Value Expressions::eval_kind(const ast::Expr& expr, const Environment& env) {
  switch (expr.kind) {
    case ast::ExprKind::literal: return literal(ast::as<ast::LiteralExpr>(expr).value);
    case ast::ExprKind::name: return name(ast::as<ast::NameExpr>(expr).name, env);
    case ast::ExprKind::tuple: {
      std::vector<Value> items;
      bool failed = false;
      for (const auto& item : ast::as<ast::TupleExpr>(expr).items) {
        items.push_back(eval(*item, env));
        failed = failed || items.back().is_error();
      }
      return failed ? Value::error() : Value::tuple(std::move(items));
    }
    case ast::ExprKind::unary: {
      const auto& e = ast::as<ast::UnaryExpr>(expr);
      return unary(e.op, eval(*e.operand, env), e.operand->span);
    }
    case ast::ExprKind::binary: {
      const auto& e = ast::as<ast::BinaryExpr>(expr);
      if (e.op == ast::BinaryOp::and_ || e.op == ast::BinaryOp::or_) return eval_logical(e, env);
      if (e.op == ast::BinaryOp::coalesce) return eval_coalesce(e, env);
      const Value left = eval(*e.left, env);
      const Value right = eval(*e.right, env);
      return binary(e.op, left, right, e);
    }
    case ast::ExprKind::cast: return eval_cast(ast::as<ast::CastExpr>(expr), env);
    case ast::ExprKind::is: return eval_is(ast::as<ast::IsExpr>(expr), env);
    case ast::ExprKind::conditional: return eval_conditional(ast::as<ast::ConditionalExpr>(expr), env);
    case ast::ExprKind::function: {
      const auto& e = ast::as<ast::FunctionExpr>(expr);
      return Value::closure(Closure{"", &e.params, e.body.get(), nullptr, env, e.span});
    }
    case ast::ExprKind::call: return eval_call(ast::as<ast::CallExpr>(expr), env);
    case ast::ExprKind::member: {
      const auto& e = ast::as<ast::MemberExpr>(expr);
      return field(eval(*e.object, env), e.name, e.object->span);
    }
    case ast::ExprKind::index: return eval_index(ast::as<ast::IndexExpr>(expr), env);
    case ast::ExprKind::list: return eval_list(ast::as<ast::ListExpr>(expr), env);
    case ast::ExprKind::comprehension: return eval_comprehension(ast::as<ast::ComprehensionExpr>(expr), env);
    case ast::ExprKind::match: return eval_match(ast::as<ast::MatchExpr>(expr), env);
  }
  return Value::error();
}

Value Expressions::literal(const ast::Literal& literal) {
  switch (literal.kind) {
    case ast::LiteralKind::string: return Value::string(literal.text);
    case ast::LiteralKind::integer: return Value::integer(literal.integer);
    case ast::LiteralKind::floating: return Value::real(literal.floating);
    case ast::LiteralKind::boolean: return Value::boolean(literal.boolean);
    case ast::LiteralKind::none: return Value::none();
  }
  return Value::error();
}

Value Expressions::eval_list(const ast::ListExpr& expr, const Environment& env) {
  std::vector<Value> items;
  bool failed = false;
  for (const auto& item : expr.items) {
    items.push_back(eval(*item, env));
    failed = failed || items.back().is_error();
  }
  return failed ? Value::error() : Value::list(std::move(items));
}

std::optional<bool> Expressions::condition(const ast::Expr& expr, const Environment& env) {
  const Value value = eval(expr, env);
  if (value.is(ValueKind::boolean)) return value.as_bool();
  if (unusable(value, expr.span)) return std::nullopt;
  auto message = fail(diag::code::bad_condition, expr.span, "a condition is a bool that is known early, not " + kind_name(value), {&value});
  if (value.is(ValueKind::tensor)) message.help("to choose element by element, write `where(condition, a, b)`");
  if (value.is_number()) message.help("compare it with something, as in `" + text(expr.span) + " != 0`");
  return std::nullopt;
}

Value Expressions::eval_conditional(const ast::ConditionalExpr& expr, const Environment& env) {
  const auto chosen = condition(*expr.condition, env);
  if (!chosen) return Value::error();
  ev_.touch(*chosen ? *expr.otherwise : *expr.value, env);
  return eval(*chosen ? *expr.value : *expr.otherwise, env);
}

Value Expressions::eval_logical(const ast::BinaryExpr& expr, const Environment& env) {
  const bool is_and = expr.op == ast::BinaryOp::and_;
  const Value left = eval(*expr.left, env);
  if (unusable(left, expr.left->span)) {
    ev_.touch(*expr.right, env);
    return Value::error();
  }
  if (left.is(ValueKind::boolean) && left.as_bool() != is_and) {
    ev_.touch(*expr.right, env);
    return left;
  }
  const Value right = eval(*expr.right, env);
  return binary(expr.op, left, right, expr);
}

Value Expressions::eval_coalesce(const ast::BinaryExpr& expr, const Environment& env) {
  const Value left = eval(*expr.left, env);
  if (left.is_none()) return eval(*expr.right, env);
  ev_.touch(*expr.right, env);
  if (left.is(ValueKind::absent) && unusable(left, expr.left->span)) return Value::error();
  return left;
}

// ---- names ----------------------------------------------------------------------------------------------------------

Value Expressions::of_symbol(const Symbol& symbol, source::Span use) {
  switch (symbol.kind) {
    case SymbolKind::module: {
      // A module without a list of parameters is its own recipe.
      Recipe recipe{&symbol, !ast::as<ast::ModuleDecl>(*symbol.decl).has_params, {}, use};
      return Value::recipe(std::move(recipe));
    }
    case SymbolKind::encoding: {
      Recipe recipe{&symbol, !ast::as<ast::EncodingDecl>(*symbol.decl).has_params, {}, use};
      return Value::encoding(std::move(recipe));
    }
    case SymbolKind::function: {
      const auto& decl = ast::as<ast::FunctionDecl>(*symbol.decl);
      return Value::closure(
          Closure{symbol.name, &decl.params, decl.value.get(), decl.block ? &*decl.block : nullptr, Environment(symbol.file), symbol.span});
    }
    case SymbolKind::interface: return Value::interface(&symbol);
    case SymbolKind::op: return Value::op(&symbol);
    case SymbolKind::axis: return ev_.axis(symbol);
    case SymbolKind::config:
    case SymbolKind::variant:
      fail(diag::code::not_a_value, use, "`" + symbol.name + "` is a " + std::string(word(symbol)) + ", not a value")
          .label(symbol.span, "declared here")
          .help("it stands where a type is asked, as in `c: " + symbol.name + "`");
      return Value::error();
  }
  return Value::error();
}

Value Expressions::name(const ast::Name& name, const Environment& env) {
  if (auto found = env.lookup(name.text, name.span)) return std::move(*found);
  if (env.file() != nullptr) {
    bool failed = false;
    if (const Symbol* symbol = resolve(*env.file(), name.text, name.span, ev_.sink(), failed)) { return of_symbol(*symbol, name.span); }
    if (failed) return Value::error();
    if (const FileSymbols* files = find_symbol(*env.file(), name.text).alias) return Value::files(files);
  }
  if (is_prelude_axis(name.text)) { return Value::dim(ev_.dims(), ev_.dims().of_axis(*ev_.dims().find_axis(name.text))); }
  if (const Builtin* builtin = find_builtin(name.text)) return Value::builtin(builtin);
  if (name.text == "pi") return Value::real(std::numbers::pi, named_formula("pi", shortest(std::numbers::pi), ""));
  if (name.text == "plain") return Value::encoding(Recipe{nullptr, true, {}, name.span});
  if (is_state_kind(name.text)) {
    fail(diag::code::not_a_value, name.span, "`" + name.text + "` is a kind of state, not a value")
        .help("it stands after a state's name, as in `state cache: " + name.text + "(…)`");
    return Value::error();
  }
  if (is_type_word(name.text)) {
    auto message = fail(diag::code::not_a_value, name.span, "`" + name.text + "` is a type, not a value");
    if (dtype_from_name(name.text)) message.help("a tensor takes an element type by `x as " + name.text + "`");
    return Value::error();
  }
  ev_.report_unknown_name(name, env);
  return Value::error();
}

Value Expressions::field(const Value& object, const ast::Name& name, source::Span object_span) {
  if (unusable(object, object_span)) return Value::error();
  switch (object.kind()) {
    case ValueKind::config: {
      const ConfigInstance& instance = object.as_config();
      if (const ConfigField* found = instance.find(name.text)) {
        instance.mark_read(name.text);
        return found->value;
      }
      for (const FunctionDef& function : instance.definition->functions) {
        if (function.name != name.text) continue;
        const ast::FunctionDecl& decl = *function.item;
        return Value::closure(Closure{function.name, &decl.params, decl.value.get(), decl.block ? &*decl.block : nullptr,
                                      Environment(function.file).with(ev_.scope_of(instance)), decl.name.span});
      }
      std::vector<std::string> names;
      ev_.scope_of(instance).names(names);
      const std::string near = diag::did_you_mean(name.text, names);
      auto message = fail(diag::code::unknown_field, name.span, instance.definition->name + " has no field `" + name.text + "`");
      message.label(instance.definition->span, "declared here").help(near);
      if (near.empty() && !names.empty()) message.note("it has " + listed(names, 12));
      return Value::error();
    }
    case ValueKind::variant: {
      const VariantInstance& variant = object.as_variant();
      if (const ConfigField* found = variant.fields->find(name.text)) {
        variant.fields->mark_read(name.text);
        return found->value;
      }
      std::vector<std::string> owners, names;
      for (const VariantDef::Case& other : variant.definition->cases) {
        if (other.fields->field(name.text) != nullptr) owners.push_back(modelc::quote(other.decl->tags.front().value));
      }
      for (const ConfigField& f : variant.fields->fields) names.push_back(f.name);
      auto message =
          fail(diag::code::unknown_field, name.span,
               "the case " + modelc::quote(variant.tag) + " of " + variant.definition->symbol->name + " has no field `" + name.text + "`");
      if (owners.empty()) {
        message.help(diag::did_you_mean(name.text, names));
      } else {
        message.note("it is a field of " + listed(owners))
            .help("read it under `match`, or behind `" + text(object_span) + " is " + owners.front() + "`");
      }
      return Value::error();
    }
    case ValueKind::files: {
      if (const Symbol* symbol = object.as_files().own(name.text)) return of_symbol(*symbol, name.span);
      std::vector<std::string> names;
      for (const auto& [own, symbol] : object.as_files().declared) names.push_back(own);
      fail(diag::code::unknown_name, name.span, object.as_files().name + " declares no `" + name.text + "`")
          .help(diag::did_you_mean(name.text, names));
      return Value::error();
    }
    case ValueKind::batch:
    case ValueKind::member:
      if (!have_tensors(name.span, "`." + name.text + "`")) return Value::error();
      return st_.tensors->field(object, name);
    default: {
      auto message = fail(diag::code::unknown_field, name.span, kind_name(object) + " has no fields, so none named `" + name.text + "`");
      if (object.is(ValueKind::map)) {
        message.help("entries of a map are read by their key: `" + text(object_span) + "[\"" + name.text + "\"]`");
      }
      if (object.is(ValueKind::tensor)) message.help(habit_of_method(name.text, text(object_span)));
      if (object.is(ValueKind::recipe)) message.help("members belong to the child that is declared with the recipe");
      return Value::error();
    }
  }
}

Value Expressions::named(const std::string& name, const Value& value) {
  if (!value.is_number()) return value;
  const FormulaPtr& f = value.formula();
  if (f && f->kind == Formula::Kind::named && f->text == name) return value;
  return value.with_formula(named_formula(name, show(value), "", f));
}

Value Expressions::parameter(const std::string& name, const Value& value) { return value.formula() ? value : named(name, value); }

void Expressions::check_new_name(const ast::Name& name, const Environment& env) {
  if (const auto before = env.declared(name.text)) {
    fail(diag::code::duplicate_name, name.span, "`" + name.text + "` is already a name here")
        .label(*before, "this one")
        .help("parameters, members and locals of a module share one name space: choose another name");
    return;
  }
  const Symbol* symbol = env.file() != nullptr ? find_symbol(*env.file(), name.text).symbol : nullptr;
  if (is_prelude_axis(name.text) || (symbol != nullptr && symbol->kind == SymbolKind::axis)) {
    fail(diag::code::duplicate_name, name.span, "`" + name.text + "` is a run-time axis").help("choose another name");
  }
}

// ---- sizes ----------------------------------------------------------------------------------------------------------

Value Expressions::size(const ast::Expr& expr, const Environment& env, std::string_view what) {
  const Value value = eval(expr, env);
  if (unusable(value, expr.span)) return Value::error();
  if (value.is(ValueKind::dim)) return value;
  if (!value.is(ValueKind::integer)) {
    fail(diag::code::wrong_operand, expr.span, std::string(what) + " is a whole number, not " + kind_name(value), {&value});
    return Value::error();
  }
  if (value.as_int() < 1) {
    fail(diag::code::wrong_operand, expr.span, std::string(what) + " is at least 1: found " + show_formula(value), {&value})
        .help(value.as_int() == -1 ? "no size is found out: write it, or its formula" : "");
    return Value::error();
  }
  return value;
}

std::vector<ShapeAxis> Expressions::shape(const ast::Shape& shape, const Environment& env) {
  std::vector<ShapeAxis> axes;
  for (const ast::Axis& axis : shape.axes) {
    axes.push_back({axis.ellipsis, axis.ellipsis ? Value::none() : size(*axis.size, env, "a size"), axis.span});
  }
  return axes;
}

}  // namespace modelc::sema

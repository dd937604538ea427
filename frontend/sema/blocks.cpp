// Statements: of forward bodies and of fns.
#include <algorithm>

#include "frontend/sema/expressions.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace {

// The names that a block assigns, inner loops included, each once in the order of the text.
void assigned_names(const ast::Block& block, std::vector<const ast::Name*>& names) {
  for (const ast::StatementPtr& statement : block.statements) {
    if (const auto* assign = ast::try_as<ast::AssignStatement>(*statement)) {
      const bool known = std::any_of(names.begin(), names.end(), [&](const ast::Name* n) { return n->text == assign->name.text; });
      if (!known) names.push_back(&assign->name);
    }
    if (const auto* loop = ast::try_as<ast::ForStatement>(*statement)) assigned_names(loop->body, names);
  }
}

}  // namespace

// The value returned, none without a `return`; nothing when a statement failed. All statements are looked at, so that
// several mistakes are said in one run.
std::optional<Value> Expressions::run(const ast::Block& block, Environment& env) {
  std::optional<Value> result;
  bool good = true;
  for (const ast::StatementPtr& item : block.statements) {
    if (result) {
      fail(diag::code::bad_statement, item->span, "nothing stands behind `return`");
      return std::nullopt;
    }
    good = statement(*item, env, result) && good;
    if (st_.exhausted) return std::nullopt;
  }
  if (!good || (result && result->is_error())) return std::nullopt;
  return result ? *result : Value::none();
}

bool Expressions::statement(const ast::Statement& statement, Environment& env, std::optional<Value>& result) {
  switch (statement.kind) {
    case ast::StatementKind::let: return let_statement(ast::as<ast::LetStatement>(statement), env);
    case ast::StatementKind::for_: return for_statement(ast::as<ast::ForStatement>(statement), env);
    case ast::StatementKind::assign: return assign_statement(ast::as<ast::AssignStatement>(statement), env);
    case ast::StatementKind::call: return call_statement(ast::as<ast::CallStatement>(statement), env);
    case ast::StatementKind::return_: {
      if (st_.frames.back().in_loop) {
        fail(diag::code::bad_statement, statement.span, "`return` cannot stand in a `for`")
            .help("assign the value to a name that a `let` made before the loop, and return it after the loop");
        return false;
      }
      const auto& values = ast::as<ast::ReturnStatement>(statement).values;
      std::vector<Value> items;
      for (const auto& value : values) {
        items.push_back(eval(*value, env));
        if (items.back().is_error()) result = Value::error();
      }
      if (!result) result = items.size() == 1 ? items.front() : Value::tuple(std::move(items));
      return true;
    }
  }
  return false;
}

bool Expressions::let_statement(const ast::LetStatement& statement, Environment& env) {
  Value value = eval(*statement.value, env);
  std::vector<Value> parts(statement.names.size(), Value::error());
  if (statement.names.size() == 1) {
    parts[0] = value;
  } else if (!value.is_error()) {
    const bool several = value.is(ValueKind::tuple) || value.is(ValueKind::list);
    const std::size_t count = several ? value.items().size() : 1;
    if (several && count == parts.size()) {
      parts = value.items();
    } else {
      fail(diag::code::unpack_count, statement.value->span,
           "this gives " + (several ? counted(count, "result") : kind_name(value)) + ", and " + counted(parts.size(), "name") + " take it")
          .label(source::join(statement.names.front().span, statement.names.back().span), "these");
      value = Value::error();
    }
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ast::Name& name = statement.names[i];
    check_new_name(name, env);
    Value part = named(name.text, parts[i]);
    if (part.is(ValueKind::tensor) && st_.tensors != nullptr) st_.tensors->named(part, name);
    env.define(name.text, std::move(part), name.span);
    st_.frames.back().lets.insert(name.text);
  }
  return !value.is_error();
}

bool Expressions::for_statement(const ast::ForStatement& statement, Environment& env) {
  const Value list = eval(*statement.source, env);
  check_new_name(statement.variable, env);
  if (unusable(list, statement.source->span)) return false;
  if (!list.is(ValueKind::member)) {
    fail(diag::code::bad_statement, statement.source->span, "`for` goes over a list of children, not " + kind_name(list))
        .help("values are mapped with `[f(x) for x in list]`");
    return false;
  }
  if (!have_tensors(statement.span, "`for`")) return false;

  std::vector<const ast::Name*> names;
  assigned_names(statement.body, names);
  std::vector<TensorContext::Carried> carried;
  bool good = true;
  for (const ast::Name* name : names) {
    if (!st_.frames.back().lets.contains(name->text)) continue;  // reported where it is assigned
    const Value before = *env.lookup(name->text, name->span);
    good = good && !before.is_error();
    carried.push_back({name->text, before, *env.declared(name->text)});
  }
  if (!good) return false;

  const auto body = [&](const Value& element, std::span<const Value> values) -> std::optional<std::vector<Value>> {
    Environment inner = env;
    for (std::size_t i = 0; i < carried.size(); ++i) inner.define(carried[i].name, values[i], carried[i].span);
    inner.define(statement.variable.text, element, statement.variable.span);
    Evaluator::State::Frame frame = st_.frames.back();
    frame.assignable = frame.lets;
    frame.in_loop = true;
    st_.frames.push_back(std::move(frame));
    const auto result = run(statement.body, inner);
    st_.frames.pop_back();
    if (!result) return std::nullopt;
    std::vector<Value> after;
    for (const auto& c : carried) {
      after.push_back(*inner.lookup(c.name, c.span));
      if (after.back().is_error()) return std::nullopt;
    }
    return after;
  };
  const auto after = st_.tensors->fold(list, statement, carried, body);
  for (std::size_t i = 0; i < carried.size(); ++i) { env.define(carried[i].name, after ? (*after)[i] : Value::error(), carried[i].span); }
  return after.has_value();
}

void Expressions::fail_made_without_let(const ast::Name& name) {
  fail(diag::code::bad_assignment, name.span, "a name is made with `let`").help("write `let " + name.text + " = …`");
}

bool Expressions::assign_statement(const ast::AssignStatement& statement, Environment& env) {
  const Value value = eval(*statement.value, env);
  const auto& frame = st_.frames.back();
  const std::string& name = statement.name.text;
  if (!frame.in_loop || !frame.assignable.contains(name)) {
    const auto declared = env.declared(name);
    if (declared && value.is_error()) {
      // What is wrong with the value is said, and may be why it is assigned here: `h = layers(h, at)`.
    } else if (!declared && !frame.in_loop) {
      fail_made_without_let(statement.name);
    } else if (!declared) {
      ev_.report_unknown_name(statement.name, env);
    } else if (!env.is_local(name) || !env.lookup(name, statement.name.span)->is_error()) {
      fail(diag::code::bad_assignment, statement.name.span,
           frame.in_loop ? "`" + name + "` was not made by a `let` before the loop" : "`" + name + "` is assigned outside of a `for`")
          .label(*declared, "made here")
          .help(frame.in_loop ? "a loop assigns what a `let` of this function made before it"
                              : "give the new value a name of its own with `let`");
    }
    // Said once: what uses the name further on is silent.
    if (!declared) env.define(name, Value::error(), statement.name.span);
    return false;
  }
  if (value.is_error()) {
    env.define(name, value, *env.declared(name));
    return false;
  }
  if (value.is(ValueKind::tensor) && st_.tensors != nullptr) st_.tensors->named(value, statement.name);
  env.define(name, value, *env.declared(name));
  return true;
}

bool Expressions::call_statement(const ast::CallStatement& statement, Environment& env) {
  const auto& parts = statement.path.parts;
  Value object = name(parts.front(), env);
  source::Span span = parts.front().span;
  for (std::size_t i = 1; i + 1 < parts.size(); ++i) {
    object = field(object, parts[i], span);
    span = source::join(parts.front().span, parts[i].span);
  }
  const std::vector<Argument> args = arguments(statement.args, env);
  const bool failed = std::any_of(args.begin(), args.end(), [](const Argument& a) { return a.value.is_error(); });
  if (object.is_error() || failed) return false;
  Value result;
  if (parts.size() > 1 && object.is(ValueKind::member)) {
    if (!have_tensors(statement.span, "`" + parts.back().text + "`")) return false;
    result = st_.tensors->call_member(object, parts.back().text, args, statement.span);
  } else {
    const Value callee = parts.size() == 1 ? object : field(object, parts.back(), span);
    result = call_value(callee, args, statement.path.span, statement.span);
  }
  if (result.is_error()) return false;
  if (!result.is_none()) {
    fail(diag::code::bad_statement, statement.span, "the result of this call is not used: " + kind_name(result))
        .help("give it a name with `let`, return it, or leave the call out");
    return false;
  }
  return true;
}

}  // namespace modelc::sema

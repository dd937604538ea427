#include "frontend/sema/evaluator.h"

#include <algorithm>
#include <cassert>
#include <iterator>

#include "frontend/sema/expressions.h"
#include "frontend/sema/habits.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

Evaluator::Evaluator(source::SourceManager& sources, graph::DimTable& dims, diag::Sink& sink, EvaluatorLimits limits)
    : sources_(sources),
      dims_(dims),
      sink_(sink),
      limits_(limits),
      config_defs_(std::make_unique<ConfigDefs>(*this)),
      state_(std::make_unique<State>()) {
  for (const std::string_view name : prelude_axes) {
    if (!dims_.find_axis(name)) dims_.add_axis({std::string(name), 1, std::nullopt, 1});
  }
}

Evaluator::~Evaluator() = default;

TensorContext* Evaluator::set_tensors(TensorContext* tensors) { return std::exchange(state_->tensors, tensors); }
InterfaceChecker* Evaluator::set_interfaces(InterfaceChecker* interfaces) { return std::exchange(state_->interfaces, interfaces); }
TensorContext* Evaluator::tensors() const { return state_->tensors; }
InterfaceChecker* Evaluator::interfaces() const { return state_->interfaces; }

// ---- expressions ----------------------------------------------------------------------------------------------------

Value Evaluator::eval(const ast::Expr& expr, const Environment& env) { return Expressions(*this).eval(expr, env); }
Value Evaluator::lookup(const ast::Name& name, const Environment& env) { return Expressions(*this).name(name, env); }
Value Evaluator::field(const Value& object, const ast::Name& name, source::Span object_span) {
  return Expressions(*this).field(object, name, object_span);
}
Value Evaluator::call(const Value& callee, std::span<const Argument> arguments, source::Span callee_span, source::Span span) {
  return Expressions(*this).call_value(callee, arguments, callee_span, span);
}
std::optional<bool> Evaluator::condition(const ast::Expr& expr, const Environment& env) { return Expressions(*this).condition(expr, env); }
Value Evaluator::size(const ast::Expr& expr, const Environment& env, std::string_view what) {
  return Expressions(*this).size(expr, env, what);
}
std::vector<ShapeAxis> Evaluator::shape(const ast::Shape& shape, const Environment& env) { return Expressions(*this).shape(shape, env); }
std::vector<Argument> Evaluator::arguments(const ast::Args& args, const Environment& env) {
  return Expressions(*this).arguments(args, env);
}

Value Evaluator::axis(const Symbol& symbol) {
  Expressions ex(*this);
  const auto& decl = ast::as<ast::AxisDecl>(*symbol.decl);
  const Environment env(symbol.file);
  std::int64_t lo = 1, by = 1;
  std::optional<std::int64_t> hi;
  const auto number = [&](const ast::Expr& expr, std::string_view what) -> std::optional<std::int64_t> {
    const Value value = ex.size(expr, env, what);
    if (value.is(ValueKind::integer)) return value.as_int();
    if (!value.is_error()) { ex.fail(diag::code::bad_axis, expr.span, std::string(what) + " is a number, not a size of run time"); }
    return std::nullopt;
  };
  const auto low = number(*decl.range.low, "the smallest size of an axis");
  if (!low) return Value::error();
  lo = *low;
  if (decl.range.high) {
    hi = number(*decl.range.high, "the largest size of an axis");
    if (!hi) return Value::error();
    if (*hi < lo) {
      ex.fail(diag::code::bad_axis, decl.range.span,
              "the axis `" + symbol.name + "` has its largest size, " + std::to_string(*hi) + ", below its smallest");
      return Value::error();
    }
  }
  if (decl.step) {
    const auto step = number(*decl.step, "the step of an axis");
    if (!step) return Value::error();
    by = *step;
  }
  if (const auto known = dims_.find_axis(symbol.name)) {
    const graph::Axis& other = dims_.axis(*known);
    if (is_prelude_axis(symbol.name) || other.lo != lo || other.hi != hi || other.by != by) {
      ex.fail(diag::code::bad_axis, symbol.span, "another axis is called `" + symbol.name + "`").help("give this one another name");
      return Value::error();
    }
    return Value::dim(dims_, dims_.of_axis(*known));
  }
  return Value::dim(dims_, dims_.of_axis(dims_.add_axis({symbol.name, lo, hi, by})));
}

void Evaluator::report_unknown_name(const ast::Name& name, const Environment& env) {
  std::vector<std::string> names;
  env.names(names);
  if (env.file() != nullptr) symbol_names(*env.file(), names);
  prelude_names(names);
  names.insert(names.end(), {"KVCache", "LatentCache", "CrossCache", "Ring", "Recurrent"});
  // Words of Python are near to nothing here.
  std::string help = habit_of_name(name.text);
  if (help.empty()) help = import_of(name.text);
  if (help.empty()) help = diag::did_you_mean(name.text, names);
  Expressions(*this).fail(diag::code::unknown_name, name.span, "no name `" + name.text + "` is known here").help(help);
}

std::string Evaluator::import_of(const std::string& name) const {
  if (!finder_) return {};
  const auto known = imports_of_.find(name);
  const std::string path = known != imports_of_.end() ? known->second : imports_of_[name] = finder_(name);
  return path.empty() ? std::string() : "`" + name + "` is declared in `" + path + "`: write `import " + path + "`";
}

// ---- functions and parameters ---------------------------------------------------------------------------------------

Value Evaluator::call(const Closure& function, std::span<const Argument> arguments, source::Span span) {
  return Expressions(*this).call_closure(function, arguments, span);
}

Value Evaluator::run(const ast::Block& block, Environment& env) {
  state_->frames.emplace_back();
  auto result = Expressions(*this).run(block, env);
  state_->frames.pop_back();
  return result ? std::move(*result) : Value::error();
}

std::optional<std::vector<std::pair<std::string, Value>>> Evaluator::bind(const std::vector<ast::Param>& params,
                                                                          std::span<const Argument> arguments, std::string_view owner,
                                                                          source::Span span, Environment& scope) {
  return Expressions(*this).bind(params, arguments, owner, span, scope);
}

Value Evaluator::conform(const Value& value, const ast::Type& type, const Environment& env, std::string_view what, source::Span use) {
  return Expressions(*this).conform(value, type, env, what, use);
}

Environment Evaluator::module_scope(const Recipe& recipe) const {
  Environment env(recipe.symbol->file);
  const auto& params = recipe.module().params;
  for (std::size_t i = 0; i < recipe.arguments.size(); ++i) {
    const auto& [name, value] = recipe.arguments[i];
    env.define(name, value, params[i].name.span);
  }
  return env;
}

bool Evaluator::require(const ast::RequireItem& item, const Environment& env, std::string_view owner) {
  Expressions ex(*this);
  const Value value = ex.eval(*item.condition, env);
  if (!value.is(ValueKind::boolean)) {
    if (!ex.unusable(value, item.condition->span)) {
      ex.fail(diag::code::bad_condition, item.condition->span, "`require` takes a bool, not " + kind_name(value), {&value});
    }
    return false;
  }
  if (value.as_bool()) return true;
  const std::string condition = ex.text(item.condition->span);
  const std::string values = formula_values(value.formula());
  std::string message = item.message ? item.message->value : std::string(owner) + " requires `" + condition + "`";
  auto builder = ex.fail(diag::code::config_require, item.condition->span, std::move(message), {&value});
  builder.mark(values.empty() || values == condition ? "this is false" : values + " is false");
  return false;
}

Evaluator::Reason::Reason(Evaluator& evaluator, std::string note) : evaluator_(evaluator) {
  evaluator_.state_->reasons.push_back(std::move(note));
}
Evaluator::Reason::~Reason() { evaluator_.state_->reasons.pop_back(); }

// ---- ownership ------------------------------------------------------------------------------------------------------

const ConfigInstance* Evaluator::adopt(std::unique_ptr<ConfigInstance> instance) {
  return state_->configs.emplace_back(std::move(instance)).get();
}
const VariantInstance* Evaluator::adopt(std::unique_ptr<VariantInstance> instance) {
  return state_->variants.emplace_back(std::move(instance)).get();
}
const NameSource& Evaluator::adopt(std::unique_ptr<NameSource> source) { return *state_->name_sources.emplace_back(std::move(source)); }

const NameSource& Evaluator::scope_of(const ConfigInstance& instance) { return *state_->scopes.at(&instance); }
void Evaluator::set_scope(const ConfigInstance& instance, const NameSource& scope) { state_->scopes[&instance] = &scope; }

}  // namespace modelc::sema

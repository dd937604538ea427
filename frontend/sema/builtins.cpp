// The language's functions on values known early: f64, except where whole numbers stay whole.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "frontend/sema/expressions.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace {

using RealFunction = double (*)(double);

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }

// The same meaning as the elementwise operations on tensors.
const std::map<std::string_view, RealFunction>& real_functions() {
  static const std::map<std::string_view, RealFunction> table = {
      {"ceil", [](double x) { return std::ceil(x); }},
      {"cos", [](double x) { return std::cos(x); }},
      {"erf", [](double x) { return std::erf(x); }},
      {"exp", [](double x) { return std::exp(x); }},
      {"exp2", [](double x) { return std::exp2(x); }},
      {"expm1", [](double x) { return std::expm1(x); }},
      {"floor", [](double x) { return std::floor(x); }},
      {"gelu", [](double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); }},
      {"gelu_tanh", gelu_tanh},
      {"log", [](double x) { return std::log(x); }},
      {"quick_gelu", [](double x) { return x * sigmoid(1.702 * x); }},
      {"relu", [](double x) { return x > 0 ? x : 0.0; }},
      {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"sigmoid", sigmoid},
      {"silu", [](double x) { return x * sigmoid(x); }},
      {"sin", [](double x) { return std::sin(x); }},
      {"softplus", [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }},
      {"sqrt", [](double x) { return std::sqrt(x); }},
      {"tanh", [](double x) { return std::tanh(x); }},
  };
  return table;
}

FormulaPtr called(const Builtin& function, std::span<const Argument> arguments, const std::string& result) {
  const bool explained = std::any_of(arguments.begin(), arguments.end(), [](const Argument& a) { return a.value.formula() != nullptr; });
  if (!explained) return nullptr;
  std::vector<FormulaPtr> operands;
  for (const Argument& a : arguments) { operands.push_back(a.value.formula() ? a.value.formula() : constant_formula(show(a.value))); }
  return call_formula(std::string(function.name), std::move(operands), result);
}

std::string call_text(const Builtin& function, std::span<const Argument> arguments) {
  std::string out(function.name);
  out += '(';
  for (std::size_t i = 0; i < arguments.size(); ++i) out += (i != 0 ? ", " : "") + show(arguments[i].value, 40);
  return out + ")";
}

// One call of a function on static values.
class StaticCall {
 public:
  StaticCall(Expressions& expressions, const Builtin& function, std::span<const Argument> arguments, source::Span span)
      : ex_(expressions), function_(function), arguments_(arguments), span_(span) {}

  Value run() {
    const std::string_view name = function_.name;
    if (name == "len" || name == "count") return length();
    if (name == "int") return to_int();
    if (name == "float") return numbers() ? result(Value::real(value(0).as_real())) : Value::error();
    if (name == "div" || name == "ceil_div") return division(name == "ceil_div");
    if (name == "min" || name == "max") return extreme(name == "max");
    if (name == "clamp") return clamp();
    if (name == "abs") return absolute();
    const auto it = real_functions().find(name);
    assert(it != real_functions().end());
    if (!numbers()) return Value::error();
    return finite(it->second(value(0).as_real()));
  }

 private:
  const Value& value(std::size_t i) const { return arguments_[i].value; }
  bool all_integers() const {
    return std::all_of(arguments_.begin(), arguments_.end(), [](const Argument& a) { return a.value.is(ValueKind::integer); });
  }
  Value result(const Value& v) const { return v.with_formula(called(function_, arguments_, show(v))); }

  Value finite(double r) {
    const bool finite_in =
        std::all_of(arguments_.begin(), arguments_.end(), [](const Argument& a) { return std::isfinite(a.value.as_real()); });
    if (std::isnan(r) || (finite_in && std::isinf(r))) return no_result();
    return result(Value::real(r));
  }

  Value no_result() {
    ex_.fail(diag::code::bad_arithmetic, span_, call_text(function_, arguments_) + " has no result", {&value(0)});
    return Value::error();
  }

  // All arguments are numbers, or it is said which is not.
  bool numbers() {
    for (const Argument& a : arguments_) {
      if (a.value.is_number()) continue;
      wrong(a, "a number");
      return false;
    }
    return true;
  }

  void wrong(const Argument& a, std::string_view wanted) {
    if (ex_.unusable(a.value, a.span)) return;
    if (a.value.is(ValueKind::dim)) {
      ex_.fail(
          diag::code::run_time_size, a.span,
          "`" + ex_.text(a.span) + "` is a size of run time: `" + std::string(function_.name) + "` needs a number that is known early");
      return;
    }
    ex_.fail(diag::code::wrong_operand, a.span,
             "`" + std::string(function_.name) + "` takes " + std::string(wanted) + ", not " + kind_name(a.value), {&a.value});
  }

  Value length() {
    const Value& v = value(0);
    if (v.is(ValueKind::list)) return Value::integer(static_cast<std::int64_t>(v.items().size()));
    if (v.is(ValueKind::map)) return Value::integer(static_cast<std::int64_t>(v.entries().size()));
    wrong(arguments_[0], "a list");
    return Value::error();
  }

  Value to_int() {
    if (!numbers()) return Value::error();
    if (value(0).is(ValueKind::integer)) return value(0);
    const double whole = std::trunc(value(0).as_real());
    if (!(whole >= -9223372036854775808.0 && whole < 9223372036854775808.0)) return no_result();
    return result(Value::integer(static_cast<std::int64_t>(whole)));
  }

  // div and ceil_div, of sizes too.
  Value division(bool up) {
    for (const Argument& a : arguments_) {
      if (a.value.is(ValueKind::integer) || a.value.is(ValueKind::dim)) continue;
      wrong(a, "whole numbers");
      return Value::error();
    }
    if (value(1).is(ValueKind::dim)) {
      wrong(arguments_[1], "");
      return Value::error();
    }
    const std::int64_t b = value(1).as_int();
    if (b == 0) {
      ex_.fail(diag::code::bad_arithmetic, span_, "division by zero: " + explained(value(1)), {&value(1)});
      return Value::error();
    }
    if (value(0).is(ValueKind::dim)) return size_division(b, up);
    const std::int64_t a = value(0).as_int();
    if (a == std::numeric_limits<std::int64_t>::min() && b == -1) return no_result();
    std::int64_t q = a / b;
    const bool inexact = a % b != 0;
    const bool negative = (a < 0) != (b < 0);
    if (inexact && negative && !up) --q;
    if (inexact && !negative && up) ++q;
    return result(Value::integer(q));
  }

  Value size_division(std::int64_t b, bool up) {
    graph::DimTable& dims = ex_.evaluator().dims();
    graph::DimId a = value(0).as_dim();
    if (b < 1) {
      ex_.fail(diag::code::run_time_size, span_, "a size of run time is divided by a number of at least 1: found " + explained(value(1)));
      return Value::error();
    }
    if (up) a = dims.add(a, dims.constant(b - 1));
    const graph::DimId q = dims.floor_div(a, b);
    if (q == graph::DimTable::too_large) return no_result();
    return Value::dim(dims, q, called(function_, arguments_, dims.text(q)));
  }

  Value extreme(bool largest) {
    std::vector<Value> items;
    if (arguments_.size() == 1 && value(0).is(ValueKind::list)) {
      items = value(0).items();
    } else {
      for (const Argument& a : arguments_) items.push_back(a.value);
    }
    if (items.empty() || (items.size() == 1 && !value(0).is(ValueKind::list))) {
      ex_.fail(diag::code::wrong_arguments, span_, "`" + std::string(function_.name) + "` takes at least two numbers");
      return Value::error();
    }
    bool integers = true;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!items[i].is_number()) {
        Argument a = arguments_[std::min(i, arguments_.size() - 1)];
        a.value = items[i];
        wrong(a, "numbers");
        return Value::error();
      }
      integers = integers && items[i].is(ValueKind::integer);
    }
    const Value* best = items.data();
    for (const Value& item : items) {
      const bool less = integers ? item.as_int() < best->as_int() : item.as_real() < best->as_real();
      const bool greater = integers ? item.as_int() > best->as_int() : item.as_real() > best->as_real();
      if (largest ? greater : less) best = &item;
    }
    return result(integers ? Value::integer(best->as_int()) : Value::real(best->as_real()));
  }

  Value clamp() {
    if (!numbers()) return Value::error();
    if (value(1).as_real() > value(2).as_real()) {
      ex_.fail(diag::code::wrong_operand, span_,
               "the bounds of `clamp` are the wrong way round: " + show(value(1)) + " and " + show(value(2)), {&value(1), &value(2)});
      return Value::error();
    }
    if (all_integers()) return result(Value::integer(std::clamp(value(0).as_int(), value(1).as_int(), value(2).as_int())));
    return result(Value::real(std::clamp(value(0).as_real(), value(1).as_real(), value(2).as_real())));
  }

  Value absolute() {
    if (!numbers()) return Value::error();
    if (value(0).is(ValueKind::real)) return result(Value::real(std::abs(value(0).as_real())));
    const std::int64_t a = value(0).as_int();
    if (a == std::numeric_limits<std::int64_t>::min()) return no_result();
    return result(Value::integer(a < 0 ? -a : a));
  }

  Expressions& ex_;
  const Builtin& function_;
  std::span<const Argument> arguments_;
  source::Span span_;
};

bool has_graph(const Value& v) {
  if (v.is_graph() || v.is(ValueKind::absent)) return true;
  if (!v.is(ValueKind::list) && !v.is(ValueKind::tuple)) return false;
  return std::any_of(v.items().begin(), v.items().end(), has_graph);
}

}  // namespace

Value Expressions::call_builtin(const Builtin& function, std::span<const Argument> arguments, source::Span span) {
  const std::string name(function.name);
  const bool graph = std::any_of(arguments.begin(), arguments.end(), [](const Argument& a) { return has_graph(a.value); });
  const bool named = std::any_of(arguments.begin(), arguments.end(), [](const Argument& a) { return !a.name.empty(); });

  if (graph && function.on_tensors) {
    if (!have_tensors(span, "`" + name + "`")) return Value::error();
    return st_.tensors->call_op(function.name, arguments, span);
  }
  if (graph && st_.tensors != nullptr && name == "len" && arguments.size() == 1 && arguments[0].value.is(ValueKind::member)) {
    const auto elements = st_.tensors->elements(arguments[0].value);
    if (elements) return Value::integer(static_cast<std::int64_t>(elements->size()));
  }
  // What has no meaning on static values makes a tensor of them: arange, tensor, linspace.
  if (!function.is_static || (named && function.on_tensors)) {
    if (!have_tensors(span, "`" + name + "`")) return Value::error();
    return st_.tensors->call_op(function.name, arguments, span);
  }
  const auto count = static_cast<int>(arguments.size());
  if (named || count < function.min_arguments || count > function.max_arguments) {
    fail(diag::code::wrong_arguments, span,
         named ? "`" + name + "` has no named arguments"
               : "`" + name + "` takes " + std::to_string(function.min_arguments) +
                     (function.max_arguments == function.min_arguments ? "" : " or more") + " arguments, not " + std::to_string(count))
        .note(std::string(function.doc));
    return Value::error();
  }
  return StaticCall(*this, function, arguments, span).run();
}

}  // namespace modelc::sema

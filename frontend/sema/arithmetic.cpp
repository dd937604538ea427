// Operators: on numbers, on sizes with run-time axes in them, comparison. What has a tensor among its operands is
// handed on. Whole numbers are checked 64-bit ones, all others f64; a result that is no number is an error, never a
// NaN.
#include <cassert>
#include <cmath>
#include <limits>

#include "frontend/sema/expressions.h"

namespace modelc::sema {

namespace {

int precedence_of(ast::BinaryOp op) {
  switch (op) {
    case ast::BinaryOp::pow: return precedence::power;
    case ast::BinaryOp::mul:
    case ast::BinaryOp::div:
    case ast::BinaryOp::mod: return precedence::product;
    case ast::BinaryOp::add:
    case ast::BinaryOp::sub: return precedence::sum;
    case ast::BinaryOp::and_: return precedence::and_;
    case ast::BinaryOp::or_: return precedence::or_;
    default: return precedence::comparison;
  }
}

FormulaPtr of(const Value& v) { return v.formula() ? v.formula() : constant_formula(show(v)); }

FormulaPtr combined(ast::BinaryOp op, const Value& a, const Value& b, const std::string& result) {
  if (!a.formula() && !b.formula()) return nullptr;
  return binary_formula(ast::spelling(op), precedence_of(op), of(a), of(b), result);
}

bool is_size(const Value& v) { return v.is(ValueKind::integer) || v.is(ValueKind::dim); }

bool is_comparison(ast::BinaryOp op) {
  switch (op) {
    case ast::BinaryOp::eq:
    case ast::BinaryOp::ne:
    case ast::BinaryOp::lt:
    case ast::BinaryOp::le:
    case ast::BinaryOp::gt:
    case ast::BinaryOp::ge: return true;
    default: return false;
  }
}

[[maybe_unused]] bool is_arithmetic(ast::BinaryOp op) {
  return op == ast::BinaryOp::pow || op == ast::BinaryOp::mul || op == ast::BinaryOp::div || op == ast::BinaryOp::mod ||
         op == ast::BinaryOp::add || op == ast::BinaryOp::sub;
}

// -1, 0, 1; nothing when one is a NaN.
std::optional<int> order(const Value& a, const Value& b) {
  if (a.is(ValueKind::integer) && b.is(ValueKind::integer)) { return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int() ? 1 : 0; }
  const double x = a.as_real(), y = b.as_real();
  if (std::isnan(x) || std::isnan(y)) return std::nullopt;
  return x < y ? -1 : x > y ? 1 : 0;
}

}  // namespace

Value Expressions::unary(ast::UnaryOp op, const Value& x, source::Span span) {
  if (unusable(x, span)) return Value::error();
  if (x.is(ValueKind::tensor)) {
    if (!have_tensors(span, "`" + std::string(ast::spelling(op)) + "`")) return Value::error();
    return st_.tensors->unary(op, x, span);
  }
  if (op == ast::UnaryOp::not_) {
    if (!x.is(ValueKind::boolean)) {
      fail(diag::code::bad_condition, span, "`not` takes a bool, not " + kind_name(x), {&x});
      return Value::error();
    }
    const bool result = !x.as_bool();
    return Value::boolean(result, x.formula() ? unary_formula("not", precedence::not_, x.formula(), result ? "true" : "false") : nullptr);
  }
  const auto formula = [&](const std::string& result) {
    return x.formula() ? unary_formula("-", precedence::negation, x.formula(), result) : nullptr;
  };
  if (x.is(ValueKind::integer)) {
    std::int64_t result = 0;
    if (__builtin_sub_overflow(std::int64_t{0}, x.as_int(), &result)) {
      fail(diag::code::bad_arithmetic, span, "-" + show(x) + " does not fit 64 bits", {&x});
      return Value::error();
    }
    return Value::integer(result, formula(std::to_string(result)));
  }
  if (x.is(ValueKind::real)) {
    const Value result = Value::real(-x.as_real());
    return result.with_formula(formula(show(result)));
  }
  if (x.is(ValueKind::dim)) {
    const graph::DimId result = ev_.dims().sub(graph::DimId{}, x.as_dim());
    return Value::dim(ev_.dims(), result, unary_formula("-", precedence::negation, x.formula(), ev_.dims().text(result)));
  }
  fail(diag::code::wrong_operand, span, "`-` takes a number, not " + kind_name(x), {&x});
  return Value::error();
}

Value Expressions::binary(ast::BinaryOp op, const Value& a, const Value& b, const ast::BinaryExpr& expr) {
  const bool bad_left = unusable(a, expr.left->span);
  const bool bad_right = unusable(b, expr.right->span);
  if (bad_left || bad_right) return Value::error();
  if (op == ast::BinaryOp::in) return contains(a, b, expr);

  if (a.is(ValueKind::tensor) || b.is(ValueKind::tensor)) {
    const Value& other = a.is(ValueKind::tensor) ? b : a;
    const source::Span other_span = a.is(ValueKind::tensor) ? expr.right->span : expr.left->span;
    if (other.is(ValueKind::dim)) {
      fail(diag::code::run_time_size, other_span, "`" + text(other_span) + "` is a size of run time: it stands in shapes and slices only");
      return Value::error();
    }
    if (!other.is(ValueKind::tensor) && !other.is_number() && !other.is(ValueKind::boolean)) {
      fail(diag::code::wrong_operand, other_span,
           "`" + std::string(ast::spelling(op)) + "` takes a tensor or a number, not " + kind_name(other), {&other});
      return Value::error();
    }
    if (!have_tensors(expr.span, "`" + std::string(ast::spelling(op)) + "`")) return Value::error();
    return st_.tensors->binary(op, a, b, expr.span);
  }
  if (op == ast::BinaryOp::and_ || op == ast::BinaryOp::or_) {
    for (const auto& [value, side] : {std::pair(&a, expr.left.get()), std::pair(&b, expr.right.get())}) {
      if (value->is(ValueKind::boolean)) continue;
      fail(diag::code::bad_condition, side->span, "`" + std::string(ast::spelling(op)) + "` takes bools, not " + kind_name(*value),
           {value});
      return Value::error();
    }
    const bool result = op == ast::BinaryOp::and_ ? a.as_bool() && b.as_bool() : a.as_bool() || b.as_bool();
    return Value::boolean(result, combined(op, a, b, result ? "true" : "false"));
  }
  if (is_comparison(op)) return comparison(op, a, b, expr);
  assert(is_arithmetic(op));
  return arithmetic(op, a, b, expr);
}

Value Expressions::arithmetic(ast::BinaryOp op, const Value& a, const Value& b, const ast::BinaryExpr& expr) {
  if (a.is(ValueKind::dim) || b.is(ValueKind::dim)) return sizes(op, a, b, expr);
  for (const auto& [value, side] : {std::pair(&a, expr.left.get()), std::pair(&b, expr.right.get())}) {
    if (value->is_number()) continue;
    auto message = fail(diag::code::wrong_operand, side->span,
                        "`" + std::string(ast::spelling(op)) + "` takes numbers, not " + kind_name(*value), {value});
    const Value& other = value == &a ? b : a;
    const ast::Expr& other_side = side == expr.left.get() ? *expr.right : *expr.left;
    if (op == ast::BinaryOp::mul && value->is(ValueKind::list) && value->items().size() == 1 && other.is_number()) {
      std::string item = text(side->span);  // `[x]`
      if (item.size() > 2 && item.front() == '[') item = item.substr(1, item.size() - 2);
      message.help("a list of equal elements is written `[" + item + " for i in 0.." + text(other_side.span) + "]`");
    } else if (op == ast::BinaryOp::add && value->is(ValueKind::string)) {
      message.help("texts are not joined: write the whole one");
    } else if (op == ast::BinaryOp::add && value->is(ValueKind::list)) {
      message.help("lists are not joined: write one list, `[a, b]`, or `[f(i) for i in 0..n]`");
    }
    return Value::error();
  }
  if (op != ast::BinaryOp::pow && a.is(ValueKind::integer) && b.is(ValueKind::integer)) return integers(op, a, b, expr);
  return reals(op, a, b, expr);
}

Value Expressions::integers(ast::BinaryOp op, const Value& a, const Value& b, const ast::BinaryExpr& expr) {
  const std::int64_t x = a.as_int(), y = b.as_int();
  std::int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case ast::BinaryOp::add: overflow = __builtin_add_overflow(x, y, &result); break;
    case ast::BinaryOp::sub: overflow = __builtin_sub_overflow(x, y, &result); break;
    case ast::BinaryOp::mul: overflow = __builtin_mul_overflow(x, y, &result); break;
    default: {
#ifdef MODELC_PLANTED_FAULT                                 // tests/fuzz: the fuzzer must find this one
      constexpr bool divides_by_zero = false;
#else
      const bool divides_by_zero = y == 0;
#endif
      if (divides_by_zero) {
        fail(diag::code::bad_arithmetic, expr.span, "division by zero: " + explained(b), {&a, &b});
        return Value::error();
      }
      // The one quotient that does not fit.
      overflow = x == std::numeric_limits<std::int64_t>::min() && y == -1;
      if (overflow) break;
      if (op == ast::BinaryOp::mod) {
        result = x % y;
        if (result != 0 && (result < 0) != (y < 0)) result += y;  // the sign of the divisor, as in PyTorch
        break;
      }
      if (x % y != 0) {
        const std::string written = text(expr.left->span) + " / " + text(expr.right->span);
        const std::string values = show(a) + " / " + show(b);
        fail(diag::code::inexact_division, expr.span,
             (written == values ? "`" + written + "`" : "`" + written + "` = " + values) + " does not come out even", {&a, &b})
            .help("write `div` to round down, `ceil_div` to round up, `float(…) / …` for a fraction");
        return Value::error();
      }
      result = x / y;
    }
  }
  if (overflow) {
    fail(diag::code::bad_arithmetic, expr.span,
         "`" + text(expr.span) + "` = " + show(a) + " " + ast::spelling(op) + " " + show(b) + " does not fit 64 bits", {&a, &b});
    return Value::error();
  }
  return Value::integer(result, combined(op, a, b, std::to_string(result)));
}

Value Expressions::reals(ast::BinaryOp op, const Value& a, const Value& b, const ast::BinaryExpr& expr) {
  const double x = a.as_real(), y = b.as_real();
  double result = 0;
  switch (op) {
    case ast::BinaryOp::pow: result = std::pow(x, y); break;
    case ast::BinaryOp::mul: result = x * y; break;
    case ast::BinaryOp::div: result = x / y; break;
    case ast::BinaryOp::add: result = x + y; break;
    case ast::BinaryOp::sub: result = x - y; break;
    default:
      result = std::fmod(x, y);
      if (result != 0 && (result < 0) != (y < 0)) result += y;
  }
  // Infinity is a number only where a configuration has said so.
  if (std::isnan(result) || (std::isinf(result) && std::isfinite(x) && std::isfinite(y))) {
    fail(diag::code::bad_arithmetic, expr.span,
         "`" + text(expr.span) + "` = " + show(a) + " " + ast::spelling(op) + " " + show(b) + " has no result", {&a, &b});
    return Value::error();
  }
  const Value value = Value::real(result);
  return value.with_formula(combined(op, a, b, show(value)));
}

// At least one operand has a run-time axis in it.
Value Expressions::sizes(ast::BinaryOp op, const Value& a, const Value& b, const ast::BinaryExpr& expr) {
  for (const auto& [value, side] : {std::pair(&a, expr.left.get()), std::pair(&b, expr.right.get())}) {
    if (is_size(*value)) continue;
    fail(diag::code::run_time_size, expr.span,
         "a size of run time is computed with whole numbers and other sizes only, not with " + kind_name(*value));
    (void)side;
    return Value::error();
  }
  graph::DimTable& dims = ev_.dims();
  const auto dim_of = [&](const Value& v) { return v.is(ValueKind::dim) ? v.as_dim() : dims.constant(v.as_int()); };
  const graph::DimId x = dim_of(a), y = dim_of(b);
  graph::DimId result;
  switch (op) {
    case ast::BinaryOp::add: result = dims.add(x, y); break;
    case ast::BinaryOp::sub: result = dims.sub(x, y); break;
    case ast::BinaryOp::mul: result = dims.mul(x, y); break;
    case ast::BinaryOp::div: {
      const auto quotient = dims.exact_div(x, y);
      if (!quotient) {
        fail(diag::code::inexact_division, expr.span,
             "`" + text(expr.span) + "`: " + dims.text(x) + " is not a multiple of " + dims.text(y) + " at every size", {&a, &b})
            .help("write `div` or `ceil_div`");
        return Value::error();
      }
      result = *quotient;
      break;
    }
    default:
      fail(diag::code::run_time_size, expr.span,
           "`" + std::string(ast::spelling(op)) + "` is not for sizes of run time: they take + - * / div and ceil_div");
      return Value::error();
  }
  if (result == graph::DimTable::too_large) {
    fail(diag::code::bad_arithmetic, expr.span, "the size `" + text(expr.span) + "` is too large");
    return Value::error();
  }
  return Value::dim(dims, result, combined(op, a, b, dims.text(result)));
}

Value Expressions::comparison(ast::BinaryOp op, const Value& a, const Value& b, const ast::BinaryExpr& expr) {
  if (a.is(ValueKind::dim) || b.is(ValueKind::dim)) {
    fail(diag::code::run_time_size, expr.span, "a size of run time cannot be compared: it is not known early");
    return Value::error();
  }
  const bool equality = op == ast::BinaryOp::eq || op == ast::BinaryOp::ne;
  const std::string sign = ast::spelling(op);
  bool result = false;
  if (a.is_number() && b.is_number()) {
    const auto sides = order(a, b);
    switch (op) {
      case ast::BinaryOp::eq: result = sides == 0; break;
      case ast::BinaryOp::ne: result = sides != 0; break;
      case ast::BinaryOp::lt: result = sides == -1; break;
      case ast::BinaryOp::le: result = sides && *sides <= 0; break;
      case ast::BinaryOp::gt: result = sides == 1; break;
      default: result = sides && *sides >= 0; break;
    }
  } else if (!equality) {
    const bool left = !a.is_number();
    fail(diag::code::wrong_operand, left ? expr.left->span : expr.right->span,
         "`" + sign + "` takes numbers, not " + kind_name(left ? a : b), {&a, &b});
    return Value::error();
  } else {
    const bool comparable =
        a.kind() == b.kind() && (a.is(ValueKind::boolean) || a.is(ValueKind::string) || a.is(ValueKind::list) || a.is(ValueKind::map));
    if (!comparable) {
      auto message = fail(diag::code::wrong_operand, expr.span,
                          "`" + sign + "` compares two values of one kind, not " + kind_name(a) + " with " + kind_name(b), {&a, &b});
      const bool tag = a.is(ValueKind::variant) && b.is(ValueKind::string);
      if (tag) message.help("ask for the case of a variant with `" + text(expr.left->span) + " is " + show(b) + "`");
      return Value::error();
    }
    result = equal(a, b) == (op == ast::BinaryOp::eq);
  }
  return Value::boolean(result, combined(op, a, b, result ? "true" : "false"));
}

Value Expressions::contains(const Value& a, const Value& b, const ast::BinaryExpr& expr) {
  if (a.is_graph() || a.is(ValueKind::dim)) {
    fail(diag::code::bad_condition, expr.left->span, "`in` takes a value that is known early, not " + kind_name(a));
    return Value::error();
  }
  bool found = false;
  if (b.is(ValueKind::list)) {
    for (const Value& item : b.items()) found = found || equal(a, item);
  } else if (b.is(ValueKind::map) && a.is(ValueKind::string)) {
    for (const auto& [name, value] : b.entries()) found = found || name == a.as_string();
  } else {
    fail(diag::code::wrong_operand, expr.right->span, "`in` looks in a list, not in " + kind_name(b), {&b});
    return Value::error();
  }
  return Value::boolean(found);
}

}  // namespace modelc::sema

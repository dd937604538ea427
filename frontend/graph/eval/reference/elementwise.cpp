// Elementwise operations. Each is worked out in f64 and rounded once, which for + - · / and √ is what f32 arithmetic
// gives.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>

#include "frontend/graph/eval/reference.h"

namespace modelc::graph::eval::reference {

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

bool is_comparison(OpKind kind) { return kind >= OpKind::less && kind <= OpKind::logical_not; }

// Integers stay exact: the operations that they have. 64 bits wrap; the evaluator refuses what leaves a narrower dtype.
std::int64_t apply_integer(OpKind kind, std::int64_t a, std::int64_t b) {
  const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
  switch (kind) {
    case OpKind::add: return static_cast<std::int64_t>(ua + ub);
    case OpKind::sub: return static_cast<std::int64_t>(ua - ub);
    case OpKind::mul: return static_cast<std::int64_t>(ua * ub);
    case OpKind::min: return std::min(a, b);
    case OpKind::max: return std::max(a, b);
    case OpKind::mod: return a % b + (a % b != 0 && (a % b < 0) != (b < 0) ? b : 0);
    case OpKind::neg: return static_cast<std::int64_t>(0 - ua);
    case OpKind::abs: return a < 0 ? static_cast<std::int64_t>(0 - ua) : a;
    case OpKind::floor:
    case OpKind::ceil: return a;
    default: return apply(kind, static_cast<double>(a), static_cast<double>(b)) != 0;   // comparisons, logic
  }
}

}  // namespace

double apply(OpKind kind, double a, double b) {
  using std::numbers::inv_sqrtpi, std::numbers::sqrt2;
  switch (kind) {
    case OpKind::add: return a + b;
    case OpKind::sub: return a - b;
    case OpKind::mul: return a * b;
    case OpKind::div: return a / b;
    case OpKind::pow: return std::pow(a, b);
    case OpKind::min: return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::min(a, b);
    case OpKind::max: return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::max(a, b);
    case OpKind::mod: {
      const double r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case OpKind::less: return a < b;
    case OpKind::less_equal: return a <= b;
    case OpKind::greater: return a > b;
    case OpKind::greater_equal: return a >= b;
    case OpKind::equal: return a == b;
    case OpKind::not_equal: return a != b;
    case OpKind::logical_and: return a != 0 && b != 0;
    case OpKind::logical_or: return a != 0 || b != 0;
    case OpKind::logical_not: return a == 0;
    case OpKind::neg: return -a;
    case OpKind::silu: return a * sigmoid(a);
    case OpKind::gelu: return a / 2 * std::erfc(-a / sqrt2);
    case OpKind::gelu_tanh: return a / 2 * (1 + std::tanh(sqrt2 * inv_sqrtpi * (a + 0.044715 * a * a * a)));
    case OpKind::quick_gelu: return a * sigmoid(1.702 * a);
    case OpKind::relu: return std::isnan(a) ? a : std::max(a, 0.0);
    case OpKind::sigmoid: return sigmoid(a);
    case OpKind::tanh: return std::tanh(a);
    case OpKind::softplus: return std::max(a, 0.0) + std::log1p(std::exp(-std::abs(a)));
    case OpKind::exp: return std::exp(a);
    case OpKind::exp2: return std::exp2(a);
    case OpKind::expm1: return std::expm1(a);
    case OpKind::log: return std::log(a);
    case OpKind::sqrt: return std::sqrt(a);
    case OpKind::rsqrt: return 1 / std::sqrt(a);
    case OpKind::erf: return std::erf(a);
    case OpKind::cos: return std::cos(a);
    case OpKind::sin: return std::sin(a);
    case OpKind::abs: return std::abs(a);
    case OpKind::floor: return std::floor(a);
    case OpKind::ceil: return std::ceil(a);
    default: assert(false && "no elementwise operation"); return 0;
  }
}

Status unary(Call& c) {
  const Array& x = c.in(0);
  Array& y = c.out();
  for (std::size_t i = 0; i < x.count(); ++i) {
    if (is_float(y.dtype)) y.reals[i] = round_to(y.dtype, apply(c.op.kind, x.reals[i], 0));
    else y.integers[i] = apply_integer(c.op.kind, x.integers[i], 0);
  }
  return {};
}

Status binary(Call& c) {
  const Array &a = c.in(0), &b = c.in(1);
  Array& y = c.out();
  const Broadcast at_a(a.shape, y.shape), at_b(b.shape, y.shape);
  const bool integers = !is_float(a.dtype) && !is_float(b.dtype);
  if (integers && c.op.kind == OpKind::mod)
    for (std::int64_t v : b.integers)
      if (v == 0) return Error{"division-by-zero", "mod: b has a 0", {}, ""};
  for_each_index(y.shape, [&](const Shape& index, std::size_t flat) {
    const std::size_t i = at_a(index), j = at_b(index);
    if (integers) y.integers[flat] = apply_integer(c.op.kind, a.integers[i], b.integers[j]);
    else if (is_comparison(c.op.kind)) y.integers[flat] = apply(c.op.kind, a.number(i), b.number(j)) != 0;
    else y.reals[flat] = round_to(y.dtype, apply(c.op.kind, a.number(i), b.number(j)));
  });
  return {};
}

Status where(Call& c) {
  const Array &condition = c.in(0), &a = c.in(1), &b = c.in(2);
  Array& y = c.out();
  const Broadcast at_c(condition.shape, y.shape), at_a(a.shape, y.shape), at_b(b.shape, y.shape);
  for_each_index(y.shape, [&](const Shape& index, std::size_t flat) {
    const bool first = condition.integers[at_c(index)] != 0;
    const Array& from = first ? a : b;
    const std::size_t i = first ? at_a(index) : at_b(index);
    if (is_float(y.dtype)) y.reals[flat] = round_to(y.dtype, from.number(i));
    else y.integers[flat] = from.integers[i];
  });
  return {};
}

}  // namespace modelc::graph::eval::reference

// Operators on tensors, casts and slices.
#include <algorithm>
#include <cassert>

#include "frontend/graph/types.h"
#include "frontend/sema/function_builder.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace code = diag::code;
using graph::OpKind;
using graph::ValueId;

// ---- operators ------------------------------------------------------------------------------------------------------

Value FunctionBuilder::unary(ast::UnaryOp op, const Value& x, source::Span span) {
  const auto id = promote(x, span);
  if (!id) return Value::error();
  const auto y = emit_one(op == ast::UnaryOp::negate ? OpKind::neg : OpKind::logical_not, {{*id, span}}, {}, span);
  return y ? tensor(*y) : Value::error();
}

namespace {

OpKind kind_of(ast::BinaryOp op) {
  switch (op) {
    case ast::BinaryOp::pow: return OpKind::pow;
    case ast::BinaryOp::mul: return OpKind::mul;
    case ast::BinaryOp::div: return OpKind::div;
    case ast::BinaryOp::mod: return OpKind::mod;
    case ast::BinaryOp::add: return OpKind::add;
    case ast::BinaryOp::sub: return OpKind::sub;
    case ast::BinaryOp::eq: return OpKind::equal;
    case ast::BinaryOp::ne: return OpKind::not_equal;
    case ast::BinaryOp::lt: return OpKind::less;
    case ast::BinaryOp::le: return OpKind::less_equal;
    case ast::BinaryOp::gt: return OpKind::greater;
    case ast::BinaryOp::ge: return OpKind::greater_equal;
    case ast::BinaryOp::and_: return OpKind::logical_and;
    case ast::BinaryOp::or_: return OpKind::logical_or;
    case ast::BinaryOp::in:
    case ast::BinaryOp::coalesce: break;
  }
  assert(false && "not an operator on tensors");
  return OpKind::add;
}

bool is_one(const Value& v) { return v.is_number() && v.as_real() == 1; }
bool is_float_tensor(const Value& v) { return v.is(ValueKind::tensor) && is_float(v.as_graph().type.dtype); }

}  // namespace

Value FunctionBuilder::binary(ast::BinaryOp op, const Value& a, const Value& b, source::Span span) {
  // Exact whatever x is: an Embedding whose scale is 1 is a table, no product.
  const bool right_one = op == ast::BinaryOp::mul || op == ast::BinaryOp::div || op == ast::BinaryOp::pow;
  if (right_one && is_one(b) && is_float_tensor(a)) return a;
  if (op == ast::BinaryOp::mul && is_one(a) && is_float_tensor(b)) return b;
  const OpKind kind = kind_of(op);
  const bool divides = kind == OpKind::div || kind == OpKind::pow;
  const auto beside = [&](const Value& other) { return other.is(ValueKind::tensor) && !divides ? &other.as_graph().type : nullptr; };
  const auto x = promote(a, span, beside(b));
  const auto y = promote(b, span, beside(a));
  if (!x || !y) return Value::error();
  const auto z = emit_one(kind, {{*x, span}, {*y, span}}, {}, span);
  return z ? tensor(*z) : Value::error();
}

// ---- as -------------------------------------------------------------------------------------------------------------

std::optional<ValueId> FunctionBuilder::reshape(ValueId x, const std::vector<AxisText>& axes, source::Span x_span, source::Span span) {
  graph::Type wanted = type(x);
  wanted.shape.clear();
  for (const AxisText& axis : axes) wanted.shape.push_back(axis.dim);
  if (wanted.shape == type(x).shape) {
    // The same axes under other names: nothing to do but to remember them.
    if (infos_[x.index].axes.empty()) {
      for (const AxisText& axis : axes) infos_[x.index].axes.push_back(axis.formula);
    }
    return x;
  }
  graph::DimId have = dims().constant(1);
  graph::DimId want = dims().constant(1);
  for (const graph::DimId dim : type(x).shape) have = dims().mul(have, dim);
  for (const graph::DimId dim : wanted.shape) want = dims().mul(want, dim);
  if (!graph::DimTable::same(have, want)) {
    auto message =
        fail(code::shape_mismatch, span, "the axes do not multiply out: " + dims().text(have) + " elements as " + dims().text(want));
    message.mark("wanted " + shape_with_values(axes, dims()));
    message.note("found " + shown(x));
    std::vector<AxisText> both = axes;
    const std::vector<AxisText> from = axes_of(x);
    both.insert(both.end(), from.begin(), from.end());
    for (std::string& line : shape_origins(both)) message.note(std::move(line));
    const ValueInfo& known = infos_[x.index];
    if (known.declared.valid()) message.label(known.declared, "declared here");
    return std::nullopt;
  }
  return emit_one(OpKind::reshape, {{x, x_span}}, {}, span, {"", nullptr, &wanted, &axes});
}

// Sizes as written; `...` is what it stands for in the signature around.
std::optional<std::vector<AxisText>> FunctionBuilder::sizes_of(const std::vector<ShapeAxis>& shape) {
  std::vector<AxisText> out;
  for (const ShapeAxis& axis : shape) {
    if (axis.ellipsis) {
      const Ellipsis& any = frames_.back().ellipsis;
      if (!any) {
        fail(code::shape_mismatch, axis.span, "`...` stands for the axes that it has in the signature, and there it is not");
        return std::nullopt;
      }
      for (const graph::DimId dim : *any) out.push_back({dim, nullptr, false});
    } else if (axis.size.is(ValueKind::integer)) {
      out.push_back({dims().constant(axis.size.as_int()), axis.size.formula(), false});
    } else if (axis.size.is(ValueKind::dim)) {
      out.push_back({axis.size.as_dim(), axis.size.formula(), false});
    } else {
      return std::nullopt;
    }
  }
  return out;
}

Value FunctionBuilder::cast(const Value& value, const CastTarget& target, source::Span span) {
  const auto start = promote(value, span);
  if (!start) return Value::error();
  ValueId id = *start;
  const std::optional<DType> dtype = target.is_index ? std::optional(DType::i32) : target.dtype;
  graph::Type wanted = type(id);
  if (wanted.kind != graph::TypeKind::tensor) {
    fail(code::wrong_operand, span, "`as` converts tensors, and this is " + kind_name(value));
    return Value::error();
  }
  if (dtype) {
    if (!graph::is_value_dtype(*dtype)) {
      fail(code::unknown_type, target.span, "no value can be " + std::string(name(*dtype)) + ": only files hold such numbers");
      return Value::error();
    }
    wanted.dtype = *dtype;
    wanted.index_bound.reset();
    if (target.is_index) {
      if (!target.bound) {
        fail(code::unknown_type, target.span, "write the bound: `as index(n)`");
        return Value::error();
      }
      if (target.bound->is_error()) return Value::error();
      wanted.index_bound = target.bound->is(ValueKind::dim) ? target.bound->as_dim() : dims().constant(target.bound->as_int());
    }
    if (wanted != type(id) || (in_.keep_casts && *dtype == DType::f32)) {
      const auto cast = emit_one(OpKind::cast, {{id, span}}, {{"dtype", std::string(name(*dtype))}}, span, {"", nullptr, &wanted, nullptr});
      if (!cast) return Value::error();
      id = *cast;
    }
  }
  if (target.shape) {
    const auto axes = sizes_of(*target.shape);
    if (!axes) return Value::error();
    const auto shaped = reshape(id, *axes, span, span);
    if (!shaped) return Value::error();
    id = *shaped;
  }
  return tensor(id);
}

// ---- slices ---------------------------------------------------------------------------------------------------------

Value FunctionBuilder::slice(const Value& x, std::span<const SliceValue> slices, source::Span span) {
  const auto start = promote(x, span);
  if (!start) return Value::error();
  ValueId id = *start;
  const std::size_t rank = type(id).shape.size();
  const auto dots = std::count_if(slices.begin(), slices.end(), [](const SliceValue& s) { return s.kind == ast::SliceKind::ellipsis; });
  const std::size_t fixed = slices.size() - static_cast<std::size_t>(dots);
  if (dots > 1) {
    fail(code::shape_mismatch, span, "`...` stands twice in one slice");
    return Value::error();
  }
  if (fixed > rank) {
    fail(code::shape_mismatch, slices[rank].span, "there are " + counted(fixed, "slice") + " for " + counted(rank, "axis", "axes"))
        .note("it is " + shown(id));
    return Value::error();
  }
  std::int64_t axis = 0;
  for (const SliceValue& s : slices) {
    const auto size = [&](const Value& value) -> graph::AttrValue {
      if (value.is(ValueKind::dim)) return dims().text(value.as_dim());
      return value.as_int();
    };
    switch (s.kind) {
      case ast::SliceKind::ellipsis: axis += static_cast<std::int64_t>(rank - fixed); break;
      case ast::SliceKind::whole: ++axis; break;
      case ast::SliceKind::index:
      case ast::SliceKind::range: {
        const bool index = s.kind == ast::SliceKind::index;
        for (const Value* end : {&s.low, &s.high}) {
          if (index && end == &s.high) continue;
          if (end->is(ValueKind::integer) && end->as_int() < 0) {
            const AxisText cut = axes_of(id)[static_cast<std::size_t>(axis)];
            const std::string whole = cut.formula ? formula_text(cut.formula) : dims().text(cut.dim);
            fail(code::shape_mismatch, s.span, "a slice counts from 0, not from the end: found " + show_formula(*end))
                .note("x is " + shown(id))
                .help("counted from the end it is `" + whole + " - " + std::to_string(0 - static_cast<std::uint64_t>(end->as_int())) + "`");
            return Value::error();
          }
          if (end->is(ValueKind::integer) || end->is(ValueKind::dim)) continue;
          if (end->is_error()) return Value::error();
          auto message = fail(code::wrong_operand, s.span, "a slice has whole numbers and sizes, not " + kind_name(*end));
          if (end->is(ValueKind::tensor)) message.help("rows by an index tensor are `take(x, rows)`");
          return Value::error();
        }
        Attrs attrs{{"axis", axis}, {"start", size(s.low)}};
        if (index) {
          attrs.emplace("drop", true);
        } else {
          attrs.emplace("stop", size(s.high));
          if (!s.step.is_none() && !s.step.is_error()) {
            if (!s.step.is(ValueKind::integer)) {
              fail(code::wrong_operand, s.span, "the step of a slice is a whole number, not " + kind_name(s.step));
              return Value::error();
            }
            attrs.emplace("step", s.step.as_int());
          }
        }
        const auto cut = emit_one(OpKind::slice, {{id, s.span}}, std::move(attrs), span);
        if (!cut) return Value::error();
        id = *cut;
        if (!index) ++axis;
        break;
      }
    }
  }
  return tensor(id);
}

}  // namespace modelc::sema

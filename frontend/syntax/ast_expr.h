// The syntax tree, part one: names, literals, expressions and types. ast.h says how to walk it.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/source/source.h"

namespace modelc::ast {

using source::Span;

// --- Casts ----------------------------------------------------------------------------------------------------------

// The node as a T, which it is.
template <class T, class Base> const T& as(const Base& node) {
  assert(node.kind == T::node_kind);
  return static_cast<const T&>(node);
}
template <class T, class Base> T& as(Base& node) {
  assert(node.kind == T::node_kind);
  return static_cast<T&>(node);
}

// The node as a T, or null.
template <class T, class Base> const T* try_as(const Base& node) {
  return node.kind == T::node_kind ? static_cast<const T*>(&node) : nullptr;
}
template <class T, class Base> const T* try_as(const std::unique_ptr<Base>& node) { return node ? try_as<T>(*node) : nullptr; }

// --- Names, literals ------------------------------------------------------------------------------------------------

struct Name {
  std::string text;
  Span span;
};

// nn.attention, rope_parameters.rope_theta; at least one part
struct Path {
  std::vector<Name> parts;
  Span span;

  std::string text() const;  // joined by dots
};

// "a string"
struct String {
  std::string value;  // escapes resolved
  Span span;
};

enum class LiteralKind { string, integer, floating, boolean, none };

// "silu", 1_024, 1e-5, true, none. A negative number is a UnaryExpr on one.
struct Literal {
  LiteralKind kind = LiteralKind::none;
  Span span;
  std::string text;          // a string's value, escapes resolved; of a number, as written
  std::int64_t integer = 0;  // LiteralKind::integer
  double floating = 0;       // LiteralKind::floating
  bool boolean = false;      // LiteralKind::boolean
};

// --- Expressions ----------------------------------------------------------------------------------------------------

enum class ExprKind {
  literal,
  name,
  tuple,
  unary,
  binary,
  cast,
  is,
  conditional,
  function,
  call,
  member,
  index,
  list,
  comprehension,
  match
};

struct Expr {
  const ExprKind kind;
  Span span;            // without enclosing parentheses
  bool parens = false;  // written in parentheses; says nothing of the meaning

  virtual ~Expr() = default;

 protected:
  explicit Expr(ExprKind k) : kind(k) {}
};
using ExprPtr = std::unique_ptr<Expr>;

// low..high; `high` may be null: 2..
struct Range {
  ExprPtr low;
  ExprPtr high;
  Span span;
};

// `...`, or a size
struct Axis {
  bool ellipsis = false;
  ExprPtr size;  // null if ellipsis
  Span span;
};

// [tokens, heads * d], [..., n], []
struct Shape {
  std::vector<Axis> axes;
  Span span;
};

// index(n)[shape], f32, f32[tokens, 1], [tokens, heads, d]: what follows `as`
struct CastType {
  bool is_index = false;
  ExprPtr bound;               // may be null; of index(bound)
  std::optional<Name> dtype;   // f32
  std::optional<Shape> shape;
  Span span;
};

// has_bias: true
struct Arg {
  std::optional<Name> name;
  ExprPtr value;
  Span span;
};

// (a, b, name: c)
struct Args {
  std::vector<Arg> items;
  Span span;  // with the parentheses
};

struct LiteralExpr : Expr {
  static constexpr ExprKind node_kind = ExprKind::literal;
  LiteralExpr() : Expr(node_kind) {}
  Literal value;
};

// tokens, `_` too
struct NameExpr : Expr {
  static constexpr ExprKind node_kind = ExprKind::name;
  NameExpr() : Expr(node_kind) {}
  Name name;
};

// (a, b): at least two
struct TupleExpr : Expr {
  static constexpr ExprKind node_kind = ExprKind::tuple;
  TupleExpr() : Expr(node_kind) {}
  std::vector<ExprPtr> items;
};

enum class UnaryOp { negate, not_ };

// -a, not a
struct UnaryExpr : Expr {
  static constexpr ExprKind node_kind = ExprKind::unary;
  UnaryExpr() : Expr(node_kind) {}
  UnaryOp op = UnaryOp::negate;
  ExprPtr operand;
};

enum class BinaryOp { pow, mul, div, mod, add, sub, eq, ne, lt, le, gt, ge, in, and_, or_, coalesce };

// a ^ b, a * b, …, a in b, a and b, a or b, a ?? b
struct BinaryExpr : Expr {
  static constexpr ExprKind node_kind = ExprKind::binary;
  BinaryExpr() : Expr(node_kind) {}
  BinaryOp op = BinaryOp::add;
  Span op_span;
  ExprPtr left;
  ExprPtr right;
};

// a as f32[tokens, 1]
struct CastExpr : Expr {
  static constexpr ExprKind node_kind = ExprKind::cast;
  CastExpr() : Expr(node_kind) {}
  ExprPtr operand;
  CastType type;
};

// a is "yarn", a is not none
struct IsExpr : Expr {
  static constexpr ExprKind node_kind = ExprKind::is;
  IsExpr() : Expr(node_kind) {}
  ExprPtr operand;
  bool negated = false;
  Literal literal;
};

// value if condition else otherwise
struct ConditionalExpr : Expr {
  static constexpr ExprKind node_kind = ExprKind::conditional;
  ConditionalExpr() : Expr(node_kind) {}
  ExprPtr value;
  ExprPtr condition;
  ExprPtr otherwise;
};

// fn(gate, up) = silu(gate) * up
struct FunctionExpr : Expr {
  static constexpr ExprKind node_kind = ExprKind::function;
  FunctionExpr() : Expr(node_kind) {}
  std::vector<Name> params;
  ExprPtr body;
};

// callee(args)
struct CallExpr : Expr {
  static constexpr ExprKind node_kind = ExprKind::call;
  CallExpr() : Expr(node_kind) {}
  ExprPtr callee;
  Args args;
};

// object.name
struct MemberExpr : Expr {
  static constexpr ExprKind node_kind = ExprKind::member;
  MemberExpr() : Expr(node_kind) {}
  ExprPtr object;
  Name name;
};

enum class SliceKind {
  ellipsis,  // ...          any axes
  whole,     // ..           a whole axis
  index,     // low          one position
  range,     // low..high    with `by step` perhaps
};

struct Slice {
  SliceKind kind = SliceKind::whole;
  ExprPtr low;   // index, range
  ExprPtr high;  // range
  ExprPtr step;  // range; may be null
  Span span;
};

// object[slices], at least one
struct IndexExpr : Expr {
  static constexpr ExprKind node_kind = ExprKind::index;
  IndexExpr() : Expr(node_kind) {}
  ExprPtr object;
  std::vector<Slice> slices;
};

// [a, b], []
struct ListExpr : Expr {
  static constexpr ExprKind node_kind = ExprKind::list;
  ListExpr() : Expr(node_kind) {}
  std::vector<ExprPtr> items;
};

// [element for variable in source if condition]
struct ComprehensionExpr : Expr {
  static constexpr ExprKind node_kind = ExprKind::comprehension;
  ComprehensionExpr() : Expr(node_kind) {}
  ExprPtr element;
  Name variable;
  std::optional<Range> range;  // either this: `in 0..n`
  ExprPtr source;              // or this: `in list`; the other is absent
  ExprPtr condition;           // may be null
};

// none | "default" => value,  "yarn" as s => value,  _ => value
struct Arm {
  bool wildcard = false;
  std::vector<Literal> literals;  // empty if wildcard
  std::optional<Name> binding;
  ExprPtr value;
  Span span;
};

// match subject { arms }, at least one
struct MatchExpr : Expr {
  static constexpr ExprKind node_kind = ExprKind::match;
  MatchExpr() : Expr(node_kind) {}
  ExprPtr subject;
  std::vector<Arm> arms;
};

// --- Types ----------------------------------------------------------------------------------------------------------

enum class TypeKind { list, map, index, function, named, tensor, literal };

struct Type {
  const TypeKind kind;
  Span span;
  bool optional = false;  // T?

  virtual ~Type() = default;

 protected:
  explicit Type(TypeKind k) : kind(k) {}
};
using TypePtr = std::unique_ptr<Type>;

// list[T], list[T, n]
struct ListType : Type {
  static constexpr TypeKind node_kind = TypeKind::list;
  ListType() : Type(node_kind) {}
  TypePtr element;
  ExprPtr length;  // may be null
};

// map[T]
struct MapType : Type {
  static constexpr TypeKind node_kind = TypeKind::map;
  MapType() : Type(node_kind) {}
  TypePtr element;
};

// index(n)[shape], index[shape]
struct IndexType : Type {
  static constexpr TypeKind node_kind = TypeKind::index;
  IndexType() : Type(node_kind) {}
  ExprPtr bound;  // may be null
  Shape shape;
};

// fn
struct FunctionType : Type {
  static constexpr TypeKind node_kind = TypeKind::function;
  FunctionType() : Type(node_kind) {}
};

// dim, module, RopeScaling, FeedForward(size), f32[tokens, n]
struct NamedType : Type {
  static constexpr TypeKind node_kind = TypeKind::named;
  NamedType() : Type(node_kind) {}
  Path path;
  std::optional<Args> args;
  std::optional<Shape> shape;
};

// [tokens, n]: of the compute dtype, or a weight's own
struct TensorType : Type {
  static constexpr TypeKind node_kind = TypeKind::tensor;
  TensorType() : Type(node_kind) {}
  Shape shape;
};

// "halves" | "adjacent"
struct LiteralType : Type {
  static constexpr TypeKind node_kind = TypeKind::literal;
  LiteralType() : Type(node_kind) {}
  std::vector<Literal> literals;
};

// --- Words ----------------------------------------------------------------------------------------------------------

// As written: "-", "not", "^", "??".
const char* spelling(UnaryOp op);
const char* spelling(BinaryOp op);

}  // namespace modelc::ast

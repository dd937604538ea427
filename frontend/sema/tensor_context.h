// What the evaluator asks of whoever builds the graph. The evaluator computes with static values itself and hands over
// whatever touches a tensor, a batch or a member of an instance, with all operands evaluated.
//
// Rules for all functions: an operand is never an error and never `absent`, except where said; a static number,
// boolean or list of numbers among the operands is for the context to promote (or to take as an attribute). A mistake
// is reported by the context, which then returns Value::error().
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/sema/value.h"

namespace modelc::sema {

// An evaluated argument; `name` is empty for a positional one.
struct Argument {
  std::string_view name;
  Value value;
  source::Span span;                                 // of the value
  source::Span name_span;                            // of the name, when there is one
};

// An axis of a shape as written. `size` is an integer, a dim, or an error (already reported).
struct ShapeAxis {
  bool ellipsis = false;
  Value size;
  source::Span span;
};

// `as index(n)[tokens]`, `as f32`, `as [tokens, heads, d]`
struct CastTarget {
  bool is_index = false;
  std::optional<Value> bound;                        // integer or dim
  std::optional<DType> dtype;
  std::optional<std::vector<ShapeAxis>> shape;
  source::Span span;
};

// One of `x[a..b by 2, 0, .., ...]`, evaluated: integers or dims; `low` alone is an index. A range has both ends.
struct SliceValue {
  ast::SliceKind kind = ast::SliceKind::whole;
  Value low, high, step;                             // step: none when not written
  source::Span span;
};

class TensorContext {
 public:
  virtual ~TensorContext() = default;

  // -x, not x
  virtual Value unary(ast::UnaryOp op, const Value& x, source::Span span) = 0;
  // Arithmetic, comparison, `and`, `or` where an operand is a tensor; the other may be static. Never `in`, `??`.
  virtual Value binary(ast::BinaryOp op, const Value& a, const Value& b, source::Span span) = 0;

  // An operation of the language by its name ("attend"), where an argument is a graph value or the operation makes a
  // tensor from static values (arange, tensor, linspace …). Arguments may be `absent` and `none`: where an operation
  // takes an optional. Includes `count(x)` and `dtype(x)`. The value is a tensor, a tuple of them, or none (append).
  virtual Value call_op(std::string_view name, std::span<const Argument> arguments, source::Span span) = 0;
  // A declared custom operation.
  virtual Value call_custom(const Symbol& op, std::span<const Argument> arguments, source::Span span) = 0;

  // A member called: `q_proj(x)` with an empty `name`, `decoder.remember(source, at)`, `cache.append(k, v, at)`,
  // `layer.encoder_attn(x)`: `name` is an entry, a function of a state, or a child.
  virtual Value call_member(const Value& member, std::string_view name, std::span<const Argument> arguments, source::Span span) = 0;
  // `positions.weight`, `at.positions`, `layer.encoder_attn`.
  virtual Value field(const Value& object, const ast::Name& name) = 0;

  virtual Value cast(const Value& x, const CastTarget& target, source::Span span) = 0;
  // At least one slice; an index, `..` and `...` count axes as in the language.
  virtual Value slice(const Value& x, std::span<const SliceValue> slices, source::Span span) = 0;

  // The elements of a member that is a list of children, for `[m(x) for m in list]`, `layers[0]` and len(); nothing
  // when it is not a list.
  virtual std::optional<std::vector<Value>> elements(const Value& member) = 0;

  // `for name in list { body }`: the fold over a list of children. `carried` are the names that the body assigns,
  // with their values before the loop; `body` evaluates it once with the element and the carried values as they are
  // inside, and returns the carried values after it, or nothing when it failed. The result: the carried values after
  // the loop, or nothing on error. A body called once for unlike elements, too, is the context's affair; it may call
  // `body` several times.
  struct Carried {
    std::string name;
    Value value;
    source::Span span;                               // of the `let` that made it
  };
  using FoldBody = std::function<std::optional<std::vector<Value>>(const Value& element, std::span<const Value> carried)>;
  virtual std::optional<std::vector<Value>> fold(const Value& list, const ast::ForStatement& statement, std::span<const Carried> carried,
                                                 const FoldBody& body) = 0;

  // A `let` has given the value a name: "q". For the generated code's names and for traces.
  virtual void named(const Value& value, const ast::Name& name) {
    (void)value;
    (void)name;
  }
  // A fn is expanded between these: operations made inside stand in another text than the function being built.
  virtual void enter_function(const Closure& function, source::Span call) {
    (void)function;
    (void)call;
  }
  virtual void leave_function() {}
};

// Whether a module fits where an interface is asked. Asked by argument binding; without one, fit is not checked.
class InterfaceChecker {
 public:
  virtual ~InterfaceChecker() = default;
  // `arguments` are the interface's parameters by name. Reports at `use` when it does not fit, and returns false.
  virtual bool fits(const Recipe& recipe, const Symbol& interface, std::span<const std::pair<std::string, Value>> arguments,
                    source::Span use) = 0;
};

}  // namespace modelc::sema

// The shape rules, one per operation or per group that shares one, and what they are written with. Private to the
// table.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "frontend/graph/ops.h"
#include "frontend/graph/types.h"

namespace modelc::graph::rules {

// One query being checked. Requirements are stated one after another; the first that does not hold is kept and the
// later ones say nothing, so that a rule reads as a list. Axes count from 0, or from the end when negative.
class Rule {
 public:
  explicit Rule(const ShapeQuery& query);

  const ShapeQuery& query() const { return q_; }
  DimTable& dims() const { return q_.dims; }
  bool has(int operand) const;
  const Type& type(int operand) const;           // of an operand that is there; else a scalar, after failing
  std::size_t rank(int operand) const { return type(operand).shape.size(); }
  DimId dim(int operand, int axis);              // fails when there is no such axis
  std::string operand(int operand) const;        // its name in the table: "w"; of a variadic one "xs[2]"
  std::string axis_name(int operand, int axis) const;                         // "the last axis", "axis 1"
  std::string text(int operand) const;           // its type

  // Requirements.
  void need(int operand);                        // is there
  void none(int operand, std::string_view why);  // is not there
  void tensor(int operand);
  void batch(int operand);
  void sequences(int operand);
  void floats(int operand);
  void number(int operand);                      // float or integer
  void booleans(int operand);
  void index(int operand, DimId below);          // integers known to lie in 0..below
  void rank_is(int operand, std::size_t n);
  void rank_at_least(int operand, std::size_t n);
  void same(int a, int axis_a, int b, int axis_b);
  void is(int operand, int axis, DimId wanted, std::string_view what);        // "… is 40, the cache's heads are 2"
  void tokens(int operand);                      // its first axis is `tokens`
  // The axis is a multiple of `of`: heads that share others.
  void multiple(int operand, int axis, DimId of, std::string_view whose);
  // The operation's state, of this kind; null after failing.
  const StateDecl* state(StateKind kind);
  void require(bool holds, int operand, int axis, std::string message);       // message without "op: "
  void one_of(std::string_view attr, std::initializer_list<std::string_view> values);

  // Attribute `axis` within 0..rank of the operand.
  std::size_t axis(int operand, std::int64_t absent = -1);
  // Shapes that broadcast as NumPy's: aligned at the right, sizes equal or literally 1.
  std::vector<DimId> broadcast(std::initializer_list<int> operands);

  bool failed() const { return failed_; }
  ShapeResult result(std::vector<Type> types) const;
  ShapeResult result(Type type) const { return result(std::vector<Type>{std::move(type)}); }

 private:
  const ShapeQuery& q_;
  const OpInfo& info_;
  bool failed_ = false;
  ShapeError error_;
};

inline bool is_one(const DimTable& dims, DimId d) { return dims.value(d) == 1; }

// elementwise.cpp
ShapeResult binary(const ShapeQuery& q);         // numbers, promoted
ShapeResult compare(const ShapeQuery& q);
ShapeResult logical(const ShapeQuery& q);
ShapeResult unary(const ShapeQuery& q);          // floats
ShapeResult unary_number(const ShapeQuery& q);   // integers too
ShapeResult where(const ShapeQuery& q);
// product.cpp
ShapeResult linear(const ShapeQuery& q);
ShapeResult matmul(const ShapeQuery& q);
ShapeResult outer(const ShapeQuery& q);
ShapeResult einsum(const ShapeQuery& q);
// index.cpp
ShapeResult take(const ShapeQuery& q);
ShapeResult put(const ShapeQuery& q);
ShapeResult one_hot(const ShapeQuery& q);
ShapeResult top_k(const ShapeQuery& q);
ShapeResult take_along(const ShapeQuery& q);
// attention.cpp
ShapeResult attend(const ShapeQuery& q);
ShapeResult append(const ShapeQuery& q);
ShapeResult cross_set(const ShapeQuery& q);
ShapeResult attend_latent(const ShapeQuery& q);
ShapeResult rope(const ShapeQuery& q);
// recurrence.cpp
ShapeResult causal_conv1d(const ShapeQuery& q);
ShapeResult ssd_scan(const ShapeQuery& q);
ShapeResult gated_delta(const ShapeQuery& q);
// conv.cpp
ShapeResult conv1d(const ShapeQuery& q);
ShapeResult conv2d(const ShapeQuery& q);
ShapeResult conv3d(const ShapeQuery& q);
ShapeResult conv_transpose1d(const ShapeQuery& q);
// norm.cpp
ShapeResult rms_norm(const ShapeQuery& q);
ShapeResult layer_norm(const ShapeQuery& q);
ShapeResult l2_normalize(const ShapeQuery& q);
// reduce.cpp
ShapeResult softmax(const ShapeQuery& q);
ShapeResult mean(const ShapeQuery& q);
ShapeResult reduce(const ShapeQuery& q);         // sum, max_reduce, min_reduce
ShapeResult argmax(const ShapeQuery& q);
ShapeResult cumsum(const ShapeQuery& q);
// layout.cpp
ShapeResult reshape(const ShapeQuery& q);
ShapeResult cast(const ShapeQuery& q);
ShapeResult slice(const ShapeQuery& q);
ShapeResult concat(const ShapeQuery& q);
ShapeResult stack(const ShapeQuery& q);
ShapeResult split(const ShapeQuery& q);
ShapeResult transpose(const ShapeQuery& q);
ShapeResult repeat_axis(const ShapeQuery& q);
ShapeResult expand(const ShapeQuery& q);
ShapeResult pad(const ShapeQuery& q);
// make.cpp
ShapeResult arange(const ShapeQuery& q);
ShapeResult linspace(const ShapeQuery& q);
ShapeResult tensor_literal(const ShapeQuery& q);
// packed.cpp
ShapeResult nibbles(const ShapeQuery& q);
ShapeResult e2m1(const ShapeQuery& q);
// experts.cpp
ShapeResult route(const ShapeQuery& q);
ShapeResult moe(const ShapeQuery& q);

}  // namespace modelc::graph::rules

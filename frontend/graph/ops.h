// The operations: one table (ops.cpp), one entry an operation. An entry holds the names of operands and attributes, a
// doc line, the shapes as a person reads them, and the shape rule; the meaning is in eval/ (one function an operation).
// To add one: an enumerator, a row of the table (ops.cpp), a shape rule (ops/), a reference (eval/), a test of each.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/graph/graph.h"

namespace modelc::graph {

enum class OpKind : std::uint16_t {
  // structure (no table row but a verifier rule)
  weight,        // member "q_proj.weight" → the weight, as f32 unless it is declared otherwise
  constant_ref,  // member "rope.freqs" → a const
  batch_field,   // operand: a Batch; attr field: positions | lengths | sequence | outputs | last
  call,          // member, callee, operands → results
  repeat,        // member: a list of children; operands: carried values; body; results: the carried values after it
  literal,       // attr value: double → f32[]
  // computations: see the table
  linear,
  matmul,
  take,
  put,
  attend,
  append,
  rope,
  rms_norm,
  layer_norm,
  l2_normalize,
  softmax,
  sum,
  mean,
  max_reduce,
  min_reduce,
  argmax,
  cumsum,
  reshape,
  cast,
  slice,
  concat,
  stack,
  split,
  transpose,
  repeat_axis,
  expand,
  pad,
  arange,
  linspace,
  tensor_literal,
  one_hot,
  outer,
  where,
  top_k,
  add,
  sub,
  mul,
  div,
  pow,
  min,
  max,
  mod,
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
  logical_and,
  logical_or,
  logical_not,
  neg,
  silu,
  gelu,
  gelu_tanh,
  quick_gelu,
  relu,
  sigmoid,
  tanh,
  softplus,
  exp,
  exp2,
  expm1,
  log,
  sqrt,
  rsqrt,
  erf,
  cos,
  sin,
  abs,
  floor,
  ceil,
  einsum,
  attend_latent,
  take_along,
  route,
  moe,
  conv1d,
  conv2d,
  conv3d,
  conv_transpose1d,
  causal_conv1d,
  ssd_scan,
  gated_delta,
  cross_set,
  nibbles,
  e2m1,
  custom,
};

struct OperandSpec {
  std::string_view name;
  bool optional = false;
};
// `dim` is an integer, or a string in DimTable's text where run-time axes take part ("tokens - 1").
enum class AttrType : std::uint8_t { integer, real, boolean, string, integers, reals, dim };
struct AttrSpec {
  std::string_view name;
  AttrType type;
  bool optional = false;                         // absent = the language's default, said in the doc line
};

// What a shape rule sees and says. `found` names the operand and the axis that is wrong; the caller adds formulas and
// places.
struct ShapeError {
  int operand = -1;                              // index, or -1: the operation as a whole
  int axis = -1;                                 // of that operand, or -1
  std::string message;                           // "linear: the last axis of x is 40, of w 32"
  std::string attr = {};                         // the attribute whose text is none of `values`
  std::vector<std::string> values = {};
};
struct ShapeQuery {
  const Op& op;
  std::span<const std::optional<Type>> operands;
  DimTable& dims;
  const StateDecl* state = nullptr;              // of state operations
  const Type* wanted = nullptr;                  // reshape, expand: the result's type; cast: may carry an index bound
};
using ShapeResult = std::variant<std::vector<Type>, ShapeError>;   // the result types
using ShapeRule = ShapeResult (*)(const ShapeQuery&);

struct OpInfo {
  OpKind kind;
  std::string_view name;                         // the language's: "rms_norm"
  std::string_view doc;                          // one line: the formula
  std::string_view shapes;                       // "[..., k], [n, k], [n]? -> [..., n]"
  std::vector<OperandSpec> operands;
  std::vector<AttrSpec> attrs;
  ShapeRule shape = nullptr;                     // none: known to the language, not carried out
  bool elementwise = false;                      // broadcasts like NumPy; may be fused into one map kernel
  bool variadic = false;                         // concat, stack: any number of the last operand
  bool has_state = false;                        // reads or writes Op::member, a state
  std::string_view state_name;                   // what the language calls that argument, which stands before `at`
};

const std::vector<OpInfo>& op_table();           // computations only, in the order of OpKind
const OpInfo& info(OpKind kind);                 // structure kinds included (shape == nullptr)
// A computation by its name. Names are those of the language, but that `max(x, axis: …)`, `min(x, axis: …)` and
// `repeat(x, n)` are max_reduce, min_reduce and repeat_axis here: max and min are the elementwise ones of two operands.
const OpInfo* find_op(std::string_view name);
inline bool carried_out(const OpInfo& op) { return op.shape != nullptr; }
inline bool is_structure(OpKind kind) { return kind <= OpKind::literal; }

// The whole check of one computation: that it is carried out, arity, attributes (names, types, required ones), the
// state's presence, then the shape rule. Sema and the verifier call this.
ShapeResult infer(const ShapeQuery& query);

// The type of a field of a Batch, none where there is no such field. Needs the axes tokens, batch and outputs.
// `context` is Module::context: positions are index(context), or an index without bound.
std::optional<Type> batch_field_type(std::string_view field, DimTable& dims, std::optional<std::int64_t> context);

// A `dim` attribute as a dim; none where its text is not one.
std::optional<DimId> dim_of(const AttrValue& value, DimTable& dims);
// Attributes with their defaults; for lowering and the evaluator, after verification.
// The formula of an einsum: letters of each operand's axes and of the result's. None where it is no formula.
struct Einsum {
  std::vector<std::string> operands;
  std::string result;
};
std::optional<Einsum> parse_einsum(std::string_view formula);

std::int64_t integer_attr(const Op& op, std::string_view name, std::int64_t absent);
double real_attr(const Op& op, std::string_view name, double absent);
std::string string_attr(const Op& op, std::string_view name, std::string_view absent);
bool boolean_attr(const Op& op, std::string_view name, bool absent);
// Attribute `axis` of an operand of this rank, from 0.
std::size_t axis_attr(const Op& op, std::size_t rank, std::int64_t absent = -1);

}  // namespace modelc::graph

// The plan: what runs, on which buffers, in which order. A plan mirrors the graph's classes and functions (nothing is
// unrolled); its steps are the runtime's kernels (runtime/device/device.h), its buffers have sizes, offsets and
// lifetimes, its weights are bound to packed products. Made by codegen/lower, printed by printer.h, checked by verifier.h,
// turned into text by codegen/emit; whatever emission needs beyond text layout is decided here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "frontend/graph/graph.h"

namespace modelc::plan {

struct BufferId {
  std::uint32_t index = 0;
  friend bool operator==(BufferId, BufferId) = default;
};
struct KernelId {
  std::uint32_t index = 0;
  friend bool operator==(KernelId, KernelId) = default;
};

// ---- map kernels: fused elementwise expressions ---------------------------------------------------------------------
// A tree in post order: each node's operands stand before it.
struct MapNode {
  enum class Kind : std::uint8_t { input, literal, op } kind = Kind::input;
  std::uint32_t input = 0;                       // which operand of the kernel
  double literal = 0;
  graph::OpKind op{};                            // an elementwise op, or a cast
  DType dtype = DType::f32;                      // f32, or i32; a bool is 1 or 0 in f32. bf16 or f16 of a cast: the value in
                                                 // f32, which a model that follows its policy rounds to it
  std::vector<std::uint32_t> operands;           // nodes
};
struct MapKernel {
  std::string name;                              // "rope_cos", unique; a legal identifier
  std::vector<std::string> inputs;               // parameter names of the expression
  std::vector<MapNode> nodes;                    // the last one is the result
  std::string source;                            // the text that it replaces, for the comment
};

// ---- operands -------------------------------------------------------------------------------------------------------
// Rows start .. stop of the first axis of what an operand names, seen as `of`.
struct Rows {
  std::vector<graph::DimId> of;
  graph::DimId start, stop;
};
// What a step reads or writes.
struct BufferRef {                               // a view of a buffer under a shape of equal count; of some rows when they are said
  BufferId buffer;
  std::vector<graph::DimId> shape;
  std::optional<Rows> rows = {};
};
// The next three under another shape than their own when `view` says one.
struct WeightRef {                               // "norm.weight": below the class
  std::string member;
  std::optional<std::vector<graph::DimId>> view = {};
  std::optional<Rows> rows = {};
};
struct ConstRef {                                // "rope.freqs"
  std::string member;
  std::optional<std::vector<graph::DimId>> view = {};
  std::optional<Rows> rows = {};
};
struct StepValueRef {
  std::uint32_t index = 0;
  std::vector<graph::DimId> shape;
};   // Class::step_values
struct BatchField {
  std::string field;
  std::optional<std::vector<graph::DimId>> view = {};
};   // positions, lengths, …
struct BatchRef {};                              // the function's own Batch or Sequences
struct Absent {};
using Operand = std::variant<Absent, BufferRef, WeightRef, ConstRef, StepValueRef, BatchField, BatchRef>;

// ---- buffers --------------------------------------------------------------------------------------------------------
enum class BufferKind : std::uint8_t {
  input,       // passed by the caller
  output,      // passed by the caller, to be filled
  frame,       // a piece of the function's frame
};
struct Buffer {
  std::string name;                              // as a C++ variable: the user's name, or the op's and a number
  BufferKind kind = BufferKind::frame;
  graph::Type type;
  graph::DimId bytes;                            // a multiple of 64 in its constant factor
  graph::DimId offset;                           // of a frame buffer, in the frame
  int first = 0, last = 0;                       // steps that write it first and read it last
};

// ---- steps ----------------------------------------------------------------------------------------------------------
// Reported after the step, under the module at `member` ("" = this one; in a loop with `element`, the element or below it)
// and a name below that ("" = the module's own result).
struct Trace {
  std::string member;
  std::string name;
  Operand value;
  bool element = false;
};

// Products. One block per weight; `pack` names Class::packs.
struct Linear {
  std::uint32_t pack = 0;
  Operand x;
  std::vector<Operand> outs;
};
// inner: traced names of the products. rounded: by the policy, what they are rounded to before they are added or reported.
struct LinearAdd {
  std::uint32_t pack = 0;
  Operand x, residual, out;
  std::string inner;
  DType rounded = DType::f32;
};
struct LinearMap {
  std::uint32_t pack = 0;
  Operand x;
  KernelId kernel;
  Operand out;
  std::vector<std::string> inner;
  DType rounded = DType::f32;
};
struct Take {
  std::string table;
  Operand rows;
  double scale = 1;
  Operand out;
};              // rows of a weight
struct TakeRows {
  Operand x, rows, out;
};                                                    // rows of an activation
struct RmsNorm {
  Operand x, w;
  double eps = 0, offset = 0;
  Operand out;
};
struct AddRmsNorm {
  Operand x, y, w;
  double eps = 0, offset = 0;
  Operand sum, out;
};
struct LayerNorm {
  Operand x, w, b;
  double eps = 0;
  Operand out;
};
struct Rope {
  Operand x, cos, sin;
  bool halves = true;
  Operand out;
};
struct Append {
  std::string state;
  Operand k, v, at;
};
// All of a cross_cache, for the sequences of `at`.
struct CrossSet {
  std::string state;
  Operand k, v, at;
};
struct Attend {
  Operand q;
  std::string state;                             // a state's member name, or "" with k and v given
  Operand k, v, at, sinks, keep;                 // at: absent for rectangular sequences, which alone may have `keep`
  bool causal = true;
  double scale = 1, softcap = 0;
  std::int64_t window = 0;
  Operand out;
};
// Over a LatentCache. `up` is a matrix: a member path, no operand.
struct AttendLatent {
  Operand q_nope, q_rope;
  std::string state;
  Operand at;
  std::string up;
  bool causal = true;
  double scale = 1;
  Operand out;
};
struct Map {
  KernelId kernel;
  std::vector<Operand> inputs;
  Operand out;
};
struct Copy {
  Operand from, to;
};
// How one side of a copy is read or written (runtime/device/strided.h).
struct Layout {
  enum class Kind : std::uint8_t { whole, slice, transpose, expand, repeat } kind = Kind::whole;
  int axis = 0, other = 0;                       // other: transpose
  graph::DimId start, stop;                      // slice
  std::int64_t step = 1;                         // slice; repeat: how often
  std::vector<graph::DimId> shape;               // expand
};
struct Part {
  Operand from;
  Layout read;
  Layout write;
};
// Slice, concat, transpose, …: the parts of `out`, one after another; `fill` first where they leave something out.
struct Rearrange {
  std::vector<Part> parts;
  std::optional<double> fill;
  Operand out;
};
struct Reduce {
  graph::OpKind op{};
  Operand x, where;
  int axis = 0;
  double eps = 0;
  Operand out;
};
struct Route {
  Operand scores, bias;
  std::int64_t groups = 1, keep_groups = 1;
  bool top2_sum = false, renormalize = false;
  double scale = 1;
  Operand chosen, weights;
};
// Expert weights are matrices: member paths, not operands.
struct Experts {
  Operand x, chosen, weights;
  std::string gate, up, down;
  Operand gate_bias, up_bias, down_bias;
  KernelId kernel;
  Operand out;
};
struct Conv {
  Operand x, w, b;
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  Operand out;
};
// What goes over a Ring or a Recurrent token by token, and moves it on (runtime/device/device.h has the formulas).
struct CausalConv1d {
  Operand x, w, b;
  std::string state;
  Operand at, out;
};
struct SsdScan {
  Operand x, dt, a, b, c, d;
  std::string state;
  Operand at, out;
};
struct GatedDelta {
  Operand q, k, v, decay, beta;
  std::string state;
  Operand at;
  double scale = 1, normalize = 0;
  Operand out;
};
struct Call {
  std::string member;
  std::string function;
  std::vector<Operand> inputs;
  Operand at;
  std::vector<Operand> outs;
};
                                                 // member "" in a loop: its element
// A fill with numbers known when the code is written: 0, 1, 2, … when `values` is empty.
struct Fill {
  std::vector<double> values;
  Operand out;
};
// For every element of a list of children. A carried value has two buffers: the body reads `current` and writes `next`,
// then the two change places, so that `current` holds the value after the loop too. By the policy it is rounded before the
// loop and at the end of each pass.
struct Carried {
  BufferId current, next;
  DType rounded = DType::f32;
};
struct Step;
// A custom operation as one of its shaders where the device runs them, and as its reference, the body, where not. The body reads
// the inputs and writes the outs; the shader does so at once.
struct Custom {
  std::string name;
  std::vector<Operand> inputs;
  std::vector<graph::DimId> sizes;               // what a shader is told
  std::vector<graph::Dispatch> dispatches;       // of graph->shaders
  int host = -1;                                 // of graph->host_code
  std::vector<Operand> outs;
  std::vector<Step> body;
};
struct Repeat {
  std::string member;
  std::string variable;
  std::vector<Carried> carried;
  std::vector<Step> body;
};
using StepKind =
    std::variant<Linear, LinearAdd, LinearMap, Take, TakeRows, RmsNorm, AddRmsNorm, LayerNorm, Rope, Append, CrossSet, Attend, AttendLatent,
                 Map, Copy, Rearrange, Reduce, Route, Experts, Conv, CausalConv1d, SsdScan, GatedDelta, Fill, Call, Custom, Repeat>;
// A value that the step has made is rounded to a type, in place, where the model runs by its `policy` (mode fast); in exact
// arithmetic it stays as it is.
struct Rounding {
  Operand value;
  DType to = DType::f32;
};
struct Step {
  StepKind kind;
  std::vector<Rounding> roundings;               // once the step is done, before its traces
  std::vector<Trace> traces;                     // named values that are there once the step is done
  std::vector<std::string> replaces;             // source expressions: "q_proj(x)", "k_proj(x)"
  graph::Where where;
};

// What a function takes beside its tensors.
enum class TakesAt : std::uint8_t { none, sequences, batch };

// ---- functions and classes ------------------------------------------------------------------------------------------
struct Function {
  std::string name;                              // "forward"
  graph::FunctionKind kind = graph::FunctionKind::forward;
  std::string signature;                         // as written, for the comment
  std::string shapes;                            // "forward(x: [tokens, 576], at: Batch) -> [tokens, 576]"
  std::vector<BufferId> inputs;                  // in order; a Batch or Sequences is not among them
  std::vector<std::string> input_names;
  std::vector<BufferId> outputs;
  std::vector<std::string> output_names;
  TakesAt at = TakesAt::batch;
  bool advances = false;                         // it, or what it calls, appends the batch's tokens to a state
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  graph::DimId frame_bytes;
  graph::DimId peak_bytes;                       // frame and the deepest callee
  graph::Where where;
};

struct Pack {                                    // one Matrix, bound after loading
  std::string name;                              // "qkv": a C++ member
  std::vector<std::string> weights;              // member paths: "q_proj.weight"
  std::vector<std::string> biases;               // "" where there is none
};

// Depends on constants, vectors and the batch alone: computed once a step, shared by instances with equal inputs.
struct StepValue {
  std::string name;                              // "rope_cos": a C++ member and function
  std::vector<graph::DimId> shape;
  std::vector<Operand> keys;                     // the constants and weights that it depends on
  Function compute;                              // one output, the value
};

struct Class {
  const graph::Class* source = nullptr;          // members in declared order, weights, states
  std::vector<Pack> packs;
  std::vector<StepValue> step_values;
  std::vector<Function> functions;               // inits included: Function::kind
};

struct Program {
  std::shared_ptr<const graph::Module> graph;    // owns dims (extended while planning), classes
  std::shared_ptr<graph::DimTable> dims;         // a copy of the graph's, plus the plan's own sizes
  std::vector<Class> classes;                    // one per graph class, same order
  std::vector<MapKernel> kernels;
  graph::DimId peak_bytes;                       // of the model's forward, step values included: the arena
  graph::DimId step_value_bytes;                 // one copy of every step value
};

}  // namespace modelc::plan

// A function while it is lowered: still in SSA form like the graph, but in terms of the plan's kernels, which the passes
// join. Private to codegen/lower.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/plan/plan.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/rounding.h"

namespace modelc::lower {

using ValueIndex = std::uint32_t;

struct DraftValue {
  enum class Source : std::uint8_t { node, input, weight, constant, batch_field, literal, step_value, view };
  Source source = Source::node;
  graph::Type type;
  std::string name;                              // the user's, or ""
  std::string stage;                             // a leaf child's path, or ""
  DType rounded = DType::f32;                    // by the policy, once the node has made it; f32: it stays
  bool computed_once = false;                    // a step value: its kernel is called like it
  std::string hint;                              // what to call it where nothing else does: its operation, its callee
  std::string member;                            // weight, constant: member path; batch_field: the field
  double literal = 0;
  std::uint32_t index = 0;                       // input: which; step_value: which of the class
  ValueIndex base = 0;                           // view: of what
  std::optional<plan::Rows> rows = {};           // view: of these rows alone (alias_slices)

  bool named() const { return !name.empty() || !stage.empty(); }
};

enum class NodeKind : std::uint8_t {
  linear,
  linear_add,
  linear_map,
  take,
  take_rows,
  rms_norm,
  add_rms_norm,
  layer_norm,
  rope,
  append,
  cross_set,
  attend,
  attend_latent,
  map,
  fill,
  call,
  repeat,
  copy,
  rearrange,
  reduce,
  route,
  experts,
  conv,
  causal_conv1d,
  ssd_scan,
  gated_delta,
  custom,
};

struct Node {
  NodeKind kind{};
  std::vector<std::optional<ValueIndex>> in;
  std::vector<ValueIndex> out;

  // linear*: `in` is x, then residual or nothing; weights and biases below, one per block. experts, attend_latent: the matrices.
  std::vector<ValueIndex> weights;
  std::vector<std::optional<ValueIndex>> biases;
  std::vector<std::string> inner;                // linear_map, linear_add: traced names of the products
  DType rounded = DType::f32;                    // linear_map, linear_add: of the products; repeat: of what it carries

  plan::MapKernel kernel;                        // map, linear_map: operands are `in` (map) or the blocks (linear_map)
  std::vector<double> fill;                      // fill: the numbers; empty: 0, 1, 2, …

  double eps = 0, offset = 0;                    // norms
  double scale = 1;                              // take, attend, gated_delta
  double normalize = 0;                          // gated_delta: the eps; 0: not at all
  double magnitude = 1;                          // rope, until its tables are made
  bool halves = true;                            // rope
  bool causal = true;                            // attend
  bool batched = true;                           // attend: within the sequences of a Batch
  double softcap = 0;
  std::int64_t window = 0;

  std::vector<plan::Part> parts;                 // rearrange: how each of `in` is read and written (operands are not set)
  std::optional<double> background;              // rearrange: the value where no part is written
  graph::OpKind reduction{};                     // reduce
  int axis = 0;
  plan::Route route;                             // route: its numbers
  plan::Conv conv;                               // conv: its numbers

  std::string member;                            // state, or the child of a call or repeat
  std::string callee;                            // call
  std::string variable;                          // repeat: the user's name of an element
  std::vector<Node> body;                        // repeat; `in` are the carried values before, `out` after the loop
                                                 // custom: its reference, which reads `in` as it is
  std::vector<ValueIndex> arguments, results;    // repeat: carried values at the beginning and the end of the body
                                              // custom: results are what the body makes `out` of, one by one
  const graph::Custom* custom = nullptr; // custom

  std::vector<std::string> replaces; // source expressions
  graph::Where where;
};

struct Draft {
  const graph::Module* module = nullptr;
  const graph::Class* owner = nullptr;
  const graph::Function* function = nullptr;
  graph::DimTable* dims = nullptr; // the plan's own copy
  std::vector<DraftValue> values;
  std::vector<ValueIndex> inputs; // tensors only
  std::vector<ValueIndex> outputs;
  std::vector<Node> nodes;

  // The value that a chain of views shows.
  ValueIndex root(ValueIndex v) const {
    while (values[v].source == DraftValue::Source::view) v = values[v].base;
    return v;
  }
  // The rows that it shows of its root, when it is no view of all of it.
  const plan::Rows* rows(ValueIndex v) const {
    for (; values[v].source == DraftValue::Source::view; v = values[v].base)
      if (values[v].rows) return &*values[v].rows;
    return nullptr;
  }
  ValueIndex add(DraftValue value) {
    values.push_back(std::move(value));
    return static_cast<ValueIndex>(values.size() - 1);
  }
};

// How often each root value is read: by nodes (bodies included) and as a result of the function.
std::vector<int> count_uses(const Draft& draft);
// Every root value that a node reads, its body included (but not what the body itself makes).
void for_each_read(const Node& node, const Draft& draft, const std::function<void(ValueIndex)>& f);
// True when some root value among the reads of `node` has a view or itself named in the text, so that it must exist.
bool is_named(const Draft& draft, ValueIndex root);
// Applies f to every list of nodes: bodies first, then the function's own.
void for_each_block(std::vector<Node>& nodes, const std::function<void(std::vector<Node>&)>& f);

// An operation that this backend does not carry out, with the place that asks for it.
struct Unsupported {
  std::string message; // "operation `softmax` is not carried out by the C++ backend yet"
  graph::Where where;
};

// ---- round_values.cpp: rounding by the policy
void round_result(plan::MapKernel& kernel, DType to); // f32: does nothing
void round_input(plan::MapKernel& kernel, std::uint32_t input, DType to);
// A view whose value is rounded, and what it shows is not, becomes the value of a map.
void round_view(Draft& d, ValueIndex v, std::vector<Node>& nodes);

// ---- the passes, in the order in which lower() runs them ---------------------------------------------------------------
// `rounding`: of the function; null where nothing is rounded.
Draft select(const graph::Module&, const graph::Class&, const graph::Function&, const graph::FunctionRounding* rounding, graph::DimTable&,
             std::vector<Unsupported>& unsupported);
void fold_scalars(Draft&); // x · 1, x + 0 disappear; a scaled take takes the scale
void expand_rope_tables(Draft&); // rope(x, angles) → rope(x, cos, sin): tables by map kernels
void hoist_step_values(Draft&, plan::Class&, plan::Program&); // what depends on the batch and constants alone
void fuse_maps(Draft&, bool keep_names); // elementwise chains → one map kernel
void fuse_gated_products(Draft&); // gate, up and the elementwise expression where they meet → linear_map
void pack_products(Draft&); // other linears on one input → one product of several blocks
void fuse_residual_products(Draft&); // linear and the sum with a value of its shape → linear_add
void fuse_residual_norm(Draft&); // x + y and its norm → add_rms_norm
void remove_unused(Draft&);
void round_in_kernels(Draft&); // what a map kernel makes is rounded in it
bool lies_together(const Draft&, const Node&); // a slice that alias_slices may make a view
void alias_slices(Draft&); // slices that lie together become views
void settle(Draft&); // inserts the copies that buffers need
// Gives every value a buffer, every buffer an offset, and turns the draft into the plan's function.
plan::Function plan_memory(Draft&, plan::Class&, plan::Program&);

} // namespace modelc::lower

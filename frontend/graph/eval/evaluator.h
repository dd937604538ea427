// The reference evaluator: what a graph means, on plain loops. The oracle for every kernel and for the whole compiled
// model; for tiny models, as it keeps every value and hurries nowhere.
//
//   Evaluator e(module, source);
//   auto batch = e.batch({{.slot = 0, .tokens = 12}}, Outputs::all);
//   auto out = e.run("forward", {{"input_ids", index_array({12}, ids)}, {"at", *batch}});
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "frontend/graph/eval/array.h"
#include "frontend/graph/eval/batch.h"
#include "frontend/graph/eval/reference.h"
#include "frontend/graph/graph.h"
#include "frontend/graph/rounding.h"
#include "runtime/base/result.h"

namespace modelc::graph::eval {

// The data of a weight as f32 by the full name of its instance, in row order; none: its default value is taken, and
// without one it is missing. Aliases are the source's affair.
using WeightSource = std::function<std::optional<std::vector<float>>(const std::string& name, const WeightDecl& decl)>;

// Called for every named value and for every result of a child, with the path that a PyTorch hook would show:
// "model.layers.0.self_attn" (a call's result), "….self_attn.q_proj" (an expanded leaf's), "….self_attn.q" (a named
// value). Of several results of a call the path goes on with the result's name, or its number.
using Trace = std::function<void(const std::string& path, const Array& value)>;

using Input = std::variant<Array, Batch, Sequences>;
struct Output {
  std::string name;                              // "" when unnamed
  Array value;
};

// What `set_precision` takes: by default all are f32, exact arithmetic.
using graph::Precision;

class Evaluator {
 public:
  // The module must outlive the evaluator.
  Evaluator(const Module& module, WeightSource source);
  ~Evaluator();
  Evaluator(Evaluator&&) noexcept;
  Evaluator& operator=(Evaluator&&) noexcept;

  void set_trace(Trace trace);
  void set_precision(Precision precision);

  // New tokens for sequences, each going on where its slot stands.
  struct Next {
    std::int64_t slot = 0;
    std::int64_t tokens = 1;
  };
  Result<Batch> batch(std::span<const Next> next, Outputs outputs) const;
  Result<Batch> batch(std::initializer_list<Next> next, Outputs outputs) const {
    return batch(std::span(next.begin(), next.size()), outputs);
  }

  // Sequences by their slots, as they stand.
  Sequences sequences(std::vector<std::int64_t> slots) const;

  // Runs a function of the root. Inputs go by name; one with a default may be left out. Axes get their sizes from the
  // Batch, the Sequences and the inputs' shapes; the model's context bounds `seq`. States keep what the call appended, and the slots of the
  // Batch grow by its tokens when it succeeds. Kinds of errors: "graph" (the verifier found faults), "function", "input", "index-range",
  // "batch", "missing-weight", "weight-size", "state", "size", and those of operations.
  Result<std::vector<Output>> run(std::string_view function, const std::map<std::string, Input>& inputs);

  // The value of a const by its instance name ("model.rope.freqs").
  Result<Array> constant(std::string_view name);

  // Tokens that a slot holds; always 0 in a model without state.
  std::int64_t length(std::int64_t slot) const;
  void reset(std::int64_t slot); // empties it

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace modelc::graph::eval

// The reference evaluator on a checkpoint: what `modelc test` compares with, beside the generated code.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/driver/test_inputs.h"
#include "frontend/graph/eval/evaluator.h"
#include "frontend/graph/graph.h"
#include "runtime/base/result.h"
#include "runtime/checkpoint/mapping.h"
#include "runtime/checkpoint/tensor_data.h"

namespace modelc::driver {

// What a model in mode fast rounds values to: its policy; where that says nothing of caches, keys and values are f16 (matrix.h).
graph::Precision fast_precision(const graph::Module& module);

class Reference {
 public:
  // The module must outlive it. `mapping` is without problems, of mapping_weights(module). `precision`: what values are rounded to.
  Reference(const graph::Module& module, std::shared_ptr<const CheckpointIndex> checkpoint, Mapping mapping,
            graph::Precision precision = {});

  // Every output and stage of an expected.safetensors, of forward and of the entries whose inputs it holds; empty: all are
  // within the bound, else what is not.
  Result<std::string> expect(const std::string& path, double within);
  // The results of the inputs in such a file, as the file would hold them: [batch, seq, …] of a model that takes a Batch.
  Result<Numbers> compute(const std::string& path);
  // Runs that must agree: "prefill(24)", "prefill(12)+decode(12)", "batch(5,9)", "alone(5,9)"; and entries by name, which
  // run for the sequence at hand: "encode+prefill(8)". An entry's numbers are tokens where it takes a Batch, else the sizes
  // of its run-time axes, in the order of its inputs or by name: "heard(frames:20)". Inputs are `given`, or numbers that
  // are the same in every run. A run gives what forward gives for each token; one of entries alone what they give.
  Result<std::string> same(const std::vector<std::string>& runs, double within, const Numbers& given = {});

 private:
  struct Computed;                                         // what a file's inputs give
  graph::eval::Evaluator evaluator();
  Result<Computed> compute_file(const std::string& path);
  Result<std::vector<float>> run(const std::string& text);
  const graph::eval::Array* given(const std::string& name) const;
  // The token of a sequence at a place, of the input `name`: a given one, else by chance, the same in every run.
  Result<std::int64_t> token(const std::string& name, std::int64_t sequence, std::int64_t position, std::int64_t vocabulary) const;
  // Of an entry that takes Sequences, or inputs alone. `sizes` as they are written: "20", "frames:20".
  Result<std::map<std::string, graph::eval::Input>> entry_inputs(const graph::Function& entry, const graph::eval::Evaluator& e,
                                                                 const std::vector<std::string_view>& sizes) const;
  Result<std::vector<float>> padded(const std::vector<std::int64_t>& lengths, std::int64_t first, const graph::Function& f);
  const graph::Function* forward() const;

  const graph::Module& module_;
  std::vector<MappingWeight> weights_;
  std::map<std::string, std::size_t> by_name_;
  Mapping mapping_;
  std::shared_ptr<CheckpointData> data_;
  graph::Precision precision_;
  std::string failed_;                                     // a weight that could not be read
  const Numbers* given_ = nullptr;                         // of the runs at hand
};

}  // namespace modelc::driver

// The reference evaluator on a checkpoint: what `modelc test` compares with, beside the generated code.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "frontend/graph/eval/evaluator.h"
#include "frontend/graph/graph.h"
#include "runtime/base/result.h"
#include "runtime/checkpoint/mapping.h"
#include "runtime/checkpoint/tensor_data.h"

namespace modelc::driver {

class Reference {
 public:
  // The module must outlive it. `mapping` is without problems, of mapping_weights(module).
  Reference(const graph::Module& module, std::shared_ptr<const CheckpointIndex> checkpoint, Mapping mapping);

  // Every output and stage of an expected.safetensors, of forward and of the entries whose inputs it holds; empty: all are within the bound, else what is not.
  Result<std::string> expect(const std::string& path, double within);
  // Runs that must agree: "prefill(24)", "prefill(12)+decode(12)", "batch(5,9)", "alone(5,9)"; a name alone is an entry
  // that runs first, for the sequence at hand, on numbers that are the same in every run: "encode+prefill(8)".
  Result<std::string> same(const std::vector<std::string>& runs, double within);

 private:
  graph::eval::Evaluator evaluator();
  Result<std::vector<float>> run(const std::string& text);
  Result<std::map<std::string, graph::eval::Input>> entry_inputs(const graph::Function& entry, const graph::eval::Evaluator& e) const;
  Result<std::vector<float>> padded(const std::vector<std::int64_t>& lengths, std::int64_t first, const graph::Function& f);
  const graph::Function* forward() const;

  const graph::Module& module_;
  std::vector<MappingWeight> weights_;
  std::map<std::string, std::size_t> by_name_;
  Mapping mapping_;
  std::shared_ptr<CheckpointData> data_;
  std::string failed_;                                     // a weight that could not be read
};

}  // namespace modelc::driver

// Low-rank adapters, merged into the weights at load: W + scale · B · A. An adapter is a folder with adapter_config.json and
// adapter_model.safetensors, as PEFT writes it; its tensors are named after those of a safetensors checkpoint, and the model's
// rules for that format say which weights they are, whatever the format of the checkpoint that they are merged into.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/abi/checkpoint_rules.h"
#include "runtime/checkpoint/adapter_config.h"
#include "runtime/checkpoint/mapping.h"
#include "runtime/checkpoint/tensor_data.h"

namespace modelc {

// One folder, its headers read. Kinds of errors: "no-such-file", those of the readers and of read_adapter_config, "adapter-tensor"
// for a tensor that is no part of such an adapter or whose partner is missing, and "adapter-config" where the two files disagree.
class Adapter {
 public:
  static Result<Adapter> open(const std::string& folder, FileAccess access = FileAccess::map);

  // A change of one tensor of the base, by its name in a safetensors checkpoint.
  struct Change {
    std::string tensor;                                    // "model.layers.0.self_attn.q_proj.weight"
    const TensorInfo* a = nullptr;                         // [r, in]; null: `b` takes the tensor's place
    const TensorInfo* b = nullptr;                         // [out, r]
    double scale = 0;
    bool transposed = false;                               // the tensor is (B · A)ᵀ
    TensorShape shape = {};                                // of the tensor
  };
  const std::vector<Change>& changes() const { return changes_; }
  const std::string& folder() const { return folder_; }
  // scale · B · A, or the tensor that takes the place, in f32.
  Result<std::vector<float>> values(const Change& change) const;

 private:
  std::string folder_;
  std::shared_ptr<CheckpointData> data_;
  std::vector<Change> changes_;
};

// What adapters change of a model's weights. Kinds of errors: "adapter" with all problems as notes: tensors that the model does
// not have, shapes that differ, weights that share a tensor with another (one would change with the other).
class AdapterMerge {
 public:
  AdapterMerge() = default;
  static Result<AdapterMerge> bind(std::vector<Adapter> adapters, const std::vector<MappingWeight>& weights, const MappingRules& rules,
                                   const Mapping& mapping);

  bool changes(std::size_t weight) const { return weight < of_.size() && !of_[weight].empty(); }
  // The weight with every change, in the order of the adapters: in the encoding that it has where that is a plain float (rounded
  // once), else in f32.
  Result<HostArray> apply(std::size_t weight, const HostArray& base) const;
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Use {
    std::size_t adapter = 0;
    const Adapter::Change* change = nullptr;
    std::size_t input = 0;                                 // which of the tensors that make the weight
    std::shared_ptr<const TransformPlan> plan;             // none: the tensor is the weight
    std::size_t pick = 0;
  };
  std::vector<std::shared_ptr<const Adapter>> adapters_;
  std::vector<std::vector<Use>> of_;                       // by weight
  std::vector<std::string> notes_;
};

}  // namespace modelc

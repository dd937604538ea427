// The elements of a weight, from where its WeightSource says.
#pragma once

#include "runtime/checkpoint/mapping.h"
#include "runtime/checkpoint/tensor_data.h"

namespace modelc {

// In the encoding that its tensors have; f32 where they differ, where an `offset` says so, and of what is stored in parts.
// Not for default values. `shape` is the weight's.
Result<HostArray> read_weight(CheckpointData& data, const Mapping& mapping, const WeightSource& source, const TensorShape& shape);
// The encoding that read_weight gives, without reading; f32 of a default value.
Encoding read_encoding(const CheckpointIndex& index, const WeightSource& source);
// The same elements as f32.
Result<std::vector<float>> read_weight_f32(CheckpointData& data, const Mapping& mapping, const WeightSource& source,
                                           const TensorShape& shape);
// An alias whose own tensors are there too: both must be equal as numbers ("alias-conflict"). Gives the note that they are.
Result<std::string> compare_alias(CheckpointData& data, const Mapping& mapping, const WeightSource& source, const std::string& weight,
                                  const TensorShape& shape);
// "model.safetensors: lm_head.weight", "… and 7 more", with the plan's transforms: where a source is, for people.
std::string describe(const CheckpointIndex& index, const WeightSource& source);

}  // namespace modelc

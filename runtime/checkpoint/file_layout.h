// From a model's weights to the tensors of a file: the rules, the other way round. For whoever writes a checkpoint.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/abi/checkpoint_rules.h"
#include "runtime/checkpoint/mapping.h"

namespace modelc {

// Tensors of the file that are made together, and of which weights.
struct FileGroup {
  std::vector<std::string> file;                           // names
  std::vector<std::size_t> weights;                        // in the order of the plan's results
  std::shared_ptr<const TransformPlan> plan;               // none: the one weight is the tensor
};
// Every weight in one group, but for those that an alias takes from another and those that have the same tensor as one
// before. Of a `one_of` the first set. An Error where a rule does not fit its weights.
Result<std::vector<FileGroup>> file_groups(const std::vector<MappingWeight>& weights, const MappingRules& rules);
// The group's tensors, in the order of `file`, of its weights.
Result<std::vector<HostArray>> file_tensors(const FileGroup& group, std::vector<HostArray> weights);

}  // namespace modelc

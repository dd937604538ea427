// `shard { c.num_attention_heads over tensor_parallel }`: a weight is split along each axis whose formula has the factor.
// Checked here: each factor is a whole number, it can be in a weight's size at all, and each axis that has it divides.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/sema/imports.h"
#include "frontend/sema/instances.h"

namespace modelc::sema {

// `level`: of the section in the root's definition. A note says of a factor that no weight of this configuration has it;
// `say` gets for each factor on how many axes of different instances it is.
void check_shard(Instances& instances, ClassInfo& root, std::size_t level, const ast::ShardSection& section, const Imports& imports,
                 std::vector<std::string>& notes, const std::function<void(const std::string& line, std::size_t axes)>& say);

}  // namespace modelc::sema

// policy, quantize, shard, place: what they name is checked, and a note says what takes effect later.
#pragma once

#include <string>
#include <vector>

#include "frontend/graph/eval/evaluator.h"
#include "frontend/sema/imports.h"
#include "frontend/sema/instances.h"

namespace modelc::sema {

// The module's policy, for an evaluator that follows it.
graph::eval::Precision precision_of(const graph::Module& module);

void check_sections(Instances& instances, ClassInfo& root, const Imports& imports, std::vector<std::string>& notes);

}  // namespace modelc::sema

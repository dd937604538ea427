// policy, quantize, shard, place: what they name is checked; the lines of policy and place go into the graph, a note says what takes
// effect elsewhere or later, a fact what place comes to.
#pragma once

#include <string>
#include <vector>

#include "frontend/sema/imports.h"
#include "frontend/sema/instances.h"

namespace modelc::sema {

void check_sections(Instances& instances, ClassInfo& root, const Imports& imports, std::vector<std::string>& notes,
                    std::vector<std::string>& facts);

}  // namespace modelc::sema

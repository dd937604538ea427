// policy, quantize, shard, place: what they name is checked, and a note says what takes effect later.
#pragma once

#include <string>
#include <vector>

#include "frontend/sema/imports.h"
#include "frontend/sema/instances.h"

namespace modelc::sema {

void check_sections(Instances& instances, ClassInfo& root, const Imports& imports, std::vector<std::string>& notes);

}  // namespace modelc::sema

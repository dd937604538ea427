// The plan as text: `modelc dump --stage plan`.
#pragma once

#include <string>

#include "codegen/plan/plan.h"

namespace modelc::plan {

std::string print(const Program& program);

// An expression of map nodes as a person writes it: "silu(gate) * up".
std::string expression(const MapKernel& kernel);

}  // namespace modelc::plan

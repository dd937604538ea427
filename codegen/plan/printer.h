// The plan as text: `modelc dump --stage plan`. With the graph's text behind it, it reads back (reader.h): what is as in a
// fresh object is left out, buffers are `%name`, sizes stand in brackets.
#pragma once

#include <string>

#include "codegen/plan/plan.h"

namespace modelc::plan {

std::string print(const Program& program, bool whole = false);       // whole: with the graph

// An expression of map nodes as a person writes it: "silu(gate) * up".
std::string expression(const MapKernel& kernel);

}  // namespace modelc::plan

// The part of the verifier that looks inside functions. Private to it.
#pragma once

#include <string>
#include <vector>

#include "frontend/graph/graph.h"

namespace modelc::graph {

// `dims` is a copy of the module's, which shape rules may add to. Members and classes have been checked already.
void verify_function(const Module& module, DimTable& dims, ClassId owner, const Function& function, std::vector<std::string>& faults);

// What is wrong with a type, or "".
std::string type_fault(const Type& type, const DimTable& dims);

}  // namespace modelc::graph

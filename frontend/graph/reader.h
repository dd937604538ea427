// Reads the text form of a module (printer.h gives it by example), so that lowering, the evaluator and their tests need
// no front end. The text may be anything: what is wrong is an Error of kind "graph-text" that names the line. What is
// read is well-formed as text only: the verifier says whether it is a graph.
#pragma once

#include <string_view>

#include "frontend/graph/graph.h"
#include "runtime/base/result.h"

namespace modelc::graph {

Result<Module> read(std::string_view text);

}  // namespace modelc::graph

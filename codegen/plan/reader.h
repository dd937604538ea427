// Reads a plan's text back, with the graph that it stands over: what print(program, true) wrote.
#pragma once

#include <string_view>

#include "codegen/plan/plan.h"
#include "runtime/base/result.h"

namespace modelc::plan {

// Kinds of errors: "plan-text", with the line; "graph-text", of the graph's part. Names are resolved here, so what comes out
// has no index out of place; whether it is sound otherwise verify() says.
Result<Program> read(std::string_view text);

}  // namespace modelc::plan

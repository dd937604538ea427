// The resolved program as text, for `modelc dump --stage program`: what a reader or another tool wants to know of a
// model without a parser of the language. Configuration values folded, inheritance flattened, names whole, functions left out
// (`--stage graph` has them).
#pragma once

#include <string>

#include "frontend/graph/graph.h"

namespace modelc::sema {

std::string resolved_text(const graph::Module& module);

}  // namespace modelc::sema

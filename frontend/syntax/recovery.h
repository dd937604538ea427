// All syntax errors of a file that are worth saying. Private to this folder.
#pragma once

#include <memory>

#include "frontend/diagnostics/diagnostics.h"
#include "frontend/syntax/syntax_error.h"
#include "frontend/syntax/tokens.h"

namespace modelc::syntax {

// Reports `first`, then reads on behind it: at the next statement of the block, the next member of the module or
// configuration, or the next declaration, so that one mistake is one message and another one further down is said in the same run.
void report_all(const SyntaxError& first, Tokens& tokens, diag::Sink& sink);

}  // namespace modelc::syntax

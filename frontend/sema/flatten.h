// A model and all that it needs as one text without imports and without inheritance: `modelc flatten`. The text checks,
// and its graph is the graph of what it was made from.
//
// Declarations stand in the order of the imports, those of the main file last. Of two files' declarations of one name the
// later is renamed. A config or module that extends another has what it inherits written into it; a base's parameter
// becomes the name or the value that it is given. A base stays a declaration only where it is asked for as a type by
// more than one config that extends it: those then keep their `extends`.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "frontend/sema/analyze.h"

namespace modelc::sema {

// None, with errors in `sink`, where a definition is wrong.
std::optional<std::string> flatten(source::SourceManager&, const std::shared_ptr<Imports>&, diag::Sink&);

}  // namespace modelc::sema

// A model and all that it needs as one text without imports and without inheritance: `modelc flatten`. The text checks,
// its graph is the graph of what it was made from, it is formatted, and flattening it again gives the same bytes.
//
// Declarations stand in the order of the imports, those of the main file last; one that nothing uses is left out (of a file
// without a model everything is used). Of two files' declarations of one name the later is renamed. A config or module that
// extends another has what it inherits written into it; a base's parameter becomes the name or the value that it is given. A
// base config stays a declaration only where it is asked for as a type and several configs pass there: those then extend it.
//
// `test` blocks of the main file stay as they are, those of imported files are theirs. Their paths, and those of shaders, are
// relative to the main file: the text belongs beside it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "frontend/sema/analyze.h"

namespace modelc::sema {

// None, with errors in `sink`, where a definition is wrong.
std::optional<std::string> flatten(source::SourceManager&, const std::shared_ptr<Imports>&, diag::Sink&);

}  // namespace modelc::sema

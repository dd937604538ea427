// The text of a file in its usual form, as `modelc fmt` writes it. It works on words and signs, so that comments and
// blank lines stay. Lines stay as the author broke them; what is set is
//
//   blanks     one between words, none where the language's style has none; two to four between things on one line
//   columns    words and comments that stand below each other in the input, by more blanks than they need, still do
//   indents    four for what stands in braces; a continued line keeps its distance, or its place below a word
//   length     a line longer than `columns` is broken in its least nested brackets, and a comment behind it goes
//              before it; what cannot be broken stays
//   the rest   runs of empty lines become one, blanks at the end of a line go, the file ends with one line break
//
// Formatting what was formatted changes nothing, and the tree of the text stays the same.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "frontend/diagnostics/diagnostics.h"
#include "frontend/source/source.h"

namespace modelc::syntax {

struct FormatOptions {
  std::size_t columns = 120;
};

// None, with the errors in `sink`, for a text that does not parse.
std::optional<std::string> format(source::FileId file, const source::SourceManager& sources, diag::Sink& sink,
                                  const FormatOptions& options = {});

}  // namespace modelc::syntax

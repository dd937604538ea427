// `a // b` of another language: here a comment, and the value ends without a word. Private to this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/diagnostics/diagnostics.h"
#include "frontend/syntax/tokens.h"

namespace modelc::syntax {

// Warns of each comment behind a value that reads as a value itself. `ends` has the byte behind each expression of the file.
//
// So that no comment meant as one is taken for a division, all of this must hold: the text before `//` ends an expression in
// a name, a number or a bracket, and nothing goes on with it; the comment is numbers and names with operators between them
// and no more, each name one that the same declaration uses; before it stands one blank at most, or it has a name with a
// dot in it. A number alone is never behind a number.
void warn_of_hidden_divisions(const Tokens& tokens, const std::vector<std::uint32_t>& ends, diag::Sink& sink);

}  // namespace modelc::syntax

// Whether a tokenizer that went into another form is still the same one.
#pragma once

#include <optional>
#include <string>

#include "runtime/tokenizer/tokenizer.h"

namespace modelc {

// A text to which the two give other ids, or one of them an error: of texts in many scripts, with and without special tokens,
// and of the text of each token of `before`. None: they are the same as far as these tell.
std::optional<std::string> text_with_other_ids(const Tokenizer& before, const Tokenizer& after);

}  // namespace modelc

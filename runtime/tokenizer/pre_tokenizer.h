// The stage that cuts text into words: the model never sees across a cut.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/tokenizer/pieces.h"
#include "runtime/tokenizer/reader.h"
#include "runtime/tokenizer/regex.h"

namespace modelc {

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Cuts, and may rewrite, the pieces of text; those with an id stay.
  virtual Status apply(Pieces& pieces) const = 0;
};

// From the file's "pre_tokenizer"; null, after reader.fail(), for what is wrong or not carried out.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const Reader& reader);

// Where Metaspace puts a space before the text: before each text between added tokens, only where the whole text
// begins, nowhere.
enum class PrependScheme : std::uint8_t { always, first, never };
PrependScheme read_prepend_scheme(const Reader& reader);
// The member `key`, which is to be one character.
std::string read_character(const Reader& reader, std::string_view key);

// What becomes of a match, a delimiter. "the-final--countdown" at "-":
enum class SplitBehavior : std::uint8_t {
  removed,               // the | final | countdown
  isolated,              // the | - | final | - | - | countdown
  merged_with_previous,  // the- | final- | - | countdown
  merged_with_next,      // the | -final | - | -countdown
  contiguous,            // the | - | final | -- | countdown
};

// The parts of a text of `size` bytes, none of them empty. `invert`: what lies between the matches is the delimiter.
void split_at(const std::vector<Match>& matches, std::size_t size, SplitBehavior behavior, bool invert, std::vector<Match>& parts);

}  // namespace modelc

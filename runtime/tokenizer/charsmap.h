// The normalizer that sentencepiece compiles into a table: strings and what each becomes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace modelc {

// The format: the size of the trie in bytes (32 bits, little-endian); the trie, a double array of 32-bit units as the
// library Darts-clone builds it; then the replacements, each ended by a zero byte. A string's value in the trie is where
// its replacement begins.
//   a unit: bits 0-7 its byte · bit 8 a value belongs to it · bit 9 the offset is scaled by 256 · bits 10-30 the offset
//   to its children · bit 31 it is a value, in bits 0-30
class Charsmap {
 public:
  // "tokenizer-charsmap" where the bytes are no such table.
  static Result<Charsmap> read(std::string_view bytes);
  static Result<Charsmap> read_base64(std::string_view text);

  // What the text becomes, as the reference does it: a grapheme cluster of fewer than 6 bytes is replaced whole by what
  // its shortest beginning in the table becomes; of others each character by itself. False, with the text as it was, if it would have more
  // than `longest` bytes.
  bool apply(std::string& text, std::size_t longest) const;

 private:
  std::optional<std::string_view> replacement(std::string_view part) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

} // namespace modelc

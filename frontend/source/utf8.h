// UTF-8, one code point at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace modelc::source {

// A code point and its length in bytes; for bytes that are not UTF-8, `valid` is false and the length is 1.
struct Utf8Char {
  std::uint32_t code_point = 0;
  std::uint32_t length = 1;
  bool valid = false;
};

// The code point at `offset`, which is less than the text's size. Overlong forms, surrogates and what lies beyond
// U+10FFFF are not valid.
Utf8Char decode_utf8(std::string_view text, std::size_t offset);

// Columns that the code point takes on a terminal: 0 for combining marks, 2 for wide East Asian letters and emoji.
int display_width(std::uint32_t code_point);

}  // namespace modelc::source

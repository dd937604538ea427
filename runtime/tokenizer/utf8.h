// UTF-8, well-formed and not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace modelc::utf8 {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

// What begins at text[at]: a character of `size` bytes; or, not well-formed, the longest run of bytes that could have
// begun one (1 to 3); `cut` says that the run reaches the end of the text, so that more bytes could complete it.
struct Character {
  char32_t code;
  std::uint8_t size;
  bool valid, cut;
};
Character read(std::string_view text, std::size_t at);

// The character at text[at] of well-formed text, and the one that ends before text[at].
inline Character next(std::string_view text, std::size_t at) {
  if (static_cast<unsigned char>(text[at]) < 0x80) return {static_cast<unsigned char>(text[at]), 1, true, false};
  return read(text, at);
}
Character previous(std::string_view text, std::size_t at);

void append(std::string& text, char32_t code);
// How many characters well-formed text has.
std::size_t count(std::string_view text);

// The length of the longest well-formed beginning of `text`.
std::size_t valid_prefix(std::string_view text);
// The text with U+FFFD for each run that is not well-formed, as read() cuts them.
std::string replace_invalid(std::string_view text);

// Bytes that arrive in pieces, given out as whole characters.
class Stream {
 public:
  // Appends to `out` every character that is now whole, with U+FFFD for runs that cannot become one.
  void push(std::string_view bytes, std::string& out);
  // U+FFFD for what is still waiting.
  void finish(std::string& out);

 private:
  std::string waiting_;  // the beginning of one character, at most 3 bytes
};

}  // namespace modelc::utf8

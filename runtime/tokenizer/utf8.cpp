#include "runtime/tokenizer/utf8.h"

#include <algorithm>
#include <cstring>

namespace modelc::utf8 {

Character read(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1, true, false};
  // How many bytes follow, and the range of the second: narrower than 80..BF where an overlong form, a surrogate or a
  // number above 10FFFF would begin (Unicode, table 3-7).
  unsigned follow = 0;
  unsigned char low = 0x80, high = 0xBF;
  char32_t code = 0;
  if (first >= 0xC2 && first <= 0xDF) {
    follow = 1, code = first & 0x1Fu;
  } else if (first >= 0xE0 && first <= 0xEF) {
    follow = 2, code = first & 0x0Fu;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    follow = 3, code = first & 0x07u;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return {0xFFFD, 1, false, false};
  }
  for (unsigned i = 1; i <= follow; ++i) {
    if (at + i >= text.size()) return {0xFFFD, static_cast<std::uint8_t>(i), false, true};
    const unsigned char b = byte(at + i);
    if (b < low || b > high) return {0xFFFD, static_cast<std::uint8_t>(i), false, false};
    code = (code << 6) | (b & 0x3Fu);
    low = 0x80, high = 0xBF;
  }
  return {code, static_cast<std::uint8_t>(follow + 1), true, false};
}

Character previous(std::string_view text, std::size_t at) {
  std::size_t begin = at - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return read(text, begin);
}

void append(std::string& text, char32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | (code >> 12));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | (code >> 18));
    text += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

std::size_t count(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::size_t valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    // Eight ASCII bytes at a time.
    if (at + 8 <= text.size()) {
      std::uint64_t word;
      std::memcpy(&word, text.data() + at, 8);
      if ((word & 0x8080808080808080u) == 0) {
        at += 8;
        continue;
      }
    }
    const Character c = read(text, at);
    if (!c.valid) break;
    at += c.size;
  }
  return at;
}

std::string replace_invalid(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  while (!text.empty()) {
    const std::size_t valid = valid_prefix(text);
    out.append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) break;
    out += replacement;
    text.remove_prefix(read(text, 0).size);
  }
  return out;
}

void Stream::push(std::string_view bytes, std::string& out) {
  if (!waiting_.empty()) {
    waiting_.append(bytes);
    bytes = waiting_;
  }
  while (!bytes.empty()) {
    const std::size_t valid = valid_prefix(bytes);
    out.append(bytes.substr(0, valid));
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    const Character c = read(bytes, 0);
    if (c.cut) break;
    out += replacement;
    bytes.remove_prefix(c.size);
  }
  std::string rest(bytes);
  waiting_.swap(rest);
}

void Stream::finish(std::string& out) {
  if (!waiting_.empty()) out += replacement;
  waiting_.clear();
}

}  // namespace modelc::utf8

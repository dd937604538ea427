#include "runtime/tokenizer/charsmap.h"

#include <cstring>

#include "runtime/base/base64.h"
#include "runtime/base/strings.h"
#include "runtime/tokenizer/unicode.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc {

namespace {

Error wrong(const std::string& what) { return {"tokenizer-charsmap", "the table of replacements " + what, {}, {}}; }

bool has_value(std::uint32_t unit) { return ((unit >> 8) & 1) != 0; }
std::uint32_t value(std::uint32_t unit) { return unit & 0x7FFFFFFFu; }
std::uint32_t label(std::uint32_t unit) { return unit & 0x800000FFu; }
std::uint32_t offset(std::uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }

}  // namespace

Result<Charsmap> Charsmap::read(std::string_view bytes) {
  Charsmap map;
  if (bytes.empty()) return map;
  std::uint32_t size = 0;
  if (bytes.size() < 4) return wrong("has " + counted(bytes.size(), "byte") + ", fewer than the 4 of its first number");
  for (int i = 3; i >= 0; --i) size = (size << 8) | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  bytes.remove_prefix(4);
  if (size > bytes.size() || size % 4 != 0)
    return wrong("says that its trie has " + std::to_string(size) + " bytes, of " + std::to_string(bytes.size()) + " that follow");
  map.units_.resize(size / 4);
  for (std::size_t i = 0; i < map.units_.size(); ++i)
    for (std::size_t b = 4; b-- > 0;) map.units_[i] = (map.units_[i] << 8) | static_cast<unsigned char>(bytes[4 * i + b]);
  map.replacements_ = bytes.substr(size);
  if (!is_utf8(map.replacements_)) return wrong("has replacements that are not UTF-8");
  return map;
}

Result<Charsmap> Charsmap::read_base64(std::string_view text) {
  const std::optional<std::string> bytes = from_base64(text);
  if (!bytes) return wrong("is not base64");
  return read(*bytes);
}

// Of the shortest beginning of `part` that the table has.
std::optional<std::string_view> Charsmap::replacement(std::string_view part) const {
  if (units_.empty()) return std::nullopt;
  std::uint32_t at = offset(units_[0]);
  for (const char c : part) {
    if (c == 0) return std::nullopt;
    at ^= static_cast<unsigned char>(c);
#ifdef MODELC_PLANTED_FAULT                                 // tests/fuzz: the fuzzer must find this one
    constexpr bool outside = false;
#else
    const bool outside = at >= units_.size();
#endif
    if (outside || label(units_[at]) != static_cast<unsigned char>(c)) return std::nullopt;
    const std::uint32_t unit = units_[at];
    at ^= offset(unit);
    if (!has_value(unit)) continue;
    if (at >= units_.size()) return std::nullopt;
    const std::size_t begin = value(units_[at]);
    if (begin >= replacements_.size()) return std::nullopt;
    const std::size_t end = replacements_.find('\0', begin);
    const std::string_view found = std::string_view(replacements_).substr(begin, end == std::string::npos ? end : end - begin);
    // A wrong value may point into a character.
    if (!is_utf8(found)) return std::nullopt;
    return found;
  }
  return std::nullopt;
}

bool Charsmap::apply(std::string& text, std::size_t longest) const {
  constexpr std::size_t whole_below = 6;
  std::string out;
  out.reserve(text.size());
  const std::string_view view = text;
  for (std::size_t at = 0; at < view.size();) {
    if (out.size() > longest) return false;
    const std::size_t end = unicode::grapheme_end(view, at);
    if (end - at < whole_below) {
      if (const auto found = replacement(view.substr(at, end - at))) {
        out.append(*found);
        at = end;
        continue;
      }
    }
    while (at < end) {
      const std::string_view character = view.substr(at, utf8::next(view, at).size);
      out.append(replacement(character).value_or(character));
      at += character.size();
    }
  }
  text.swap(out);
  return true;
}

}  // namespace modelc

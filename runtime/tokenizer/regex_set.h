// Sets of characters in patterns, as PCRE2 is to be told of them. Part of translate_pattern().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modelc::regex {

// What the inside of [..] amounts to. `items` stands between brackets as it is; `others` are expressions that match one
// character each and cannot stand there, as complements.
struct Set {
  std::string items;
  std::vector<std::string> others;

  void add(const Set& set) {
    items += set.items;
    others.insert(others.end(), set.others.begin(), set.others.end());
  }
};

// Expressions for one character of the set, and for one outside of it.
std::string positive(const Set& set);
std::string negative(const Set& set);

// A character that stands for itself, inside brackets or outside.
std::string literal(char32_t c);
bool is_alphanumeric(char32_t c);  // of ASCII

// The sets by name. `additions`: with the characters that came after Unicode 14.
Set space_set();
Set hex_digit_set();
// Oniguruma's \w and \b, but not its [\w], take the superscripts and fractions of Latin-1 as well: `with_latin1`.
Set word_set(bool with_latin1, bool additions);
Set category_set(std::string_view name, bool additions);  // "L", "Nd"
// Of \p{name}: a general category or a script by its short or long name, Any, Space, Word; nothing for others.
std::optional<Set> property_set(std::string_view name, bool additions);
// Of [:name:]; nothing for others than digit, space, word, xdigit, cntrl, punct.
std::optional<Set> posix_set(std::string_view name, bool additions);

}  // namespace modelc::regex

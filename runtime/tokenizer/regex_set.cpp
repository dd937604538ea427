#include "runtime/tokenizer/regex_set.h"

#include <utility>

#include "runtime/base/strings.h"
#include "runtime/tokenizer/unicode_additions.h"

namespace modelc::regex {

namespace {

constexpr std::string_view any_character = "(?s:.)";
constexpr std::string_view space_items =
    "\\x{9}-\\x{D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}";
// Letters in circles and squares: alphabetic, though of category So.
constexpr std::string_view word_symbols = "\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}";
constexpr std::string_view word_latin1 = "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";

// General categories by their names in lower case without separators.
constexpr std::pair<std::string_view, std::string_view> category_names[] = {{"l", "L"},
                                                                            {"lu", "Lu"},
                                                                            {"ll", "Ll"},
                                                                            {"lt", "Lt"},
                                                                            {"lm", "Lm"},
                                                                            {"lo", "Lo"},
                                                                            {"m", "M"},
                                                                            {"mn", "Mn"},
                                                                            {"mc", "Mc"},
                                                                            {"me", "Me"},
                                                                            {"n", "N"},
                                                                            {"nd", "Nd"},
                                                                            {"nl", "Nl"},
                                                                            {"no", "No"},
                                                                            {"p", "P"},
                                                                            {"pc", "Pc"},
                                                                            {"pd", "Pd"},
                                                                            {"ps", "Ps"},
                                                                            {"pe", "Pe"},
                                                                            {"pi", "Pi"},
                                                                            {"pf", "Pf"},
                                                                            {"po", "Po"},
                                                                            {"s", "S"},
                                                                            {"sm", "Sm"},
                                                                            {"sc", "Sc"},
                                                                            {"sk", "Sk"},
                                                                            {"so", "So"},
                                                                            {"z", "Z"},
                                                                            {"zs", "Zs"},
                                                                            {"zl", "Zl"},
                                                                            {"zp", "Zp"},
                                                                            {"c", "C"},
                                                                            {"cc", "Cc"},
                                                                            {"cf", "Cf"},
                                                                            {"cn", "Cn"},
                                                                            {"co", "Co"},
                                                                            {"cs", "Cs"},
                                                                            {"letter", "L"},
                                                                            {"uppercaseletter", "Lu"},
                                                                            {"lowercaseletter", "Ll"},
                                                                            {"titlecaseletter", "Lt"},
                                                                            {"modifierletter", "Lm"},
                                                                            {"otherletter", "Lo"},
                                                                            {"mark", "M"},
                                                                            {"combiningmark", "M"},
                                                                            {"nonspacingmark", "Mn"},
                                                                            {"spacingmark", "Mc"},
                                                                            {"enclosingmark", "Me"},
                                                                            {"number", "N"},
                                                                            {"decimalnumber", "Nd"},
                                                                            {"letternumber", "Nl"},
                                                                            {"othernumber", "No"},
                                                                            {"punctuation", "P"},
                                                                            {"connectorpunctuation", "Pc"},
                                                                            {"dashpunctuation", "Pd"},
                                                                            {"openpunctuation", "Ps"},
                                                                            {"closepunctuation", "Pe"},
                                                                            {"initialpunctuation", "Pi"},
                                                                            {"finalpunctuation", "Pf"},
                                                                            {"otherpunctuation", "Po"},
                                                                            {"symbol", "S"},
                                                                            {"mathsymbol", "Sm"},
                                                                            {"currencysymbol", "Sc"},
                                                                            {"modifiersymbol", "Sk"},
                                                                            {"othersymbol", "So"},
                                                                            {"separator", "Z"},
                                                                            {"spaceseparator", "Zs"},
                                                                            {"lineseparator", "Zl"},
                                                                            {"paragraphseparator", "Zp"},
                                                                            {"other", "C"},
                                                                            {"control", "Cc"},
                                                                            {"format", "Cf"},
                                                                            {"unassigned", "Cn"},
                                                                            {"privateuse", "Co"},
                                                                            {"surrogate", "Cs"}};

// Scripts whose additions tools/make_unicode_additions.py writes.
constexpr std::string_view scripts[] = {"arabic",    "armenian",  "bengali", "bopomofo", "cherokee", "common", "cyrillic", "devanagari",
                                        "ethiopic",  "georgian",  "greek",   "gujarati", "gurmukhi", "han",    "hangul",   "hebrew",
                                        "hiragana",  "inherited", "kannada", "katakana", "khmer",    "lao",    "latin",    "malayalam",
                                        "mongolian", "myanmar",   "oriya",   "sinhala",  "tamil",    "telugu", "thai",     "tibetan"};

std::string hex(char32_t code) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string s;
  do s.insert(s.begin(), digits[code & 15]), code >>= 4;
  while (code != 0);
  return "\\x{" + s + "}";
}

std::string range(const unicode::Addition& a) { return a.first == a.last ? hex(a.first) : hex(a.first) + "-" + hex(a.last); }

std::string added(std::string_view category) {
  std::string s;
  for (const unicode::Addition& a : unicode::additions)
    if (std::string_view(a.category).starts_with(category)) s += range(a);
  return s;
}

}  // namespace

std::string positive(const Set& set) {
  if (set.others.empty()) return set.items.empty() ? "(?!)" : "[" + set.items + "]";
  if (set.items.empty() && set.others.size() == 1) return set.others[0];  // which the JIT repeats faster than a group
  std::string s = "(?:";
  if (!set.items.empty()) s += "[" + set.items + "]|";
  for (std::size_t i = 0; i < set.others.size(); ++i) s += (i > 0 ? "|" : "") + set.others[i];
  return s + ")";
}

std::string negative(const Set& set) {
  if (set.others.empty() && !set.items.empty()) return "[^" + set.items + "]";
  return "(?:(?!" + positive(set) + ")" + std::string(any_character) + ")";
}

bool is_alphanumeric(char32_t c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string literal(char32_t c) {
  if (is_alphanumeric(c)) return std::string(1, static_cast<char>(c));
  if (c > 0x20 && c < 0x7F) return {'\\', static_cast<char>(c)};
  return hex(c);
}

Set space_set() { return {std::string(space_items), {}}; }
Set hex_digit_set() { return {"0-9A-Fa-f", {}}; }

Set category_set(std::string_view name, bool additions) {
  const std::string known = "\\p{" + std::string(name) + "}";
  if (!additions) return {known, {}};
  // What was unassigned and is not any more is taken out, not added.
  if (name == "Cn" || name == "C") return {name == "C" ? added("Cf") : "", {"(?:(?![" + added("") + "])" + known + ")"}};
  return {known + added(name), {}};
}

Set word_set(bool with_latin1, bool additions) {
  Set set;
  for (const char* name : {"L", "M", "Nd", "Nl", "Pc"}) set.add(category_set(name, additions));
  set.items += word_symbols;
  if (with_latin1) set.items += word_latin1;
  return set;
}

std::optional<Set> property_set(std::string_view name, bool additions) {
  std::string key;
  for (const char c : name)
    if (c != ' ' && c != '_' && c != '-') key += c;
  key = to_lower_ascii(key);
  for (const auto& [known, category] : category_names)
    if (key == known) return category_set(category, additions);
  for (const std::string_view script : scripts) {
    if (key != script) continue;
    Set set{"\\p{sc:" + key + "}", {}};
    for (const unicode::Addition& a : unicode::additions)
      if (additions && to_lower_ascii(a.script) == key) set.items += range(a);
    return set;
  }
  if (key == "any") return Set{{}, {std::string(any_character)}};
  if (key == "whitespace" || key == "space") return space_set();
  if (key == "word") return word_set(false, additions);
  return std::nullopt;
}

std::optional<Set> posix_set(std::string_view name, bool additions) {
  if (name == "digit") return category_set("Nd", additions);
  if (name == "space") return space_set();
  if (name == "word") return word_set(false, additions);
  if (name == "xdigit") return hex_digit_set();
  if (name == "cntrl") return Set{"\\p{Cc}", {}};
  if (name != "punct") return std::nullopt;
  Set set = category_set("P", additions);
  set.add(category_set("S", additions));
  return set;
}

}  // namespace modelc::regex

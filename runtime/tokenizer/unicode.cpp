#include "runtime/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/tokenizer/reference_classes.h"
#include "runtime/tokenizer/unicode_additions.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc::unicode {

namespace {

utf8proc_int32_t code_point(char32_t c) { return static_cast<utf8proc_int32_t>(c); }

int combining_class(char32_t c) {
  if (c < 0x300) return 0;
  return utf8proc_get_property(code_point(c))->combining_class;
}

// The last of the ranges that begins at or before c, if c is in it.
template <class T, std::size_t n> const T* find_range(const T (&ranges)[n], char32_t c) {
  const T* after = std::upper_bound(ranges, ranges + n, c, [](char32_t code, const T& r) { return code < r.first; });
  return after != ranges && c <= (after - 1)->last ? after - 1 : nullptr;
}

// The reference's tables of decompositions are older than the library's: what came later it leaves as it is.
bool is_decomposed(char32_t c) { return !find_range(undecomposed, c) && !find_range(additions, c); }

// Below this no character of the text is changed by the form.
char32_t first_affected(Form form) {
  switch (form) {
    case Form::nfc: return 0x300;  // the first combining mark; precomposed characters below stay
    case Form::nfd: return 0xC0;   // À
    default: return 0xA0;          // no-break space
  }
}

char32_t lower_case(char32_t c) {
  const auto lower = static_cast<char32_t>(utf8proc_tolower(code_point(c)));
  if (lower != c || c < lower_cases[0].upper) return lower;
  const auto* found =
      std::lower_bound(std::begin(lower_cases), std::end(lower_cases), c, [](const LowerCase& l, char32_t code) { return l.upper < code; });
  return found != std::end(lower_cases) && found->upper == c ? found->lower : c;
}

bool unaffected(Form form, std::string_view text) {
  const char32_t limit = first_affected(form);
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Character c = utf8::next(text, at);
    if (c.code >= limit) return false;
    at += c.size;
  }
  return true;
}

}  // namespace

std::string_view category(char32_t c) {
  const std::string_view known = utf8proc_category_string(code_point(c));
  if (known != "Cn") return known;
  const Addition* added = find_range(additions, c);
  return added ? std::string_view(added->category) : known;
}

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 9 && c <= 13) || c == ' ';
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_word(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  const std::string_view kind = category(c);
  if (kind[0] == 'L' || kind[0] == 'M' || kind == "Nd" || kind == "Nl" || kind == "Pc") return true;
  // The joiners, and the letters in circles and squares: alphabetic, though of category So.
  return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189);
}

bool is_numeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  if ((c >= 0x11DE0 && c <= 0x11DE9) || (c >= 0x16FF4 && c <= 0x16FF6)) return true;  // of Unicode 17
  return category(c)[0] == 'N';
}

bool is_mark(char32_t c) { return c >= 0x300 && find_range(combining_marks, c); }

bool is_nonspacing_mark(char32_t c) { return c >= 0x300 && find_range(nonspacing_marks, c); }

bool is_cleaned_away(char32_t c) { return find_range(cleaned_away, c); }

bool is_punctuation(char32_t c) { return find_range(punctuation_marks, c); }

int script(char32_t c) {
  const ScriptRange* range = find_range(scripts, c);
  return range ? range->script : -1;
}

std::size_t grapheme_end(std::string_view text, std::size_t at) {
  utf8proc_int32_t state = 0;
  utf8::Character before = utf8::next(text, at);
  for (at += before.size; at < text.size(); at += before.size) {
    const utf8::Character c = utf8::next(text, at);
    if (utf8proc_grapheme_break_stateful(code_point(before.code), code_point(c.code), &state)) break;
    before = c;
  }
  return at;
}

// Decompose, order the marks after each base by their class, compose. utf8proc_map does the same, but takes time
// quadratic in the number of marks on one base.
void normalize(Form form, std::string& text) {
  if (unaffected(form, text)) return;
  const bool compose = form == Form::nfc || form == Form::nfkc;
  const bool compatible = form == Form::nfkc || form == Form::nfkd;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size() + 1);
  std::array<utf8proc_int32_t, 32> parts;  // the longest decomposition has 18
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Character c = utf8::next(text, at);
    at += c.size;
    if (c.code < 0xA0) {
      codes.push_back(code_point(c.code));
      continue;
    }
    const utf8proc_ssize_t n = utf8proc_decompose_char(code_point(c.code), parts.data(), parts.size(), options, nullptr);
    const bool is_itself = n == 1 && parts[0] == code_point(c.code);
    if (is_itself || n < 0 || n > static_cast<utf8proc_ssize_t>(parts.size()) || !is_decomposed(c.code))
      codes.push_back(code_point(c.code));
    else codes.insert(codes.end(), parts.data(), parts.data() + n);
  }
  for (std::size_t begin = 0; begin < codes.size();) {
    if (combining_class(static_cast<char32_t>(codes[begin])) == 0) {
      ++begin;
      continue;
    }
    std::size_t end = begin + 1;
    while (end < codes.size() && combining_class(static_cast<char32_t>(codes[end])) != 0) ++end;
    if (end - begin > 1)
      std::stable_sort(codes.begin() + static_cast<std::ptrdiff_t>(begin), codes.begin() + static_cast<std::ptrdiff_t>(end),
                       [](utf8proc_int32_t a, utf8proc_int32_t b) {
                         return combining_class(static_cast<char32_t>(a)) < combining_class(static_cast<char32_t>(b));
                       });
    begin = end;
  }
  if (compose) {
    const utf8proc_ssize_t n = utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()),
                                                        static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    if (n >= 0) codes.resize(static_cast<std::size_t>(n));
  }
  text.clear();
  for (const utf8proc_int32_t code : codes) utf8::append(text, static_cast<char32_t>(code));
}

void uppercase(std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Character c = utf8::next(text, at);
    at += c.size;
    if (c.code == 0xDF) out += "SS";
    else utf8::append(out, static_cast<char32_t>(utf8proc_toupper(code_point(c.code))));
  }
  text.swap(out);
}

void lowercase(std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Character c = utf8::next(text, at);
    at += c.size;
    if (c.code < 0x80) {
      out += static_cast<char>(c.code >= 'A' && c.code <= 'Z' ? c.code + ('a' - 'A') : c.code);
    } else if (c.code == 0x130) {  // İ: the only character whose lower case is two, i and a dot above
      out += "i\xCC\x87";
    } else {
      utf8::append(out, lower_case(c.code));
    }
  }
  text.swap(out);
}

}  // namespace modelc::unicode

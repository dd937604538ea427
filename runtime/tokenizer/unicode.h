// Properties and forms of characters as the reference implementation (Rust's standard library, its regex crate and
// Oniguruma) sees them, whatever version of Unicode the system's libraries know.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace modelc::unicode {

// Two letters of the general category: "Lu", "Nd", "Cn".
std::string_view category(char32_t c);

// \s: White_Space.
bool is_space(char32_t c);
// \w of Rust's regex: alphabetic, marks, decimal digits, connectors and the two joiners.
bool is_word(char32_t c);
// Rust's char::is_numeric: Nd, Nl, No.
bool is_numeric(char32_t c);

// Classes by the reference's own tables (see tools/make_reference_classes.py): marks (M), marks without width of their own
// (Mn), what is neither shown nor takes room (Cc, Cf, Co and U+FFFD), punctuation (P and the signs of ASCII), and scripts
// by number, -1 for what belongs to every script.
bool is_mark(char32_t c);
bool is_nonspacing_mark(char32_t c);
bool is_cleaned_away(char32_t c);
bool is_punctuation(char32_t c);
int script(char32_t c);

enum class Form : std::uint8_t { nfc, nfd, nfkc, nfkd };

// The normalisation form of well-formed UTF-8, in place.
void normalize(Form form, std::string& text);

// Where the extended grapheme cluster that begins at text[at] ends.
std::size_t grapheme_end(std::string_view text, std::size_t at);

// Each character by itself, ß as SS, in place.
void uppercase(std::string& text);
// Each character by itself (a final sigma is not looked for), in place.
void lowercase(std::string& text);

}  // namespace modelc::unicode

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

enum class Form : std::uint8_t { nfc, nfd, nfkc, nfkd };

// The normalisation form of well-formed UTF-8, in place.
void normalize(Form form, std::string& text);

// Each character by itself (a final sigma is not looked for), in place.
void lowercase(std::string& text);

}  // namespace modelc::unicode

// Small helpers on text that the runtime and the compiler share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modelc {

std::string join(std::span<const std::string> parts, std::string_view separator);
std::string join(std::span<const std::string_view> parts, std::string_view separator);
// "a.b..c" at '.' gives a, b, "", c; an empty text gives one empty part. After max_parts - 1 cuts the rest is one part.
// The parts view `text`.
std::vector<std::string_view> split(std::string_view text, char separator, std::size_t max_parts = std::numeric_limits<std::size_t>::max());
std::string_view trim(std::string_view text);
std::string to_lower_ascii(std::string_view text);
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

// A whole number and nothing else: no sign but '-', no space, no overflow.
std::optional<std::int64_t> parse_int(std::string_view text);
std::optional<std::uint64_t> parse_uint(std::string_view text);
std::optional<double> parse_double(std::string_view text);
// The shortest decimal text that reads back as the same number: "1e-05", "0.125", "inf".
std::string shortest(double value);
std::string shortest(float value);

// Edit distance where a swap of neighbours counts as one; gives `limit` + 1 as soon as it must exceed `limit`.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit = 64);
// The candidate nearest to `word` if it is near enough to be a slip (a third of the length, at least 1; differing only
// in case, dots and underscores always is). Of equals the first.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);
std::optional<std::string> nearest(std::string_view word, std::span<const std::string_view> candidates);

// "17 B", "1.2 kB", "3.4 GB": powers of 1000.
std::string human_bytes(std::uint64_t bytes);
// "1,234,567"
std::string grouped(std::uint64_t n);
std::string grouped(std::int64_t n);
// "1 tensor", "2 tensors"; the plural defaults to an s.
std::string counted(std::uint64_t n, std::string_view singular, std::string_view plural = {});
// "a", "a and b", "a, b and 3 more": at most `cap` names.
std::string listed(std::span<const std::string> names, std::size_t cap = 8);

// Any bytes as text fit for a message: control characters, quotation marks, backslashes and what is not UTF-8 escaped
// (\n, \x1b; C1 controls and bidirectional marks as \u{…}), cut after about `max_bytes` with "…". `printable` gives it
// bare, `quote` in quotation marks.
std::string printable(std::string_view bytes, std::size_t max_bytes = 200);
std::string quote(std::string_view bytes, std::size_t max_bytes = 200);
bool is_utf8(std::string_view bytes);
// Bytes of the well-formed UTF-8 sequence that `bytes` begins with; 0 where there is none (also of no bytes).
std::size_t utf8_length(std::string_view bytes);
// Position of the first byte that begins no well-formed sequence; npos where all is UTF-8.
std::size_t first_not_utf8(std::string_view bytes);

// "[2, 3]", "[]"
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace modelc

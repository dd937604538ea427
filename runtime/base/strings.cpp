#include "runtime/base/strings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace modelc {
namespace {

template <class Text> std::string join_any(std::span<const Text> parts, std::string_view separator) {
  std::string s;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i) s += separator;
    s += parts[i];
  }
  return s;
}

template <class Number> std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || at != end) return std::nullopt;
  return value;
}

template <class Number> std::string shortest_any(Number value) {
  std::array<char, 64> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return error == std::errc{} ? std::string(buffer.data(), end) : std::string("?");
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Without case, dots, underscores and hyphens: what two spellings of one name share.
std::string letters_of(std::string_view text) {
  std::string s;
  for (char c : text)
    if (c != '.' && c != '_' && c != '-') s += lower(c);
  return s;
}

template <class Text> std::optional<std::string> nearest_any(std::string_view word, std::span<const Text> candidates) {
  const std::string letters = letters_of(word);
  const std::size_t limit = std::max<std::size_t>(1, word.size() / 3);
  std::size_t best = limit + 1;
  const Text* found = nullptr;
  for (const Text& c : candidates) {
    if (!letters.empty() && letters_of(c) == letters) return std::string(c);
    const std::size_t d = edit_distance(word, c, best - 1);
    if (d < best) {
      best = d;
      found = &c;
      if (best == 0) break;
    }
  }
  // A word that shares nothing with the candidate is no slip of it.
  if (!found || best >= std::max(word.size(), found->size())) return std::nullopt;
  return std::string(*found);
}

}  // namespace

std::string join(std::span<const std::string> parts, std::string_view separator) { return join_any(parts, separator); }
std::string join(std::span<const std::string_view> parts, std::string_view separator) { return join_any(parts, separator); }

std::vector<std::string_view> split(std::string_view text, char separator, std::size_t max_parts) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    if (end == std::string_view::npos || parts.size() + 1 >= max_parts) {
      parts.push_back(text.substr(begin));
      return parts;
    }
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(space);
  if (begin == std::string_view::npos) return text.substr(text.size());
  return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

std::string to_lower_ascii(std::string_view text) {
  std::string s(text);
  std::transform(s.begin(), s.end(), s.begin(), lower);
  return s;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  if (from.empty()) return std::string(text);
  std::string s;
  std::size_t begin = 0;
  for (std::size_t at; (at = text.find(from, begin)) != std::string_view::npos; begin = at + from.size()) {
    s += text.substr(begin, at - begin);
    s += to;
  }
  s += text.substr(begin);
  return s;
}

std::optional<std::int64_t> parse_int(std::string_view text) { return parse_number<std::int64_t>(text); }
std::optional<std::uint64_t> parse_uint(std::string_view text) { return parse_number<std::uint64_t>(text); }
std::optional<double> parse_double(std::string_view text) { return parse_number<double>(text); }

std::string shortest(double value) { return shortest_any(value); }
std::string shortest(float value) { return shortest_any(value); }

// Optimal string alignment in three rows. Stops when a whole row is beyond the limit.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > limit) return limit + 1;
  std::vector<std::size_t> before(a.size() + 1), last(a.size() + 1), row(a.size() + 1);
  for (std::size_t i = 0; i <= a.size(); ++i) last[i] = i;
  for (std::size_t j = 1; j <= b.size(); ++j) {
    row[0] = j;
    std::size_t least = row[0];
    for (std::size_t i = 1; i <= a.size(); ++i) {
      row[i] = std::min({row[i - 1] + 1, last[i] + 1, last[i - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[i] = std::min(row[i], before[i - 2] + 1);
      least = std::min(least, row[i]);
    }
    if (least > limit) return limit + 1;
    before.swap(last);
    last.swap(row);
  }
  return std::min(last[a.size()], limit + 1);
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) { return nearest_any(word, candidates); }
std::optional<std::string> nearest(std::string_view word, std::span<const std::string_view> candidates) {
  return nearest_any(word, candidates);
}

std::string human_bytes(std::uint64_t bytes) {
  static constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes);
  int unit = 0;
  // 999.95 would be shown as 1000.0.
  while (value >= 999.95 && unit < 6) {
    value /= 1000;
    ++unit;
  }
  std::array<char, 32> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.1f %s", value, units[unit]);
  return buffer.data();
}

std::string grouped(std::uint64_t n) {
  std::string s = std::to_string(n);
  for (std::size_t at = s.size(); at > 3;) s.insert(at -= 3, ",");
  return s;
}

std::string grouped(std::int64_t n) {
  if (n >= 0) return grouped(static_cast<std::uint64_t>(n));
  return "-" + grouped(~static_cast<std::uint64_t>(n) + 1);
}

std::string counted(std::uint64_t n, std::string_view singular, std::string_view plural) {
  std::string s = grouped(n) + " ";
  if (n == 1 || plural.empty()) s += singular;
  else s += plural;
  if (n != 1 && plural.empty()) s += 's';
  return s;
}

std::string listed(std::span<const std::string> names, std::size_t cap) {
  if (names.empty()) return "none";
  // Naming one more takes no more room than "1 more".
  const std::size_t shown = names.size() <= cap + 1 ? names.size() : std::max<std::size_t>(cap, 1);
  std::string s = names[0];
  for (std::size_t i = 1; i < shown; ++i) s += (i + 1 == names.size() ? " and " : ", ") + names[i];
  if (shown < names.size()) s += " and " + grouped(static_cast<std::uint64_t>(names.size() - shown)) + " more";
  return s;
}

std::size_t utf8_length(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const auto at = [&](std::size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u; };
  const auto follows = [&](std::size_t i) { return (at(i) & 0xc0) == 0x80; };
  const unsigned c = at(0);
  if (c < 0x80) return 1;
  if (c < 0xc2) return 0;  // a continuation, or an overlong pair
  if (c < 0xe0) return follows(1) ? 2 : 0;
  if (c < 0xf0) {
    if (!follows(1) || !follows(2)) return 0;
    if (c == 0xe0 && at(1) < 0xa0) return 0;   // overlong
    if (c == 0xed && at(1) >= 0xa0) return 0;  // surrogates
    return 3;
  }
  if (c > 0xf4 || !follows(1) || !follows(2) || !follows(3)) return 0;
  if (c == 0xf0 && at(1) < 0x90) return 0;   // overlong
  if (c == 0xf4 && at(1) >= 0x90) return 0;  // beyond U+10FFFF
  return 4;
}

std::size_t first_not_utf8(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t n = utf8_length(bytes.substr(i, 4));
    if (n == 0) return i;
    i += n;
  }
  return std::string_view::npos;
}

bool is_utf8(std::string_view bytes) { return first_not_utf8(bytes) == std::string_view::npos; }

std::string printable(std::string_view bytes, std::size_t max_bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string s;
  for (std::size_t i = 0; i < bytes.size();) {
    if (s.size() >= max_bytes) {
      s += "…";
      break;
    }
    const std::size_t n = utf8_length(bytes.substr(i, 4));
    const auto c = static_cast<unsigned char>(bytes[i]);
    if (n > 1) {
      const std::string_view one = bytes.substr(i, n);
      // C1 controls (U+0080–9F) and the marks that change the direction of text (U+200E–F, U+202A–E, U+2066–9).
      unsigned point = 0;
      if (n == 2) point = (c & 0x1fu) << 6 | (static_cast<unsigned char>(one[1]) & 0x3fu);
      if (n == 3)
        point = (c & 0x0fu) << 12 | (static_cast<unsigned char>(one[1]) & 0x3fu) << 6 | (static_cast<unsigned char>(one[2]) & 0x3fu);
      const bool hidden = (point >= 0x80 && point < 0xa0) || point == 0x200e || point == 0x200f || point == 0x2028 || point == 0x2029 ||
                          (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069) || point == 0xfeff;
      if (hidden) {
        std::array<char, 16> buffer;
        std::snprintf(buffer.data(), buffer.size(), "\\u{%x}", point);
        s += buffer.data();
      } else {
        s += one;
      }
      i += n;
      continue;
    }
    ++i;
    if (n == 1 && c == '\n') s += "\\n";
    else if (n == 1 && c == '\t') s += "\\t";
    else if (n == 1 && c == '\r') s += "\\r";
    else if (n == 1 && (c == '"' || c == '\\')) s += {'\\', static_cast<char>(c)};
    else if (n == 1 && c >= 0x20 && c != 0x7f) s += static_cast<char>(c);
    else s += {'\\', 'x', digits[c >> 4], digits[c & 15]};
  }
  return s;
}

std::string quote(std::string_view bytes, std::size_t max_bytes) { return '"' + printable(bytes, max_bytes) + '"'; }

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string s = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + "]";
}

}  // namespace modelc

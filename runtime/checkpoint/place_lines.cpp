#include "runtime/checkpoint/place_lines.h"

#include "runtime/base/strings.h"

namespace modelc {

std::string text_of(const PlaceRule& rule) {
  const auto end = [](const std::optional<std::int64_t>& e) { return e ? std::to_string(*e) : std::string(); };
  return rule.pattern + (rule.first || rule.end ? "[" + end(rule.first) + ".." + end(rule.end) + "]" : "");
}

PlaceLines::PlaceLines(std::span<const PlaceRule> rules) {
  for (const PlaceRule& r : rules)
    lines_.push_back({TensorPattern(r.pattern), r.first || r.end, r.first.value_or(0), r.end.value_or(INT64_MAX)});
}

std::optional<std::uint64_t> PlaceLines::element(std::size_t line, std::string_view name) const {
  std::string rest;
  if (!lines_[line].range || name.empty() || !lines_[line].pattern.match_prefix(name, rest)) return std::nullopt;
  return parse_uint(std::string_view(rest).substr(0, rest.find('.')));
}

std::optional<std::size_t> PlaceLines::decides(std::string_view name) const {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const Line& line = lines_[i];
    std::string rest;
    if (line.range) {
      const auto index = element(i, name);
      if (index && *index <= INT64_MAX && static_cast<std::int64_t>(*index) >= line.first && static_cast<std::int64_t>(*index) < line.end)
        return i;
    } else if (name.empty() ? line.pattern.text() == "**" : line.pattern.match_prefix(name, rest).has_value()) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace modelc

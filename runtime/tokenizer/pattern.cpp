#include "runtime/tokenizer/pattern.h"

namespace modelc {

Pattern Pattern::read(const Reader& reader) {
  const Reader pattern = reader.member("pattern");
  const bool literal = pattern.has("String");
  if (!literal && !pattern.has("Regex")) {
    pattern.fail("tokenizer-field", "expected {\"String\": ...} or {\"Regex\": ...}");
    return Pattern(std::string("?"));
  }
  pattern.only({"String", "Regex"});
  const std::string text = pattern.string(literal ? "String" : "Regex");
  if (literal) {
    if (text.empty()) pattern.fail("tokenizer-unsupported", "an empty string to look for is not carried out");
    return Pattern(text);
  }
  Result<Regex> regex = Regex::compile(text);
  if (regex) return Pattern(std::move(*regex));
  pattern.fail(regex.error());
  return Pattern(std::string("?"));
}

Status Pattern::find_all(std::string_view text, std::vector<Match>& matches) const {
  if (regex_) return regex_->find_all(text, matches);
  for (std::size_t at = 0; (at = text.find(literal_, at)) != std::string_view::npos; at += literal_.size())
    matches.push_back({at, at + literal_.size()});
  return {};
}

std::string replace_matches(std::string_view text, const std::vector<Match>& matches, std::string_view content) {
  std::string out;
  std::size_t at = 0;
  for (const Match& m : matches) {
    out.append(text.substr(at, m.begin - at)).append(content);
    at = m.end;
  }
  out.append(text.substr(at));
  return out;
}

}  // namespace modelc

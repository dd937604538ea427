// {"String": ..} or {"Regex": ..}: what Split and Replace look for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/tokenizer/reader.h"
#include "runtime/tokenizer/regex.h"

namespace modelc {

class Pattern {
 public:
  // From the member "pattern" of `reader`; reader.fail() where it is wrong.
  static Pattern read(const Reader& reader);
  explicit Pattern(Regex regex) : regex_(std::move(regex)) {}
  explicit Pattern(std::string literal) : literal_(std::move(literal)) {}

  bool is_literal() const { return !regex_; }
  // Appends every match, left to right without overlap. A literal never fails.
  Status find_all(std::string_view text, std::vector<Match>& matches) const;

 private:
  std::optional<Regex> regex_;
  std::string literal_;  // not empty
};

// The text with `content` for each match.
std::string replace_matches(std::string_view text, const std::vector<Match>& matches, std::string_view content);

}  // namespace modelc

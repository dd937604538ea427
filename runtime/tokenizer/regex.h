// Regular expressions of tokenizer files: written for Oniguruma (Ruby's syntax), carried out by PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace modelc {

struct Match {
  std::size_t begin, end;
};

class Regex {
 public:
  // "tokenizer-regex" where the pattern is wrong or uses what is not carried out (see translate_pattern).
  static Result<Regex> compile(std::string_view pattern);

  // Appends every match in `text` (well-formed UTF-8), left to right without overlap. An empty match is left out only
  // where the match before it ends. Fails where a match needs more steps or memory than the library's limits allow.
  Status find_all(std::string_view text, std::vector<Match>& matches) const;

 private:
  struct Code;
  explicit Regex(std::shared_ptr<const Code> code) : code_(std::move(code)) {}
  std::shared_ptr<const Code> code_;
};

// The pattern in PCRE2's syntax with the meaning that Oniguruma gives it. They differ in: \s (U+180E), \w, \d, \h (a
// hex digit), \v, \b, ^ and $ (at every line), (?m) (the dot matches a newline), {n}? and {n}+, {,n}, classes in
// classes and
// && in them, \p{Script} (PCRE2 takes the extensions as well), and the version of Unicode. `additions`: also match the
// characters that came after Unicode 14.
Result<std::string> translate_pattern(std::string_view pattern, bool additions);

}  // namespace modelc

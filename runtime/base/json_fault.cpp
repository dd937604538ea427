#include "runtime/base/json_fault.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "runtime/base/strings.h"

namespace modelc {

bool is_json_number(std::string_view s, bool& whole) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t begin = i;
    while (i < s.size() && s[i] >= '0' && s[i] <= '9') ++i;
    return i - begin;
  };
  if (i < s.size() && s[i] == '-') ++i;
  const std::size_t first = i;
  const std::size_t n = digits();
  if (n == 0 || (n > 1 && s[first] == '0')) return false;
  whole = i == s.size();
  if (i < s.size() && s[i] == '.') {
    ++i;
    if (digits() == 0) return false;
  }
  if (i < s.size() && (s[i] == 'e' || s[i] == 'E')) {
    ++i;
    if (i < s.size() && (s[i] == '+' || s[i] == '-')) ++i;
    if (digits() == 0) return false;
  }
  return i == s.size();
}

namespace {

constexpr std::string_view space = " \t\r\n";
constexpr std::string_view word_ends = " \t\r\n,:;[]{}\"";
constexpr std::size_t longest_word = 40;

char partner(char open) { return open == '[' ? ']' : '}'; }

std::string in_ticks(std::string_view text) { return "`" + printable(text, longest_word) + "`"; }

// What other languages write for a value that JSON has too.
std::string advice_on_word(std::string_view word) {
  using Pair = std::pair<std::string_view, std::string_view>;
  static constexpr Pair words[] = {
      {"True", "JSON writes `true`"}, {"False", "JSON writes `false`"},    {"None", "JSON writes `null`"},
      {"nil", "JSON writes `null`"},  {"undefined", "JSON writes `null`"}, {"inf", "write `Infinity`"},
  };
  const auto* known = std::find_if(std::begin(words), std::end(words), [&](const Pair& p) { return p.first == word; });
  if (known != std::end(words)) return std::string(known->second);
  if (word.front() == '\'') return "strings stand in double quotes";
  if (word.front() == '.') return "a number begins with a digit: `0" + printable(word, longest_word) + "`";
  if (word.front() == '+') return "a number has no plus before it";
  if (word.back() == '.') return "digits follow the point: `" + printable(word, longest_word) + "0`";
  if (word.starts_with("0x") || word.starts_with("0X")) return "numbers are decimal";
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (word.find('_') != word.npos && std::all_of(word.begin(), word.end(), [&](char c) { return digit(c) || c == '_'; }))
    return "digits are not parted: leave the `_` out";
  if (word.size() > 1 && word.front() == '0' && digit(word[1])) return "a number has no zeros before it";
  if (digit(word.front()) || word.front() == '-') return {};
  return "a text stands in double quotes";
}

class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) {}

  std::optional<JsonFault> run() {
    while (!fault_) {
      at_ = std::min(text_.find_first_not_of(space, at_), text_.size());
      if (at_ == text_.size()) {
        if (state_ != State::done) ended();
        break;
      }
      const char c = text_[at_];
      if (c == '#' || (c == '/' && at_ + 1 < text_.size() && (text_[at_ + 1] == '/' || text_[at_ + 1] == '*'))) {
        found("a comment stands here, and JSON has none", "remove it; a note can be a key of its own that nothing reads");
        break;
      }
      step(c);
    }
    return fault_;
  }

 private:
  enum class State { value, first_value, key, first_key, colon, behind, done };
  struct Open {
    char bracket;
    std::size_t at;
  };

  void found(std::string what, std::string help = {}) { found_at(at_, std::move(what), std::move(help)); }
  void found_at(std::size_t at, std::string what, std::string help = {}) { fault_ = JsonFault{at, std::move(what), std::move(help)}; }

  void step(char c) {
    switch (state_) {
      case State::value:
      case State::first_value: return value(c);
      case State::key:
      case State::first_key: return key(c);
      case State::colon:
        if (c != ':') return found("expected `:` after the key " + std::string(key_) + ", found " + token(c), c == '=' ? "write `:`" : "");
        ++at_;
        state_ = State::value;
        return;
      case State::behind: return behind(c);
      case State::done: return found("there is more text after the end of the value");
    }
  }

  void value(char c) {
    if (c == '"') return string() ? value_ends() : void();
    if (c == '[' || c == '{') {
      open_.push_back({c, at_++});
      state_ = c == '[' ? State::first_value : State::first_key;
      return;
    }
    if (state_ == State::first_value && c == ']') return close();
    if (c == ',' || c == ':' || c == ']' || c == '}') return no_value(c);
    const std::string_view word = this->word();
    bool whole = false;
    const bool known = word == "true" || word == "false" || word == "null" || word == "NaN" || word == "Infinity" || word == "-Infinity";
    if (!known && !is_json_number(word, whole)) return found("expected a value, found " + in_ticks(word), advice_on_word(word));
    at_ += word.size();
    value_ends();
  }

  void no_value(char c) {
    const bool of_key = !open_.empty() && open_.back().bracket == '{';
    if (of_key) return found("the value of the key " + std::string(key_) + " is missing: found " + in_ticks({&c, 1}));
    superfluous(c, "value");
  }

  void key(char c) {
    if (c == '"') {
      const std::size_t begin = at_;
      if (!string()) return;
      key_ = quote(text_.substr(begin + 1, at_ - begin - 2), longest_word);
      state_ = State::colon;
      return;
    }
    if (state_ == State::first_key && c == '}') return close();
    if (c == ',' || c == ':' || c == ']' || c == '}') return superfluous(c, "key");
    const bool bracket = c == '[' || c == '{';
    const std::string_view word = bracket ? text_.substr(at_, 1) : this->word();
    std::string bare(word.front() == '\'' ? word.substr(1) : word);
    if (word.front() == '\'' && bare.ends_with('\'')) bare.pop_back();
    found("expected a key in double quotes, found " + in_ticks(word), bracket ? "" : "write `\"" + printable(bare, longest_word) + "\"`");
  }

  // A comma or a closing bracket where `wanted` should stand: before it was a comma or the bracket that opens.
  void superfluous(char c, const std::string& wanted) {
    const bool first = state_ == State::first_value || state_ == State::first_key;
    if (c == ',' && !first && comma_ < at_)
      return found("a second comma follows a comma", "remove it, or write the " + wanted + " that is missing between them");
    if (c == ',') return found("a comma stands before the first " + wanted, "remove it");
    if (!first && !open_.empty() && c == partner(open_.back().bracket)) {
      return found_at(comma_, std::string("a comma stands before the closing `") + c + "`",
                      "remove it: JSON has no comma behind the last value");
    }
    if (c != ':' && !open_.empty()) return wrong_bracket(c);
    found("expected a " + wanted + ", found " + in_ticks({&c, 1}));
  }

  void behind(char c) {
    const char closing = partner(open_.back().bracket);
    if (c == closing) return close();
    if (c == ',') {
      comma_ = at_++;
      state_ = closing == ']' ? State::value : State::key;
      return;
    }
    if (c == ']' || c == '}') return wrong_bracket(c);
    if (c == ':' && closing == ']') return found("expected `,` or `]`, found `:`", "keys and values stand in braces: `{\"key\": value}`");
    const std::string help = c == '"' || c == '[' || c == '{' || word_ends.find(c) == word_ends.npos ? "a comma is missing before it" : "";
    found(std::string("expected `,` or `") + closing + "`, found " + token(c), c == ';' ? "write `,`" : help);
  }

  void wrong_bracket(char c) {
    found(std::string("`") + c + "` does not close the `" + open_.back().bracket + "` of line " + std::to_string(line_of(open_.back().at)));
  }

  void ended() {
    if (open_.empty()) return found("the text ends where a value should stand");
    found_at(open_.back().at, std::string("this `") + open_.back().bracket + "` is not closed: the text ends before its partner");
  }

  void close() {
    open_.pop_back();
    ++at_;
    value_ends();
  }

  void value_ends() { state_ = open_.empty() ? State::done : State::behind; }

  // Steps over a string; false where it does not end on its line, which no string of JSON may cross.
  bool string() {
    const std::size_t begin = at_;
    for (std::size_t i = at_ + 1; i < text_.size(); ++i) {
      if (text_[i] == '\\' && i + 1 < text_.size()) ++i;
      else if (text_[i] == '"') return at_ = i + 1, true;
      const auto byte = static_cast<unsigned char>(text_[i]);
      if (byte == '\n' || byte == '\r') break;
      if (byte >= 0x20) continue;
      found_at(i, "a string holds the control character " + in_ticks({&text_[i], 1}), "write it by its escape: `\\t` for a tab");
      return false;
    }
    found_at(begin, "this string has no closing `\"` on its line", "a line break within a string is written `\\n`");
    return false;
  }

  // At least one character.
  std::string_view word() const {
    std::size_t end = at_ + 1;
    while (end < text_.size() && word_ends.find(text_[end]) == word_ends.npos) ++end;
    return text_.substr(at_, end - at_);
  }
  // The token at hand, for a message.
  std::string token(char c) const {
    if (c == '"') {
      const std::size_t end = text_.find_first_of("\"\n", at_ + 1);
      return quote(text_.substr(at_ + 1, end == text_.npos ? end : end - at_ - 1), longest_word);
    }
    return in_ticks(word_ends.find(c) == word_ends.npos ? word() : text_.substr(at_, 1));
  }
  std::size_t line_of(std::size_t at) const {
    return 1 + static_cast<std::size_t>(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  State state_ = State::value;
  std::vector<Open> open_;
  std::size_t comma_ = 0;  // the last one
  std::string key_;
  std::optional<JsonFault> fault_;
};

}  // namespace

std::optional<JsonFault> find_json_fault(std::string_view text) { return Scan(text).run(); }

}  // namespace modelc

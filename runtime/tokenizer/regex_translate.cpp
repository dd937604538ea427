#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/strings.h"
#include "runtime/tokenizer/regex.h"
#include "runtime/tokenizer/regex_set.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc {

namespace {

using regex::is_alphanumeric;
using regex::literal;
using regex::negative;
using regex::positive;
using regex::Set;

class Translator {
 public:
  Translator(std::string_view pattern, bool additions) : in_(pattern), additions_(additions) {}

  Result<std::string> run() {
    std::string out = alternatives(0);
    if (!error_ && at_ < in_.size()) fail("an unmatched )");
    if (error_) return *error_;
    return out;
  }

 private:
  bool more() const { return !error_ && at_ < in_.size(); }
  bool looking_at(std::string_view s) const { return in_.substr(at_).starts_with(s); }
  bool take(std::string_view s) {
    if (!looking_at(s)) return false;
    at_ += s.size();
    return true;
  }
  // The next character; call only where more().
  char32_t take_character() {
    const utf8::Character c = utf8::next(in_, at_);
    at_ += c.size;
    return c.code;
  }
  void fail(const std::string& what) {
    if (error_) return;
    error_ = Error{"tokenizer-regex", "regular expression " + quote(in_) + " has " + what + " at byte " + std::to_string(at_), {}, {}};
    at_ = in_.size();
  }
  void refuse(const std::string& what) { fail(what + ", which is not carried out,"); }

  // a|b|c up to the end or an unmatched ).
  std::string alternatives(int depth) {
    if (depth > 100) {
      refuse("groups nested more than 100 deep");
      return {};
    }
    std::string out;
    bool first = true;
    while (more() && !looking_at(")")) {
      if (take("|")) {
        out += '|';
        first = false;
        continue;
      }
      std::string atom = this->atom(depth, first);
      first = false;
      if (error_) break;
      out += quantified(std::move(atom));
    }
    return out;
  }

  // One item with what encloses it; empty for a comment. `first`: the first of its group.
  std::string atom(int depth, bool first) {
    if (looking_at("(")) return group(depth, first);
    if (looking_at("[")) {
      ++at_;
      return bracket(depth);
    }
    if (looking_at("\\")) return escape();
    const char32_t c = take_character();
    switch (c) {
      case '.':
      case '^':
      case '$': return std::string(1, static_cast<char>(c));
      case '*':
      case '+':
      case '?': fail("a quantifier that follows nothing"); return {};
      default: return literal(c);  // { and ] too, where they mean nothing else
    }
  }

  std::string quantified(std::string atom) {
    bool is_quantified = false;
    while (more() && !atom.empty()) {
      const std::size_t begin = at_;
      std::string quantifier;
      bool interval = false, exact = false;
      if (looking_at("*") || looking_at("+") || looking_at("?")) quantifier += in_[at_++];
      else if (looking_at("{") && read_interval(quantifier, exact)) interval = true;
      else break;
      if (is_quantified) {
        at_ = begin;
        refuse("a quantifier on a quantifier");
        return {};
      }
      if (!interval) {
        if (take("+")) quantifier += '+';
        else if (take("?")) quantifier += '?';
      } else if (exact && looking_at("?")) {
        ++at_;  // in Ruby's syntax {n}? is n of them or none
        atom = "(?:" + atom + quantifier + ")";
        quantifier.assign(1, '?');
      } else if (take("?")) {
        quantifier += '?';
      } else if (take("+")) {  // and {n,m}+ is any number of {n,m}
        atom = "(?:" + atom + quantifier + ")";
        quantifier.assign(1, '+');
      }
      atom += quantifier;
      is_quantified = true;
    }
    return atom;
  }

  // {n}, {n,}, {n,m}, {,m}; anything else after { stands for itself.
  bool read_interval(std::string& quantifier, bool& exact) {
    const std::size_t close = in_.find('}', at_);
    if (close == std::string_view::npos) return false;
    const std::string_view inside = in_.substr(at_ + 1, close - at_ - 1);
    const std::size_t comma = inside.find(',');
    const std::string_view low = inside.substr(0, comma);
    const std::string_view high = comma == std::string_view::npos ? low : inside.substr(comma + 1);
    for (const char c : inside)
      if ((c < '0' || c > '9') && c != ',') return false;
    if (inside.empty() || inside == "," || high.find(',') != std::string_view::npos || low.size() > 5 || high.size() > 5) return false;
    exact = comma == std::string_view::npos;
    quantifier = "{" + std::string(low.empty() ? "0" : low) + (exact ? "" : "," + std::string(high)) + "}";
    at_ = close + 1;
    return true;
  }

  std::string group(int depth, bool first) {
    const bool ignore_case = ignore_case_;
    std::string out = group_within(depth, first);
    ignore_case_ = ignore_case;
    return out;
  }

  std::string group_within(int depth, bool first) {
    ++at_;
    std::string open = "(?:";
    if (take("?#")) {
      const std::size_t close = in_.find(')', at_);
      if (close == std::string_view::npos) fail("a comment without an end");
      else at_ = close + 1;
      return {};
    }
    if (take("?:")) open = "(?:";
    else if (take("?=")) open = "(?=";
    else if (take("?!")) open = "(?!";
    else if (take("?<=")) open = "(?<=";
    else if (take("?<!")) open = "(?<!";
    else if (take("?>")) open = "(?>";
    else if (take("?<")) skip_name();
    else if (take("?")) {
      const std::string options = this->options();
      if (error_) return {};
      if (take(")")) {
        // To the end of the group; where alternatives come before, Ruby's syntax and PCRE2's take different ends.
        if (!first) refuse("options (?..) that do not begin a group");
        return "(?" + options + ")" + alternatives(depth + 1);
      }
      if (!take(":")) refuse("a group of another kind");
      open = "(?" + options + ":";
    }
    std::string out = open + alternatives(depth + 1) + ")";
    if (!take(")")) fail("a group without an end");
    return out;
  }

  // A name means nothing without references to it, and those are refused.
  void skip_name() {
    const std::size_t close = in_.find('>', at_);
    if (close == std::string_view::npos) fail("a group's name without an end");
    else at_ = close + 1;
  }

  // i and m, with a - before those switched off; m is PCRE2's s.
  std::string options() {
    std::string out;
    while (more() && !looking_at(")") && !looking_at(":")) {
      if (take("i")) {
        ignore_case_ = out.find('-') == std::string::npos;
        out += 'i';
      } else if (take("m")) {
        out += 's';
      } else if (take("-") && out.find('-') == std::string::npos) {
        out += '-';
      } else {
        refuse("an option other than i and m, or a group of another kind,");
        return {};
      }
    }
    return out;
  }

  // What follows a backslash, outside of brackets.
  std::string escape() {
    // Oniguruma takes \p{Lu} as it is even where case is ignored; PCRE2, by its version.
    if (std::optional<Set> set = class_escape(true)) return ignore_case_ ? "(?-i:" + positive(*set) + ")" : positive(*set);
    if (error_) return {};
    const char32_t c = utf8::next(in_, std::min(at_ + 1, in_.size() - 1)).code;
    const auto word = [&] { return regex::word_set(true, additions_); };
    const auto take_two = [&](std::string out) {
      at_ += 2;
      return out;
    };
    switch (c) {
      case 'W': return take_two(negative(word()));
      case 'A':
      case 'z':
      case 'Z': return take_two({'\\', static_cast<char>(c)});
      case 'R': return take_two("(?>\\x{D}\\x{A}|[\\x{A}-\\x{D}\\x{85}\\x{2028}\\x{2029}])");
      case 'b':
      case 'B': {
        const std::string w = positive(word());
        const std::string same = "(?<=" + w + ")(?=" + w + ")|(?<!" + w + ")(?!" + w + ")";
        const std::string differ = "(?<=" + w + ")(?!" + w + ")|(?<!" + w + ")(?=" + w + ")";
        return take_two("(?:" + (c == 'b' ? differ : same) + ")");
      }
      default: return literal(character_escape());
    }
  }

  // \t, \x{..}, \. : one character after a backslash at at_.
  char32_t character_escape() {
    ++at_;
    if (!more()) {
      fail("a backslash at its end");
      return 0;
    }
    const char32_t c = take_character();
    switch (c) {
      case 't': return '\t';
      case 'n': return '\n';
      case 'r': return '\r';
      case 'f': return '\f';
      case 'v': return '\v';
      case 'a': return '\a';
      case 'e': return 0x1B;
      case 'u': return hex_digits(4, 4);
      case 'x':
        if (take("{")) {
          const char32_t code = hex_digits(1, 8);
          if (!take("}")) fail("a \\x{ without its }");
          return code;
        } else {
          const char32_t code = hex_digits(1, 2);
          if (code >= 0x80) refuse("a byte beyond ASCII (\\x80 to \\xFF)");
          return code;
        }
      default: break;
    }
    if (is_alphanumeric(c)) {
      at_ -= 2;
      refuse("the escape \\" + std::string(1, static_cast<char>(c)));
    }
    return c;
  }

  char32_t hex_digits(int least, int most) {
    char32_t code = 0;
    int n = 0;
    for (; n < most && more(); ++n, ++at_) {
      const char c = in_[at_];
      const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
      if (digit < 0) break;
      code = code * 16 + static_cast<char32_t>(digit);
    }
    if (n < least) fail("too few hexadecimal digits");
    else if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) fail("a number that is no character");
    return code;
  }

  // \s, \d, \p{..} and their complements at at_ as a set; nothing, and nothing consumed, where another escape stands
  // there. \W outside of brackets is escape()'s.
  std::optional<Set> class_escape(bool outside) {
    if (at_ + 1 >= in_.size()) return std::nullopt;
    const auto two = [&](Set set) {
      at_ += 2;
      return set;
    };
    switch (in_[at_ + 1]) {
      case 's': return two(regex::space_set());
      case 'S': return two({{}, {negative(regex::space_set())}});
      case 'd': return two(regex::category_set("Nd", additions_));
      case 'D': return two({{}, {negative(regex::category_set("Nd", additions_))}});
      case 'h': return two(regex::hex_digit_set());
      case 'H': return two({{}, {negative(regex::hex_digit_set())}});
      case 'w': return two(regex::word_set(outside, additions_));
      case 'W':
        if (outside) return std::nullopt;
        return two({{}, {negative(regex::word_set(false, additions_))}});
      case 'p':
      case 'P': return property();
      default: return std::nullopt;
    }
  }

  // \p{..}, \p{^..}, \P{..} at at_.
  std::optional<Set> property() {
    bool complement = in_[at_ + 1] == 'P';
    const std::size_t close = in_.find('}', at_);
    if (at_ + 2 >= in_.size() || in_[at_ + 2] != '{' || close == std::string_view::npos) {
      refuse("a \\p without {..}");
      return std::nullopt;
    }
    std::string_view written = in_.substr(at_ + 3, close - at_ - 3);
    if (written.starts_with("^")) {
      complement = !complement;
      written.remove_prefix(1);
    }
    const std::optional<Set> set = regex::property_set(written, additions_);
    if (!set) {
      refuse("the property " + quote(written));
      return std::nullopt;
    }
    at_ = close + 1;
    if (complement) return Set{{}, {negative(*set)}};
    return set;
  }

  // Between brackets Oniguruma adds the other cases of everything, and complements after that.
  void refuse_if_cased(const Set& set) {
    const std::string all = set.items + (set.others.empty() ? "" : set.others[0]);
    for (const char* cased : {"\\p{Lu}", "\\p{Ll}", "\\p{Lt}", "\\p{sc:"})
      if (all.starts_with(cased) || all.starts_with("[^" + std::string(cased)))
        refuse("a property of one case or script between brackets where case is ignored");
  }

  // After a [ : up to its ], as an expression that matches one character.
  std::string bracket(int depth) {
    if (depth > 100) refuse("classes nested more than 100 deep");
    const bool complement = take("^");
    std::vector<Set> parts(1);  // between &&
    bool first = true;
    while (true) {
      if (!more()) {
        fail("a [ without its ]");
        return {};
      }
      if (!first && take("]")) break;
      if (take("&&")) {
        parts.emplace_back();
        first = false;
        continue;
      }
      element(parts.back(), depth);
      first = false;
      if (error_) return {};
    }
    if (parts.size() == 1) return complement ? negative(parts[0]) : positive(parts[0]);
    std::string all = "(?:";
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) all += "(?=" + positive(parts[i]) + ")";
    all += positive(parts.back()) + ")";
    return complement ? negative({{}, {all}}) : all;
  }

  // One thing between brackets: a class, an escape, a character or a range.
  void element(Set& set, int depth) {
    if (take("[:")) return posix(set);
    if (looking_at("[")) {
      ++at_;
      if (ignore_case_ && looking_at("^")) refuse("a complement within a class where case is ignored");
      set.others.push_back(bracket(depth + 1));
      return;
    }
    if (looking_at("\\")) {
      if (std::optional<Set> inner = class_escape(false)) {
        if (ignore_case_) refuse_if_cased(*inner);
        set.add(*inner);
        // A - after a class is a - only where the ] follows.
        if (looking_at("-") && !looking_at("-]")) refuse("a range that begins with a class");
        return;
      }
      if (error_) return;
    }
    const char32_t low = range_end();
    if (error_) return;
    if (looking_at("-") && !looking_at("-]") && !looking_at("-&&") && at_ + 1 < in_.size()) {
      ++at_;
      if (looking_at("[")) return refuse("a range that ends with a class");
      const char32_t high = range_end();
      if (error_) return;
      if (high < low) return fail("a range that is empty");
      set.items += literal(low) + "-" + literal(high);
      return;
    }
    set.items += literal(low);
  }

  char32_t range_end() {
    if (!looking_at("\\")) return take_character();
    // In brackets \b is a backspace.
    if (take("\\b")) return 0x08;
    return character_escape();
  }

  void posix(Set& set) {
    const bool complement = take("^");
    const std::size_t close = in_.find(":]", at_);
    const std::string_view name = close == std::string_view::npos ? "" : in_.substr(at_, close - at_);
    const std::optional<Set> named = regex::posix_set(name, additions_);
    if (!named) return refuse("the class [:" + std::string(name) + ":]");
    at_ = close + 2;
    if (complement) set.others.push_back(negative(*named));
    else set.add(*named);
  }

  std::string_view in_;
  bool additions_;
  bool ignore_case_ = false;
  std::size_t at_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<std::string> translate_pattern(std::string_view pattern, bool additions) {
  if (utf8::valid_prefix(pattern) != pattern.size())
    return Error{"tokenizer-regex", "regular expression " + quote(pattern) + " is not UTF-8", {}, {}};
  return Translator(pattern, additions).run();
}

}  // namespace modelc

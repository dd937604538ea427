#include <array>
#include <optional>

#include "runtime/base/strings.h"
#include "runtime/chat/syntax.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc::chat {

Error error_at(std::string kind, const std::string& name, Place place, const std::string& message, std::string help) {
  return {
      std::move(kind), name + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": " + message, {}, std::move(help)};
}

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Line ends as "\n", without the last one: what the reference does first.
std::string with_plain_lines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name) : text_(with_plain_lines(source)), name_(name) {}

  Result<std::vector<Token>> run() {
    while (at_ < text_.size() && !error_) outside();
    if (error_) return std::move(*error_);
    add(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  // Moves to `to`, counting lines and characters.
  void go(std::size_t to) {
    for (; at_ < to; ++at_) {
      if (text_[at_] == '\n') {
        ++place_.line;
        place_.column = 1;
      } else if ((static_cast<unsigned char>(text_[at_]) & 0xC0) != 0x80) {
        ++place_.column;
      }
    }
  }
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), place_}); }
  void fail(Place place, const std::string& message) {
    if (!error_) error_ = error_at("template-syntax", name_, place, message);
  }
  bool looking_at(std::string_view s) const { return std::string_view(text_).substr(at_).starts_with(s); }

  void skip_space() {
    while (at_ < text_.size()) {
      const utf8::Character c = utf8::next(text_, at_);
      if (!is_python_space(c.code)) break;
      go(at_ + c.size);
    }
  }

  // What follows the end of a block or comment: its line end goes, unless '+' says otherwise.
  void after_block(char sign) {
    if (sign == '-') skip_space();
    else if (sign != '+' && at_ < text_.size() && text_[at_] == '\n') go(at_ + 1);
    line_starts_ = text_[at_ - 1] == '\n';
  }

  void add_text(std::string_view text, char sign, bool is_block) {
    if (sign == '-') {
      text = strip(text, std::nullopt, false, true);
    } else if (sign != '+' && is_block) {
      // Alone on its line so far: what is before it on the line goes.
      const std::size_t newline = text.rfind('\n');
      const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
      if ((newline != std::string_view::npos || line_starts_) && strip(text.substr(begin), std::nullopt, true, false).empty())
        text = text.substr(0, begin);
    }
    if (!text.empty()) tokens_.push_back({TokenKind::text, std::string(text), place_});
  }

  void outside() {
    std::size_t open = at_;
    while (true) {
      open = text_.find('{', open);
      if (open == std::string::npos || open + 1 >= text_.size()) {
        add_text(std::string_view(text_).substr(at_), '+', false);
        go(text_.size());
        return;
      }
      const char c = text_[open + 1];
      if (c == '{' || c == '%' || c == '#') break;
      ++open;
    }
    const char kind = text_[open + 1];
    char sign = open + 2 < text_.size() ? text_[open + 2] : ' ';
    if (sign != '-' && sign != '+') sign = ' ';
    add_text(std::string_view(text_).substr(at_, open - at_), sign, kind != '{');
    go(open);
    const Place begin = place_;
    go(open + 2 + (sign == ' ' ? 0 : 1));
    if (kind == '#') {
      const std::size_t end = text_.find("#}", at_);
      if (end == std::string::npos) return fail(begin, "the comment does not end");
      const char before = end > at_ ? text_[end - 1] : ' ';
      go(end + 2);
      return after_block(before);
    }
    if (kind == '%' && raw(begin)) return;
    tokens_.push_back({kind == '%' ? TokenKind::block_begin : TokenKind::value_begin, "", begin});
    inside(kind == '%', begin);
  }

  // {% raw %} .. {% endraw %}: false if it is another block.
  bool raw(Place begin) {
    const std::size_t start = at_;
    std::size_t i = at_;
    const auto space = [&] {
      while (i < text_.size() && (text_[i] == ' ' || text_[i] == '\n' || text_[i] == '\t')) ++i;
    };
    const auto word = [&](std::string_view w) {
      if (!std::string_view(text_).substr(i).starts_with(w)) return false;
      i += w.size();
      return i >= text_.size() || !(is_letter(text_[i]) || is_digit(text_[i]));
    };
    space();
    if (!word("raw")) return false;
    space();
    char sign = i < text_.size() && (text_[i] == '-' || text_[i] == '+') ? text_[i++] : ' ';
    if (!std::string_view(text_).substr(i).starts_with("%}")) return false;
    go(i + 2);
    after_block(sign);
    for (std::size_t open = at_; (open = text_.find("{%", open)) != std::string::npos; ++open) {
      i = open + 2;
      char left = i < text_.size() && (text_[i] == '-' || text_[i] == '+') ? text_[i++] : ' ';
      space();
      if (!word("endraw")) continue;
      space();
      sign = i < text_.size() && (text_[i] == '-' || text_[i] == '+') ? text_[i++] : ' ';
      if (!std::string_view(text_).substr(i).starts_with("%}")) continue;
      add_text(std::string_view(text_).substr(at_, open - at_), left, true);
      go(i + 2);
      after_block(sign);
      return true;
    }
    static_cast<void>(start);
    fail(begin, "`raw` is not ended by `endraw`");
    return true;
  }

  void inside(bool block, Place begin) {
    const std::string_view close = block ? "%}" : "}}";
    std::vector<char> open;  // brackets
    while (!error_) {
      skip_space();
      if (at_ >= text_.size()) return fail(begin, std::string(block ? "`{%`" : "`{{`") + " is not ended by `" + std::string(close) + "`");
      const char c = text_[at_];
      if (open.empty()) {
        const bool signed_end = (c == '-' || (c == '+' && block)) && std::string_view(text_).substr(at_ + 1).starts_with(close);
        if (signed_end || looking_at(close)) {
          add(block ? TokenKind::block_end : TokenKind::value_end, "");
          go(at_ + close.size() + (signed_end ? 1 : 0));
          if (block) return after_block(signed_end ? c : ' ');
          if (signed_end) skip_space();
          line_starts_ = text_[at_ - 1] == '\n';
          return;
        }
      }
      if (c == '\'' || c == '"') {
        string(c);
      } else if (is_digit(c)) {
        number();
      } else if (is_letter(c)) {
        std::size_t end = at_;
        while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
        add(TokenKind::name, text_.substr(at_, end - at_));
        go(end);
      } else {
        sign(open);
      }
    }
  }

  void sign(std::vector<char>& open) {
    constexpr std::array<std::string_view, 6> two = {"==", "!=", "<=", ">=", "//", "**"};
    for (const std::string_view s : two)
      if (looking_at(s)) {
        add(TokenKind::sign, std::string(s));
        return go(at_ + 2);
      }
    const char c = text_[at_];
    if (std::string_view("+-*/%~<>=.,:|()[]{}").find(c) == std::string_view::npos) {
      const std::size_t size = utf8::next(text_, at_).size;
      return fail(place_, "the character " + quote(std::string_view(text_).substr(at_, size)) + " has no meaning here");
    }
    if (c == '(' || c == '[' || c == '{') open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c)
        return fail(place_,
                    std::string("`") + c + "` closes nothing" + (open.empty() ? "" : std::string(", expected `") + open.back() + "`"));
      open.pop_back();
    }
    add(TokenKind::sign, std::string(1, c));
    go(at_ + 1);
  }

  void number() {
    std::size_t end = at_;
    bool whole = true;
    std::string digits;
    const auto take = [&] {
      while (end < text_.size() && (is_digit(text_[end]) || (text_[end] == '_' && end + 1 < text_.size() && is_digit(text_[end + 1])))) {
        if (text_[end] != '_') digits += text_[end];
        ++end;
      }
    };
    take();
    if (end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1])) {
      whole = false;
      digits += '.';
      ++end;
      take();
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      std::size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (exponent < text_.size() && is_digit(text_[exponent])) {
        whole = false;
        digits += 'e';
        if (text_[end + 1] == '-') digits += '-';
        end = exponent;
        take();
      }
    }
    add(whole ? TokenKind::whole : TokenKind::number, digits);
    go(end);
  }

  void string(char quote_sign) {
    const Place begin = place_;
    std::string out;
    std::size_t i = at_ + 1;
    for (; i < text_.size() && text_[i] != quote_sign; ++i) {
      if (text_[i] != '\\') {
        out += text_[i];
        continue;
      }
      if (++i >= text_.size()) break;
      const char c = text_[i];
      const auto code = [&](std::size_t count) {
        char32_t value = 0;
        for (std::size_t k = 0; k < count; ++k) {
          const char h = i + 1 < text_.size() ? text_[i + 1] : ' ';
          const int digit = is_digit(h) ? h - '0' : h >= 'a' && h <= 'f' ? h - 'a' + 10 : h >= 'A' && h <= 'F' ? h - 'A' + 10 : -1;
          if (digit < 0) return fail(begin, "an escape in the string is cut short");
          value = value * 16 + static_cast<char32_t>(digit);
          ++i;
        }
        if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return fail(begin, "an escape in the string names no character");
        utf8::append(out, value);
      };
      switch (c) {
        case 'n': out += '\n'; break;
        case 't': out += '\t'; break;
        case 'r': out += '\r'; break;
        case 'b': out += '\b'; break;
        case 'f': out += '\f'; break;
        case 'v': out += '\v'; break;
        case 'a': out += '\a'; break;
        case '0': out += '\0'; break;
        case '\n': break;
        case 'x': code(2); break;
        case 'u': code(4); break;
        case 'U': code(8); break;
        case '\\':
        case '\'':
        case '"': out += c; break;
        default:
          out += '\\';
          out += c;
          break;
      }
      if (error_) return;
    }
    if (i >= text_.size()) return fail(begin, "the string does not end");
    tokens_.push_back({TokenKind::string, std::move(out), begin});
    go(i + 1);
  }

  const std::string text_;
  const std::string& name_;
  std::size_t at_ = 0;
  Place place_;
  bool line_starts_ = true;  // whether what comes next begins a line
  std::vector<Token> tokens_;
  std::optional<Error> error_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source, const std::string& name) { return Lexer(source, name).run(); }

}  // namespace modelc::chat

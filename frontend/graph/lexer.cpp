#include "frontend/graph/lexer.h"

#include <charconv>
#include <limits>

namespace modelc::graph {

namespace {
bool digit(char c) { return c >= '0' && c <= '9'; }
bool letter(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
int hex(char c) {
  if (digit(c)) return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
}  // namespace

void Lexer::skip_space() {
  for (; pos_ < text_.size(); ++pos_) {
    const char c = text_[pos_];
    if (c == '\n') {
      ++line_;
    } else if (c == '/' && at(pos_ + 1) == '/') {
      while (at(pos_ + 1) != '\n' && pos_ + 1 < text_.size()) ++pos_;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      return;
    }
  }
}

// From the opening quotation mark. Strings stay on their line.
bool Lexer::read_string(std::string& into) {
  for (++pos_; pos_ < text_.size(); ++pos_) {
    char c = text_[pos_];
    if (c == '"') {
      ++pos_;
      return true;
    }
    if (c == '\n') return false;
    if (c == '\\') {
      c = at(++pos_);
      if (c == 'n') {
        c = '\n';
      } else if (c == 'x') {
        const int high = hex(at(pos_ + 1)), low = high < 0 ? -1 : hex(at(pos_ + 2));
        if (low < 0) return false;
        c = static_cast<char>(high * 16 + low);
        pos_ += 2;
      } else if (c != '"' && c != '\\') {
        return false;
      }
    }
    into += c;
  }
  return false;
}

void Lexer::read_number(Token& t) {
  std::size_t end = pos_ + (at(pos_) == '-' ? 1 : 0);
  while (digit(at(end))) ++end;
  bool real = false;
  if (at(end) == '.' && digit(at(end + 1))) {
    real = true;
    for (++end; digit(at(end));) ++end;
  }
  if (at(end) == 'e' || at(end) == 'E') {
    std::size_t e = end + 1;
    if (at(e) == '-' || at(e) == '+') ++e;
    if (digit(at(e))) {
      real = true;
      for (end = e; digit(at(end));) ++end;
    }
  }
  const char *first = text_.data() + pos_, *last = text_.data() + end;
  t.kind = real ? Token::Kind::real : Token::Kind::integer;
  const auto [stop, error] = real ? std::from_chars(first, last, t.real) : std::from_chars(first, last, t.integer);
  if (error != std::errc() || stop != last) t.kind = Token::Kind::bad;
  pos_ = end;
}

Token Lexer::next() {
  skip_space();
  Token t;
  t.begin = pos_;
  t.line = line_;
  if (pos_ >= text_.size()) return t;
  const char c = text_[pos_];
  if (letter(c)) {
    t.kind = Token::Kind::name;
    while (letter(at(pos_)) || digit(at(pos_))) t.text += text_[pos_++];
  } else if (c == '"') {
    t.kind = read_string(t.text) ? Token::Kind::string : Token::Kind::bad;
  } else if (digit(c) || (c == '-' && digit(at(pos_ + 1)))) {
    read_number(t);
  } else if (text_.substr(pos_).starts_with("-inf")) {
    t.kind = Token::Kind::real;
    t.real = -std::numeric_limits<double>::infinity();
    pos_ += 4;
  } else if (c == '%') {
    t.kind = Token::Kind::value;
    ++pos_;
    if (at(pos_) == '"') {
      if (!read_string(t.text)) t.kind = Token::Kind::bad;
    } else if (letter(at(pos_))) {
      while (letter(at(pos_)) || digit(at(pos_))) t.text += text_[pos_++];
    } else if (!digit(at(pos_))) {
      t.kind = Token::Kind::bad;
    }
    const bool named = !t.text.empty();
    if (named && at(pos_) == '.' && digit(at(pos_ + 1))) ++pos_;
    while (digit(at(pos_))) ++pos_;
    t.key = text_.substr(t.begin, pos_ - t.begin);
  } else if (c == '.' && at(pos_ + 1) == '.') {
    t.kind = Token::Kind::mark;
    t.text = "..";
    pos_ += 2;
  } else if (std::string_view("{}()[],:;=*.@+-").find(c) != std::string_view::npos) {
    t.kind = Token::Kind::mark;
    t.text = c;
    ++pos_;
  } else {
    t.kind = Token::Kind::bad;
    ++pos_;
  }
  return t;
}

std::string_view Lexer::raw_until_separator(std::size_t begin) {
  int open = 0;
  std::size_t i = begin;
  for (; i < text_.size() && text_[i] != '\n'; ++i) {
    const char c = text_[i];
    if (open == 0 && (c == ',' || c == ']' || c == ')')) break;
    open += c == '(' ? 1 : c == ')' ? -1 : 0;
  }
  pos_ = i;
  return text_.substr(begin, i - begin);
}

Error Cursor::error() const { return Error{"graph-text", "line " + std::to_string(error_line_) + ": " + error_, {}, ""}; }

void Cursor::fail(std::string message, int line) {
  if (!ok()) return;
  error_ = std::move(message);
  error_line_ = line != 0 ? line : token_.line;
  token_ = Token{};
}

void Cursor::advance() {
  if (!ok()) return;
  token_ = lexer_.next();
  if (token_.kind == Token::Kind::bad) fail("a word that cannot be read");
}

std::string Cursor::shown() const {
  switch (token_.kind) {
    case Token::Kind::end: return "the end";
    case Token::Kind::string: return "a string";
    case Token::Kind::integer:
    case Token::Kind::real: return "a number";
    case Token::Kind::value: return "the value " + token_.key;
    default: return "`" + token_.text + "`";
  }
}

bool Cursor::take(std::string_view mark) {
  if (!is_mark(mark)) return false;
  advance();
  return true;
}
bool Cursor::take_word(std::string_view word) {
  if (!is_word(word)) return false;
  advance();
  return true;
}

std::optional<double> Cursor::try_real() {
  double r = token_.real;
  if (is_word("inf")) r = std::numeric_limits<double>::infinity();
  else if (is_word("nan")) r = std::numeric_limits<double>::quiet_NaN();
  else if (token_.kind != Token::Kind::real) return std::nullopt;
  advance();
  return r;
}

void Cursor::expect(std::string_view mark) {
  if (!take(mark)) fail("`" + std::string(mark) + "` is missing before " + shown());
}
void Cursor::expect_word(std::string_view word) {
  if (!take_word(word)) fail("`" + std::string(word) + "` is missing before " + shown());
}

std::string Cursor::take_text() {
  std::string s = std::move(token_.text);
  advance();
  return s;
}
std::string Cursor::string() {
  if (token_.kind == Token::Kind::string) return take_text();
  fail("a string is missing before " + shown());
  return "";
}
std::string Cursor::word() {
  if (token_.kind == Token::Kind::name || token_.kind == Token::Kind::string) return take_text();
  fail("a name is missing before " + shown());
  return "";
}
std::int64_t Cursor::integer() {
  if (token_.kind != Token::Kind::integer) {
    fail("a whole number is missing before " + shown());
    return 0;
  }
  const std::int64_t i = token_.integer;
  advance();
  return i;
}
double Cursor::real() {
  const std::optional<double> r = try_real();
  if (!r) fail("a number with a point is missing before " + shown());
  return r.value_or(0);
}

std::string_view Cursor::raw() {
  const std::string_view text = lexer_.raw_until_separator(token_.begin);
  advance();
  return text;
}

}  // namespace modelc::graph

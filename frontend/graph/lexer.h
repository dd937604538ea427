// The words of the graph's text form. Private to the reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace modelc::graph {

struct Token {
  enum class Kind : std::uint8_t {
    end,
    bad,
    name,        // text
    string,      // text, unescaped
    integer,     // integer
    real,        // real
    value,       // %name, %name.2, %12: text is the name ("" of an unnamed one), key the whole
    mark,        // text: one of { } ( ) [ ] , : ; = * . .. @ + -
  } kind = Kind::end;
  std::string text;
  std::string key;
  std::int64_t integer = 0;
  double real = 0;
  std::size_t begin = 0;                         // offset in the text
  int line = 1;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token next();
  // The text from `begin` up to a ',', ']' or ')' that closes nothing in it, or the end of the line; next() goes on
  // there.
  std::string_view raw_until_separator(std::size_t begin);

 private:
  void skip_space();
  char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  bool read_string(std::string& into);
  void read_number(Token& t);
  std::string_view text_;
  std::size_t pos_ = 0;
  int line_ = 1;
};

// One token ahead, with what a grammar asks of it. The first problem is kept; from then on every token is the end, so
// that loops of the form `while (ok() && …)` stop.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : lexer_(text) { advance(); }

  bool ok() const { return error_.empty(); }
  Error error() const;                           // of kind "graph-text", with the line
  void fail(std::string message, int line = 0);  // line 0: the token's

  const Token& token() const { return token_; }
  void advance();
  std::string shown() const;                     // the token, for messages
  bool is_mark(std::string_view mark) const { return token_.kind == Token::Kind::mark && token_.text == mark; }
  bool is_word(std::string_view word) const { return token_.kind == Token::Kind::name && token_.text == word; }

  // Goes on past the token if it is that.
  bool take(std::string_view mark);
  bool take_word(std::string_view word);
  std::optional<double> try_real();              // inf and nan too
  // Goes on past the token, which must be of the kind; otherwise fails.
  void expect(std::string_view mark);
  void expect_word(std::string_view word);
  std::string string();
  std::string word();                            // a name, quoted where it is none
  std::int64_t integer();
  double real();
  std::string take_text();                       // of any token
  std::string_view raw();                        // Lexer::raw_until_separator from the token on

 private:
  Lexer lexer_;
  Token token_;
  std::string error_;
  int error_line_ = 0;
};

}  // namespace modelc::graph

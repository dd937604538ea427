// Text to tokens, and all that can be said of the tokens before a parser runs: what is no token, brackets that do not
// match, nesting that would exhaust the stack. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ModelLexer.h"
#include "antlr4-runtime.h"
#include "frontend/diagnostics/diagnostics.h"
#include "frontend/source/source.h"

namespace modelc::syntax {

// A text as the lexer's input, byte by byte, so that a token's indices are byte offsets. A byte of a character outside
// of ASCII reads as one that no token but a comment or a string holds; a byte order mark reads as blanks.
class ByteStream : public antlr4::CharStream {
 public:
  explicit ByteStream(std::string_view text);

  void consume() override;
  size_t LA(ssize_t i) override;
  ssize_t mark() override { return -1; }
  void release(ssize_t) override {}
  size_t index() override { return at_; }
  void seek(size_t index) override;
  size_t size() override { return text_.size(); }
  std::string getSourceName() const override { return "source"; }
  std::string getText(const antlr4::misc::Interval& interval) override;
  std::string toString() const override { return std::string(text_); }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t bom_ = 0;  // bytes of the byte order mark
};

// The tokens of one text, which must outlive it.
class Tokens {
 public:
  Tokens(source::FileId file, const source::SourceManager& sources);

  // Reads and checks them all. False, with errors in `sink`, when no parser should run.
  bool read(diag::Sink& sink);

  antlr4::CommonTokenStream& stream() { return stream_; }
  const std::vector<antlr4::Token*>& all() const { return list_; }
  source::FileId file() const { return file_; }
  std::string_view text() const { return text_; }

  // The place of a token; of the end, the point behind the last token.
  source::Span span(const antlr4::Token& token) const;
  std::string_view text(const antlr4::Token& token) const;
  // A type of token as it is written: "(", "param"; empty for names, numbers, strings.
  std::string written(std::size_t type) const;

  // Brackets that are open before the token of this index.
  std::uint32_t depth(std::size_t index) const { return depths_[index]; }
  bool first_on_line(std::size_t index) const;
  // The next index whose token the parser sees; the end's own for the end.
  std::size_t next(std::size_t index) const;
  // The one before, or the index itself when there is none.
  std::size_t previous(std::size_t index) const;

 private:
  // A stream that can stop reading.
  class Stream : public antlr4::CommonTokenStream {
   public:
    using CommonTokenStream::CommonTokenStream;
    // False when there are more than `limit` tokens.
    bool fill_to(std::size_t limit);
  };

  bool check_characters(diag::Sink& sink);
  // Numbers and strings of other languages, which read as two words here: `1.`, `1e-6f`, `0x40`, `f"…"`.
  bool check_literals(diag::Sink& sink);
  bool check_brackets(diag::Sink& sink);
  bool check_depth(diag::Sink& sink);
  // The bracket that is most likely the one not closed, when brackets do not match: reports it.
  void report_unbalanced(diag::Sink& sink);
  bool report_unopened_body(std::size_t close, diag::Sink& sink) const;
  bool hides_closing_bracket(std::size_t open) const;

  source::FileId file_;
  std::string_view text_;
  ByteStream bytes_;
  grammar::ModelLexer lexer_;
  Stream stream_;
  std::vector<antlr4::Token*> list_;  // of all channels, the end included
  std::vector<std::uint32_t> depths_;
};

}  // namespace modelc::syntax

#include "frontend/syntax/tokens.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "frontend/source/utf8.h"
#include "frontend/syntax/parser.h"

namespace modelc::syntax {

namespace {

using antlr4::Token;
using grammar::ModelLexer;
using source::Span;

// What a byte outside of ASCII reads as.
constexpr std::size_t foreign = 0x7F;

bool is_open(std::size_t type) { return type == ModelLexer::LPAREN || type == ModelLexer::LBRACK || type == ModelLexer::LBRACE; }

bool is_close(std::size_t type) { return type == ModelLexer::RPAREN || type == ModelLexer::RBRACK || type == ModelLexer::RBRACE; }

std::size_t partner(std::size_t open) {
  return open == ModelLexer::LPAREN ? ModelLexer::RPAREN : open == ModelLexer::LBRACK ? ModelLexer::RBRACK : ModelLexer::RBRACE;
}

std::string in_ticks(std::string_view text) { return "`" + std::string(text) + "`"; }

// Words with which an operand cannot end.
bool is_operator_word(std::size_t type) {
  switch (type) {
    case ModelLexer::LET:
    case ModelLexer::FN:
    case ModelLexer::FOR:
    case ModelLexer::IN:
    case ModelLexer::RETURN:
    case ModelLexer::MATCH:
    case ModelLexer::IF:
    case ModelLexer::ELSE:
    case ModelLexer::AS:
    case ModelLexer::IS:
    case ModelLexer::NOT:
    case ModelLexer::AND:
    case ModelLexer::OR:
    case ModelLexer::BY: return true;
    default: return false;
  }
}

bool is_sign(std::string_view text) {
  const unsigned char c = text.empty() ? 0 : static_cast<unsigned char>(text.front());
  return !(c == '"' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
}

// Tokens that make a tree deeper within one expression.
bool deepens(std::size_t type) {
  switch (type) {
    case ModelLexer::CARET:
    case ModelLexer::MINUS:
    case ModelLexer::PLUS:
    case ModelLexer::STAR:
    case ModelLexer::SLASH:
    case ModelLexer::PERCENT:
    case ModelLexer::COALESCE:
    case ModelLexer::EQUAL:
    case ModelLexer::UNEQUAL:
    case ModelLexer::LESS:
    case ModelLexer::LESS_EQUAL:
    case ModelLexer::GREATER:
    case ModelLexer::GREATER_EQUAL:
    case ModelLexer::DOT:
    case ModelLexer::AS:
    case ModelLexer::IN:
    case ModelLexer::IS:
    case ModelLexer::NOT:
    case ModelLexer::AND:
    case ModelLexer::OR:
    case ModelLexer::IF:
    case ModelLexer::ELSE:
    case ModelLexer::FN:
    case ModelLexer::MATCH: return true;
    default: return false;
  }
}

// What to write instead of a character that the language does not use.
std::string advice(std::string_view character) {
  using Pair = std::pair<std::string_view, std::string_view>;
  static constexpr std::array<Pair, 19> table = {{
      {";", "nothing ends a statement or a declaration: leave the `;` out"},
      {"'", "strings are written in double quotes"},
      {"#", "a comment begins with `//`"},
      {"!", "negation is written `not`, inequality `!=`"},
      {"&", "write `and`"},
      {"~", "negation is written `not`"},
      {"@", "a matrix product is written `matmul(a, b)`, or `linear(x, w)` for x wᵀ"},
      {"\\", "line breaks mean nothing: a line needs no continuation"},
      {"“", "strings are written in straight double quotes"},
      {"”", "strings are written in straight double quotes"},
      {"„", "strings are written in straight double quotes"},
      {"‘", "strings are written in straight double quotes"},
      {"’", "strings are written in straight double quotes"},
      {"–", "a minus is the ASCII sign `-`"},
      {"−", "a minus is the ASCII sign `-`"},
      {"×", "a product is written `*`"},
      {"·", "a product is written `*`"},
      {"…", "any axes are written as three ASCII dots, `...`"},
      {"\xC2\xA0", "this is a no-break space: write an ordinary one"},
  }};
  const auto found = std::find_if(table.begin(), table.end(), [&](const Pair& p) { return p.first == character; });
  return found == table.end() ? std::string() : std::string(found->second);
}

// The whole of a word with letters that are not ASCII, around one of its characters; empty where the character is alone.
Span foreign_name(std::string_view text, Span character) {
  const auto part = [&](std::size_t i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    return byte >= 0x80 || byte == '_' || std::isalnum(byte) != 0;
  };
  if (static_cast<unsigned char>(text[character.begin]) < 0x80) return {};
  Span word = character;
  while (word.begin > 0 && part(word.begin - 1)) --word.begin;
  while (word.end < text.size() && part(word.end)) ++word.end;
  return word.size() == character.size() ? Span{} : word;
}

}  // namespace

ByteStream::ByteStream(std::string_view text) : text_(text), bom_(text.substr(0, 3) == "\xEF\xBB\xBF" ? 3 : 0) {}

void ByteStream::consume() {
  if (at_ < text_.size()) ++at_;
}

size_t ByteStream::LA(ssize_t i) {
  if (i == 0) return 0;
  const ssize_t at = static_cast<ssize_t>(at_) + (i > 0 ? i - 1 : i);
  if (at < 0 || static_cast<std::size_t>(at) >= text_.size()) return antlr4::IntStream::EOF;
  if (static_cast<std::size_t>(at) < bom_) return ' ';
  const auto byte = static_cast<unsigned char>(text_[static_cast<std::size_t>(at)]);
  return byte < 0x80 ? byte : foreign;
}

void ByteStream::seek(size_t index) { at_ = std::min(index, text_.size()); }

std::string ByteStream::getText(const antlr4::misc::Interval& interval) {
  if (interval.a < 0 || interval.b < interval.a || static_cast<std::size_t>(interval.a) >= text_.size()) return {};
  return std::string(text_.substr(static_cast<std::size_t>(interval.a), static_cast<std::size_t>(interval.b - interval.a + 1)));
}

bool Tokens::Stream::fill_to(std::size_t limit) {
  constexpr std::size_t step = 1024;
  setup();
  while (fetch(step) == step) {
    if (_tokens.size() > limit) return false;
  }
  return _tokens.size() <= limit;
}

Tokens::Tokens(source::FileId file, const source::SourceManager& sources)
    : file_(file), text_(sources.text(file)), bytes_(text_), lexer_(&bytes_), stream_(&lexer_) {
  lexer_.removeErrorListeners();  // there are no lexical errors: each byte is part of a token (UNKNOWN at least)
}

bool Tokens::read(diag::Sink& sink) {
  if (!stream_.fill_to(max_tokens)) {
    sink.error(diag::code::source_too_large, Span{file_, 0, 0},
               "the file has more than " + std::to_string(max_tokens) + " words and signs, the most a source may have")
        .help("is this the .model file, and not data?");
    return false;
  }
  list_ = stream_.getTokens();
  return check_characters(sink) && check_literals(sink) && check_brackets(sink) && check_depth(sink);
}

Span Tokens::span(const Token& token) const {
  if (token.getType() == Token::EOF) {
    // Behind the last word rather than behind the blank lines that may follow it.
    for (auto t = list_.rbegin(); t != list_.rend(); ++t) {
      if ((*t)->getType() == Token::EOF || (*t)->getChannel() != Token::DEFAULT_CHANNEL) continue;
      const auto end = static_cast<std::uint32_t>((*t)->getStopIndex() + 1);
      return {file_, end, end};
    }
    return {file_, 0, 0};
  }
  return {file_, static_cast<std::uint32_t>(token.getStartIndex()), static_cast<std::uint32_t>(token.getStopIndex() + 1)};
}

std::string_view Tokens::text(const Token& token) const {
  if (token.getType() == Token::EOF) return {};
  return text_.substr(token.getStartIndex(), token.getStopIndex() + 1 - token.getStartIndex());
}

std::string Tokens::written(std::size_t type) const {
  const std::string quoted = lexer_.getVocabulary().getLiteralName(type);
  return quoted.size() > 2 ? quoted.substr(1, quoted.size() - 2) : std::string();
}

bool Tokens::first_on_line(std::size_t index) const { return index == 0 || list_[index]->getLine() != list_[index - 1]->getLine(); }

std::size_t Tokens::next(std::size_t index) const {
  while (index + 1 < list_.size()) {
    if (list_[++index]->getChannel() == Token::DEFAULT_CHANNEL) break;
  }
  return index;
}

std::size_t Tokens::previous(std::size_t index) const {
  for (std::size_t i = index; i > 0;) {
    if (list_[--i]->getChannel() == Token::DEFAULT_CHANNEL) return i;
  }
  return index;
}

bool Tokens::check_characters(diag::Sink& sink) {
  bool good = true;
  std::uint32_t reported_to = 0;            // the bytes of one character are one message, and so is a run of one sign
  std::set<std::string, std::less<>> said;  // a name that the language cannot have, quotes of the wrong kind: said once
  for (std::size_t i = 0; i < list_.size(); ++i) {
    const Token& t = *list_[i];
    const Span at = span(t);
    if (t.getType() == ModelLexer::UNTERMINATED) {
      good = false;
      sink.error(diag::code::unterminated_string, at, "this string has no closing `\"` on its line")
          .help("close it with `\"`; a line break within a string is written `\\n`");
    } else if (t.getType() == ModelLexer::UNKNOWN) {
      good = false;
      if (at.begin < reported_to) continue;
      const source::Utf8Char c = source::decode_utf8(text_, at.begin);
      const std::string_view character = text_.substr(at.begin, c.length);
      std::uint32_t end = at.begin + c.length;
      while (text_.substr(end, c.length) == character) end += c.length;
      const std::string help = advice(character);
      if (const Span name = foreign_name(text_, {file_, at.begin, end}); help.empty() && name.size() != 0) {
        reported_to = name.end;
        if (!said.emplace(text_.substr(name.begin, name.size())).second) continue;
        sink.error(diag::code::unexpected_character, name,
                   "the language does not use the character " + in_ticks(character) + ", so " +
                       in_ticks(text_.substr(name.begin, name.size())) + " cannot be a name")
            .help("names are made of the letters a to z and A to Z, digits and `_`");
        continue;
      }
      reported_to = end;
      if (!help.empty() && !said.insert(help).second) continue;
      sink.error(diag::code::unexpected_character, {file_, at.begin, end}, "the language does not use the character " + in_ticks(character))
          .help(help);
    }
  }
  return good;
}

namespace {

// What is wrong with a number that letters follow, and the way out.
std::pair<std::string, std::string> about_letters(const std::string& number, const std::string& letters) {
  const auto whole = [&](int base) -> std::string {
    std::uint64_t value = 0;
    const char* end = letters.data() + letters.size();
    const auto [stop, error] = std::from_chars(letters.data() + 1, end, value, base);
    return error == std::errc() && stop == end ? ": write `" + std::to_string(value) + "`" : "";
  };
  const char first = letters.front();
  const auto is = [&](char small, char large) { return number == "0" && (first == small || first == large); };
  const int base = is('x', 'X') ? 16 : is('o', 'O') ? 8 : is('b', 'B') ? 2 : 0;
  if (base != 0) return {"a number that is not decimal", "numbers are decimal" + whole(base)};
  if (letters == "e" || letters == "E") return {"an exponent lacks its digits", "write `" + number + "e5`"};
  return {"a number ends in letters", "numbers have no suffix: write `" + number + "`"};
}

}  // namespace

bool Tokens::check_literals(diag::Sink& sink) {
  bool good = true;
  const auto letter = [](char c) { return c == '_' || std::isalpha(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t i = 0; i + 1 < list_.size(); ++i) {
    const std::size_t type = list_[i]->getType();
    const std::string word(text(*list_[i]));
    const bool adjacent = list_[i + 1]->getType() != Token::EOF && list_[i]->getStopIndex() + 1 == list_[i + 1]->getStartIndex();
    const std::string_view behind = adjacent ? text(*list_[i + 1]) : std::string_view{};
    const Span both = adjacent ? source::join(span(*list_[i]), span(*list_[i + 1])) : Span{};
    std::string message, help;
    if ((type == ModelLexer::INT || type == ModelLexer::FLOAT) && adjacent && letter(behind.front())) {
      std::tie(message, help) = about_letters(word, std::string(behind));
    } else if (type == ModelLexer::INT && adjacent && list_[i + 1]->getType() == ModelLexer::DOT) {
      // `1.`, and not `layers.0.norm` or `0.{i}`, names of a checkpoint's tensors; nor `0.*`.
      const std::size_t next = both.end;
      const char c = next < text_.size() ? text_[next] : ' ';
      if (letter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || std::string_view("{*\"[").find(c) != std::string_view::npos)
        continue;
      message = "a number ends in a point", help = "digits follow the point: write `" + word + ".0`";
    } else if (type == ModelLexer::ID && adjacent && behind.front() == '"' && word.size() <= 2 &&
               word.find_first_not_of("fFrRbBuU") == std::string::npos) {
      message = "a string has no letter before it";
      help = "a string stands as it is, and no expressions stand in it: leave the `" + word + "` out";
    } else {
      continue;
    }
    good = false;
    const std::string_view shown = text_.substr(both.begin, std::min<std::size_t>(both.size(), 40));
    sink.error(diag::code::unexpected_token, both, message + ", in " + in_ticks(shown)).help(help);
  }
  return good;
}

bool Tokens::check_brackets(diag::Sink& sink) {
  std::vector<std::size_t> open;  // types
  depths_.reserve(list_.size());
  for (const Token* t : list_) {
    const std::size_t type = t->getType();
    depths_.push_back(static_cast<std::uint32_t>(open.size()));
    if (is_open(type)) {
      open.push_back(type);
    } else if (is_close(type)) {
      if (open.empty() || partner(open.back()) != type) {
        report_unbalanced(sink);
        return false;
      }
      open.pop_back();
    }
  }
  if (open.empty()) return true;
  report_unbalanced(sink);
  return false;
}

void Tokens::report_unbalanced(diag::Sink& sink) {
  std::vector<std::size_t> open;  // indices
  for (std::size_t i = 0; i < list_.size(); i = i + 1 < list_.size() ? next(i) : list_.size()) {
    const Token& t = *list_[i];
    const std::size_t type = t.getType();
    const std::size_t after = list_[next(i)]->getType();
    // A declaration that begins a line, while a bracket is open: more likely the bracket was forgotten here than later.
    const bool declares = (type == ModelLexer::MODULE || type == ModelLexer::MODEL || type == ModelLexer::CONFIG ||
                           type == ModelLexer::VARIANT || type == ModelLexer::INTERFACE || type == ModelLexer::ENCODING)
                              ? after == ModelLexer::ID
                              : type == ModelLexer::TEST && after == ModelLexer::STRING;
    const bool at_margin = t.getCharPositionInLine() == 0;
    if (!open.empty() && declares && at_margin) {
      const Token& o = *list_[open.back()];
      sink.error(diag::code::unbalanced_bracket, span(o), "this " + in_ticks(text(o)) + " is not closed")
          .mark("opened here")
          .label(span(t), "the next declaration begins here");
      return;
    }
    if (is_open(type)) {
      open.push_back(i);
    } else if (is_close(type)) {
      if (open.empty()) {
        if (report_unopened_body(i, sink)) return;
        sink.error(diag::code::unbalanced_bracket, span(t), "nothing is open that this " + in_ticks(text(t)) + " closes")
            .help("remove it, or look for a bracket closed too early above");
        return;
      }
      const Token& o = *list_[open.back()];
      if (partner(o.getType()) != type) {
        sink.error(diag::code::unbalanced_bracket, span(t), in_ticks(text(t)) + " does not close " + in_ticks(text(o)))
            .mark("found here")
            .label(span(o), "this is open")
            .help(hides_closing_bracket(open.back())
                      ? "`//` begins a comment, so the rest of this line is not read: whole division is `div(a, b)`"
                      : "");
        return;
      }
      open.pop_back();
    }
  }
  if (open.empty()) return;
  const Token& o = *list_[open.back()];
  sink.error(diag::code::unbalanced_bracket, span(o), "this " + in_ticks(text(o)) + " is not closed")
      .mark("opened here")
      .help("the file ends before its partner");
}

// Whether the bracket's line ends in a comment that holds its partner: `f(a, b // c)`.
bool Tokens::hides_closing_bracket(std::size_t open) const {
  std::size_t last = open;
  for (std::size_t i = next(open); i > last && list_[i]->getLine() == list_[open]->getLine(); i = next(i)) {
    if (list_[i]->getType() == Token::EOF) return false;
    last = i;
  }
  const std::size_t begin = list_[last]->getStopIndex() + 1;
  const std::string_view rest = text_.substr(begin, text_.find('\n', begin) - begin);
  const std::size_t comment = rest.find("//");
  const char closing = text(*list_[open]) == "(" ? ')' : text(*list_[open]) == "[" ? ']' : '}';
  return comment != std::string_view::npos && rest.find(closing, comment) != std::string_view::npos;
}

// The `}` at `close` closes nothing: where the declaration before it has a head without a `{`, that is what is wrong.
bool Tokens::report_unopened_body(std::size_t close, diag::Sink& sink) const {
  std::size_t head = close;
  for (std::size_t i = close; i-- > 0;) {
    const std::size_t type = list_[i]->getType();
    const bool declares = type == ModelLexer::MODULE || type == ModelLexer::MODEL || type == ModelLexer::CONFIG;
    if (!declares || list_[i]->getCharPositionInLine() != 0 || list_[next(i)]->getType() != ModelLexer::ID) continue;
    head = i;
    break;
  }
  if (head == close) return false;
  std::size_t i = next(next(head));
  if (list_[i]->getType() == ModelLexer::LPAREN) {
    for (std::size_t depth = 1; depth > 0 && i < close;) {
      i = next(i);
      if (is_open(list_[i]->getType())) ++depth;
      if (is_close(list_[i]->getType())) --depth;
    }
    i = next(i);
  }
  const std::size_t type = list_[i]->getType();
  if (i > close || type == ModelLexer::LBRACE) return false;
  if (text(*list_[i]) == "extends" || text(*list_[i]) == "file") return false;
  sink.error(
          diag::code::unbalanced_bracket, span(*list_[i]),
          "a `{` is missing before " + in_ticks(text(*list_[i])) + ": the body of " + in_ticks(text(*list_[next(head)])) + " begins here")
      .label(span(*list_[close]), "this `}` closes what was not opened")
      .help(type == ModelLexer::COLON ? "a body stands in braces: write `{` for this `:`" : "a body stands in braces");
  return true;
}

bool Tokens::check_depth(diag::Sink& sink) {
  // For each open bracket, what deepens the expression that is being read in it. The sum bounds the depth of the tree.
  std::vector<std::size_t> levels = {0};
  std::size_t total = 0;
  auto reset = [&] { total -= std::exchange(levels.back(), 0); };
  const Token* before = nullptr;
  for (const Token* t : list_) {
    if (t->getChannel() != Token::DEFAULT_CHANNEL) continue;
    const std::size_t type = t->getType();
    const std::size_t last = before == nullptr ? static_cast<std::size_t>(Token::EOF) : before->getType();
    const bool operand_ended = before != nullptr && (is_close(last) || (!is_sign(text(*before)) && !is_operator_word(last)));
    if (is_open(type)) {
      levels.push_back(0);
      ++total;
    } else if (is_close(type)) {
      reset();
      levels.pop_back();
      ++levels.back();  // the group itself is an operand or a suffix; its own level of nesting passes to it
    } else {
      // An expression ends at these signs, and where a word follows an operand without an operator.
      const bool separates = type == ModelLexer::COMMA || type == ModelLexer::COLON || type == ModelLexer::ARROW ||
                             (type == ModelLexer::ASSIGN && last != ModelLexer::RPAREN);
      const bool begins = !is_sign(text(*t)) && (!is_operator_word(type) || type == ModelLexer::LET || type == ModelLexer::RETURN ||
                                                 type == ModelLexer::FN || type == ModelLexer::MATCH || type == ModelLexer::FOR);
      if (separates || (operand_ended && begins)) reset();
      if (deepens(type)) ++levels.back(), ++total;
    }
    if (levels.size() - 1 > max_nesting || total > max_depth) {
      const bool brackets = levels.size() - 1 > max_nesting;
      sink.error(diag::code::nested_too_deeply, span(*t),
                 brackets ? "brackets nest more than " + std::to_string(max_nesting) + " deep here"
                          : "this expression is deeper than " + std::to_string(max_depth) + " operators and calls")
          .help("give inner parts a name with `let` or `fn`");
      return false;
    }
    before = t;
  }
  return true;
}

}  // namespace modelc::syntax

#include "frontend/syntax/hidden_division.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

namespace modelc::syntax {

namespace {

using antlr4::Token;
using grammar::ModelLexer;

bool is_letter(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A comment's text as a value: `c.heads`, `2 * (n + 1)`.
struct ReadValue {
  bool whole = false;                   // it is a value, and nothing else
  bool dotted = false;                  // a name with a dot is in it
  bool single = true;                   // one name or number
  std::set<std::string_view> names;     // the first words of names
};

ReadValue read_value(std::string_view text) {
  ReadValue out;
  bool operand_next = true;
  int open = 0;
  std::size_t i = 0;
  const auto word = [&](auto part) {
    const std::size_t begin = i;
    while (i < text.size() && part(text[i])) ++i;
    return text.substr(begin, i - begin);
  };
  while (i < text.size()) {
    const char c = text[i];
    if (c == ' ' || c == '\t' || c == '\r') {
      ++i;
    } else if (operand_next && c == '(') {
      ++open, ++i;
    } else if (operand_next && is_letter(c)) {
      const auto part = [](char p) { return is_letter(p) || is_digit(p); };
      out.names.insert(word(part));
      while (i + 1 < text.size() && text[i] == '.' && is_letter(text[i + 1])) {
        ++i;
        word(part);
        out.dotted = true;
      }
      operand_next = false;
    } else if (operand_next && is_digit(c)) {
      word([](char p) { return is_digit(p) || p == '_'; });
      operand_next = false;
    } else if (!operand_next && c == ')' && open > 0) {
      --open, ++i;
    } else if (!operand_next && std::string_view("+-*/%^").find(c) != std::string_view::npos) {
      out.single = false;
      operand_next = true;
      ++i;
    } else {
      return out;
    }
  }
  out.whole = !operand_next && open == 0;
  return out;
}

// What goes on with the value before it.
bool goes_on(std::size_t type) {
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
    case ModelLexer::IS:
    case ModelLexer::IN:
    case ModelLexer::AND:
    case ModelLexer::OR:
    case ModelLexer::IF:
    case ModelLexer::ELSE:
    case ModelLexer::LPAREN:
    case ModelLexer::LBRACK: return true;
    default: return false;
  }
}

class Search {
 public:
  Search(const Tokens& tokens, const std::vector<std::uint32_t>& ends, diag::Sink& sink) : tokens_(tokens), ends_(ends), sink_(sink) {
    std::sort(ends_.begin(), ends_.end());
  }

  void run() {
    const auto& all = tokens_.all();
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      if (all[i]->getChannel() != Token::DEFAULT_CHANNEL) continue;
      const auto end = static_cast<std::uint32_t>(all[i]->getStopIndex() + 1);
      if (std::binary_search(ends_.begin(), ends_.end(), end)) look(i, end);
    }
  }

 private:
  void look(std::size_t index, std::uint32_t end) {
    // Up to the next token lie blanks and comments alone; the first of them, on this line.
    const std::string_view text = tokens_.text();
    const std::size_t line_end = std::min(text.find('\n', end), text.size());
    const std::size_t begin = std::min(text.find_first_not_of(" \t", end), text.size());
    if (text.substr(begin, 2) != "//" || text.substr(begin, 3) == "///") return;
    const std::string_view left = tokens_.text(*tokens_.all()[index]);
    if (left == "true" || left == "false" || left == "none" || left.front() == '"') return;
    if (goes_on(tokens_.all()[tokens_.next(index)]->getType())) return;
    std::string_view comment = text.substr(begin + 2, line_end - begin - 2);
    const std::size_t last = comment.find_last_not_of(" \t\r");
    if (last == std::string_view::npos) return;
    comment = comment.substr(0, last + 1);
    const ReadValue value = read_value(comment);
    if (!value.whole || (begin - end > 1 && !value.dotted)) return;
    if (value.single && is_digit(left.front())) return;
    const auto known = [&](std::string_view name) { return names_around(index).contains(name); };
    if (!std::all_of(value.names.begin(), value.names.end(), known)) return;
    const source::Span at{tokens_.file(), static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(begin + 2 + comment.size())};
    sink_.warning(diag::code::hidden_division, at, "this is a comment, so the value ends before it")
        .help("whole division is written `div(a, b)`, which rounds down; if it is a comment, say more in it");
  }

  // The names that the declaration around the token uses, other than behind a dot. Found once for each declaration.
  const std::set<std::string_view>& names_around(std::size_t index) {
    if (index >= begin_ && index < end_) return names_;
    const auto& all = tokens_.all();
    const auto ends_declaration = [&](std::size_t i) { return all[i]->getType() == ModelLexer::RBRACE && tokens_.depth(i) == 1; };
    names_.clear();
    begin_ = index;
    while (begin_ > 0 && !ends_declaration(begin_ - 1)) --begin_;
    for (end_ = begin_; end_ < all.size(); ++end_) {
      const bool behind_dot = end_ > 0 && all[end_ - 1]->getType() == ModelLexer::DOT;
      if (!behind_dot && all[end_]->getChannel() == Token::DEFAULT_CHANNEL) names_.insert(tokens_.text(*all[end_]));
      if (end_ >= index && ends_declaration(end_)) break;
    }
    ++end_;
    return names_;
  }

  const Tokens& tokens_;
  std::vector<std::uint32_t> ends_;
  diag::Sink& sink_;
  std::size_t begin_ = 0, end_ = 0;      // tokens of the declaration at hand
  std::set<std::string_view> names_;
};

}  // namespace

void warn_of_hidden_divisions(const Tokens& tokens, const std::vector<std::uint32_t>& ends, diag::Sink& sink) {
  Search(tokens, ends, sink).run();
}

}  // namespace modelc::syntax

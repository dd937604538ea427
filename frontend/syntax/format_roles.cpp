// What the grammar says of each word and sign to be formatted.
#include <algorithm>

#include "frontend/source/source.h"
#include "frontend/syntax/formatter.h"

namespace modelc::syntax {

namespace {

using P = grammar::ModelParser;
using antlr4::ParserRuleContext;
using antlr4::Token;

constexpr std::size_t tab = 4;

// What the tree says of a token, by the token's index.
struct Role {
  bool item = false, tight_before = false, tight_after = false, breaks_before = false, in_tensor = false;
  std::size_t owner = no_piece, item_token = no_piece;  // token indices
};

bool is_item(const ParserRuleContext& c) {
  switch (c.getRuleIndex()) {
    case P::RuleImports:
    case P::RuleDecl:
    case P::RuleConfigItem:
    case P::RuleVariantCase:
    case P::RuleMember:
    case P::RuleStatement:
    case P::RuleRule_:
    case P::RuleAlternative:
    case P::RuleConfigEntry:
    case P::RuleKernel:
    case P::RulePart:
    case P::RulePolicyEntry:
    case P::RuleShardEntry:
    case P::RuleQuantizeEntry:
    case P::RulePlaceEntry:
    case P::RuleTestItem:
    case P::RuleEntry:
    case P::RuleArm: return true;
    case P::RuleSignature: return dynamic_cast<P::InterfaceDeclContext*>(c.parent) != nullptr;
    default: return false;
  }
}

class Roles {
 public:
  explicit Roles(std::size_t tokens) : roles(tokens) {}

  void walk(ParserRuleContext& c, std::size_t item) {
    const std::size_t first = c.start->getTokenIndex();
    const std::size_t rule = c.getRuleIndex();
    if (is_item(c)) {
      roles[first].item = true;
      item = first;
    }
    if (rule == P::RuleFile) item = first, roles[first].item = true;
    const bool whole = rule == P::RuleTensor || rule == P::RulePath;
    if (whole) {
      for (std::size_t i = first + 1; i <= c.stop->getTokenIndex(); ++i) roles[i].tight_before = true;
      for (std::size_t i = first; i <= c.stop->getTokenIndex(); ++i) roles[i].in_tensor = true;
    }
    switch (rule) {
      case P::RuleArgs:
      case P::RuleParams:
      case P::RuleNames:
      case P::RuleSuffix: roles[first].tight_before = true; break;
      case P::RuleShape:
        roles[first].tight_before = c.parent != nullptr && c.parent->children.front() != &c &&
                                    (of(c.parent).getRuleIndex() == P::RuleSimpleType || of(c.parent).getRuleIndex() == P::RuleCastType);
        break;
      default: break;
    }
    std::size_t within = item;  // of what follows `reference` or `value`, which begin an item without a rule of their own
    for (std::size_t i = 0; i < c.children.size(); ++i) {
      antlr4::tree::ParseTree* child = c.children[i];
      if (auto* inner = dynamic_cast<ParserRuleContext*>(child)) {
        walk(*inner, within);
      } else if (auto* leaf = dynamic_cast<antlr4::tree::TerminalNode*>(child)) {
        const Token& t = *leaf->getSymbol();
        terminal(c, i, t, t.getType() == P::RBRACE ? item : within);
        if (begins_formula(c, t)) within = t.getTokenIndex();
      }
    }
  }

  std::vector<Role> roles;

 private:
  static ParserRuleContext& of(antlr4::tree::ParseTree* tree) { return *dynamic_cast<ParserRuleContext*>(tree); }

  void terminal(ParserRuleContext& c, std::size_t place, const Token& t, std::size_t item) {
    if (t.getType() == Token::EOF) return;
    Role& role = roles[t.getTokenIndex()];
    role.item_token = item;
    const bool last = place + 1 == c.children.size();
    switch (t.getType()) {
      case P::LPAREN:
      case P::LBRACK:
        role.tight_after = true;
        // `index(n)`, `list[T]`, `gpu(0)`, `layers[0..4]`; the brackets of calls and shapes begin a rule of their own.
        if (c.getRuleIndex() == P::RuleSimpleType || c.getRuleIndex() == P::RuleCastType || c.getRuleIndex() == P::RulePlaceEntry)
          role.tight_before = true;
        break;
      case P::RPAREN:
      case P::RBRACK:
      case P::COMMA:
      case P::COLON:
      case P::QUESTION: role.tight_before = true; break;
      case P::LBRACE:
      case P::RBRACE:
        role.owner = item;
        if (auto* m = dynamic_cast<P::MatchPrimaryContext*>(&c)) role.owner = m->start->getTokenIndex();
        break;
      case P::DOTS:
        if (c.children.size() > 1) role.tight_before = true, role.tight_after = true;
        if (last || (c.getRuleIndex() == P::RuleForClause && next_is(c, place, P::IF)) ||
            (c.getRuleIndex() == P::RuleForClause && next_is(c, place, P::RBRACK)))
          role.tight_after = false;
        break;
      case P::DOT:
        if (c.getRuleIndex() == P::RuleSuffix || role.in_tensor) role.tight_after = true;
        break;
      case P::MINUS:
        if (dynamic_cast<P::NegateContext*>(&c) != nullptr) role.tight_after = true;
        else role.breaks_before = true;
        break;
      case P::PLUS:
      case P::AND:
      case P::OR:
      case P::COALESCE:
      case P::IF:
      case P::ELSE: role.breaks_before = place > 0; break;
      default: break;
    }
    const std::string text = t.getText();
    if ((text == "via" || text == "when" || text == "from") && !role.in_tensor && c.getRuleIndex() != P::RuleName)
      role.breaks_before = true;
    if (begins_formula(c, t)) role.item = true;
  }

  static bool begins_formula(const ParserRuleContext& c, const Token& t) {
    return (c.getRuleIndex() == P::RuleEncodingDecl && t.getText() == "value") ||
           (c.getRuleIndex() == P::RuleOpDecl && t.getText() == "reference");
  }

  static bool next_is(const ParserRuleContext& c, std::size_t place, std::size_t type) {
    if (place + 1 >= c.children.size()) return false;
    auto* leaf = dynamic_cast<antlr4::tree::TerminalNode*>(c.children[place + 1]);
    return leaf != nullptr && leaf->getSymbol()->getType() == type;
  }
};

// Reads on in the text, counting lines and columns.
class Places {
 public:
  explicit Places(std::string_view text) : text_(text) {}

  void go_to(std::size_t end) {
    for (; at_ < end; ++at_) {
      const char c = text_[at_];
      if (c == '\n' || (c == '\r' && text_.substr(at_ + 1, 1) != "\n")) {
        ++line_;
        column_ = blanks_ = 0;
        empty_lines_ += line_empty_;
        line_empty_ = true;
      } else if (c == ' ' || c == '\r') {
        ++column_, ++blanks_;
      } else if (c == '\t') {
        const std::size_t step = tab - column_ % tab;
        column_ += step, blanks_ += step;
      } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
        ++column_;
      }
    }
  }
  // The piece that ends at `end` begins here.
  void take(Piece& p, std::size_t end) {
    p.line = line_, p.column = column_, p.gap = blanks_;
    p.first = line_empty_;
    p.blank_before = line_empty_ && empty_lines_ > 0;
    line_empty_ = false;
    empty_lines_ = 0;
    go_to(end);
    p.width = column_ - p.column;
    blanks_ = 0;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0, line_ = 0, column_ = 0, blanks_ = 0, empty_lines_ = 0;
  bool line_empty_ = true;
};

}  // namespace

std::vector<Piece> pieces_of(Tokens& tokens, P::FileContext& file) {
  const std::vector<Token*>& all = tokens.all();
  Roles tree(all.size());
  tree.walk(file, no_piece);

  const std::string_view text = tokens.text();
  std::vector<Piece> pieces;
  std::vector<std::size_t> piece_of(all.size(), no_piece);
  Places places(text);
  std::size_t at = text.substr(0, 3) == "\xEF\xBB\xBF" ? 3 : 0;
  const auto add = [&](std::size_t begin, std::size_t end) -> Piece& {
    Piece& p = pieces.emplace_back();
    places.go_to(begin);
    p.text = text.substr(begin, end - begin);
    places.take(p, end);
    return p;
  };
  const auto add_comment = [&](std::size_t begin, std::size_t end) -> Piece& {
    while (end > begin && (text[end - 1] == ' ' || text[end - 1] == '\t')) --end;
    Piece& p = add(begin, end);
    p.comment = true;
    return p;
  };
  // The comments in what the lexer skips.
  const auto skipped = [&](std::size_t end) {
    while (at < end) {
      const std::size_t begin = text.substr(0, end).find("//", at);
      if (begin == std::string_view::npos) break;
      const std::size_t stop = std::min(text.find_first_of("\r\n", begin), end);
      add_comment(begin, stop);
      at = stop;
    }
    at = end;
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Token& t = *all[i];
    if (t.getType() == Token::EOF) break;
    skipped(t.getStartIndex());
    const std::size_t end = t.getStopIndex() + 1;
    if (t.getType() == P::DOC) {
      add_comment(at, end).doc = true;
    } else {
      const Role& role = tree.roles[i];
      Piece& p = add(at, end);
      p.type = t.getType();
      p.item = role.item, p.tight_before = role.tight_before, p.tight_after = role.tight_after;
      p.breaks_before = role.breaks_before;
      piece_of[i] = pieces.size() - 1;
    }
    at = end;
  }
  skipped(text.size());

  for (std::size_t i = 0; i < all.size(); ++i) {
    if (piece_of[i] == no_piece) continue;
    Piece& p = pieces[piece_of[i]];
    const Role& role = tree.roles[i];
    if (role.owner != no_piece) p.owner = piece_of[role.owner];
    if (role.item_token != no_piece) p.item_piece = piece_of[role.item_token];
  }
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Piece& p = pieces[i];
    const bool closes = !p.comment && (p.text == ")" || p.text == "]" || p.text == "}");
    p.open = open.empty() ? no_piece : open.back();
    if (closes && !open.empty()) open.pop_back();
    p.depth = open.size();
    if (!p.comment && (p.text == "(" || p.text == "[" || p.text == "{")) open.push_back(i);
  }
  return pieces;
}

}  // namespace modelc::syntax

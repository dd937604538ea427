#include "frontend/syntax/recovery.h"

#include <algorithm>
#include <memory>
#include <optional>

namespace modelc::syntax {

namespace {

using antlr4::Token;
using P = grammar::ModelParser;

enum class Rest { file, module, config, block };

// A block of statements: how many brackets are open within it, and what stands around it.
struct Block {
  std::uint32_t depth;
  std::uint32_t outermost;  // the same of the function's whole body: loops are blocks in blocks
  Rest around;              // of the function
};

struct Start {
  std::size_t index;
  Rest rest;
  bool certain;  // something does begin here; otherwise it may be the midst of what was wrong
  std::optional<Block> block = std::nullopt;  // of Rest::block
};

bool begins_declaration(const Tokens& tokens, std::size_t i) {
  const std::size_t next = tokens.all()[tokens.next(i)]->getType();
  switch (tokens.all()[i]->getType()) {
    case P::AXIS:
    case P::CONFIG:
    case P::VARIANT:
    case P::INTERFACE:
    case P::MODULE:
    case P::MODEL:
    case P::OP:
    case P::ENCODING: return next == P::ID;
    case P::TEST: return next == P::STRING;
    case P::FN: return true;
    default: return false;
  }
}

// Whether the token cannot stand at the start of a line that goes on with the one before.
bool begins_member(const Tokens& tokens, std::size_t i) {
  switch (tokens.all()[i]->getType()) {
    case P::PARAM:
    case P::CONST:
    case P::STATE:
    case P::CHECKPOINT:
    case P::FORWARD:
    case P::OVERRIDE:
    case P::LET:
    case P::REQUIRE:
    case P::REFUSE: return true;
    case P::LIST:
    case P::MAP:
    case P::INDEX:  // no names, but taken for some
      return tokens.all()[tokens.next(i)]->getType() == P::COLON;
    default: return false;
  }
}

// The kind of body that the declaration with the error has, if it has members to go on with.
std::optional<Rest> kind_of_body(const SyntaxError& error) {
  for (const std::size_t rule : error.rules) {
    switch (rule) {
      // Declarations come before the rest rules on the way out, since a rest may go on with further ones.
      case P::RuleModuleDecl: return Rest::module;
      case P::RuleConfigDecl: return Rest::config;
      case P::RuleDecl: return std::nullopt;
      case P::RuleModuleRest: return Rest::module;
      case P::RuleConfigRest: return Rest::config;
      default: break;
    }
  }
  return std::nullopt;
}

// Whether the token stands within braces that opened outside of all other brackets: the body, not the head.
bool in_braces(const Tokens& tokens, std::size_t index) {
  if (tokens.depth(index) == 0) return false;
  while (tokens.depth(index) > 0) --index;
  return tokens.all()[index]->getType() == P::LBRACE;
}

bool begins_statement(const Tokens& tokens, std::size_t i) {
  const std::size_t type = tokens.all()[i]->getType();
  return type == P::LET || type == P::RETURN || type == P::FOR;
}

// The block of statements that the error is in; `from` is where the reading that met it began, null for the whole file.
std::optional<Block> block_around(const SyntaxError& error, const Start* from) {
  const auto depth = static_cast<std::uint32_t>(std::count(error.rules.begin(), error.rules.end(), P::RuleBlock));
  if (from != nullptr && from->rest == Rest::block) {
    Block block = *from->block;
    block.depth += depth;
    return block;
  }
  if (depth == 0) return std::nullopt;
  const auto inside = [&](std::size_t rule) { return std::find(error.rules.begin(), error.rules.end(), rule) != error.rules.end(); };
  const std::optional<Rest> body = kind_of_body(error);
  if (!body && (inside(P::RuleVariantDecl) || inside(P::RuleOpDecl))) return std::nullopt;
  const std::uint32_t outermost = body ? 2 : 1;
  return Block{outermost + depth - 1, outermost, body.value_or(Rest::file)};
}

// What follows the `}` of a block: the loop's surroundings, the next member, the next declaration.
std::optional<Start> behind(std::size_t brace, Block block, const Tokens& tokens) {
  const std::size_t next = tokens.next(brace);
  if (tokens.all()[next]->getType() == Token::EOF) return std::nullopt;
  if (block.depth == block.outermost) return Start{next, block.around, true};
  --block.depth;
  return Start{next, Rest::block, true, block};
}

// Of a block that was read from `start` without a mistake.
std::optional<Start> behind_block(const Start& start, const Tokens& tokens) {
  for (std::size_t i = start.index; tokens.all()[i]->getType() != Token::EOF; i = tokens.next(i))
    if (tokens.all()[i]->getType() == P::RBRACE && tokens.depth(i) == start.block->depth) return behind(i, *start.block, tokens);
  return std::nullopt;
}

// Where to read on behind `error`: the next line of the block that begins a statement, or of the body that begins a
// member, or the next declaration.
std::optional<Start> next_start(const SyntaxError& error, const Start* from, const Tokens& tokens) {
  const std::vector<Token*>& all = tokens.all();
  const std::optional<Block> block = block_around(error, from);
  const std::optional<Rest> body = kind_of_body(error);
  // What is wrong may be all that the next line found missing: that one is read, then, for itself.
  const bool at_next = block && tokens.depth(error.found) == block->depth && tokens.first_on_line(error.found) &&
                       begins_statement(tokens, error.found) && (from == nullptr || from->index != error.found);
  const bool ends_block = block && all[error.found]->getType() == P::RBRACE;
  for (std::size_t i = ends_block || at_next ? error.found : tokens.next(error.found); all[i]->getType() != Token::EOF;
       i = tokens.next(i)) {
    const std::uint32_t depth = tokens.depth(i);
    const bool closes = all[i]->getType() == P::RBRACE;
    if (depth == 0 && begins_declaration(tokens, i)) return Start{i, Rest::file, true};
    if (block) {
      if (depth != block->depth) continue;
      if (closes) return behind(i, *block, tokens);
      if (tokens.first_on_line(i)) return Start{i, Rest::block, begins_statement(tokens, i), block};
      continue;
    }
    if (!body || depth != 1) continue;
    if (closes) {
      // The body ends, and what follows it begins a declaration, well written or not.
      const std::size_t after = tokens.next(i);
      if (all[after]->getType() == Token::EOF) return std::nullopt;
      return Start{after, Rest::file, true};
    }
    if (tokens.first_on_line(i) && in_braces(tokens, i)) return Start{i, *body, begins_member(tokens, i)};
  }
  return std::nullopt;
}

// The first error that `rule` meets from the token `index` on.
template <class Rule> std::optional<SyntaxError> read_from(std::size_t index, Tokens& tokens, Rule rule) {
  P parser(&tokens.stream());
  parser.removeErrorListeners();
  parser.setBuildParseTree(false);
  auto strategy = std::make_shared<FirstError>();
  parser.setErrorHandler(strategy);
  tokens.stream().seek(index);
  try {
    rule(parser);
  } catch (const antlr4::ParseCancellationException&) {
    // The strategy has the error.
  }
  return strategy->error();
}

std::optional<SyntaxError> read_rest(const Start& start, Tokens& tokens) {
  return read_from(start.index, tokens, [&](P& parser) {
    switch (start.rest) {
      case Rest::file: parser.fileRest(); break;
      case Rest::module: parser.moduleRest(); break;
      case Rest::config: parser.configRest(); break;
      case Rest::block: parser.blockRest(); break;
    }
  });
}

// Of `a if b elif c` the parser gives up at the `if`, since no `else` follows: what stands in its place is what is wrong.
SyntaxError refined_conditional(const SyntaxError& error, const Tokens& tokens) {
  const std::vector<Token*>& all = tokens.all();
  const std::uint32_t depth = tokens.depth(error.found);
  for (std::size_t i = tokens.next(error.found); all[i]->getType() != Token::EOF && tokens.depth(i) >= depth; i = tokens.next(i)) {
    const std::size_t type = all[i]->getType();
    if (tokens.depth(i) == depth && (type == P::ELSE || begins_statement(tokens, i) || begins_member(tokens, i))) break;
    if (tokens.depth(i) != depth || tokens.text(*all[i]) != "elif") continue;
    SyntaxError inner = error;
    inner.found = i;
    inner.expected = {P::ELSE};
    return inner;
  }
  return error;
}

// A `[` after an operand opens a slice, or in a checkpoint block the next rule. Where it can only be a slice, one that
// is wrong inside makes the parser give up at the `[`; what is wrong inside is the message wanted.
SyntaxError refined(const SyntaxError& error, Tokens& tokens) {
  if (tokens.all()[error.found]->getType() == P::IF) return refined_conditional(error, tokens);
  const bool in_rules = std::find(error.rules.begin(), error.rules.end(), P::RuleRule_) != error.rules.end();
  if (in_rules || tokens.all()[error.found]->getType() != P::LBRACK) return error;
  const std::size_t last = tokens.all()[tokens.previous(error.found)]->getType();
  if (last != P::ID && last != P::RPAREN && last != P::RBRACK) return error;
  std::optional<SyntaxError> inner = read_from(error.found, tokens, [](P& parser) { parser.suffix(); });
  if (!inner || inner->found <= error.found) return error;
  inner->rules.insert(inner->rules.end(), error.rules.begin(), error.rules.end());
  return *inner;
}

}  // namespace

void report_all(const SyntaxError& first, Tokens& tokens, diag::Sink& sink) {
  constexpr std::size_t most_messages = diag::Sink::max_kept;
  constexpr std::size_t most_readings = 5000;
  SyntaxError error = refined(first, tokens);
  report(error, tokens, sink);
  std::size_t messages = 1;
  std::optional<Start> start = next_start(error, nullptr, tokens);
  for (std::size_t readings = 0; start && readings < most_readings && messages < most_messages; ++readings) {
    const std::optional<SyntaxError> found = read_rest(*start, tokens);
    if (!found) {
      if (start->rest != Rest::block) return;
      start = behind_block(*start, tokens);
      continue;
    }
    // Where reading began in the midst of something, its first words do not fit; that is no mistake of the text's. A
    // name that begins a line is different: it may be a misspelt word. In a block a sign behind it goes on with a value.
    const Token& first_word = *tokens.all()[start->index];
    const bool sign = start->rest == Rest::block && tokens.all()[found->found]->getType() != P::ID;
    const bool at_second = found->found == tokens.next(start->index) && (first_word.getType() != P::ID || sign);
    const bool in_midst = !start->certain && (found->found == start->index || at_second);
    error = refined(*found, tokens);
    const Start from = *start;
    start = next_start(error, &from, tokens);
    if (in_midst) continue;
    report(error, tokens, sink);
    ++messages;
  }
}

}  // namespace modelc::syntax

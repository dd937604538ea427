#include "frontend/syntax/syntax_error.h"

#include <algorithm>
#include <string>

namespace modelc::syntax {

namespace {

using antlr4::Token;
using P = grammar::ModelParser;

[[noreturn]] void stop() { throw antlr4::ParseCancellationException(); }

}  // namespace

// --- Catching -------------------------------------------------------------------------------------------------------

void FirstError::reportError(antlr4::Parser* parser, const antlr4::RecognitionException& e) {
  if (error_) return;
  SyntaxError error;
  error.found = e.getOffendingToken()->getTokenIndex();
  auto add = [&](const antlr4::misc::IntervalSet& set) {
    for (const ssize_t type : set.toList()) error.expected.insert(static_cast<std::size_t>(type));
  };
  const auto* choice = dynamic_cast<const antlr4::NoViableAltException*>(&e);
  if (choice != nullptr && choice->getDeadEndConfigs() != nullptr && !choice->getDeadEndConfigs()->configs.empty()) {
    // Several tokens were looked at: what each reading of those before the wrong one could go on with.
    for (const auto& config : choice->getDeadEndConfigs()->configs) {
      for (const antlr4::atn::Transition* t : config->state->transitions) {
        if (!t->isEpsilon()) add(t->label());
      }
    }
  } else {
    add(e.getExpectedTokens());
  }
  for (auto* c = parser->getContext(); c != nullptr; c = static_cast<antlr4::ParserRuleContext*>(c->parent)) {
    error.rules.push_back(c->getRuleIndex());
  }
  error_ = std::move(error);
}

void FirstError::recover(antlr4::Parser*, std::exception_ptr) { stop(); }

antlr4::Token* FirstError::recoverInline(antlr4::Parser* parser) {
  reportError(parser, antlr4::InputMismatchException(parser));
  stop();
}

void FirstError::sync(antlr4::Parser* parser) {
  // Before a choice or a loop: complain here, where all that may stand is known, and not where the loop has been left.
  const antlr4::atn::ATN& atn = parser->getATN();
  const antlr4::misc::IntervalSet& next = atn.nextTokens(atn.states[parser->getState()]);
  if (next.contains(static_cast<ssize_t>(Token::EPSILON)) || next.contains(parser->getInputStream()->LA(1))) return;
  reportError(parser, antlr4::InputMismatchException(parser));
  stop();
}

// --- Saying ---------------------------------------------------------------------------------------------------------

namespace {

// Words that cannot be names.
bool is_reserved(std::size_t type) {
  switch (type) {
    case P::LET:
    case P::FN:
    case P::FOR:
    case P::IN:
    case P::RETURN:
    case P::MATCH:
    case P::IF:
    case P::ELSE:
    case P::AS:
    case P::IS:
    case P::NOT:
    case P::AND:
    case P::OR:
    case P::TRUE:
    case P::FALSE:
    case P::NONE:
    case P::LIST:
    case P::MAP:
    case P::INDEX:
    case P::BY: return true;
    default: return false;
  }
}

bool is_word(std::string_view text) {
  const char c = text.empty() ? '\0' : text.front();
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string in_ticks(std::string_view text) { return "`" + std::string(text) + "`"; }

// What stands there: "the name `x`", "`)`", "the end of the file".
std::string describe(const Tokens& tokens, const Token& t) {
  std::string text = std::string(tokens.text(t));
  if (text.size() > 60) text = text.substr(0, 60) + "…";
  switch (t.getType()) {
    case Token::EOF: return "the end of the file";
    case P::ID: return "the name " + in_ticks(text);
    case P::INT:
    case P::FLOAT: return "the number " + in_ticks(text);
    case P::STRING: return "the string " + in_ticks(text);
    default: return is_word(text) ? "the word " + in_ticks(text) : in_ticks(text);
  }
}

struct Expectation {
  bool name = false;
  bool expression = false;
  bool declaration = false;
  bool member = false;     // of a module or a configuration
  bool statement = false;
  std::vector<std::string> words;  // what is said, best first

  std::string text() const {
    std::string out;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
      out += words[i];
    }
    return out;
  }
};

bool within(const SyntaxError& error, std::initializer_list<std::size_t> rules) {
  return std::any_of(rules.begin(), rules.end(),
                     [&](std::size_t r) { return std::find(error.rules.begin(), error.rules.end(), r) != error.rules.end(); });
}

// The expected types in words: kinds of things where a kind is meant, signs otherwise.
Expectation expectation(const SyntaxError& error, const Tokens& tokens) {
  std::set<std::size_t> types = error.expected;
  Expectation e;
  auto has = [&](std::initializer_list<std::size_t> all) {
    return std::all_of(all.begin(), all.end(), [&](std::size_t t) { return types.count(t) != 0; });
  };
  auto take = [&](std::initializer_list<std::size_t> some) {
    for (const std::size_t t : some) types.erase(t);
  };
  // A type drops out of the list if a kind of thing covers it. Where a name may stand, any word may.
  auto take_words = [&] { std::erase_if(types, [&](std::size_t t) { return t == P::ID || is_word(tokens.written(t)); }); };
  auto take_operators = [&] {
    take({P::CARET,   P::MINUS,         P::PLUS, P::STAR, P::SLASH, P::PERCENT, P::COALESCE, P::EQUAL, P::UNEQUAL, P::LESS,  P::LESS_EQUAL,
          P::GREATER, P::GREATER_EQUAL, P::IN,   P::IS,   P::AS,    P::AND,     P::OR,       P::DOT,   P::LPAREN,  P::LBRACK});
  };
  // After an operand anything may go on with it. That is not news, unless nothing else is possible.
  if (has({P::CARET, P::PLUS, P::COALESCE})) {
    const std::set<std::size_t> all = types;
    take_operators();
    types.erase(P::IF);
    if (types.empty()) types = all;
  }
  e.name = has({P::ID, P::LANGUAGE, P::SAME});
  e.expression = e.name && has({P::MINUS, P::LPAREN, P::STRING, P::MATCH});
  e.declaration = !e.name && has({P::AXIS, P::MODULE, P::MODEL, P::TEST});
  e.statement = e.name && !e.expression && has({P::LET, P::FOR, P::RETURN});
  e.member = e.name && !e.expression && has({P::LET, P::FN, P::RBRACE});
  auto kind = [&](const char* words) {
    e.words.emplace_back(words);
    take_words();
  };
  if (e.declaration) {
    kind("a declaration (`config`, `module`, `model`, `fn`, `test`, …)");
    types.erase(Token::EOF);
  } else if (e.expression) {
    const bool ellipsis = has({P::ELLIPSIS});
    kind(has({P::DOTS}) ? "a slice" : ellipsis ? "an axis" : "an expression");
    take({P::MINUS, P::LPAREN, P::LBRACK, P::STRING, P::INT, P::FLOAT, P::ELLIPSIS, P::DOTS, P::LBRACE});
  } else if (e.name && has({P::LIST, P::MAP, P::LBRACK})) {
    kind("a type");
    take({P::LBRACK, P::STRING, P::INT, P::FLOAT});
  } else if (e.name && has({P::STAR, P::STARS, P::INT})) {
    const bool rule = has({P::ALIAS, P::ENCODE, P::FOR, P::RBRACE});
    kind(rule ? "a rule" : has({P::STRING}) ? "a tensor pattern" : "a component of a pattern");
    take({P::STAR, P::STARS, P::INT, P::FLOAT, P::LBRACE, P::STRING, P::LBRACK});
  } else if (e.member) {
    kind(within(error, {P::RuleModuleDecl, P::RuleModuleRest}) ? "a member (`name: …`, `param`, `let`, `forward`, …)"
                                                               : "a field (`name: type`, `require`, `refuse`, …)");
  } else if (e.statement) {
    kind("a statement");
  } else if (e.name) {
    kind("a name");
  } else if (has({P::EXPECT, P::SAME, P::CONFIG})) {
    kind("a line of the test (`config`, `checkpoint`, `input`, `expect`, `same`, `error`, `op`)");
  } else if (has({P::STRING, P::INT, P::TRUE, P::NONE})) {
    e.words.emplace_back("a literal");
    take({P::STRING, P::INT, P::FLOAT, P::TRUE, P::FALSE, P::NONE});
  }
  constexpr std::size_t most = 6;
  std::vector<std::string> signs, others;
  for (const std::size_t t : types) {
    if (t == Token::EOF) {
      others.emplace_back("the end of the file");
    } else if (t == P::ID) {
      others.insert(others.begin(), "a name");
    } else if (t == P::INT) {
      others.emplace_back("an integer");
    } else if (t == P::FLOAT) {
      others.emplace_back("a number");
    } else if (t == P::STRING) {
      others.emplace_back("a string");
    } else {
      signs.push_back(in_ticks(tokens.written(t)));
    }
  }
  // Signs before words: `:` is forgotten more often than `at`.
  std::stable_partition(signs.begin(), signs.end(), [](const std::string& sign) { return !is_word(sign.substr(1)); });
  e.words.insert(e.words.end(), others.begin(), others.end());
  if (e.words.size() + signs.size() <= most) {
    e.words.insert(e.words.end(), signs.begin(), signs.end());
  } else if (e.words.empty()) {
    signs.resize(most);
    signs.back() = "another sign";
    e.words = std::move(signs);
  }
  return e;
}

// The construct that was being read, for the mark.
const char* construct(const std::vector<std::size_t>& rules) {
  for (const std::size_t rule : rules) {
    switch (rule) {
      case P::RuleArgs: return "in the arguments of a call";
      case P::RuleArm: return "in an arm of `match`";
      case P::RuleForClause: return "in a comprehension";
      case P::RuleSlice: return "in a slice";
      case P::RuleShape: return "in a shape";
      case P::RuleType: return "in a type";
      case P::RuleParams: return "in the parameters";
      case P::RuleStatement: return "in a statement";
      case P::RuleParamMember: return "in a `param`";
      case P::RuleConstMember: return "in a `const`";
      case P::RuleStateMember: return "in a `state`";
      case P::RuleChild: return "in a child or its condition";
      case P::RuleField: return "in a field";
      case P::RuleRule_: return "in a rule of the checkpoint";
      case P::RuleSection: return "in this section";
      case P::RuleTestItem: return "in a line of the test";
      case P::RuleKernel: return "in a kernel of the operation";
      case P::RuleVariantCase: return "in a case of the variant";
      case P::RuleAxisDecl: return "in an axis";
      case P::RuleEncodingDecl: return "in an encoding";
      case P::RuleImports: return "in an import";
      default: break;
    }
  }
  return "";
}

// The way out, where the mistake is a known one.
std::string advice(const SyntaxError& error, const Expectation& e, const Tokens& tokens) {
  const std::vector<Token*>& all = tokens.all();
  const Token& found = *all[error.found];
  const Token& last = *all[tokens.previous(error.found)];
  const std::size_t type = found.getType();
  const std::size_t next = all[tokens.next(error.found)]->getType();
  const std::size_t innermost = error.rules.empty() ? std::size_t{P::RuleFile} : error.rules.front();
  auto expects = [&](std::size_t t) { return error.expected.count(t) != 0; };

  if (type == P::IMPORT && e.declaration) return "imports stand before all declarations";
  if (e.declaration && tokens.text(found) == "from")
    return "an import is written `import nn.linear`; all that the file declares is known then";
  if (e.declaration && tokens.text(found) == "class") return "a module is written `module Name(size: dim) { … }`";
  if (e.declaration && tokens.text(found) == "def") return "a function of a file is written `fn name(x) = …`";
  if (e.declaration && is_word(tokens.text(found))) {
    return diag::did_you_mean(tokens.text(found),
                              {"axis", "config", "variant", "interface", "module", "model", "fn", "op", "encoding", "test", "import"});
  }
  if (type == P::SLASH && (next == P::STAR || next == P::STARS)) return "a comment begins with `//` and ends with its line";
  if (tokens.text(last) == "def") return "functions are written without `def`: `forward(…)`, `entry name(…)`, `fn name(x) = …`";
  if (type == P::ARROW && last.getType() == P::RPAREN && expects(P::LBRACE)) return "results are written after `->`";
  if (type == P::COMMA && within(error, {P::RuleObject})) return "nothing stands between the entries: leave the `,` out";
  if (type == P::COMMA && e.member) return "nothing stands between members: leave the `,` out";
  if ((type == P::PLUS || type == P::MINUS || type == P::STAR || type == P::SLASH) && next == P::ASSIGN)
    return "the new value is written out: `h = h " + std::string(tokens.text(found)) + " …`";
  if (type == P::STARS && within(error, {P::RuleParams})) return "each parameter is declared by name and type";
  if (type == P::STARS) return "a power is written `a ^ b`";
  const std::string_view before_last = tokens.text(*all[tokens.previous(tokens.previous(error.found))]);
  if (before_last == "lambda") return "a function as a value is written `fn(x) = …`";
  if (type == P::STRING && e.member) return "what documents a declaration stands before it, behind `///`";
  if (type == P::COLON && last.getType() == P::RPAREN && expects(P::LBRACE)) {
    return within(error, {P::RuleSignature, P::RuleMethod}) ? "results are written after `->`, the body in braces"
                                                            : "a body stands in braces";
  }
  if (type == P::OR && within(error, {P::RuleField, P::RuleConfigDecl}) && last.getType() == P::STRING)
    return "alternatives of a type are written `\"a\" | \"b\"`";
  if (type == P::LPAREN && within(error, {P::RuleConfigDecl}) && expects(P::LBRACE))
    return "a configuration has no parameters; one that builds on another is written `config A extends B { … }`";
  if (type == P::DOT && e.expression && next == P::INT) return "a number begins with a digit: `0.5`";
  if (last.getType() == P::FOR && type == P::LPAREN) return "a `for` names one element: `for layer in layers { … }`";
  if (before_last == "for" && type == P::COMMA) return "a `for` names one element: `for layer in layers { … }`";
  if (tokens.text(last) == "self" && type == P::DOT)
    return "a member is declared by its name alone: `name: Linear(…)` for a child, `let name = …` for a value";
  if (tokens.text(last) == "__init__" && type == P::LPAREN) {
    return "a module has no constructor: parameters stand behind its name, `module Name(size: dim)`, and each member is "
           "declared with its value";
  }
  if (tokens.text(last) == "assert") return "a condition is checked by `require condition, \"what must hold\"`";
  if (tokens.text(last) == "while" && tokens.first_on_line(tokens.previous(error.found)))
    return "there is no loop over numbers: `for` goes over a list of children";
  if (tokens.text(found) == "elif" && expects(P::ELSE)) return "a second condition stands behind `else`: `a if p else b if q else c`";
  if ((tokens.text(found) == "elif" || type == P::ELSE) && within(error, {P::RuleBlock, P::RuleBlockRest}))
    return "a choice stands within an expression: `a if condition else b`";
  if (type == P::QUESTION && within(error, {P::RuleBlock, P::RuleBlockRest, P::RuleFnDecl, P::RuleChild}))
    return "a conditional is written `a if condition else b`";
  if (type == P::COLON && (innermost == P::RuleSlice || expects(P::DOTS)))
    return "a slice is written `a..b`, a whole axis `..`, a step `a..b by 2`";
  if (last.getType() == P::DOT && type == P::INT && e.name && !within(error, {P::RuleCheckpoint}))
    return "an element of a list is written `list[" + std::string(tokens.text(found)) + "]`";
  if (type == P::LBRACE && e.expression && last.getType() == P::RETURN)
    return "results are listed, `return a, b`; their names stand in the signature: `-> (a: [n], b: [n])`";
  if (type == P::LBRACE && e.expression) return "no value is written in braces; a list stands in brackets, `[a, b]`";
  if (type == P::DOTS && within(error, {P::RuleShape})) return "any axes are written `...`; every other size is written out";
  if (type == P::DOT && tokens.text(*all[tokens.previous(tokens.previous(error.found))]) == "extends")
    return "a module extends another of this language by its name; of PyTorch's there is none: `module Name(size: dim) { … }`";
  if (type == P::BAR && next == P::BAR) return "write `or`";
  if (type == P::SLASH && next == P::SLASH) return "whole division is written `div(a, b)`";
  if (type == P::ASSIGN) {
    if (expects(P::COLON)) return "here a name is followed by `:`";
    if (innermost == P::RuleArgs || (innermost == P::RuleArg)) return "a named argument is written `name: value`";
    if (expects(P::COMMA) || expects(P::IF)) return "equality is written `==`";
  }
  if (type == P::COLON && expects(P::ASSIGN)) {
    return last.getType() == P::LET || innermost == P::RuleLet || within(error, {P::RuleStatement})
               ? "a `let` names a value and takes no type: `let name = value`"
               : "here a name is followed by `=`";
  }
  if ((type == P::COMMA || type == P::RPAREN) && expects(P::COLON) && within(error, {P::RuleParams})) {
    return "each parameter has a type: `x: [tokens, n]`, `size: dim`";
  }
  if (last.getType() == P::COMMA && e.expression && (type == P::RPAREN || type == P::RBRACK)) {
    return "no comma stands before the closing bracket";
  }
  if (last.getType() == P::IS) return "`is` asks for a literal, as in `x is \"yarn\"`; equality is written `==`";
  if (type == P::COMMA && expects(P::ASSIGN) && innermost == P::RuleStatement) {
    return "several results stand in parentheses: `let (a, b) = …`";
  }
  if (innermost == P::RuleStatement && expects(P::ASSIGN) && expects(P::LPAREN) && !is_word(tokens.text(found))) {
    return "a value by itself does nothing: `return` it, or name it with `let`";
  }
  if (expects(P::ELSE) && error.expected.size() == 1) return "a conditional is written `a if condition else b`";
  if (type == P::IF && within(error, {P::RuleBlock, P::RuleBlockRest})) {
    return "`if` stands within an expression: `a if condition else b`";
  }
  if (type == P::DOTS && within(error, {P::RuleStatement})) { return "`for` in a computation goes over a list of children"; }
  if (last.getType() == P::ID && (within(error, {P::RuleModuleDecl, P::RuleModuleRest, P::RuleConfigDecl, P::RuleConfigRest, P::RuleBlock,
                                                 P::RuleBlockRest, P::RuleCheckpoint}))) {
    // `parma weight: [n]`: a misspelt word reads as a name.
    const bool starts = tokens.first_on_line(last.getTokenIndex());
    const bool call =
        type == P::LPAREN && within(error, {P::RuleModuleDecl, P::RuleModuleRest}) && !within(error, {P::RuleBlock, P::RuleBlockRest});
    if (starts && call && tokens.text(last) == "register_buffer") return "what is computed at load is a member: `const name: f32[n] = …`";
    if (starts && call && tokens.text(last) == "super") return "a module that extends another has its members as its own";
    if (starts && call) return diag::did_you_mean(tokens.text(last), {"forward", "entry", "fn"});
    if (starts && type == P::LBRACE && within(error, {P::RuleModuleDecl, P::RuleModuleRest}))
      return diag::did_you_mean(tokens.text(last), {"policy", "shard", "quantize", "place", "checkpoint"});
    if (starts && (is_word(tokens.text(found)) || type == P::INT)) {
      return diag::did_you_mean(tokens.text(last),
                                {"param", "const", "state", "let", "fn", "require", "refuse", "ignore", "remove", "override", "forward",
                                 "entry", "checkpoint", "context", "return", "for", "alias", "encode"});
    }
  }
  return {};
}

}  // namespace

void report(const SyntaxError& error, const Tokens& tokens, diag::Sink& sink) {
  const Token& found = *tokens.all()[error.found];
  const source::Span at = tokens.span(found);
  const Expectation e = expectation(error, tokens);
  const std::size_t next = tokens.all()[tokens.next(error.found)]->getType();
  const bool used_as_name = next == P::COLON || next == P::ASSIGN || next == P::COMMA;
  if (is_reserved(found.getType()) && e.name && (used_as_name || !(e.expression || e.statement || e.member))) {
    sink.error(diag::code::reserved_word, at,
               in_ticks(tokens.text(found)) + " is a word of the language and cannot be a name; expected " + e.text())
        .mark(construct(error.rules));
    return;
  }
  std::string message = "expected " + (e.words.empty() ? std::string("something else") : e.text());
  const std::size_t before = tokens.previous(error.found);
  if (before != error.found) {
    const std::string_view text = tokens.text(*tokens.all()[before]);
    if (text.size() <= 60) message += " after " + in_ticks(text);
  }
  sink.error(diag::code::unexpected_token, at, message + ", found " + describe(tokens, found))
      .mark(construct(error.rules))
      .help(advice(error, e, tokens));
}

}  // namespace modelc::syntax

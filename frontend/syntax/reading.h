// Running the generated parser. Private to this folder.
#pragma once

#include <memory>
#include <optional>

#include "ModelParser.h"
#include "antlr4-runtime.h"
#include "frontend/syntax/syntax_error.h"
#include "frontend/syntax/tokens.h"

namespace modelc::syntax {

// The grammar is read twice at most: first by the quick method, which looks at the rule alone and refuses some texts
// that are right; then, if that fails, by the full one, whose word counts. Runs `rule` on the tokens and `use` on its
// tree, while the parser that owns the tree lives. Null, with what was wrong in `error`, when the text does not fit.
template <class Tree, class Rule, class Use> Tree read(Tokens& tokens, Rule rule, Use use, std::optional<SyntaxError>& error) {
  for (const bool quick : {true, false}) {
    grammar::ModelParser parser(&tokens.stream());
    parser.removeErrorListeners();
    parser.getInterpreter<antlr4::atn::ParserATNSimulator>()->setPredictionMode(quick ? antlr4::atn::PredictionMode::SLL
                                                                                      : antlr4::atn::PredictionMode::LL);
    auto first_error = std::make_shared<FirstError>();
    if (quick) {
      parser.setErrorHandler(std::make_shared<antlr4::BailErrorStrategy>());
    } else {
      parser.setErrorHandler(first_error);
    }
    tokens.stream().seek(0);
    try {
      return use(*rule(parser));
    } catch (const antlr4::ParseCancellationException&) { error = first_error->error(); }
  }
  return Tree();
}

}  // namespace modelc::syntax

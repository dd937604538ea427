// What a parser found that it could not use, and the message made of it in the words of the language. Private to this
// folder.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <set>
#include <vector>

#include "ModelParser.h"
#include "antlr4-runtime.h"
#include "frontend/diagnostics/diagnostics.h"
#include "frontend/syntax/tokens.h"

namespace modelc::syntax {

struct SyntaxError {
  std::size_t found = 0;           // index of the token that does not fit
  std::set<std::size_t> expected;  // token types that would
  std::vector<std::size_t> rules;  // rules that were being read, innermost first
};

// Keeps the first error and ends the parse: going on is the caller's choice (recovery.cpp), since ANTLR's own recovery
// guesses by follow sets, which in a language whose words may be names hold nearly everything.
class FirstError : public antlr4::DefaultErrorStrategy {
 public:
  void reportError(antlr4::Parser* parser, const antlr4::RecognitionException& e) override;
  void recover(antlr4::Parser* parser, std::exception_ptr e) override;
  antlr4::Token* recoverInline(antlr4::Parser* parser) override;
  void sync(antlr4::Parser* parser) override;

  const std::optional<SyntaxError>& error() const { return error_; }

 private:
  std::optional<SyntaxError> error_;
};

void report(const SyntaxError& error, const Tokens& tokens, diag::Sink& sink);

}  // namespace modelc::syntax

#include "frontend/syntax/parser.h"

#include <optional>
#include <string>

#include "ModelParser.h"
#include "antlr4-runtime.h"
#include "frontend/syntax/build.h"
#include "frontend/syntax/hidden_division.h"
#include "frontend/syntax/reading.h"
#include "frontend/syntax/recovery.h"
#include "frontend/syntax/syntax_error.h"
#include "frontend/syntax/tokens.h"

namespace modelc::syntax {

namespace {

using antlr4::Token;
using P = grammar::ModelParser;

// The first two words must be `language 1`: said before anything else, since another version has another grammar.
bool check_language(const Tokens& tokens, diag::Sink& sink) {
  const std::vector<Token*>& all = tokens.all();
  std::size_t first = 0;
  if (all[first]->getChannel() != Token::DEFAULT_CHANNEL) first = tokens.next(first);
  const std::string version = std::to_string(language_version);
  if (all[first]->getType() != P::LANGUAGE) {
    sink.error(diag::code::no_language_line, tokens.span(*all[first]), "a file begins with `language " + version + "`, this one does not")
        .help("write `language " + version + "` before everything else");
    return false;
  }
  const Token& number = *all[tokens.next(first)];
  if (number.getType() != P::INT && number.getType() != P::FLOAT) return true;  // the parser says what is wrong
  const std::string_view found = tokens.text(number);
  if (found == version) return true;
  sink.error(diag::code::language_version_unknown, tokens.span(number),
             "this file is written in version " + std::string(found) + " of the language; this program knows version " + version)
      .help("a newer program may read it");
  return false;
}

}  // namespace

std::unique_ptr<ast::File> parse(source::FileId file, const source::SourceManager& sources, diag::Sink& sink) {
  if (!diag::check_text(file, sources, sink)) return nullptr;
  Tokens tokens(file, sources);
  if (!tokens.read(sink) || !check_language(tokens, sink)) return nullptr;
  std::optional<SyntaxError> error;
  const std::size_t errors = sink.error_count();
  auto tree = read<std::unique_ptr<ast::File>>(
      tokens, [](P& parser) { return parser.file(); },
      [&](P::FileContext& c) {
        Builder builder(tokens, sink);
        auto built = builder.file(c);
        if (sink.error_count() == errors) warn_of_hidden_divisions(tokens, builder.ends(), sink);
        return built;
      },
      error);
  if (error && tree == nullptr) report_all(*error, tokens, sink);
  return sink.error_count() == errors ? std::move(tree) : nullptr;
}

ast::ExprPtr parse_expr(source::FileId text, const source::SourceManager& sources, diag::Sink& sink) {
  if (!diag::check_text(text, sources, sink)) return nullptr;
  Tokens tokens(text, sources);
  if (!tokens.read(sink)) return nullptr;
  std::optional<SyntaxError> error;
  const std::size_t errors = sink.error_count();
  auto tree = read<ast::ExprPtr>(
      tokens, [](P& parser) { return parser.oneExpr(); }, [&](P::OneExprContext& c) { return Builder(tokens, sink).expr(*c.expr()); },
      error);
  if (error && tree == nullptr) report(*error, tokens, sink);
  return sink.error_count() == errors ? std::move(tree) : nullptr;
}

}  // namespace modelc::syntax

// Text to syntax tree. The parser generator is private to this folder.
#pragma once

#include <cstddef>
#include <memory>

#include "frontend/diagnostics/diagnostics.h"
#include "frontend/source/source.h"
#include "frontend/syntax/ast.h"

namespace modelc::syntax {

// The version that a file's first line names.
inline constexpr int language_version = 1;

// Brackets in brackets; operators, calls and selections within one expression count with them towards max_depth. What
// goes deeper is refused before it is parsed, so that no text can exhaust the stack, here or in a later walk.
inline constexpr std::size_t max_nesting = 200;
inline constexpr std::size_t max_depth = 400;

// Tokens of one file, comments aside: bounds memory and time.
inline constexpr std::size_t max_tokens = 250'000;

// The tree of a file, or null with at least one error in `sink`: all syntax errors of one run that are worth saying.
std::unique_ptr<ast::File> parse(source::FileId file, const source::SourceManager& sources, diag::Sink& sink);

// A text that is one expression, as for `--root "Linear(5, 10)"`; null with an error in `sink` when it is not.
ast::ExprPtr parse_expr(source::FileId text, const source::SourceManager& sources, diag::Sink& sink);

}  // namespace modelc::syntax

// Syntax tree to text in the canonical layout. Parsing the text gives an equal tree; comments other than `///` are not
// in a tree and so not in the text.
#pragma once

#include <string>

#include "frontend/syntax/ast.h"

namespace modelc::syntax {

std::string print(const ast::File& file);
std::string print(const ast::Item& item);
std::string print(const ast::Expr& expr);
std::string print(const ast::Type& type);
std::string print(const ast::Shape& shape);
std::string print(const ast::Statement& statement);
std::string print(const ast::Rule& rule);
std::string print(const ast::Tensor& tensor);
std::string print(const ast::Literal& literal);
// In quotes, with escapes.
std::string quote(const std::string& text);

}  // namespace modelc::syntax

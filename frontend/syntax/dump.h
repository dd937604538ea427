// The tree as indented text, one node a line, as `modelc dump --stage ast` prints it. Two trees are equal when their
// dumps are: places and redundant parentheses do not count, everything else does.
#pragma once

#include <string>

#include "frontend/syntax/ast.h"

namespace modelc::syntax {

std::string dump(const ast::File& file);
std::string dump(const ast::Expr& expr);

}  // namespace modelc::syntax

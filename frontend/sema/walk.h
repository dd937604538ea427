// The expressions directly inside a node, in the order of the text: for walks that treat only a few kinds of node.
#pragma once

#include <functional>

#include "frontend/syntax/ast.h"

namespace modelc::sema {

using ExprVisitor = std::function<void(const ast::Expr&)>;

void each_child(const ast::Expr& expr, const ExprVisitor& visit);
void each_expr(const ast::Shape& shape, const ExprVisitor& visit);
void each_expr(const ast::CastType& type, const ExprVisitor& visit);
void each_expr(const ast::Type& type, const ExprVisitor& visit);
void each_expr(const ast::Args& args, const ExprVisitor& visit);
void each_expr(const ast::Range& range, const ExprVisitor& visit);

}  // namespace modelc::sema

#include "frontend/sema/walk.h"

namespace modelc::sema {

namespace {

void visit_if(const ast::ExprPtr& expr, const ExprVisitor& visit) {
  if (expr) visit(*expr);
}

}  // namespace

void each_expr(const ast::Shape& shape, const ExprVisitor& visit) {
  for (const ast::Axis& axis : shape.axes) visit_if(axis.size, visit);
}

void each_expr(const ast::CastType& type, const ExprVisitor& visit) {
  visit_if(type.bound, visit);
  if (type.shape) each_expr(*type.shape, visit);
}

void each_expr(const ast::Args& args, const ExprVisitor& visit) {
  for (const ast::Arg& arg : args.items) visit_if(arg.value, visit);
}

void each_expr(const ast::Range& range, const ExprVisitor& visit) {
  visit_if(range.low, visit);
  visit_if(range.high, visit);
}

void each_expr(const ast::Type& type, const ExprVisitor& visit) {
  switch (type.kind) {
    case ast::TypeKind::list: {
      const auto& list = ast::as<ast::ListType>(type);
      each_expr(*list.element, visit);
      visit_if(list.length, visit);
      break;
    }
    case ast::TypeKind::map: each_expr(*ast::as<ast::MapType>(type).element, visit); break;
    case ast::TypeKind::index:
      visit_if(ast::as<ast::IndexType>(type).bound, visit);
      each_expr(ast::as<ast::IndexType>(type).shape, visit);
      break;
    case ast::TypeKind::named: {
      const auto& named = ast::as<ast::NamedType>(type);
      if (named.args) each_expr(*named.args, visit);
      if (named.shape) each_expr(*named.shape, visit);
      break;
    }
    case ast::TypeKind::tensor: each_expr(ast::as<ast::TensorType>(type).shape, visit); break;
    case ast::TypeKind::function:
    case ast::TypeKind::literal: break;
  }
}

void each_child(const ast::Expr& expr, const ExprVisitor& visit) {
  switch (expr.kind) {
    case ast::ExprKind::literal:
    case ast::ExprKind::name: break;
    case ast::ExprKind::tuple:
      for (const auto& item : ast::as<ast::TupleExpr>(expr).items) visit(*item);
      break;
    case ast::ExprKind::unary: visit(*ast::as<ast::UnaryExpr>(expr).operand); break;
    case ast::ExprKind::binary:
      visit(*ast::as<ast::BinaryExpr>(expr).left);
      visit(*ast::as<ast::BinaryExpr>(expr).right);
      break;
    case ast::ExprKind::cast:
      visit(*ast::as<ast::CastExpr>(expr).operand);
      each_expr(ast::as<ast::CastExpr>(expr).type, visit);
      break;
    case ast::ExprKind::is: visit(*ast::as<ast::IsExpr>(expr).operand); break;
    case ast::ExprKind::conditional:
      visit(*ast::as<ast::ConditionalExpr>(expr).value);
      visit(*ast::as<ast::ConditionalExpr>(expr).condition);
      visit(*ast::as<ast::ConditionalExpr>(expr).otherwise);
      break;
    case ast::ExprKind::function: visit(*ast::as<ast::FunctionExpr>(expr).body); break;
    case ast::ExprKind::call:
      visit(*ast::as<ast::CallExpr>(expr).callee);
      each_expr(ast::as<ast::CallExpr>(expr).args, visit);
      break;
    case ast::ExprKind::member: visit(*ast::as<ast::MemberExpr>(expr).object); break;
    case ast::ExprKind::index:
      visit(*ast::as<ast::IndexExpr>(expr).object);
      for (const ast::Slice& slice : ast::as<ast::IndexExpr>(expr).slices) {
        visit_if(slice.low, visit);
        visit_if(slice.high, visit);
        visit_if(slice.step, visit);
      }
      break;
    case ast::ExprKind::list:
      for (const auto& item : ast::as<ast::ListExpr>(expr).items) visit(*item);
      break;
    case ast::ExprKind::comprehension: {
      const auto& c = ast::as<ast::ComprehensionExpr>(expr);
      visit(*c.element);
      if (c.range) each_expr(*c.range, visit);
      visit_if(c.source, visit);
      visit_if(c.condition, visit);
      break;
    }
    case ast::ExprKind::match:
      visit(*ast::as<ast::MatchExpr>(expr).subject);
      for (const ast::Arm& arm : ast::as<ast::MatchExpr>(expr).arms) visit(*arm.value);
      break;
  }
}

}  // namespace modelc::sema

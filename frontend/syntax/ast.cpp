#include "frontend/syntax/ast.h"

namespace modelc::ast {

std::string Path::text() const {
  std::string out;
  for (const Name& part : parts) {
    if (!out.empty()) out += ".";
    out += part.text;
  }
  return out;
}

std::string KeyPattern::text() const { return quoted ? string.value : path.text(); }

const char* spelling(UnaryOp op) { return op == UnaryOp::negate ? "-" : "not"; }

const char* spelling(BinaryOp op) {
  switch (op) {
    case BinaryOp::pow: return "^";
    case BinaryOp::mul: return "*";
    case BinaryOp::div: return "/";
    case BinaryOp::mod: return "%";
    case BinaryOp::add: return "+";
    case BinaryOp::sub: return "-";
    case BinaryOp::eq: return "==";
    case BinaryOp::ne: return "!=";
    case BinaryOp::lt: return "<";
    case BinaryOp::le: return "<=";
    case BinaryOp::gt: return ">";
    case BinaryOp::ge: return ">=";
    case BinaryOp::in: return "in";
    case BinaryOp::and_: return "and";
    case BinaryOp::or_: return "or";
    case BinaryOp::coalesce: return "??";
  }
  return "?";
}

}  // namespace modelc::ast

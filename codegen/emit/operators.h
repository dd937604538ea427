// The signs that C++ and GLSL share for operations of one value at a time.
#pragma once

#include "frontend/graph/ops.h"

namespace modelc::emit {

// "+"; null for what is written in another way.
constexpr const char* infix(graph::OpKind op) {
  switch (op) {
    case graph::OpKind::add: return "+";
    case graph::OpKind::sub: return "-";
    case graph::OpKind::mul: return "*";
    case graph::OpKind::div: return "/";
    default: return nullptr;
  }
}

// "<"; null for what compares nothing.
constexpr const char* comparison(graph::OpKind op) {
  switch (op) {
    case graph::OpKind::less: return "<";
    case graph::OpKind::less_equal: return "<=";
    case graph::OpKind::greater: return ">";
    case graph::OpKind::greater_equal: return ">=";
    case graph::OpKind::equal: return "==";
    case graph::OpKind::not_equal: return "!=";
    default: return nullptr;
  }
}

}  // namespace modelc::emit

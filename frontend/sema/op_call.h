// One call of an operation by its name, as the files builder_*.cpp that make operations see it. Private to them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "frontend/sema/expressions.h"
#include "frontend/sema/function_builder.h"

namespace modelc::sema {

struct FunctionBuilder::OpCall {
  FunctionBuilder& builder;
  std::string name;
  std::span<const Argument> arguments;
  source::Span span;

  // Arguments by position, then by name; null where none is given. False when they do not fit (reported).
  bool arrange(const std::vector<Expressions::ParamSpec>& specs, std::vector<const Argument*>& out) const {
    return Expressions(builder.ev_).arrange(specs, arguments, "the operation `" + name + "`", span, out);
  }
};

inline bool left_out(const Argument* argument) {
  return argument == nullptr || argument->value.is_none() || argument->value.is(ValueKind::absent);
}

}  // namespace modelc::sema

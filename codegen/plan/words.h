// The enumerations of a plan as words of its text. Private to the printer and the reader.
#pragma once

#include <array>
#include <string_view>

#include "codegen/plan/plan.h"

namespace modelc::plan {

// By the value of the enumerator.
template <class E> struct Words;
template <> struct Words<BufferKind> {
  static constexpr std::array<std::string_view, 3> list = {"input", "output", "frame"};
};
template <> struct Words<TakesAt> {
  static constexpr std::array<std::string_view, 3> list = {"none", "sequences", "batch"};
};
template <> struct Words<graph::FunctionKind> {
  static constexpr std::array<std::string_view, 3> list = {"forward", "entry", "init"};
};
template <> struct Words<Layout::Kind> {
  static constexpr std::array<std::string_view, 5> list = {"whole", "slice", "transpose", "expand", "repeat"};
};
template <class E>
concept Worded = requires { Words<E>::list; };

}  // namespace modelc::plan

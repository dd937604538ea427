// Where a `policy` rounds values: one rule, which the reference evaluator follows as it runs and lowering as it plans.
//
// A value is rounded as an operation makes it, to the type of the module that it is made in (compute, or what a line for the
// module's path says); a sum with what a loop carries, to the residual's type where that is wider. What `as f32` gives, an
// input and a weight that declare f32, and what is computed from these are not rounded, up to the end of their module: its
// result is of its type again, unless the cast is its last word. Constants are computed in f32.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "frontend/graph/graph.h"

namespace modelc::graph {

// The types that a policy rounds values to as they are made. By default all are f32: exact arithmetic.
struct Precision {
  std::function<DType(const std::string& path)> compute = {};   // of the activations of the module there; none: f32
  DType residual = DType::f32, cache = DType::f32, state = DType::f32;
};
// What the module's `policy` says; of several lines that match the last counts.
Precision precision_of(const Module& module);

// What goes along with a value.
struct Flow {
  enum class Kept : std::uint8_t { no, computed, cast };
  bool carried = false;                          // by a loop, or computed from such a one element by element
  Kept kept = Kept::no;                          // in f32: computed from what is, or that itself
};
struct Rounded {
  Flow flow;
  DType to = DType::f32;                         // f32: the value stays as it is
};

Flow flow_of_weight(const WeightDecl& decl);
// A result of an operation in a module of type `own`.
Rounded rounded_result(const Precision& precision, const Op& op, const Value& result, std::span<const Flow> operands, DType own);
// What a call gives, of a module of type `own`.
Rounded rounded_call(Flow flow, DType own);
// What a loop hands on, and what it starts with.
Rounded rounded_carry(const Precision& precision);

// The same for all instances at once, as code is generated.
struct FunctionRounding {
  std::vector<DType> values;                     // what each value is rounded to as it is made; f32: it is not
  std::vector<DType> results;                    // of the model's own functions: what a result is rounded to as it is given
  DType carried = DType::f32;                    // what a loop starts with and hands on
};
struct Roundings {
  std::map<std::pair<std::uint32_t, std::uint32_t>, FunctionRounding> functions;   // by class and function; none: nothing is rounded
  // Lines that say different things of instances that one function is generated for: there the wider type holds.
  std::vector<std::string> notes;
};
// Of a verified module.
Roundings roundings_of(const Module& module);

}  // namespace modelc::graph

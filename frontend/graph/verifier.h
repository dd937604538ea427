// The rules of a graph, checked: after sema, after reading a text, after every pass that makes or changes one. A graph
// without faults can be printed, lowered and evaluated without further questions.
#pragma once

#include <string>
#include <vector>

#include "frontend/graph/graph.h"

namespace modelc::graph {

// Instances of weights that a module may have; beyond it, it is refused.
inline constexpr std::int64_t max_weight_instances = 1 << 22;

// All faults, each as "Class.function: `op`: what is wrong"; empty: the graph holds. A fault in a graph that sema made
// is a bug of the compiler, and is reported as such. Checked:
//   module     classes stand before those that contain them; names are legal and unique; instance names of weights too
//   members    types known at compile time; inits of consts; sizes of states; `order` names each member once
//   functions  SSA: defined once, before use, inside its block; operands, arguments and types by the shape rules;
//              member paths; calls against the callee's signature; bodies of repeats for every class of element;
//              fields of a Batch; states that operations read and write; stages are paths of children
std::vector<std::string> verify(const Module& module);

}  // namespace modelc::graph

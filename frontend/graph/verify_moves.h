// A call goes over the tokens of its batch once: no state is appended to, or moved on, twice in it, be it in one text, by
// a child that is called twice, or in a loop. Asked of a module whose functions have no other fault.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/graph/graph.h"

namespace modelc::graph {

// States that the functions of a module move on, all of them together.
inline constexpr std::int64_t max_moved_states = 1 << 22;

void verify_moves(const Module& module, std::vector<std::string>& faults);

}  // namespace modelc::graph

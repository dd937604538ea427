// Custom operations as what they mean: each is replaced by the operations of its body, as if its reference stood in its place.
// For what has no use for their shaders.
#pragma once

#include <functional>

#include "frontend/graph/graph.h"

namespace modelc::graph {

// Of a verified module; the result is one, too. Those for which `stays` is true are left as they are.
void expand_custom(Module& module, const std::function<bool(const Custom&)>& stays = {});
bool has_custom(const Module& module);

}  // namespace modelc::graph

// Which device each module, weight and state of a model is on: decided from lines, as data, before any device is opened.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/abi/place_rule.h"
#include "runtime/base/result.h"
#include "runtime/device/module_tree.h"

namespace modelc {

struct Placement {
  std::vector<std::string> devices;                        // their names, whole ("vulkan:0", not "vulkan"), none twice
  std::vector<int> modules, weights;                       // which of them, by the tree's bottom_up() and weights()
};

// What no line matches is on `rest`. A module whose own weights have a line (`**.embed_tokens.weight`) is where they are. Errors,
// "placement": a module with weights on two devices; a line that matches nothing of the model, unless the compiler wrote it (where
// another configuration may have what it names).
Result<Placement> decide_placement(const ModuleTree& tree, std::span<const PlaceRule> rules, const std::string& rest = "cpu");

}  // namespace modelc

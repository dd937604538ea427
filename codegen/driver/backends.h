// What can compute a model's numbers, by the names that `same reference, cpu, vulkan within e` compares under. This list
// is the one place that knows which there are and which of them can run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/place_rule.h"

namespace modelc::driver {

struct Backend {
  std::string_view name;
  bool compiled = true;                          // runs generated code; false: the reference evaluator, in this process
  std::string_view missing = {};                 // why it cannot run; empty: it can
  bool shaders = false;                          // generated code needs them to run there
  std::vector<std::string> arguments = {};       // of the generated program, that make it run there
};

std::span<const Backend> backends();
// Why a model with these lines of `place` cannot be run so here; "": it can.
std::string missing_for(const std::vector<PlaceRule>& placement);
const Backend* find_backend(std::string_view name);        // null: none has this name

}  // namespace modelc::driver

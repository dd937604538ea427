// A line of a model's `place` block, or of `--device`: written by the compiler as data, read by whoever loads the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace modelc {

// The device of the modules and weights that match, or lie below a module that does. The first line that matches counts.
struct PlaceRule {
  std::string pattern;                                     // of tensor_pattern.h: "model.layers"; "**" is the whole model
  std::optional<std::int64_t> first = {}, end = {};        // only these elements of the list that the pattern names; end exclusive
  std::string device;                                      // as open_device takes it: "cpu", "vulkan:0"
  std::string where = {};                                  // "llama.model:135:5"; "" for one that was said elsewhere
};

}  // namespace modelc

// What `--device` and the `device` of other front ends say, as lines of a placement.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/place_rule.h"
#include "runtime/base/result.h"

namespace modelc {

// "model.layers[0..16]=vulkan:0,lm_head=vulkan:0,cpu": elements PATTERN=NAME, or NAME alone for the whole model; the first that
// matches counts. A pattern is one of tensor_pattern.h, and may end with a range of the list that it names: [a..b], [a..], [..b], the
// end exclusive. Devices come back as DeviceName::text writes them. Errors have the kind "device-name" and name the element.
Result<std::vector<PlaceRule>> read_placement(std::string_view text);

// The first line that names a Vulkan device; null: none does.
const PlaceRule* first_vulkan(const std::vector<PlaceRule>& rules);
inline bool names_vulkan(const std::vector<PlaceRule>& rules) { return first_vulkan(rules) != nullptr; }

}  // namespace modelc

#include "codegen/driver/backends.h"

#include <algorithm>

namespace modelc::driver {

std::span<const Backend> backends() {
  static const std::vector<Backend> all = {
      {.name = "reference", .compiled = false},
      {.name = "cpu"},
      {.name = "vulkan", .missing = "the Vulkan backend is not carried out yet"},
  };
  return all;
}

const Backend* find_backend(std::string_view name) {
  const auto all = backends();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Backend& b) { return b.name == name; });
  return at == all.end() ? nullptr : &*at;
}

}  // namespace modelc::driver

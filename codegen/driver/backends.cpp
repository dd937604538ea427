#include "codegen/driver/backends.h"

#include <algorithm>
#include <string>

#include "runtime/device/device.h"

namespace modelc::driver {

std::span<const Backend> backends() {
  static const std::string no_vulkan = [] {
    const auto devices = vulkan_devices();
    if (!devices) return devices.error().message;
    for (const DeviceInfo& d : *devices)
      if (d.usable) return std::string();
    return std::string("Vulkan is there, and no device that can be used");
  }();
  static const std::vector<Backend> all = {
      {.name = "reference", .compiled = false},
      {.name = "cpu"},
      {.name = "vulkan", .missing = no_vulkan, .shaders = true, .arguments = {"--device", "vulkan"}},
  };
  return all;
}

const Backend* find_backend(std::string_view name) {
  const auto all = backends();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Backend& b) { return b.name == name; });
  return at == all.end() ? nullptr : &*at;
}

}  // namespace modelc::driver

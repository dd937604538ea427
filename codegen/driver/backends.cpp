#include "codegen/driver/backends.h"

#include <algorithm>
#include <string>

#include "runtime/device/device.h"
#include "runtime/device/place_text.h"

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
      {.name = "cpu", .arguments = {"--device", "cpu"}},
      {.name = "vulkan", .missing = no_vulkan, .shaders = true, .arguments = {"--device", "vulkan"}},
  };
  return all;
}

std::string missing_for(const std::vector<PlaceRule>& placement) {
  for (const PlaceRule& r : placement) {
    if (!names_vulkan({r})) continue;
    if (const std::string_view missing = find_backend("vulkan")->missing; !missing.empty()) return std::string(missing);
    const auto devices = vulkan_devices();
    const auto is_there = [&](const DeviceInfo& d) { return d.name == r.device && d.usable; };
    if (!devices || std::none_of(devices->begin(), devices->end(), is_there)) return "there is no " + r.device + " here that can be used";
  }
  return "";
}

const Backend* find_backend(std::string_view name) {
  const auto all = backends();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Backend& b) { return b.name == name; });
  return at == all.end() ? nullptr : &*at;
}

}  // namespace modelc::driver

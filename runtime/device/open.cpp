// Devices by the names that people give them.
#include "runtime/base/strings.h"
#include "runtime/device/device.h"

namespace modelc {

Result<std::unique_ptr<Device>> open_device(const std::string& name, const CpuOptions& cpu, const VulkanOptions& vulkan) {
  if (name.empty() || name == "cpu") return open_cpu(cpu);
  if (name.starts_with("vulkan")) {
    VulkanOptions options = vulkan;
    options.device = 0;
    if (name == "vulkan") return open_vulkan(options);
    const auto number = name[6] == ':' ? parse_int(std::string_view(name).substr(7)) : std::nullopt;
    if (number && *number >= 0 && *number < 1024) {
      options.device = static_cast<int>(*number);
      return open_vulkan(options);
    }
  }
  return Error{"device-name", "there is no device " + quote(name), {}, "cpu, vulkan or vulkan:N; `modelc devices` lists them"};
}

}  // namespace modelc

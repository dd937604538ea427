// Devices by the names that people give them.
#include "runtime/base/device_name.h"
#include "runtime/base/strings.h"
#include "runtime/device/device.h"

namespace modelc {

Result<std::unique_ptr<Device>> open_device(const std::string& name, const CpuOptions& cpu, const VulkanOptions& vulkan) {
  const auto known = name.empty() ? DeviceName{} : read_device_name(name);
  if (!known) return Error{"device-name", "there is no device " + quote(name), {}, device_names_help};
  if (!known->vulkan) return open_cpu(cpu);
  VulkanOptions options = vulkan;
  options.device = known->number;
  return open_vulkan(options);
}

}  // namespace modelc

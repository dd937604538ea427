// In place of everything else here where the runtime was built without Vulkan.
#include "runtime/device/device.h"

namespace modelc {

Result<std::unique_ptr<Device>> open_vulkan(const VulkanOptions&) {
  return Error{"no-vulkan",
               "this modelc was built without Vulkan",
               {"when it was configured, this was missing: " MODELC_VULKAN_MISSING},
               "install what is missing and build again, or run on the CPU"};
}

Result<std::vector<DeviceInfo>> vulkan_devices() {
  return Error{
      "no-vulkan", "this modelc was built without Vulkan", {"when it was configured, this was missing: " MODELC_VULKAN_MISSING}, {}};
}

}  // namespace modelc

// What devices there are, for people.
#include "runtime/base/host_memory.h"
#include "runtime/base/strings.h"
#include "runtime/device/device.h"
#include "runtime/vulkan/context.h"

namespace modelc {

Result<std::vector<DeviceInfo>> vulkan_devices() {
  auto instance = vulkan::Instance::open();
  if (!instance) return std::move(instance.error());
  auto devices = vulkan::physical_devices(**instance);
  if (!devices) return std::move(devices.error());
  const HostMemory host = host_memory();
  std::vector<DeviceInfo> list;
  for (std::size_t i = 0; i < devices->size(); ++i) {
    const vulkan::DeviceDescription d = vulkan::describe(**instance, (*devices)[i]);
    DeviceInfo info;
    info.name = "vulkan:" + std::to_string(i);
    info.description = d.name + ", " + vulkan::name_of(d.kind) + ", Vulkan " + std::to_string(d.version_major) + "." +
                       std::to_string(d.version_minor) + ", " + d.driver;
    info.limits = vulkan::heap_table(d);
    const vulkan::DeviceMemory memory = vulkan::memory_of(d, host.available);
    info.memory = memory.bytes;
    info.free = memory.free;
    if (!memory.said) info.limits.push_back("its driver does not say how much of its memory is in use");
    info.limits.push_back("a piece of memory: at most " + human_bytes(d.max_allocation) + "; a shader sees " +
                          human_bytes(d.max_storage_range) + " of it");
    info.limits.push_back("workgroups: " + std::to_string(d.max_group_size) + " invocations, " + human_bytes(d.shared_bytes) + " shared; " +
                          std::to_string(d.max_groups[0]) + " along an axis");
    std::vector<std::string> features;
    const auto feature = [&](bool has, std::string text) {
      if (has) features.push_back(std::move(text));
    };
    // By the names that a custom operation's `requires` has for them.
    feature(d.subgroup_arithmetic, "subgroups of " + std::to_string(d.subgroup_size));
    feature(d.subgroup_arithmetic, "subgroup_arithmetic");
    feature(d.subgroup_shuffle, "subgroup_shuffle");
    feature(d.float16, "float16");
    feature(d.float64, "float64");
    feature(d.int8, "int8");
    feature(d.int16, "int16");
    feature(d.int64, "int64");
    feature(d.storage8, "storage8");
    feature(d.storage16, "storage16");
    if (!features.empty()) info.limits.push_back("has " + join(features, ", "));
    if (const auto plan = vulkan::plan_device(d); !plan) {
      info.usable = false;
      info.limits.push_back("cannot be used: " + plan.error().message);
    }
    list.push_back(std::move(info));
  }
  return list;
}

}  // namespace modelc

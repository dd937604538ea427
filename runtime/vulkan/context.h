// An opened device: its handle, queue and functions, what it says of itself and what was decided for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/vulkan/api.h"
#include "runtime/vulkan/description.h"
#include "runtime/vulkan/device_plan.h"

namespace modelc::vulkan {

struct Context {
  std::shared_ptr<Instance> instance;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  DeviceFunctions f;
  DeviceDescription description;
  DevicePlan plan;

  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  // An error of Vulkan's as ours: what was done, the name of the result, and where memory ran out the heaps.
  Error failed(VkResult r, const std::string& doing) const;
};

// The devices of an instance, the first that are best (order_devices).
Result<std::vector<VkPhysicalDevice>> physical_devices(const Instance& instance);
DeviceDescription describe(const Instance& instance, VkPhysicalDevice device);

// Opens device `number` with what the plan takes of it.
Result<std::unique_ptr<Context>> open_context(std::shared_ptr<Instance> instance, VkPhysicalDevice device, const PlanOptions& options);

// "heap 0: 24.0 GiB, device", one line a heap.
std::vector<std::string> heap_table(const DeviceDescription& d);

}  // namespace modelc::vulkan

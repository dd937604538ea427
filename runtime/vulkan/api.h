// The functions of Vulkan that are used, found at run time: a program that was built with this library starts where no
// Vulkan is installed, and says so when it is asked for a GPU.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <memory>
#include <string>

#include "runtime/base/result.h"

namespace modelc::vulkan {

// Lists of names, which the formatter takes for calls in calls.
// clang-format off
#define MODELC_VULKAN_INSTANCE_FUNCTIONS(F) \
  F(DestroyInstance) F(EnumeratePhysicalDevices) F(GetPhysicalDeviceProperties2) F(GetPhysicalDeviceFeatures2) \
  F(GetPhysicalDeviceMemoryProperties2) F(GetPhysicalDeviceQueueFamilyProperties) F(EnumerateDeviceExtensionProperties) \
  F(CreateDevice) F(GetDeviceProcAddr)

#define MODELC_VULKAN_DEVICE_FUNCTIONS(F) \
  F(DestroyDevice) F(GetDeviceQueue) F(DeviceWaitIdle) F(AllocateMemory) F(FreeMemory) F(MapMemory) F(CreateBuffer) \
  F(DestroyBuffer) F(GetBufferMemoryRequirements) F(BindBufferMemory) F(CreateCommandPool) F(DestroyCommandPool) \
  F(AllocateCommandBuffers) F(BeginCommandBuffer) F(EndCommandBuffer) F(FreeCommandBuffers) F(CreateFence) F(DestroyFence) \
  F(ResetFences) F(WaitForFences) F(GetFenceStatus) F(QueueSubmit) F(CmdPipelineBarrier) F(CmdBindPipeline) \
  F(CmdBindDescriptorSets) F(CmdPushConstants) F(CmdDispatch) F(CmdCopyBuffer) F(CmdFillBuffer) F(CreateDescriptorSetLayout) \
  F(DestroyDescriptorSetLayout) F(CreateDescriptorPool) F(DestroyDescriptorPool) \
  F(AllocateDescriptorSets) F(UpdateDescriptorSets) F(CreatePipelineLayout) F(DestroyPipelineLayout) F(CreateShaderModule) \
  F(DestroyShaderModule) F(CreateComputePipelines) F(DestroyPipeline) F(CreatePipelineCache) F(DestroyPipelineCache) \
  F(GetPipelineCacheData)
// clang-format on

// One instance of Vulkan and its functions; destroyed with the last that holds it.
class Instance {
 public:
  // Errors: "no-vulkan" where no loader, or no Vulkan 1.1, is there.
  static Result<std::shared_ptr<Instance>> open();
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  VkInstance handle = VK_NULL_HANDLE;
#define MODELC_DECLARE(name) PFN_vk##name name = nullptr;
  MODELC_VULKAN_INSTANCE_FUNCTIONS(MODELC_DECLARE)

 private:
  Instance() = default;
  void* library_ = nullptr;
};

// The functions of one device.
struct DeviceFunctions {
  MODELC_VULKAN_DEVICE_FUNCTIONS(MODELC_DECLARE)
#undef MODELC_DECLARE
  void find(const Instance& instance, VkDevice device);
};

// "VK_ERROR_DEVICE_LOST"
std::string name_of(VkResult r);

}  // namespace modelc::vulkan

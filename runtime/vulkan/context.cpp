#include "runtime/vulkan/context.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/strings.h"
#include "runtime/vulkan/shaders.h"

namespace modelc::vulkan {
namespace {

// Structures that Vulkan fills in, chained.
template <class T> T chained(VkStructureType type, void* next) {
  T t{};
  t.sType = type;
  t.pNext = next;
  return t;
}

bool has_extension(const Instance& instance, VkPhysicalDevice device, const char* name) {
  std::uint32_t n = 0;
  if (instance.EnumerateDeviceExtensionProperties(device, nullptr, &n, nullptr) != VK_SUCCESS) return false;
  std::vector<VkExtensionProperties> all(n);
  if (instance.EnumerateDeviceExtensionProperties(device, nullptr, &n, all.data()) != VK_SUCCESS) return false;
  return std::any_of(all.begin(), all.end(), [&](const VkExtensionProperties& e) { return std::strcmp(e.extensionName, name) == 0; });
}

}  // namespace

Context::~Context() {
  if (device != VK_NULL_HANDLE) f.DestroyDevice(device, nullptr);
}

std::vector<std::string> heap_table(const DeviceDescription& d) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < d.heaps.size(); ++i)
    lines.push_back("heap " + std::to_string(i) + ": " + human_bytes(d.heaps[i].bytes) + (d.heaps[i].device_local ? ", device" : ", host"));
  return lines;
}

Error Context::failed(VkResult r, const std::string& doing) const {
  if (r == VK_ERROR_OUT_OF_DEVICE_MEMORY || r == VK_ERROR_OUT_OF_HOST_MEMORY)
    return {"out-of-memory", description.name + ": " + doing + ": " + name_of(r), heap_table(description),
            "a smaller model, a shorter context, or another device"};
  if (r == VK_ERROR_DEVICE_LOST)
    return {
        "device-lost", description.name + ": " + doing + ": " + name_of(r), {}, "the device was reset or taken away: load the model again"};
  return {"vulkan", description.name + ": " + doing + ": " + name_of(r), {}, {}};
}

Result<std::vector<VkPhysicalDevice>> physical_devices(const Instance& instance) {
  std::uint32_t n = 0;
  std::vector<VkPhysicalDevice> devices;
  VkResult r = instance.EnumeratePhysicalDevices(instance.handle, &n, nullptr);
  if (r == VK_SUCCESS && n > 0) {
    devices.resize(n);
    r = instance.EnumeratePhysicalDevices(instance.handle, &n, devices.data());
    devices.resize(n);
  }
  if (r != VK_SUCCESS && r != VK_INCOMPLETE)
    return Error{"no-vulkan",
                 "no Vulkan driver answers (" + name_of(r) + ")",
                 {},
                 "install a Vulkan driver (Debian: mesa-vulkan-drivers), or run on the CPU"};
  if (devices.size() < 2) return devices;
  std::vector<DeviceDescription> all;
  for (VkPhysicalDevice device : devices) all.push_back(describe(instance, device));
  std::vector<VkPhysicalDevice> ordered;
  for (const std::size_t i : order_devices(all)) ordered.push_back(devices[i]);
  return ordered;
}

DeviceDescription describe(const Instance& instance, VkPhysicalDevice device) {
  DeviceDescription d;
  auto control =
      chained<VkPhysicalDeviceSubgroupSizeControlProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES, nullptr);
  auto subgroup = chained<VkPhysicalDeviceSubgroupProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, nullptr);
  auto driver = chained<VkPhysicalDeviceDriverProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES, &subgroup);
  auto third = chained<VkPhysicalDeviceMaintenance3Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, &driver);
  auto all = chained<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &third);
  instance.GetPhysicalDeviceProperties2(device, &all);
  const VkPhysicalDeviceProperties& p = all.properties;
  const bool core13 = p.apiVersion >= VK_API_VERSION_1_3;
  const bool size_control = core13 || has_extension(instance, device, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  d.name = p.deviceName;
  d.driver = std::string(driver.driverName) + " " + driver.driverInfo;
  d.vendor = p.vendorID;
  d.device = p.deviceID;
  d.driver_version = p.driverVersion;
  d.version_major = VK_API_VERSION_MAJOR(p.apiVersion);
  d.version_minor = VK_API_VERSION_MINOR(p.apiVersion);
  std::copy(std::begin(p.pipelineCacheUUID), std::end(p.pipelineCacheUUID), d.cache_uuid.begin());
  switch (p.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: d.kind = DeviceKind::integrated; break;
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: d.kind = DeviceKind::discrete; break;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: d.kind = DeviceKind::virtual_gpu; break;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: d.kind = DeviceKind::cpu; break;
    default: break;
  }
  d.max_storage_range = p.limits.maxStorageBufferRange;
  d.max_allocation = third.maxMemoryAllocationSize;
  d.max_allocations = p.limits.maxMemoryAllocationCount;
  d.storage_alignment = static_cast<std::uint32_t>(p.limits.minStorageBufferOffsetAlignment);
  d.max_push_bytes = p.limits.maxPushConstantsSize;
  d.max_bindings = std::min(p.limits.maxPerStageDescriptorStorageBuffers, p.limits.maxDescriptorSetStorageBuffers);
  std::copy_n(p.limits.maxComputeWorkGroupCount, 3, d.max_groups.begin());
  d.max_group_size = p.limits.maxComputeWorkGroupInvocations;
  d.max_group_x = p.limits.maxComputeWorkGroupSize[0];
  d.shared_bytes = p.limits.maxComputeSharedMemorySize;

  // What came with 1.2 or 1.3 is asked for where it is.
  auto control_features =
      chained<VkPhysicalDeviceSubgroupSizeControlFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, nullptr);
  auto storage8 = chained<VkPhysicalDevice8BitStorageFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
                                                               size_control ? &control_features : nullptr);
  auto storage16 = chained<VkPhysicalDevice16BitStorageFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, &storage8);
  auto small =
      chained<VkPhysicalDeviceShaderFloat16Int8Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, &storage16);
  auto features = chained<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                                     p.apiVersion >= VK_API_VERSION_1_2 ? &small : nullptr);
  instance.GetPhysicalDeviceFeatures2(device, &features);
  d.float16 = small.shaderFloat16;
  d.int8 = small.shaderInt8;
  d.int16 = features.features.shaderInt16;
  d.storage16 = storage16.storageBuffer16BitAccess;
  d.storage8 = storage8.storageBuffer8BitAccess;
  d.float64 = features.features.shaderFloat64;
  d.int64 = features.features.shaderInt64;
  d.subgroup_size = subgroup.subgroupSize;
  d.subgroup_min = d.subgroup_max = subgroup.subgroupSize;
  d.subgroup_arithmetic = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                          (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) != 0;
  d.subgroup_shuffle = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                       (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0;
  d.subgroup_ballot =
      (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 && (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_BALLOT_BIT) != 0;
  if (size_control && p.apiVersion >= VK_API_VERSION_1_2) {
    auto again = chained<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &control);
    instance.GetPhysicalDeviceProperties2(device, &again);
    d.subgroup_min = control.minSubgroupSize;
    d.subgroup_max = control.maxSubgroupSize;
    d.full_subgroups = control_features.subgroupSizeControl && control_features.computeFullSubgroups &&
                       (control.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  }

  auto budget = chained<VkPhysicalDeviceMemoryBudgetPropertiesEXT>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT, nullptr);
  const bool budgets = has_extension(instance, device, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  auto memory =
      chained<VkPhysicalDeviceMemoryProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, budgets ? &budget : nullptr);
  instance.GetPhysicalDeviceMemoryProperties2(device, &memory);
  const VkPhysicalDeviceMemoryProperties& m = memory.memoryProperties;
  for (std::uint32_t i = 0; i < m.memoryHeapCount; ++i)
    d.heaps.push_back({m.memoryHeaps[i].size, (m.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0,
                       budgets ? std::optional(budget.heapBudget[i] - std::min(budget.heapBudget[i], budget.heapUsage[i])) : std::nullopt});
  for (std::uint32_t i = 0; i < m.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = m.memoryTypes[i].propertyFlags;
    d.types.push_back({m.memoryTypes[i].heapIndex, (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0,
                       (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0, (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0,
                       (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0});
  }
  std::uint32_t n = 0;
  instance.GetPhysicalDeviceQueueFamilyProperties(device, &n, nullptr);
  std::vector<VkQueueFamilyProperties> families(n);
  instance.GetPhysicalDeviceQueueFamilyProperties(device, &n, families.data());
  for (const VkQueueFamilyProperties& q : families)
    d.queues.push_back({q.queueCount, (q.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0, (q.queueFlags & VK_QUEUE_TRANSFER_BIT) != 0,
                        (q.queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0});
  return d;
}

Result<std::unique_ptr<Context>> open_context(std::shared_ptr<Instance> instance, VkPhysicalDevice physical, const PlanOptions& options) {
  auto c = std::make_unique<Context>();
  c->instance = std::move(instance);
  c->physical = physical;
  c->description = describe(*c->instance, physical);
  auto plan = plan_device(c->description, options);
  if (!plan) return std::move(plan.error());
  c->plan = *plan;

  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = c->plan.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  std::vector<const char*> extensions;
  auto control =
      chained<VkPhysicalDeviceSubgroupSizeControlFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, nullptr);
  control.subgroupSizeControl = control.computeFullSubgroups = VK_TRUE;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  // What shaders of the runtime and of custom operations may use.
  const auto taken = [&](std::uint32_t feature) -> VkBool32 { return (c->plan.features & feature) != 0 ? VK_TRUE : VK_FALSE; };
  auto storage8 = chained<VkPhysicalDevice8BitStorageFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, nullptr);
  storage8.storageBuffer8BitAccess = taken(needs_storage8);
  auto storage16 = chained<VkPhysicalDevice16BitStorageFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, &storage8);
  storage16.storageBuffer16BitAccess = taken(needs_storage16);
  auto small =
      chained<VkPhysicalDeviceShaderFloat16Int8Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, &storage16);
  small.shaderFloat16 = taken(needs_float16);
  small.shaderInt8 = taken(needs_int8);
  auto core = chained<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &small);
  core.features.shaderInt16 = taken(needs_int16);
  core.features.shaderInt64 = taken(needs_int64);
  core.features.shaderFloat64 = taken(needs_float64);
  info.pNext = &core;
  if (c->plan.subgroup > 0) {
    storage8.pNext = &control;
    if (c->description.version_minor < 3) extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  }
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  if (const VkResult r = c->instance->CreateDevice(physical, &info, nullptr, &c->device); r != VK_SUCCESS) {
    c->device = VK_NULL_HANDLE;
    return c->failed(r, "opening the device");
  }
  c->f.find(*c->instance, c->device);
  c->f.GetDeviceQueue(c->device, c->plan.queue_family, 0, &c->queue);
  return c;
}

}  // namespace modelc::vulkan

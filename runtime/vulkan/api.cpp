#include "runtime/vulkan/api.h"

#include <dlfcn.h>

namespace modelc::vulkan {
namespace {

Error no_vulkan(std::string what) {
  return {"no-vulkan", std::move(what), {}, "install a Vulkan driver (Debian: mesa-vulkan-drivers), or run on the CPU"};
}

}  // namespace

Result<std::shared_ptr<Instance>> Instance::open() {
  std::shared_ptr<Instance> i(new Instance);
  for (const char* name : {"libvulkan.so.1", "libvulkan.so"})
    if (i->library_ == nullptr) i->library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (i->library_ == nullptr) return no_vulkan("the Vulkan loader (libvulkan.so.1) is not installed");
  const auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(i->library_, "vkGetInstanceProcAddr"));
  if (get == nullptr) return no_vulkan("the Vulkan loader has no vkGetInstanceProcAddr");
  const auto version = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(get(nullptr, "vkEnumerateInstanceVersion"));
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
  std::uint32_t has = VK_API_VERSION_1_0;
  if (version != nullptr) version(&has);
  if (create == nullptr || has < VK_API_VERSION_1_1) return no_vulkan("the Vulkan loader is of version 1.0; 1.1 is needed");

  VkApplicationInfo app{};
  app.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  app.pApplicationName = "modelc";
  app.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &app;
  if (const VkResult r = create(&info, nullptr, &i->handle); r != VK_SUCCESS) {
    i->handle = VK_NULL_HANDLE;
    return no_vulkan("no Vulkan driver answers (" + name_of(r) + ")");
  }
#define MODELC_FIND(name) i->name = reinterpret_cast<PFN_vk##name>(get(i->handle, "vk" #name));
  MODELC_VULKAN_INSTANCE_FUNCTIONS(MODELC_FIND)
#undef MODELC_FIND
  return i;
}

// The loader stays: drivers leave threads and exit handlers behind that still point into it.
Instance::~Instance() {
  if (handle != VK_NULL_HANDLE && DestroyInstance != nullptr) DestroyInstance(handle, nullptr);
}

void DeviceFunctions::find(const Instance& instance, VkDevice device) {
#define MODELC_FIND(name) name = reinterpret_cast<PFN_vk##name>(instance.GetDeviceProcAddr(device, "vk" #name));
  MODELC_VULKAN_DEVICE_FUNCTIONS(MODELC_FIND)
#undef MODELC_FIND
}

std::string name_of(VkResult r) {
  switch (r) {
#define MODELC_NAME(x) \
  case x: return #x;
    MODELC_NAME(VK_SUCCESS)
    MODELC_NAME(VK_NOT_READY)
    MODELC_NAME(VK_TIMEOUT)
    MODELC_NAME(VK_INCOMPLETE)
    MODELC_NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
    MODELC_NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    MODELC_NAME(VK_ERROR_INITIALIZATION_FAILED)
    MODELC_NAME(VK_ERROR_DEVICE_LOST)
    MODELC_NAME(VK_ERROR_MEMORY_MAP_FAILED)
    MODELC_NAME(VK_ERROR_LAYER_NOT_PRESENT)
    MODELC_NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
    MODELC_NAME(VK_ERROR_FEATURE_NOT_PRESENT)
    MODELC_NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
    MODELC_NAME(VK_ERROR_TOO_MANY_OBJECTS)
    MODELC_NAME(VK_ERROR_FRAGMENTED_POOL)
    MODELC_NAME(VK_ERROR_OUT_OF_POOL_MEMORY)
    MODELC_NAME(VK_ERROR_INVALID_SHADER_NV)
#undef MODELC_NAME
    default: return "VkResult " + std::to_string(static_cast<int>(r));
  }
}

}  // namespace modelc::vulkan

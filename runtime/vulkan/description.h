// What a device says of itself, as plain data: enough to decide how it is used (device_plan.h) without the device. Tests
// and `modelc devices` use it, too.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace modelc::vulkan {

enum class DeviceKind : std::uint8_t { other, integrated, discrete, virtual_gpu, cpu };

struct MemoryHeap {
  std::uint64_t bytes = 0;
  bool device_local = false;
  std::optional<std::uint64_t> free = {};                  // that this process may still have now; none: the driver does not say
};
struct MemoryType {
  std::uint32_t heap = 0;
  bool device_local = false, host_visible = false, coherent = false, cached = false;
};
struct QueueFamily {
  std::uint32_t count = 0;
  bool compute = false, transfer = false, graphics = false;
};

struct DeviceDescription {
  std::string name, driver;                                // "llvmpipe (LLVM 15.0.6, 256 bits)", "llvmpipe Mesa 22.3.6"
  std::uint32_t vendor = 0, device = 0, driver_version = 0;
  std::uint32_t version_major = 1, version_minor = 0;      // of Vulkan
  std::array<std::uint8_t, 16> cache_uuid{};               // of the driver's pipeline cache
  DeviceKind kind = DeviceKind::other;

  std::vector<MemoryHeap> heaps;
  std::vector<MemoryType> types;
  std::vector<QueueFamily> queues;

  // Limits.
  std::uint64_t max_storage_range = 0;                     // bytes of a buffer that one binding shows
  std::uint64_t max_allocation = 0;                        // bytes of one piece of memory
  std::uint32_t max_allocations = 0;
  std::uint32_t storage_alignment = 256;                   // of a binding's first byte
  std::uint32_t max_push_bytes = 0;
  std::uint32_t max_bindings = 0;                          // storage buffers that one shader sees
  std::array<std::uint32_t, 3> max_groups{};               // workgroups along each axis of a dispatch
  std::uint32_t max_group_size = 0, max_group_x = 0;       // invocations of a workgroup; along its first axis
  std::uint32_t shared_bytes = 0;

  // Subgroups: their usual size; whether a shader may ask for all lanes, of a size between these.
  std::uint32_t subgroup_size = 0, subgroup_min = 0, subgroup_max = 0;
  bool subgroup_arithmetic = false, subgroup_shuffle = false, subgroup_ballot = false, full_subgroups = false;

  bool float16 = false, int8 = false, int16 = false, storage16 = false, storage8 = false, float64 = false, int64 = false;
};

const char* name_of(DeviceKind kind);                      // "discrete GPU"

}  // namespace modelc::vulkan

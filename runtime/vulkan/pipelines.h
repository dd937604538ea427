// Shaders made ready to run: one pipeline for each shader and each set of its constants, made when it is first needed,
// and the driver's own cache of them on disk.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/vulkan/context.h"
#include "runtime/vulkan/dispatch.h"

namespace modelc::vulkan {

class Pipelines {
 public:
  // Reads the cache of this device and driver; a damaged one, or one of another driver, is as none.
  explicit Pipelines(const Context& c);
  Pipelines(const Pipelines&) = delete;
  ~Pipelines();                                            // writes the cache when it has grown

  struct Layout {
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipelineLayout pipeline = VK_NULL_HANDLE;
  };
  // Of shaders with so many storage buffers.
  Result<Layout> layout(std::size_t bindings);
  // The pipeline that the dispatch needs.
  Result<VkPipeline> pipeline(const Dispatch& d);

 private:
  struct Key {
    const char* code;
    std::uint32_t group_size, subgroup;
    std::vector<std::uint32_t> constants;
    auto operator<=>(const Key&) const = default;
  };
  const Context& c_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::size_t loaded_ = 0;                                 // bytes that the cache had when it was read
  std::map<std::size_t, Layout> layouts_;
  std::map<const char*, VkShaderModule> modules_;
  std::map<Key, VkPipeline> pipelines_;
};

// The file of a pipeline cache: a head that says for which driver it is, the length and a checksum, then the driver's
// bytes. nullopt: not whole, or another driver's.
std::vector<std::byte> pack_cache(const DeviceDescription& d, std::span<const std::byte> data);
std::optional<std::vector<std::byte>> unpack_cache(const DeviceDescription& d, std::span<const std::byte> file);

}  // namespace modelc::vulkan

// Memory of a device: a few large blocks, from which tensors are cut.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "runtime/tensor/tensor.h"
#include "runtime/vulkan/context.h"

namespace modelc::vulkan {

// One piece of Vulkan's memory and a buffer over all of it.
struct Block {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  std::uint64_t bytes = 0;
  std::byte* host = nullptr;                               // where the host sees it, if it was asked for
  std::map<std::uint64_t, std::uint64_t> free;             // begin → length of what is not used; neighbours joined
};

struct GpuBuffer : Buffer {
  Block* block = nullptr;
  std::uint64_t begin = 0, reserved = 0;                   // in the block
};

class Memory {
 public:
  explicit Memory(const Context& c) : c_(c) {}
  Memory(const Memory&) = delete;
  ~Memory();

  // Device memory for a tensor of `size` bytes. Errors: "out-of-memory" with the heaps; "tensor-size" with the limit.
  Result<GpuBuffer*> allocate(std::int64_t size, const Device* owner);
  void release(GpuBuffer* b);
  // A block for the host's use, mapped.
  Result<Block> host_block(std::uint64_t bytes, std::uint32_t type) const;
  void destroy(Block& b) const;

  std::uint64_t reserved() const { return reserved_; }     // bytes of all blocks
  std::size_t blocks() const { return blocks_.size(); }

 private:
  Result<Block> make(std::uint64_t bytes, std::uint32_t type, bool mapped) const;
  const Context& c_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::map<GpuBuffer*, std::unique_ptr<GpuBuffer>> buffers_;
  std::uint64_t reserved_ = 0;
};

}  // namespace modelc::vulkan

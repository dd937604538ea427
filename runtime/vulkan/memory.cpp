#include "runtime/vulkan/memory.h"

#include <algorithm>
#include <cassert>

#include "runtime/base/strings.h"

namespace modelc::vulkan {

Memory::~Memory() {
  for (const auto& b : blocks_) destroy(*b);
}

void Memory::destroy(Block& b) const {
  if (b.buffer != VK_NULL_HANDLE) c_.f.DestroyBuffer(c_.device, b.buffer, nullptr);
  if (b.memory != VK_NULL_HANDLE) c_.f.FreeMemory(c_.device, b.memory, nullptr);
  b = {};
}

Result<Block> Memory::make(std::uint64_t bytes, std::uint32_t type, bool mapped) const {
  Block b;
  b.bytes = bytes;
  const auto give_up = [&](VkResult r, const char* doing) {
    destroy(b);
    return c_.failed(r, std::string(doing) + " of " + human_bytes(bytes) + " (" + human_bytes(reserved_) + " are in use)");
  };
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  if (const VkResult r = c_.f.CreateBuffer(c_.device, &info, nullptr, &b.buffer); r != VK_SUCCESS) {
    b.buffer = VK_NULL_HANDLE;
    return give_up(r, "a buffer");
  }
  VkMemoryRequirements needs{};
  c_.f.GetBufferMemoryRequirements(c_.device, b.buffer, &needs);
  if ((needs.memoryTypeBits >> type & 1) == 0) {
    // The plan's type is not for buffers: the first that is, and that the host sees if it has to.
    const auto& types = c_.description.types;
    std::uint32_t other = 0;
    while (other < types.size() &&
           ((needs.memoryTypeBits >> other & 1) == 0 || (mapped && !(types[other].host_visible && types[other].coherent))))
      ++other;
    if (other == types.size()) return give_up(VK_ERROR_FEATURE_NOT_PRESENT, "a type of memory for a buffer");
    type = other;
  }
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = type;
  if (const VkResult r = c_.f.AllocateMemory(c_.device, &allocate, nullptr, &b.memory); r != VK_SUCCESS) {
    b.memory = VK_NULL_HANDLE;
    return give_up(r, "memory");
  }
  if (const VkResult r = c_.f.BindBufferMemory(c_.device, b.buffer, b.memory, 0); r != VK_SUCCESS) return give_up(r, "binding memory");
  if (mapped) {
    void* host = nullptr;
    if (const VkResult r = c_.f.MapMemory(c_.device, b.memory, 0, VK_WHOLE_SIZE, 0, &host); r != VK_SUCCESS)
      return give_up(r, "mapping memory");
    b.host = static_cast<std::byte*>(host);
  }
  return b;
}

Result<Block> Memory::host_block(std::uint64_t bytes, std::uint32_t type) const { return make(bytes, type, true); }

Result<GpuBuffer*> Memory::allocate(std::int64_t size, const Device* owner) {
  const std::uint64_t alignment = c_.plan.alignment;
  if (size < 0 || static_cast<std::uint64_t>(size) > c_.plan.largest_tensor - std::min(c_.plan.largest_tensor, alignment))
    return Error{"tensor-size",
                 c_.description.name + ": a tensor of " + grouped(size) + " bytes; one piece of memory has at most " +
                     grouped(c_.plan.largest_tensor),
                 heap_table(c_.description), "fewer tokens in a call, or another device"};
  const std::uint64_t bytes =
      std::max<std::uint64_t>((static_cast<std::uint64_t>(size) + alignment - 1) / alignment * alignment, alignment);
  Block* block = nullptr;
  std::uint64_t begin = 0;
  // Best fit; what is as large as a block has one of its own.
  for (const auto& b : blocks_)
    for (const auto& [at, length] : b->free)
      if (length >= bytes && (block == nullptr || length < block->free[begin])) {
        block = b.get();
        begin = at;
      }
  if (block == nullptr) {
    auto made = make(std::max(bytes, c_.plan.block_bytes), c_.plan.device_type, false);
    // Where no whole block is left, what is needed may still be.
    if (!made && made.error().kind == "out-of-memory" && bytes < c_.plan.block_bytes) made = make(bytes, c_.plan.device_type, false);
    if (!made) return std::move(made.error());
    blocks_.push_back(std::make_unique<Block>(std::move(*made)));
    block = blocks_.back().get();
    block->free[0] = block->bytes;
    begin = 0;
    reserved_ += block->bytes;
  }
  const std::uint64_t length = block->free[begin];
  block->free.erase(begin);
  if (length > bytes) block->free[begin + bytes] = length - bytes;
  auto b = std::make_unique<GpuBuffer>();
  b->size = size;
  b->owner = owner;
  b->handle = begin;
  b->block = block;
  b->begin = begin;
  b->reserved = bytes;
  GpuBuffer* const p = b.get();
  buffers_.emplace(p, std::move(b));
  return p;
}

void Memory::release(GpuBuffer* b) {
  assert(buffers_.count(b) == 1);
  Block* const block = b->block;
  std::uint64_t begin = b->begin, length = b->reserved;
  buffers_.erase(b);
  auto next = block->free.lower_bound(begin);
  if (next != block->free.end() && next->first == begin + length) {
    length += next->second;
    next = block->free.erase(next);
  }
  if (next != block->free.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      length += before->second;
      block->free.erase(before);
    }
  }
  block->free[begin] = length;
  if (length < block->bytes) return;
  // An empty block goes back, unless it is of the usual size and the only one: the next tensor would ask for it again.
  if (block->bytes == c_.plan.block_bytes && blocks_.size() == 1) return;
  reserved_ -= block->bytes;
  const auto at = std::find_if(blocks_.begin(), blocks_.end(), [&](const auto& x) { return x.get() == block; });
  destroy(**at);
  blocks_.erase(at);
}

}  // namespace modelc::vulkan

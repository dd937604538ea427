// What a loaded model holds: private to this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/checkpoint/tensor_data.h"
#include "runtime/device/model.h"
#include "runtime/device/module_tree.h"

namespace modelc {

// An entry's shapes, parsed when the model is loaded: an axis is a number or a run-time axis.
struct PortAxis {
  enum class Kind : std::uint8_t { number, tokens, outputs, batch } kind = Kind::number;
  std::int64_t number = 0;
};
struct Port {
  const PortDesc* desc = nullptr;
  std::vector<PortAxis> axes;
};
struct Entry {
  const EntryDesc* desc = nullptr;
  std::vector<Port> inputs, outputs;
};
// "[outputs, 64]"; an axis that is neither a number nor tokens, outputs or batch is an error ("axis").
Result<std::vector<PortAxis>> parse_axes(const char* shape);

struct Model::Impl {
  explicit Impl(std::shared_ptr<Device> d) : device(std::move(d)), memory(*device) {}
  Impl(const Impl&) = delete;
  ~Impl() {
    for (const Buffer* b : buffers) device->free(b);
    if (arena != nullptr) device->free(arena);
  }

  std::shared_ptr<Device> device;
  // Weights: files that tensors view, and buffers of what was converted or computed.
  std::vector<std::shared_ptr<const MappedFile>> files;
  std::vector<const Buffer*> buffers;
  std::vector<ModuleTree::NamedState> states;
  std::vector<Entry> entries;
  // Of calls.
  std::recursive_mutex lock;
  StepMemory memory;
  const Buffer* arena = nullptr;
  std::vector<Tensor> inputs, outputs;
  std::vector<std::vector<std::byte>> read_back;           // of a device whose memory the host cannot read
};

// Slots of Impl::memory for inputs and outputs come far behind those of a step.
inline constexpr std::size_t first_port_slot = 1 << 12;

}  // namespace modelc

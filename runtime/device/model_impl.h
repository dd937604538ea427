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
#include "runtime/device/call_checks.h"
#include "runtime/device/model.h"
#include "runtime/device/module_tree.h"

namespace modelc {

struct ModelImpl {
  explicit ModelImpl(std::shared_ptr<Device> d) : device(std::move(d)), memory(*device), ports(*device) {}
  ModelImpl(const ModelImpl&) = delete;
  ~ModelImpl() {
    for (const Buffer* b : buffers) device->free(b);
    if (arena != nullptr) device->free(arena);
  }

  std::shared_ptr<Device> device;
  Mode mode = Mode::exact;
  std::vector<std::shared_ptr<const MappedFile>> files;    // that weights lie in
  std::vector<const Buffer*> buffers;                      // of weights and constants
  std::vector<ModuleTree::NamedState> states;
  std::vector<Entry> entries;
  // Of calls.
  std::recursive_mutex lock;
  bool running = false;                                    // inside run(): a hook that calls the model again is refused
  std::vector<std::pair<int, LayerHook>> hooks;
  int hook_number = 0;
  StepMemory memory, ports;                                // of steps; of the inputs and outputs of calls
  const Buffer* arena = nullptr;
  std::vector<Tensor> inputs, outputs;
  std::vector<std::vector<std::byte>> read_back;           // of a device whose memory the host cannot read
};

}  // namespace modelc

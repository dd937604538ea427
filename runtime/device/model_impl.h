// What a loaded model holds: private to this folder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/checkpoint/tensor_data.h"
#include "runtime/device/call_checks.h"
#include "runtime/device/device_set.h"
#include "runtime/device/model.h"
#include "runtime/device/module_tree.h"
#include "runtime/device/placement.h"

namespace modelc {

// What a model was loaded from: kept so that modules can be moved, which loads their weights again.
struct LoadSource {
  std::shared_ptr<const CheckpointIndex> checkpoint;
  CheckpointRulesData rules, adapter_rules;
  LoadOptions options;
};

// The devices of a model. `set`: where there are several, what `device` is; none where it is one or is measured.
struct ModelDevices {
  std::shared_ptr<Device> device;
  std::shared_ptr<DeviceSet> set = {};
  std::string name = {};                                   // of the one device
  std::vector<PlaceRule> rules = {};
  std::string rest = "cpu";                                // where what no line matches is
};
// What a device is called that was given without a name.
inline constexpr const char* given_device = "device";

// By its name: one of LoadOptions::devices, or opened.
Result<std::shared_ptr<Device>> device_called(const std::string& name, const LoadOptions& options);
// Every module, weight and state gets the number of its device: `members`, by the number in the placement.
void set_members(const ModuleTree& tree, const Placement& placement, std::span<const int> members);
// What a model has on its devices: replaced as a whole when modules go elsewhere.
struct Residence {
  Residence(ModelDevices where, Mode how) : placed(std::move(where)), device(placed.device), mode(how), memory(*device), ports(*device) {}
  Residence(const Residence&) = delete;
  ~Residence() {
    for (const Buffer* b : buffers) device->free(b);
    if (arena != nullptr) device->free(arena);
  }

  ModelDevices placed;
  std::shared_ptr<Device> device;                          // placed.device
  const Mode mode;
  std::vector<std::shared_ptr<const MappedFile>> files;    // that weights lie in, each once
  std::vector<const Buffer*> buffers;                      // of weights and constants
  std::map<const Buffer*, std::shared_ptr<const MappedFile>> file_of;    // of those that are bytes of a file
  void lies_in(const Buffer* buffer, const std::shared_ptr<const MappedFile>& file) {
    file_of.emplace(buffer, file);
    if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
  }
  // Of calls.
  StepMemory memory, ports;                                // of steps; of the inputs and outputs of calls
  const Buffer* arena = nullptr;
  std::vector<Tensor> inputs, outputs;
  std::vector<std::vector<std::byte>> read_back;           // of a device whose memory the host cannot read
};

// The weights (those of `which`, where it is given) onto the devices, then constants, products and step values of all modules.
Status fill(Residence& here, const char* model, const ModuleTree& tree, const LoadSource& source, const std::vector<bool>* which,
            LoadReport& report);

struct ModelImpl {
  std::unique_ptr<Residence> here;
  LoadSource source;
  std::int64_t moves = 0;                                  // how often modules went elsewhere: older states are refused
  std::vector<ModuleTree::NamedState> states;
  std::vector<Entry> entries;
  // Of calls.
  // Held by whoever uses the devices: calls, and states that come and go beside them, of which some outlive the model.
  const std::shared_ptr<std::recursive_mutex> lock = std::make_shared<std::recursive_mutex>();
  bool running = false;                                    // inside run(): a hook that calls the model again is refused
  std::vector<std::pair<int, LayerHook>> hooks;
  int hook_number = 0;
};

}  // namespace modelc

// A checkpoint's tensors as an object, walked by their names: weights["model"]["layers"][0]["mlp"]. From files, or from a map
// in memory; nothing is read before it is asked for.
//
//   auto weights = modelc::Weights::open("path/to/checkpoint");
//   for (const auto& [name, w] : (*weights)["model"]["layers"][0].items()) …      // name: "self_attn.q_proj.weight"
//   auto q = (*weights)["model"]["layers"][0]["self_attn"]["q_proj"]["weight"].data();
//   auto model = llama::Llama::load(weights->index());
#pragma once

#include <concepts>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/tensor_data.h"
#include "runtime/checkpoint/weight_value.h"
#include "runtime/device/device.h"
#include "runtime/tensor/tensor.h"

namespace modelc {

// A weight that was asked for: its elements on the host and, where a device was named, there.
struct AllocatedWeight {
  WeightValue value;
  Tensor tensor = {};                                      // of the device: plain types in their shape, packed ones as u8 [bytes]
  std::shared_ptr<const Buffer> buffer = {};               // that it lies in; freed with the last copy
};

// What a weight must be: each that is given is compared ("shape", "dtype", "encoding").
struct WeightRequest {
  std::optional<DType> dtype = {};
  std::optional<TensorShape> shape = {};
  std::optional<Encoding> encoding = {};
  std::shared_ptr<Device> device = {};                     // none: the weight stays on the host
};

// A place among the names: a prefix by whole components, a tensor, or neither. Cheap to copy; copies share the files and what
// was allocated.
class Weights {
 public:
  static Result<Weights> open(const std::string& path, const OpenOptions& options = {}, FileAccess access = FileAccess::map);
  static Result<Weights> open(const std::vector<std::string>& paths, const OpenOptions& options = {}, FileAccess access = FileAccess::map);
  static Result<Weights> of(const WeightMap& weights, const std::string& label = "weights in memory");
  explicit Weights(std::shared_ptr<const CheckpointIndex> index, FileAccess access = FileAccess::map);

  // Further down: by a component or several ("self_attn.q_proj"), or by a list's index. Never fails: ask exists().
  Weights operator[](std::string_view name) const;
  Weights operator[](const char* name) const { return (*this)[std::string_view(name)]; }
  template <std::integral I> Weights operator[](I index) const { return (*this)[std::string_view(std::to_string(index))]; }

  const std::string& name() const { return name_; }        // whole: "model.layers.0.mlp"; "" at the top
  bool exists() const { return info() != nullptr; }        // a tensor of exactly this name
  // All tensors below this place, in the order of the files, by their names relative to it. "layers.1" is not above "layers.10".
  std::vector<std::pair<std::string, Weights>> items() const;

  // The tensor of this name, where it lies in the file. "missing-tensor" names the nearest; other kinds are CheckpointData's.
  Result<WeightValue> data() const;
  // The same, compared with what is asked for, placed on its device, and kept in allocated_weights().
  Result<AllocatedWeight> allocate(const WeightRequest& request = {}) const;
  // What allocate() has given out, by whole names, over all copies.
  const std::map<std::string, AllocatedWeight>& allocated_weights() const { return shared_->allocated; }

  // What a generated class loads from.
  const CheckpointIndex& index() const { return shared_->data.index(); }

 private:
  struct Shared {
    explicit Shared(std::shared_ptr<const CheckpointIndex> index, FileAccess access) : data(std::move(index), access) {}
    CheckpointData data;
    std::map<std::string, AllocatedWeight> allocated;
  };
  const TensorInfo* info() const { return index().find(name_); }
  std::shared_ptr<Shared> shared_;
  std::string name_;
};

}  // namespace modelc

// The state of a model: for every `state` member of every instance, one cache with a slot per sequence.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/device/module.h"
#include "runtime/tensor/tensor.h"

namespace modelc {

class Model;
class Device;

// Keys and values of one attention: per slot [capacity, heads, dim] and [capacity, heads, value_dim], f32.
// Memory is reserved for the capacity and touched as it fills. Which layout is used inside is the device's affair.
class KvCache {
 public:
  std::int64_t heads = 0, dim = 0, value_dim = 0;
  std::int64_t capacity = 0;                               // positions per slot
  std::int64_t window = 0;                                 // only this many last positions are ever read; 0: all
  Tensor keys, values;                                     // [slots, heads, capacity, dim], so that a head is contiguous
};

class State {
 public:
  State(const State&) = delete;
  ~State();
  int sequences() const { return static_cast<int>(lengths_.size()); }
  std::int64_t capacity() const { return capacity_; }
  std::int64_t length(int sequence) const;                 // positions held
  void clear(int sequence);                                // empties one slot
  void clear();
  // Forgets positions from `length` on; keeps all when it is not smaller.
  void truncate(int sequence, std::int64_t length);
  std::int64_t bytes() const;                              // reserved
  KvCache& cache(int index) { return caches_[static_cast<std::size_t>(index)]; }
  const KvCache& cache(int index) const { return caches_[static_cast<std::size_t>(index)]; }

 private:
  friend class Model;
  State() = default;
  std::shared_ptr<Device> device_;
  const Model* model_ = nullptr;                           // whose state it is: another model's call refuses it
  std::vector<KvCache> caches_;
  std::vector<std::int64_t> lengths_;
  std::int64_t capacity_ = 0;
};

}  // namespace modelc

// The state of a model: for every `state` member of every instance, one cache with a slot per sequence.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/tensor/tensor.h"

namespace modelc {

class Model;
class Device;
struct Batch;

// Keys and values of one attention, f32. Memory is reserved for the whole capacity and touched as it fills.
class KvCache {
 public:
  std::int64_t heads = 0, dim = 0, value_dim = 0;
  std::int64_t capacity = 0;                               // positions per slot
  std::int64_t window = 0;                                 // only this many last positions are ever read; 0: all
  Tensor keys, values;                                     // of all slots; the layout is the device's (Device::reserve)
  std::vector<std::int64_t> held;                          // per slot: positions 0..held are there
};

// One slot a sequence. Made by Model::new_state; a model's call moves it on, and leaves it as it was when it fails.
class State {
 public:
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  int sequences() const { return static_cast<int>(lengths_.size()); }
  std::int64_t capacity() const { return capacity_; }      // positions that a sequence may hold
  std::int64_t length(int sequence) const;                 // positions that it holds
  void clear(int sequence);                                // empties one slot
  void clear();
  // Forgets positions from `length` on; keeps all when there are no more.
  void truncate(int sequence, std::int64_t length);
  std::int64_t bytes() const;                              // reserved

  KvCache& cache(int index) { return caches_[static_cast<std::size_t>(index)]; }
  const KvCache& cache(int index) const { return caches_[static_cast<std::size_t>(index)]; }
  int caches() const { return static_cast<int>(caches_.size()); }

 private:
  friend class Model;
  State() = default;
  // After a call: the batch's sequences are as long as it says. `done` false: as they were, whatever was appended.
  void settle(const Batch& at, bool done);

  std::shared_ptr<Device> device_;
  const Model* model_ = nullptr;                           // whose state it is: another model's call refuses it
  std::vector<KvCache> caches_;
  std::vector<std::int64_t> lengths_;
  std::int64_t capacity_ = 0;
};

}  // namespace modelc

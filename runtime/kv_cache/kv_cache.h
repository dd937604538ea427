// The state of a model: for every `state` member of every instance, one store with a slot per sequence.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/device/batch.h"
#include "runtime/device/module.h"
#include "runtime/tensor/tensor.h"

namespace modelc {

class Model;
class Device;

// The memory of one `state` member, for all sequences of a State. Kernels write it in the course of a call; begin and
// commit or rollback stand around the call, so that one that fails leaves no trace.
class StateStore {
 public:
  explicit StateStore(const StateSlot& slot) : slot_(slot) {}
  StateStore(const StateStore&) = delete;
  virtual ~StateStore() = default;

  const StateSlot& slot() const { return slot_; }
  virtual std::int64_t bytes() const = 0;                  // reserved
  // A call of these sequences begins: keeps what is needed to undo it.
  virtual Status begin(const Sequences& at) = 0;
  virtual void commit(const Sequences& at) = 0;
  virtual void rollback(const Sequences& at) = 0;
  // Forgets a sequence's positions from `length` on; says how many are left: fewer than asked where the state at that
  // length cannot be had again. `length` 0 empties it.
  virtual std::int64_t truncate(int sequence, std::int64_t length) = 0;

 private:
  StateSlot slot_;
};

// What a slot of a KvCache has room for: of a kv_cache the capacity that is asked for, of a cross_cache its own n positions.
struct KeySizes {
  std::int64_t heads, dim, value_dim, capacity;

  KeySizes(const StateSlot& slot, std::int64_t capacity_asked_for);
};

// A row for each position of a sequence: how far each slot is filled is what a call changes and what is brought back. Memory is
// reserved for the whole capacity and touched as it fills.
class RowCache : public StateStore {
 public:
  const std::int64_t capacity;                             // positions per slot
  const bool whole;                                        // a cross_cache: a slot holds nothing or its capacity
  std::vector<std::int64_t> held;                          // per slot: positions 0..held are there

  Status begin(const Sequences& at) override;
  void commit(const Sequences& at) override;
  void rollback(const Sequences& at) override;
  std::int64_t truncate(int sequence, std::int64_t length) override;
  // The batch's sequences are as long as it says: their rows have been written.
  void advance(const Batch& at);

 protected:
  RowCache(Device& device, const StateSlot& slot, std::int64_t capacity, int slots);
  Device& device_;

 private:
  std::vector<std::int64_t> before_;                       // held when the call began, of its sequences in order
};

// Keys and values of one attention. Of a cross_cache a sequence has none or all of its positions, which are set at once (Device::set)
// and seen by every token of the sequence.
class KvCache final : public RowCache {
 public:
  // The buffers of `keys` and `values` are freed with it.
  KvCache(Device& device, const StateSlot& slot, const KeySizes& sizes, int slots, Tensor keys, Tensor values);
  ~KvCache() override;

  const std::int64_t heads, dim, value_dim;
  const std::int64_t window;                               // only this many last positions are ever read; 0: all
  const Tensor keys, values;                               // of all slots; the layout is the device's (Device::reserve)
  // Before what these sequences hold is written over: a copy of it stays until the call ends, so that it can be undone.
  Status keep(const Sequences& at);

  std::int64_t bytes() const override;
  void commit(const Sequences& at) override;
  void rollback(const Sequences& at) override;

 private:
  struct Copy {
    std::int32_t slot;
    Tensor keys, values;
  };
  Tensor slot_of(const Tensor& all, std::int64_t slot) const;
  void drop_copies();

  std::vector<Copy> copies_;                               // of what it wrote over
};

// Of latent attention: what all heads' keys and values are made of, and the turned key that they share.
class LatentCache final : public RowCache {
 public:
  // The buffer of `rows` is freed with it.
  LatentCache(Device& device, const StateSlot& slot, std::int64_t capacity, int slots, Tensor rows);
  ~LatentCache() override;
  // Bytes of rows [sequences, capacity, rank + rope]. "out-of-memory" where they pass all numbers.
  static Result<std::int64_t> bytes_of(const StateSlot& slot, std::int64_t capacity, int sequences);

  const std::int64_t rank, rope;
  const Tensor rows;                                       // [slots, capacity, rank + rope]: the latent, then the key

  std::int64_t bytes() const override;
};

// One tensor a sequence that a call writes over: a ring of last rows, a recurrence.
// It has no past: after a call it can be emptied, and not brought back to an earlier length. Zeros are put in place when the first call
// of a sequence begins, so that memory of sequences without one is not touched.
class SlotState final : public StateStore {
 public:
  static Result<std::unique_ptr<SlotState>> make(Device& device, const StateSlot& slot, int slots);
  // What bytes() says once a call of all the sequences has begun. "out-of-memory" where it passes all numbers.
  static Result<std::int64_t> bytes_of(const StateSlot& slot, int slots);
  ~SlotState() override;

  // [sizes…] f32 of one sequence: zeros when its first call begins, anything before that.
  Tensor of(std::int64_t sequence) const;
  Tensor all() const;                                      // [slots, sizes…]: what operations over a batch are given
  // Whether a call of it has begun, and has not been taken back or forgotten.
  bool filled(std::int64_t sequence) const { return filled_[static_cast<std::size_t>(sequence)]; }

  std::int64_t bytes() const override;
  Status begin(const Sequences& at) override;
  void commit(const Sequences& at) override;
  void rollback(const Sequences& at) override;
  std::int64_t truncate(int sequence, std::int64_t length) override;

 private:
  SlotState(Device& device, const StateSlot& slot, const Buffer* buffer, std::int64_t size, int slots);
  Tensor copy_of(std::size_t i) const;                     // what was there before the call, of its i-th sequence

  Device& device_;
  const Buffer* buffer_;
  const Buffer* before_ = nullptr;
  std::int64_t size_;                                      // elements of one sequence
  std::vector<bool> filled_, filled_before_;
};

// One slot a sequence. Made by Model::new_state; a model's call moves it on, and leaves it as it was when it fails. Several threads may
// have states of one model, each its own: calls take turns, and a state's end waits for the call under way.
class State {
 public:
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  int sequences() const { return static_cast<int>(lengths_.size()); }
  std::int64_t capacity() const { return capacity_; }      // positions that a sequence may hold
  std::int64_t length(int sequence) const;                 // positions that it holds
  void clear(int sequence);                                // empties one slot
  void clear();
  // Forgets positions from `length` on; keeps all when there are no more. Says how many are left: `length`, or 0 where
  // a member of the state has no past (a recurrence), so that the sequence begins anew.
  std::int64_t truncate(int sequence, std::int64_t length);
  std::int64_t bytes() const;                              // reserved

  const Model& model() const { return *model_; }           // whose state it is
  // The qualified name of the `state` member: "model.layers.0.self_attn.cache".
  const std::string& name(int index) const { return names_[static_cast<std::size_t>(index)]; }
  StateStore& store(int index) { return *stores_[static_cast<std::size_t>(index)]; }
  const StateStore& store(int index) const { return *stores_[static_cast<std::size_t>(index)]; }
  int stores() const { return static_cast<int>(stores_.size()); }

 private:
  friend class Model;
  State() = default;
  // Around a call. `advances`: the batch's sequences are then as long as it says.
  Status begin(const Sequences& at);
  void commit(const Sequences& at, const Batch* advances);
  void rollback(const Sequences& at);

  std::shared_ptr<Device> device_;                         // before the stores, which free their memory
  std::shared_ptr<std::recursive_mutex> lock_;             // the model's, for the use of the device
  const Model* model_ = nullptr;                           // whose state it is: another model's call refuses it
  std::int64_t moves_ = 0;                                 // of the model when it was made
  std::vector<std::unique_ptr<StateStore>> stores_;
  std::vector<std::string> names_;                         // of the stores
  std::vector<std::int64_t> lengths_;
  std::int64_t capacity_ = 0;
};

}  // namespace modelc

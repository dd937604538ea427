#include "runtime/kv_cache/kv_cache.h"

#include <algorithm>
#include <cassert>

#include "runtime/device/batch.h"
#include "runtime/device/device.h"

namespace modelc {

State::~State() {
  if (!device_) return;
  for (const KvCache& c : caches_) {
    device_->free(c.keys.buffer);
    device_->free(c.values.buffer);
  }
}

std::int64_t State::length(int sequence) const {
  assert(sequence >= 0 && sequence < sequences());
  return lengths_[static_cast<std::size_t>(sequence)];
}

void State::clear(int sequence) { truncate(sequence, 0); }

void State::clear() {
  for (int i = 0; i < sequences(); ++i) truncate(i, 0);
}

void State::truncate(int sequence, std::int64_t length) {
  assert(sequence >= 0 && sequence < sequences() && length >= 0);
  const auto slot = static_cast<std::size_t>(sequence);
  lengths_[slot] = std::min(lengths_[slot], length);
  for (KvCache& c : caches_) c.held[slot] = std::min(c.held[slot], length);
}

std::int64_t State::bytes() const {
  std::int64_t n = 0;
  for (const KvCache& c : caches_) n += c.keys.buffer->size + c.values.buffer->size;
  return n;
}

void State::settle(const Batch& at, bool done) {
  for (std::size_t i = 0; i < at.slots.size(); ++i) {
    const auto slot = static_cast<std::size_t>(at.slots[i]);
    if (done) lengths_[slot] = at.lengths[static_cast<std::size_t>(at.starts[i])];
    else
      for (KvCache& c : caches_) c.held[slot] = std::min(c.held[slot], lengths_[slot]);
  }
}

}  // namespace modelc

#include "runtime/kv_cache/kv_cache.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "runtime/base/strings.h"
#include "runtime/device/device.h"

namespace modelc {

// ---- RowCache, KvCache, LatentCache

RowCache::RowCache(Device& device, const StateSlot& slot, std::int64_t capacity_, int slots)
    : StateStore(slot),
      capacity(capacity_),
      whole(slot.kind == StateSlot::Kind::cross_cache),
      held(static_cast<std::size_t>(slots), 0),
      device_(device) {}

KeySizes::KeySizes(const StateSlot& slot, std::int64_t capacity_asked_for)
    : heads(slot.sizes[0]), dim(slot.sizes[1]), value_dim(slot.sizes[2]), capacity(capacity_asked_for) {
  assert(slot.has_keys());
  if (slot.kind != StateSlot::Kind::cross_cache) return;
  heads = slot.sizes[1];
  dim = value_dim = slot.sizes[2];
  capacity = slot.sizes[0];
}

KvCache::KvCache(Device& device, const StateSlot& slot, const KeySizes& sizes, int slots, Tensor keys_, Tensor values_)
    : RowCache(device, slot, sizes.capacity, slots),
      heads(sizes.heads),
      dim(sizes.dim),
      value_dim(sizes.value_dim),
      window(slot.window),
      keys(keys_),
      values(values_) {}

KvCache::~KvCache() {
  drop_copies();
  device_.free(keys.buffer);
  device_.free(values.buffer);
}

std::int64_t KvCache::bytes() const { return keys.buffer->size + values.buffer->size; }

LatentCache::LatentCache(Device& device, const StateSlot& slot, std::int64_t capacity_, int slots, Tensor rows_)
    : RowCache(device, slot, capacity_, slots), rank(slot.sizes[0]), rope(slot.sizes[1]), rows(rows_) {}

LatentCache::~LatentCache() { device_.free(rows.buffer); }

std::int64_t LatentCache::bytes() const { return rows.buffer->size; }

Result<std::int64_t> LatentCache::bytes_of(const StateSlot& slot, std::int64_t capacity, int sequences) {
  std::int64_t row = 0, all = 0, element = modelc::bytes(slot.dtype);
  if (capacity > (std::int64_t{1} << 40) || __builtin_add_overflow(slot.sizes[0], slot.sizes[1], &row) ||
      __builtin_mul_overflow(row, element * sequences, &row) || __builtin_mul_overflow(row, capacity, &all))
    return Error{"out-of-memory",
                 "latents of " + grouped(capacity) + " positions for " + counted(static_cast<std::uint64_t>(sequences), "sequence") +
                     " pass all memory",
                 {},
                 {}};
  return all;
}

Status RowCache::begin(const Sequences& at) {
  before_.clear();
  for (const std::int32_t slot : at.slots) before_.push_back(held[static_cast<std::size_t>(slot)]);
  return {};
}
void RowCache::commit(const Sequences&) {}
void RowCache::rollback(const Sequences& at) {
  for (std::size_t i = 0; i < at.slots.size(); ++i) held[static_cast<std::size_t>(at.slots[i])] = before_[i];
}
std::int64_t RowCache::truncate(int sequence, std::int64_t length) {
  // What does not depend on the tokens (an encoder's result) stays as long as anything of the sequence does.
  if (whole && length > 0) return length;
  std::int64_t& n = held[static_cast<std::size_t>(sequence)];
  n = std::min(n, length);
  return length;
}
void RowCache::advance(const Batch& at) {
  for (std::size_t i = 0; i < at.slots.size(); ++i)
    held[static_cast<std::size_t>(at.slots[i])] = at.lengths[static_cast<std::size_t>(at.starts[i])];
}

void KvCache::commit(const Sequences&) { drop_copies(); }
void KvCache::rollback(const Sequences& at) {
  RowCache::rollback(at);
  for (const Copy& c : copies_) {
    device_.copy(c.keys, slot_of(keys, c.slot));
    device_.copy(c.values, slot_of(values, c.slot));
  }
  drop_copies();
}

Tensor KvCache::slot_of(const Tensor& all, std::int64_t slot) const {
  Tensor one = all;
  one.shape = {all.count() / static_cast<std::int64_t>(held.size())};
  one.offset += slot * one.size();
  return one;
}

Status KvCache::keep(const Sequences& at) {
  for (const std::int32_t slot : at.slots) {
    const bool known = std::any_of(copies_.begin(), copies_.end(), [&](const Copy& c) { return c.slot == slot; });
    if (known || held[static_cast<std::size_t>(slot)] == 0) continue;
    Copy copy{slot, slot_of(keys, slot), slot_of(values, slot)};
    copy.keys.buffer = copy.values.buffer = nullptr;
    copy.keys.offset = copy.values.offset = 0;
    for (const auto& [from, to] : {std::pair(&keys, &copy.keys), std::pair(&values, &copy.values)}) {
      auto buffer = device_.allocate(std::max<std::int64_t>(to->size(), 1));
      if (!buffer) {
        if (copy.keys.buffer != nullptr) device_.free(copy.keys.buffer);
        return std::move(buffer.error());
      }
      to->buffer = *buffer;
      device_.copy(slot_of(*from, slot), *to);
    }
    copies_.push_back(copy);
  }
  return {};
}

void KvCache::drop_copies() {
  for (const Copy& c : copies_) {
    device_.free(c.keys.buffer);
    device_.free(c.values.buffer);
  }
  copies_.clear();
}

// ---- SlotState

namespace {

constexpr std::int64_t zeros_at_once = 1 << 20;            // bytes

// Elements of one sequence; bytes of one copy of all: a whole state is two (SlotState::begin).
struct SlotSize {
  std::int64_t elements = 1, bytes = 0;
};
Result<SlotSize> size_of(const StateSlot& slot, int slots) {
  SlotSize size;
  bool over = false;
  for (const std::int64_t n : slot.sizes)
    if (n > 0) over |= __builtin_mul_overflow(size.elements, n, &size.elements);
  std::int64_t both = 0;
  over |= __builtin_mul_overflow(size.elements, std::int64_t{4} * slots, &size.bytes) || __builtin_mul_overflow(size.bytes, 2, &both);
  if (over)
    return Error{"out-of-memory", "a state for " + counted(static_cast<std::uint64_t>(slots), "sequence") + " passes all memory", {}, {}};
  size.bytes = std::max<std::int64_t>(size.bytes, 1);
  return size;
}

}  // namespace

Result<std::int64_t> SlotState::bytes_of(const StateSlot& slot, int slots) {
  auto size = size_of(slot, slots);
  if (!size) return std::move(size.error());
  return 2 * size->bytes;
}

Result<std::unique_ptr<SlotState>> SlotState::make(Device& device, const StateSlot& slot, int slots) {
  auto size = size_of(slot, slots);
  if (!size) return std::move(size.error());
  auto buffer = device.allocate(size->bytes);
  if (!buffer) return std::move(buffer.error());
  return std::unique_ptr<SlotState>(new SlotState(device, slot, *buffer, size->elements, slots));
}

SlotState::SlotState(Device& device, const StateSlot& slot, const Buffer* buffer, std::int64_t size, int slots)
    : StateStore(slot), device_(device), buffer_(buffer), size_(size), filled_(static_cast<std::size_t>(slots), false) {}

SlotState::~SlotState() {
  device_.free(buffer_);
  if (before_ != nullptr) device_.free(before_);
}

Tensor SlotState::of(std::int64_t sequence) const {
  std::size_t rank = 0;
  while (rank < slot().sizes.size() && slot().sizes[rank] > 0) ++rank;
  return {buffer_, sequence * size_ * 4, DType::f32, Shape(std::span(slot().sizes).first(rank))};
}
Tensor SlotState::all() const {
  Tensor t = of(0);
  std::array<std::int64_t, Shape::max_rank> axes{static_cast<std::int64_t>(filled_.size())};
  std::copy(t.shape.axes().begin(), t.shape.axes().end(), axes.begin() + 1);
  t.shape = Shape(std::span(axes).first(static_cast<std::size_t>(t.shape.rank()) + 1));
  return t;
}
Tensor SlotState::copy_of(std::size_t i) const {
  Tensor t = of(0);
  t.buffer = before_;
  t.offset = static_cast<std::int64_t>(i) * size_ * 4;
  return t;
}
std::int64_t SlotState::bytes() const { return buffer_->size + (before_ != nullptr ? before_->size : 0); }

Status SlotState::begin(const Sequences& at) {
  const std::int64_t needed = std::max<std::int64_t>(at.batch() * size_ * 4, 1);
  if (before_ == nullptr || before_->size < needed) {
    if (before_ != nullptr) device_.free(before_);
    before_ = nullptr;
    device_.enter(slot().member);                          // beside what it is a copy of
    auto buffer = device_.allocate(needed);
    device_.enter(0);                                      // where a step begins
    if (!buffer) return std::move(buffer.error());
    before_ = *buffer;
  }
  filled_before_.clear();
  std::vector<std::byte> zeros;
  for (std::size_t i = 0; i < at.slots.size(); ++i) {
    auto is_filled = filled_[static_cast<std::size_t>(at.slots[i])];
    filled_before_.push_back(is_filled);
    if (is_filled) {
      device_.copy(of(at.slots[i]), copy_of(i));
      continue;
    }
    const Tensor own = of(at.slots[i]);
    zeros.resize(static_cast<std::size_t>(std::min(own.size(), zeros_at_once)));
    for (std::int64_t from = 0; from < own.size(); from += zeros_at_once) {
      const std::int64_t some = std::min(own.size() - from, zeros_at_once);
      device_.write(std::span(zeros).first(static_cast<std::size_t>(some)), {own.buffer, own.offset + from, DType::u8, {some}});
    }
    is_filled = true;
  }
  return {};
}
void SlotState::commit(const Sequences&) {}
void SlotState::rollback(const Sequences& at) {
  for (std::size_t i = 0; i < at.slots.size(); ++i) {
    if (filled_before_[i]) device_.copy(copy_of(i), of(at.slots[i]));
    filled_[static_cast<std::size_t>(at.slots[i])] = filled_before_[i];
  }
}
std::int64_t SlotState::truncate(int sequence, std::int64_t) {
  filled_[static_cast<std::size_t>(sequence)] = false;
  return 0;
}

// ---- State

State::~State() {
  const std::lock_guard guard(*lock_);
  stores_.clear();
}

std::int64_t State::length(int sequence) const {
  assert(sequence >= 0 && sequence < sequences());
  return lengths_[static_cast<std::size_t>(sequence)];
}

void State::clear(int sequence) {
  assert(sequence >= 0 && sequence < sequences());
  for (const auto& s : stores_) s->truncate(sequence, 0);
  lengths_[static_cast<std::size_t>(sequence)] = 0;
}

void State::clear() {
  for (int i = 0; i < sequences(); ++i) clear(i);
}

std::int64_t State::truncate(int sequence, std::int64_t length) {
  assert(sequence >= 0 && sequence < sequences() && length >= 0);
  std::int64_t& own = lengths_[static_cast<std::size_t>(sequence)];
  if (length > 0 && length >= own) return own;             // nothing to forget
  for (const auto& s : stores_) length = std::min(length, s->truncate(sequence, length));
  // One that could not go back to it decides for all.
  for (const auto& s : stores_) s->truncate(sequence, length);
  return own = length;
}

std::int64_t State::bytes() const {
  std::int64_t n = 0;
  for (const auto& s : stores_) n += s->bytes();
  return n;
}

Status State::begin(const Sequences& at) {
  std::size_t begun = 0;
  const auto take_back = [&] {
    while (begun > 0) stores_[--begun]->rollback(at);
  };
  try {
    for (; begun < stores_.size(); ++begun)
      if (Status status = stores_[begun]->begin(at); !status) {
        take_back();
        return status;
      }
  } catch (...) {                                          // of several devices that act as one
    take_back();
    throw;
  }
  return {};
}

void State::commit(const Sequences& at, const Batch* advances) {
  for (const auto& s : stores_) s->commit(at);
  if (advances == nullptr) return;
  for (std::size_t i = 0; i < at.slots.size(); ++i)
    lengths_[static_cast<std::size_t>(at.slots[i])] = advances->lengths[static_cast<std::size_t>(advances->starts[i])];
}

void State::rollback(const Sequences& at) {
  for (const auto& s : stores_) s->rollback(at);
}

}  // namespace modelc

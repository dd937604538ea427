#include "runtime/checkpoint/index.h"

#include <algorithm>
#include <limits>

#include "runtime/base/strings.h"

namespace modelc {

std::vector<std::uint32_t> by_offset(const std::vector<TensorInfo>& tensors) {
  std::vector<std::uint32_t> order;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].size > 0) order.push_back(static_cast<std::uint32_t>(i));
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return tensors[a].offset != tensors[b].offset ? tensors[a].offset < tensors[b].offset : a < b;
  });
  return order;
}

const TensorInfo* CheckpointIndex::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

// The sums stop at the largest value: sparse files can claim more than 64 bits together.
std::uint64_t CheckpointIndex::total_bytes() const {
  std::uint64_t sum = 0;
  for (const TensorInfo& t : tensors_)
    if (__builtin_add_overflow(sum, t.size, &sum)) return std::numeric_limits<std::uint64_t>::max();
  return sum;
}

std::int64_t CheckpointIndex::total_elements() const {
  std::int64_t sum = 0;
  for (const TensorInfo& t : tensors_)
    if (__builtin_add_overflow(sum, t.elements(), &sum)) return std::numeric_limits<std::int64_t>::max();
  return sum;
}

Status CheckpointIndex::add(CheckpointFile file, std::vector<TensorInfo> tensors) {
  const auto number = static_cast<std::uint32_t>(files_.size());
  for (const TensorInfo& t : tensors) {
    const TensorInfo* first = find(t.name);
    if (!first) continue;
    return Error{"duplicate-name",
                 "duplicate tensor " + quote(t.name) + ": both " + quote(file_of(*first).label) + " and " + quote(file.label) + " hold it",
                 {},
                 "files that repeat each other's tensors are no parts of one checkpoint: name the one that is meant"};
  }
  if (tensors.size() > 1) {                                // of one after the other it would be a copy of all each time
    by_name_.reserve(tensors_.size() + tensors.size());
    tensors_.reserve(tensors_.size() + tensors.size());
  }
  for (TensorInfo& t : tensors) {
    t.file = number;
    const auto [at, fresh] = by_name_.emplace(t.name, static_cast<std::uint32_t>(tensors_.size()));
    if (!fresh) return Error{"duplicate-name", "duplicate tensor " + quote(t.name) + " in " + quote(file.label), {}, {}};
    tensors_.push_back(std::move(t));
  }
  files_.push_back(std::move(file));
  return {};
}

}  // namespace modelc

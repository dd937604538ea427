// What a binding cannot show at once, in parts that it can: a loop over axes is cut into blocks of places, each of which
// touches few enough bytes of every tensor; and what would keep the device busy for too long, likewise. Decided as plain data, once for all
// operations, and tested without a device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/vulkan/device_plan.h"
#include "runtime/vulkan/dispatch.h"

namespace modelc::vulkan {

// How a loop walks one tensor.
struct Walk {
  std::int64_t at = 0; // byte of its first place, in its buffer
  std::int64_t bytes = 0; // that one place touches
  std::vector<std::int64_t> steps = {}; // bytes to the next place along each axis; 0: all see the same
};
// Places first[k] … first[k] + count[k] - 1 along axis k.
struct Places {
  std::vector<std::int64_t> first, count;
};
enum class Order : std::uint8_t { any, outer_first }; // outer_first: a block lies together in what the axes walk in order

// Blocks that hold every place once, in order; one where all is seen at once. Empty where one place is too much.
std::vector<Places> cut(std::span<const std::int64_t> sizes, std::span<const Walk> walks, const DevicePlan& plan, Order order);

// A dispatch in parts of its rows (Dispatch::Rows), of which no binding shows too much, no submission has too much work (a row at least)
// and none is more rows than the dispatch asks for. None where it can be run as it is, and where a binding does not show one row: then it
// is refused where it is recorded, with its numbers.
std::vector<Dispatch> in_parts(const Dispatch& d, const DevicePlan& plan);

// Whether one binding shows so much of a tensor, from byte `at` of its buffer on.
bool is_seen(std::int64_t at, std::int64_t bytes, const DevicePlan& plan);

} // namespace modelc::vulkan

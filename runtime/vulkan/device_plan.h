// How a device is used: everything that depends on what it is, decided once, as plain data, from its description. A pure
// function, so that devices that nobody has at hand are tested by their descriptions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/vulkan/description.h"

namespace modelc::vulkan {

struct PlanOptions {
  // Features to do without, though the device has them: "subgroup", "float16", "int8", "int16", "storage16", "storage8", "float64",
  // "int64", "broadcast".
  std::vector<std::string> masked = {};
  std::uint64_t binding_bytes = 0;                         // a smaller limit than the device's, for tests; 0: the device's
  std::uint32_t max_groups = 0;                            // the same of workgroups along an axis
};

struct DevicePlan {
  std::uint32_t queue_family = 0;
  std::uint32_t device_type = 0, upload_type = 0, readback_type = 0;   // memory types of the three uses
  std::uint64_t block_bytes = 0;                           // of one piece of memory, from which tensors are cut
  std::uint64_t largest_tensor = 0;                        // what passes it is refused, or split where rows allow it
  std::uint64_t binding_bytes = 0;                         // that one dispatch sees of a buffer; a multiple of `alignment`
  std::uint32_t alignment = 256;                           // of a tensor's and a binding's first byte; a power of two
  std::uint64_t staging_bytes = 0;                         // of one slice of the staging ring
  std::uint32_t slices = 3;                                // of it: as many submissions are under way
  std::uint32_t dispatches = 0;                            // of one submission at most
  std::uint64_t work = 0;                                  // the same in multiplications, so that no watchdog bites
  std::array<std::uint32_t, 3> max_groups{};
  std::uint32_t max_bindings = 0;

  // Workgroups, in invocations; powers of two.
  std::uint32_t elements_group = 64;                       // one element, or eight, an invocation
  std::uint32_t row_group = 64;                            // a row a workgroup
  std::uint32_t product_group = 64;                        // matvec
  std::uint32_t attend_group = 64;                         // so many keys at a time
  std::uint32_t attend_queries = 32;                       // of a tile of attention, at most
  std::uint32_t fill_groups = 256;                         // workgroups that keep the device busy
  std::uint32_t shared_bytes = 0;                          // of a workgroup
  std::uint32_t subgroup = 0;                              // lanes that a subgroup variant is given; 0: none is used
  // On a processor, products by lanes (linear/lanes.comp): rows of weights a lane, tokens a workgroup at most. 0: as a GPU does.
  std::uint32_t lane_rows = 0, lane_tokens = 0;
  // Rounds of all loops of one invocation together that the driver carries out; 0: any number. llvmpipe stops at 65,535, without a
  // word and with what has been computed by then.
  std::uint32_t loop_rounds = 0;
  std::uint32_t largest_group = 64;                        // invocations that a workgroup may have; a power of two
  std::uint32_t features = 0;                              // Needs (shaders.h) that are there and not masked
};

std::vector<std::string> feature_names();                  // what may be masked

// Errors: "vulkan-device" with what is missing and what is needed.
Result<DevicePlan> plan_device(const DeviceDescription& d, const PlanOptions& options = {});

// The order in which devices are counted, vulkan:0 first: those that can be used before others, and of them discrete GPUs, integrated and
// virtual ones, others, processors; of equals as Vulkan lists them. Places in the list that is given.
std::vector<std::size_t> order_devices(std::span<const DeviceDescription> all);

// The memory that tensors get: the heap of DevicePlan::device_type, of a device that cannot be used its largest own one. `free` is
// what the driver says, else all; of a device that shares the machine's memory at most `host_available`, where that is known (not 0).
struct DeviceMemory {
  std::uint64_t bytes = 0, free = 0;
  bool said = false;                                       // by the driver, how much is free
};
DeviceMemory memory_of(const DeviceDescription& d, std::uint64_t host_available);

// So many workgroups as x · y · z within the limits, x first; at least as many, and what is too many does nothing. None
// where even all axes hold fewer.
std::optional<std::array<std::uint32_t, 3>> fold_groups(std::uint64_t groups, const std::array<std::uint32_t, 3>& most);

// Rows of `row_bytes` bytes, the first at byte `at` of its buffer, cut so that each piece fits one binding, which begins
// at a multiple of `alignment`. Empty where one row does not fit.
struct RowPiece {
  std::int64_t first = 0, rows = 0;
};
std::vector<RowPiece> split_rows(std::int64_t at, std::int64_t rows, std::int64_t row_bytes, const DevicePlan& plan);
// The same wherever a piece begins: of several tensors that are cut alike.
std::vector<RowPiece> split_alike(std::int64_t rows, std::int64_t row_bytes, const DevicePlan& plan);

// How attention goes over its queries and keys: shaders/attention/attend.comp.
struct AttendPlan {
  std::uint32_t tokens = 1, heads = 1;                     // of a tile; heads that read the same keys
  std::uint32_t head_pieces = 1;                           // tiles for all such heads
  std::uint32_t q_groups = 1;                              // rows of invocations, each with its part of the queries
  std::uint32_t channels = 1, value_pieces = 1;            // of a value: for one invocation; for workgroups of their own
  bool shared_q = true;                                    // the tile's queries fit shared memory
  std::uint32_t parts = 1, part_keys = 0;                  // the keys are spread over so many workgroups, if over more than one
};
struct AttendShape {
  std::int64_t rows = 0, sequences = 1;                    // of queries; that they are of, about alike
  std::int64_t query_heads = 1, heads = 1, d = 0, dv = 0;
  std::int64_t longest = 0;                                // keys of a sequence
};
AttendPlan plan_attend(const AttendShape& a, const DevicePlan& plan);

// How what goes token by token is spread over a device: shaders/include/scan.glsl.
struct ScanPlan {
  bool subgroups = false;                                  // a team is a subgroup, and sums are its own
  std::uint32_t group = 1, lanes = 1;                      // invocations of a workgroup; of a team
  std::uint32_t held = 1, columns = 1;                     // elements of a column for one invocation; columns of a team
  std::uint32_t pieces = 1;                                // workgroups for the columns of a head
  std::uint32_t token_rounds = 0;                          // of an invocation's loops for one token, at most
};
struct ScanShape {
  std::int64_t sequences = 1, heads = 1;
  std::int64_t columns = 1, n = 1;                         // of a head's state; elements of a column, which sums go over
  std::int64_t column_sums = 1, team_sums = 0;             // for a token: of each column, and of a team
};
ScanPlan plan_scan(const ScanShape& a, const DevicePlan& plan);

// The workgroup of a row of n, which `loops` loops go over: row_group, or as much wider as the driver's loops ask for.
std::uint32_t row_group_of(std::int64_t n, std::int64_t loops, const DevicePlan& plan);

// Pairs of a token and an expert that a row of an expert's weights is multiplied with at a time: 1, 4 or 8, by how many there
// are for each expert.
std::uint32_t pairs_together(std::int64_t pairs, std::int64_t experts);

}  // namespace modelc::vulkan

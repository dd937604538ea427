// How devices are used, decided from their descriptions: no device takes part.
#include <doctest/doctest.h>

#include <bit>
#include <string>

#include "runtime/vulkan/device_plan.h"
#include "runtime/vulkan/pipelines.h"
#include "runtime/vulkan/shaders.h"

using namespace modelc;
using namespace modelc::vulkan;

namespace {

constexpr std::uint64_t mib = 1024 * 1024, gib = 1024 * mib;

// As a large discrete card describes itself: memory of its own, a window of 256 MiB onto it, the host's.
DeviceDescription discrete() {
  DeviceDescription d;
  d.name = "a discrete card";
  d.kind = DeviceKind::discrete;
  d.version_minor = 3;
  d.heaps = {{24 * gib, true}, {32 * gib, false}, {256 * mib, true}};
  d.types = {{1, false, false, false, false},
             {0, true, false, false, false},
             {1, false, true, true, false},
             {1, false, true, true, true},
             {2, true, true, true, false}};
  d.queues = {{16, true, true, true}, {2, false, true, false}, {8, true, true, false}};
  d.max_storage_range = 4 * gib - 1;
  d.max_allocation = 4 * gib - 4096;
  d.max_allocations = 4096;
  d.storage_alignment = 16;
  d.max_push_bytes = 256;
  d.max_bindings = 1u << 20;
  d.max_groups = {2147483647, 65535, 65535};
  d.max_group_size = d.max_group_x = 1024;
  d.shared_bytes = 49152;
  d.subgroup_size = d.subgroup_min = d.subgroup_max = 32;
  d.subgroup_arithmetic = d.full_subgroups = d.float16 = d.int8 = d.int16 = d.storage16 = d.storage8 = true;
  return d;
}

// As Mesa's software driver describes itself on a processor with vectors of 256 bits.
DeviceDescription software() {
  DeviceDescription d = discrete();
  d.name = "a processor";
  d.kind = DeviceKind::cpu;
  d.heaps = {{2 * gib, true}};
  d.types = {{0, true, true, true, true}};
  d.queues = {{1, true, true, true}};
  d.max_storage_range = 128 * mib;
  d.max_allocation = 2 * gib;
  d.max_groups = {65535, 65535, 65535};
  d.shared_bytes = 32768;
  d.subgroup_size = d.subgroup_min = d.subgroup_max = 8;
  d.subgroup_ballot = true;
  return d;
}

// The least that Vulkan 1.2 allows, on one heap that host and device share.
DeviceDescription least() {
  DeviceDescription d;
  d.name = "the least";
  d.kind = DeviceKind::integrated;
  d.version_minor = 2;
  d.heaps = {{512 * mib, true}};
  d.types = {{0, true, false, false, false}, {0, true, true, true, false}};
  d.queues = {{1, true, true, true}};
  d.max_storage_range = 128 * mib;
  d.max_allocation = gib;
  d.storage_alignment = 256;
  d.max_push_bytes = 128;
  d.max_bindings = 16;
  d.max_groups = {65535, 65535, 65535};
  d.max_group_size = d.max_group_x = 128;
  d.shared_bytes = 16384;
  d.subgroup_size = d.subgroup_min = d.subgroup_max = 1;
  return d;
}

}  // namespace

TEST_CASE("a discrete card: its own memory for tensors, the host's for staging, a queue that draws nothing") {
  const auto p = plan_device(discrete());
  REQUIRE(p.ok());
  CHECK(p->queue_family == 2);
  CHECK(p->device_type == 1);
  CHECK(p->upload_type == 2);
  CHECK(p->readback_type == 3);                            // cached
  CHECK(p->block_bytes == 256 * mib);
  CHECK(p->largest_tensor == 4 * gib - 4096);
  CHECK(p->alignment == 64);
  CHECK(p->binding_bytes == 4 * gib - 64);
  CHECK(p->subgroup == 32);
  CHECK(p->product_group == 64);
  CHECK(p->features == (needs_subgroup | needs_int8 | needs_int16 | needs_float16 | needs_storage16 | needs_storage8 | needs_lane_sums));
}

TEST_CASE("the least device: small blocks, no subgroups, whole alignment") {
  const auto p = plan_device(least());
  REQUIRE(p.ok());
  CHECK(p->device_type == 0);
  CHECK(p->upload_type == 1);
  CHECK(p->readback_type == 1);
  CHECK(p->block_bytes == 64 * mib);
  CHECK(p->largest_tensor == 512 * mib);                   // no more than the heap
  CHECK(p->alignment == 256);
  CHECK(p->binding_bytes == 128 * mib);
  CHECK(p->subgroup == 0);
  CHECK(p->features == 0);
  CHECK(p->row_group <= 128);
}

TEST_CASE("vulkan:0 is the best that is there: a discrete card before others, a processor last, what cannot be used behind all") {
  const auto named = [](const char* name, DeviceKind kind, std::uint32_t minor = 3) {
    DeviceDescription d = discrete();
    d.name = name;
    d.kind = kind;
    d.version_minor = minor;
    return d;
  };
  const std::vector<DeviceDescription> all = {named("llvmpipe", DeviceKind::cpu),        named("old card", DeviceKind::discrete, 1),
                                              named("virtual", DeviceKind::virtual_gpu), named("in the chip", DeviceKind::integrated),
                                              named("card", DeviceKind::discrete),       named("second card", DeviceKind::discrete)};
  std::vector<std::string> order;
  for (const std::size_t i : order_devices(all)) order.push_back(all[i].name);
  CHECK(order == std::vector<std::string>{"card", "second card", "in the chip", "virtual", "llvmpipe", "old card"});
  CHECK(order_devices({}).empty());
}

TEST_CASE("subgroups of every size; without full ones, or masked, none") {
  for (const std::uint32_t size : {4u, 8u, 16u, 32u, 64u, 128u}) {
    CAPTURE(size);
    DeviceDescription d = discrete();
    d.subgroup_size = d.subgroup_min = d.subgroup_max = size;
    const auto p = plan_device(d);
    REQUIRE(p.ok());
    CHECK(p->subgroup == size);
    CHECK(p->product_group % size == 0);
    CHECK(p->product_group >= 64);
    d.full_subgroups = false;
    CHECK(plan_device(d)->subgroup == 0);
  }
  CHECK(plan_device(discrete(), {.masked = {"subgroup"}})->subgroup == 0);
  CHECK(plan_device(discrete(), {.masked = {"float16"}})->features ==
        (needs_subgroup | needs_int8 | needs_int16 | needs_storage16 | needs_storage8 | needs_lane_sums));
  // What custom operations alone ask for.
  DeviceDescription wide = discrete();
  wide.float64 = wide.int64 = wide.subgroup_shuffle = true;
  CHECK((plan_device(wide)->features & (needs_float64 | needs_int64 | needs_lane_shuffles)) ==
        (needs_float64 | needs_int64 | needs_lane_shuffles));
  CHECK((plan_device(wide, {.masked = {"int64", "subgroup"}})->features & (needs_int64 | needs_lane_sums | needs_lane_shuffles)) == 0);
  // Products by lanes are for processors of which a lane tells the others, with as many lanes as are told at once.
  DeviceDescription processor = wide;
  processor.kind = DeviceKind::cpu;
  CHECK(plan_device(processor)->lane_rows == 0);
  processor.subgroup_ballot = wide.subgroup_ballot = true;
  CHECK((plan_device(wide)->features & needs_broadcast) != 0);
  CHECK(plan_device(wide)->lane_rows == 0);                // a GPU
  for (const std::uint32_t size : {4u, 8u, 16u, 64u}) {
    CAPTURE(size);
    processor.subgroup_size = processor.subgroup_min = processor.subgroup_max = size;
    const auto p = plan_device(processor);
    CHECK((p->lane_rows > 0) == (size >= 8));
    CHECK((p->lane_tokens > 0) == (size >= 8));
    CHECK(p->row_group % size == 0);
  }
  CHECK(plan_device(processor, {.masked = {"broadcast"}})->lane_rows == 0);
  CHECK(plan_device(processor, {.masked = {"broadcast"}})->subgroup == 64);
  CHECK(plan_device(processor, {.masked = {"subgroup"}})->lane_rows == 0);
  // Wider than a workgroup may be: none.
  DeviceDescription d = discrete();
  d.max_group_size = d.max_group_x = 64;
  d.subgroup_size = d.subgroup_min = d.subgroup_max = 128;
  CHECK(plan_device(d)->subgroup == 0);
}

TEST_CASE("a processor that plays a device works in small groups") {
  DeviceDescription d = discrete();
  d.kind = DeviceKind::cpu;
  for (const std::uint32_t size : {4u, 8u, 16u}) {
    d.subgroup_size = d.subgroup_min = d.subgroup_max = size;
    CHECK(plan_device(d)->row_group == 2 * size);
  }
}

TEST_CASE("what a device lacks is said with both numbers") {
  const auto message = [](auto change) {
    DeviceDescription d = discrete();
    change(d);
    const auto p = plan_device(d);
    REQUIRE(!p.ok());
    CHECK(p.error().kind == "vulkan-device");
    CHECK(!p.error().help.empty());
    return p.error().message;
  };
  CHECK(message([](auto& d) { d.version_minor = 1; }) == "a discrete card: it has Vulkan 1.1; 1.2 is needed");
  CHECK(message([](auto& d) { d.max_push_bytes = 64; }) == "a discrete card: it has 64 bytes of push constants; 128 are needed");
  CHECK(message([](auto& d) { d.max_group_size = 32; }) == "a discrete card: its workgroups have at most 32 invocations; 64 are needed");
  CHECK(message([](auto& d) { d.shared_bytes = 4096; }) ==
        "a discrete card: a workgroup has 4,096 bytes of shared memory; 8,448 are needed");
  CHECK(message([](auto& d) {
          for (auto& q : d.queues) q.compute = false;
        }) == "a discrete card: none of its queues computes");
  CHECK(message([](auto& d) {
          for (auto& t : d.types) t.host_visible = false;
        }) == "a discrete card: the host sees none of its memory");
  CHECK(message([](auto& d) { d.max_storage_range = 4096; }) ==
        "a discrete card: a shader sees 4,096 bytes of a buffer; 65,536 are needed");
}

TEST_CASE("workgroups over the limit of an axis go on along the next, and few are too many") {
  const std::array<std::uint32_t, 3> most = {65535, 65535, 65535};
  CHECK(*fold_groups(0, most) == std::array<std::uint32_t, 3>{1, 1, 1});
  CHECK(*fold_groups(65535, most) == std::array<std::uint32_t, 3>{65535, 1, 1});
  CHECK(*fold_groups(65536, most) == std::array<std::uint32_t, 3>{32768, 2, 1});
  for (const std::uint64_t n : {65537ULL, 1000003ULL, 4294967296ULL, 1ULL << 40}) {
    CAPTURE(n);
    const auto g = fold_groups(n, most);
    REQUIRE(g.has_value());
    std::uint64_t all = 1;
    for (const std::uint32_t x : *g) {
      CHECK(x >= 1);
      CHECK(x <= 65535);
      all *= x;
    }
    CHECK(all >= n);
    CHECK(all < n + 65536ULL * 65536ULL);
  }
  CHECK(!fold_groups(1ULL << 48, most).has_value());
  CHECK(*fold_groups(50, {7, 8, 1}) == std::array<std::uint32_t, 3>{7, 8, 1});
  CHECK(!fold_groups(57, {7, 8, 1}).has_value());
}

TEST_CASE("rows over what a binding shows are cut into pieces that fit, from any address on") {
  DevicePlan p = *plan_device(least());
  p.binding_bytes = 1024;
  for (const std::int64_t at : {0, 2, 100, 254})
    for (const std::int64_t row : {1, 18, 210, 700}) {
      CAPTURE(at);
      CAPTURE(row);
      const auto pieces = split_rows(at, 37, row, p);
      REQUIRE(!pieces.empty());
      std::int64_t next = 0;
      for (const RowPiece& piece : pieces) {
        CHECK(piece.first == next);
        CHECK(piece.rows >= 1);
        const std::int64_t skipped = (at + piece.first * row) % 256;
        CHECK((skipped + piece.rows * row + 3) / 4 * 4 <= 1024);
        next += piece.rows;
      }
      CHECK(next == 37);
    }
  CHECK(split_rows(0, 3, 2000, p).empty());
  CHECK(split_rows(0, 0, 10, p).empty());
}

TEST_CASE("what goes token by token: every element is held once, in few registers, by workgroups that the device has") {
  struct Shape {
    std::int64_t heads, columns, n;
  };
  for (const auto& describe : {discrete, least, software})
    for (const bool masked : {false, true})
      for (const bool delta : {false, true})
        for (const std::int64_t sequences : {1, 64})
          for (const auto& [heads, columns, n] : {Shape{80, 64, 128},
                                                  {1, 1, 1},
                                                  {3, 8, 5},
                                                  {32, 128, 128},
                                                  {8, 4, 5},
                                                  {2, 513, 7},
                                                  {1, 3, 1025},
                                                  {24, 64, 256},
                                                  {1, 2, 70'000}}) {
            const DevicePlan device =
                *plan_device(describe(), {.masked = masked ? std::vector<std::string>{"subgroup"} : std::vector<std::string>{}});
            CAPTURE(describe().name);
            CAPTURE(masked);
            CAPTURE(columns);
            CAPTURE(n);
            const ScanShape shape{sequences, heads, columns, n, delta ? 2 : 1, delta ? 3 : 0};
            const ScanPlan p = plan_scan(shape, device);
            const std::int64_t teams = p.group / p.lanes;
            CHECK(p.group % p.lanes == 0);
            CHECK(std::has_single_bit(p.group));
            CHECK(p.group <= device.largest_group);
            if (p.subgroups) CHECK(p.lanes == device.subgroup);
            else CHECK(((delta ? 2 : 1) * p.columns + (delta ? 3 : 0)) * (p.group + teams) * 4 <= device.shared_bytes);
            if (device.subgroup == 0) CHECK(!p.subgroups);
            CHECK(std::int64_t{p.lanes} * p.held >= n);
            CHECK(std::int64_t{p.lanes} * (p.held - 1) < n);
            CHECK(teams * p.columns * p.pieces >= columns);
            CHECK(teams * p.columns * (std::int64_t{p.pieces} - 1) < columns);
            if (n <= 1025) CHECK(p.columns * p.held <= 64);
            CHECK(std::int64_t{p.token_rounds} >= std::int64_t{p.columns} * p.held * 2);
          }
  // A model with 24 heads of 64 by 128 on a card: enough workgroups for one sequence, fewer and larger ones for many.
  const DevicePlan card = *plan_device(discrete()), processor = *plan_device(software());
  const ScanPlan one = plan_scan({1, 24, 64, 128, 1, 0}, card), many = plan_scan({64, 24, 64, 128, 1, 0}, card);
  CHECK(one.subgroups);
  CHECK(one.held == 4);
  CHECK(one.columns == 2);
  CHECK(one.pieces == 16);
  CHECK(many.columns == 8);
  CHECK(many.pieces == 4);
  // Where a subgroup is too narrow for a column, invocations of all of a workgroup have it.
  CHECK(plan_scan({1, 1, 4, 256, 1, 0}, processor).subgroups);
  CHECK(!plan_scan({1, 1, 4, 257, 1, 0}, processor).subgroups);
  CHECK(plan_scan({1, 1, 4, 257, 1, 0}, processor).lanes == 64);
  // Short columns: a workgroup's invocations each have one of their own.
  const ScanPlan few = plan_scan({1, 8, 100, 5, 2, 3}, *plan_device(least()));
  CHECK(few.lanes == 1);
  CHECK(few.held == 5);
  CHECK(few.group == 64);
}

TEST_CASE("a file of pipelines comes back whole, and not at all when it is damaged or another driver's") {
  const DeviceDescription d = discrete();
  std::vector<std::byte> data;
  for (int i = 0; i < 1000; ++i) data.push_back(static_cast<std::byte>(i * 7));
  const auto file = pack_cache(d, data);
  REQUIRE(unpack_cache(d, file).has_value());
  CHECK(*unpack_cache(d, file) == data);
  for (std::size_t i = 0; i < file.size(); i += 13) {
    auto damaged = file;
    damaged[i] ^= std::byte{0x10};
    CHECK(!unpack_cache(d, damaged).has_value());
  }
  for (const std::size_t n : {std::size_t{0}, std::size_t{10}, file.size() - 1})
    CHECK(!unpack_cache(d, std::span(file).first(n)).has_value());
  DeviceDescription other = d;
  other.driver_version = 7;
  CHECK(!unpack_cache(other, file).has_value());
  other = d;
  other.cache_uuid[3] = 1;
  CHECK(!unpack_cache(other, file).has_value());
}

TEST_CASE("the memory that tensors get: one heap, what the driver says of it, and what the machine has where both share it") {
  DeviceDescription d = discrete();
  CHECK(memory_of(d, 3 * gib).bytes == 24 * gib);
  CHECK(memory_of(d, 3 * gib).free == 24 * gib);           // not said: all of it
  CHECK_FALSE(memory_of(d, 3 * gib).said);
  d.heaps[0].free = 20 * gib;
  d.heaps[1].free = 2 * gib;
  CHECK(memory_of(d, 3 * gib).free == 20 * gib);
  CHECK(memory_of(d, 3 * gib).said);
  DeviceDescription shared = least();
  CHECK(memory_of(shared, 0).free == 512 * mib);
  CHECK(memory_of(shared, gib).free == 512 * mib);
  CHECK(memory_of(shared, 100 * mib).free == 100 * mib);
  shared.heaps[0].free = 50 * mib;
  CHECK(memory_of(shared, 100 * mib).free == 50 * mib);
  d.version_minor = 0;                                     // one that cannot be used has memory, too
  CHECK(memory_of(d, 0).bytes == 24 * gib);
  d.heaps.clear();
  d.types.clear();
  CHECK(memory_of(d, 0).bytes == 0);
}

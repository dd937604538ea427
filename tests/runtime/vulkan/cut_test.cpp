// How what a binding does not show is cut, as plain data: no device takes part.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

#include "runtime/vulkan/cut.h"

using namespace modelc;
using namespace modelc::vulkan;

namespace {

DevicePlan small_plan() {
  DevicePlan p;
  p.alignment = 64;
  p.binding_bytes = 1024;
  return p;
}

// Every place is in one block, and no block touches more of a tensor than is seen.
void check_blocks(std::span<const std::int64_t> sizes, std::span<const Walk> walks, const DevicePlan& plan,
                  std::span<const Places> blocks) {
  std::set<std::vector<std::int64_t>> met;
  for (const Places& block : blocks) {
    REQUIRE(block.first.size() == sizes.size());
    for (const Walk& w : walks) {
      std::int64_t at = w.at, bytes = w.bytes;
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        at += block.first[k] * w.steps[k];
        bytes += (block.count[k] - 1) * w.steps[k];
      }
      CHECK(is_seen(at, bytes, plan));
    }
    std::vector<std::int64_t> place = block.first;
    for (bool more = true; more;) {
      CHECK(met.insert(place).second);
      more = false;
      for (std::size_t k = sizes.size(); k-- > 0 && !more;) {
        more = ++place[k] < block.first[k] + block.count[k];
        if (!more) place[k] = block.first[k];
      }
    }
  }
  std::size_t all = 1;
  for (const std::int64_t n : sizes) all *= static_cast<std::size_t>(n);
  CHECK(met.size() == all);
}

Binding binding(const Buffer& b, std::int64_t offset, std::int64_t bytes, std::int64_t row_bytes) {
  return {{&b, offset, DType::u8, {bytes}}, bytes, true, true, row_bytes};
}

}  // namespace

TEST_CASE("what one binding shows to the last byte is not cut, and one byte more is") {
  const DevicePlan plan = small_plan();
  CHECK(is_seen(0, 1024, plan));
  CHECK(!is_seen(0, 1025, plan));
  CHECK(!is_seen(4, 1024, plan));                          // a binding begins at 0 then, too
  CHECK(is_seen(64, 1024, plan));
  CHECK(!is_seen(68, 1021, plan));                         // whole words are read
  const std::int64_t rows[] = {256}, more[] = {257};
  const Walk walks[] = {{0, 4, {4}}};
  CHECK(cut(rows, walks, plan, Order::outer_first).size() == 1);
  const auto two = cut(more, walks, plan, Order::outer_first);
  CHECK(two.size() == 2);
  check_blocks(more, walks, plan, two);
}

TEST_CASE("loops over one to three axes, tensors that lie together, are broadcast, or are walked across") {
  std::mt19937 random(5);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); };
  const DevicePlan plan = small_plan();
  std::size_t together = 0, apart = 0;
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    std::vector<std::int64_t> sizes;
    for (std::int64_t k = 1 + below(3); k-- > 0;) sizes.push_back(1 + below(sizes.empty() ? 40 : 20));
    std::vector<Walk> walks;
    for (int t = 0; t < 3; ++t) {
      const std::int64_t bytes = below(2) == 0 ? 1 : 4;
      Walk w{below(100) * 4, bytes, std::vector<std::int64_t>(sizes.size())};
      std::vector<std::size_t> axes;
      for (std::size_t k = 0; k < sizes.size(); ++k) axes.insert(axes.begin() + below(static_cast<std::int64_t>(axes.size()) + 1), k);
      if (t == 0)
        for (std::size_t k = 0; k < sizes.size(); ++k) axes[k] = k;    // the first lies together in the axes' order
      std::int64_t step = bytes;
      for (std::size_t k = sizes.size(); k-- > 0;) {
        if (t > 0 && below(4) == 0) continue;              // every place along it sees the same
        w.steps[axes[k]] = step;
        step *= sizes[axes[k]];
      }
      walks.push_back(w);
    }
    const auto any = cut(sizes, walks, plan, Order::any);
    REQUIRE(!any.empty());
    check_blocks(sizes, walks, plan, any);
    const auto outer = cut(sizes, walks, plan, Order::outer_first);
    REQUIRE(!outer.empty());
    check_blocks(sizes, walks, plan, outer);
    for (const Places& block : outer) {
      // Together: an axis that is cut has none before it of which a block holds more than one place.
      bool cut_before = false;
      for (std::size_t k = sizes.size(); k-- > 0;) {
        if (cut_before) CHECK(block.count[k] == 1);
        cut_before = cut_before || block.count[k] < sizes[k];
      }
    }
    (outer.size() == 1 ? together : apart) += 1;
  }
  CHECK(together > 20);
  CHECK(apart > 100);
}

TEST_CASE("a tensor that every block sees whole may fill its binding to the last byte") {
  const DevicePlan plan = small_plan();
  const std::int64_t rows[] = {257};
  const Walk walks[] = {{0, 4, {4}}, {64, 1024, {0}}};
  const auto blocks = cut(rows, walks, plan, Order::outer_first);
  CHECK(blocks.size() == 2);
  check_blocks(rows, walks, plan, blocks);
}

TEST_CASE("what cannot be cut is not: one row that is too long, and a tensor that all rows see") {
  const DevicePlan plan = small_plan();
  const std::int64_t rows[] = {10};
  const Walk long_rows[] = {{0, 2000, {2000}}}, seen_by_all[] = {{0, 2000, {0}}, {0, 4, {4}}};
  for (const Order order : {Order::any, Order::outer_first}) {
    CHECK(cut(rows, long_rows, plan, order).empty());
    CHECK(cut(rows, seen_by_all, plan, order).empty());
  }
}

TEST_CASE("a dispatch in parts: each has its rows of the tensors, is told how many and where they begin, and has their workgroups") {
  const DevicePlan plan = small_plan();
  Buffer x, y, w;
  Dispatch d;
  d.in_rows(30).bind({&x, 8, DType::f32, {30, 16}}, 1920, true, false).of_rows();
  d.bind({&y, 0, DType::f32, {30, 4}}, 480, false, true).of_rows().bind({&w, 0, DType::f32, {16}}, 64, true, false);
  d.push(7).push_rows(3).push_first(100).push_rows(1, 4).spread(60, 4, 5, 64,
                                                                1000);   // two things a row, four of them a workgroup, five times over
  const auto parts = in_parts(d, plan);
  REQUIRE(parts.size() > 1);
  std::int64_t next = 0;
  for (const Dispatch& p : parts) {
    const std::int64_t n = p.rows.count;
    CHECK(p.bindings[0].tensor.offset == 8 + next * 64);
    CHECK(p.bindings[0].bytes == n * 64);
    CHECK(p.bindings[1].tensor.offset == next * 16);
    CHECK(p.bindings[1].bytes == n * 16);
    CHECK(p.bindings[2].bytes == 64);
    CHECK(p.arguments == std::vector<std::uint32_t>{7, static_cast<std::uint32_t>(3 * n), static_cast<std::uint32_t>(100 + next),
                                                    static_cast<std::uint32_t>((n + 3) / 4)});
    CHECK(p.groups == static_cast<std::uint64_t>((2 * n + 3) / 4 * 5));
    for (const Binding& b : p.bindings) CHECK(is_seen(b.tensor.offset, b.bytes, plan));
    next += n;
  }
  CHECK(next == 30);
  // No more rows at a time than it allows, also of what is seen at once; each part where the one before ended.
  for (const std::int64_t most : {4, 7, 29, 30, 31}) {
    Dispatch few = d;
    few.most_rows(most);
    std::int64_t at = 0;
    for (const Dispatch& p : in_parts(few, plan)) {
      CHECK(p.rows.count <= most);
      CHECK(p.arguments[2] == 100 + at);
      CHECK(p.bindings[0].tensor.offset == 8 + at * 64);
      at += p.rows.count;
    }
    CHECK(at == 30);
    few.bindings = {binding(x, 0, 960, 32)};
    CHECK(in_parts(few, plan).size() == static_cast<std::size_t>(most < 30 ? (30 + most - 1) / most : 0));
  }
  // As it is: what is seen at once, and what cannot be cut.
  Dispatch whole = d;
  whole.bindings = {binding(x, 0, 960, 32)};
  CHECK(in_parts(whole, plan).empty());
  whole.bindings = {binding(x, 0, 60000, 2000)};
  CHECK(in_parts(whole, plan).empty());
}

TEST_CASE("a dispatch that is more work than a submission may have: parts of whole workgroups, every row once") {
  DevicePlan plan = small_plan();
  plan.binding_bytes = 1 << 20;
  Buffer x;
  // 1,000 rows of 64 bytes, 32 of them a workgroup, 3 times over: 96 workgroups of a million multiplications.
  Dispatch d;
  d.in_rows(1000).bind({&x, 128, DType::f32, {1000, 16}}, 64000, true, true).of_rows().push_rows().spread(1000, 32, 3, 64, 1'000'000);
  CHECK(in_parts(d, plan).empty());                        // no bound
  plan.work = d.work;
  CHECK(in_parts(d, plan).empty());
  for (const std::uint64_t work : {d.work - 1, d.work / 2, d.work / 7, std::uint64_t{3'100'000}}) {
    CAPTURE(work);
    plan.work = work;
    const auto parts = in_parts(d, plan);
    REQUIRE(parts.size() >= d.work / work);
    CHECK(parts.size() <= d.work / work * 2 + 1);
    std::int64_t next = 0;
    for (const Dispatch& p : parts) {
      CHECK(p.work <= work);
      CHECK(p.bindings[0].tensor.offset == 128 + next * 64);
      CHECK(p.arguments[0] == p.rows.count);
      next += p.rows.count;
      CHECK((next == 1000 || p.rows.count % 32 == 0));
    }
    CHECK(next == 1000);
  }
  // A row that is too much by itself is run alone; what is seen in parts is cut further.
  plan.work = 10;
  CHECK(in_parts(d, plan).size() == 1000);
  plan.binding_bytes = 8192;
  plan.work = d.work / 20;
  const auto both = in_parts(d, plan);
  std::int64_t rows = 0;
  for (const Dispatch& p : both) {
    CHECK(p.work <= plan.work);
    CHECK(is_seen(p.bindings[0].tensor.offset, p.bindings[0].bytes, plan));
    rows += p.rows.count;
  }
  CHECK(rows == 1000);
}

// How attention and experts are spread over workgroups, decided as plain data: no device takes part.
#include <doctest/doctest.h>

#include "runtime/vulkan/device_plan.h"

using namespace modelc::vulkan;

namespace {

DevicePlan plan(std::uint32_t shared_bytes, std::uint32_t fill) {
  DevicePlan p;
  p.shared_bytes = shared_bytes;
  p.fill_groups = fill;
  return p;
}

// What must hold of every plan: all is covered, and shared memory suffices.
void check_plan(const AttendShape& a, const DevicePlan& device) {
  CAPTURE(a.query_heads);
  CAPTURE(a.d);
  CAPTURE(a.dv);
  CAPTURE(a.rows);
  const AttendPlan p = plan_attend(a, device);
  const std::uint64_t queries = std::uint64_t{p.tokens} * p.heads, group = device.attend_group;
  CHECK(p.tokens >= 1);
  CHECK(p.heads >= 1);
  CHECK(static_cast<std::int64_t>(p.heads * p.head_pieces) >= a.query_heads / a.heads);
  CHECK(static_cast<std::int64_t>(p.heads * (p.head_pieces - 1)) < a.query_heads / a.heads);
  CHECK(queries % p.q_groups == 0);
  CHECK(group % p.q_groups == 0);
  CHECK(static_cast<std::int64_t>(group / p.q_groups * p.channels * p.value_pieces) >= a.dv);
  CHECK(queries / p.q_groups * p.channels <= 64);          // sums of one invocation
  const std::uint64_t numbers = (p.shared_q ? queries * static_cast<std::uint64_t>(a.d) : 1) + queries * (group + 3);
  CHECK(numbers * 4 <= device.shared_bytes);
  CHECK(p.parts >= 1);
  if (p.parts > 1) {
    CHECK(static_cast<std::int64_t>(std::uint64_t{p.parts} * p.part_keys) >= a.longest);
    CHECK(p.part_keys % device.attend_group == 0);
  }
}

}  // namespace

TEST_CASE("attention's tiles cover every head and channel within shared memory, whatever their numbers") {
  for (const std::uint32_t shared : {16384U, 32768U, 49152U, 163840U})
    for (const std::int64_t together : {1, 2, 3, 5, 7, 8, 16, 70})
      for (const std::int64_t d : {1, 8, 64, 100, 128, 192, 576, 4000, 8000})
        for (const std::int64_t dv : {1, 33, 64, 128, 256, 512, 513, 1500})
          for (const std::int64_t rows : {1, 2, 7, 512})
            for (const std::int64_t longest : {1, 512, 513, 3000, 131072})
              check_plan({rows, 1, 2 * together, 2, d, dv, longest}, plan(shared, 256));
}

TEST_CASE("a prompt's tokens share keys, a single token's heads do, and what is one token of each sequence is not put together") {
  const DevicePlan device = plan(49152, 1);
  const AttendPlan prompt = plan_attend({256, 1, 9, 3, 64, 64, 256}, device);
  CHECK(prompt.heads == 3);
  CHECK(prompt.tokens == 8);
  CHECK(prompt.q_groups == 4);
  CHECK(prompt.channels == 4);
  CHECK(prompt.parts == 1);
  const AttendPlan one = plan_attend({1, 1, 9, 3, 64, 64, 256}, device);
  CHECK(one.heads == 3);
  CHECK(one.tokens == 1);
  CHECK(plan_attend({16, 16, 9, 3, 64, 64, 256}, device).tokens == 1);
  CHECK(plan_attend({256, 1, 4, 4, 64, 64, 256}, device).tokens == 32);
  CHECK(plan_attend({256, 1, 4, 4, 64, 512, 256}, device).tokens == 8);
  const AttendPlan wide = plan_attend({256, 1, 4, 4, 576, 1024, 256}, plan(16384, 1));
  CHECK(wide.value_pieces == 2);
}

TEST_CASE("keys are spread over as many workgroups as fill the device, and a further token changes nothing") {
  const DevicePlan device = plan(49152, 256);
  const AttendShape one{1, 1, 32, 8, 128, 128, 5000};
  const AttendPlan p = plan_attend(one, device);
  CHECK(p.heads == 2);                                     // of four that share keys: 16 workgroups
  CHECK(p.parts == 16);                                    // of 8,192 keys 512 each
  CHECK(p.part_keys == 512);
  AttendShape next = one;
  for (next.longest = 4097; next.longest <= 8192; next.longest += 117) {
    CHECK(plan_attend(next, device).parts == p.parts);
    CHECK(plan_attend(next, device).part_keys == p.part_keys);
  }
  next.longest = 131072;
  CHECK(plan_attend(next, device).parts == 32);            // 8 · 32 workgroups
  next.longest = 512;
  CHECK(plan_attend(next, device).parts == 1);
  CHECK(plan_attend(next, device).heads == 1);             // short: each head by itself
  AttendShape prompt = one;
  prompt.rows = 1024;
  CHECK(plan_attend(prompt, device).parts == 1);           // many queries fill it
  CHECK(plan_attend(one, plan(49152, 4)).parts == 1);
}

TEST_CASE("where a driver carries out so many rounds of loops alone, no invocation has more") {
  DevicePlan device = plan(32768, 4);
  device.attend_group = 16;
  device.attend_queries = 16;
  const AttendShape prompt{.rows = 512, .query_heads = 32, .heads = 8, .d = 256, .dv = 256, .longest = 100'000};
  CHECK(plan_attend(prompt, device).parts == 1);           // there are workgroups enough
  device.loop_rounds = 60'000;
  check_plan(prompt, device);
  const AttendPlan p = plan_attend(prompt, device);
  const std::int64_t queries = std::int64_t{p.tokens} * p.heads;
  CHECK(p.parts == 64);                                    // of 131,072 keys, which the next power of two is
  CHECK(p.part_keys / 16 * (256 + 3 * 16 + 2 * queries) <= 60'000);
  AttendShape few = prompt;
  few.longest = 1000;
  CHECK(plan_attend(few, device).parts == 1);
  // Rows: a workgroup grows with them, up to what the device has.
  device.row_group = 16;
  device.largest_group = 1024;
  CHECK(row_group_of(4096, 3, device) == 16);
  CHECK(row_group_of(600'000, 3, device) == 32);
  CHECK(row_group_of(std::int64_t{1} << 40, 3, device) == 1024);
  device.loop_rounds = 0;
  CHECK(row_group_of(600'000, 3, device) == 16);
}

TEST_CASE("pairs of one expert are put together where there are several for each") {
  CHECK(pairs_together(8, 128) == 1);
  CHECK(pairs_together(255, 128) == 1);
  CHECK(pairs_together(256, 128) == 4);
  CHECK(pairs_together(2048, 128) == 8);
}

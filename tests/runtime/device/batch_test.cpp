#include "runtime/kv_cache/kv_cache.h"
#include "tests/runtime/device/llama_support.h"

using namespace modelc;
using namespace modelc::test;

TEST_CASE("a batch lays its segments one after another") {
  const auto llama = random_llama();
  auto state = good(llama->new_state({.sequences = 3}));
  const std::vector<Segment> first = {{2, 2}, {0, 3}};
  const Batch a = good(Batch::make(*state, first, Outputs::all));
  CHECK(a.tokens() == 5);
  CHECK(a.batch() == 2);
  CHECK(a.positions == std::vector<std::int32_t>{0, 1, 0, 1, 2});
  CHECK(a.lengths == std::vector<std::int32_t>{2, 2, 3, 3, 3});
  CHECK(a.sequence == std::vector<std::int32_t>{0, 0, 1, 1, 1});
  CHECK(a.outputs == std::vector<std::int32_t>{0, 1, 2, 3, 4});
  CHECK(a.last == std::vector<std::int32_t>{1, 4});
  CHECK(a.slots == std::vector<std::int32_t>{2, 0});
  CHECK(a.starts == std::vector<std::int32_t>{0, 2, 5});
  const auto ids = random_tokens(5);
  static_cast<void>(good(llama->forward(*state, ids, a)));
  const std::vector<Segment> second = {{0, 1}, {1, 2}};
  const Batch b = good(Batch::make(*state, second, Outputs::last));
  CHECK(b.positions == std::vector<std::int32_t>{3, 0, 1});
  CHECK(b.lengths == std::vector<std::int32_t>{4, 2, 2});
  CHECK(b.outputs == std::vector<std::int32_t>{0, 2});
}

TEST_CASE("batches that make no sense are refused with what was said and what there is") {
  const auto llama = random_llama();
  auto state = good(llama->new_state({.sequences = 2}));
  const auto refused = [&](std::vector<Segment> segments) {
    auto b = Batch::make(*state, segments, Outputs::last);
    REQUIRE_FALSE(b.ok());
    return b.error().message;
  };
  CHECK(refused({}) == "a batch of no sequences");
  CHECK(refused({{2, 1}}) == "sequence 2 is not in the state, which has 2 slots, from 0");
  CHECK(refused({{-1, 1}}) == "sequence -1 is not in the state, which has 2 slots, from 0");
  CHECK(refused({{0, 1}, {0, 1}}) == "sequence 0 is named twice in one batch");
  CHECK(refused({{1, 0}}) == "sequence 1 comes with 0 tokens");
  CHECK(refused({{1, 65}}) == "sequence 1 holds 0 positions; with 65 new tokens it passes the 64 that the state has room for");
  CHECK(refused({{1, INT64_MAX}}).starts_with("sequence 1 holds 0 positions"));
  CHECK(Batch::make(*state, std::vector<Segment>{{1, 64}, {0, 64}}, Outputs::last).ok());
}

TEST_CASE("without a state every sequence starts at 0") {
  const std::vector<std::int64_t> lengths = {2, 1};
  const Batch b = good(Batch::make(lengths, Outputs::last));
  CHECK(b.positions == std::vector<std::int32_t>{0, 1, 0});
  CHECK(b.lengths == std::vector<std::int32_t>{2, 2, 1});
  CHECK(b.outputs == std::vector<std::int32_t>{1, 2});
  CHECK_FALSE(Batch::make(std::span<const std::int64_t>{}, Outputs::last).ok());
  const std::vector<std::int64_t> none = {2, 0}, many = {INT64_MAX, INT64_MAX};
  CHECK_FALSE(Batch::make(none, Outputs::last).ok());
  CHECK_FALSE(Batch::make(many, Outputs::last).ok());
}

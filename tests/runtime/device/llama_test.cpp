// The handwritten model, whole: against transformers' numbers, and against itself in other pieces and batches.
#include <map>

#include "runtime/encoding/convert.h"
#include "runtime/checkpoint/open.h"
#include "runtime/kv_cache/kv_cache.h"
#include "tests/runtime/device/llama_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const char* isa : {"portable", "avx2", "avx512", "avx512vnni"})
    if (open_cpu({1, isa})) names.emplace_back(isa);
  return names;
}

// Logits are valid until the next call of the model.
std::vector<float> copied(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

struct Expected {
  std::vector<std::int32_t> ids;
  std::map<std::string, std::vector<float>> values;
};
Expected read_expected() {
  auto index = std::make_shared<const CheckpointIndex>(good(open_checkpoint(fixture + "/expected.safetensors")));
  CheckpointData data(index);
  Expected e;
  for (const TensorInfo& t : index->tensors()) {
    if (t.name == "input_ids") {
      for (std::int64_t id : good(data.read_i64(t))) e.ids.push_back(static_cast<std::int32_t>(id));
    } else {
      e.values[t.name] = good(data.read_f32(t));
    }
  }
  return e;
}

}  // namespace

TEST_CASE("the fixture: logits and every stage are transformers'") {
  const Expected expected = read_expected();
  REQUIRE(expected.ids.size() == 24);
  for (const std::string& isa : instruction_sets()) {
    CAPTURE(isa);
    const auto llama = load_llama(fixture, {.cpu = {2, isa}});
    const auto logits = logits_in_pieces(*llama, expected.ids, {24});
    CHECK(largest_difference(logits, expected.values.at("logits")) < 1e-4F);

    std::map<std::string, std::vector<float>> seen;
    llama->add_layer_hook([&](const LayerValue& v) { seen[std::string(v.name)] = {v.data.begin(), v.data.end()}; });
    CHECK(logits_in_pieces(*llama, expected.ids, {24}) == logits);      // tracing changes no bit
    for (const auto& [name, values] : expected.values) {
      CAPTURE(name);
      REQUIRE(seen.contains(name));
      CHECK(largest_difference(seen[name], values) < 1e-4F);
    }
  }
}

TEST_CASE("prefill, chunks and decoding give the same bits, whatever the threads") {
  const auto ids = random_tokens(24);
  for (const std::string& isa : instruction_sets()) {
    CAPTURE(isa);
    std::vector<float> first;
    for (const int threads : {1, 2, 3}) {
      const auto llama = random_llama({.cpu = {threads, isa}});
      const auto whole = logits_in_pieces(*llama, ids, {24});
      CHECK(whole == logits_in_pieces(*llama, ids, {12, 12}));
      CHECK(whole == logits_in_pieces(*llama, ids, {1, 2, 3, 4, 5, 6, 3}));
      CHECK(whole == logits_in_pieces(*llama, ids, std::vector<std::int64_t>(24, 1)));
      if (first.empty()) first = whole;
      CHECK(first == whole);
    }
  }
}

TEST_CASE("a ragged batch gives each sequence what it has alone") {
  const auto llama = random_llama({.cpu = {2, ""}});
  const std::vector<std::int64_t> lengths = {5, 9, 1, 17};
  std::vector<std::vector<std::int32_t>> prompts;
  std::vector<std::int32_t> all;
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    prompts.push_back(random_tokens(static_cast<std::size_t>(lengths[i]), 30 + static_cast<unsigned>(i)));
    all.insert(all.end(), prompts.back().begin(), prompts.back().end());
    segments.push_back({static_cast<int>(lengths.size() - 1 - i), lengths[i]});   // slots in another order
  }
  auto state = good(llama->new_state({.sequences = 4}));
  const Batch batch = good(Batch::make(*state, segments, Outputs::all));
  const std::vector<float> together = copied(good(llama->forward(*state, all, batch)));
  std::size_t at = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto alone = logits_in_pieces(*llama, prompts[i], {lengths[i]});
    CHECK(std::equal(alone.begin(), alone.end(), together.begin() + static_cast<std::ptrdiff_t>(at)));
    at += alone.size();
  }
  CHECK(state->length(3) == 5);
  CHECK(state->length(0) == 17);

  // One decoding step of two of them, beside a fresh prompt in a slot that was cleared.
  std::vector<std::int32_t> next = {3, 4, 5, 6};
  state->clear(1);
  const std::vector<Segment> more = {{3, 1}, {1, 2}, {0, 1}};
  const Batch second = good(Batch::make(*state, more, Outputs::last));
  const std::vector<float> step = copied(good(llama->forward(*state, next, second)));
  const std::size_t vocab = 64;
  REQUIRE(step.size() == 3 * vocab);
  const auto expect_row = [&](std::vector<std::int32_t> ids, std::size_t row) {
    const auto alone = logits_in_pieces(*llama, ids, {static_cast<std::int64_t>(ids.size())});
    CHECK(std::equal(alone.end() - vocab, alone.end(), step.begin() + static_cast<std::ptrdiff_t>(row * vocab)));
  };
  auto longer = prompts[0];
  longer.push_back(3);
  expect_row(longer, 0);
  expect_row({4, 5}, 1);
  longer = prompts[3];
  longer.push_back(6);
  expect_row(longer, 2);
}

TEST_CASE("a truncated sequence goes on as if the rest had never been") {
  const auto llama = random_llama();
  const auto ids = random_tokens(20);
  auto state = good(llama->new_state());
  const Segment first{0, 20};
  static_cast<void>(good(llama->forward(*state, ids, good(Batch::make(*state, {&first, 1}, Outputs::last)))));
  state->truncate(0, 7);
  CHECK(state->length(0) == 7);
  const Segment rest{0, 13};
  const Batch batch = good(Batch::make(*state, {&rest, 1}, Outputs::all));
  const auto again = copied(good(llama->forward(*state, std::span(ids).subspan(7), batch)));
  const auto whole = logits_in_pieces(*llama, ids, {20});
  CHECK(std::equal(again.begin(), again.end(), whole.begin() + 7 * 64));
}

TEST_CASE("weights of 16 bits, mapped or read") {
  // What the widened weights give is what the kernels must give.
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const TemporaryFolder narrow, wide;
    SafetensorsWriter a, b;
    for (NamedValues& w : [] { return random_weights(3); }()) {
      std::vector<std::uint16_t> bits;
      for (float& v : w.values) {
        bits.push_back(dtype == DType::bf16 ? bf16_from_f32(v) : f16_from_f32(v));
        v = dtype == DType::bf16 ? f32_from_bf16(bits.back()) : f32_from_f16(bits.back());
      }
      REQUIRE(a.add(w.name, dtype, w.shape, std::as_bytes(std::span(bits))).ok());
      REQUIRE(b.add_f32(w.name, w.shape, w.values).ok());
    }
    REQUIRE(a.write(narrow / "model.safetensors").ok());
    REQUIRE(b.write(wide / "model.safetensors").ok());
    const auto ids = random_tokens(11);
    for (const std::string& isa : instruction_sets()) {
      const auto expected = logits_in_pieces(*load_llama(wide.path(), {.cpu = {1, isa}}), ids, {11});
      CHECK(logits_in_pieces(*load_llama(narrow.path(), {.cpu = {1, isa}}), ids, {11}) == expected);
      CHECK(logits_in_pieces(*load_llama(narrow.path(), {.no_mmap = true, .cpu = {2, isa}}), ids, {4, 7}) == expected);
    }
  }
}

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "runtime/kv_cache/kv_cache.h"

#include <doctest/doctest.h>

#include <vector>

#include "runtime/checkpoint/safetensors/writer.h"
#include "runtime/modelc.h"
#include "tests/runtime/base/temporary_folder.h"

using namespace modelc;

namespace {

// The smallest model with a state: each token's logits are what attention over its embeddings gives.
struct Table : Module {
  Weight weight{{.shape = {8, 4}, .role = WeightRole::table}};
  const char* type_name() const override { return "Table"; }
  void members(MemberVisitor& v) override { v.weight("weight", weight); }
};
struct Rows : Step::Frame {
  explicit Rows(Step& s) : Frame(s, 16 * s.tokens()) {}
  Tensor x = f32(0, {tokens(), 1, 4});
};
class Echo final : public Model {
 public:
  Table table;
  StateSlot cache{.heads = 1, .dim = 4, .value_dim = 4};

  static Result<std::unique_ptr<Echo>> load(const std::string& path) {
    auto index = open_checkpoint(path);
    if (!index) return index.error();
    auto echo = std::make_unique<Echo>();
    if (auto s = echo->load_weights(*index, {}, {}); !s) return s.error();
    return echo;
  }
  const char* type_name() const override { return "Echo"; }
  std::span<const EntryDesc> entries() const override { return entries_; }
  std::int64_t context() const override { return 0; }
  std::int64_t arena_bytes(const StepSizes& s) const override { return 16 * s.tokens(); }
  void members(MemberVisitor& v) override {
    v.child("table", table);
    v.state("cache", cache);
  }

 private:
  void run(int, Step& s, std::span<const Tensor> in, std::span<const Tensor> out) const override {
    const Rows rows(s);
    s.take(table.weight, in[0], 1.0F, rows.x);
    s.append(cache, rows.x, rows.x, s.at());
    s.attend(rows.x, cache, s.at(), {}, out[0].as({s.tokens(), 1, 4}));
  }
  const std::vector<EntryDesc> entries_ = {
      {.name = "forward",
       .inputs = {{.name = "ids", .dtype = DType::i32, .shape = "[tokens]", .index_bound = 8}},
       .outputs = {{.name = "y", .shape = "[tokens, 4]"}}}};
};

std::unique_ptr<Echo> echo() {
  const test::TemporaryFolder folder;
  SafetensorsWriter writer;
  std::vector<float> values;
  for (int i = 0; i < 32; ++i) values.push_back(static_cast<float>(i * 7 % 11) / 5 - 1);
  REQUIRE(writer.add_f32("table.weight", {8, 4}, values).ok());
  REQUIRE(writer.write(folder / "model.safetensors").ok());
  auto e = Echo::load(folder.path());
  if (!e) FAIL(e.error().text());
  return std::move(*e);
}

std::vector<float> feed(Echo& model, State& state, int sequence, std::vector<std::int32_t> ids) {
  const Segment s{sequence, static_cast<std::int64_t>(ids.size())};
  const Batch at = *Batch::make(state, {&s, 1}, Outputs::last);
  auto r = model.call("forward", &state, at, {{"ids", HostTensor::of(std::span<const std::int32_t>(ids), {s.tokens})}});
  if (!r) FAIL(r.error().text());
  const auto values = r->at("y").as<float>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("a state: slots, lengths, clearing and truncating") {
  const auto model = echo();
  CHECK_FALSE(model->new_state({.sequences = 2}).ok());    // no context: the capacity must be given
  auto made = model->new_state({.sequences = 2, .capacity = 20});
  REQUIRE(made.ok());
  State& state = **made;
  CHECK(state.sequences() == 2);
  CHECK(state.capacity() == 20);
  CHECK(state.bytes() == 2 * (32 + 20) * 4 * 4);           // keys in blocks of 16 positions, values as they are
  feed(*model, state, 0, {1, 2, 3, 4, 5});
  const auto other = feed(*model, state, 1, {7, 6});
  CHECK(state.length(0) == 5);
  CHECK(state.length(1) == 2);
  CHECK(state.cache(0).held == std::vector<std::int64_t>{5, 2});

  const auto next = feed(*model, state, 0, {6});
  state.truncate(0, 9);                                    // nothing to forget
  CHECK(state.length(0) == 6);
  state.truncate(0, 5);
  CHECK(state.length(0) == 5);
  CHECK(feed(*model, state, 0, {6}) == next);
  state.truncate(0, 2);
  feed(*model, state, 0, {3, 4, 5});
  CHECK(feed(*model, state, 0, {6}) == next);

  state.clear(1);
  CHECK(state.length(1) == 0);
  CHECK(state.length(0) == 6);
  CHECK(feed(*model, state, 1, {7, 6}) == other);
  state.clear();
  CHECK(state.length(0) == 0);
  CHECK(state.length(1) == 0);
}

TEST_CASE("a model without vocabulary says so") {
  const auto model = echo();
  CHECK_FALSE(model->vocabulary().has_value());
  auto state = *model->new_state({.capacity = 4});
  const Segment s{0, 1};
  const std::vector<std::int32_t> ids = {1};
  auto r = model->logits(*state, *Batch::make(*state, {&s, 1}, Outputs::last), ids);
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().kind == "entry");
}

TEST_CASE("a state outlives its model's device") {
  auto model = echo();
  auto state = *model->new_state({.capacity = 4});
  model.reset();
  state.reset();
}

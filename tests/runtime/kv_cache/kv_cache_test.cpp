#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "runtime/kv_cache/kv_cache.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "runtime/checkpoint/safetensors/writer.h"
#include "runtime/device/device_set.h"
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
  StateSlot cache{.kind = StateSlot::Kind::kv_cache, .sizes = {1, 4, 4}};

  static Result<std::unique_ptr<Echo>> load(const std::string& path) {
    auto index = open_checkpoint(path);
    if (!index) return index.error();
    auto echo = std::make_unique<Echo>();
    if (auto s = echo->load_weights(*index, CheckpointRulesData{}, {}); !s) return s.error();
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
  const std::vector<EntryDesc> entries_ = {{.name = "forward",
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
  CHECK(static_cast<KvCache&>(state.store(0)).held == std::vector<std::int64_t>{5, 2});

  const auto next = feed(*model, state, 0, {6});
  CHECK(state.truncate(0, 9) == 6);                        // nothing to forget
  CHECK(state.length(0) == 6);
  CHECK(state.truncate(0, 5) == 5);
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

TEST_CASE("a state without a past: filled by a call, brought back by one that fails, emptied by truncate") {
  auto device = *open_cpu({});
  StateSlot slot{.kind = StateSlot::Kind::recurrent, .sizes = {2, 3}};
  auto store = *device->reserve(slot, 100, 3);
  auto& state = static_cast<SlotState&>(*store);
  CHECK(state.bytes() == 3 * 6 * 4);
  CHECK(state.of(1).shape == Shape{2, 3});
  const auto values = [&](std::int64_t sequence) {
    const float* p = state.of(sequence).host<float>();
    return std::vector<float>(p, p + 6);
  };
  const std::vector<float> zeros(6, 0.0F), first = {1, 2, 3, 4, 5, 6}, second = {9, 8, 7, 6, 5, 4};
  const Sequences at{{2, 0}};
  const auto call = [&](const std::vector<float>& to, bool works) {
    REQUIRE(state.begin(at).ok());
    for (const std::int32_t s : at.slots) {
      if (&to == &first) CHECK(values(s) == zeros);
      CHECK(state.filled(s));
      device->write(std::as_bytes(std::span(to)), state.of(s));
    }
    if (works) state.commit(at);
    else state.rollback(at);
  };
  CHECK_FALSE(state.filled(2));
  call(first, false);
  CHECK_FALSE(state.filled(2));
  call(first, true);
  call(second, false);
  CHECK(values(0) == first);
  CHECK(values(2) == first);
  CHECK_FALSE(state.filled(1));
  CHECK(state.filled(2));
  CHECK(state.truncate(2, 5) == 0);
  CHECK_FALSE(state.filled(2));
  const Sequences both{{0, 2}};
  REQUIRE(state.begin(both).ok());
  CHECK(values(2) == zeros);
  CHECK(values(0) == first);
  device->write(std::as_bytes(std::span(second)), state.of(0));
  device->write(std::as_bytes(std::span(second)), state.of(2));
  state.rollback(both);
  CHECK(values(0) == first);
  CHECK_FALSE(state.filled(2));
  REQUIRE(state.begin(both).ok());
  CHECK(values(2) == zeros);
  CHECK(values(0) == first);
  state.commit(both);

  // What an encoder left stays while anything of its sequence does.
  auto cross = *device->reserve({.kind = StateSlot::Kind::cross_cache, .sizes = {2, 1, 3}}, 100, 1);
  auto& held = static_cast<KvCache&>(*cross).held[0];
  held = 2;
  CHECK(cross->truncate(0, 1) == 1);
  CHECK(held == 2);
  CHECK(cross->truncate(0, 0) == 0);
  CHECK(held == 0);
}

TEST_CASE("memory of sequences without a call is not touched") {
  const auto resident = [] {
    long pages = 0, own = 0;
    std::FILE* f = std::fopen("/proc/self/statm", "r");
    REQUIRE(f != nullptr);
    REQUIRE(std::fscanf(f, "%ld %ld", &pages, &own) == 2);
    std::fclose(f);
    return std::int64_t{own} * ::sysconf(_SC_PAGESIZE);
  };
  auto device = *open_cpu({.threads = 1});
  for (const auto kind : {StateSlot::Kind::recurrent, StateSlot::Kind::latent_cache, StateSlot::Kind::kv_cache}) {
    const std::int64_t before = resident();
    auto store = *device->reserve({.kind = kind, .sizes = {512, 512, 1}}, 128, 1024);
    CHECK(store->bytes() >= std::int64_t{1} << 28);
    const Sequences at{{7}};
    REQUIRE(store->begin(at).ok());
    store->commit(at);
    store->truncate(7, 0);
    CHECK(resident() - before < std::int64_t{32} << 20);
  }
}

TEST_CASE("a state of more sequences than can be counted is refused") {
  const auto model = echo();
  const auto state = model->new_state({.sequences = INT32_MAX, .capacity = 1});
  REQUIRE_FALSE(state.ok());
  CHECK(state.error().message == "a state of 2,147,483,647 sequences, and one has at most 65,536");
  CHECK(model->new_state({.sequences = 65536, .capacity = 1}).ok());
}

TEST_CASE("the bytes of a state are known before it is reserved, on every device") {
  using Kind = StateSlot::Kind;
  std::vector<std::shared_ptr<Device>> devices = {std::shared_ptr<Device>(std::move(*open_cpu({})))};
  if (auto vulkan = open_vulkan({})) devices.push_back(std::move(*vulkan));
  else MESSAGE("SKIPPED on Vulkan: " << vulkan.error().message);
  devices.push_back(std::make_shared<DeviceSet>(std::vector<DeviceSet::Member>{{"cpu", devices[0]}, {"last", devices.back()}}));
  for (const auto& device : devices)
    for (const StateSlot& slot : {StateSlot{.sizes = {3, 20, 12}}, StateSlot{.sizes = {3, 20, 12}, .dtype = DType::f16},
                                  StateSlot{.sizes = {2, 8, 8}, .dtype = DType::f32, .member = device->members() - 1},
                                  StateSlot{.kind = Kind::cross_cache, .sizes = {30, 3, 20}},
                                  StateSlot{.kind = Kind::cross_cache, .sizes = {30, 3, 20}, .dtype = DType::bf16},
                                  StateSlot{.kind = Kind::recurrent, .sizes = {5, 3}}, StateSlot{.kind = Kind::ring, .sizes = {4, 7}},
                                  StateSlot{.kind = Kind::latent_cache, .sizes = {4, 2}},
                                  StateSlot{.kind = Kind::latent_cache, .sizes = {7, 3}, .dtype = DType::bf16},
                                  StateSlot{.kind = Kind::latent_cache, .sizes = {7, 3}, .member = device->members() - 1}})
      for (const int sequences : {1, 3}) {
        const std::string description = device->description();
        CAPTURE(description);
        const auto counted = device->state_bytes(slot, 100, sequences);
        auto store = device->reserve(slot, 100, sequences);
        REQUIRE(counted.ok() == store.ok());
        if (!store) {
          CHECK(counted.error().kind == store.error().kind);
          continue;
        }
        Sequences all;
        for (int i = 0; i < sequences; ++i) all.slots.push_back(i);
        REQUIRE((*store)->begin(all).ok());
        CHECK((*store)->bytes() == *counted);
      }
  // Keys lie in blocks of positions on the CPU: 112 for 100.
  CHECK(*devices[0]->state_bytes({.sizes = {3, 20, 12}, .dtype = DType::f16}, 100, 1) == 3 * (112 * 20 + 100 * 12) * 2);
  // Latents as they are, once for all heads, and not once more as values.
  const StateSlot latents{.kind = Kind::latent_cache, .sizes = {20, 4}};
  for (const auto& device : devices) CHECK(*device->state_bytes(latents, 100, 3) == 3 * 100 * (20 + 4) * 4);
  CHECK(devices[0]->state_bytes(latents, std::int64_t{1} << 41, 1).error().kind == "out-of-memory");
  CHECK(*devices[0]->state_bytes({.kind = Kind::cross_cache, .sizes = {30, 3, 20}}, 100, 2) == 2 * 3 * (32 + 30) * 20 * 4);
  CHECK(devices[0]->state_bytes({.sizes = {1, 4, 4}}, std::int64_t{1} << 41, 1).error().kind == "out-of-memory");
}

TEST_CASE("a cache of latents goes back to any length, and to the call before when one fails") {
  auto device = *open_cpu({});
  auto store = *device->reserve({.kind = StateSlot::Kind::latent_cache, .sizes = {3, 2}}, 10, 3);
  auto& cache = static_cast<LatentCache&>(*store);
  CHECK(cache.rows.shape == Shape{3, 10, 5});
  const Sequences at{{2, 0}};
  const auto call = [&](std::int64_t tokens) {
    Batch b;
    b.slots = at.slots;
    b.starts = {0};
    for (const std::int32_t slot : at.slots) {
      const std::int64_t begin = cache.held[static_cast<std::size_t>(slot)];
      for (std::int64_t i = begin; i < begin + tokens; ++i) {
        b.positions.push_back(static_cast<std::int32_t>(i));
        b.lengths.push_back(static_cast<std::int32_t>(begin + tokens));
        b.sequence.push_back(static_cast<std::int32_t>(b.starts.size()) - 1);
      }
      b.starts.push_back(static_cast<std::int32_t>(b.positions.size()));
    }
    std::vector<float> latents, keys;
    for (std::int64_t t = 0; t < b.tokens(); ++t) {
      for (int i = 0; i < 3; ++i) latents.push_back(static_cast<float>(100 * t + i));
      for (int i = 0; i < 2; ++i) keys.push_back(static_cast<float>(-100 * t - i));
    }
    const Tensor latent{*device->allocate(b.tokens() * 12), 0, DType::f32, {b.tokens(), 3}};
    const Tensor key{*device->allocate(b.tokens() * 8), 0, DType::f32, {b.tokens(), 2}};
    device->write(std::as_bytes(std::span(latents)), latent);
    device->write(std::as_bytes(std::span(keys)), key);
    device->append(cache, latent, key, b);
    device->free(latent.buffer);
    device->free(key.buffer);
  };
  REQUIRE(cache.begin(at).ok());
  call(4);
  cache.commit(at);
  CHECK(cache.held == std::vector<std::int64_t>{4, 0, 4});
  const float* last = cache.rows.host<float>() + (0 * 10 + 3) * 5;     // of slot 0, the second sequence: token 7
  CHECK(std::vector<float>(last, last + 5) == std::vector<float>{700, 701, 702, -700, -701});
  REQUIRE(cache.begin(at).ok());
  call(3);
  CHECK(cache.held == std::vector<std::int64_t>{7, 0, 7});
  cache.rollback(at);
  CHECK(cache.held == std::vector<std::int64_t>{4, 0, 4});
  CHECK(cache.truncate(2, 3) == 3);
  CHECK(cache.truncate(0, 9) == 9);                        // there are fewer: State asks for no more than there are
  CHECK(cache.held == std::vector<std::int64_t>{4, 0, 3});
  CHECK(cache.truncate(0, 0) == 0);
  CHECK(cache.held[0] == 0);
}

TEST_CASE("states that a device does not have, and sizes that pass all numbers, are refused") {
  auto device = *open_cpu({});
  CHECK(device->reserve({.kind = StateSlot::Kind::latent_cache, .sizes = {4, 2}, .dtype = DType::i32}, 10, 1).error().kind == "state-kind");
  CHECK(device->reserve({.sizes = {1, 4, 4}, .dtype = DType::i32}, 10, 1).error().kind == "state-kind");
  CHECK(device->reserve({.kind = StateSlot::Kind::recurrent, .sizes = {4, 2}, .dtype = DType::f16}, 10, 1).error().kind == "state-kind");
  const std::int64_t large = std::int64_t{1} << 40;
  CHECK(device->reserve({.kind = StateSlot::Kind::recurrent, .sizes = {large, large}}, 1, 1).error().kind == "out-of-memory");
}

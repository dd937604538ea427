// Calls: arguments, batches and states that do not fit, and that a failed call leaves the state as it was.
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "runtime/device/device_set.h"
#include "runtime/device/module_tree.h"
#include "runtime/kv_cache/kv_cache.h"
#include "tests/runtime/device/llama_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

// A model of one state and nothing else.
class Keeper final : public Model {
 public:
  explicit Keeper(std::int64_t size) : kept_{.kind = StateSlot::Kind::ring, .sizes = {size}} {}
  const char* type_name() const override { return "Keeper"; }
  void members(MemberVisitor& v) override { v.state("kept", kept_); }
  std::span<const EntryDesc> entries() const override { return entries_; }
  std::int64_t context() const override { return 16; }
  std::int64_t arena_bytes(const StepSizes&) const override { return 64; }
  Status load(const LoadOptions& options) { return load_weights(CheckpointIndex{}, CheckpointRulesData{}, options); }
  Status call(State& state) {
    const Segment s{0, 1};
    const Batch batch = good(Batch::make(state, {&s, 1}, Outputs::last));
    auto results = enter(0, &state, &batch, {});
    return results ? Status() : Status(results.error());
  }

 private:
  void run(int, Step&, std::span<const Tensor>, std::span<const Tensor>) const override {}
  std::vector<EntryDesc> entries_ = {{.name = "forward"}};
  StateSlot kept_;
};

Batch one_batch(const State& state, std::int64_t tokens, Outputs outputs = Outputs::last) {
  const Segment s{0, tokens};
  return good(Batch::make(state, {&s, 1}, outputs));
}

}  // namespace

TEST_CASE("call by name gives what the typed method gives") {
  const auto llama = random_llama();
  const auto ids = random_tokens(6);
  auto state = good(llama->new_state());
  const auto results = good(llama->call("forward", state.get(), one_batch(*state, 6, Outputs::all),
                                        {{"input_ids", HostTensor::of(std::span<const std::int32_t>(ids), {6})}}));
  REQUIRE(results.contains("logits"));
  const HostTensor& logits = results.at("logits");
  CHECK(logits.shape == Shape{6, 64});
  CHECK(logits.dtype == DType::f32);
  const auto typed = logits_in_pieces(*llama, ids, {6});
  const auto values = logits.as<float>();
  CHECK(std::equal(values.begin(), values.end(), typed.begin(), typed.end()));
  CHECK(state->length(0) == 6);
}

TEST_CASE("arguments are checked at the call, and the error says which and how") {
  const auto llama = random_llama();
  auto state = good(llama->new_state());
  const Batch at = one_batch(*state, 3);
  const auto refused = [&](const std::string& entry, const std::map<std::string, HostTensor>& inputs) {
    auto r = llama->call(entry, state.get(), at, inputs);
    REQUIRE_FALSE(r.ok());
    CHECK(state->length(0) == 0);
    return r.error();
  };
  const auto ids = [](std::vector<std::int32_t> v, Shape s) { return HostTensor::of(std::span<const std::int32_t>(v), s); };
  const std::vector<float> real = {1, 2, 3};

  Error e = refused("forwards", {});
  CHECK(e.message == "Llama has no entry \"forwards\"");
  CHECK(e.help == "did you mean forward?");
  e = refused("forward", {});
  CHECK(e.message == "Llama.forward: the input input_ids is missing");
  CHECK(e.help == "it is i32[tokens]");
  e = refused("forward", {{"input_id", ids({1, 2, 3}, {3})}});
  CHECK(e.message == "Llama.forward: no input is called \"input_id\"");
  CHECK(e.help == "did you mean input_ids?");
  e = refused("forward", {{"input_ids", HostTensor::of(std::span<const float>(real), {3})}});
  CHECK(e.kind == "argument-dtype");
  CHECK(e.message == "Llama.forward: input_ids is f32, expected i32");
  e = refused("forward", {{"input_ids", ids({1, 2}, {2})}});
  CHECK(e.kind == "argument-shape");
  CHECK(e.message == "Llama.forward: input_ids has shape [2], expected [tokens] = [3]");
  e = refused("forward", {{"input_ids", ids({1, 2, 3}, {1, 3})}});
  CHECK(e.message == "Llama.forward: input_ids has shape [1, 3], expected [tokens] = [3]");
  e = refused("forward", {{"input_ids", ids({1, 2}, {3})}});
  CHECK(e.message == "Llama.forward: input_ids comes with 8 bytes; its shape [3] takes 12");
  e = refused("forward", {{"input_ids", ids({1, 64, 3}, {3})}});
  CHECK(e.kind == "argument-range");
  CHECK(e.message == "Llama.forward: input_ids holds 64 at 1, outside of 0..63");
  e = refused("forward", {{"input_ids", ids({1, 2, -1}, {3})}});
  CHECK(e.message == "Llama.forward: input_ids holds -1 at 2, outside of 0..63");
  CHECK(llama->call("forward", state.get(), at, {{"input_ids", ids({0, 63, 3}, {3})}}).ok());
}

TEST_CASE("states: none, another model's, and sizes that the model does not have") {
  const auto llama = random_llama(), other = random_llama();
  auto state = good(llama->new_state()), foreign = good(other->new_state());
  const std::vector<std::int32_t> ids = {1, 2};
  const Batch at = one_batch(*state, 2);
  auto r = llama->forward(*foreign, ids, at);
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().message == "Llama.forward: the state is another model's");
  auto none = llama->call("forward", nullptr, at, {{"input_ids", HostTensor::of(std::span<const std::int32_t>(ids), {2})}});
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().message == "Llama.forward: the model keeps a state, and none was given");

  CHECK(state->capacity() == 64);
  CHECK(state->sequences() == 1);
  CHECK(state->stores() == 2);
  CHECK(state->bytes() == 2 * 2 * 64 * 2 * 16 * 4);        // layers, keys and values, positions, heads, dim, bytes
  CHECK(good(llama->new_state({.sequences = 3, .capacity = 10}))->sequences() == 3);
  auto large = llama->new_state({.capacity = 65});
  REQUIRE_FALSE(large.ok());
  CHECK(large.error().message == "a capacity of 65 positions passes the model's context of 64");
  CHECK_FALSE(llama->new_state({.sequences = 0}).ok());
  CHECK_FALSE(llama->new_state({.capacity = -1}).ok());
}

TEST_CASE("a sequence that would pass the capacity is refused when its batch is made") {
  const auto llama = random_llama();
  auto state = good(llama->new_state({.capacity = 10}));
  const auto ids = random_tokens(8);
  static_cast<void>(good(llama->forward(*state, ids, one_batch(*state, 8))));
  const Segment more{0, 3};
  auto batch = Batch::make(*state, {&more, 1}, Outputs::last);
  REQUIRE_FALSE(batch.ok());
  CHECK(batch.error().kind == "context");
  CHECK(batch.error().message == "sequence 0 holds 8 positions; with 3 new tokens it passes the 10 that the state has room for");
}

TEST_CASE("a batch that is out of date or was bent by hand is refused") {
  const auto llama = random_llama();
  auto state = good(llama->new_state({.sequences = 2}));
  const auto ids = random_tokens(4);
  const Batch first = one_batch(*state, 4);
  static_cast<void>(good(llama->forward(*state, ids, first)));
  auto again = llama->forward(*state, ids, first);
  REQUIRE_FALSE(again.ok());
  CHECK(again.error().message == "Llama.forward: the batch goes on at position 0 of sequence 0, which holds 4");

  const Batch good_one = one_batch(*state, 4);
  const auto bent = [&](const std::function<void(Batch&)>& change) {
    Batch b = good_one;
    change(b);
    auto r = llama->forward(*state, ids, b);
    REQUIRE_FALSE(r.ok());
    CHECK(r.error().kind == "batch");
    CHECK(state->length(0) == 4);
  };
  bent([](Batch& b) { b = {}; });
  bent([](Batch& b) { b.lengths.pop_back(); });
  bent([](Batch& b) { b.lengths[1] = 99; });
  bent([](Batch& b) { b.sequence[2] = 1; });
  bent([](Batch& b) { b.positions[3] = 100; });
  bent([](Batch& b) { b.outputs = {4}; });
  bent([](Batch& b) { b.outputs = {-1}; });
  bent([](Batch& b) { b.slots = {2}; });
  bent([](Batch& b) { b.slots = {-1}; });
  bent([](Batch& b) { b.starts = {0, 3}; });
  bent([](Batch& b) { b.starts = {1, 4}; });
  bent([](Batch& b) { b.last = {2}; });
  bent([](Batch& b) {
    b.slots = {0, 0};
    b.starts = {0, 2, 4};
    b.last = {1, 3};
    b.sequence = {0, 0, 1, 1};
  });
  CHECK(llama->forward(*state, ids, good_one).ok());
}

TEST_CASE("outputs may be any rows, in any order") {
  const auto llama = random_llama();
  const auto ids = random_tokens(7);
  const auto all = logits_in_pieces(*llama, ids, {7});
  auto state = good(llama->new_state());
  Batch at = one_batch(*state, 7);
  at.outputs = {5, 0, 5};
  const auto rows = good(llama->forward(*state, ids, at));
  REQUIRE(rows.size() == 3 * 64);
  for (const auto& [row, from] : {std::pair{0, 5}, {1, 0}, {2, 5}})
    CHECK(std::equal(rows.begin() + row * 64, rows.begin() + (row + 1) * 64, all.begin() + from * 64));
  state->clear();
  at = one_batch(*state, 7);
  at.outputs = {};
  CHECK(good(llama->forward(*state, ids, at)).empty());
}

TEST_CASE("a hook that throws leaves the state as it was") {
  const auto llama = random_llama();
  const auto ids = random_tokens(5);
  auto state = good(llama->new_state());
  static_cast<void>(good(llama->forward(*state, ids, one_batch(*state, 5))));
  llama->add_layer_hook([](const LayerValue& v) {
    if (v.name == "model.layers.1.mlp") throw std::runtime_error("stop");
  });
  CHECK_THROWS_AS(static_cast<void>(llama->forward(*state, ids, one_batch(*state, 5))), std::runtime_error);
  llama->clear_hooks();
  CHECK(state->length(0) == 5);
  for (int i = 0; i < 2; ++i) CHECK(static_cast<KvCache&>(state->store(i)).held[0] == 5);
  const std::vector<float> after = [&] {
    const auto l = good(llama->forward(*state, ids, one_batch(*state, 5, Outputs::all)));
    return std::vector<float>(l.begin(), l.end());
  }();
  std::vector<std::int32_t> twice = ids;
  twice.insert(twice.end(), ids.begin(), ids.end());
  const auto whole = logits_in_pieces(*llama, twice, {10});
  CHECK(std::equal(after.begin(), after.end(), whole.begin() + 5 * 64));
}

TEST_CASE("a hook that calls its own model is refused, and the call goes on") {
  const auto llama = random_llama();
  const auto ids = random_tokens(5);
  auto state = good(llama->new_state());
  auto other = good(llama->new_state());
  const std::vector<float> alone = [&] {
    const auto l = good(llama->forward(*other, ids, one_batch(*other, 5)));
    return std::vector<float>(l.begin(), l.end());
  }();
  other->clear();
  std::string kind;
  llama->add_layer_hook([&](const LayerValue& v) {
    if (v.name != "model.layers.0.mlp") return;
    const auto inner = llama->forward(*other, ids, one_batch(*other, 5));
    if (!inner) kind = inner.error().kind;
  });
  const auto logits = good(llama->forward(*state, ids, one_batch(*state, 5)));
  CHECK(kind == "re-entry");
  CHECK(std::equal(alone.begin(), alone.end(), logits.begin()));
  CHECK(other->length(0) == 0);
}

TEST_CASE("threads with states of their own take turns") {
  const auto llama = random_llama({.cpu = {2, ""}});
  const auto ids = random_tokens(20);
  const auto expected = logits_in_pieces(*llama, ids, {20});
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {
        auto state = llama->new_state();
        const Segment s{0, 20};
        const Batch at = *Batch::make(**state, {&s, 1}, Outputs::all);
        auto r = llama->call("forward", state->get(), at, {{"input_ids", HostTensor::of(std::span<const std::int32_t>(ids), {20})}});
        if (!r) {
          ++wrong;
          continue;
        }
        const auto values = r->at("logits").as<float>();
        if (!std::equal(values.begin(), values.end(), expected.begin(), expected.end())) ++wrong;
      }
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
}

namespace {

// y = x · keep + bias, without a batch: the rows come from x.
class Plain final : public Model {
 public:
  static std::unique_ptr<Plain> make() {
    const TemporaryFolder folder;
    SafetensorsWriter writer;
    const std::vector<float> nothing(1);
    REQUIRE(writer.add_f32("unused", {1}, nothing).ok());
    REQUIRE(writer.write(folder / "model.safetensors").ok());
    auto plain = std::make_unique<Plain>();
    const auto index = good(open_checkpoint(folder.path()));
    const Status s = plain->load_weights(index, CheckpointRulesData{}, {.strict = false});
    if (!s) FAIL(s.error().text());
    return plain;
  }
  const char* type_name() const override { return "Plain"; }
  std::span<const EntryDesc> entries() const override { return entries_; }
  std::int64_t context() const override { return 0; }
  std::int64_t arena_bytes(const StepSizes&) const override { return 0; }
  void members(MemberVisitor&) override {}

 private:
  void run(int, Step& s, std::span<const Tensor> in, std::span<const Tensor> out) const override {
    constexpr MapKernel k = {"k", [](const MapArgs& a, std::int64_t begin, std::int64_t end) {
                               map_rows<3>(a, begin, end, [](float x, float keep, float bias) { return x * keep + bias; });
                             }};
    s.map(k, {in[0], in[1].as({s.tokens(), 1}), in[2]}, out[0]);
  }
  const std::vector<EntryDesc> entries_ = {{.name = "forward",
                                            .inputs = {{.name = "x", .shape = "[tokens, 2]"},
                                                       {.name = "keep", .dtype = DType::boolean, .shape = "[tokens]", .default_value = 1.0},
                                                       {.name = "bias", .shape = "[2]", .default_value = 0.5}},
                                            .outputs = {{.name = "y", .shape = "[tokens, 2]"}},
                                            .at = CallAt::none}};
};

}  // namespace

TEST_CASE("without a batch the inputs bind the axes; inputs with a default may be left out") {
  const auto plain = Plain::make();
  const auto f32 = [](std::vector<float> v, Shape s) { return HostTensor::of(std::span<const float>(v), s); };
  const auto y = [&](const std::map<std::string, HostTensor>& in) {
    const auto r = good(plain->call("forward", nullptr, in));
    const auto v = r.at("y").as<float>();
    return std::vector<float>(v.begin(), v.end());
  };
  CHECK(y({{"x", f32({1, 2, 3, 4, 5, 6}, {3, 2})}}) == std::vector<float>{1.5F, 2.5F, 3.5F, 4.5F, 5.5F, 6.5F});
  CHECK(y({{"x", f32({1, 2}, {1, 2})}, {"bias", f32({0, 1}, {2})}}) == std::vector<float>{1, 3});
  const HostTensor keep{DType::boolean, {2}, {std::byte{0}, std::byte{1}}};
  CHECK(y({{"x", f32({1, 2, 3, 4}, {2, 2})}, {"keep", keep}}) == std::vector<float>{0.5F, 0.5F, 3.5F, 4.5F});
  auto r = plain->call("forward", nullptr, {{"x", f32({1, 2, 3, 4, 5, 6}, {3, 2})}, {"keep", keep}});
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().message == "Plain.forward: keep has shape [2], expected [tokens] = [3]");
  r = plain->call("forward", nullptr, {{"x", f32({1, 2, 3}, {1, 3})}});
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().message == "Plain.forward: x has shape [1, 3], expected [tokens, 2] = [1, 2]");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)             // which take address space themselves
TEST_CASE("memory that one of several devices lacks for what a call begins with is an error, and later calls work") {
  Keeper keeper(std::int64_t{16} << 20);                   // of four bytes
  LoadOptions options;
  options.devices = {{"a", good(open_cpu({.threads = 1}))}, {"b", good(open_cpu({.threads = 1}))}};
  // A set, whose first member is not the state's: what a call keeps of it is asked for where the state is, and there alone.
  options.device =
      std::make_shared<DeviceSet>(std::vector<DeviceSet::Member>{{"a", options.devices.at("a")}, {"b", options.devices.at("b")}});
  REQUIRE(keeper.load(options).ok());
  ModuleTree(keeper).states()[0].slot->member = 1;
  auto state = good(keeper.new_state());
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  const rlimit bounded = {pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + (std::uint64_t{48} << 20), before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_AS, &bounded) == 0);
  const Status failed = keeper.call(*state);
  REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().kind == "out-of-memory");
  CHECK(contains(failed.error().text(), "on b"));
  CHECK(state->length(0) == 0);
  CHECK(keeper.call(*state).ok());
  CHECK(state->length(0) == 1);
  CHECK(keeper.call(*state).ok());                         // what it wrote is kept this time
  std::uint64_t after = 0;
  std::ifstream("/proc/self/statm") >> after;
  CHECK((after - pages) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) < std::uint64_t{96} << 20);
}
#endif

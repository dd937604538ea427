// What an entry sets for a sequence and all its tokens attend to: seen, refused, brought back and emptied, on every kind of device.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/checkpoint/safetensors/writer.h"
#include "runtime/kv_cache/kv_cache.h"
#include "runtime/modelc.h"
#include "tests/runtime/base/temporary_folder.h"

using namespace modelc;

namespace {

constexpr std::int64_t positions = 3, heads = 2, width = 4;

struct Table : Module {
  Weight weight{{.shape = {8, heads* width}, .role = WeightRole::table}};
  const char* type_name() const override { return "Table"; }
  void members(MemberVisitor& v) override { v.weight("weight", weight); }
};
struct Rows : Step::Frame {
  explicit Rows(Step& s) : Frame(s, 64 * s.tokens()) {}
  Tensor x = f32(0, {tokens(), heads, width});
};
// Each token's result is what its embedding finds in the memory; the tokens are counted in a cache of their own.
class Recall final : public Model {
 public:
  Table table;
  StateSlot cache{.kind = StateSlot::Kind::kv_cache, .sizes = {heads, width, width}};
  StateSlot memory{.kind = StateSlot::Kind::cross_cache, .sizes = {positions, heads, width}};

  bool faulty = false;                                     // its constants cannot be computed

  static Result<std::unique_ptr<Recall>> load(const std::string& path, const LoadOptions& options, bool faulty = false) {
    auto index = open_checkpoint(path);
    if (!index) return index.error();
    auto recall = std::make_unique<Recall>();
    recall->faulty = faulty;
    if (auto s = recall->load_weights(*index, CheckpointRulesData{}, options); !s) return s.error();
    return recall;
  }
  const char* type_name() const override { return "Recall"; }
  std::span<const EntryDesc> entries() const override { return entries_; }
  std::int64_t context() const override { return 16; }
  std::int64_t arena_bytes(const StepSizes& s) const override { return 64 * s.tokens() + 64; }
  void members(MemberVisitor& v) override {
    v.child("table", table);
    v.state("cache", cache);
    v.state("memory", memory);
  }
  void bind(Binder& b) override {
    if (!faulty) return;
    b.constant("late", {16}, [&](Step& s, const Tensor& out) {
      const Tensor row{out.buffer, out.offset, DType::i32, {1}}, taken{out.buffer, out.offset + 32, DType::f32, {1, heads * width}};
      s.fill(8, row);
      s.take(table.weight, row, 1.0F, taken);
      throw StepFailure{{"late", "something behind it failed", {}, {}}};
    });
  }

 private:
  void run(int entry, Step& s, std::span<const Tensor> in, std::span<const Tensor> out) const override {
    const Step::On on(s, *this);
    if (entry < 2) {
      s.cross_set(memory, in[0], in[1], s.sequences());
      if (entry == 1) throw StepFailure{{"late", "something behind it failed", {}, {}}};
      return;
    }
    const Rows rows(s);
    if (entry == 3) {                                      // a GPU finds out while it runs, or when it is waited for
      s.fill(8, out[1]);
      s.take(table.weight, out[1], 1.0F, rows.x);
      throw StepFailure{{"late", "something behind it failed", {}, {}}};
    }
    s.take(table.weight, in[0], 1.0F, rows.x);
    s.append(cache, rows.x, rows.x, s.at());
    s.attend(rows.x, memory, s.at(), {.mask = Mask::full}, out[0].as({s.tokens(), heads, width}));
  }
  static std::vector<PortDesc> heard() { return {{.name = "k", .shape = "[batch, 3, 2, 4]"}, {.name = "v", .shape = "[batch, 3, 2, 4]"}}; }
  const std::vector<EntryDesc> entries_ = {
      {.name = "hear", .inputs = heard(), .at = CallAt::sequences, .advances = false},
      {.name = "hear_and_fail", .inputs = heard(), .at = CallAt::sequences, .advances = false},
      {.name = "forward",
       .inputs = {{.name = "ids", .dtype = DType::i32, .shape = "[tokens]", .index_bound = 8}},
       .outputs = {{.name = "y", .shape = "[tokens, 8]"}}},
      {.name = "fault_and_fail",
       .inputs = {{.name = "ids", .dtype = DType::i32, .shape = "[tokens]", .index_bound = 8}},
       .outputs = {{.name = "y", .shape = "[tokens, 8]"}, {.name = "rows", .dtype = DType::i32, .shape = "[tokens]"}}}};
};

std::vector<float> ramp(std::size_t n, int seed) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<float>((static_cast<int>(i) * 7 + seed * 5) % 13) / 6 - 1;
  return v;
}
std::vector<float> table() { return ramp(64, 1); }

// Keys and values of one sequence.
struct Heard {
  std::vector<float> k, v;
  explicit Heard(int seed) : k(ramp(positions * heads * width, seed)), v(ramp(positions * heads * width, seed + 3)) {}
};

std::vector<double> expected(const Heard& memory, const std::vector<std::int32_t>& ids) {
  const std::vector<float> rows = table();
  std::vector<double> out;
  for (const std::int32_t id : ids)
    for (std::int64_t h = 0; h < heads; ++h) {
      double sum = 0, y[width] = {};
      for (std::int64_t p = 0; p < positions; ++p) {
        double dot = 0;
        const auto at = static_cast<std::size_t>((p * heads + h) * width);
        for (std::size_t i = 0; i < width; ++i)
          dot += double{rows[static_cast<std::size_t>((id * heads + h) * width) + i]} * memory.k[at + i];
        sum += std::exp(dot);
        for (std::size_t i = 0; i < width; ++i) y[i] += std::exp(dot) * memory.v[at + i];
      }
      for (const double x : y) out.push_back(x / sum);
    }
  return out;
}

Status hear(Model& model, State& state, const std::vector<int>& sequences, const std::vector<Heard>& what, const char* entry = "hear") {
  std::vector<float> k, v;
  for (const Heard& h : what) k.insert(k.end(), h.k.begin(), h.k.end()), v.insert(v.end(), h.v.begin(), h.v.end());
  const Shape shape{static_cast<std::int64_t>(what.size()), positions, heads, width};
  const auto at = Sequences::make(state, sequences);
  REQUIRE(at.ok());
  auto r = model.call(entry, &state, *at,
                      {{"k", HostTensor::of(std::span<const float>(k), shape)}, {"v", HostTensor::of(std::span<const float>(v), shape)}});
  return r ? Status{} : Status(r.error());
}

struct Part {
  int sequence;
  std::vector<std::int32_t> ids;
};
Result<std::vector<float>> feed(Model& model, State& state, const std::vector<Part>& parts, const char* entry = "forward") {
  std::vector<Segment> segments;
  std::vector<std::int32_t> ids;
  for (const Part& p : parts) {
    segments.push_back({p.sequence, static_cast<std::int64_t>(p.ids.size())});
    ids.insert(ids.end(), p.ids.begin(), p.ids.end());
  }
  const auto at = Batch::make(state, segments, Outputs::all);
  REQUIRE(at.ok());
  auto r = model.call(entry, &state, *at,
                      {{"ids", HostTensor::of(std::span<const std::int32_t>(ids), {static_cast<std::int64_t>(ids.size())})}});
  if (!r) return r.error();
  const auto values = r->at("y").as<float>();
  return std::vector<float>(values.begin(), values.end());
}
void check_feed(Model& model, State& state, const std::vector<Part>& parts, const std::vector<const Heard*>& of) {
  auto got = feed(model, state, parts);
  if (!got) FAIL(got.error().text());
  std::vector<double> want;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto one = expected(*of[i], parts[i].ids);
    want.insert(want.end(), one.begin(), one.end());
  }
  REQUIRE(got->size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) CHECK(std::abs((*got)[i] - want[i]) < 1e-6);
}

void write_table(const test::TemporaryFolder& folder) {
  SafetensorsWriter writer;
  REQUIRE(writer.add_f32("table.weight", {8, heads * width}, table()).ok());
  REQUIRE(writer.write(folder / "model.safetensors").ok());
}

// On the CPU, on Vulkan, and with the weights on another device than the states.
void on_every_placement(const std::function<void(Recall&)>& check) {
  const test::TemporaryFolder folder;
  write_table(folder);
  const auto cpu = [] { return std::shared_ptr<Device>(std::move(*open_cpu({.threads = 1}))); };
  std::vector<LoadOptions> all(2);
  all[1].place = {{"table", {}, {}, "b", {}}, {"**", {}, {}, "a", {}}};
  all[1].devices = {{"a", cpu()}, {"b", cpu()}};
  if (auto vulkan = open_vulkan({})) {
    const std::shared_ptr<Device> device = std::move(*vulkan);
    all.resize(4);
    all[2].device = device;
    all[3].place = all[1].place;
    all[3].devices = {{"a", device}, {"b", cpu()}};
  } else {
    MESSAGE("SKIPPED on Vulkan: " << vulkan.error().message);
  }
  for (const LoadOptions& options : all) {
    auto model = Recall::load(folder.path(), options);
    if (!model) FAIL(model.error().text());
    const std::string description = (*model)->device().description();
    CAPTURE(description);
    check(**model);
  }
}

}  // namespace

TEST_CASE("every token of a sequence sees all that was set for it, and no other's") {
  on_every_placement([](Recall& model) {
    auto state = *model.new_state({.sequences = 3});
    const Heard a(1), b(2);
    REQUIRE(hear(model, *state, {2, 0}, {a, b}).ok());
    CHECK(state->length(2) == 0);
    check_feed(model, *state, {{0, {1, 2}}, {2, {3}}}, {&b, &a});
    check_feed(model, *state, {{2, {4, 5, 6, 7, 1}}, {0, {0}}}, {&a, &b});          // more tokens than positions
  });
}

TEST_CASE("a sequence for which nothing was set is refused by the state's name, and the call leaves no trace") {
  on_every_placement([](Recall& model) {
    auto state = *model.new_state({.sequences = 2});
    const Heard a(1);
    const auto refused = [&](const std::vector<Part>& parts, const std::string& which) {
      const auto r = feed(model, *state, parts);
      REQUIRE_FALSE(r.ok());
      CHECK(r.error().kind == "state");
      CHECK(r.error().message == "nothing has been set in the state memory for sequence " + which);
      CHECK(r.error().help.rfind("call hear (k: f32[batch, 3, 2, 4], v: f32[batch, 3, 2, 4]) and hear_and_fail", 0) == 0);
    };
    refused({{0, {1}}}, "0");
    REQUIRE(hear(model, *state, {0}, {a}).ok());
    refused({{0, {1}}, {1, {2, 3}}}, "1");                 // one of several
    CHECK(state->length(0) == 0);
    CHECK(static_cast<KvCache&>(state->store(0)).held == std::vector<std::int64_t>{0, 0});
    check_feed(model, *state, {{0, {1, 2, 3}}}, {&a});
    // A decoder that begins anew on the same recording; then one without.
    CHECK(state->truncate(0, 1) == 1);
    check_feed(model, *state, {{0, {5}}}, {&a});
    CHECK(state->truncate(0, 0) == 0);
    refused({{0, {1}}}, "0");
    REQUIRE(hear(model, *state, {0}, {a}).ok());
    CHECK(state->truncate(0, 0) == 0);                     // before its first token
    refused({{0, {1}}}, "0");
    REQUIRE(hear(model, *state, {0, 1}, {a, a}).ok());
    state->clear(0);
    refused({{1, {4}}, {0, {1}}}, "0");
    check_feed(model, *state, {{1, {4}}}, {&a});
  });
}

TEST_CASE("what was set is set again before the first token alone, and a call that fails brings it back") {
  on_every_placement([](Recall& model) {
    auto state = *model.new_state({.sequences = 3});
    const Heard a(1), b(2), c(9);
    const std::int64_t bytes = state->bytes();
    Status failed = hear(model, *state, {1}, {a}, "hear_and_fail");
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.error().kind == "late");
    CHECK_FALSE(feed(model, *state, {{1, {1}}}).ok());
    REQUIRE(hear(model, *state, {0, 1}, {a, b}).ok());
    CHECK_FALSE(hear(model, *state, {2, 1}, {c, c}, "hear_and_fail").ok());
    CHECK_FALSE(feed(model, *state, {{2, {1}}}).ok());
    check_feed(model, *state, {{0, {6}}}, {&a});
    REQUIRE(hear(model, *state, {1}, {c}).ok());
    REQUIRE(hear(model, *state, {1}, {b}).ok());
    CHECK_FALSE(hear(model, *state, {1}, {a}, "hear_and_fail").ok());
    check_feed(model, *state, {{1, {2, 3}}}, {&b});
    CHECK(state->bytes() == bytes);                        // copies stay no longer than their call
    const Status late = hear(model, *state, {2, 1}, {c, c});
    REQUIRE_FALSE(late.ok());
    CHECK(late.error().message == "sequence 1 has 2 tokens already, and the state memory is set before the first");
    CHECK_FALSE(feed(model, *state, {{2, {1}}}).ok());
    check_feed(model, *state, {{1, {7}}}, {&b});
  });
}

TEST_CASE("what a device keeps of a call that ended early is not said by the next one, and does not keep it from what it does") {
  on_every_placement([](Recall& model) {
    auto state = *model.new_state({.sequences = 2});
    const Heard a(1), b(2);
    REQUIRE(hear(model, *state, {0, 1}, {a, b}).ok());
    for (int i = 0; i < 2; ++i) {
      const auto r = feed(model, *state, {{0, {1, 2}}}, "fault_and_fail");
      REQUIRE_FALSE(r.ok());
      CHECK((r.error().kind == "late" || r.error().kind == "index-range"));
      CHECK(r.error().notes.empty());
    }
    check_feed(model, *state, {{0, {1, 2}}, {1, {3}}}, {&a, &b});
    // Such a call, and one of a hook's own errors.
    CHECK_FALSE(feed(model, *state, {{0, {1, 2}}}, "fault_and_fail").ok());
    REQUIRE_FALSE(hear(model, *state, {0}, {b}).ok());     // it has tokens
    state->clear(0);
    REQUIRE(hear(model, *state, {0}, {b}).ok());
    check_feed(model, *state, {{0, {1, 2}}, {1, {3}}}, {&b, &b});
  });
}

TEST_CASE("a load that failed leaves a device that others use as it was") {
  const test::TemporaryFolder folder;
  write_table(folder);
  LoadOptions options;
  if (auto vulkan = open_vulkan({})) options.device = std::move(*vulkan);
  else options.device = std::move(*open_cpu({}));
  auto model = Recall::load(folder.path(), options);
  REQUIRE(model.ok());
  CHECK_FALSE(Recall::load(folder.path(), options, true).ok());
  auto state = *(*model)->new_state({.sequences = 1});
  const Heard a(1);
  const Status heard = hear(**model, *state, {0}, {a});
  if (!heard) FAIL(heard.error().text());
  check_feed(**model, *state, {{0, {1, 2}}}, {&a});
}

TEST_CASE("a call whose results cannot be read leaves the state as it was") {
  const test::TemporaryFolder folder;
  write_table(folder);
  int failed = 0;
  for (std::int64_t k = 1; k < 100; ++k) {
    auto vulkan = open_vulkan({.fail_submit = k});
    if (!vulkan) {
      MESSAGE("SKIPPED: " << vulkan.error().message);
      return;
    }
    LoadOptions options;
    options.device = std::move(*vulkan);
    auto model = Recall::load(folder.path(), options);
    if (!model) continue;
    auto state = (*model)->new_state({.sequences = 1});
    if (!state || !hear(**model, **state, {0}, {Heard(1)})) continue;
    const auto r = feed(**model, **state, {{0, {1, 2}}});
    CHECK((*state)->length(0) == (r.ok() ? 2 : 0));
    if (r) break;
    CHECK(r.error().kind == "device-lost");
    ++failed;
  }
  CHECK(failed >= 2);                                      // the step, and the transfer of its result
}

TEST_CASE("states come and go in one thread while another calls the model") {
  on_every_placement([](Recall& model) {
    auto state = *model.new_state({.sequences = 1});
    const Heard a(1), b(2);
    REQUIRE(hear(model, *state, {0}, {a}).ok());
    std::atomic<bool> done = false, failed = false;
    std::thread other([&] {
      while (!done) {
        auto one = model.new_state({.sequences = 2});
        if (!one || (*one)->truncate(1, 0) != 0) failed = true;
      }
    });
    for (int i = 0; i < 300; ++i) {
      const auto r = feed(model, *state, {{0, {1, 2}}});
      if (!r) FAIL_CHECK(r.error().text());
      state->truncate(0, 1);
      state->truncate(0, 0);
      CHECK(hear(model, *state, {0}, {a}).ok());
    }
    done = true;
    other.join();
    CHECK_FALSE(failed);
    check_feed(model, *state, {{0, {1, 2}}}, {&a});
  });
}

// Models on several devices: which module is where, what goes between devices, and modules that are moved.
#include "runtime/device/placement.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "runtime/checkpoint/place_lines.h"
#include "runtime/device/device_set.h"
#include "runtime/device/meter.h"
#include "tests/runtime/device/llama_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

std::shared_ptr<Device> cpu() { return good(open_cpu({.threads = 1})); }

// A Llama of random weights in a folder of its own: modules that are moved are loaded from it again.
struct Split {
  TemporaryFolder folder;
  LoadOptions options;
  explicit Split(std::vector<PlaceRule> rules = {}) {
    write_checkpoint(folder, random_weights());
    options.place = std::move(rules);
    options.devices = {{"a", cpu()}, {"b", cpu()}, {"c", cpu()}};
  }
  std::unique_ptr<handwritten::Llama> load() const { return load_llama(folder.path(), options); }
};

std::vector<float> run(handwritten::Llama& llama) {
  const auto ids = random_tokens(12);
  return logits_in_pieces(llama, ids, {7, 1, 1, 3});
}

Placement decided(Module& root, const std::vector<PlaceRule>& rules) {
  const ModuleTree tree(root);
  return good(decide_placement(tree, rules, "rest"));
}
std::string device_of(Module& root, const Placement& p, const std::string& module) {
  const ModuleTree tree(root);
  for (std::size_t i = 0; i < tree.bottom_up().size(); ++i)
    if (tree.bottom_up()[i]->qualified_name() == module) return p.devices[static_cast<std::size_t>(p.modules[i])];
  FAIL("no module " << module);
  return "";
}
std::string error_of(Module& root, const std::vector<PlaceRule>& rules) {
  const ModuleTree tree(root);
  const auto p = decide_placement(tree, rules, "rest");
  REQUIRE_FALSE(p.ok());
  CHECK(p.error().kind == "placement");
  return p.error().text();
}

// Transfers that a set says it made.
std::uint64_t transfers(Model& model) {
  const std::string said = model.device().operations();
  const std::size_t end = said.find(" transfer"), begin = said.rfind(' ', end - 1) + 1;
  REQUIRE(end != std::string::npos);
  std::string digits;
  for (const char c : said.substr(begin, end - begin))
    if (c != ',') digits += c;
  return std::stoull(digits);
}

}  // namespace

TEST_CASE("where bytes are right: what is missing, brought and written") {
  Whereabouts w(100);
  CHECK(w.missing(0, 100, 1).empty());                     // nobody wrote any
  CHECK(w.holder(0, 100, 2) == 2);
  w.wrote(10, 40, 0);
  w.wrote(40, 60, 2);
  CHECK(w.missing(0, 100, 0) == std::vector<Whereabouts::Move>{{40, 60, 2}});
  CHECK(w.missing(20, 50, 1) == std::vector<Whereabouts::Move>{{20, 40, 0}, {40, 50, 2}});
  CHECK(w.holder(10, 40, 1) == 0);
  CHECK(w.holder(10, 60, 1) == -1);
  w.brought(20, 50, 1);
  CHECK(w.missing(20, 50, 1).empty());
  CHECK(w.missing(10, 60, 1) == std::vector<Whereabouts::Move>{{10, 20, 0}, {50, 60, 2}});
  CHECK(w.missing(10, 60, 0) == std::vector<Whereabouts::Move>{{40, 50, 1}, {50, 60, 2}});
  CHECK(w.holder(20, 40, 1) == 1);
  w.wrote(0, 100, 3);
  CHECK(w.missing(0, 100, 1) == std::vector<Whereabouts::Move>{{0, 100, 3}});
  w.wrote(99, 100, 0);
  CHECK(w.missing(0, 100, 1) == std::vector<Whereabouts::Move>{{0, 99, 3}, {99, 100, 0}});
  CHECK(w.missing(50, 50, 1).empty());
}

TEST_CASE("where bytes are right, against a plain table of bytes") {
  std::mt19937 random(3);
  Whereabouts w(64);
  std::array<std::set<int>, 64> table;
  for (int round = 0; round < 4000; ++round) {
    const auto begin = static_cast<std::int64_t>(random() % 65),
               end = begin + static_cast<std::int64_t>(random() % (65 - static_cast<unsigned>(begin)));
    const int member = static_cast<int>(random() % 4);
    if (random() % 2 == 0) {
      w.wrote(begin, end, member);
      for (auto i = begin; i < end; ++i) table[static_cast<std::size_t>(i)] = {member};
      continue;
    }
    std::set<std::int64_t> moved;
    for (const Whereabouts::Move& m : w.missing(begin, end, member))
      for (auto i = m.begin; i < m.end; ++i) {
        REQUIRE(table[static_cast<std::size_t>(i)].contains(m.from));
        moved.insert(i);
      }
    for (auto i = begin; i < end; ++i) {
      auto& at = table[static_cast<std::size_t>(i)];
      REQUIRE(moved.contains(i) == (!at.empty() && !at.contains(member)));
      if (!at.empty()) at.insert(member);
    }
    for (const Whereabouts::Move& m : w.missing(begin, end, member)) w.brought(m.begin, m.end, member);
  }
}

TEST_CASE("lines decide: the first that matches, ranges of lists, weights of their own") {
  handwritten::Llama llama;
  const auto p = decided(llama, {{"model.layers", 1, {}, "b"}, {"model.layers", {}, {}, "c"}, {"model", {}, {}, "a"}});
  CHECK(device_of(llama, p, "model.layers.1.self_attn.q_proj") == "b");
  CHECK(device_of(llama, p, "model.layers.0.mlp") == "c");
  CHECK(device_of(llama, p, "model.norm") == "a");
  CHECK(device_of(llama, p, "model") == "a");
  CHECK(device_of(llama, p, "lm_head") == "rest");
  CHECK(device_of(llama, p, "") == "rest");
  const auto all = decided(llama, {{"**", {}, {}, "a"}});
  CHECK(all.devices == std::vector<std::string>{"a"});
  CHECK(device_of(llama, all, "") == "a");
  const auto by_weight = decided(llama, {{"**.embed_tokens.weight", {}, {}, "b"}, {"**", {}, {}, "a"}});
  CHECK(device_of(llama, by_weight, "model.embed_tokens") == "b");
  CHECK(device_of(llama, by_weight, "model") == "a");
}

TEST_CASE("a device has one name, however it is called") {
  handwritten::Llama llama;
  const auto p = decided(llama, {{"model.norm", {}, {}, "vulkan"}, {"model", {}, {}, "vulkan:0"}, {"**", {}, {}, "vulkan"}});
  CHECK(p.devices == std::vector<std::string>{"vulkan:0"});
  // A device that is given counts by all of them, too, in a load and in a move.
  Split split({{"model.norm", {}, {}, "vulkan"}, {"**", {}, {}, "a"}});
  split.options.devices.emplace("vulkan:0", cpu());
  const auto loaded = split.load();
  REQUIRE(loaded->lm_head.to("vulkan").ok());
  CHECK(loaded->lm_head.member() == loaded->model.norm.member());
}

TEST_CASE("lines that are wrong") {
  handwritten::Llama llama;
  CHECK(contains(error_of(llama, {{"model.layerz", {}, {}, "a"}}), "did you mean model.layers?"));
  CHECK(contains(error_of(llama, {{"model.layers", 2, 9, "a"}}), "model.layers[2..9]"));
  CHECK(contains(error_of(llama, {{"model.layers", 1, 3, "a"}}), "ends at 3, and there are 2 elements"));
  CHECK(decided(llama, {{"model.layers", 1, 2, "a"}}).devices.size() == 2);
  // What the compiler wrote may name what another configuration has.
  const ModuleTree tree(llama);
  CHECK(decide_placement(tree, std::vector<PlaceRule>{{"model.vision", {}, {}, "a", "x.model:3:4"}}).ok());
  // One that others come before says no wrong.
  CHECK(decide_placement(tree, std::vector<PlaceRule>{{"**", {}, {}, "a"}, {"model.norm", {}, {}, "b"}}).ok());
}

TEST_CASE("on several devices: the same bits, and values cross where the layers do") {
  const Split whole;
  const auto one = whole.load();
  const std::vector<float> expected = run(*one);
  const Split split({{"model.layers", {}, 1, "a"}, {"model.layers", 1, {}, "b"}, {"lm_head", {}, {}, "c"}, {"**", {}, {}, "a"}});
  const auto llama = split.load();
  CHECK(run(*llama) == expected);
  CHECK(contains(llama->device().description(), "a (CPU"));
  // A hook sees the same values, wherever they are.
  const auto seen = [&](handwritten::Llama& m) {
    std::vector<float> all;
    const int hook = m.add_layer_hook([&](const LayerValue& v) { all.insert(all.end(), v.data.begin(), v.data.end()); });
    run(m);
    m.remove_layer_hook(hook);
    return all;
  };
  CHECK(seen(*llama) == seen(*one));
  // Untraced: h to b, h to a for the last norm, and the rows of the head to c; the batch's fields and what is computed once a step
  // on a are brought to b too.
  auto state = good(llama->new_state());
  const Segment one_token{0, 1};
  const auto decode = [&] {
    const Batch batch = good(Batch::make(*state, {&one_token, 1}, Outputs::last));
    good(llama->forward(*state, std::vector<std::int32_t>{5}, batch));
  };
  decode();
  const auto before = transfers(*llama);
  decode();
  CHECK(transfers(*llama) - before == 5);                  // h, cos, sin; h back; the rows
}

TEST_CASE("every module on a device that alternates gives the same bits") {
  const Split whole;
  const std::vector<float> expected = run(*whole.load());
  handwritten::Llama names;
  std::vector<PlaceRule> rules;
  for (const NamedModule& m : names.descendants()) {
    const std::string& n = m.name;
    if (n.find("self_attn.") != std::string::npos || n.find("mlp.") != std::string::npos) continue;      // joined in products
    rules.push_back({n, {}, {}, rules.size() % 3 == 0 ? "a" : rules.size() % 3 == 1 ? "b" : "c"});
  }
  std::reverse(rules.begin(), rules.end());                // those below come first
  const Split split(rules);
  CHECK(run(*split.load()) == expected);
}

TEST_CASE("a product over two devices is refused by name") {
  Split split({{"model.layers.1.self_attn.q_proj", {}, {}, "b"}, {"**", {}, {}, "a"}});
  const auto llama = handwritten::Llama::load(split.folder.path(), split.options);
  REQUIRE_FALSE(llama.ok());
  CHECK(llama.error().kind == "placement");
  CHECK(contains(llama.error().text(), "model.layers.1.self_attn computes one product with weights on several devices"));
  CHECK(contains(llama.error().text(), "q_proj.weight: on CPU"));
}

TEST_CASE("to(): one device becomes two, a layer goes on, all come back") {
  const Split split({{"**", {}, {}, "a"}});
  const auto llama = split.load();
  const std::vector<float> expected = run(*llama);
  auto state = good(llama->new_state());

  REQUIRE(llama->model.layers[1].to("b").ok());
  CHECK(llama->model.layers[1].member() != llama->model.member());
  CHECK(llama->model.layers[1].self_attn.member() == llama->model.layers[1].member());
  CHECK(contains(llama->device().description(), "b (CPU"));
  CHECK(run(*llama) == expected);
  // A state made before lies on the device that was.
  const Segment one_token{0, 1};
  const Batch batch = good(Batch::make(*state, {&one_token, 1}, Outputs::last));
  const auto refused = llama->forward(*state, std::vector<std::int32_t>{5}, batch);
  REQUIRE_FALSE(refused.ok());
  CHECK(contains(refused.error().text(), "before the model's modules went to other devices"));

  REQUIRE(llama->model.to("c").ok());                      // with the layer that went before
  CHECK(llama->model.layers[1].member() == llama->model.member());
  CHECK(llama->lm_head.member() != llama->model.member());
  CHECK(run(*llama) == expected);
  REQUIRE(llama->model.layers[0].self_attn.to("a").ok());
  CHECK(run(*llama) == expected);
  REQUIRE(llama->to("b").ok());
  CHECK(llama->lm_head.member() == llama->model.layers[0].self_attn.member());
  CHECK(run(*llama) == expected);
  REQUIRE(llama->to("b").ok());                            // where it is
  CHECK(run(*llama) == expected);
}

TEST_CASE("to(): what stays keeps its memory") {
  const Split split({{"**", {}, {}, "a"}});
  const auto llama = split.load();
  const auto* host = llama->model.embed_tokens.weight.matrix.blocks[0].data.host<std::byte>();
  REQUIRE(host != nullptr);
  REQUIRE(llama->lm_head.to("b").ok());
  std::vector<std::byte> row(static_cast<std::size_t>(llama->model.embed_tokens.weight.matrix.blocks[0].data.size()));
  REQUIRE(llama->device().read(llama->model.embed_tokens.weight.matrix.blocks[0].data, row).ok());
  CHECK(std::memcmp(row.data(), host, row.size()) == 0);   // the file is mapped where it was
}

TEST_CASE("to(): what was left is given back, however often modules move") {
  const Split split({{"**", {}, {}, "a"}});
  const auto llama = split.load();
  const std::vector<float> expected = run(*llama);
  const auto mappings = [&] {                              // of the checkpoint, in this process
    std::ifstream maps("/proc/self/maps");
    int n = 0;
    for (std::string line; std::getline(maps, line);) n += contains(line, split.folder.path()) ? 1 : 0;
    return n;
  };
  CHECK(mappings() == 1);
  for (int i = 0; i < 20; ++i) REQUIRE(llama->model.layers[1].to(i % 2 == 0 ? "b" : "c").ok());
  CHECK(run(*llama) == expected);
  CHECK(mappings() == 2);                                  // what never moved, and the layer
  REQUIRE(llama->to("a").ok());
  CHECK(run(*llama) == expected);
  CHECK(mappings() <= 2);
}

TEST_CASE("to(): a file that shrinks is noticed, by what stayed as by what moved") {
  for (const bool stays : {true, false}) {
    const Split split({{"**", {}, {}, "a"}});
    const auto llama = split.load();
    // Either way what lies in the file is on a CPU, which reads it where it is mapped.
    if (stays) REQUIRE(llama->model.norm.to("b").ok());
    else REQUIRE(llama->to("b").ok());
    run(*llama);
    auto state = good(llama->new_state());
    std::filesystem::resize_file(split.folder / "model.safetensors", 1000);
    const Segment one_token{0, 1};
    const Batch batch = good(Batch::make(*state, {&one_token, 1}, Outputs::last));
    const auto logits = llama->forward(*state, std::vector<std::int32_t>{5}, batch);
    REQUIRE_FALSE(logits.ok());
    CHECK(contains(logits.error().text(), "model.safetensors"));
  }
}

TEST_CASE("to(): a move that fails leaves all where it was") {
  const Split split({{"**", {}, {}, "a"}});
  const auto llama = split.load();
  const std::vector<float> expected = run(*llama);
  auto state = good(llama->new_state());
  const auto unknown = llama->model.layers[0].to("tpu");
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().kind == "device-name");
  for (const char* device : {"b", "c"}) {                  // fails when products are bound; from one device, then from a set
    const auto torn = llama->model.layers[1].self_attn.q_proj.to(device);
    REQUIRE_FALSE(torn.ok());
    CHECK(torn.error().kind == "placement");
    CHECK(contains(torn.error().text(), "model.layers.1.self_attn.q_proj stays where it was"));
    CHECK(llama->model.layers[1].self_attn.q_proj.member() == llama->model.layers[1].self_attn.k_proj.member());
    if (device[0] == 'b') {                                // the state is as good as before
      const Segment one_token{0, 1};
      const Batch batch = good(Batch::make(*state, {&one_token, 1}, Outputs::last));
      CHECK(llama->forward(*state, std::vector<std::int32_t>{5}, batch).ok());
    }
    CHECK(run(*llama) == expected);
    REQUIRE(llama->lm_head.to("b").ok());
    CHECK(run(*llama) == expected);
  }
  // The checkpoint is gone: nothing can be loaded again.
  std::filesystem::remove(split.folder / "model.safetensors");
  const auto gone = llama->model.norm.to("c");
  REQUIRE_FALSE(gone.ok());
  CHECK(run(*llama) == expected);
  handwritten::Llama raw;
  CHECK_FALSE(raw.to("a").ok());                           // before it is loaded
}

TEST_CASE("a device that was given, and weights that were given, move too") {
  Split split;
  split.options.device = cpu();
  split.options.weights.emplace("model.norm.weight", good(WeightValue::of(std::vector<float>(32, 0.5F), TensorShape{32})));
  const auto llama = split.load();
  const std::vector<float> expected = run(*llama);
  REQUIRE(llama->model.norm.to("b").ok());
  CHECK(run(*llama) == expected);
  REQUIRE(llama->to("c").ok());
  CHECK(run(*llama) == expected);
}

TEST_CASE("a split model is measured operation by operation, and is not moved then") {
  Split split({{"model.layers", 1, {}, "b"}, {"**", {}, {}, "a"}});
  std::shared_ptr<MeterDevice> meter;
  split.options.around = [&](std::shared_ptr<Device> d) { return meter = std::make_shared<MeterDevice>(std::move(d)); };
  const auto llama = split.load();
  auto state = good(llama->new_state());
  meter->know(*llama, *state);
  meter->start();
  const Segment one_token{0, 1};
  const Batch batch = good(Batch::make(*state, {&one_token, 1}, Outputs::last));
  REQUIRE(llama->forward(*state, std::vector<std::int32_t>{5}, batch).ok());
  std::set<std::string> modules;
  for (const Operation& o : meter->take()) modules.insert(o.module);
  CHECK(modules.contains("model.layers.0.self_attn"));
  CHECK(modules.contains("model.layers.1.self_attn"));
  CHECK_FALSE(llama->model.norm.to("a").ok());
}

TEST_CASE("packs are of one device") {
  Split split({{"model.layers", 1, {}, "b"}, {"**", {}, {}, "a"}});
  split.options.pack = PackUse::write;
  const auto llama = handwritten::Llama::load(split.folder.path(), split.options);
  REQUIRE_FALSE(llama.ok());
  CHECK(llama.error().kind == "pack-split");
}

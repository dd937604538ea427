// A checkpoint as an object, and the ways to load a class with other weights than its files': maps, casts, adapters.
#include <cstring>

#include "runtime/device/weights.h"
#include "runtime/encoding/convert.h"
#include "tests/runtime/device/llama_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

WeightMap map_of(const std::vector<NamedValues>& weights) {
  WeightMap map;
  for (const NamedValues& w : weights) map.emplace(w.name, good(WeightValue::of(w.values, w.shape)));
  return map;
}

std::vector<std::string> names_of(const Weights& w) {
  std::vector<std::string> names;
  for (const auto& [name, item] : w.items()) names.push_back(name);
  return names;
}

std::unique_ptr<handwritten::Llama> load_index(const CheckpointIndex& index, const LoadOptions& options = {}) {
  auto llama = handwritten::Llama::load(index, options);
  if (!llama) FAIL(llama.error().text());
  return std::move(*llama);
}

}  // namespace

TEST_CASE("names are walked by component and index; items() stay below by whole components, with relative names") {
  const std::vector<float> v = {1, 2};
  WeightMap map;
  for (const char* name : {"model.layers.1.a", "model.layers.1.b.c", "model.layers.10.a", "model.layers.1x.a", "model.layers.1", "head"})
    map.emplace(name, good(WeightValue::of(v, {2})));
  const Weights w = good(Weights::of(map));
  const Weights layer = w["model"]["layers"][1];
  CHECK(layer.name() == "model.layers.1");
  CHECK(layer.exists());
  CHECK(names_of(layer) == std::vector<std::string>{"a", "b.c"});
  CHECK(names_of(w).size() == 6);
  CHECK(w["model.layers"][10]["a"].exists());
  CHECK_FALSE(w["model"].exists());
  CHECK_FALSE(w["model"]["layers"][-1].exists());
  CHECK(w["nothing"].items().empty());
  CHECK(layer.items()[1].second.name() == "model.layers.1.b.c");
  CHECK(good(good(layer["b"]["c"].data()).f32()) == v);
  // A name that is no tensor: the nearest one, or what lies below.
  CHECK(contains(w["model"]["layers"][1]["a "].data().error().text(), "it holds \"model.layers.1.a\""));
  const Error module = w["model"]["layers"].data().error();
  CHECK(module.kind == "missing-tensor");
  CHECK(contains(module.help, "items()"));
}

TEST_CASE("data(), astype() and allocate() from a file, from several, from memory") {
  const TemporaryFolder folder;
  write_checkpoint(folder, random_weights());
  const Weights w = good(Weights::open(folder.path()));
  const Weights q = w["model"]["layers"][0]["self_attn"]["q_proj"]["weight"];
  const WeightValue value = good(q.data());
  CHECK(value.shape() == TensorShape{64, 32});
  CHECK(value.file()->mapped());
  const WeightValue narrow = good(value.astype(DType::bf16));
  CHECK(narrow.encoding() == Encoding::bf16);
  const std::vector<float> wide = good(value.f32()), back = good(narrow.f32());
  for (std::size_t i = 0; i < wide.size(); ++i) CHECK(back[i] == f32_from_bf16(bf16_from_f32(wide[i])));
  CHECK(value.astype(DType::i32).error().kind == "encoding");

  CHECK(w.allocated_weights().empty());
  CHECK(q.allocate({.dtype = DType::bf16}).error().kind == "dtype");
  CHECK(q.allocate({.shape = TensorShape{32, 64}}).error().kind == "shape");
  CHECK(q.allocate({.encoding = Encoding::q4_k}).error().kind == "encoding");
  CHECK(w.allocated_weights().empty());
  const std::shared_ptr<Device> device = std::move(*open_cpu({}));
  const AllocatedWeight placed = good(q.allocate({.dtype = DType::f32, .shape = TensorShape{64, 32}, .device = device}));
  CHECK(placed.tensor.shape == Shape{64, 32});
  CHECK(std::memcmp(placed.tensor.host<float>(), wide.data(), 4 * wide.size()) == 0);
  REQUIRE(w.allocated_weights().size() == 1);
  CHECK(w.allocated_weights().begin()->first == "model.layers.0.self_attn.q_proj.weight");
  CHECK_FALSE(good(w["lm_head"]["weight"].allocate()).tensor);

  // The same tensors in two files.
  const TemporaryFolder two;
  const auto weights = random_weights();
  SafetensorsWriter first, second;
  for (std::size_t i = 0; i < weights.size(); ++i)
    REQUIRE((i % 2 ? first : second).add_f32(weights[i].name, weights[i].shape, weights[i].values).ok());
  REQUIRE(first.write(two / "x.safetensors").ok());
  REQUIRE(second.write(two / "y.safetensors").ok());
  const Weights both = good(Weights::open(std::vector<std::string>{two / "x.safetensors", two / "y.safetensors"}));
  CHECK(good(good(both[q.name()].data()).f32()) == wide);
  const auto ids = random_tokens(5);
  const auto expected = logits_in_pieces(*load_llama(folder.path()), ids, {5});
  CHECK(logits_in_pieces(*load_index(both.index()), ids, {5}) == expected);
  const Weights memory = good(Weights::of(map_of(weights)));
  CHECK(logits_in_pieces(*load_index(memory.index()), ids, {5}) == expected);
}

TEST_CASE("elements at an odd address become a tensor of whole elements") {
  const std::vector<std::byte> bytes(9);
  const auto file = std::make_shared<const MappedFile>(good(MappedFile::of(bytes, "odd")));
  WeightMap map;
  map.emplace("x", good(WeightValue::in(file, 1, Encoding::f32, {2})));
  const AllocatedWeight x = good(good(Weights::of(map))["x"].allocate({.device = std::shared_ptr<Device>(std::move(*open_cpu({})))}));
  CHECK(reinterpret_cast<std::uintptr_t>(x.tensor.host<float>()) % 4 == 0);
  CHECK_FALSE(WeightValue::in(file, 2, Encoding::f32, {2}).ok());
  CHECK(WeightValue::of(std::vector<float>{1}, {2}).error().kind == "shape");
}

TEST_CASE("single weights are replaced at load, by the model's names") {
  const TemporaryFolder folder;
  auto weights = random_weights();
  write_checkpoint(folder, weights);
  const auto ids = random_tokens(4);
  const auto before = logits_in_pieces(*load_llama(folder.path()), ids, {4});
  NamedValues& norm = weight_called(weights, "model.norm.weight");
  for (float& v : norm.values) v *= 2;
  LoadOptions options;
  options.weights.emplace(norm.name, good(WeightValue::of(norm.values, norm.shape)));
  const auto changed = load_llama(folder.path(), options);
  CHECK(changed->model.norm.weight.source == "given by the caller");
  REQUIRE(changed->load_report().notes.size() == 1);
  CHECK(changed->load_report().notes[0] == "given by the caller: model.norm.weight");
  const auto after = logits_in_pieces(*changed, ids, {4});
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(after[i] == doctest::Approx(2 * before[i]).epsilon(1e-5));
  // What is given may be missing from the files.
  const TemporaryFolder without;
  write_checkpoint(without, weights,
                   [&](auto& w) { std::erase_if(w, [](const NamedValues& v) { return v.name == "model.norm.weight"; }); });
  CHECK(logits_in_pieces(*load_llama(without.path(), options), ids, {4}) == after);

  // All that is wrong with what is given, with everything else, in one report.
  options.weights.emplace("model.nrom.weight", good(WeightValue::of(norm.values, norm.shape)));
  options.weights.insert_or_assign("model.norm.weight", good(WeightValue::of(norm.values, {4, 8})));
  write_checkpoint(without, weights, [&](auto& w) { w.push_back({"extra", {1}, {0}}); });
  const auto refused = handwritten::Llama::load(without.path(), options);
  REQUIRE_FALSE(refused.ok());
  const std::string text = refused.error().text();
  CAPTURE(text);
  CHECK(contains(text, "model.norm.weight: the weight that was given has shape [4, 8], expected [c.hidden_size] = [32]"));
  CHECK(contains(text, "model.nrom.weight: the model has no such weight, and one was given"));
  CHECK(contains(text, "did you mean model.norm.weight?"));
  CHECK(contains(text, "extra: no weight of the model asks for this tensor"));
}

TEST_CASE("parameters come in declared order with whole names") {
  const auto llama = random_llama();
  std::vector<std::string> names;
  for (const NamedParameter& p : llama->parameters()) names.push_back(p.name);
  REQUIRE(names.size() == 23);
  CHECK(names.front() == "model.embed_tokens.weight");
  CHECK(names[1] == "model.layers.0.input_layernorm.weight");
  CHECK(names.back() == "lm_head.weight");
}

TEST_CASE("an adapter is merged at load: the logits are those of the merged weights") {
  const TemporaryFolder folder, adapter;
  auto weights = random_weights();
  write_checkpoint(folder, weights);
  SafetensorsWriter writer;
  std::vector<std::vector<float>> kept;
  const auto add = [&](const std::string& name, TensorShape shape, std::vector<float> values) {
    kept.push_back(std::move(values));
    REQUIRE(writer.add_f32("base_model.model." + name, std::move(shape), kept.back()).ok());
  };
  std::vector<NamedValues> merged = weights;
  for (const char* layer : {"0", "1"}) {
    const std::string module = "model.layers." + std::string(layer) + ".self_attn.q_proj";
    std::vector<float> a(2 * 32), b(64 * 2);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = 0.1F * std::sin(static_cast<float>(i));
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = 0.1F * std::cos(static_cast<float>(3 * i));
    NamedValues& w = weight_called(merged, module + ".weight");
    for (std::size_t i = 0; i < 64; ++i)
      for (std::size_t j = 0; j < 32; ++j) w.values[i * 32 + j] += 8.0F * (b[2 * i] * a[j] + b[2 * i + 1] * a[32 + j]);
    add(module + ".lora_A.weight", {2, 32}, a);
    add(module + ".lora_B.weight", {64, 2}, b);
  }
  REQUIRE(writer.write(adapter / "adapter_model.safetensors").ok());
  adapter.write("adapter_config.json", R"({"peft_type": "LORA", "r": 2, "lora_alpha": 16, "target_modules": ["q_proj"]})");
  LoadOptions options;
  options.adapters = {adapter.path()};
  const auto llama = load_llama(folder.path(), options);
  REQUIRE(llama->load_report().notes.size() == 1);
  CHECK(contains(llama->load_report().notes[0], "model.layers.{0,1}.self_attn.q_proj.weight"));
  CHECK(contains(llama->model.layers[0].self_attn.q_proj.weight.source, "with an adapter"));
  const auto ids = random_tokens(8);
  const auto plain = logits_in_pieces(*load_llama(folder.path()), ids, {8}), with = logits_in_pieces(*llama, ids, {8});
  const TemporaryFolder whole;
  write_checkpoint(whole, merged);
  CHECK(largest_difference(with, logits_in_pieces(*load_llama(whole.path()), ids, {8})) < 1e-5F);
  CHECK(largest_difference(with, plain) > 1e-2F);
  // Twice is twice the change; a folder that is none is an error.
  options.adapters = {adapter.path(), adapter.path()};
  CHECK(largest_difference(logits_in_pieces(*load_llama(folder.path(), options), ids, {8}), with) > 1e-3F);
  options.adapters = {folder.path()};
  CHECK(handwritten::Llama::load(folder.path(), options).error().kind == "no-such-file");
}

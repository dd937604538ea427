// Low-rank adapters: what merging makes is what PyTorch makes by PEFT's formula (adapters/make_adapters.py); and each way in
// which an adapter can be wrong.
#include "runtime/checkpoint/adapter.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/safetensors/writer.h"
#include "runtime/checkpoint/weight_data.h"
#include "tests/runtime/base/temporary_folder.h"

using namespace modelc;

namespace {

const std::string folder = std::string(MODELC_SOURCE_DIR) + "/tests/runtime/checkpoint/adapters/";

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

CheckpointIndex opened(const std::string& path) {
  auto index = open_checkpoint(path);
  REQUIRE_MESSAGE(index, index.error().text());
  return std::move(*index);
}

// The weights that the tensors of a file are, as a model without rules has them.
std::vector<MappingWeight> weights_of(const CheckpointIndex& index) {
  std::vector<MappingWeight> out;
  for (const TensorInfo& t : index.tensors()) {
    MappingWeight w;
    w.name = t.name;
    w.shape = t.shape;
    w.where = "some.model:1:1";
    out.push_back(w);
  }
  return out;
}

std::vector<float> floats(const HostArray& x) {
  REQUIRE(x.encoding == Encoding::f32);
  std::vector<float> v(x.bytes.size() / 4);
  std::memcpy(v.data(), x.bytes.data(), x.bytes.size());
  return v;
}

// Merges the adapter into the base, and compares every weight with PyTorch's.
void check_merged(const std::string& name, const std::vector<MappingWeight>& weights, const MappingRules& rules,
                  const CheckpointIndex& base, bool transposed = false) {
  CAPTURE(name);
  const Mapping mapping = map_weights(weights, rules, base, {});
  REQUIRE(mapping.problems.empty());
  auto adapter = Adapter::open(folder + name);
  REQUIRE_MESSAGE(adapter, adapter.error().text());
  std::vector<Adapter> adapters;
  adapters.push_back(std::move(*adapter));
  const auto merge = AdapterMerge::bind(std::move(adapters), weights, rules, mapping);
  REQUIRE_MESSAGE(merge, merge.error().text());

  const auto expected_index = std::make_shared<const CheckpointIndex>(opened(folder + name + "/merged.safetensors"));
  CheckpointData expected(expected_index), data(std::make_shared<const CheckpointIndex>(base));
  std::size_t changed = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const TensorInfo* t = expected_index->find(weights[i].name);
    CHECK(merge->changes(i) == (t != nullptr));
    if (t == nullptr) continue;
    ++changed;
    auto stored = read_weight(data, mapping, mapping.sources[i], weights[i].shape);
    REQUIRE(stored.ok());
    auto made = merge->apply(i, *stored);
    REQUIRE_MESSAGE(made, made.error().text());
    const std::vector<float> is = floats(*made), should = *expected.read_f32(*t);
    REQUIRE(is.size() == should.size());
    const std::size_t rows = static_cast<std::size_t>(weights[i].shape[0]);
    double worst = 0;
    for (std::size_t k = 0; k < is.size(); ++k) {
      const std::size_t columns = is.size() / rows;
      const std::size_t at = transposed ? (k % columns) * rows + k / columns : k;
      worst = std::max(worst, static_cast<double>(std::fabs(is[k] - should[at])));
    }
    CHECK(worst < 1e-5);
  }
  CHECK(changed == expected_index->tensors().size());
}

Error refused(const std::string& config, const std::string& tensors = folder + "plain/adapter_model.safetensors") {
  const test::TemporaryFolder at;
  at.write("adapter_config.json", config);
  at.write("adapter_model.safetensors", test::slurp(tensors));
  auto adapter = Adapter::open(at.path());
  REQUIRE_FALSE(adapter.ok());
  return adapter.error();
}
// The config of `plain` with `from` replaced.
Error changed(const std::string& from, const std::string& to) {
  std::string text = test::slurp(folder + "plain/adapter_config.json");
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return refused(text.replace(at, from.size(), to));
}

Error bind_error(const CheckpointIndex& base, std::vector<MappingWeight> weights, const MappingRules& rules = {},
                 const std::string& name = "plain") {
  const Mapping mapping = map_weights(weights, rules, base, {.strict = false});
  REQUIRE(mapping.problems.empty());
  std::vector<Adapter> adapters;
  adapters.push_back(std::move(*Adapter::open(folder + name)));
  auto merge = AdapterMerge::bind(std::move(adapters), weights, rules, mapping);
  REQUIRE_FALSE(merge.ok());
  return merge.error();
}

}  // namespace

TEST_CASE("merging is what PyTorch makes of it") {
  const CheckpointIndex base = opened(folder + "base.safetensors");
  for (const char* name : {"plain", "patterns", "saved"}) check_merged(name, weights_of(base), {}, base);
}

TEST_CASE("through the model's rules: other names, transposed matrices, parts of one tensor, a stack of several") {
  const CheckpointIndex base = opened(folder + "base.safetensors");
  // Every matrix has a name of its own and lies the other way round.
  std::vector<MappingWeight> weights = weights_of(base);
  MappingRules rules;
  rules.maps.push_back({{"model.layers.{i}"}, {"blocks.{i}"}, "", "", -1, 0, ""});
  for (MappingWeight& w : weights)
    if (w.name.starts_with("model.layers.")) w.name = "blocks." + w.name.substr(13);
  const Mapping mapping = map_weights(weights, rules, base, {});
  REQUIRE(mapping.problems.empty());
  std::vector<Adapter> adapters;
  adapters.push_back(std::move(*Adapter::open(folder + "plain")));
  const auto merge = AdapterMerge::bind(std::move(adapters), weights, rules, mapping);
  REQUIRE_MESSAGE(merge, merge.error().text());
  std::size_t changes = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!merge->changes(i)) continue;
    ++changes;
    CHECK((weights[i].name.ends_with("q_proj.weight") || weights[i].name.ends_with("v_proj.weight")));
  }
  CHECK(changes == 4);
  REQUIRE(merge->notes().size() == 2);
  CHECK(contains(merge->notes()[0], "model.layers.{0,1}.self_attn.q_proj.weight"));
}

TEST_CASE("a base whose matrices are stored turned, and a model that has them the usual way") {
  const CheckpointIndex base = opened(folder + "base.safetensors");
  CheckpointData data(std::make_shared<const CheckpointIndex>(base));
  WeightMap turned;
  std::vector<MappingWeight> weights;
  MappingRules rules;
  rules.maps.push_back(
      {{"model.layers.{i}.mlp.up_proj.weight"}, {"model.layers.{i}.mlp.up_proj.weight"}, "transpose(0, 1)", "", -1, 0, ""});
  for (const TensorInfo& t : base.tensors()) {
    if (!t.name.ends_with("up_proj.weight")) continue;
    const std::vector<float> v = *data.read_f32(t);
    std::vector<float> other(v.size());
    for (std::size_t k = 0; k < v.size(); ++k) other[(k % 8) * 10 + k / 8] = v[k];
    turned.emplace(t.name, *WeightValue::of(other, {8, 10}));
    MappingWeight w;
    w.name = t.name;
    w.shape = t.shape;
    weights.push_back(w);
  }
  REQUIRE(weights.size() == 2);
  check_merged("turned", weights, rules, *checkpoint_of(turned), true);
}

TEST_CASE("two weights that are parts of one tensor, and one that is a stack of two, get their own parts of the change") {
  const CheckpointIndex base = opened(folder + "base.safetensors");
  const auto change_of = [&](const std::string& tensor) {
    const Adapter adapter = std::move(*Adapter::open(folder + "plain"));
    for (const Adapter::Change& c : adapter.changes())
      if (c.tensor == tensor) return *adapter.values(c);
    FAIL("no change of " << tensor);
    return std::vector<float>();
  };
  std::vector<MappingWeight> weights;
  const auto add = [&](const std::string& name, TensorShape shape) {
    MappingWeight w;
    w.name = name;
    w.shape = std::move(shape);
    weights.push_back(w);
  };
  add("upper", {5, 8});
  add("lower", {7, 8});
  add("values", {2, 4, 8});
  MappingRules rules;
  rules.maps.push_back({{"model.layers.0.self_attn.q_proj.weight"}, {"upper", "lower"}, "split(0)", "", -1, 0, ""});
  rules.maps.push_back({{"model.layers.{e}.self_attn.v_proj.weight"}, {"values"}, "stack(e)", "", -1, 0, ""});
  const Mapping mapping = map_weights(weights, rules, base, {.strict = false});
  REQUIRE(mapping.problems.empty());
  // Of the four tensors that the adapter changes one is no part of this model.
  std::vector<Adapter> adapters;
  adapters.push_back(std::move(*Adapter::open(folder + "plain")));
  auto merge = AdapterMerge::bind(std::move(adapters), weights, rules, mapping);
  REQUIRE_FALSE(merge.ok());
  CHECK(contains(merge.error().text(), "model.layers.1.self_attn.q_proj.weight: the adapter changes it, and the model has no such tensor"));
  add("other", {12, 8});
  rules.maps.push_back({{"model.layers.1.self_attn.q_proj.weight"}, {"other"}, "", "", -1, 0, ""});
  const Mapping whole = map_weights(weights, rules, base, {.strict = false});
  adapters.clear();
  adapters.push_back(std::move(*Adapter::open(folder + "plain")));
  merge = AdapterMerge::bind(std::move(adapters), weights, rules, whole);
  REQUIRE_MESSAGE(merge, merge.error().text());

  std::vector<float> parts;
  for (std::size_t i : {0, 1}) {
    const std::vector<float> x = floats(
        *merge->apply(i, {Encoding::f32, weights[i].shape, std::vector<std::byte>(static_cast<std::size_t>(weights[i].shape[0]) * 32)}));
    parts.insert(parts.end(), x.begin(), x.end());
  }
  CHECK(parts == change_of("model.layers.0.self_attn.q_proj.weight"));
  std::vector<float> stacked = change_of("model.layers.0.self_attn.v_proj.weight");
  const std::vector<float> second = change_of("model.layers.1.self_attn.v_proj.weight");
  stacked.insert(stacked.end(), second.begin(), second.end());
  CHECK(floats(*merge->apply(2, {Encoding::f32, {2, 4, 8}, std::vector<std::byte>(256)})) == stacked);
}

TEST_CASE("a weight keeps its float type, rounded once; a packed one becomes f32") {
  const CheckpointIndex base = opened(folder + "base.safetensors");
  const std::vector<MappingWeight> weights = weights_of(base);
  const Mapping mapping = map_weights(weights, {}, base, {});
  std::vector<Adapter> adapters;
  adapters.push_back(std::move(*Adapter::open(folder + "plain")));
  const auto merge = AdapterMerge::bind(std::move(adapters), weights, {}, mapping);
  REQUIRE(merge.ok());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!merge->changes(i)) continue;
    const HostArray zero{Encoding::f32, weights[i].shape,
                         std::vector<std::byte>(static_cast<std::size_t>(*element_count(weights[i].shape)) * 4)};
    const HostArray wide = *merge->apply(i, zero), narrow = *merge->apply(i, *cast(zero, DType::bf16));
    CHECK(narrow.encoding == Encoding::bf16);
    CHECK(narrow.bytes == cast(wide, DType::bf16)->bytes);
  }
}

TEST_CASE("an adapter that does not fit: unknown tensors, shapes, tensors that two weights share") {
  const CheckpointIndex base = opened(folder + "base.safetensors");
  std::vector<MappingWeight> weights = weights_of(base);
  for (MappingWeight& w : weights)
    if (w.name.ends_with("v_proj.weight")) w.shape = {8, 4};
  // The base's shapes would be reported first: this model has no such weights.
  std::erase_if(weights, [](const MappingWeight& w) { return w.name.ends_with("v_proj.weight"); });
  const Error unknown = bind_error(base, weights);
  CHECK(unknown.kind == "adapter");
  CHECK(contains(unknown.text(), "model.layers.{0,1}.self_attn.v_proj.weight: the adapter changes it, and the model has no such tensor"));

  MappingRules rules;
  rules.aliases.push_back({"lm_head.weight", "model.embed_tokens.weight", "", "", ""});
  std::vector<MappingWeight> tied = weights_of(base);
  WeightMap without;
  CheckpointData data(std::make_shared<const CheckpointIndex>(base));
  for (const TensorInfo& t : base.tensors())
    if (t.name != "lm_head.weight") without.emplace(t.name, *WeightValue::of(*data.read_f32(t), t.shape));
  const Error shared = bind_error(*checkpoint_of(without), tied, rules, "saved");
  CHECK(contains(shared.text(), "is one tensor with"));
  CHECK(contains(shared.text(), "a change of one would be a change of both"));

  std::vector<MappingWeight> wider = weights_of(base);
  WeightMap wide;
  for (MappingWeight& w : wider) {
    if (w.name.ends_with("q_proj.weight")) w.shape = {12, 9};
    wide.emplace(w.name, *WeightValue::of(std::vector<float>(static_cast<std::size_t>(*element_count(w.shape))), w.shape));
  }
  const Error shape = bind_error(*checkpoint_of(wide), wider);
  CHECK(contains(shape.text(),
                 "model.layers.0.self_attn.q_proj.weight: the adapter's is [12, 8], the model's [12, 9], declared at some.model:1:1"));
}

TEST_CASE("the configuration is a closed world: each key is bound, ignored by name or refused by name") {
  const Error unknown = changed("\"lora_dropout\"", "\"lora_drop\"");
  CHECK(unknown.kind == "adapter-key");
  CHECK(contains(unknown.text(), "adapter_config.json:12: the key \"lora_drop\" is not known"));
  CHECK(contains(unknown.help, "did you mean \"lora_dropout\"?"));
  for (const auto& [from, to] :
       {std::pair{"\"use_dora\": false", "\"use_dora\": true"}, std::pair{"\"revision\": null", "\"layer_replication\": [[0, 1]]"},
        std::pair{"\"peft_type\": \"LORA\"", "\"peft_type\": \"IA3\""},
        std::pair{"\"init_lora_weights\": true", "\"init_lora_weights\": \"pissa\""},
        std::pair{"\"rank_pattern\": {}", "\"rank_pattern\": {\"q_.*\": 4}"}}) {
    CAPTURE(to);
    CHECK(changed(from, to).kind == "adapter-unsupported");
  }
  for (const auto& [from, to] :
       {std::pair{"\"r\": 4", "\"r\": 0"}, std::pair{"\"r\": 4", "\"r\": 4.5"}, std::pair{"\"r\": 4", "\"r\": 9000000000"},
        std::pair{"\"lora_alpha\": 8", "\"lora_alpha\": \"8\""}, std::pair{"\"bias\": \"none\"", "\"bias\": \"some\""},
        std::pair{"\"use_rslora\": false", "\"use_rslora\": 1"}, std::pair{"\"alpha_pattern\": {}", "\"alpha_pattern\": []"},
        std::pair{"\"modules_to_save\": null", "\"modules_to_save\": \"lm_head\""},
        std::pair{"\"modules_to_save\": null", "\"modules_to_save\": [3]"}}) {
    CAPTURE(to);
    CHECK(changed(from, to).kind == "adapter-config");
  }
  CHECK(refused("[]").kind == "adapter-config");
  CHECK(contains(refused("{}").text(), "`peft_type` is missing"));
  CHECK(refused("{").kind == "json-syntax");
}

TEST_CASE("the two files of an adapter must agree") {
  CHECK(contains(changed("\"r\": 4", "\"r\": 8").text(), "A is [4, 8] and B is [12, 4], and the rank in adapter_config.json is 8"));
  CHECK(contains(changed("\"q_proj\",", "\"k_proj\",").text(), "`target_modules` in adapter_config.json does not name it"));
  CHECK(contains(changed("\"v_proj\"", "\"v_proj\", \"o_proj\"").text(), "no tensors for \"o_proj\", which `target_modules`"));
  CHECK(contains(changed("\"modules_to_save\": null", "\"modules_to_save\": [\"score\"]").text(),
                 "no tensors for \"score\", which `modules_to_save`"));

  const std::string config = test::slurp(folder + "plain/adapter_config.json");
  const test::TemporaryFolder at;
  const auto with = [&](const std::vector<std::pair<std::string, TensorShape>>& tensors) {
    SafetensorsWriter writer;
    std::vector<std::vector<float>> kept;
    for (const auto& [name, shape] : tensors) {
      kept.emplace_back(static_cast<std::size_t>(*element_count(shape)));
      REQUIRE(writer.add_f32(name, shape, kept.back()).ok());
    }
    REQUIRE(writer.write(at / "t.safetensors").ok());
    return refused(config, at / "t.safetensors");
  };
  const std::string q = "base_model.model.model.layers.0.self_attn.q_proj.";
  CHECK(contains(with({{q + "lora_A.weight", {4, 8}}}).text(), "it has A and no B"));
  CHECK(contains(with({{q + "lora_B.weight", {12, 4}}}).text(), "it has B and no A"));
  CHECK(contains(with({{q + "lora_magnitude_vector", {12}}}).text(), "this part of an adapter is not carried out"));
  CHECK(contains(with({{"q_proj.lora_A.weight", {4, 8}}}).text(), "its name does not begin with \"base_model.model.\""));
  CHECK(contains(with({{q + "lora_A.weight", {4, 8, 1, 1}}, {q + "lora_B.weight", {12, 4, 1, 1}}}).text(),
                 "adapters of matrices are carried out"));
  CHECK(Adapter::open(at / "none").error().kind == "no-such-file");
}

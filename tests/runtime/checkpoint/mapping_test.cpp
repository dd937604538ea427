#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "runtime/checkpoint/mapping.h"

#include <doctest/doctest.h>

#include <chrono>

#include "runtime/checkpoint/tensor_pattern.h"

using namespace modelc;

namespace {

MappingWeight weight(const std::string& name, std::vector<std::int64_t> shape) {
  MappingWeight w;
  w.name = name;
  w.shape = std::move(shape);
  w.formula = "[rows, columns]";
  w.where = "some.model:3:5";
  w.origins = {"columns = 4 from config.json:2"};
  return w;
}
TensorInfo tensor(const std::string& name, std::vector<std::int64_t> shape, Encoding encoding = Encoding::f32) {
  TensorInfo t;
  t.name = name;
  t.shape = std::move(shape);
  t.encoding = encoding;
  return t;
}
CheckpointFile file(const std::string& label) {
  CheckpointFile f;
  f.label = f.path = label;
  return f;
}
CheckpointIndex index_of(std::vector<TensorInfo> tensors, std::vector<TensorInfo> second = {}) {
  CheckpointIndex index;
  index.path = "models/some";
  REQUIRE(index.add(file("model-00001-of-00002.safetensors"), std::move(tensors)).ok());
  if (!second.empty()) REQUIRE(index.add(file("model-00002-of-00002.safetensors"), std::move(second)).ok());
  return index;
}

std::string text_of(const Problem& p) {
  std::string s = p.kind + "|" + p.message;
  for (const auto& n : p.notes) s += "|" + n;
  return s + "|" + p.help;
}
std::vector<std::string> texts_of(const Mapping& m) {
  std::vector<std::string> out;
  for (const Problem& p : m.problems) out.push_back(text_of(p));
  return out;
}
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
std::string only(const Mapping& m) {
  REQUIRE(m.problems.size() == 1);
  return text_of(m.problems[0]);
}

}  // namespace

TEST_CASE("every weight from its tensor") {
  const auto index = index_of({tensor("b", {2, 4}), tensor("a", {2, 4}, Encoding::bf16)});
  const Mapping m = map_weights({weight("a", {2, 4}), weight("b", {2, 4})}, {}, index, {});
  CHECK(m.problems.empty());
  CHECK(m.notes.empty());
  REQUIRE(m.sources.size() == 2);
  CHECK(m.sources[0].parts[0].tensor == 1);
  CHECK(m.sources[1].parts[0].tensor == 0);
  CHECK(m.sources[0].kind == WeightSource::Kind::tensor);
}

TEST_CASE("missing and unexpected, each with the name that was meant") {
  const auto index = index_of({tensor("layers.0.mlp.up_proj.weight", {2, 4}), tensor("layers.1.mlp.upproj.weight", {2, 4})});
  const Mapping m =
      map_weights({weight("layers.0.mlp.up_proj.weight", {2, 4}), weight("layers.1.mlp.up_proj.weight", {2, 4})}, {}, index, {});
  REQUIRE(m.problems.size() == 2);
  CHECK(text_of(m.problems[0]) ==
        "missing-weight|layers.1.mlp.up_proj.weight: the checkpoint has no such tensor|expected [rows, columns] = [2, 4]|"
        "declared at some.model:3:5|columns = 4 from config.json:2|"
        "did you mean layers.1.mlp.upproj.weight, which no weight asks for?");
  CHECK(m.problems[0].where == "some.model:3:5");
  CHECK(text_of(m.problems[1]) ==
        "unexpected-tensor|layers.1.mlp.upproj.weight: no weight of the model asks for this tensor|"
        "f32 [2, 4] in model-00001-of-00002.safetensors|did you mean layers.1.mlp.up_proj.weight, which is missing?");
}

TEST_CASE("a slip in every layer, a lost prefix, a component too many: one suggestion for all") {
  const auto one_suggestion = [](const std::string& prefix, const std::string& written, const std::string& meant) {
    std::vector<MappingWeight> weights;
    std::vector<TensorInfo> tensors;
    for (int i = 0; i < 32; ++i) {
      weights.push_back(weight("model.layers." + std::to_string(i) + "." + meant, {2}));
      tensors.push_back(tensor(prefix + "layers." + std::to_string(i) + "." + written, {2}));
    }
    const Mapping m = map_weights(weights, {}, index_of(tensors), {});
    REQUIRE(m.problems.size() == 2);
    CHECK(contains(m.problems[0].message, "model.layers.{0..31}." + meant + ": the checkpoint has none of these 32"));
    CHECK(m.problems[0].help == "did you mean " + prefix + "layers.{0..31}." + written + ", which no weight asks for?");
    CHECK(m.problems[1].help == "did you mean model.layers.{0..31}." + meant + ", which is missing?");
  };
  one_suggestion("model.", "mlp.gate.weight", "mlp.gate_proj.weight");
  one_suggestion("", "mlp.gate_proj.weight", "mlp.gate_proj.weight");
  one_suggestion("model.", "mlp.inner.gate_proj.weight", "mlp.gate_proj.weight");
  one_suggestion("model.", "gate_proj.weight", "mlp.gate_proj.weight");
}

TEST_CASE("other projections are no slips of each other") {
  const auto index = index_of({tensor("layers.0.self_attn.inv_freq", {2})});
  const Mapping m = map_weights({weight("layers.0.self_attn.k_proj.weight", {2, 4})}, {}, index, {});
  for (const auto& t : texts_of(m)) CHECK_FALSE(contains(t, "did you mean"));
}

TEST_CASE("more layers in the file than in the model, and the other way round") {
  std::vector<MappingWeight> two;
  std::vector<TensorInfo> four;
  for (int i = 0; i < 4; ++i) four.push_back(tensor("layers." + std::to_string(i) + ".w", {2}));
  for (int i = 0; i < 2; ++i) two.push_back(weight("layers." + std::to_string(i) + ".w", {2}));
  CHECK(contains(only(map_weights(two, {}, index_of(four), {})),
                 "layers.{2,3}.w: no weight of the model asks for these 2 tensors|f32 [2] in "
                 "model-00001-of-00002.safetensors|the model has layers.{0,1}.w"));
  two.push_back(weight("layers.2.w", {2}));
  CHECK(contains(only(map_weights(two, {}, index_of({four[0], four[1]}), {})), "|the checkpoint has layers.{0,1}.w"));
  // Numbers of any size are names like others: 4294967296 is not layer 0.
  const auto overflow = index_of({four[0], four[1], tensor("layers.4294967296.w", {2}), tensor("layers.00.w", {2}),
                                  tensor("layers.99999999999999999999999999.w", {2})});
  two.pop_back();
  const Mapping m = map_weights(two, {}, overflow, {});
  CHECK(m.problems.size() == 3);
  for (const auto& t : texts_of(m)) CHECK(contains(t, "no weight of the model asks for this tensor"));
}

TEST_CASE("shapes and dtypes that differ are grouped, with the place and the reasons") {
  std::vector<TensorInfo> first, second;
  std::vector<MappingWeight> weights;
  for (int i = 0; i < 4; ++i) {
    weights.push_back(weight("layers." + std::to_string(i) + ".q.weight", {64, 40}));
    weights.back().formula = "[heads * d, hidden_size]";
    weights.back().numbers = "[4 * 16, 40]";
    (i < 3 ? first : second).push_back(tensor("layers." + std::to_string(i) + ".q.weight", {64, 32}));
  }
  weights.push_back(weight("factors", {4}));
  weights.back().dtype = DType::f32;
  first.push_back(tensor("factors", {4}, Encoding::bf16));
  weights.push_back(weight("table", {8, 32}));
  second.push_back(tensor("table", {8, 32}, Encoding::i32));
  const auto index = index_of(first, second);
  const Mapping m = map_weights(weights, {}, index, {});
  REQUIRE(m.problems.size() == 3);
  CHECK(text_of(m.problems[0]) ==
        "shape|layers.{0..3}.q.weight, 4 weights: shape [64, 32] in model-00001-of-00002.safetensors and 1 more file, "
        "expected "
        "[heads * d, hidden_size] = [4 * 16, 40]|declared at some.model:3:5|columns = 4 from config.json:2|");
  CHECK(contains(text_of(m.problems[1]), "dtype|factors: stored as bf16 in model-00001-of-00002.safetensors, declared as f32"));
  CHECK(contains(m.problems[1].help, "--auto-cast"));
  CHECK(contains(text_of(m.problems[2]), "table: stored as i32 in model-00002-of-00002.safetensors, which stands for no real numbers"));
  CHECK(map_weights({weights[4]}, {}, index_of({tensor("factors", {4}, Encoding::bf16)}), {true, true}).problems.empty());
  CHECK_FALSE(map_weights({weights[4]}, {}, index_of({tensor("factors", {4}, Encoding::f16)}), {true, true}).problems.empty());
}

TEST_CASE("an alias: absent, there as well, off, and its target missing") {
  MappingRules rules;
  rules.aliases = {{"head.weight", "embed.weight", "", ""}};
  const std::vector<MappingWeight> weights = {weight("embed.weight", {8, 4}), weight("head.weight", {8, 4})};

  Mapping m = map_weights(weights, rules, index_of({tensor("embed.weight", {8, 4})}), {});
  CHECK(m.problems.empty());
  CHECK(m.notes == std::vector<std::string>{"head.weight = alias of embed.weight"});
  CHECK(m.sources[1].kind == WeightSource::Kind::alias);
  CHECK(m.sources[1].parts[0].tensor == 0);
  CHECK(m.sources[1].own == nullptr);

  m = map_weights(weights, rules, index_of({tensor("head.weight", {8, 4}), tensor("embed.weight", {8, 4})}), {});
  CHECK(m.problems.empty());
  REQUIRE(m.sources[1].own != nullptr);
  CHECK(m.sources[1].own->parts[0].tensor == 0);
  CHECK(m.left_to_load ==
        std::vector<std::string>{"head.weight is there beside its alias embed.weight: whether they are equal is left to the load"});
  CHECK(m.sources[1].parts[0].tensor == 1);

  // Only the target is said to be missing.
  m = map_weights(weights, rules, index_of({tensor("other", {1})}), {});
  REQUIRE(m.problems.size() == 2);
  CHECK(contains(m.problems[0].message, "embed.weight: the checkpoint has no such tensor"));
  m = map_weights(weights, rules, index_of({tensor("head.weight", {8, 4})}), {});
  CHECK(contains(only(m), "embed.weight: the checkpoint has no such tensor"));

  // The shape is compared with both.
  m = map_weights(weights, rules, index_of({tensor("embed.weight", {9, 4})}), {});
  CHECK(m.problems.size() == 1);

  rules.aliases[0].when = "c.tie_word_embeddings";
  rules.aliases[0].because = "tie_word_embeddings = false from config.json:24";
  const std::string off = only(map_weights(weights, rules, index_of({tensor("embed.weight", {8, 4})}), {}));
  CHECK(contains(off,
                 "|`alias head.weight = embed.weight when c.tie_word_embeddings` does not hold: "
                 "tie_word_embeddings = false from config.json:24|"));
  CHECK(contains(off,
                 "if it is embed.weight that serves as head.weight, say so with --set tie_word_embeddings=true; if not, "
                 "the checkpoint lacks a file, or was saved without it"));
  CHECK(map_weights(weights, rules, index_of({tensor("embed.weight", {8, 4}), tensor("head.weight", {8, 4})}), {}).problems.empty());
}

TEST_CASE("aliases and renames by pattern") {
  MappingRules rules;
  rules.aliases = {{"layers.{i}.v.weight", "layers.{i}.k.weight", "", ""}};
  rules.maps = {{.file = {"blk.{i}"}, .model = {"layers.{i}"}},
                {.file = {"blk.{i}.ffn_{no}"}, .model = {"x"}},
                {.file = {"blk.{i}.attn_k.{rest*}"}, .model = {"layers.{i}.k.{rest*}"}},
                {.file = {"rope_freqs"}, .model = {"layers.{i}.factors"}}};
  const std::vector<MappingWeight> weights = {weight("layers.0.k.weight", {2}),  weight("layers.0.v.weight", {2}),
                                              weight("layers.1.k.weight", {2}),  weight("layers.1.v.weight", {2}),
                                              weight("layers.0.factors", {2}),   weight("layers.1.factors", {2}),
                                              weight("layers.1.other.bias", {2})};
  const auto index = index_of({tensor("blk.0.attn_k.weight", {2}), tensor("blk.1.attn_k.weight", {2}), tensor("rope_freqs", {2}),
                               tensor("blk.1.other.bias", {2}), tensor("blk.1.v.weight", {2})});
  const Mapping m = map_weights(weights, rules, index, {});
  CHECK(texts_of(m) == std::vector<std::string>{});
  CHECK(m.sources[0].parts[0].tensor == 0);
  CHECK(m.sources[1].kind == WeightSource::Kind::alias);
  CHECK(m.sources[1].parts[0].tensor == 0);
  CHECK(m.sources[2].parts[0].tensor == 1);
  CHECK(m.sources[3].own != nullptr);
  CHECK(m.sources[4].parts[0].tensor == 2);
  CHECK(m.sources[5].parts[0].tensor == 2);                         // an index only in the model: all are that one tensor
  CHECK(m.sources[6].parts[0].tensor == 3);
  const Mapping gone = map_weights({weight("layers.0.k.weight", {2})}, rules, index_of({tensor("layers.0.k.weight", {2})}), {});
  REQUIRE(gone.problems.size() == 2);
  CHECK(contains(text_of(gone.problems[0]), "|looked for as blk.0.attn_k.weight|"));
}

TEST_CASE("defaults, ignored tensors, strict off") {
  MappingWeight factors = weight("factors", {2});
  factors.has_default = true;
  MappingRules rules;
  rules.ignores = {{"**.inv_freq"}, {"never.*"}};
  std::vector<TensorInfo> tensors = {tensor("a", {2})};
  for (int i = 0; i < 80; ++i) tensors.push_back(tensor("layers." + std::to_string(i) + ".rotary_emb.inv_freq", {2}));
  const Mapping m = map_weights({weight("a", {2}), factors}, rules, index_of(tensors), {});
  CHECK(m.problems.empty());
  CHECK(m.sources[1].kind == WeightSource::Kind::default_value);
  CHECK(m.notes == std::vector<std::string>{"ignored by `ignore **.inv_freq`: layers.{0..79}.rotary_emb.inv_freq, 80 tensors"});

  const std::string refused = only(map_weights({weight("a", {2})}, {}, index_of(tensors), {}));
  CHECK(contains(refused, "layers.{0..79}.rotary_emb.inv_freq: no weight of the model asks for these 80 tensors"));
  CHECK(contains(refused, "`ignore layers.*.rotary_emb.inv_freq`"));
  const Mapping lax = map_weights({weight("a", {2})}, {}, index_of(tensors), {false, false});
  CHECK(lax.problems.empty());
  CHECK(lax.notes == std::vector<std::string>{"not asked for: layers.{0..79}.rotary_emb.inv_freq, 80 tensors"});
  CHECK(map_weights({weight("b", {2})}, {}, index_of(tensors), {false, false}).problems.size() == 1);
}

TEST_CASE("the report as one error is capped") {
  std::vector<MappingWeight> weights;
  for (char c = 'a'; c <= 'z'; ++c) weights.push_back(weight(std::string(3, c), {2}));
  const Mapping m = map_weights(weights, {}, index_of({}), {});
  CHECK(m.problems.size() == 26);
  const Error e = as_error(m, 10);
  CHECK(e.message == "models/some does not fit the model: 26 problems");
  CHECK(e.notes.size() == 21);
  CHECK(e.notes.back() == "… and 16 more problems");
}

TEST_CASE("20,000 tensors in a moment, fitting or not") {
  std::vector<MappingWeight> weights;
  std::vector<TensorInfo> tensors, strange;
  MappingRules rules;
  rules.ignores = {{"**.inv_freq"}, {"**.{rest*}.never"}};
  rules.aliases = {{"lm_head.weight", "model.embed_tokens.weight", "", ""}};
  for (int layer = 0; layer < 100; ++layer)
    for (int expert = 0; expert < 67; ++expert)
      for (const char* w : {"w1", "w2", "w3"}) {
        const std::string name = "model.layers." + std::to_string(layer) + ".mlp.experts." + std::to_string(expert) + "." + w + ".weight";
        weights.push_back(weight(name, {2, 4}));
        tensors.push_back(tensor(name, {2, 4}));
        strange.push_back(tensor(name + "s" + std::to_string(expert * 7919 + layer), {2, 4}));
      }
  REQUIRE(weights.size() > 20'000);
  const auto fits = index_of(tensors), differs = index_of(strange);
  const auto milliseconds = [&](const CheckpointIndex& index) {
    const std::clock_t begin = std::clock();
    const Mapping m = map_weights(weights, rules, index, {});
    CHECK(m.problems.empty() == (&index == &fits));
    return 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  CHECK(milliseconds(fits) < 1000);
  CHECK(milliseconds(differs) < 4000);
}

TEST_CASE("patterns over components") {
  const auto matches = [](const char* pattern, const char* name) { return TensorPattern(pattern).matches(name); };
  CHECK(matches("a.b", "a.b"));
  CHECK_FALSE(matches("a.b", "a.b.c"));
  CHECK(matches("*.b", "a.b"));
  CHECK_FALSE(matches("*.b", "a.a.b"));
  CHECK(matches("**.b", "b"));
  CHECK(matches("**.b", "a.a.b"));
  CHECK_FALSE(matches("**.b", "a.bb"));
  CHECK(matches("a.**", "a"));
  CHECK(matches("a.**.**.b", "a.b"));
  CHECK(matches("**", "anything.at.all"));
  CHECK(matches("a.*_proj", "a.q_proj"));
  CHECK(matches("a.*_*", "a.q_proj"));
  CHECK_FALSE(matches("a.*_proj", "a.q_proj.weight"));
  CHECK(matches("{i}.{i}", "3.3"));
  CHECK_FALSE(matches("{i}.{i}", "3.4"));
  CHECK_FALSE(matches("{i}", "03"));
  CHECK_FALSE(matches("{i}", "x"));
  CHECK(matches("{i}", "99999999999999999999999"));
  CHECK(matches("{a*}.mid.{a*}", "x.y.mid.x.y"));
  CHECK_FALSE(matches("{a*}.mid.{a*}", "x.y.mid.x.z"));
  CHECK_FALSE(matches("", "a"));
  const auto captures = TensorPattern("layers.{i}.{rest*}").match("layers.7.mlp.weight");
  REQUIRE(captures);
  CHECK(TensorPattern("blk.{i}.{rest*}").fill(*captures) == "blk.7.mlp.weight");
  CHECK(TensorPattern("{rest*}").fill(*captures) == "mlp.weight");
  CHECK_FALSE(TensorPattern("blk.{j}").fill(*captures));
  CHECK_FALSE(TensorPattern("blk.*").fill(*captures));
  std::string rest;
  CHECK(TensorPattern("layers.{i}").match_prefix("layers.7.mlp.weight", rest));
  CHECK(rest == "mlp.weight");
  CHECK(TensorPattern("layers.{i}.mlp.weight").match_prefix("layers.7.mlp.weight", rest));
  CHECK(rest.empty());
  // A hostile name costs no more than it is long.
  const std::string dots(100'000, '.');
  CHECK_FALSE(matches("**.a.**.b.**.c.**.d.**", dots.c_str()));
}

TEST_CASE("auto_cast says in one line what it converts, and what loses precision") {
  std::vector<MappingWeight> weights = {weight("a", {2}), weight("b", {2}), weight("c", {2}), weight("d", {2})};
  weights[0].dtype = weights[1].dtype = DType::bf16;
  weights[2].dtype = DType::f32;
  const auto index = index_of({tensor("a", {2}), tensor("b", {2}), tensor("c", {2}, Encoding::bf16), tensor("d", {2})});
  CHECK(map_weights(weights, {}, index, {}).problems.size() == 3);
  const Mapping m = map_weights(weights, {}, index, {.auto_cast = true});
  CHECK(m.problems.empty());
  CHECK(m.notes == std::vector<std::string>{"auto-cast: 2 weights from f32 to bf16 (precision loss), 1 weight from bf16 to f32"});
  CHECK(m.sources[0].cast == DType::bf16);
  CHECK_FALSE(m.sources[0].as_stored());
  CHECK(m.sources[2].cast == DType::f32);
  CHECK(m.sources[3].as_stored());
}

TEST_CASE("weights that the caller gives: taken, compared, and unknown ones named") {
  std::vector<MappingWeight> weights = {weight("layers.0.a", {2}), weight("layers.1.a", {2}), weight("b", {2})};
  weights[2].dtype = DType::bf16;
  const auto value = [](std::size_t n) { return *WeightValue::of(std::vector<float>(n), {static_cast<std::int64_t>(n)}); };
  WeightMap given;
  given.emplace("layers.0.a", value(2));
  given.emplace("b", value(2));
  const auto index = index_of({tensor("layers.0.a", {2}), tensor("layers.1.a", {2}), tensor("b", {2}, Encoding::bf16)});
  const Mapping refused = map_weights(weights, {}, index, {.given = &given});
  CHECK(contains(only(refused), "dtype|b: the weight that was given is f32, declared as bf16|declared at some.model:3:5"));
  const Mapping cast = map_weights(weights, {}, index, {.auto_cast = true, .given = &given});
  REQUIRE(cast.problems.empty());
  CHECK(cast.sources[0].kind == WeightSource::Kind::given);
  CHECK(cast.sources[1].kind == WeightSource::Kind::tensor);
  CHECK(cast.sources[2].cast == DType::bf16);
  CHECK(cast.notes == std::vector<std::string>{"given by the caller: layers.0.a", "given by the caller: b",
                                               "auto-cast: 1 weight from f32 to bf16 (precision loss)"});

  WeightMap wrong;
  for (const char* name : {"layers.0.aa", "layers.1.aa"}) wrong.emplace(name, value(2));
  wrong.emplace("layers.1.a", value(3));
  const Mapping m = map_weights(weights, {}, index, {.given = &wrong});
  REQUIRE(m.problems.size() == 2);
  CHECK(contains(text_of(m.problems[0]), "shape|layers.1.a: the weight that was given has shape [3], expected [rows, columns] = [2]"));
  CHECK(contains(text_of(m.problems[1]), "unknown-weight|layers.{0,1}.aa: the model has none of these 2 weights, and they were given"));
  CHECK(contains(m.problems[1].help, "did you mean"));
}

TEST_CASE("a list whose length differs is one problem, with the key that counts it; a weight alone is one as before") {
  const auto layers = [](int n) {
    std::vector<MappingWeight> w;
    for (int i = 0; i < n; ++i)
      for (const char* name : {"a", "b", "c"}) w.push_back(weight("model.layers." + std::to_string(i) + "." + name, {2}));
    return w;
  };
  const auto file_of = [](int n) {
    std::vector<TensorInfo> t;
    for (int i = 0; i < n; ++i)
      for (const char* name : {"a", "b", "c"}) t.push_back(tensor("model.layers." + std::to_string(i) + "." + name, {2}));
    return t;
  };
  const auto with_config = [](CheckpointIndex index, const std::string& text) {
    index.config = JsonFile{"config.json", text, *parse_json(text)};
    return index;
  };
  const auto two = with_config(index_of(file_of(2)), "{\n\"num_hidden_layers\": 4,\n\"text\": {\"n_layer\": 4}, \"heads\": 4}");
  CHECK(only(map_weights(layers(4), {}, two, {})) ==
        "list-length|model.layers.{2,3}: the checkpoint has none of the 6 weights of these 2 elements|it has model.layers.{0,1}|"
        "num_hidden_layers = 4 from config.json:2|text.n_layer = 4 from config.json:3|"
        "configuration and checkpoint are of two models, or a file of the checkpoint is missing");
  const auto three = with_config(index_of(file_of(3)), "{\"num_hidden_layers\": 2}");
  CHECK(only(map_weights(layers(2), {}, three, {})) ==
        "list-length|model.layers.2: the checkpoint has 3 tensors of this element, which the model does not have|the model has "
        "model.layers.{0,1}|"
        "num_hidden_layers = 2 from config.json:1|configuration and checkpoint are of two models; or if nothing needs them, the checkpoint "
        "block can say "
        "`ignore model.layers.2.**`, or --no-strict allows them");
  CHECK(map_weights(layers(2), {}, three, {.strict = false}).problems.empty());
  // One weight of an element, an element in the middle, a list that is there in no part.
  std::vector<TensorInfo> lacks = file_of(3);
  lacks.erase(lacks.begin() + 4);
  CHECK(contains(only(map_weights(layers(3), {}, index_of(lacks), {})),
                 "missing-weight|model.layers.1.b: the checkpoint has no such tensor"));
  lacks.erase(lacks.begin() + 3, lacks.begin() + 5);
  CHECK(contains(only(map_weights(layers(3), {}, index_of(lacks), {})),
                 "list-length|model.layers.1: the checkpoint has none of the 3 weights"));
  CHECK(map_weights(layers(3), {}, index_of({tensor("x", {2})}), {}).problems.size() == 4);
}

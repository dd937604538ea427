// The sizes of models before a load: of every fixture, that what a weight is read as is known from headers; of one, all figures.
#include "codegen/driver/model_sizes.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>

#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/tensor_data.h"
#include "runtime/checkpoint/weight_data.h"

using namespace modelc;
using namespace modelc::driver;

namespace {

namespace fs = std::filesystem;

Options options_of(const std::string& model, const std::string& checkpoint) {
  Options o;
  o.command = "devices";
  o.files = {model};
  o.checkpoint = {checkpoint};
  return o;
}

std::int64_t sum(const std::vector<Held>& all) {
  std::int64_t bytes = 0;
  for (const Held& h : all) bytes += h.bytes;
  return bytes;
}

const std::string llama = MODELC_SOURCE_DIR "/examples/llama/llama.model", tiny = MODELC_SOURCE_DIR "/examples/tiny";

}  // namespace

TEST_CASE("read_encoding says what read_weight gives, for every weight of every fixture") {
  std::size_t models = 0;
  std::map<std::string, std::size_t> ways;
  for (const auto& example : fs::directory_iterator(MODELC_SOURCE_DIR "/examples")) {
    const std::string name = example.path().filename().string();
    const fs::path file = example.path() / (name + ".model"), fixtures = example.path() / "fixtures";
    if (!fs::exists(file) || !fs::exists(fixtures)) continue;
    for (const auto& folder : fs::directory_iterator(fixtures)) {
      if (!folder.is_directory()) continue;
      std::string path = folder.path().string();
      for (const auto& f : fs::directory_iterator(folder))
        if (f.path().extension() == ".gguf") path = f.path().string();
      const Options o = options_of(file.string(), path);
      Session s(o);
      if (!load_model(s, o.files[0])) continue;
      const auto checkpoint = open_checkpoint_of(s);
      const auto config = checkpoint ? config_of(s, checkpoint.get()) : std::nullopt;
      const auto program = config ? analyze_model(s, &*config) : std::nullopt;
      if (!program) continue;                              // of another model of the folder, or no checkpoint
      const Mapping mapping = map_weights_of(s, program->graph, *checkpoint);
      if (!mapping.problems.empty()) continue;
      ++models;
      CAPTURE(path);
      CheckpointData data(checkpoint);
      const std::vector<MappingWeight> weights = mapping_weights(program->graph);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const WeightSource& source = mapping.sources[i];
        if (source.kind == WeightSource::Kind::default_value) continue;
        const auto read = read_weight(data, mapping, source, weights[i].shape);
        if (!read) FAIL(read.error().text());
        CAPTURE(weights[i].name);
        CHECK(read_encoding(*checkpoint, source) == read->encoding);
        ++ways[source.plan               ? "made by a plan"
               : source.parts[0].encode  ? "stored in parts"
               : source.parts.size() > 1 ? "of several"
                                         : "as it is"];
        ++ways[std::string(modelc::name(read->encoding))];
      }
    }
  }
  CHECK(models > 40);
  for (const char* way : {"made by a plan", "stored in parts", "as it is", "f32", "bf16", "q8_0"}) {
    CAPTURE(way);
    CHECK(ways[way] > 0);
  }
}

TEST_CASE("the tiny model on the CPU: weights as its file has them, caches by their shapes, layers by number") {
  const Options o = options_of(llama, tiny);
  Session s(o);
  const auto m = ModelSizes::of(s, std::nullopt);
  if (!s.report() || !m) FAIL("messages above");
  auto cpu = *open_cpu({.threads = 1});
  const auto exact = m->on(*cpu, false), fast = m->on(*cpu, true);
  REQUIRE(exact.ok());
  REQUIRE(fast.ok());
  CHECK(m->list().name == "model.layers");
  const auto config = *read_json_file(tiny + "/config.json");
  const auto value = [&](const char* key) { return *config.root.find(key)->as_int(); };
  const std::int64_t layers = value("num_hidden_layers"), heads = value("num_key_value_heads");
  const std::int64_t dim = value("hidden_size") / value("num_attention_heads");
  CHECK(m->list().elements == layers);
  CHECK(m->context() == std::min<std::int64_t>(value("max_position_embeddings"), 4096));
  CHECK(static_cast<std::int64_t>(exact->caches.size()) == layers);
  CHECK(sum(exact->caches) == 2 * layers * heads * dim * m->context() * 4);
  CHECK(sum(fast->caches) == sum(exact->caches) / 2);
  // A layer's part: in it, and in no other.
  std::map<std::int64_t, std::int64_t> of_layer;
  std::int64_t rest = 0;
  for (const Held& h : exact->weights) {
    CHECK((h.rest ? h.elements.empty() : h.elements.size() == 1));
    (h.rest ? rest : of_layer[h.elements.at(0)]) += h.bytes;
  }
  CHECK(static_cast<std::int64_t>(of_layer.size()) == layers);
  for (const auto& [layer, bytes] : of_layer) CHECK(bytes == of_layer[0]);
  CHECK(rest + layers * of_layer[0] == sum(exact->weights));
  // Half the sequence has half the caches; a shorter one than a chunk has smaller activations.
  const auto half = ModelSizes::of(s, m->context() / 2), few = ModelSizes::of(s, 16);
  REQUIRE(half);
  REQUIRE(few);
  CHECK(sum(half->on(*cpu, false)->caches) == sum(exact->caches) / 2);
  CHECK(few->tokens() == 16);
  CHECK(few->on(*cpu, false)->activations < exact->activations);
  CHECK(exact->activations > 0);
}

TEST_CASE("a cache of latents has a row a position for all heads, of two bytes a number in fast mode") {
  const std::string folder = MODELC_SOURCE_DIR "/examples/deepseek_v3/fixtures/deepseek-v3-dense";
  const Options o = options_of(MODELC_SOURCE_DIR "/examples/deepseek_v3/deepseek_v3.model", folder);
  Session s(o);
  const auto m = ModelSizes::of(s, 24);
  if (!s.report() || !m) FAIL("messages above");
  auto cpu = *open_cpu({.threads = 1});
  const auto exact = m->on(*cpu, false), fast = m->on(*cpu, true);
  REQUIRE(exact.ok());
  REQUIRE(fast.ok());
  const auto config = *read_json_file(folder + "/config.json");
  const auto value = [&](const char* key) { return *config.root.find(key)->as_int(); };
  CHECK(sum(exact->caches) == value("num_hidden_layers") * (value("kv_lora_rank") + value("qk_rope_head_dim")) * 24 * 4);
  CHECK(sum(fast->caches) == sum(exact->caches) / 2);
}

TEST_CASE("a context beyond the model's, a checkpoint that is another model's") {
  const Options o = options_of(llama, tiny), other = options_of(llama, MODELC_SOURCE_DIR "/examples/qwen3_moe/fixtures/qwen3-moe-each");
  Session s(o), t(other);
  CHECK_FALSE(ModelSizes::of(s, 1 << 30));
  CHECK(s.sink.has_errors());
  CHECK_FALSE(ModelSizes::of(t, std::nullopt));
  CHECK(t.sink.has_errors());
}

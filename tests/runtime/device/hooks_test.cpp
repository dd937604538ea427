#include <cstdio>
#include <map>
#include <set>

#include "runtime/checkpoint/open.h"
#include "runtime/kv_cache/kv_cache.h"
#include "tests/runtime/device/llama_support.h"

using namespace modelc;
using namespace modelc::test;

TEST_CASE("hooks see every named value and every module's result once a call") {
  const auto llama = random_llama();
  std::map<std::string, int> seen;
  std::map<std::string, Shape> shapes;
  llama->add_layer_hook([&](const LayerValue& v) {
    ++seen[std::string(v.name)];
    shapes[std::string(v.name)] = v.shape;
    CHECK(static_cast<std::int64_t>(v.data.size()) == v.shape.count());
  });
  logits_in_pieces(*llama, random_tokens(5), {5});
  for (const NamedModule& m : llama->descendants()) {
    if (std::string(m.module->type_name()) == "RotaryEmbedding") continue;   // q and k below are its results
    CAPTURE(m.name);
    CHECK(seen[m.name] == 1);
  }
  for (const char* name : {"q", "k", "v", "y"}) CHECK(seen["model.layers.0.self_attn." + std::string(name)] == 1);
  CHECK(seen["logits"] == 1);
  CHECK(seen["model.layers.1.h"] == 1);
  CHECK(shapes["model.layers.0.self_attn.q"] == Shape{5, 4, 16});
  CHECK(shapes["model.layers.0.mlp.gate_proj"] == Shape{5, 48});
  CHECK(shapes["logits"] == Shape{5, 64});
}

TEST_CASE("several hooks, one taken away, all cleared") {
  const auto llama = random_llama();
  int a = 0, b = 0;
  const int first = llama->add_layer_hook([&](const LayerValue&) { ++a; });
  llama->add_layer_hook([&](const LayerValue&) { ++b; });
  logits_in_pieces(*llama, random_tokens(2), {2});
  CHECK(a > 0);
  CHECK(a == b);
  llama->remove_layer_hook(first);
  logits_in_pieces(*llama, random_tokens(2), {2});
  CHECK(b == 2 * a);
  llama->clear_hooks();
  logits_in_pieces(*llama, random_tokens(2), {2});
  CHECK(b == 2 * a);
}

TEST_CASE("the print hook: filter, lines, and an export that opens again") {
  const auto llama = random_llama();
  const TemporaryFolder folder;
  std::FILE* out = std::fopen((folder / "printed.txt").c_str(), "w+");
  REQUIRE(out != nullptr);
  const PrintHook hook = make_print_hook(
      {.filter = {"model.layers.{i}.self_attn.*_proj", "logits"}, .export_path = folder / "values.safetensors", .out = out});
  llama->add_layer_hook(hook.hook);
  const auto ids = random_tokens(4);
  const auto logits = logits_in_pieces(*llama, ids, {3, 1});
  REQUIRE(hook.finish().ok());
  std::rewind(out);
  std::vector<std::string> lines;
  char line[4096];
  while (std::fgets(line, sizeof line, out) != nullptr) lines.emplace_back(line);
  std::fclose(out);
  REQUIRE(lines.size() == 2 * (2 * 4 + 1));
  CHECK(lines[0].starts_with("model.layers.0.self_attn.q_proj [3, 4, 16] min "));
  CHECK(contains(lines[0], " max "));
  CHECK(contains(lines[0], " mean "));
  CHECK(contains(lines[0], " …\n"));

  auto index = std::make_shared<const CheckpointIndex>(good(open_checkpoint(folder / "values.safetensors")));
  std::set<std::string> names;
  for (const TensorInfo& t : index->tensors()) names.insert(t.name);
  CHECK(names.size() == lines.size());
  CHECK(names.contains("model.layers.1.self_attn.o_proj"));
  CHECK(names.contains("model.layers.1.self_attn.o_proj(2)"));
  CheckpointData data(index);
  const auto second = good(data.read_f32(*index->find("logits(2)")));
  CHECK(std::equal(second.begin(), second.end(), logits.begin() + 3 * 64));
}

TEST_CASE("the print hook: without filter everything, what is not finite is said") {
  const TemporaryFolder folder;
  std::FILE* out = std::fopen((folder / "printed.txt").c_str(), "w+");
  REQUIRE(out != nullptr);
  const PrintHook hook = make_print_hook({.out = out});
  const std::vector<float> values = {1.0F, INFINITY, 2.0F};
  hook.hook({"a.b", {3}, values});
  hook.hook({"nothing", {0}, {}});
  CHECK(hook.finish().ok());
  std::rewind(out);
  char line[4096];
  REQUIRE(std::fgets(line, sizeof line, out) != nullptr);
  CHECK(contains(line, "a.b [3] min 1 max inf"));
  CHECK(contains(line, "NOT FINITE 1"));
  REQUIRE(std::fgets(line, sizeof line, out) != nullptr);
  CHECK(std::string(line) == "nothing [0]\n");
  std::fclose(out);
}

TEST_CASE("an export that cannot be written is an error of finish") {
  const PrintHook hook = make_print_hook({.export_path = "/nonexistent/folder/x.safetensors"});
  const std::vector<float> values = {1.0F};
  hook.hook({"a", {1}, values});
  CHECK_FALSE(hook.finish().ok());
}

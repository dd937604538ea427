#include <doctest/doctest.h>

#include "runtime/base/json.h"
#include "runtime/checkpoint/inspect.h"
#include "runtime/checkpoint/name_patterns.h"
#include "runtime/checkpoint/open.h"
#include "tests/runtime/base/temporary_folder.h"
#include "tests/runtime/checkpoint/safetensors_text.h"

using namespace modelc;

namespace {

using Names = std::vector<std::string>;

Names patterns(const Names& names) {
  Names out;
  for (const NamePattern& p : group_names(names)) out.push_back(p.text + " x" + std::to_string(p.count));
  return out;
}

Names layers(int n, const std::string& rest) {
  Names out;
  for (int i = 0; i < n; ++i) out.push_back("model.layers." + std::to_string(i) + "." + rest);
  return out;
}

}  // namespace

TEST_CASE("names become patterns") {
  CHECK(patterns(layers(80, "inv_freq")) == Names{"model.layers.{0..79}.inv_freq x80"});
  CHECK(patterns({"a", "b.1", "a.b"}) == Names{"a x1", "b.1 x1", "a.b x1"});
  CHECK(patterns({"a.0", "a.1", "a.3", "a.10", "a.11", "a.12"}) == Names{"a.{0,1,3,10..12} x6"});
  // Two columns, a product.
  Names experts;
  for (int l = 0; l < 3; ++l)
    for (int e = 0; e < 4; ++e) experts.push_back("l." + std::to_string(l) + ".e." + std::to_string(e) + ".w");
  CHECK(patterns(experts) == Names{"l.{0..2}.e.{0..3}.w x12"});
  // No product any more: exactly the names that are there.
  experts.erase(experts.begin() + 5);
  CHECK(patterns(experts) == Names{"l.{0,2}.e.{0..3}.w x8", "l.1.e.{0,2,3}.w x3"});
  // Only whole numbers as they are printed stand for numbers.
  CHECK(patterns({"a.01", "a.1", "h0.x", "h1.x"}) == Names{"a.01 x1", "a.1 x1", "h0.x x1", "h1.x x1"});
  CHECK(patterns({"a.18446744073709551615", "a.18446744073709551616"}).size() == 2);
  CHECK(patterns({"a.1", "a.1"}) == Names{"a.1 x2"});
  CHECK(patterns({"a.#", "a.1", "a.2"}) == Names{"a.# x1", "a.{1,2} x2"});
  CHECK(patterns({"", "."}) == Names{" x1", ". x1"});
  // Every name is in one pattern.
  const std::vector<NamePattern> all = group_names(experts);
  CHECK(all[1].members == std::vector<std::size_t>{4, 5, 6});
  CHECK(all[0].parts == Names{"l", "{0,2}", "e", "{0..3}", "w"});
}

TEST_CASE("a hostile name costs little") {
  std::string dots(1'000'000, '.');
  for (std::size_t i = 0; i < dots.size(); i += 2) dots[i] = '1';
  CHECK(group_names(Names{dots, dots + "2"}).size() == 2);
  Names scattered;
  for (int i = 0; i < 20'000; ++i) scattered.push_back("a." + std::to_string(i) + "." + std::to_string(i * 7919 % 20'011));
  CHECK(group_names(scattered).size() == 20'000);
}

TEST_CASE("lines for a message are few") {
  Names names = layers(80, "inv_freq");
  names.push_back("odd\nname");
  CHECK(name_lines(names) == Names{"model.layers.{0..79}.inv_freq, 80 tensors", "odd\\nname"});
  Names many;
  for (int i = 0; i < 30; ++i) many.push_back("x" + std::to_string(i) + ".w");
  const Names lines = name_lines(many, 3);
  REQUIRE(lines.size() == 4);
  CHECK(lines[3] == "… and 27 more");
  for (int i = 0; i < 30; ++i) many.push_back("y" + std::to_string(i) + ".0"), many.push_back("y" + std::to_string(i) + ".1");
  CHECK(name_lines(many, 3)[3] == "… and 57 more patterns (87 tensors)");
}

TEST_CASE("a checkpoint as a tree") {
  test::TemporaryFolder folder;
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"}";
  std::uint64_t at = 0;
  const auto add = [&](const std::string& name, const std::string& dtype, const std::string& shape, std::uint64_t bytes) {
    header += "," + test::entry(name, dtype, shape, at, at + bytes);
    at += bytes;
  };
  add("lm_head.weight", "BF16", "[10,4]", 80);
  add("model.embed_tokens.weight", "BF16", "[10,4]", 80);
  for (int i : {0, 1, 10, 2}) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    add(layer + "norm.weight", "F32", "[4]", 16);
    add(layer + "mlp.up.weight", "BF16", i == 10 ? "[3,4]" : "[2,4]", i == 10 ? 24 : 16);
    add(layer + "mlp.up.bias", "BF16", "[2]", 4);
  }
  folder.write("model.safetensors", test::safetensors(header + "}", static_cast<std::size_t>(at)));
  folder.write("config.json", "{\"model_type\": \"llama\"}");
  folder.write("tokenizer.json", "{}");
  const Result<CheckpointIndex> index = open_checkpoint(folder.path());
  REQUIRE(index.ok());
  CHECK(inspect_text(*index) == folder.path() + R"(: safetensors, 1 file, 14 tensors, 140 elements, 312 B
encodings: f32 4 tensors 64 B; bf16 10 tensors 248 B
beside: config.json, tokenizer.json

lm_head.weight            bf16  [10, 4]  80 B
model
  embed_tokens.weight     bf16  [10, 4]  80 B
  layers
    {0..2,10}
      norm.weight         f32   [4]      4 x 16 B
      mlp.up.bias         bf16  [2]      4 x 4 B
    {0..2}.mlp.up.weight  bf16  [2, 4]   3 x 16 B
    10.mlp.up.weight      bf16  [3, 4]   24 B

metadata of model.safetensors
  format = "pt"
)");
  InspectOptions every;
  every.every_tensor = true;
  const std::string all = inspect_text(*index, every);
  CHECK(all.find("\n    10\n") != std::string::npos);
  CHECK(all.find("{") == std::string::npos);

  const Result<Json> json = parse_json(inspect_json(*index));
  REQUIRE(json.ok());
  CHECK(json->find("tensors")->as_array()->size() == 14);
  const Json& tensor = (*json->find("tensors")->as_array())[0];
  CHECK(*tensor.find("name")->as_string() == "lm_head.weight");
  CHECK(*tensor.find("dtype")->as_string() == "bf16");
  CHECK(tensor.find("bytes")->as_int() == 80);
  CHECK(*tensor.find("file")->as_string() == "model.safetensors");
  CHECK(*json->find_path("config.model_type")->as_string() == "llama");
  CHECK(json->find("bytes")->as_int() == 312);
  CHECK(json->find_path("encodings.f32.bytes")->as_int() == 64);
}

TEST_CASE("several files are told apart") {
  test::TemporaryFolder folder;
  folder.write("model-00001-of-00002.safetensors", test::safetensors_of(Names{"l.0.w", "l.1.w", "a"}));
  folder.write("model-00002-of-00002.safetensors", test::safetensors_of(Names{"l.2.w", "b\x7f"}));
  const Result<CheckpointIndex> index = open_checkpoint(folder.path());
  REQUIRE(index.ok());
  const std::string text = inspect_text(*index);
  CHECK(text.find("l.{0..2}.w  f32  [1]  3 x 4 B  2 files\n") != std::string::npos);
  CHECK(text.find("b\\x7f") != std::string::npos);
  CHECK(text.find("4 B      model-00002-of-00002.safetensors\n") != std::string::npos);
}

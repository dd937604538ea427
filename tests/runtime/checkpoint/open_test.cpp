#include <doctest/doctest.h>

#include <filesystem>

#include "runtime/checkpoint/open.h"
#include "tests/runtime/base/temporary_folder.h"
#include "tests/runtime/checkpoint/safetensors_text.h"

using namespace modelc;
namespace fs = std::filesystem;

namespace {

using Names = std::vector<std::string>;

std::string file_of(const Names& names) { return test::safetensors_of(names); }

std::string index_of(const std::vector<std::pair<std::string, std::string>>& map, int total) {
  std::string text = "{\"metadata\": {\"total_size\": " + std::to_string(total) + "},\n \"weight_map\": {";
  for (std::size_t i = 0; i < map.size(); ++i) text += (i ? ",\n  \"" : "\n  \"") + map[i].first + "\": \"" + map[i].second + "\"";
  return text + "}}\n";
}

constexpr const char* index_name = "model.safetensors.index.json";
constexpr const char* first = "model-00001-of-00002.safetensors";
constexpr const char* second = "model-00002-of-00002.safetensors";

// A folder of two files and their index.
struct TwoShards : test::TemporaryFolder {
  TwoShards() {
    write(first, file_of({"a", "b"}));
    write(second, file_of({"c"}));
    write(index_name, index_of({{"a", first}, {"b", first}, {"c", second}}, 12));
  }
};

CheckpointIndex opened(const std::string& path, const OpenOptions& options = {}) {
  Result<CheckpointIndex> r = open_checkpoint(path, options);
  if (!r) FAIL(r.error().text());
  return *std::move(r);
}

Error refused(const std::string& path, const OpenOptions& options = {}) {
  const Result<CheckpointIndex> r = open_checkpoint(path, options);
  REQUIRE_FALSE(r.ok());
  return r.error();
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a folder with an index") {
  TwoShards folder;
  folder.write("config.json", "{\n  \"model_type\": \"llama\",\n  \"rope_theta\": 1e4\n}\n");
  folder.write("tokenizer.json", "{}");
  folder.write("generation_config.json", "{}");
  const CheckpointIndex index = opened(folder.path());
  CHECK(index.tensors().size() == 3);
  CHECK(index.files().size() == 2);
  CHECK(index.file_of(*index.find("c")).label == second);
  CHECK(index.config->root.find("rope_theta")->line() == 3);
  CHECK(index.tokenizer_json == folder / "tokenizer.json");
  CHECK(index.generation_config_json == folder / "generation_config.json");
  CHECK(index.tokenizer_config_json.empty());
  CHECK(index.notes.empty());
  CHECK(index.total_bytes() == 12);
  CHECK(index.find("d") == nullptr);
  // The index file stands for its folder.
  CHECK(opened(folder / index_name).tensors().size() == 3);
  CHECK(opened(folder.path() + "/").tensors().size() == 3);
}

TEST_CASE("the index is checked both ways") {
  TwoShards folder;
  folder.write(index_name, index_of({{"a", first}, {"b", first}, {"c", second}, {"d", second}}, 12));
  Error e = refused(folder.path());
  CHECK(e.kind == "index-missing-tensor");
  CHECK(contains(e.text(), "d"));
  folder.write(index_name, index_of({{"a", first}, {"c", second}}, 12));
  e = refused(folder.path());
  CHECK(e.kind == "index-extra-tensor");
  CHECK(e.notes[0] == "b");
  folder.write(index_name, index_of({{"a", first}, {"b", second}, {"c", second}}, 12));
  e = refused(folder.path());
  CHECK(e.kind == "index-wrong-shard");
  CHECK(contains(e.message, "\"b\" is in \"" + std::string(first) + "\", not in \"" + second + "\""));
  folder.write(index_name, index_of({{"a", first}, {"b", first}, {"c", second}}, 13));
  CHECK(opened(folder.path()).notes == Names{"model.safetensors.index.json gives a total of 13 bytes; the files hold 12"});
}

TEST_CASE("an index of another model groups what is missing") {
  test::TemporaryFolder folder;
  Names names;
  std::vector<std::pair<std::string, std::string>> map;
  for (int i = 0; i < 80; ++i)
    map.emplace_back("model.layers." + std::to_string(i) + ".self_attn.rotary_emb.inv_freq", "model.safetensors");
  map.emplace_back("a", "model.safetensors");
  folder.write("model.safetensors", file_of({"a"}));
  folder.write(index_name, index_of(map, 4));
  const Error e = refused(folder.path());
  CHECK(e.kind == "index-missing-tensor");
  CHECK(e.notes[0] == "model.layers.{0..79}.self_attn.rotary_emb.inv_freq, 80 tensors");
}

TEST_CASE("an index that is wrong in itself") {
  TwoShards folder;
  for (const char* text : {"", "[]", "{}", "{\"weight_map\": []}", "{\"weight_map\": {}}", "{\"weight_map\": {\"a\": 1}}",
                           "{\"weight_map\": {\"a\": \"x\", \"a\": \"y\"}}", "{\"weight_map\": {\"a\": \"x\"}"}) {
    CAPTURE(text);
    folder.write(index_name, text);
    CHECK(refused(folder.path()).kind == "index-json");
  }
  folder.write(index_name, "{\"weight_map\":" + std::string(1000, '[') + std::string(1000, ']') + "}");
  CHECK(refused(folder.path()).kind == "json-depth");
  for (const char* entry : {"../x.safetensors", "/etc/passwd", "a/../../x", "..", ".", "", "a//b", "./x", "..\\\\x", "x\\u0000y", "a/"}) {
    CAPTURE(entry);
    folder.write(index_name, index_of({{"a", entry}}, 4));
    CHECK(refused(folder.path()).kind == "path-escape");
  }
}

TEST_CASE("missing files are listed") {
  TwoShards folder;
  fs::remove(folder / second);
  Error e = refused(folder.path());
  CHECK(e.kind == "missing-shard");
  CHECK(contains(e.message, "1 file of the 2 in model.safetensors.index.json is missing: model-00002-of-00002.safetensors (1 tensor)"));
  CHECK_FALSE(e.help.empty());
  fs::remove(folder / first);
  CHECK(contains(refused(folder.path()).message, "2 files of the 2"));
}

TEST_CASE("numbered files without an index") {
  TwoShards folder;
  fs::remove(folder / index_name);
  CHECK(opened(folder.path()).tensors().size() == 3);
  folder.write("consolidated.safetensors", file_of({"a"}));
  const CheckpointIndex index = opened(folder.path());
  CHECK(index.tensors().size() == 3);
  CHECK(index.notes == Names{"consolidated.safetensors is left out"});
  fs::remove(folder / first);
  const Error e = refused(folder.path());
  CHECK(e.kind == "missing-shard");
  CHECK(contains(e.message, "1 file of 2 is missing: number 1"));
  folder.write(first, file_of({"a", "b"}));
  folder.write("other-00001-of-00001.safetensors", file_of({"x"}));
  CHECK(refused(folder.path()).kind == "ambiguous-checkpoint");
  test::TemporaryFolder wrong;
  wrong.write("model-00005-of-00002.safetensors", file_of({"a"}));
  CHECK(refused(wrong.path()).kind == "missing-shard");
  test::TemporaryFolder huge;
  huge.write("model-00001-of-18446744073709551615.safetensors", file_of({"a"}));
  CHECK(refused(huge.path()).kind == "missing-shard");
}

TEST_CASE("a single file, alone or among others") {
  test::TemporaryFolder folder;
  folder.write("model.safetensors", file_of({"a"}));
  CHECK(opened(folder.path()).tensors().size() == 1);
  folder.write("adapter.safetensors", file_of({"x"}));
  CHECK(opened(folder.path()).notes == Names{"adapter.safetensors is left out"});
  folder.write("config.json", "{\"a\": 1}");
  CHECK(opened(folder / "model.safetensors").config->root.find("a")->as_int() == 1);
  CHECK(opened(folder / "adapter.safetensors").find("x") != nullptr);
  fs::remove(folder / "model.safetensors");
  CHECK(opened(folder.path()).find("x") != nullptr);
  folder.write("more.safetensors", file_of({"y"}));
  CHECK(opened(folder.path()).tensors().size() == 2);
  folder.write("more.safetensors", file_of({"x"}));
  const Error e = refused(folder.path());
  CHECK(e.kind == "duplicate-name");
  CHECK(contains(e.message, "\"x\": both \"adapter.safetensors\" and \"more.safetensors\""));
}

TEST_CASE("two models in a folder are not guessed between") {
  TwoShards folder;
  folder.write("model.safetensors", file_of({"a", "b", "c"}));
  const Error e = refused(folder.path());
  CHECK(e.kind == "ambiguous-checkpoint");
  CHECK(opened(folder / "model.safetensors").files().size() == 1);
  CHECK(opened(folder / index_name).files().size() == 2);
}

TEST_CASE("one name in two files of an index") {
  TwoShards folder;
  folder.write(second, file_of({"c", "a"}));
  const Error e = refused(folder.path());
  CHECK(e.kind == "duplicate-name");
  CHECK(contains(e.message, first));
  CHECK(contains(e.message, second));
}

TEST_CASE("a list of files") {
  TwoShards folder;
  const Result<CheckpointIndex> both = open_checkpoint(Names{folder / second, folder / first});
  REQUIRE(both.ok());
  CHECK(both->tensors().size() == 3);
  CHECK(both->tensors()[0].name == "c");
  const auto kind = [](const Names& paths) { return open_checkpoint(paths).error().kind; };
  CHECK(kind({folder / first, folder / first}) == "duplicate-file");
  fs::create_symlink(first, folder / "again.safetensors");
  CHECK(kind({folder / first, folder / "again.safetensors"}) == "duplicate-file");
  CHECK(kind({folder / first, folder / "none.safetensors"}) == "no-such-file");
  CHECK(kind({folder / first, folder.path()}) == "not-a-file");
  CHECK(kind({folder / first, folder.write("x.bin", "abc")}) == "pickle");
  CHECK(kind({}) == "no-such-file");
  CHECK(open_checkpoint(Names{folder.path()}).ok());
  const CheckpointIndex part = opened(folder / first);
  CHECK(part.notes == Names{"model-00001-of-00002.safetensors is part 1 of 2; name its folder to open all of them"});
}

TEST_CASE("links of a hub cache are followed") {
  TwoShards blobs;
  test::TemporaryFolder cache;
  fs::create_directories(cache / "snapshots/abc");
  for (const char* name : {first, second, index_name}) fs::create_symlink(blobs / name, cache / ("snapshots/abc/" + std::string(name)));
  CHECK(opened(cache / "snapshots/abc").tensors().size() == 3);
  const Error e = refused(cache.path());
  CHECK(e.kind == "no-weights");
  CHECK(contains(e.help, cache / "snapshots/abc"));
  fs::remove(blobs / second);
  const Error broken = refused(cache / "snapshots/abc");
  CHECK(broken.kind == "no-such-file");
  CHECK(contains(broken.message, "it is a link to"));
  // A blob has no telling name.
  blobs.write("0123abcd", file_of({"q"}));
  CHECK(opened(blobs / "0123abcd").find("q") != nullptr);
}

TEST_CASE("what is no checkpoint says what to do") {
  test::TemporaryFolder folder;
  Error e = refused(folder / "none");
  CHECK(e.kind == "no-such-file");
  CHECK(contains(refused("meta-llama/Llama-3.2-1B").help, "hf download meta-llama/Llama-3.2-1B"));
  CHECK(contains(refused(folder / "none/deeper/x").help, "does not exist either"));
  CHECK(refused("").kind == "no-such-file");
  fs::create_directory(folder / "empty");
  e = refused(folder / "empty");
  CHECK(e.kind == "no-weights");
  CHECK(contains(e.message, "is empty"));
  folder.write("text/readme.md", "x");
  e = refused(folder / "text");
  CHECK(e.kind == "no-weights");
  CHECK(contains(e.text(), "readme.md"));
  CHECK_FALSE(e.help.empty());

  folder.write("torch/pytorch_model.bin", "PK");
  e = refused(folder / "torch");
  CHECK(e.kind == "pickle");
  CHECK(contains(e.help, "save_pretrained"));
  CHECK(refused(folder.write("x.pt", "PK")).kind == "pickle");
  CHECK(refused(folder.write("x.pth", "PK")).kind == "pickle");

  // A GGUF is known by its name, or by its first bytes where the name does not tell.
  e = refused(folder.write("gguf/model.gguf", "GGUF"));
  CHECK(e.kind == "truncated");
  CHECK(refused(folder / "gguf").kind == "truncated");
  CHECK(refused(folder.write("blob", "GGUF\x03")).kind == "truncated");
  const std::string gguf = test::slurp(std::string(MODELC_SOURCE_DIR) + "/tests/runtime/checkpoint/cases/gguf/ok_min.gguf");
  CHECK(opened(folder.write("whole/0123abcd", gguf)).find("a") != nullptr);
  folder.write("of_one/model.gguf", gguf);
  CHECK(opened(folder / "of_one").format == CheckpointFormat::gguf);
  folder.write("of_one/other.gguf", gguf);
  CHECK(refused(folder / "of_one").kind == "ambiguous-checkpoint");
  CHECK(refused(folder.write("x.onnx", "x")).kind == "not-a-checkpoint");
  CHECK(refused(folder.write("x.json", "{}")).kind == "not-a-checkpoint");
}

TEST_CASE("the config") {
  test::TemporaryFolder folder;
  folder.write("model.safetensors", file_of({"a"}));
  CHECK_FALSE(opened(folder.path()).config);
  OpenOptions need;
  need.need_config = true;
  Error e = refused(folder.path(), need);
  CHECK(e.kind == "no-config");
  CHECK(contains(e.message, folder.path()));
  CHECK(contains(e.help, "--config"));
  CHECK(refused(folder / "model.safetensors", need).kind == "no-config");
  folder.write("config.json", "{\n \"a\": 1,\n \"b\": tru}\n");
  e = refused(folder.path());
  CHECK(e.kind == "json-syntax");
  CHECK(contains(e.message, "config.json:3:7"));
  folder.write("config.json", "[]");
  CHECK(refused(folder.path()).kind == "config-json");
  folder.write("config.json", "{\"a\": Infinity}");
  CHECK(opened(folder.path(), need).config->root.find("a")->as_double() > 1e308);
  fs::remove(folder / "config.json");
  fs::create_symlink("nowhere", folder / "config.json");
  CHECK(contains(refused(folder.path()).message, "link to \"nowhere\""));
}

// The files of cases/ and the verdict that each must get (MANIFEST.tsv).
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <map>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/tensor_data.h"
#include "tests/runtime/base/temporary_folder.h"
#include "tests/runtime/checkpoint/safetensors_text.h"

using namespace modelc;

namespace {

const std::string cases = std::string(MODELC_SOURCE_DIR) + "/tests/runtime/checkpoint/cases/";

std::string verdict_of(const std::string& path) {
  const Result<CheckpointIndex> r = open_checkpoint(path);
  return r ? "ok" : "reject:" + r.error().kind;
}

Error error_of(const std::string& path) {
  const Result<CheckpointIndex> r = open_checkpoint(path);
  REQUIRE_FALSE(r.ok());
  return r.error();
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("every case gets its verdict") {
  const std::string manifest = test::slurp(cases + "MANIFEST.tsv");
  std::size_t rows = 0;
  for (std::string_view line : split(manifest, '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string_view> columns = split(line, '\t');
    REQUIRE(columns.size() == 4);
    if (columns[0] == "file" || columns[2].starts_with('(')) continue;
    ++rows;
    std::string path = cases + std::string(columns[0]);
    CAPTURE(path);
    CHECK(verdict_of(path) == columns[2]);
    // An index is also what its folder is opened by.
    if (path.ends_with(".index.json")) CHECK(verdict_of(path.substr(0, path.rfind('/'))) == columns[2]);
  }
  CHECK(rows == 18);
}

TEST_CASE("deep nesting is refused without deep recursion") {
  test::TemporaryFolder folder;
  const std::string deep = "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  CHECK(verdict_of(folder.write("bad_depth.safetensors", test::safetensors(deep))) == "reject:json-depth");
}

TEST_CASE("the messages say what is wrong") {
  const Error twice = error_of(cases + "st/bad_dup.safetensors");
  CHECK(contains(twice.message, "bad_dup.safetensors"));
  CHECK(contains(twice.message, "duplicate key \"a\""));
  CHECK(contains(twice.message, "byte 62"));
  CHECK(contains(twice.message, "byte 9"));
  CHECK(contains(error_of(cases + "st/bad_html.safetensors").message, "HTML page"));
  CHECK(contains(error_of(cases + "st/bad_trailing.safetensors").help, "--allow-trailing-bytes"));
  const Error size = error_of(cases + "st/bad_size_mismatch.safetensors");
  CHECK(contains(size.message, "tensor \"a\""));
  CHECK(contains(size.message, "F64 [4] takes 32 bytes"));
  CHECK(contains(size.message, "span 16"));
  const Error past = error_of(cases + "st/bad_past_eof.safetensors");
  CHECK(contains(past.message, "3,999,996 bytes missing"));
  const Error overlap = error_of(cases + "st/bad_overlap.safetensors");
  CHECK(contains(overlap.message, "\"a\" and \"b\" overlap: bytes 4 to 8"));
  const Error shard = error_of(cases + "idx_missing");
  CHECK(contains(shard.message, "model-00002-of-00002.safetensors (1 tensor)"));
  CHECK(contains(shard.message, "1 file of the 2"));
  const Error escape = error_of(cases + "idx_traversal");
  CHECK(contains(escape.message, "model.safetensors.index.json:1:"));
  CHECK(contains(escape.message, "\"../st/ok_min.safetensors\" of tensor \"a\""));
  for (const char* name :
       {"st/bad_len_max", "st/bad_len_gt_file", "st/bad_short", "st/bad_notdict", "st/bad_float_offset"})
    CHECK(contains(error_of(cases + name + ".safetensors").message, std::string(name).substr(3)));
}

TEST_CASE("the good files are read right") {
  OpenOptions lenient;
  lenient.allow_trailing = true;
  const Result<CheckpointIndex> trailing = open_checkpoint(cases + "st/bad_trailing.safetensors", lenient);
  REQUIRE(trailing.ok());
  CHECK(trailing->notes == std::vector<std::string>{"bad_trailing.safetensors: 4 bytes of data belong to no tensor"});

  const Result<CheckpointIndex> odd = open_checkpoint(cases + "st/ok_odd_names.safetensors");
  REQUIRE(odd.ok());
  CHECK(odd->find("model.layers.0.class.operator.weight") != nullptr);
  CHECK(odd->find("x.ü.1") != nullptr);

  const Result<CheckpointIndex> scalar = open_checkpoint(cases + "st/ok_scalar_empty.safetensors");
  REQUIRE(scalar.ok());
  CHECK(scalar->find("s")->shape.empty());
  CHECK(scalar->find("s")->elements() == 1);
  CHECK(scalar->find("e")->shape == std::vector<std::int64_t>{0, 4});
  CHECK(scalar->find("e")->elements() == 0);
  CheckpointData data(std::make_shared<CheckpointIndex>(*scalar));
  CHECK(data.read_f32(*scalar->find("e"))->empty());
  CHECK(data.read_f32(*scalar->find("s"))->size() == 1);
}

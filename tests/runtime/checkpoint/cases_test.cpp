// The files of cases/ and the verdict that each must get (MANIFEST.tsv).
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
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

// Every row of a MANIFEST.tsv (file, bytes, verdict, reason) against what is read here; gives the number of rows.
std::size_t check_manifest(const std::string& folder) {
  const std::string manifest = test::slurp(folder + "MANIFEST.tsv");
  std::size_t rows = 0;
  for (std::string_view line : split(manifest, '\n')) {
    const std::vector<std::string_view> columns = split(line, '\t');
    if (columns.size() != 4 || columns[0] == "file" || columns[2].starts_with('(')) continue;
    ++rows;
    std::string path = folder + std::string(columns[0]);
    CAPTURE(path);
    CHECK(verdict_of(path) == columns[2]);
    // An index is also what its folder is opened by.
    if (path.ends_with(".index.json")) CHECK(verdict_of(path.substr(0, path.rfind('/'))) == columns[2]);
  }
  return rows;
}

TEST_CASE("every case gets its verdict") { CHECK(check_manifest(cases) == 97); }

// MODELC_CHECKPOINT_CASES names a folder of further cases with a MANIFEST.tsv of the same form.
TEST_CASE("further cases get their verdicts") {
  const char* folder = std::getenv("MODELC_CHECKPOINT_CASES");
  if (!folder) return;
  CHECK(check_manifest(std::string(folder) + "/") > 0);
}

TEST_CASE("tensors of a GGUF, of every type") {
  const Result<CheckpointIndex> r = open_checkpoint(cases + "gguf/ok_types.gguf");
  REQUIRE(r.ok());
  CHECK(r->format == CheckpointFormat::gguf);
  CHECK(r->tensors().size() == 33);
  CHECK(r->find("t12")->encoding == Encoding::q4_k);
  CHECK(r->find("t12")->shape == std::vector<std::int64_t>{1, 256});
  CHECK(r->find("t40")->encoding == Encoding::nvfp4);
  for (const TensorInfo& t : r->tensors()) CHECK(t.offset % 32 == 0);
}

TEST_CASE("metadata of a GGUF, of every type") {
  const Result<CheckpointIndex> r = open_checkpoint(cases + "gguf/ok_values.gguf");
  REQUIRE(r.ok());
  REQUIRE(r->metadata);
  const Metadata& m = *r->metadata;
  CHECK(m.find("general.architecture")->as_string() == "tiny");
  for (const char* key : {"k0", "k1", "k2", "k3", "k4", "k5", "k10", "k11"}) CHECK(m.find(key)->as_int() == 1);
  CHECK(m.find("k6")->as_double() == 1.0);
  CHECK(m.find("k12")->as_double() == 1.0);
  CHECK(m.find("k7")->as_bool() == true);
  CHECK(m.find("bytes")->as_string() == std::string_view("\xff\0", 2));
  CHECK(m.find("none")->is_array());
  CHECK(m.find("none")->size() == 0);
  CHECK(m.find("words")->at(2).as_string() == "ccc");
  CHECK(m.find("numbers")->at(1).as_double() == -1.0);
  CHECK(m.find("nested")->text() == "[[1, 2], [\"x\"], [[-5]]]");
  // The bytes of an entry survive a copy.
  MetadataBuilder again;
  for (std::size_t i = 0; i < m.size(); ++i) again.add_value(m.key(i), m.value(i));
  const Metadata copy = again.build();
  for (std::size_t i = 0; i < m.size(); ++i) CHECK(copy.value(i).text(100) == m.value(i).text(100));
  CHECK(std::equal(copy.bytes().begin(), copy.bytes().end(), m.bytes().begin(), m.bytes().end()));
}

TEST_CASE("the parts of a split GGUF are one checkpoint, whichever is named") {
  for (const char* part : {"two-00001-of-00002", "two-00002-of-00002"}) {
    const Result<CheckpointIndex> r = open_checkpoint(cases + "gguf/split/" + part + ".gguf");
    REQUIRE(r.ok());
    CHECK(r->files().size() == 2);
    CHECK(r->find("a") != nullptr);
    CHECK(r->find("b") != nullptr);
    CHECK(r->metadata->find("general.architecture")->as_string() == "tiny");
  }
  const Error lost = error_of(cases + "gguf/split/lost-00001-of-00002.gguf");
  CHECK(contains(lost.message, "lost-00002-of-00002.gguf"));
  CHECK(contains(error_of(cases + "gguf/split/renamed.gguf").help, "NAME-00001-of-00002.gguf"));
}

TEST_CASE("the messages of GGUF say what is wrong") {
  CHECK(contains(error_of(cases + "gguf/bad_trunc1.gguf").message, "needs a file of 160 bytes; it has 159, 1 too few"));
  CHECK(contains(error_of(cases + "gguf/bad_dup.gguf").message, "duplicate tensor \"a\""));
  CHECK(contains(error_of(cases + "gguf/bad_dup_key.gguf").message, "duplicate metadata key \"k\""));
  CHECK(contains(error_of(cases + "gguf/bad_q4k_96.gguf").message, "rows of 96 elements are no multiple of its blocks of 256"));
  CHECK(contains(error_of(cases + "gguf/bad_type4.gguf").message, "Q4_2"));
  CHECK(contains(error_of(cases + "gguf/bad_big_endian.gguf").message, "big-endian"));
  CHECK(contains(error_of(cases + "gguf/bad_html.gguf").message, "HTML page"));
  CHECK(contains(error_of(cases + "gguf/bad_trailing.gguf").help, "--allow-trailing-bytes"));
  CHECK(contains(error_of(cases + "gguf/bad_count_tensors.gguf").message, "promises 1,152,921,504,606,846,976 tensors"));
}

TEST_CASE("deep nesting is refused without deep recursion") {
  test::TemporaryFolder folder;
  const std::string open = "{\"a\":" + std::string(100'000, '[');
  CHECK(verdict_of(folder.write("open.safetensors", test::safetensors(open))) == "reject:json-depth");
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
  for (const char* name : {"st/bad_len_max", "st/bad_len_gt_file", "st/bad_short", "st/bad_notdict", "st/bad_float_offset"})
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

// The reader of GGUF headers on files of any size and in any state of damage. What each single fault is called stands
// in cases/MANIFEST.tsv.
#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <random>

#include "runtime/checkpoint/gguf/reader.h"
#include "runtime/checkpoint/gguf/writer.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/tensor_data.h"
#include "tests/runtime/base/temporary_folder.h"

using namespace modelc;

namespace {

const std::string cases = std::string(MODELC_SOURCE_DIR) + "/tests/runtime/checkpoint/cases/gguf/";

std::string number(std::uint64_t n, int bytes) {
  std::string s;
  for (int i = 0; i < bytes; ++i) s += static_cast<char>(n >> 8 * i & 0xff);
  return s;
}
std::string text(std::string_view s) { return number(s.size(), 8) + std::string(s); }

}  // namespace

TEST_CASE("20,000 tensors and a vocabulary of 256,000 texts are opened in no time") {
  test::TemporaryFolder folder;
  constexpr std::uint64_t count = 20'000, words = 256'000;
  std::string file = "GGUF" + number(3, 4) + number(count, 8) + number(2, 8);
  file += text("tokenizer.ggml.tokens") + number(9, 4) + number(8, 4) + number(words, 8);
  for (std::uint64_t i = 0; i < words; ++i) file += text("word" + std::to_string(i));
  file += text("tokenizer.ggml.scores") + number(9, 4) + number(6, 4) + number(words, 8) + std::string(words * 4, '\0');
  for (std::uint64_t i = 0; i < count; ++i)
    file += text("blk." + std::to_string(i) + ".ffn_gate.weight") + number(1, 4) + number(8, 8) + number(0, 4) + number(i * 32, 8);
  file.append(32 - file.size() % 32, '\0');
  file.append(count * 32, '\0');
  const std::string path = folder.write("x.gguf", file);
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t begin = std::clock();
    const Result<CheckpointIndex> index = open_checkpoint(path);
    REQUIRE(index.ok());
    for (std::uint64_t k = 0; k < count; ++k) REQUIRE_UNARY(index->find("blk." + std::to_string(k) + ".ffn_gate.weight"));
    best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    CHECK(index->metadata->find("tokenizer.ggml.tokens")->at(words - 1).as_string() == "word255999");
  }
  MESSAGE("opened and found in " << best * 1e3 << " ms");
  CHECK(best < 1.0);
}

TEST_CASE("a damaged GGUF is refused or read, never worse") {
  test::TemporaryFolder folder;
  std::mt19937 random(12);
  int accepted = 0;
  for (const char* name : {"ok_al64", "ok_values", "ok_types"}) {
    const std::string good = test::slurp(cases + name + ".gguf");
    std::size_t header = 0;
    {
      const Result<GgufHeader> r = read_gguf_header(cases + name + ".gguf");
      REQUIRE(r.ok());
      header = r->file.header_bytes;
    }
    for (std::size_t n = 0; n < std::min(good.size(), header + 1); ++n)
      CHECK_FALSE(read_gguf_header(folder.write("x.gguf", good.substr(0, n))).ok());
    for (int round = 0; round < 2'000; ++round) {
      std::string bytes = good;
      for (unsigned k = 0, edits = 1 + random() % 3; k < edits; ++k) {
        const std::size_t at = random() % header;
        switch (random() % 5) {
          case 0: bytes.insert(at, 1, static_cast<char>(random())); break;
          case 1: bytes.erase(at, 1); break;
          case 2: bytes[at] = static_cast<char>(0xff); break;
          case 3: bytes[at] = static_cast<char>(random() % 16); break;
          default: bytes[at] = static_cast<char>(random()); break;
        }
      }
      GgufOptions lenient;
      lenient.allow_trailing = true;
      const Result<GgufHeader> r = read_gguf_header(folder.write("x.gguf", bytes), lenient);
      if (!r) {
        REQUIRE_FALSE(r.error().kind.empty());
        continue;
      }
      ++accepted;
      for (const TensorInfo& t : r->tensors) {
        REQUIRE(t.size <= bytes.size());
        REQUIRE(t.offset <= bytes.size() - t.size);
        REQUIRE(static_cast<std::uint64_t>(*stored_bytes(t.encoding, t.shape)) == t.size);
      }
      for (std::size_t i = 0; i < r->metadata.size(); ++i) REQUIRE_FALSE(r->metadata.value(i).text(100).empty());
    }
  }
  CHECK(accepted > 100);  // the damage was not always fatal, so the checks above had something to see
}

TEST_CASE("what is written is read back, byte for byte") {
  test::TemporaryFolder folder;
  for (const char* original : {"ok_types", "ok_values", "ok_al64", "ok_scalar_empty", "ok_empty", "ok_out_of_order"}) {
    CAPTURE(original);
    Result<CheckpointIndex> opened = open_checkpoint(cases + original + ".gguf");
    REQUIRE(opened.ok());
    const auto index = std::make_shared<const CheckpointIndex>(*std::move(opened));
    CheckpointData data(index);
    std::vector<GgufTensor> tensors;
    for (const TensorInfo& t : index->tensors()) tensors.push_back({t.name, t.encoding, t.shape});
    std::vector<std::byte> kept;
    const auto bytes_of = [&](std::size_t i) -> Result<std::span<const std::byte>> {
      const Result<TensorBytes> b = data.bytes(index->tensors()[i]);
      if (!b) return b.error();
      kept.assign(b->data, b->data + b->size);
      return std::span<const std::byte>(kept);
    };
    std::size_t told = 0;
    const std::string path = folder / "out.gguf";
    const Status written = write_gguf(path, *index->metadata, tensors, bytes_of, [&](std::size_t, std::size_t) { ++told; });
    REQUIRE_MESSAGE(written.ok(), (written.ok() ? "" : written.error().text()));
    CHECK(told == tensors.size());
    CHECK(folder.count() == 1);
    Result<CheckpointIndex> reopened = open_checkpoint(path);
    REQUIRE_MESSAGE(reopened.ok(), (reopened.ok() ? "" : reopened.error().text()));
    CHECK(reopened->tensors().size() == tensors.size());
    CheckpointData again(std::make_shared<const CheckpointIndex>(*reopened));
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const TensorInfo* t = reopened->find(tensors[i].name);
      REQUIRE(t);
      CHECK(t->encoding == tensors[i].encoding);
      CHECK(t->shape == tensors[i].shape);
      const Result<std::span<const std::byte>> before = bytes_of(i);
      const Result<TensorBytes> after = again.bytes(*t);
      REQUIRE(after.ok());
      CHECK(std::equal(before->begin(), before->end(), after->data, after->data + after->size));
    }
    CHECK(std::equal(reopened->metadata->bytes().begin(), reopened->metadata->bytes().end(), index->metadata->bytes().begin(),
                     index->metadata->bytes().end()));
  }
}

TEST_CASE("what cannot be written is refused before there is a file") {
  test::TemporaryFolder folder;
  const std::string path = folder / "out.gguf";
  const std::vector<std::byte> bytes(32);
  const auto give = [&](std::size_t) -> Result<std::span<const std::byte>> { return std::span<const std::byte>(bytes); };
  const auto kind = [&](std::vector<GgufTensor> tensors, const Metadata& m = {}) {
    const Status s = write_gguf(path, m, tensors, give);
    return s ? "ok" : s.error().kind;
  };
  CHECK(kind({{std::string(65, 'n'), Encoding::f32, {8}}}) == "name-length");
  CHECK(kind({{"", Encoding::f32, {8}}}) == "name");
  CHECK(kind({{"a", Encoding::f32, {1, 1, 1, 1, 8}}}) == "ndims");
  CHECK(kind({{"a", Encoding::f8_e4m3, {32}}}) == "encoding");
  CHECK(kind({{"a", Encoding::q4_k, {96}}}) == "block-size");
  CHECK(kind({{"a", Encoding::f32, {-1}}}) == "shape");
  CHECK(kind({{"a", Encoding::f32, {8}}, {"a", Encoding::f32, {8}}}) == "duplicate-name");
  CHECK(kind({{"a", Encoding::f32, {9}}}) == "size-mismatch");
  CHECK(kind({{"a", Encoding::f32, {8}}}, MetadataBuilder().add_u32("general.alignment", 24).build()) == "alignment");
  CHECK(folder.count() == 0);
  const GgufTensor one[] = {{"a", Encoding::f32, {8}}};
  const Status failed = write_gguf(path, {}, one, [](std::size_t) -> Result<std::span<const std::byte>> {
    return Error{"disk", "no", {}, {}};
  });
  CHECK(failed.error().kind == "disk");
  CHECK(folder.count() == 0);
  CHECK(kind({{"a", Encoding::f32, {8}}}) == "ok");
}

// cases/make_package_gguf.py writes the file with the package `gguf`.
TEST_CASE("a file of the package gguf, read and written again, is the same bytes") {
  test::TemporaryFolder folder;
  const std::string original = std::string(MODELC_SOURCE_DIR) + "/tests/runtime/checkpoint/cases/package.gguf";
  Result<CheckpointIndex> opened = open_checkpoint(original);
  REQUIRE(opened.ok());
  const auto index = std::make_shared<const CheckpointIndex>(*std::move(opened));
  CheckpointData data(index);
  std::vector<GgufTensor> tensors;
  for (const TensorInfo& t : index->tensors()) tensors.push_back({t.name, t.encoding, t.shape});
  TensorBytes held;
  const Status written = write_gguf(folder / "x.gguf", *index->metadata, tensors, [&](std::size_t i) -> Result<std::span<const std::byte>> {
    Result<TensorBytes> b = data.bytes(index->tensors()[i]);
    if (!b) return std::move(b.error());
    held = *std::move(b);
    return held.bytes();
  });
  REQUIRE(written.ok());
  CHECK(test::slurp(folder / "x.gguf") == test::slurp(original));
}

// The reader of GGUF headers on files of any size and in any state of damage. What each single fault is called stands
// in cases/MANIFEST.tsv.
#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <random>

#include "runtime/checkpoint/gguf/reader.h"
#include "runtime/checkpoint/open.h"
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
    for (std::uint64_t k = 0; k < count; ++k)
      REQUIRE_UNARY(index->find("blk." + std::to_string(k) + ".ffn_gate.weight"));
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

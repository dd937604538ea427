// Ids and texts against those of the package `tokenizers`: files of cases of the examples and of this folder.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <filesystem>
#include <thread>

#include "runtime/base/json.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/utf8.h"

using namespace modelc;

namespace {

const std::string source = MODELC_SOURCE_DIR;

std::vector<std::int32_t> ids_of(const Json& value) {
  std::vector<std::int32_t> ids;
  for (const Json& id : *value.as_array()) ids.push_back(static_cast<std::int32_t>(*id.as_int()));
  return ids;
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids, bool skip_special) {
  StreamingDecoder decoder(tokenizer, skip_special);
  std::string text;
  for (const std::int32_t id : ids) {
    const std::string piece = decoder.push(id);
    CHECK(utf8::valid_prefix(piece) == piece.size());
    text += piece;
  }
  return text + decoder.finish();
}

// `rows_of_bytes`: with byte-fallback tokens, where a broken row streams otherwise than it is decoded.
void check_file(const std::string& tokenizer_file, const std::string& cases_file, bool rows_of_bytes = false) {
  CAPTURE(tokenizer_file);
  const Result<Tokenizer> loaded = Tokenizer::load(tokenizer_file);
  REQUIRE_MESSAGE(loaded, loaded.error().text());
  const Tokenizer& tokenizer = *loaded;
  CHECK(tokenizer.warnings().empty());
  const Result<JsonFile> file = read_json_file(cases_file);
  REQUIRE_MESSAGE(file, file.error().text());
  const JsonArray& cases = *file->root.find("cases")->as_array();
  const JsonArray& decode = *file->root.find("decode")->as_array();
  REQUIRE(cases.size() >= 50);
  REQUIRE(!decode.empty());
  for (const Json& c : cases) {
    const std::string& text = *c.find("text")->as_string();
    CAPTURE(text);
    const std::vector<std::int32_t> ids = ids_of(*c.find("ids")), full = ids_of(*c.find("ids_with_special"));
    const auto alone = tokenizer.encode(text, false), with = tokenizer.encode(text);
    REQUIRE_MESSAGE(alone, alone.error().text());
    REQUIRE(with);
    CHECK(*alone == ids);
    CHECK(*with == full);
    CHECK(tokenizer.decode(ids, false) == *c.find("decoded")->as_string());
    CHECK(tokenizer.decode(full, true) == *c.find("decoded_skip_special")->as_string());
    CHECK(streamed(tokenizer, ids, false) == *c.find("decoded")->as_string());
    CHECK(streamed(tokenizer, full, true) == *c.find("decoded_skip_special")->as_string());
  }
  for (const Json& d : decode) {
    const std::vector<std::int32_t> ids = ids_of(*d.find("ids"));
    const std::string& text = *d.find("text")->as_string();
    CAPTURE(text);
    CHECK(tokenizer.decode(ids, false) == text);
    if (!rows_of_bytes) CHECK(streamed(tokenizer, ids, false) == text);
  }
  if (const Json* pairs = file->root.find("pairs"))
    for (const Json& p : *pairs->as_array()) {
      const std::string &a = *p.find("first")->as_string(), &b = *p.find("second")->as_string();
      CAPTURE(a);
      CAPTURE(b);
      CHECK(*tokenizer.encode_pair(a, b) == ids_of(*p.find("ids_with_special")));
      CHECK(*tokenizer.encode_pair(a, b, false) == ids_of(*p.find("ids")));
    }
}

}  // namespace

TEST_CASE("tokenizers of the examples") {
  check_file(source + "/examples/tiny/tokenizer.json", source + "/examples/tiny/tokenizer_cases.json");
  for (const char* name : {"llama3", "qwen2"}) {
    const std::string folder = source + "/examples/llama/fixtures/tokenizers/" + name;
    check_file(folder, folder + "/cases.json");
  }
}

TEST_CASE("tokenizers of every make") {
  int count = 0;
  const std::string folder = source + "/tests/runtime/tokenizer/cases";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const std::size_t end = name.find(".tokenizer.json");
    if (end == std::string::npos) continue;
    const std::string stem = name.substr(0, end);
    check_file(entry.path().string(), folder + "/" + stem + ".cases.json",
               stem == "sentencepiece" || stem == "unigram_bytes" || stem == "gemma" || stem == "gemma_runs");
    ++count;
  }
  CHECK(count == 23);
}

TEST_CASE("what is no UTF-8 is read as Python reads it") {
  const Result<JsonFile> file = read_json_file(source + "/tests/runtime/tokenizer/cases/broken.json");
  REQUIRE(file);
  const Result<Tokenizer> tokenizer = Tokenizer::load(source + "/examples/tiny/tokenizer.json");
  REQUIRE(tokenizer);
  for (const Json& row : *file->root.as_array()) {
    const std::string& hex = *row.find("bytes")->as_string();
    CAPTURE(hex);
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    const std::string& text = *row.find("text")->as_string();
    CHECK(utf8::replace_invalid(bytes) == text);
    CHECK(*tokenizer->encode(bytes) == *tokenizer->encode(text));
    // The same when the bytes come one by one.
    utf8::Stream stream;
    std::string out;
    for (const char b : bytes) stream.push(std::string_view(&b, 1), out);
    stream.finish(out);
    CHECK(out == text);
  }
}

TEST_CASE("long words take no quadratic time, and are cut as short ones are") {
  for (const char* file : {"/examples/tiny/tokenizer.json", "/tests/runtime/tokenizer/cases/gemma.tokenizer.json",
                           "/tests/runtime/tokenizer/cases/unigram_bytes.tokenizer.json"}) {
    const Result<Tokenizer> tokenizer = Tokenizer::load(source + file);
    REQUIRE(tokenizer);
    const bool keeps_spaces = std::string_view(file).find("unigram") == std::string_view::npos;
    for (const std::string unit : {"a", " ", "\n", "abcde", "\xE6\xB2\xB3"}) {
      std::string text;
      while (text.size() < 1'000'000) text += unit;
      const auto ids = tokenizer->encode(text);
      REQUIRE(ids);
      if (keeps_spaces || unit[0] > ' ') CHECK(tokenizer->decode(*ids) == text);
    }
  }
  for (const char* stem : {"bert", "bert_cased", "t5", "clip", "marked_bpe", "word_level"}) {
    const Result<Tokenizer> tokenizer = Tokenizer::load(source + "/tests/runtime/tokenizer/cases/" + stem + ".tokenizer.json");
    REQUIRE(tokenizer);
    for (const std::string unit : {"a", " ", "!", "ab", "\xCC\x81"}) {
      std::string text;
      while (text.size() < 1'000'000) text += unit;
      CHECK(tokenizer->encode(text));
    }
  }
}

TEST_CASE("one tokenizer in several threads") {
  const Result<Tokenizer> tokenizer = Tokenizer::load(source + "/examples/tiny/tokenizer.json");
  REQUIRE(tokenizer);
  std::vector<std::string> texts;
  for (int i = 0; i < 300; ++i) texts.push_back("word" + std::to_string(i * 7919 % 300) + " and another one, it's " + std::to_string(i));
  std::vector<std::vector<std::int32_t>> expected;
  for (const std::string& t : texts) expected.push_back(*tokenizer->encode(t));
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t n = 0; n < wrong.size(); ++n)
    threads.emplace_back([&, n] {
      for (int round = 0; round < 10; ++round)
        for (std::size_t i = 0; i < texts.size(); ++i)
          if (*tokenizer->encode(texts[(i * (n + 1)) % texts.size()]) != expected[(i * (n + 1)) % texts.size()]) ++wrong[n];
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("a tokenizer that was moved works on") {
  Result<Tokenizer> loaded = Tokenizer::load(source + "/examples/tiny");
  REQUIRE(loaded);
  Tokenizer moved = std::move(*loaded);
  CHECK(moved.decode(*moved.encode("It is a truth")) == "It is a truth");
}

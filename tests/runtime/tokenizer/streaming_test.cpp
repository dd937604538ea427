// Decoding id by id.
#include <doctest/doctest.h>

#include "runtime/tokenizer/tokenizer.h"

using namespace modelc;

namespace {

Tokenizer with_decoder(const std::string& decoder, const std::string& vocab) {
  Result<Tokenizer> loaded =
      Tokenizer::parse("{\"decoder\": " + decoder + ", \"model\": {\"type\": \"BPE\", \"vocab\": " + vocab + ", \"merges\": []}}");
  REQUIRE_MESSAGE(loaded, loaded.error().text());
  return std::move(*loaded);
}

using Pieces = std::vector<std::string>;

// What each id gives, and what the end gives.
Pieces pieces(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  StreamingDecoder decoder(tokenizer);
  Pieces result;
  for (const std::int32_t id : ids) result.push_back(decoder.push(id));
  result.push_back(decoder.finish());
  return result;
}

const std::string llama2 = R"({"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";

}  // namespace

TEST_CASE("a character comes when its last byte does") {
  // "æ", "²", "³" are the bytes E6, B2, B3 of 河.
  const Tokenizer t = with_decoder(R"({"type": "ByteLevel"})", R"({"æ": 0, "²": 1, "³": 2, "Ġa": 3, "æ²³æ": 4})");
  CHECK(pieces(t, {3, 0, 1, 2, 3}) == Pieces{" a", "", "", "河", " a", ""});
  CHECK(pieces(t, {4, 1, 2}) == Pieces{"河", "", "河", ""});
  CHECK(pieces(t, {0, 1}) == Pieces{"", "", "\uFFFD"});
  CHECK(pieces(t, {0, 3}) == Pieces{"", "\uFFFD a", ""});
  CHECK(pieces(t, {1, 0, 1, 2}) == Pieces{"\uFFFD", "", "", "河", ""});
  CHECK(pieces(t, {}) == Pieces{""});
  CHECK(pieces(t, {99, 3}) == Pieces{"", " a", ""});
}

TEST_CASE("after the end it begins anew") {
  const Tokenizer t = with_decoder(llama2, R"({"▁a": 0, "b": 1, "<0xC3>": 2, "<0xA9>": 3})");
  StreamingDecoder decoder(t);
  for (int round = 0; round < 2; ++round) {
    CHECK(decoder.push(0) == "a");
    CHECK(decoder.push(0) == " a");
    CHECK(decoder.push(2).empty());
    CHECK(decoder.finish() == "\uFFFD");
  }
  StreamingDecoder moved = std::move(decoder);
  CHECK(moved.push(0) == "a");
}

TEST_CASE("byte fallback, and a space taken off the front") {
  const Tokenizer t = with_decoder(llama2, R"({"▁a": 0, "b": 1, "<0xC3>": 2, "<0xA9>": 3, "▁": 4, "<0x41>": 5, "<0xZZ>": 6})");
  CHECK(pieces(t, {0, 1, 0}) == Pieces{"a", "b", " a", ""});
  CHECK(pieces(t, {4, 0}) == Pieces{"", " a", ""});
  CHECK(pieces(t, {2, 3, 5}) == Pieces{"", "é", "A", ""});
  CHECK(pieces(t, {1, 2, 1}) == Pieces{"b", "", "\uFFFDb", ""});
  CHECK(pieces(t, {6}) == Pieces{"<0xZZ>", ""});
  // All at once, a row of bytes with a fault in it is replaced as a whole; streaming has given its first half out.
  CHECK(t.decode(std::vector<std::int32_t>{2, 3, 2, 1}) == "\uFFFD\uFFFD\uFFFDb");
  CHECK(pieces(t, {2, 3, 2, 1}) == Pieces{"", "é", "", "\uFFFDb", ""});
}

TEST_CASE("strip at both ends waits for the end") {
  const std::string vocab = R"({"_": 0, "a": 1, "_a_": 2, "__": 3})";
  const Tokenizer each = with_decoder(R"({"type": "Strip", "content": "_", "start": 1, "stop": 1})", vocab);
  CHECK(pieces(each, {2, 1, 3}) == Pieces{"a", "a", "", ""});
  const Tokenizer fused = with_decoder(
      R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Strip", "content": "_", "start": 1, "stop": 2}]})", vocab);
  CHECK(pieces(fused, {0, 1, 0, 0, 0}) == Pieces{"", "a", "", "", "_", ""});
  CHECK(pieces(fused, {1, 0, 1, 2}) == Pieces{"a", "", "_a", "_a", ""});
  for (const auto& ids : {std::vector<std::int32_t>{0, 1, 0, 0, 0}, {3, 3, 3}, {2, 2, 2}, {1}, {}}) {
    std::string text;
    for (const std::string& p : pieces(fused, ids)) text += p;
    CHECK(text == fused.decode(ids));
  }
}

TEST_CASE("without a decoder there are spaces between tokens") {
  const Tokenizer t = with_decoder("null", R"({"a": 0, "b": 1, "": 2})");
  CHECK(pieces(t, {0, 1}) == Pieces{"a", " b", ""});
  CHECK(t.decode(std::vector<std::int32_t>{0, 1, 0}) == "a b a");
  CHECK(t.decode(std::vector<std::int32_t>{2, 0}) == " a");
}

// What a file may say, what is refused, and the words for it.
#include <doctest/doctest.h>

#include "runtime/tokenizer/tokenizer.h"

using namespace modelc;

namespace {

// A file in which each stage stands on a line of its own; BPE over a, b, c, ab, abc.
struct File {
  std::string added = "[]", normalizer = "null", pre_tokenizer = "null", post_processor = "null", decoder = "null";
  std::string model = R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4}, "merges": ["a b", "ab c"]})";
  std::string rest;

  std::string text() const {
    return "{\"version\": \"1.0\",\n\"added_tokens\": " + added + ",\n\"normalizer\": " + normalizer +
           ",\n\"pre_tokenizer\": " + pre_tokenizer + ",\n\"post_processor\": " + post_processor + ",\n\"decoder\": " + decoder +
           ",\n\"model\": " + model + rest + "}";
  }
};

std::string refused(const File& file, const std::string& kind) {
  const Result<Tokenizer> loaded = Tokenizer::parse(file.text(), "t.json");
  REQUIRE(!loaded);
  CHECK(loaded.error().kind == kind);
  return loaded.error().message;
}

Tokenizer accepted(const File& file) {
  Result<Tokenizer> loaded = Tokenizer::parse(file.text(), "t.json");
  REQUIRE_MESSAGE(loaded, loaded.error().text());
  return std::move(*loaded);
}

std::string token(const std::string& content, int id, const std::string& more = "") {
  std::string s = "{\"id\": " + std::to_string(id) + ", \"content\": \"" + content + "\"";
  for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized", "special"})
    s += ", \"" + std::string(flag) + "\": " + (more.find(flag) == std::string::npos ? "false" : "true");
  return s + "}";
}

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("a stage that is not carried out is refused by its type and line") {
  File f;
  f.normalizer = R"({"type": "Transliterate"})";
  CHECK(refused(f, "tokenizer-unsupported") == "t.json:3: normalizer: the type \"Transliterate\" is not carried out");
  f = {};
  f.pre_tokenizer = "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Whitespace\"},\n{\"type\": \"Syllables\"}]}";
  CHECK(refused(f, "tokenizer-unsupported") == "t.json:5: pre_tokenizer.pretokenizers[1]: the type \"Syllables\" is not carried out");
  f = {};
  f.post_processor = R"({"type": "Interleave"})";
  CHECK(refused(f, "tokenizer-unsupported") == "t.json:5: post_processor: the type \"Interleave\" is not carried out");
  f = {};
  f.decoder = R"({"type": "Rot13"})";
  CHECK(refused(f, "tokenizer-unsupported") == "t.json:6: decoder: the type \"Rot13\" is not carried out");
  f = {};
  f.model = R"({"type": "Bigram", "vocab": []})";
  CHECK(refused(f, "tokenizer-unsupported") == "t.json:7: model: the type \"Bigram\" is not carried out");
  const Result<Tokenizer> loaded = Tokenizer::parse(f.text());
  CHECK(loaded.error().help == "carried out here: BPE, Unigram, WordPiece and WordLevel");
}

TEST_CASE("members of the stages out of range") {
  File f;
  f.normalizer = R"({"type": "Precompiled", "precompiled_charsmap": "AAA="})";
  CHECK(refused(f, "tokenizer-charsmap") ==
        "t.json:3: normalizer.precompiled_charsmap: the table of replacements has 2 bytes, fewer than the 4 of its first number");
  f.normalizer = R"({"type": "Precompiled", "precompiled_charsmap": "/////wAA"})";
  CHECK(refused(f, "tokenizer-charsmap") ==
        "t.json:3: normalizer.precompiled_charsmap: the table of replacements says that its trie has 4294967295 bytes, of 2 "
        "that follow");
  f.normalizer = R"({"type": "Precompiled", "precompiled_charsmap": "*"})";
  CHECK(refused(f, "tokenizer-charsmap") == "t.json:3: normalizer.precompiled_charsmap: the table of replacements is not base64");
  f = {};
  f.pre_tokenizer = R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": false})";
  CHECK(refused(f, "tokenizer-field") ==
        "t.json:4: pre_tokenizer.add_prefix_space: is false, but prepend_scheme is \"always\" (\"always\" unless given)");
  f.pre_tokenizer = R"({"type": "Metaspace", "replacement": "__"})";
  CHECK(refused(f, "tokenizer-field") == "t.json:4: pre_tokenizer.replacement: expected one character, found \"__\"");
  f.pre_tokenizer = R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"})";
  CHECK(refused(f, "tokenizer-unsupported") == "t.json:4: pre_tokenizer.prepend_scheme: the scheme \"last\" is not known");
  f.pre_tokenizer = R"({"type": "FixedLength", "length": 0})";
  CHECK(refused(f, "tokenizer-field") == "t.json:4: pre_tokenizer.length: expected a length of 1 or more");
  f = {};
  f.post_processor = R"({"type": "BertProcessing", "sep": ["a"], "cls": ["b", 1]})";
  CHECK(refused(f, "tokenizer-field") == "t.json:5: post_processor.sep: expected a token and its id");
  f.post_processor = R"({"type": "Sequence", "processors": [{"type": "BertProcessing", "sep": ["a", 0], "cls": ["b", 1]},
                         {"type": "BertProcessing", "sep": ["a", 0], "cls": ["b", 1]}]})";
  CHECK(refused(f, "tokenizer-unsupported") ==
        "t.json:6: post_processor.processors[1]: a second processor that puts special tokens in is not carried out");
  f = {};
  f.decoder = R"({"type": "CTC", "pad_token": "", "word_delimiter_token": "|", "cleanup": true})";
  CHECK(refused(f, "tokenizer-field") == "t.json:6: decoder.pad_token: is empty");
}

TEST_CASE("models of words and of scores") {
  File f;
  f.model = R"({"type": "Unigram", "vocab": []})";
  CHECK(refused(f, "tokenizer-field") == "t.json:7: model.vocab: expected an array of tokens with their scores, [\"a\", -2.5]");
  f.model = R"({"type": "Unigram", "vocab": [["a", "b"]]})";
  CHECK(refused(f, "tokenizer-vocabulary") == "t.json:7: model.vocab[0]: expected a token with its score, [\"a\", -2.5]");
  f.model = R"({"type": "Unigram", "vocab": [["a", -1], ["a", -2]]})";
  CHECK(refused(f, "tokenizer-vocabulary") == "t.json:7: model.vocab[1]: the token \"a\" stands in the vocabulary before");
  f.model = R"({"type": "Unigram", "vocab": [["a", -1]], "unk_id": 7})";
  CHECK(refused(f, "tokenizer-vocabulary") == "t.json:7: model.unk_id: the vocabulary has no id 7, its largest is 0");
  f.model = R"({"type": "Unigram", "vocab": [["a", -1], ["b", -2], ["ab", -4], ["ba", -2.5]]})";
  const Tokenizer unigram = accepted(f);
  CHECK(*unigram.encode("aba") == Ids{0, 3});
  CHECK(*unigram.encode("ab") == Ids{0, 1});
  const auto unknown = unigram.encode("axb");
  REQUIRE(!unknown);
  CHECK(unknown.error().kind == "tokenizer-text");
  CHECK(unknown.error().message == "no token covers \"x\", and the file names no unk_id");
  f.model = R"({"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "?"})";
  CHECK(refused(f, "tokenizer-vocabulary") == "t.json:7: model.unk_token: the token \"?\" is not in the vocabulary");
  f.model = R"({"type": "WordPiece", "vocab": {"a": 0, "?": 1, "##b": 2, "##bc": 3}, "unk_token": "?",
               "continuing_subword_prefix": "##", "max_input_chars_per_word": 4})";
  const Tokenizer pieces = accepted(f);
  CHECK(*pieces.encode("abcb") == Ids{0, 3, 2});
  CHECK(*pieces.encode("abcbb") == Ids{1});  // too long
  CHECK(*pieces.encode("abd") == Ids{1});
  CHECK(*pieces.encode("") == Ids{});
}

TEST_CASE("options that are not carried out are refused") {
  File f;
  const auto model = [&](const std::string& more) {
    f.model = R"({"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [], )" + more + "}";
  };
  model("\"dropout\": 0.1");
  CHECK(refused(f, "tokenizer-unsupported") == "t.json:7: model.dropout: merging with dropout, at random, is not carried out");
  model("\"new_thing\": 1");
  CHECK(refused(f, "tokenizer-unsupported") ==
        "t.json:7: model.new_thing: this member is not known, so what it asks for is not carried out");
  model("\"dropout\": null, \"end_of_word_suffix\": \"\", \"continuing_subword_prefix\": null, \"new_thing\": null");
  accepted(f);
  model("\"dropout\": 0.0");
  accepted(f);
  f = {};
  f.pre_tokenizer = R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "Sometimes", "invert": false})";
  CHECK(refused(f, "tokenizer-unsupported") == "t.json:4: pre_tokenizer.behavior: the behavior \"Sometimes\" is not known");
  f.pre_tokenizer = R"({"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": false})";
  CHECK(refused(f, "tokenizer-unsupported") == "t.json:4: pre_tokenizer.pattern: an empty string to look for is not carried out");
  f = {};
  f.decoder = R"({"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b"})";
  CHECK(refused(f, "tokenizer-unsupported") == "t.json:6: decoder: a regular expression in a decoder is not carried out");
  f = {};
  f.rest = ",\n\"version\": \"2.0\"";
  CHECK(!Tokenizer::parse(f.text()));  // twice
  Result<Tokenizer> version = Tokenizer::parse("{\"version\": \"2.0\", \"model\": {}}", "t.json");
  REQUIRE(!version);
  CHECK(version.error().message == "t.json:1: version: version \"2.0\" of the format is not carried out, only \"1.0\"");
}

TEST_CASE("fields that are missing or of the wrong kind") {
  File f;
  f.normalizer = "[]";
  CHECK(refused(f, "tokenizer-field") == "t.json:3: normalizer: expected an object, found an array");
  f.normalizer = "{}";
  CHECK(refused(f, "tokenizer-field") == "t.json:3: normalizer: has no member \"type\"");
  f.normalizer = R"({"type": "Prepend", "prepend": 3})";
  CHECK(refused(f, "tokenizer-field") == "t.json:3: normalizer.prepend: expected a string, found a whole number");
  f = {};
  f.pre_tokenizer = R"({"type": "ByteLevel", "add_prefix_space": "no"})";
  CHECK(refused(f, "tokenizer-field") == "t.json:4: pre_tokenizer.add_prefix_space: expected true or false, found a string");
  f.pre_tokenizer = R"({"type": "Split", "pattern": "a", "behavior": "Isolated", "invert": false})";
  CHECK(refused(f, "tokenizer-field") == "t.json:4: pre_tokenizer.pattern: expected {\"String\": ...} or {\"Regex\": ...}");
  f = {};
  f.post_processor = R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}],
                         "pair": [], "special_tokens": {}})";
  CHECK(refused(f, "tokenizer-field") ==
        "t.json:5: post_processor.single[0].SpecialToken: the template names \"<s>\", but "
        "special_tokens does not have it");
  f.post_processor = R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "B", "type_id": 0}}],
                         "special_tokens": {}})";
  CHECK(refused(f, "tokenizer-field") == "t.json:5: post_processor.single[0].Sequence: the template of one text names the sequence \"B\"");
  f = {};
  f.decoder = R"({"type": "Strip", "content": "ab", "start": 1, "stop": 0})";
  CHECK(refused(f, "tokenizer-field") == "t.json:6: decoder.content: expected one character, found \"ab\"");
  f.decoder = R"({"type": "Strip", "content": "a", "start": -1, "stop": 0})";
  CHECK(refused(f, "tokenizer-field") == "t.json:6: decoder.start: expected a whole number from 0 to 2147483646, found another");
  f = {};
  f.added = R"([{"id": 9, "content": "x"}])";
  CHECK(refused(f, "tokenizer-field") == "t.json:2: added_tokens[0]: has no member \"single_word\"");
  f = {};
  f.model = "3";
  CHECK(refused(f, "tokenizer-field") == "t.json:7: model: expected an object, found a whole number");
  CHECK(Tokenizer::parse("[1]", "t.json").error().message == "t.json:1: expected an object, found an array");
  CHECK(Tokenizer::parse("{}", "t.json").error().message == "t.json:1: has no member \"model\"");
  CHECK(Tokenizer::parse("{\"model\": ", "t.json").error().kind == "json-syntax");
  CHECK(Tokenizer::load("/nowhere/tokenizer.json").error().kind == "no-such-file");
}

TEST_CASE("vocabularies and merges that do not fit") {
  File f;
  const auto model = [&](const std::string& vocab, const std::string& merges, const std::string& more = "") {
    f.model = R"({"type": "BPE", "vocab": )" + vocab + ", \"merges\": " + merges + more + "}";
    return refused(f, "tokenizer-vocabulary");
  };
  CHECK(model(R"({"a": 0, "b": 0})", "[]") == "t.json:7: model.vocab[\"b\"]: the id 0 is that of another token too, \"a\"");
  CHECK(model(R"({"a": -1})", "[]") == "t.json:7: model.vocab[\"a\"]: expected an id from 0 to 1048575");
  CHECK(model(R"({"a": 4000000000})", "[]") == "t.json:7: model.vocab[\"a\"]: expected an id from 0 to 1048575");
  CHECK(model(R"({"a": 0.5})", "[]") == "t.json:7: model.vocab[\"a\"]: expected an id from 0 to 1048575");
  CHECK(model(R"({"a": 0})", "[\"a b\"]") == "t.json:7: model.merges[0]: the token \"b\" is not in the vocabulary");
  CHECK(model(R"({"a": 0, "b": 1})", "[\n\"a b\"]") == "t.json:8: model.merges[0]: the token \"ab\" is not in the vocabulary");
  CHECK(model(R"({"a": 0})", "[\"a\"]") == "t.json:7: model.merges[0]: expected two tokens with one space between them, found \"a\"");
  CHECK(model(R"({"a": 0})", "[\"a a a\"]") ==
        "t.json:7: model.merges[0]: expected two tokens with one space between them, found \"a a a\"");
  CHECK(model(R"({"a": 0, "aa": 1})", "[\"#version: 0.2\", [\"a\", \"a\"], [\"a\"]]") ==
        "t.json:7: model.merges[2]: expected \"a b\" or [\"a\", \"b\"]");
  CHECK(model(R"({"a": 0})", "[]", R"(, "unk_token": "?")") == "t.json:7: model.unk_token: the token \"?\" is not in the vocabulary");
  f.model = R"({"type": "BPE", "vocab": [], "merges": []})";
  CHECK(refused(f, "tokenizer-field") == "t.json:7: model.vocab: expected an object from tokens to ids");
  f.model = R"({"type": "BPE", "vocab": {}, "merges": {}})";
  CHECK(refused(f, "tokenizer-field") == "t.json:7: model.merges: expected an array of merges");
}

TEST_CASE("merges in both spellings, with and without a type") {
  File f;
  for (const char* merges : {R"(["a b", "ab c"])", R"([["a", "b"], ["ab", "c"]])", R"(["#version: 0.2", "a b", "ab c"])"}) {
    for (const char* type : {"\"type\": \"BPE\", ", ""}) {
      f.model = "{" + std::string(type) + R"("vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4}, "merges": )" + merges + "}";
      CHECK(*accepted(f).encode("abcabab") == Ids{4, 3, 3});
    }
  }
}

TEST_CASE("unknown characters") {
  File f;
  const auto encode = [&](const std::string& more, const std::string& text) {
    f.model = R"({"type": "BPE", "vocab": {"a": 0, "?": 1, "<0xC3>": 2, "<0xA9>": 3, "<0xE6>": 4}, "merges": [])" + more + "}";
    return *accepted(f).encode(text);
  };
  CHECK(encode("", "axya") == Ids{0, 0});
  CHECK(encode(R"(, "unk_token": "?")", "axya") == Ids{0, 1, 1, 0});
  CHECK(encode(R"(, "unk_token": "?", "fuse_unk": true)", "axyaz") == Ids{0, 1, 0, 1});
  CHECK(encode(R"(, "unk_token": "?", "byte_fallback": true)", "a\u00e9a") == Ids{0, 2, 3, 0});
  CHECK(encode(R"(, "unk_token": "?", "byte_fallback": true)", "a\u6cb3a") == Ids{0, 1, 0});
}

TEST_CASE("added tokens: ids, warnings, lookups") {
  File f;
  f.added = "[" + token("<s>", 5, "special") + ", " + token("ab", 3) + ", " + token("<x>", 6) + "]";
  Tokenizer t = accepted(f);
  CHECK(t.warnings().empty());
  CHECK(t.vocab_size() == 7);
  CHECK(t.id_end() == 7);
  CHECK(t.id("<s>") == 5);
  CHECK(t.id("abc") == 4);
  CHECK(!t.id("nothing"));
  CHECK(t.token(6) == "<x>");
  CHECK(t.token(0) == "a");
  CHECK(!t.token(7));
  CHECK(!t.token(-1));
  CHECK(t.special_ids() == Ids{5});
  CHECK(t.is_special(5));
  CHECK(!t.is_special(6));
  CHECK(*t.encode("a<s>b<x>abc") == Ids{0, 5, 1, 6, 3, 2});
  CHECK(t.decode(Ids{0, 5, 6, 99, -4, 1}, true) == "a <x> b");
  CHECK(t.decode(Ids{0, 5, 6}, false) == "a <s> <x>");

  f.added = "[" + token("<s>", 8, "special") + ", " + token("b", 2) + "]";
  t = accepted(f);
  CHECK(t.id("<s>") == 5);
  CHECK(t.id("b") == 1);
  REQUIRE(t.warnings().size() == 2);
  CHECK(t.warnings()[0] == "the added token \"<s>\" says id 8, but it is numbered on from the vocabulary as 5");
  CHECK(t.warnings()[1] == "the added token \"b\" says id 2, but the vocabulary has it as 1");
}

TEST_CASE("truncation and padding are left to the caller, and said") {
  File f;
  f.rest = R"(, "truncation": {"max_length": 2}, "padding": {"length": 9})";
  const Tokenizer t = accepted(f);
  CHECK(*t.encode("cccc") == Ids{2, 2, 2, 2});
  REQUIRE(t.warnings().size() == 2);
  CHECK(t.warnings()[0] == "the file asks for truncation, which is left to the caller");
  CHECK(t.warnings()[1] == "the file asks for padding, which is left to the caller");
}

TEST_CASE("a template puts special tokens where it says, unless told not to") {
  File f;
  f.post_processor = R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "s", "type_id": 0}},
      {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "e", "type_id": 0}}], "pair": [],
      "special_tokens": {"s": {"id": "s", "ids": [3, 4], "tokens": ["ab", "abc"]},
      "e": {"id": "e", "ids": [2], "tokens": ["c"]}}})";
  const Tokenizer t = accepted(f);
  CHECK(*t.encode("a") == Ids{3, 4, 0, 2});
  CHECK(*t.encode("a", false) == Ids{0});
  CHECK(*t.encode("") == Ids{3, 4, 2});
}

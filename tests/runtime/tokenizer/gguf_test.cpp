// Tokenizers from the metadata of a GGUF: the ids are those of the same tokenizer as a tokenizer.json, which are the
// reference's; and those of sentencepiece for its own vocabulary.
#include <doctest/doctest.h>

#include "runtime/base/json.h"
#include "runtime/tokenizer/gguf_writer.h"
#include "runtime/tokenizer/tokenizer.h"

using namespace modelc;

namespace {

const std::string folder = std::string(MODELC_SOURCE_DIR) + "/tests/runtime/tokenizer/cases/";

Json read(const std::string& name) {
  Result<JsonFile> file = read_json_file(folder + name);
  REQUIRE_MESSAGE(file, file.error().text());
  return std::move(file->root);
}

std::vector<std::int32_t> ids_of(const Json& value) {
  std::vector<std::int32_t> ids;
  for (const Json& id : *value.as_array()) ids.push_back(static_cast<std::int32_t>(*id.as_int()));
  return ids;
}

// What a converter writes for cases/STEM.tokenizer.json.
struct Converted {
  std::vector<std::string> tokens, merges;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
  MetadataBuilder builder;

  explicit Converted(const Json& file) {
    const Json& model = *file.find("model");
    const Json& vocab = *model.find("vocab");
    const auto put = [&](std::size_t id, const std::string& token, std::int32_t type) {
      if (tokens.size() <= id) tokens.resize(id + 1), types.resize(id + 1, 1), scores.resize(id + 1, 0);
      tokens[id] = token;
      types[id] = type;
    };
    if (const JsonObject* object = vocab.as_object()) {
      for (const JsonMember& m : *object) put(static_cast<std::size_t>(*m.value.as_int()), m.key, 1);
    } else {
      for (const Json& pair : *vocab.as_array()) {
        put(tokens.size(), *(*pair.as_array())[0].as_string(), 1);
        scores.back() = static_cast<float>(*(*pair.as_array())[1].as_double());
      }
    }
    for (const Json& t : *file.find("added_tokens")->as_array())
      put(static_cast<std::size_t>(*t.find("id")->as_int()), *t.find("content")->as_string(), *t.find("special")->as_bool() ? 3 : 4);
    if (const Json* list = model.find("merges"))
      for (const Json& m : *list->as_array()) {
        const JsonArray* pair = m.as_array();
        merges.push_back(pair ? *(*pair)[0].as_string() + " " + *(*pair)[1].as_string() : *m.as_string());
      }
  }
  std::uint32_t id(const std::string& token) const {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (tokens[i] == token) return static_cast<std::uint32_t>(i);
    FAIL("no token " << token);
    return 0;
  }
  Metadata metadata(const std::string& model, const std::string& pre = {}) {
    builder.add_string("tokenizer.ggml.model", model);
    if (!pre.empty()) builder.add_string("tokenizer.ggml.pre", pre);
    builder.add_strings("tokenizer.ggml.tokens", tokens).add_i32s("tokenizer.ggml.token_type", types);
    builder.add_f32s("tokenizer.ggml.scores", scores);
    if (!merges.empty()) builder.add_strings("tokenizer.ggml.merges", merges);
    return builder.build();
  }
};

void check(const std::string& stem, const Metadata& metadata) {
  CAPTURE(stem);
  const Result<Tokenizer> tokenizer = Tokenizer::from_metadata(metadata);
  REQUIRE_MESSAGE(tokenizer, tokenizer.error().text());
  const Json cases = read(stem + ".cases.json");
  for (const Json& c : *cases.find("cases")->as_array()) {
    const std::string& text = *c.find("text")->as_string();
    CAPTURE(text);
    CHECK(*tokenizer->encode(text, false) == ids_of(*c.find("ids")));
    CHECK(*tokenizer->encode(text) == ids_of(*c.find("ids_with_special")));
    CHECK(tokenizer->decode(ids_of(*c.find("ids_with_special")), false).empty() == ids_of(*c.find("ids_with_special")).empty());
    CHECK(tokenizer->decode(ids_of(*c.find("ids")), false) == *c.find("decoded")->as_string());
  }
}

}  // namespace

TEST_CASE("byte-level vocabularies by the way they cut words") {
  for (const auto& [stem, pre] : {std::pair{"gpt2", "gpt-2"}, std::pair{"starcoder", "smollm"}, std::pair{"qwen2", "qwen2"},
                                  std::pair{"gpt4o", "gpt-4o"}, std::pair{"deepseek", "deepseek-v3"}})
    check(stem, Converted(read(std::string(stem) + ".tokenizer.json")).metadata("gpt2", pre));
  Converted with_bos(read("llama3.tokenizer.json"));
  with_bos.builder.add("tokenizer.ggml.add_bos_token", true).add_u32("tokenizer.ggml.bos_token_id", with_bos.id("<|special|>"));
  check("llama3", with_bos.metadata("gpt2", "llama-bpe"));
}

TEST_CASE("every name of a way to cut words gives the ids of llama.cpp") {
  const Json file = read("gguf_cuts.json");
  std::vector<std::string> tokens, merges;
  for (const Json& t : *file.find("tokens")->as_array()) tokens.push_back(*t.as_string());
  for (const Json& m : *file.find("merges")->as_array()) merges.push_back(*m.as_string());
  const JsonArray& texts = *file.find("texts")->as_array();
  const std::vector<std::int32_t> types(tokens.size(), 1);
  std::size_t names = 0;
  for (const Json& cut : *file.find("cuts")->as_array()) {
    const JsonArray& expected = *cut.find("ids")->as_array();
    for (const Json& name : *cut.find("names")->as_array()) {
      CAPTURE(*name.as_string());
      MetadataBuilder builder;
      builder.add_string("tokenizer.ggml.model", "gpt2").add_string("tokenizer.ggml.pre", *name.as_string());
      builder.add_strings("tokenizer.ggml.tokens", tokens)
          .add_strings("tokenizer.ggml.merges", merges)
          .add_i32s("tokenizer.ggml.token_type", types);
      const Result<Tokenizer> tokenizer = Tokenizer::from_metadata(builder.build());
      REQUIRE_MESSAGE(tokenizer, tokenizer.error().text());
      ++names;
      for (std::size_t i = 0; i < texts.size(); ++i) {
        if (expected[i].is_null()) continue;
        const std::string& text = *texts[i].as_string();
        CAPTURE(text);
        CHECK(*tokenizer->encode(text, false) == ids_of(expected[i]));
      }
    }
  }
  CHECK(names >= 60);
}

TEST_CASE("words in parts, marked where they begin") {
  Converted converted(read("bert.tokenizer.json"));
  for (std::size_t i = 0; i < converted.tokens.size(); ++i) {
    std::string& t = converted.tokens[i];
    if (converted.types[i] == 1) t = t.starts_with("##") ? t.substr(2) : "\xE2\x96\x81" + t;
  }
  converted.builder.add_u32("tokenizer.ggml.cls_token_id", converted.id("[CLS]"))
      .add_u32("tokenizer.ggml.seperator_token_id", converted.id("[SEP]"));
  converted.builder.add_u32("tokenizer.ggml.unknown_token_id", converted.id("[UNK]"));
  const Metadata metadata = converted.metadata("bert");
  const Result<Tokenizer> tokenizer = Tokenizer::from_metadata(metadata);
  REQUIRE_MESSAGE(tokenizer, tokenizer.error().text());
  const Json cases = read("bert.cases.json");
  for (const Json& c : *cases.find("cases")->as_array()) {
    const std::string& text = *c.find("text")->as_string();
    // The format cannot say that the mark itself goes on with a word, nor that words have less than 100 characters (40 here).
    if (text.find("\xE2\x96\x81") == std::string::npos && text.find("xxxxx") == std::string::npos &&
        text.find("ababab") == std::string::npos)
      CHECK(*tokenizer->encode(text) == ids_of(*c.find("ids_with_special")));
  }
}

// A tokenizer.json as a GGUF's metadata, filled up to so many rows.
Metadata written(const TokenizerFiles& files, std::int64_t rows) {
  MetadataBuilder builder;
  std::vector<std::string> lost;
  const Status status = add_gguf_tokenizer(files, rows, builder, lost);
  REQUIRE_MESSAGE(status, status.error().text());
  return builder.build();
}
std::string refused(const Json& tokenizer) {
  MetadataBuilder builder;
  std::vector<std::string> lost;
  TokenizerFiles files;
  files.tokenizer = tokenizer;
  const Status status = add_gguf_tokenizer(files, 1000, builder, lost);
  REQUIRE_FALSE(status);
  CHECK(builder.build().empty());
  return status.error().message;
}
std::string key(const Metadata& metadata, const std::string& name) {
  const auto value = metadata.find("tokenizer.ggml." + name);
  return value ? value->text() : "";
}
// The members of the tokenizer_config.json that a converter asks for.
Json spelled(std::initializer_list<std::pair<const char*, const char*>> tokens) {
  JsonObject config;
  for (const auto& [name, token] : tokens) config.set(name, token);
  return Json(std::move(config));
}

TEST_CASE("a pattern with ends of lines as they are is the one with escapes") {
  TokenizerFiles files;
  files.tokenizer = read("llama3.tokenizer.json");
  CHECK(key(written(files, 600), "pre") == "\"llama-bpe\"");
  JsonObject& cut = *(*files.tokenizer.as_object()->find("pre_tokenizer")->as_object()->find("pretokenizers")->as_array())[0].as_object();
  JsonObject& pattern = *cut.find("pattern")->as_object();
  std::string text = *pattern.find("Regex")->as_string();
  for (const auto& [escape, sign] : {std::pair{"\\r", "\r"}, std::pair{"\\n", "\n"}})
    for (std::size_t at; (at = text.find(escape)) != std::string::npos;) text.replace(at, 2, sign);
  pattern.set("Regex", text);
  CHECK(key(written(files, 600), "pre") == "\"llama-bpe\"");
}

TEST_CASE("Unigram goes into the metadata and back, with the reference's ids") {
  TokenizerFiles files;
  files.tokenizer = read("t5.tokenizer.json");
  files.tokenizer_config = spelled({{"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}});
  const Metadata metadata = written(files, 320);
  CHECK(key(metadata, "model") == "\"t5\"");
  CHECK(key(metadata, "add_space_prefix") == "true");
  CHECK(key(metadata, "remove_extra_whitespaces") == "true");
  CHECK(key(metadata, "unknown_token_id") == "2");
  CHECK(key(metadata, "eos_token_id") == "1");
  CHECK(key(metadata, "padding_token_id") == "0");
  CHECK(metadata.find("tokenizer.ggml.tokens")->size() == 320);
  CHECK(metadata.find("tokenizer.ggml.precompiled_charsmap")->element_type() == MetadataType::u8);
  check("t5", metadata);
  const auto back = folder_tokenizer(metadata, "x.gguf");
  REQUIRE_MESSAGE(back, back.error().text());
  CHECK(*back->tokenizer.find("model")->find("type")->as_string() == "Unigram");
  CHECK(*back->tokenizer.find("normalizer")->find("precompiled_charsmap")->as_string() ==
        *files.tokenizer.find("normalizer")->find("precompiled_charsmap")->as_string());
  check("t5", written(*back, 320));

  // Bytes for what no piece covers; and steps that no key stands for.
  Json bytes = read("unigram_bytes.tokenizer.json");
  CHECK(refused(bytes).find("normalizer: a stage of type \"Nmt\"") != std::string::npos);
  bytes.as_object()->set("normalizer", Json());
  bytes.as_object()->find("pre_tokenizer")->as_object()->set("prepend_scheme", "always");
  files = {};
  files.tokenizer = bytes;
  const auto before = Tokenizer::parse(dump(bytes)), after = Tokenizer::from_metadata(written(files, 402));
  REQUIRE(before);
  REQUIRE_MESSAGE(after, after.error().text());
  for (const char* text : {"aé", "日本", "plain words", "\x01"}) {
    CAPTURE(std::string(text));
    const auto ids = *before->encode(text);
    CHECK(*after->encode(text) == ids);
    CHECK(after->decode(ids) == before->decode(ids));
  }
}

TEST_CASE("words in parts go into the metadata and back") {
  Json file = read("bert.tokenizer.json");
  CHECK(refused(file).find("max_input_chars_per_word") != std::string::npos);
  JsonObject& model = *file.as_object()->find("model")->as_object();
  model.set("max_input_chars_per_word", 100);
  // The format cannot say that the mark of a beginning itself goes on with a word.
  JsonObject vocab;
  for (const JsonMember& m : *model.find("vocab")->as_object()) vocab.set(m.key == "##\xE2\x96\x81" ? "##~~" : m.key, m.value);
  model.set("vocab", std::move(vocab));
  TokenizerFiles files;
  files.tokenizer = file;
  files.tokenizer_config = spelled({{"cls_token", "[CLS]"}, {"sep_token", "[SEP]"}, {"mask_token", "[MASK]"}, {"unk_token", "[UNK]"}});
  const Metadata metadata = written(files, 430);
  CHECK(key(metadata, "model") == "\"bert\"");
  CHECK(key(metadata, "cls_token_id") == "2");
  CHECK(key(metadata, "seperator_token_id") == "3");
  CHECK(key(metadata, "mask_token_id") == "4");
  const auto before = Tokenizer::parse(dump(file)), after = Tokenizer::from_metadata(metadata);
  REQUIRE(before);
  REQUIRE_MESSAGE(after, after.error().text());
  const auto back = folder_tokenizer(metadata, "x.gguf");
  REQUIRE_MESSAGE(back, back.error().text());
  CHECK(*back->tokenizer_config.find("mask_token")->as_string() == "[MASK]");
  // Every member that the package `tokenizers` asks for.
  const Json& around = *back->tokenizer.find("post_processor");
  CHECK(dump(*around.find("single")) ==
        R"([{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}}])");
  CHECK(dump(*around.find("pair")) ==
        R"([{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}},)"
        R"({"Sequence":{"id":"B","type_id":1}},{"SpecialToken":{"id":"[SEP]","type_id":1}}])");
  CHECK(dump(*around.find("special_tokens")) ==
        R"({"[CLS]":{"id":"[CLS]","ids":[2],"tokens":["[CLS]"]},"[SEP]":{"id":"[SEP]","ids":[3],"tokens":["[SEP]"]}})");
  const auto again = Tokenizer::parse(dump(back->tokenizer));
  REQUIRE_MESSAGE(again, again.error().text());
  const Json cases = read("bert.cases.json");
  for (const Json& c : *cases.find("cases")->as_array()) {
    const std::string& text = *c.find("text")->as_string();
    CAPTURE(text);
    CHECK(*after->encode(text) == *before->encode(text));
    CHECK(*again->encode(text) == *before->encode(text));
  }
  // Capitals kept, accents kept or not: keys that say so, where they are not the usual ones.
  for (const auto& [lowercase, accents] : {std::pair{false, Json()}, std::pair{false, Json(true)}, std::pair{true, Json(false)}}) {
    JsonObject& normalizer = *files.tokenizer.as_object()->find("normalizer")->as_object();
    normalizer.set("lowercase", lowercase);
    normalizer.set("strip_accents", accents);
    const Metadata cased = written(files, 430);
    CHECK(key(cased, "normalizer.lowercase") == (lowercase ? "" : "false"));
    const auto kept = Tokenizer::parse(dump(files.tokenizer)), read_back = Tokenizer::from_metadata(cased);
    REQUIRE(kept);
    REQUIRE_MESSAGE(read_back, read_back.error().text());
    for (const Json& c : *cases.find("cases")->as_array()) {
      const std::string& text = *c.find("text")->as_string();
      CAPTURE(text);
      CHECK(*read_back->encode(text) == *kept->encode(text));
    }
  }
  CHECK(refused(read("bert_cased.tokenizer.json")).find("the format has one") != std::string::npos);
  CHECK(refused(read("word_level.tokenizer.json")).find("a model of type \"WordLevel\"") != std::string::npos);
}

TEST_CASE("runs of spaces that a user defined: their merges stand among each other, and get one score") {
  TokenizerFiles files;
  files.tokenizer = read("gemma_runs.tokenizer.json");
  files.tokenizer_config = spelled({{"bos_token", "<bos>"}, {"eos_token", "<eos>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}});
  const Metadata metadata = written(files, 720);
  CHECK(key(metadata, "model") == "\"llama\"");
  CHECK(key(metadata, "add_space_prefix") == "false");
  CHECK(key(metadata, "add_bos_token") == "true");
  CHECK(key(metadata, "bos_token_id") == "2");
  // Other programs look for these in the text as it comes, and give them out as they stand.
  CHECK(metadata.find("tokenizer.ggml.tokens")->at(11).as_string() == "  ");
  CHECK(metadata.find("tokenizer.ggml.token_type")->at(11).as_int() == 4);
  check("gemma_runs", metadata);
  const auto back = folder_tokenizer(metadata, "x.gguf");
  REQUIRE_MESSAGE(back, back.error().text());
  check("gemma_runs", written(*back, 720));

  // So it is with runs that no user defined, as Llama 2 has them; but not in another order.
  JsonObject& root = *files.tokenizer.as_object();
  JsonArray added;
  for (const Json& t : *root.find("added_tokens")->as_array())
    if (*t.find("special")->as_bool()) added.push_back(t);
  root.set("added_tokens", std::move(added));
  const auto before = Tokenizer::parse(dump(files.tokenizer)), after = Tokenizer::from_metadata(written(files, 720));
  REQUIRE(before);
  REQUIRE_MESSAGE(after, after.error().text());
  for (std::size_t n = 1; n < 40; ++n)
    CHECK(*after->encode("a" + std::string(n, ' ') + "b") == *before->encode("a" + std::string(n, ' ') + "b"));
  // A space before a text but where there is one: what other programs have no word for stands under a key of our own.
  for (const char* scheme : {"first", "always"}) {
    JsonObject metaspace;
    metaspace.set("type", "Metaspace");
    metaspace.set("replacement", "\xE2\x96\x81");
    metaspace.set("prepend_scheme", scheme);
    metaspace.set("split", false);
    TokenizerFiles newer = files;
    newer.tokenizer.as_object()->set("normalizer", Json());
    newer.tokenizer.as_object()->set("pre_tokenizer", std::move(metaspace));
    const Metadata said = written(newer, 720);
    CHECK(key(said, "add_space_prefix") == "true");
    const auto kept = Tokenizer::parse(dump(newer.tokenizer)), read_back = Tokenizer::from_metadata(said);
    REQUIRE(kept);
    REQUIRE_MESSAGE(read_back, read_back.error().text());
    for (const char* text : {"the river", " the river", "  the", "<bos>the<bos> river", ""})
      CHECK(*read_back->encode(text) == *kept->encode(text));
  }
  JsonArray& merges = *root.find("model")->as_object()->find("merges")->as_array();
  std::swap(merges[2], merges[5]);
  CHECK(refused(files.tokenizer).find("are mixed") != std::string::npos);
}

TEST_CASE("a vocabulary with scores, merged as sentencepiece merges it") {
  const Json file = read("scored.json");
  MetadataBuilder builder;
  std::vector<std::string> tokens;
  std::vector<float> scores;
  for (const Json& t : *file.find("tokens")->as_array()) tokens.push_back(*t.as_string());
  for (const Json& s : *file.find("scores")->as_array()) scores.push_back(static_cast<float>(*s.as_double()));
  builder.add_string("tokenizer.ggml.model", "llama").add_strings("tokenizer.ggml.tokens", tokens);
  builder.add_f32s("tokenizer.ggml.scores", scores).add_i32s("tokenizer.ggml.token_type", ids_of(*file.find("types")));
  builder.add_u32("tokenizer.ggml.unknown_token_id", 0).add_u32("tokenizer.ggml.bos_token_id", 1);
  const Result<Tokenizer> tokenizer = Tokenizer::from_metadata(builder.build());
  REQUIRE_MESSAGE(tokenizer, tokenizer.error().text());
  for (const Json& c : *file.find("cases")->as_array()) {
    const std::string& text = *c.find("text")->as_string();
    CAPTURE(text);
    std::vector<std::int32_t> ids = ids_of(*c.find("ids"));
    CHECK(*tokenizer->encode(text, false) == ids);
    ids.insert(ids.begin(), 1);
    CHECK(*tokenizer->encode(text) == ids);
  }
}

TEST_CASE("metadata that is no tokenizer") {
  MetadataBuilder builder;
  CHECK(Tokenizer::from_metadata(builder.build(), "m").error().message == "m: tokenizer.ggml.model is missing");
  builder.add_string("tokenizer.ggml.model", "other");
  CHECK(Tokenizer::from_metadata(builder.build(), "m").error().message == "m: tokenizer.ggml.tokens is missing, or no list of texts");
  const std::vector<std::string> tokens = {"a", "b"};
  builder.add_strings("tokenizer.ggml.tokens", tokens);
  CHECK(Tokenizer::from_metadata(builder.build(), "m").error().message == "m: tokenizer.ggml.model \"other\" is not carried out");
  MetadataBuilder bpe;
  bpe.add_string("tokenizer.ggml.model", "gpt2").add_string("tokenizer.ggml.pre", "other").add_strings("tokenizer.ggml.tokens", tokens);
  CHECK(Tokenizer::from_metadata(bpe.build(), "m").error().message ==
        "m: tokenizer.ggml.pre \"other\": this way of cutting words is not carried out");
  // A file that names no way is cut as "default", and that is said.
  for (const bool named : {true, false}) {
    MetadataBuilder plain;
    plain.add_string("tokenizer.ggml.model", "gpt2").add_strings("tokenizer.ggml.tokens", tokens).add_strings("tokenizer.ggml.merges", {});
    if (named) plain.add_string("tokenizer.ggml.pre", "default");
    const Result<Tokenizer> tokenizer = Tokenizer::from_metadata(plain.build(), "m");
    REQUIRE_MESSAGE(tokenizer, tokenizer.error().text());
    CHECK(tokenizer->warnings().size() == (named ? 0 : 1));
  }
  MetadataBuilder scores;
  const std::vector<float> one = {1};
  scores.add_string("tokenizer.ggml.model", "llama").add_strings("tokenizer.ggml.tokens", tokens).add_f32s("tokenizer.ggml.scores", one);
  CHECK(Tokenizer::from_metadata(scores.build(), "m").error().message == "m: tokenizer.ggml.scores has 1 value for 2 tokens");
}

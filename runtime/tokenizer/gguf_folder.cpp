// A GGUF's tokenizer as the files of a folder.
#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/base/strings.h"
#include "runtime/tokenizer/gguf.h"
#include "runtime/tokenizer/gguf_ids.h"
#include "runtime/tokenizer/gguf_writer.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc {
namespace {

std::optional<std::int64_t> id_of(const Metadata& metadata, const char* key) {
  const auto value = metadata.find(std::string("tokenizer.ggml.") + key);
  return value ? value->as_int() : std::nullopt;
}

// What the reader made as an object because no tokenizer.json of it is read: by scores, or unigram.
Result<JsonObject> model_of(const Metadata& metadata, const std::string& kind, const std::string& name) {
  const auto tokens = metadata.find("tokenizer.ggml.tokens"), scores = metadata.find("tokenizer.ggml.scores"),
             types = metadata.find("tokenizer.ggml.token_type");
  const auto unknown = id_of(metadata, "unknown_token_id");
  JsonObject model;
  const std::size_t count = tokens->size();
  const auto text = [&](std::size_t i) { return std::string(tokens->at(i).as_string().value_or("")); };
  const auto score = [&](std::size_t i) { return scores->at(i).as_double().value_or(0); };
  if (kind == "t5") {
    model.set("type", "Unigram");
    model.set("unk_id", unknown ? Json(*unknown) : Json());
    JsonArray vocab;
    bool bytes = false;
    for (std::size_t i = 0; i < count; ++i) {
      JsonArray entry;
      entry.emplace_back(text(i));
      entry.emplace_back(score(i));
      bytes = bytes || text(i) == "<0x00>";
      vocab.emplace_back(std::move(entry));
    }
    model.set("vocab", std::move(vocab));
    model.set("byte_fallback", bytes);
    return model;
  }
  if (kind != "llama")
    return Error{"tokenizer-unsupported",
                 name + ": tokenizer.ggml.model " + quote(kind) + " is not written as tokenizer.json",
                 {},
                 "--no-tokenizer"};
  // Every pair whose union is a token, the best score first; of equal scores, as of one token's pairs, the longer left part
  // first and then the longer right one: that is the order of a list in which all of them merge from the left.
  struct Merge {
    double score;
    std::size_t left_length, right_length;
    std::string left, right;
  };
  JsonObject vocab;
  std::map<std::string, std::size_t, std::less<>> ids;
  for (std::size_t i = 0; i < count; ++i)
    if (ids.emplace(text(i), i).second) vocab.append(JsonMember{text(i), Json(static_cast<std::int64_t>(i)), 0, 0});
  std::vector<Merge> found;
  bool bytes = false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t type = types ? types->at(i).as_int().value_or(1) : 1;
    bytes = bytes || type == 6;
    const std::string token = text(i);
    // One with a space is found in the text as it comes: where pairs are merged there are none any more.
    if ((type != 1 && type != 4) || token.size() > 256 || token.find(' ') != std::string::npos) continue;
    for (std::size_t cut = token.size(); cut-- > 1;) {
      if ((static_cast<unsigned char>(token[cut]) & 0xC0) == 0x80) continue;
      std::string left = token.substr(0, cut), right = token.substr(cut);
      if (!ids.contains(left) || !ids.contains(right)) continue;
      const std::size_t left_length = utf8::count(left), right_length = utf8::count(right);
      found.push_back({score(i), left_length, right_length, std::move(left), std::move(right)});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Merge& a, const Merge& b) {
    return std::tie(b.score, b.left_length, b.right_length) < std::tie(a.score, a.left_length, a.right_length);
  });
  JsonArray merges;
  for (Merge& m : found) merges.emplace_back(JsonArray{Json(std::move(m.left)), Json(std::move(m.right))});
  model.set("type", "BPE");
  model.set("dropout", nullptr);
  model.set("unk_token", unknown && *unknown >= 0 && *unknown < static_cast<std::int64_t>(count)
                             ? Json(text(static_cast<std::size_t>(*unknown)))
                             : Json());
  model.set("fuse_unk", true);
  model.set("byte_fallback", bytes);
  model.set("ignore_merges", false);
  model.set("vocab", std::move(vocab));
  model.set("merges", std::move(merges));
  return model;
}

}  // namespace

bool has_gguf_tokenizer(const Metadata& metadata) {
  const auto kind = metadata.find("tokenizer.ggml.model");
  return kind && kind->as_string() != "no_vocab";
}

Result<TokenizerFiles> folder_tokenizer(const Metadata& metadata, const std::string& name) {
  TokenizerFiles out;
  const auto kind = metadata.find("tokenizer.ggml.model");
  if (kind && kind->as_string() && has_gguf_tokenizer(metadata)) {
    auto read = read_gguf_tokenizer(metadata, name);
    if (!read) return std::move(read.error());
    if (read->model) {
      auto model = model_of(metadata, std::string(*kind->as_string()), name);
      if (!model) return std::move(model.error());
      read->stages.as_object()->set("model", std::move(*model));
    }
    out.tokenizer = std::move(read->stages);
    // What is written must read as what was read.
    auto before = Tokenizer::from_metadata(metadata, name);
    if (!before) return std::move(before.error());
    auto after = Tokenizer::parse(dump(out.tokenizer), "tokenizer.json");
    if (!after) return std::move(after.error());
    if (const auto text = text_with_other_ids(*before, *after))
      return Error{"tokenizer-unsupported",
                   name + ": as tokenizer.json its tokenizer would give the text " + quote(*text, 60) + " other ids",
                   {},
                   "--no-tokenizer"};
  }
  const auto tokens = metadata.find("tokenizer.ggml.tokens");
  const auto token = [&](std::int64_t id) -> std::optional<std::string> {
    if (!tokens || id < 0 || id >= static_cast<std::int64_t>(tokens->size())) return std::nullopt;
    const auto text = tokens->at(static_cast<std::size_t>(id)).as_string();
    return text ? std::optional(std::string(*text)) : std::nullopt;
  };
  JsonObject config, generation;
  for (const auto& [key, spelled, numbered] : {std::tuple{"bos_token_id", "bos_token", "bos_token_id"},
                                               {"eos_token_id", "eos_token", ""},
                                               {"unknown_token_id", "unk_token", ""},
                                               {"padding_token_id", "pad_token", "pad_token_id"},
                                               {"cls_token_id", "cls_token", ""},
                                               {"seperator_token_id", "sep_token", ""},
                                               {"mask_token_id", "mask_token", ""}}) {
    const auto id = id_of(metadata, key);
    if (!id) continue;
    if (const auto text = token(*id)) config.set(spelled, *text);
    if (*numbered != '\0') generation.set(numbered, *id);
  }
  JsonArray stops;
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    const auto id = id_of(metadata, key);
    if (id && std::find(stops.begin(), stops.end(), Json(*id)) == stops.end()) stops.emplace_back(*id);
  }
  if (stops.size() == 1) generation.set("eos_token_id", stops[0]);
  if (stops.size() > 1) generation.set("eos_token_id", std::move(stops));
  for (const char* key : {"add_bos_token", "add_eos_token"}) {
    const auto value = metadata.find(std::string("tokenizer.ggml.") + key);
    if (value && value->as_bool()) config.set(key, *value->as_bool());
  }
  JsonArray named;
  constexpr std::string_view prefix = "tokenizer.chat_template";
  for (std::size_t i = 0; i < metadata.size(); ++i) {
    const std::string_view key = metadata.key(i);
    const auto text = metadata.value(i).as_string();
    if (!key.starts_with(prefix) || !text || (key.size() > prefix.size() && key[prefix.size()] != '.')) continue;
    JsonObject entry;
    entry.set("name", key == prefix ? std::string_view("default") : key.substr(prefix.size() + 1));
    entry.set("template", *text);
    named.emplace_back(std::move(entry));
  }
  if (named.size() == 1 && metadata.contains(prefix)) config.set("chat_template", *named[0].find("template"));
  else if (!named.empty()) config.set("chat_template", std::move(named));
  if (!config.empty()) {
    config.set("clean_up_tokenization_spaces", false);
    config.set("tokenizer_class", "PreTrainedTokenizerFast");
    out.tokenizer_config = Json(std::move(config));
  }
  if (!generation.empty()) out.generation_config = Json(std::move(generation));
  return out;
}

}  // namespace modelc

#include "runtime/tokenizer/gguf.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "runtime/base/base64.h"
#include "runtime/base/strings.h"
#include "runtime/tokenizer/bpe.h"
#include "runtime/tokenizer/gguf_patterns.h"
#include "runtime/tokenizer/unigram.h"

namespace modelc {

namespace {

// tokenizer.ggml.token_type
enum TokenType : std::int64_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

class GgufReader {
 public:
  GgufReader(const Metadata& metadata, const std::string& name) : metadata_(metadata), name_(name) {}

  Result<GgufTokenizer> read() {
    const std::string model = text("model", {});
    read_tokens();
    if (error_) return std::move(*error_);
    root_.set("version", "1.0");
    root_.set("added_tokens", added_tokens());
    GgufTokenizer result;
    if (model == "gpt2") {
      byte_level();
    } else if (model == "llama") {
      result.model = by_score();
    } else if (model == "t5") {
      result.model = unigram();
    } else if (model == "bert") {
      word_pieces();
    } else {
      fail("tokenizer-unsupported", "tokenizer.ggml.model " + quote(model) + " is not carried out",
           "carried out here: gpt2, llama, t5 and bert");
    }
    if (error_) return std::move(*error_);
    result.stages = std::move(root_);
    result.warnings = std::move(warnings_);
    return result;
  }

 private:
  static std::string key(const char* name) { return std::string("tokenizer.ggml.") + name; }
  void fail(const char* kind, const std::string& what, std::string help = {}) {
    if (!error_) error_ = Error{kind, name_ + ": " + what, {}, std::move(help)};
  }
  std::string text(const char* name, const std::optional<std::string>& otherwise) {
    const auto value = metadata_.find(key(name));
    const auto found = value ? value->as_string() : std::nullopt;
    if (found) return std::string(*found);
    if (value || !otherwise) fail("tokenizer-field", key(name) + (value ? " is no text" : " is missing"));
    return otherwise.value_or("");
  }
  bool flag(const char* name, bool otherwise) const {
    const auto value = metadata_.find(key(name));
    return value ? value->as_bool().value_or(otherwise) : otherwise;
  }
  // An id of the vocabulary; -1 where it is not given.
  std::int64_t id(const char* name) {
    const auto value = metadata_.find(key(name));
    const auto number = value ? value->as_int() : std::nullopt;
    if (!number) return -1;
#ifdef MODELC_PLANTED_FAULT                                 // tests/fuzz: the fuzzer must find this one
    constexpr bool no_token = false;
#else
    const bool no_token = *number < 0 || *number >= static_cast<std::int64_t>(tokens_.size());
#endif
    if (no_token) {
      fail("tokenizer-vocabulary", key(name) + " is " + std::to_string(*number) + ", and there are " + counted(tokens_.size(), "token"));
      return -1;
    }
    return *number;
  }

  void read_tokens() {
    const auto list = metadata_.find(key("tokens"));
    if (!list || !list->is_array() || list->element_type() != MetadataType::string || list->size() == 0)
      return fail("tokenizer-field", key("tokens") + " is missing, or no list of texts");
    if (list->size() > (std::size_t{1} << 24)) return fail("tokenizer-vocabulary", key("tokens") + " has more than 16 million tokens");
    const auto types = metadata_.find(key("token_type")), scores = metadata_.find(key("scores"));
    for (const auto& [of, what] : {std::pair{&types, "token_type"}, std::pair{&scores, "scores"}})
      if (*of && (*of)->size() != list->size())
        return fail("tokenizer-vocabulary",
                    key(what) + " has " + counted((*of)->size(), "value") + " for " + counted(list->size(), "token"));
    for (std::size_t i = 0; i < list->size(); ++i) {
      tokens_.emplace_back(list->at(i).as_string().value_or(""));
      types_.push_back(types ? types->at(i).as_int().value_or(normal) : normal);
      if (scores) scores_.push_back(scores->at(i).as_double().value_or(0));
      if (!is_utf8(tokens_.back())) return fail("tokenizer-vocabulary", "token " + std::to_string(i) + " is not UTF-8");
    }
  }

  JsonArray added_tokens() const {
    JsonArray added;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (types_[i] != control && types_[i] != user_defined && types_[i] != unknown) continue;
      JsonObject token;
      token.set("id", static_cast<std::int64_t>(i));
      token.set("content", tokens_[i]);
      for (const char* off : {"single_word", "lstrip", "rstrip", "normalized"}) token.set(off, false);
      token.set("special", types_[i] != user_defined);
      added.emplace_back(std::move(token));
    }
    return added;
  }

  static JsonObject stage(const char* type) {
    JsonObject s;
    s.set("type", type);
    return s;
  }
  static JsonObject sequence(const char* member, JsonArray stages) {
    JsonObject s = stage("Sequence");
    s.set(member, std::move(stages));
    return s;
  }
  static JsonObject pattern(const char* kind, std::string_view text) {
    JsonObject p;
    p.set(kind, text);
    return p;
  }
  static JsonObject replace(std::string_view from, std::string_view to) {
    JsonObject s = stage("Replace");
    s.set("pattern", pattern("String", from));
    s.set("content", to);
    return s;
  }
  static JsonObject split(const char* kind, std::string_view what) {
    JsonObject s = stage("Split");
    s.set("pattern", pattern(kind, what));
    s.set("behavior", "Isolated");
    s.set("invert", false);
    return s;
  }
  static JsonObject byte_level_stage(bool use_regex) {
    JsonObject s = stage("ByteLevel");
    s.set("add_prefix_space", false);
    s.set("trim_offsets", true);
    s.set("use_regex", use_regex);
    return s;
  }

  // Before and after the text, as the file says or as its kind has it. Of a pair the second text has the same around it, but for
  // a token that `begin_once` lets stand before the first alone.
  void surround(bool begin_unless_said, bool end_unless_said, const char* begin = "bos_token_id", const char* end = "eos_token_id",
                bool begin_once = false) {
    JsonObject special;
    const auto token_of = [&](const char* name) {
      const std::int64_t number = id(name);
      if (number < 0) return std::string();
      const std::string& token = tokens_[static_cast<std::size_t>(number)];
      JsonObject ids;
      ids.set("id", token);
      ids.set("ids", JsonArray{Json(number)});
      ids.set("tokens", JsonArray{Json(token)});
      special.set(token, std::move(ids));
      return token;
    };
    const std::string before = flag("add_bos_token", begin_unless_said) ? token_of(begin) : "";
    const std::string after = flag("add_eos_token", end_unless_said) ? token_of(end) : "";
    const auto part = [](const char* kind, const std::string& what, std::int64_t text) {
      JsonObject outer, inner;
      inner.set("id", what);
      inner.set("type_id", text);
      outer.set(kind, std::move(inner));
      return Json(std::move(outer));
    };
    const auto add = [&](JsonArray& to, std::int64_t text) {
      if (!before.empty() && (text == 0 || !begin_once)) to.push_back(part("SpecialToken", before, text));
      to.push_back(part("Sequence", text == 0 ? "A" : "B", text));
      if (!after.empty()) to.push_back(part("SpecialToken", after, text));
    };
    JsonArray single, pair;
    add(single, 0);
    add(pair, 0);
    add(pair, 1);
    JsonObject s = stage("TemplateProcessing");
    s.set("single", std::move(single));
    s.set("pair", std::move(pair));
    s.set("special_tokens", std::move(special));
    root_.set("post_processor", std::move(s));
  }

  bool fills_up(std::size_t i, const std::string& token) const { return types_[i] == unused && token == "[PAD" + std::to_string(i) + "]"; }
  // Tokens that stand twice keep their first number; the others are rows that no text reaches, as are those that writers
  // fill a vocabulary up with to the rows of its model.
  JsonObject vocabulary_json(const std::vector<std::string>& spelled) const {
    JsonObject vocabulary;
    for (std::size_t i = 0; i < spelled.size(); ++i)
      if (!fills_up(i, spelled[i])) vocabulary.append(JsonMember{spelled[i], Json(static_cast<std::int64_t>(i)), 0, 0});
    return vocabulary;
  }

  void byte_level() {
    const std::string pre = text("pre", "default");
    if (!metadata_.find(key("pre")))
      warnings_.push_back(name_ + " does not say how words are cut (" + key("pre") +
                          "): taken as \"default\", which need not be how its "
                          "tokenizer cuts them");
    const auto found = gguf_pattern(pre);
    if (!found)
      return fail("tokenizer-unsupported", "tokenizer.ggml.pre " + quote(pre) + ": this way of cutting words is not carried out",
                  "put a tokenizer.json beside the file");
    JsonArray cuts;
    JsonObject digits = stage("Digits");
    digits.set("individual_digits", true);
    if (found->single_digits) cuts.emplace_back(std::move(digits));
    for (const std::string_view s : found->splits) cuts.emplace_back(split("Regex", s));
    cuts.emplace_back(byte_level_stage(found->byte_level_regex));
    root_.set("pre_tokenizer", sequence("pretokenizers", std::move(cuts)));
    if (found->nfc) root_.set("normalizer", stage("NFC"));
    root_.set("decoder", byte_level_stage(false));
    surround(false, false);
    const auto merges = metadata_.find(key("merges"));
    if (!merges || !merges->is_array() || merges->element_type() != MetadataType::string)
      return fail("tokenizer-field", key("merges") + " is missing, or no list of texts");
    JsonArray list;
    for (std::size_t i = 0; i < merges->size(); ++i) list.emplace_back(merges->at(i).as_string().value_or(""));
    JsonObject model = stage("BPE");
    model.set("ignore_merges", found->ignore_merges);
    model.set("vocab", vocabulary_json(tokens_));
    model.set("merges", std::move(list));
    root_.set("model", std::move(model));
  }

  bool fill(Vocabulary& vocabulary) {
    if (scores_.empty()) {
      fail("tokenizer-field", key("scores") + " is missing");
      return false;
    }
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      if (!fills_up(i, tokens_[i])) static_cast<void>(vocabulary.add(tokens_[i], static_cast<std::int32_t>(i)));
    return true;
  }

  std::unique_ptr<Model> by_score() {
    Vocabulary vocabulary;
    if (!fill(vocabulary)) return nullptr;
    const bool prefix = flag("add_space_prefix", true);
    const auto scheme = metadata_.find("modelc.tokenizer.prepend_scheme");
    if (prefix && scheme && (scheme->as_string() == "first" || scheme->as_string() == "always")) { // no space before one that is there
      JsonObject s = stage("Metaspace");
      s.set("replacement", "▁");
      s.set("prepend_scheme", std::string(*scheme->as_string()));
      s.set("split", false);
      root_.set("pre_tokenizer", std::move(s));
    } else {
      JsonArray normal_form;
      JsonObject prepend = stage("Prepend");
      prepend.set("prepend", "▁");
      if (prefix) normal_form.emplace_back(std::move(prepend));
      normal_form.emplace_back(replace(" ", "▁"));
      root_.set("normalizer", sequence("normalizers", std::move(normal_form)));
    }
    JsonArray decoders = {replace("▁", " "), stage("ByteFallback"), stage("Fuse")};
    if (prefix) {
      JsonObject strip = stage("Strip");
      strip.set("content", " ");
      strip.set("start", 1);
      strip.set("stop", 0);
      decoders.emplace_back(std::move(strip));
    }
    root_.set("decoder", sequence("decoders", std::move(decoders)));
    surround(true, false);
    std::vector<bool> merged;
    for (const std::int64_t type : types_) merged.push_back(type == normal || type == user_defined);
    return Bpe::by_score(std::move(vocabulary), scores_, merged, static_cast<std::int32_t>(id("unknown_token_id")));
  }

  std::unique_ptr<Model> unigram() {
    Vocabulary vocabulary;
    if (!fill(vocabulary)) return nullptr;
    if (const auto map = metadata_.find(key("precompiled_charsmap")); map && map->size() > 0) {
      std::string bytes;
      for (std::size_t i = 0; i < map->size(); ++i) bytes += static_cast<char>(map->at(i).as_int().value_or(0));
      JsonObject precompiled = stage("Precompiled");
      precompiled.set("precompiled_charsmap", to_base64(bytes));
      root_.set("normalizer", std::move(precompiled));
    }
    const auto metaspace = [&] {
      JsonObject s = stage("Metaspace");
      s.set("replacement", "▁");
      s.set("prepend_scheme", flag("add_space_prefix", true) ? "always" : "never");
      return s;
    };
    JsonArray cuts;
    if (flag("remove_extra_whitespaces", true)) cuts.emplace_back(stage("WhitespaceSplit"));
    cuts.emplace_back(metaspace());
    root_.set("pre_tokenizer", sequence("pretokenizers", std::move(cuts)));
    Unigram::Options options;
    options.unknown = static_cast<std::int32_t>(id("unknown_token_id"));
    options.byte_fallback = vocabulary.find("<0x00>") >= 0;
    if (options.byte_fallback) root_.set("decoder", sequence("decoders", JsonArray{stage("ByteFallback"), metaspace()}));
    else root_.set("decoder", metaspace());
    surround(false, true);
    return std::make_unique<Unigram>(std::move(vocabulary), scores_, options);
  }

  // Here the tokens that begin a word are marked, not those that go on.
  void word_pieces() {
    std::vector<std::string> spelled;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const bool special = types_[i] == control || types_[i] == unknown || types_[i] == user_defined;
      spelled.push_back(special                       ? tokens_[i]
                        : tokens_[i].starts_with("▁") ? tokens_[i].substr(std::string_view("▁").size())
                                                      : "##" + tokens_[i]);
    }
    JsonObject normalizer = stage("BertNormalizer");
    normalizer.set("clean_text", true);
    normalizer.set("handle_chinese_chars", true);
    const bool lowercase = flag("normalizer.lowercase", true);
    normalizer.set("strip_accents", flag("normalizer.strip_accents", lowercase));
    normalizer.set("lowercase", lowercase);
    root_.set("normalizer", std::move(normalizer));
    root_.set("pre_tokenizer", stage("BertPreTokenizer"));
    JsonObject decoder = stage("WordPiece");
    decoder.set("prefix", "##");
    decoder.set("cleanup", true);
    root_.set("decoder", std::move(decoder));
    surround(true, true, metadata_.contains(key("cls_token_id")) ? "cls_token_id" : "bos_token_id",
             metadata_.contains(key("seperator_token_id")) ? "seperator_token_id" : "eos_token_id", true);
    const std::int64_t unknown_id = id("unknown_token_id");
    JsonObject model = stage("WordPiece");
    model.set("unk_token", unknown_id < 0 ? std::string("[UNK]") : spelled[static_cast<std::size_t>(unknown_id)]);
    model.set("continuing_subword_prefix", "##");
    model.set("max_input_chars_per_word", 100);
    model.set("vocab", vocabulary_json(spelled));
    root_.set("model", std::move(model));
  }

  const Metadata& metadata_;
  const std::string& name_;
  JsonObject root_;
  std::vector<std::string> warnings_;
  std::vector<std::string> tokens_;
  std::vector<std::int64_t> types_;
  std::vector<double> scores_;
  std::optional<Error> error_;
};

}  // namespace

Result<GgufTokenizer> read_gguf_tokenizer(const Metadata& metadata, const std::string& name) { return GgufReader(metadata, name).read(); }

}  // namespace modelc

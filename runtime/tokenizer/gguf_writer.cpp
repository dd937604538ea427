#include "runtime/tokenizer/gguf_writer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "runtime/base/base64.h"
#include "runtime/base/strings.h"
#include "runtime/tokenizer/gguf_ids.h"
#include "runtime/tokenizer/gguf_patterns.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc {
namespace {

enum TokenType : std::int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

std::string text_of(const Json* j, std::string_view key = {}) {
  if (j != nullptr && !key.empty()) j = j->find(key);
  return j != nullptr && j->as_string() != nullptr ? *j->as_string() : std::string();
}
bool truth(const Json* j, bool otherwise = false) { return j != nullptr && j->as_bool() ? *j->as_bool() : otherwise; }
bool given(const Json* j) { return j != nullptr && !j->is_null(); }
// A special token as tokenizer_config.json spells it: a text, or an object with its content.
std::string special(const Json& config, std::string_view key) {
  const Json* j = config.find(key);
  if (j != nullptr && j->is_object()) return text_of(j, "content");
  return text_of(j);
}

bool is_byte_token(std::string_view t) { return t.size() == 6 && t.starts_with("<0x") && t.back() == '>'; }

// The stages of a sequence, or the one that stands there.
std::vector<const Json*> stages_of(const Json* stage, const char* member) {
  std::vector<const Json*> out;
  if (!given(stage)) return out;
  if (text_of(stage, "type") != "Sequence") return {stage};
  const Json* list = stage->find(member);
  if (list != nullptr && list->as_array() != nullptr)
    for (const Json& s : *list->as_array()) out.push_back(&s);
  return out;
}

class TokenizerWriter {
 public:
  TokenizerWriter(const TokenizerFiles& files, std::int64_t vocabulary, MetadataBuilder& to, std::vector<std::string>& lost)
      : files_(files), vocabulary_(vocabulary), to_(to), lost_(lost) {}

  Status write() {
    model_ = files_.tokenizer.find("model");
    if (model_ == nullptr || !model_->is_object()) return refuse("it has no `model`");
    const std::string type = text_of(model_, "type");
    if (!type.empty() && type != "BPE" && type != "Unigram" && type != "WordPiece")
      return refuse("a model of type " + quote(type) + ", for which tokenizer.ggml.model has no name");
    if (Status s = read_tokens(); !s) return s;
    const bool bytes = truth(model_->find("byte_fallback"));
    Status made = type == "Unigram" ? unigram() : type == "WordPiece" ? word_pieces() : bytes ? by_score() : byte_level();
    if (!made) return made;
    to_.add_strings("tokenizer.ggml.tokens", tokens_);
    to_.add_i32s("tokenizer.ggml.token_type", types_);
    if (!scores_.empty()) to_.add_f32s("tokenizer.ggml.scores", scores_);
    if (!merges_.empty()) to_.add_strings("tokenizer.ggml.merges", merges_);
    if (Status s = ends(); !s) return s;
    templates();
    for (const char* key : {"truncation", "padding"})
      if (given(files_.tokenizer.find(key))) lost_.push_back(std::string("tokenizer.json: ") + key);
    list_keys(files_.tokenizer_config, "tokenizer_config.json",
              {"added_tokens_decoder", "bos_token", "eos_token", "unk_token", "pad_token", "cls_token", "sep_token", "mask_token",
               "chat_template", "add_bos_token", "add_eos_token", "tokenizer_class", "model_type", "transformers_version"});
    list_keys(files_.generation_config, "generation_config.json",
              {"bos_token_id", "eos_token_id", "pad_token_id", "transformers_version", "_from_model_config"});
    return {};
  }

 private:
  static Error refuse(const std::string& why) {
    return Error{"tokenizer-unsupported",
                 "tokenizer.json cannot be written as GGUF metadata: " + why,
                 {},
                 "--no-tokenizer writes the file without a tokenizer; its programs then take token ids"};
  }

  void list_keys(const Json& file, const char* name, const std::set<std::string, std::less<>>& carried) {
    const JsonObject* object = file.as_object();
    if (object == nullptr) return;
    std::vector<std::string> keys;
    for (const JsonMember& m : *object)
      if (!carried.contains(m.key) && !m.value.is_null()) keys.push_back(m.key);
    if (!keys.empty()) lost_.push_back(std::string(name) + ": " + listed(keys, 40));
  }

  Status add(std::int64_t id, const std::string& token, std::int32_t type) {
    if (id < 0 || id >= (std::int64_t{1} << 24)) return refuse("token " + quote(token) + " has the id " + std::to_string(id));
    const auto at = static_cast<std::size_t>(id);
    if (at >= tokens_.size()) tokens_.resize(at + 1), types_.resize(at + 1, 0);
    if (types_[at] != 0 && tokens_[at] != token)
      return refuse("the id " + std::to_string(id) + " is that of " + quote(tokens_[at]) + " and of " + quote(token));
    tokens_[at] = token;
    types_[at] = type;
    return {};
  }

  Status read_tokens() {
    const Json* vocab = model_->find("vocab");
    const JsonObject* object = vocab != nullptr ? vocab->as_object() : nullptr;
    if (const JsonArray* pieces = vocab != nullptr ? vocab->as_array() : nullptr) {      // of Unigram, with scores
      for (std::size_t i = 0; i < pieces->size(); ++i) {
        const JsonArray* pair = (*pieces)[i].as_array();
        if (pair == nullptr || pair->size() != 2 || (*pair)[0].as_string() == nullptr || !(*pair)[1].as_double())
          return refuse("piece " + std::to_string(i) + " of the vocabulary is no token with a score");
        if (Status s = add(static_cast<std::int64_t>(i), *(*pair)[0].as_string(), normal); !s) return s;
        scores_.push_back(static_cast<float>(*(*pair)[1].as_double()));
      }
    } else if (object == nullptr) {
      return refuse("its model has no vocabulary");
    } else {
      for (const JsonMember& m : *object) {
        if (!m.value.as_int()) return refuse("the vocabulary gives " + quote(m.key) + " no id");
        if (Status s = add(*m.value.as_int(), m.key, normal); !s) return s;
      }
    }
    unknown_token_ = text_of(model_, "unk_token");
    if (const Json* id = model_->find("unk_id"); id != nullptr && id->as_uint() && *id->as_uint() < tokens_.size())
      unknown_token_ = tokens_[static_cast<std::size_t>(*id->as_uint())];
    const Json* list = files_.tokenizer.find("added_tokens");
    std::vector<std::string> flags;
    if (list != nullptr && list->as_array() != nullptr)
      for (const Json& t : *list->as_array()) {
        const auto id = t.find("id") != nullptr ? t.find("id")->as_int() : std::nullopt;
        const std::string content = text_of(&t, "content");
        if (!id) return refuse("the added token " + quote(content) + " has no id");
        const std::int32_t type = content == unknown_token_ && !content.empty() ? unknown
                                  : truth(t.find("special"))                    ? control
                                                                                : user_defined;
        if (Status s = add(*id, content, type); !s) return s;
        for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"})
          if (truth(t.find(flag))) flags.push_back(quote(content) + " " + flag);
      }
    if (!flags.empty()) lost_.push_back("tokenizer.json, added tokens: " + listed(flags, 20));
    if (static_cast<std::int64_t>(tokens_.size()) > vocabulary_)
      return Error{"tokenizer-vocabulary",
                   "the tokenizer has ids up to " + std::to_string(tokens_.size() - 1) + ", and the model has " + grouped(vocabulary_) +
                       " rows for them",
                   {},
                   "--no-tokenizer"};
    tokens_.resize(static_cast<std::size_t>(vocabulary_));
    types_.resize(tokens_.size(), 0);
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      if (types_[i] == 0) tokens_[i] = "[PAD" + std::to_string(i) + "]", types_[i] = unused;
    return {};
  }

  // ---- BPE over bytes
  struct Cuts {
    std::vector<std::string> splits;
    bool byte_level = false, regex = false, digits = false;
  };
  Status read_cuts(Cuts& cuts) const {
    for (const Json* s : stages_of(files_.tokenizer.find("pre_tokenizer"), "pretokenizers")) {
      const std::string type = text_of(s, "type");
      if (type == "ByteLevel") {
        if (truth(s->find("add_prefix_space"))) return refuse("pre_tokenizer: a space before the text (add_prefix_space)");
        cuts.byte_level = true;
        cuts.regex = truth(s->find("use_regex"), true);
      } else if (type == "Digits" && truth(s->find("individual_digits")) && cuts.splits.empty()) {
        cuts.digits = true;
      } else if (type == "Split" && text_of(s, "behavior") == "Isolated" && !truth(s->find("invert")) && s->find("pattern") != nullptr &&
                 given(s->find("pattern")->find("Regex"))) {
        // Ends of lines as they are or as escapes: one pattern.
        cuts.splits.push_back(replace_all(replace_all(text_of(s->find("pattern"), "Regex"), "\r", "\\r"), "\n", "\\n"));
      } else {
        return refuse("pre_tokenizer: a stage of type " + quote(type) + " as it is set up there");
      }
    }
    return {};
  }

  Status byte_level() {
    Cuts cuts;
    if (Status s = read_cuts(cuts); !s) return s;
    if (!cuts.byte_level) return refuse("its words are no bytes (pre_tokenizer ByteLevel), and it has no byte_fallback");
    bool nfc = false;
    for (const Json* s : stages_of(files_.tokenizer.find("normalizer"), "normalizers")) {
      if (text_of(s, "type") != "NFC") return refuse("normalizer: a stage of type " + quote(text_of(s, "type")));
      nfc = true;
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!text_of(model_, key).empty()) return refuse(std::string("model: ") + key);
    const bool ignore_merges = truth(model_->find("ignore_merges"));
    // A name for this way of cutting; ids decide in the end (verify), where ignore_merges makes no difference.
    std::string name, near;
    for (const std::string_view pre : gguf_pattern_names()) {
      const auto p = gguf_pattern(pre);
      if (!p || p->byte_level_regex != cuts.regex || p->single_digits != cuts.digits || p->nfc != nfc ||
          !std::equal(p->splits.begin(), p->splits.end(), cuts.splits.begin(), cuts.splits.end()))
        continue;
      if (p->ignore_merges == ignore_merges && name.empty()) name = pre;
      if (near.empty()) near = pre;
    }
    if (name.empty()) name = near;
    if (name.empty()) return refuse("no value of tokenizer.ggml.pre stands for its normalizer and pre_tokenizer");
    to_.add_string("tokenizer.ggml.model", "gpt2");
    to_.add_string("tokenizer.ggml.pre", name);
    return read_merges();
  }

  Status read_merges() {
    const Json* list = model_->find("merges");
    if (list == nullptr || list->as_array() == nullptr) return refuse("its model has no merges");
    for (const Json& m : *list->as_array()) {
      if (m.as_string() != nullptr) {
        merges_.push_back(*m.as_string());
        continue;
      }
      const JsonArray* pair = m.as_array();
      if (pair == nullptr || pair->size() != 2 || (*pair)[0].as_string() == nullptr || (*pair)[1].as_string() == nullptr)
        return refuse("a merge is no pair of tokens");
      merges_.push_back(*(*pair)[0].as_string() + " " + *(*pair)[1].as_string());
    }
    for (const std::string& m : merges_)
      if (std::count(m.begin(), m.end(), ' ') != 1) return refuse("the merge " + quote(m) + " has a space within a token");
    return {};
  }

  // ---- BPE by scores, as sentencepiece has it
  static bool cuts_at_spaces(const Json* s) {
    return text_of(s, "type") == "Split" && s->find("pattern") != nullptr &&
           text_of(s->find("pattern"), "String").find(' ') != std::string::npos;
  }

  Status by_score() {
    bool prefix = false, spaces = false;
    const auto is_space_mark = [](const Json* s) {
      return text_of(s, "type") == "Replace" && text_of(s, "content") == "▁" && s->find("pattern") != nullptr &&
             text_of(s->find("pattern"), "String") == " ";
    };
    for (const Json* s : stages_of(files_.tokenizer.find("normalizer"), "normalizers")) {
      if (text_of(s, "type") == "Prepend" && text_of(s, "prepend") == "▁" && !spaces) prefix = true;
      else if (is_space_mark(s)) spaces = true;
      else return refuse("normalizer: a stage of type " + quote(text_of(s, "type")) + " as it is set up there");
    }
    for (const Json* s : stages_of(files_.tokenizer.find("pre_tokenizer"), "pretokenizers")) {
      if (spaces && cuts_at_spaces(s)) continue;            // of which there are none any more: Gemma's
      if (text_of(s, "type") != "Metaspace" || spaces || text_of(s, "replacement") != "▁" || truth(s->find("split"), true))
        return refuse("pre_tokenizer: a stage of type " + quote(text_of(s, "type")) + " as it is set up there");
      const std::string given_scheme = text_of(s, "prepend_scheme"), scheme = given_scheme.empty() ? "always" : given_scheme;
      prefix = scheme != "never";
      spaces = true;
      if (!prefix) continue;
      to_.add_string("modelc.tokenizer.prepend_scheme", scheme);
      lost_.push_back("tokenizer.json: prepend_scheme " + quote(scheme) +
                      " is said to modelc alone: for other programs a space stands before every text" +
                      (scheme == "first" ? " and after every special token" : "") + ", also before one that begins with a space");
    }
    if (!spaces) return refuse("spaces do not become ▁");
    if (Status s = read_merges(); !s) return s;
    if (Status s = score_tokens(); !s) return s;
    merges_.clear();
    // Such a token is looked for in the text as it comes, and given out as it stands: its spaces are spaces.
    std::vector<std::string> spaced;
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      if (types_[i] == user_defined && tokens_[i].find("▁") != std::string::npos) {
        spaced.push_back(quote(tokens_[i]));
        tokens_[i] = replace_all(tokens_[i], "▁", " ");
      }
    if (!spaced.empty()) lost_.push_back("tokenizer.json: that these stand for the sign ▁ itself, too: " + listed(spaced, 4));
    to_.add_string("tokenizer.ggml.model", "llama");
    to_.add_string("tokenizer.ggml.pre", "default");
    to_.add("tokenizer.ggml.add_space_prefix", prefix);
    return {};
  }

  static bool is_run(std::string_view token) {               // of one character
    const std::size_t size = token.empty() ? 0 : utf8::next(token, 0).size;
    for (std::size_t at = size; at < token.size(); at += size)
      if (token.substr(at, size) != token.substr(0, size)) return false;
    return size > 0;
  }

  // Scores that put merges in the order of their ranks. Such a tokenizer merges every pair whose union is a token, all pairs of
  // a token with one score, so the list must say the same: each pair there, and no two tokens' ranks mixed. Those of equal scores
  // are: their merges stand together, the longer left part first. Of a run of one character that is the same as merging from the
  // left, which equal scores mean; and what a user defined is found before anything is merged.
  Status score_tokens() {
    std::unordered_map<std::string_view, std::size_t> ids;
    for (std::size_t i = 0; i < tokens_.size(); ++i) ids.emplace(tokens_[i], i);
    struct Ranks {
      std::size_t first = 0, last = 0, count = 0;
    };
    std::map<std::size_t, Ranks> ranks;                    // by token
    std::vector<std::size_t> rises(merges_.size() + 1, 0);   // up to a rank: merges whose parts are longer than those before them
    std::pair<std::size_t, std::size_t> last_lengths;
    for (std::size_t r = 0; r < merges_.size(); ++r) {
      const std::size_t space = merges_[r].find(' ');
      const std::pair lengths(utf8::count(merges_[r].substr(0, space)), utf8::count(merges_[r].substr(space + 1)));
      rises[r + 1] = rises[r] + (r > 0 && lengths > last_lengths ? 1 : 0);
      last_lengths = lengths;
      const auto made = ids.find(std::string_view(joined_ = merges_[r].substr(0, space) + merges_[r].substr(space + 1)));
      if (made == ids.end()) return refuse("the merge " + quote(merges_[r]) + " makes no token");
      auto [at, fresh] = ranks.emplace(made->second, Ranks{r, r, 0});
      at->second.last = r;
      ++at->second.count;
    }
    std::vector<std::pair<std::size_t, std::size_t>> order; // first rank, token
    for (const auto& [token, r] : ranks) order.emplace_back(r.first, token);
    std::sort(order.begin(), order.end());
    scores_.assign(tokens_.size(), -static_cast<float>(tokens_.size()) - 1);
    std::size_t end = 0, score = 0, first = 0;               // of those that have this score: the last rank, the first one
    bool equal = true;                                     // they may have one score
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::size_t token = order[k].second;
      const Ranks& r = ranks[token];
      const bool mixed = k > 0 && r.first < end, may = types_[token] == user_defined || is_run(tokens_[token]);
      if (!mixed) score = k, first = r.first;
      equal = may && (equal || !mixed);
      end = mixed ? std::max(end, r.last) : r.last;
      if (mixed && (!equal || rises[end + 1] != rises[first + 1]))
        return refuse("the merges of " + quote(tokens_[token]) + " and of " + quote(tokens_[order[k - 1].second]) +
                      " are mixed: no scores give their order");
      scores_[token] = -static_cast<float>(score);
    }
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (types_[i] != normal) continue;
      const std::string& t = tokens_[i];
      if (is_byte_token(t)) {
        types_[i] = byte;
        continue;
      }
      std::size_t pairs = 0;
      for (std::size_t cut = 1; cut < t.size() && t.size() <= 256; ++cut)
        if ((static_cast<unsigned char>(t[cut]) & 0xC0) != 0x80 && ids.contains(std::string_view(t).substr(0, cut)) &&
            ids.contains(std::string_view(t).substr(cut)))
          ++pairs;
      const auto at = ranks.find(i);
      if (pairs != (at == ranks.end() ? 0 : at->second.count))
        return refuse("the token " + quote(t) + " is the union of " + counted(pairs, "pair") +
                      " of tokens, of which the merges do not list each once");
    }
    return {};
  }

  // ---- Unigram
  Status unigram() {
    const JsonArray* pieces = model_->find("vocab")->as_array();
    if (pieces == nullptr || pieces->empty()) return refuse("its model has no pieces with scores");
    // Added tokens and places without a text are found by no search: they get a score that bounds no other.
    scores_.resize(tokens_.size(), *std::min_element(scores_.begin(), scores_.end()));
    std::string charsmap;
    bool collapse = false;
    for (const Json* s : stages_of(files_.tokenizer.find("normalizer"), "normalizers")) {
      const std::string type = text_of(s, "type"), content = text_of(s, "content");
      const Json* pattern = s->find("pattern");
      if (type == "Precompiled" && charsmap.empty() && !collapse) charsmap = text_of(s, "precompiled_charsmap");
      else if (type == "Replace" && pattern != nullptr && text_of(pattern, "Regex") == " {2,}" && (content == " " || content == "▁"))
        collapse = true;
      else if (type != "Strip") return refuse("normalizer: a stage of type " + quote(type) + " as it is set up there");
    }
    bool metaspace = false, prefix = false;
    for (const Json* s : stages_of(files_.tokenizer.find("pre_tokenizer"), "pretokenizers")) {
      const std::string type = text_of(s, "type"), scheme = text_of(s, "prepend_scheme");
      if (type == "WhitespaceSplit" && !metaspace) {
        collapse = true;
      } else if (type == "Metaspace" && !metaspace && text_of(s, "replacement") == "▁") {
        metaspace = true;
        prefix = scheme.empty() ? truth(s->find("add_prefix_space"), true) : scheme != "never";
        if (scheme == "first")
          lost_.push_back("tokenizer.json: prepend_scheme \"first\" (text that follows a special token gets a space before it)");
      } else {
        return refuse("pre_tokenizer: a stage of type " + quote(type) + " as it is set up there");
      }
    }
    if (!metaspace) return refuse("spaces do not become ▁ (pre_tokenizer Metaspace)");
    to_.add_string("tokenizer.ggml.model", "t5");
    to_.add_string("tokenizer.ggml.pre", "default");
    to_.add("tokenizer.ggml.add_space_prefix", prefix);
    to_.add("tokenizer.ggml.remove_extra_whitespaces", collapse);
    if (!charsmap.empty()) {
      const auto bytes = from_base64(charsmap);
      if (!bytes) return refuse("normalizer: precompiled_charsmap is not base64");
      to_.add_bytes("tokenizer.ggml.precompiled_charsmap", *bytes);
    }
    if (truth(model_->find("byte_fallback"))) {
      for (std::size_t i = 0; i < tokens_.size(); ++i)
        if (types_[i] == normal && is_byte_token(tokens_[i])) types_[i] = byte;
      lost_.push_back(
          "tokenizer.json: byte_fallback, of which the tokens of bytes alone tell: programs that do not look at them give the unknown "
          "token");
    }
    return {};
  }

  // ---- words in parts: the parts that begin a word are marked here, those that go on in tokenizer.json
  Status word_pieces() {
    const auto is = [&](const char* stage, const char* type) {
      const Json* s = files_.tokenizer.find(stage);
      return given(s) && text_of(s, "type") == type;
    };
    const Json* normalizer = files_.tokenizer.find("normalizer");
    if (!is("normalizer", "BertNormalizer") || !truth(normalizer->find("clean_text")) || !truth(normalizer->find("handle_chinese_chars")))
      return refuse("normalizer: the format has one, BertNormalizer with clean_text and handle_chinese_chars");
    const bool lowercase = truth(normalizer->find("lowercase")), accents = truth(normalizer->find("strip_accents"), lowercase);
    if (!is("pre_tokenizer", "BertPreTokenizer")) return refuse("pre_tokenizer: the format has one, BertPreTokenizer");
    const std::string go_on = text_of(model_, "continuing_subword_prefix");
    const Json* longest = model_->find("max_input_chars_per_word");
    if (longest != nullptr && longest->as_int() != 100) return refuse("model: max_input_chars_per_word is not 100");
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (types_[i] != normal) continue;
      const bool goes_on = !go_on.empty() && tokens_[i].starts_with(go_on);
      if (goes_on && tokens_[i].size() == go_on.size()) return refuse("the token " + quote(tokens_[i]) + " is the mark alone");
      tokens_[i] = goes_on ? tokens_[i].substr(go_on.size()) : "▁" + tokens_[i];
    }
    to_.add_string("tokenizer.ggml.model", "bert");
    to_.add_string("tokenizer.ggml.pre", "default");
    if (!lowercase) to_.add("tokenizer.ggml.normalizer.lowercase", false);
    if (accents != lowercase) to_.add("tokenizer.ggml.normalizer.strip_accents", accents);
    return {};
  }

  // ---- what stands around a text, and the special tokens
  std::optional<std::size_t> id_of(const std::string& token) const {
    if (token.empty()) return std::nullopt;
    const auto at = std::find(tokens_.begin(), tokens_.end(), token);
    if (at == tokens_.end()) return std::nullopt;
    return static_cast<std::size_t>(at - tokens_.begin());
  }
  void add_id(const char* key, std::optional<std::size_t> id) {
    const std::string whole = std::string("tokenizer.ggml.") + key;
    if (id && !to_.contains(whole)) to_.add_u32(whole, static_cast<std::uint32_t>(*id));
  }
  // ids of a key: a number or a list of them, from generation_config.json, else config.json.
  std::vector<std::size_t> ids_of(const char* key) const {
    std::vector<std::size_t> ids;
    const Json* j = files_.generation_config.find(key);
    if (!given(j)) j = files_.config.find(key);
    if (!given(j)) return ids;
    const auto add = [&](const Json& v) {
      if (v.as_int() && *v.as_int() >= 0 && *v.as_int() < static_cast<std::int64_t>(tokens_.size()))
        ids.push_back(static_cast<std::size_t>(*v.as_int()));
    };
    if (j->as_array() != nullptr)
      for (const Json& v : *j->as_array()) add(v);
    else add(*j);
    return ids;
  }

  Status ends() {
    std::string begin, end;
    for (const Json* s : stages_of(files_.tokenizer.find("post_processor"), "processors")) {
      const std::string type = text_of(s, "type");
      if (type == "ByteLevel") continue;
      if (type == "BertProcessing" || type == "RobertaProcessing") {
        const auto named = [&](const char* key) {
          const Json* pair = s->find(key);
          return pair != nullptr && pair->as_array() != nullptr && !pair->as_array()->empty() ? text_of(&(*pair->as_array())[0])
                                                                                              : std::string();
        };
        if (!begin.empty() || !end.empty()) return refuse("post_processor: more than one token before or after the text");
        begin = named("cls");
        end = named("sep");
        continue;
      }
      const Json* single = s->find("single");
      if (type != "TemplateProcessing" || single == nullptr || single->as_array() == nullptr)
        return refuse("post_processor: a stage of type " + quote(type));
      bool text = false;
      for (const Json& part : *single->as_array()) {
        if (part.find("Sequence") != nullptr) {
          text = true;
          continue;
        }
        std::string& side = text ? end : begin;
        if (!side.empty()) return refuse("post_processor: more than one token before or after the text");
        side = text_of(part.find("SpecialToken"), "id");
      }
    }
    const auto bos_ids = ids_of("bos_token_id"), eos_ids = ids_of("eos_token_id"), pad_ids = ids_of("pad_token_id");
    auto bos = id_of(!begin.empty() ? begin : special(files_.tokenizer_config, "bos_token"));
    if (!bos && !bos_ids.empty()) bos = bos_ids[0];
    const auto spelled = id_of(special(files_.tokenizer_config, "eos_token"));
    std::vector<std::size_t> stops = eos_ids;
    if (const auto at = std::find(stops.begin(), stops.end(), spelled.value_or(tokens_.size())); at != stops.end())
      std::rotate(stops.begin(), at, at + 1);
    if (stops.empty() && spelled) stops = {*spelled};
    if (stops.empty() && id_of(end)) stops = {*id_of(end)};  // a model that generates nothing names no end
    if (!end.empty() && (stops.empty() || tokens_[stops[0]] != end))
      return refuse("post_processor: the token " + quote(end) + " after the text is not the one that ends it");
    add_id("bos_token_id", bos);
    const char* keys[] = {"eos_token_id", "eot_token_id", "eom_token_id"};
    for (std::size_t i = 0; i < stops.size(); ++i) {
      if (i < 3) add_id(keys[i], stops[i]);
      else lost_.push_back("generation_config.json: eos_token_id " + std::to_string(stops[i]));
    }
    if (spelled && !stops.empty() && std::find(stops.begin(), stops.end(), *spelled) == stops.end())
      lost_.push_back("tokenizer_config.json: eos_token " + quote(tokens_[*spelled]) + ", as generation_config.json has others");
    add_id("unknown_token_id", id_of(!unknown_token_.empty() ? unknown_token_ : special(files_.tokenizer_config, "unk_token")));
    auto pad = id_of(special(files_.tokenizer_config, "pad_token"));
    if (!pad && !pad_ids.empty()) pad = pad_ids[0];
    add_id("padding_token_id", pad);
    for (const auto& [key, name] :
         {std::pair{"cls_token_id", "cls_token"}, {"seperator_token_id", "sep_token"}, {"mask_token_id", "mask_token"}})
      add_id(key, id_of(special(files_.tokenizer_config, name)));
    to_.add("tokenizer.ggml.add_bos_token", !begin.empty());
    to_.add("tokenizer.ggml.add_eos_token", !end.empty());
    return {};
  }

  void templates() {
    const Json* t = files_.tokenizer_config.find("chat_template");
    if (files_.chat_template) {
      to_.add_string("tokenizer.chat_template", *files_.chat_template);
      if (given(t) && text_of(t) != *files_.chat_template)
        lost_.push_back("tokenizer_config.json: chat_template, as chat_template.jinja is there");
      return;
    }
    if (!given(t)) return;
    if (t->as_string() != nullptr) {
      to_.add_string("tokenizer.chat_template", *t->as_string());
      return;
    }
    if (t->as_array() == nullptr) return;
    for (const Json& entry : *t->as_array()) {
      const std::string name = text_of(&entry, "name"), text = text_of(&entry, "template");
      const std::string key = name == "default" ? "tokenizer.chat_template" : "tokenizer.chat_template." + name;
      if (!name.empty() && !to_.contains(key)) to_.add_string(key, text);
    }
  }

  const TokenizerFiles& files_;
  std::int64_t vocabulary_;
  MetadataBuilder& to_;
  std::vector<std::string>& lost_;
  const Json* model_ = nullptr;
  std::vector<std::string> tokens_, merges_;
  std::vector<std::int32_t> types_;
  std::vector<float> scores_;
  std::string unknown_token_, joined_;
};

Status verify(const TokenizerFiles& files, const MetadataBuilder& written) {
  auto before = Tokenizer::parse(dump(files.tokenizer));
  if (!before) return std::move(before.error());
  auto after = Tokenizer::from_metadata(written.build());
  if (!after) return std::move(after.error());
  const auto text = text_with_other_ids(*before, *after);
  if (!text) return {};
  return Error{"tokenizer-unsupported",
               "tokenizer.json cannot be written as GGUF metadata: the text " + quote(*text, 60) + " would get other ids",
               {},
               "--no-tokenizer writes the file without a tokenizer; its programs then take token ids"};
}

}  // namespace

Status add_gguf_tokenizer(const TokenizerFiles& files, std::int64_t vocabulary, MetadataBuilder& to, std::vector<std::string>& lost) {
  MetadataBuilder own;                                     // `to` gets nothing of one that is refused
  if (Status s = TokenizerWriter(files, vocabulary, own, lost).write(); !s) return s;
  if (Status s = verify(files, own); !s) return s;
  const Metadata made = own.build();
  for (std::size_t i = 0; i < made.size(); ++i) to.add_value(made.key(i), made.value(i));
  return {};
}

}  // namespace modelc

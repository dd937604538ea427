#include "runtime/tokenizer/normalizer.h"

#include <utility>
#include <vector>

#include "runtime/tokenizer/byte_alphabet.h"
#include "runtime/tokenizer/charsmap.h"
#include "runtime/tokenizer/pattern.h"
#include "runtime/tokenizer/unicode.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc {

namespace {

// A normal form longer than this is refused: a few replacements in a row can make a text of any length.
constexpr std::size_t longest_normalized = std::size_t{1} << 30;

Error too_long() { return {"tokenizer-text", "the normalizer makes the text longer than 1 GiB", {}, "encode it in parts"}; }

class UnicodeForm : public Normalizer {
 public:
  explicit UnicodeForm(unicode::Form form) : form_(form) {}
  Status apply(std::string& text, bool&) const override {
    unicode::normalize(form_, text);
    return {};
  }

 private:
  unicode::Form form_;
};

class Lowercase : public Normalizer {
 public:
  Status apply(std::string& text, bool&) const override {
    unicode::lowercase(text);
    return {};
  }
};

// Before each text between added tokens, unless it is empty.
class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  Status apply(std::string& text, bool&) const override {
    if (!text.empty()) text.insert(0, prefix_);
    return {};
  }

 private:
  std::string prefix_;
};

class Replace : public Normalizer {
 public:
  Replace(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  Status apply(std::string& text, bool& front_gone) const override {
    std::vector<Match> matches;
    if (Status status = pattern_.find_all(text, matches); !status) return status;
    if (matches.size() * content_.size() > longest_normalized) return too_long();
    if (!matches.empty() && matches[0].begin == 0) {
      const std::size_t front = utf8::count(std::string_view(text).substr(0, matches[0].end));
      if (front > 1 || (front == 1 && content_.empty())) front_gone = true;
    }
    if (!matches.empty()) text = replace_matches(text, matches, content_);
    return {};
  }

 private:
  Pattern pattern_;
  std::string content_;  // as it stands: groups of the pattern are not referred to
};

// White space at the ends.
class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  Status apply(std::string& text, bool& front_gone) const override {
    std::size_t begin = 0, end = text.size();
    while (left_ && begin < end) {
      const utf8::Character c = utf8::next(text, begin);
      if (!unicode::is_space(c.code)) break;
      begin += c.size;
    }
    while (right_ && end > begin) {
      const utf8::Character c = utf8::previous(text, end);
      if (!unicode::is_space(c.code)) break;
      end -= c.size;
    }
    text = text.substr(begin, end - begin);
    if (begin > 0) front_gone = true;
    return {};
  }

 private:
  bool left_, right_;
};

// What `becomes(character, out)` appends for each character.
template <class F> void rewrite(std::string& text, bool& front_gone, const F& becomes) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Character c = utf8::next(text, at);
    at += c.size;
    becomes(c.code, out);
    if (out.empty()) front_gone = true;
  }
  text.swap(out);
}

class StripAccents : public Normalizer {
 public:
  Status apply(std::string& text, bool& front_gone) const override {
    rewrite(text, front_gone, [](char32_t c, std::string& out) {
      if (!unicode::is_mark(c)) utf8::append(out, c);
    });
    return {};
  }
};

// What sentencepiece's "nmt" rules do with control characters and rare white space.
class Nmt : public Normalizer {
 public:
  Status apply(std::string& text, bool& front_gone) const override {
    rewrite(text, front_gone, [](char32_t c, std::string& out) {
      if ((c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) return;
      const bool space = c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
                         c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      utf8::append(out, space ? U' ' : c);
    });
    return {};
  }
};

// Each byte as a character of the byte alphabet.
class ByteLevel : public Normalizer {
 public:
  Status apply(std::string& text, bool&) const override {
    std::string out;
    out.reserve(text.size() + text.size() / 4);
    byte_alphabet.append(out, text);
    text.swap(out);
    return {};
  }
};

class Precompiled : public Normalizer {
 public:
  explicit Precompiled(Charsmap map) : map_(std::move(map)) {}
  Status apply(std::string& text, bool&) const override {
    if (!map_.apply(text, longest_normalized)) return too_long();
    return {};
  }

 private:
  Charsmap map_;
};

// Text for vocabularies of whole words: control characters go, spaces around Chinese characters, no accents, no capitals.
class WordText : public Normalizer {
 public:
  struct Options {
    bool clean_text, handle_chinese_chars, strip_accents, lowercase;
  };
  explicit WordText(Options options) : options_(options) {}
  Status apply(std::string& text, bool& front_gone) const override {
    if (options_.clean_text)
      rewrite(text, front_gone, [](char32_t c, std::string& out) {
        const bool line = c == '\t' || c == '\n' || c == '\r';
        if (c == 0 || (!line && unicode::is_cleaned_away(c))) return;
        utf8::append(out, line || unicode::is_space(c) ? U' ' : c);
      });
    if (options_.handle_chinese_chars)
      rewrite(text, front_gone, [](char32_t c, std::string& out) {
        const bool chinese = is_chinese(c);
        if (chinese) out += ' ';
        utf8::append(out, c);
        if (chinese) out += ' ';
      });
    if (options_.strip_accents) {
      unicode::normalize(unicode::Form::nfd, text);
      rewrite(text, front_gone, [](char32_t c, std::string& out) {
        if (!unicode::is_nonspacing_mark(c)) utf8::append(out, c);
      });
    }
    if (options_.lowercase) unicode::lowercase(text);
    return {};
  }

 private:
  // The blocks of unified and compatibility ideographs (not all of them: so the reference has it).
  static bool is_chinese(char32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
           (c >= 0x2F800 && c <= 0x2FA1F);
  }
  Options options_;
};

class Sequence : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> stages) : stages_(std::move(stages)) {}
  Status apply(std::string& text, bool& front_gone) const override {
    for (const auto& stage : stages_) {
      if (Status status = stage->apply(text, front_gone); !status) return status;
      if (text.size() > longest_normalized) return too_long();
    }
    return {};
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> stages_;
};

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(const Reader& reader) {
  const std::string type = reader.type();
  if (!reader.ok()) return nullptr;
  constexpr std::pair<std::string_view, unicode::Form> forms[] = {
      {"NFC", unicode::Form::nfc}, {"NFD", unicode::Form::nfd}, {"NFKC", unicode::Form::nfkc}, {"NFKD", unicode::Form::nfkd}};
  for (const auto& [name, form] : forms) {
    if (type != name) continue;
    reader.only({"type"});
    return std::make_unique<UnicodeForm>(form);
  }
  if (type == "Lowercase") {
    reader.only({"type"});
    return std::make_unique<Lowercase>();
  }
  if (type == "StripAccents" || type == "Nmt" || type == "ByteLevel") {
    reader.only({"type"});
    if (type == "Nmt") return std::make_unique<Nmt>();
    if (type == "ByteLevel") return std::make_unique<ByteLevel>();
    return std::make_unique<StripAccents>();
  }
  if (type == "Strip") {
    reader.only({"type", "strip_left", "strip_right"});
    return std::make_unique<Strip>(reader.boolean("strip_left"), reader.boolean("strip_right"));
  }
  if (type == "Precompiled") {
    reader.only({"type", "precompiled_charsmap"});
    Charsmap map;
    if (reader.has("precompiled_charsmap")) {
      Result<Charsmap> read = Charsmap::read_base64(reader.string("precompiled_charsmap"));
      if (read) map = std::move(*read);
      else reader.member("precompiled_charsmap").fail(read.error());
    }
    return std::make_unique<Precompiled>(std::move(map));
  }
  if (type == "BertNormalizer") {
    reader.only({"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
    const bool lowercase = reader.boolean("lowercase");
    return std::make_unique<WordText>(WordText::Options{reader.boolean("clean_text"), reader.boolean("handle_chinese_chars"),
                                                        reader.boolean("strip_accents", lowercase), lowercase});
  }
  if (type == "Prepend") {
    reader.only({"type", "prepend"});
    return std::make_unique<Prepend>(reader.string("prepend"));
  }
  if (type == "Replace") {
    reader.only({"type", "pattern", "content"});
    return std::make_unique<Replace>(Pattern::read(reader), reader.string("content"));
  }
  if (type == "Sequence") {
    reader.only({"type", "normalizers"});
    std::vector<std::unique_ptr<Normalizer>> stages;
    for (const Reader& r : reader.list("normalizers")) stages.push_back(read_normalizer(r));
    return std::make_unique<Sequence>(std::move(stages));
  }
  reader.refuse_type(type, {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "Nmt", "ByteLevel", "Precompiled",
                            "BertNormalizer", "Prepend", "Replace", "Sequence"});
  return nullptr;
}

}  // namespace modelc

#include "runtime/tokenizer/normalizer.h"

#include <utility>
#include <vector>

#include "runtime/tokenizer/pattern.h"
#include "runtime/tokenizer/unicode.h"

namespace modelc {

namespace {

class UnicodeForm : public Normalizer {
 public:
  explicit UnicodeForm(unicode::Form form) : form_(form) {}
  Status apply(std::string& text) const override {
    unicode::normalize(form_, text);
    return {};
  }

 private:
  unicode::Form form_;
};

class Lowercase : public Normalizer {
 public:
  Status apply(std::string& text) const override {
    unicode::lowercase(text);
    return {};
  }
};

// Before each text between added tokens, unless it is empty.
class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  Status apply(std::string& text) const override {
    if (!text.empty()) text.insert(0, prefix_);
    return {};
  }

 private:
  std::string prefix_;
};

class Replace : public Normalizer {
 public:
  Replace(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  Status apply(std::string& text) const override {
    std::vector<Match> matches;
    if (Status status = pattern_.find_all(text, matches); !status) return status;
    if (!matches.empty()) text = replace_matches(text, matches, content_);
    return {};
  }

 private:
  Pattern pattern_;
  std::string content_;  // as it stands: groups of the pattern are not referred to
};

class Sequence : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> stages) : stages_(std::move(stages)) {}
  Status apply(std::string& text) const override {
    for (const auto& stage : stages_)
      if (Status status = stage->apply(text); !status) return status;
    return {};
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> stages_;
};

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(const Reader& reader) {
  const std::string type = reader.type();
  if (!reader.ok()) return nullptr;
  constexpr std::pair<std::string_view, unicode::Form> forms[] = {{"NFC", unicode::Form::nfc},
                                                                  {"NFD", unicode::Form::nfd},
                                                                  {"NFKC", unicode::Form::nfkc},
                                                                  {"NFKD", unicode::Form::nfkd}};
  for (const auto& [name, form] : forms) {
    if (type != name) continue;
    reader.only({"type"});
    return std::make_unique<UnicodeForm>(form);
  }
  if (type == "Lowercase") {
    reader.only({"type"});
    return std::make_unique<Lowercase>();
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
  reader.refuse_type(type, {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Prepend", "Replace", "Sequence"});
  return nullptr;
}

}  // namespace modelc

#include "runtime/tokenizer/post_processor.h"

#include <string>
#include <utility>

#include "runtime/base/strings.h"

namespace modelc {

namespace {

// Trims offsets of tokens in the text; there are none here, so the ids stay as they are.
class ByteLevel : public PostProcessor {
 public:
  void apply(std::vector<std::int32_t>&, bool) const override {}
};

// A template like "<s> $A": special tokens and the text, in order.
class Template : public PostProcessor {
 public:
  struct Part {
    bool is_text;
    std::vector<std::int32_t> ids;  // of a special token
  };
  explicit Template(std::vector<Part> parts) : parts_(std::move(parts)) {}

  void apply(std::vector<std::int32_t>& ids, bool add_special_tokens) const override {
    std::vector<std::int32_t> result;
    for (const Part& p : parts_) {
      if (p.is_text)
        result.insert(result.end(), ids.begin(), ids.end());
      else if (add_special_tokens)
        result.insert(result.end(), p.ids.begin(), p.ids.end());
    }
    ids.swap(result);
  }

 private:
  std::vector<Part> parts_;
};

class Sequence : public PostProcessor {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PostProcessor>> stages) : stages_(std::move(stages)) {}
  void apply(std::vector<std::int32_t>& ids, bool add_special_tokens) const override {
    for (const auto& stage : stages_) stage->apply(ids, add_special_tokens);
  }

 private:
  std::vector<std::unique_ptr<PostProcessor>> stages_;
};

// "single" is the template of one text; "pair", of two, is not used here. "special_tokens" says which ids stand for a
// name in the template.
std::unique_ptr<PostProcessor> read_template(const Reader& reader) {
  reader.only({"type", "single", "pair", "special_tokens"});
  std::vector<Template::Part> parts;
  for (const Reader& item : reader.list("single")) {
    item.only({"Sequence", "SpecialToken"});
    if (item.has("Sequence")) {
      const Reader sequence = item.member("Sequence");
      if (const std::string which = sequence.string("id"); which != "A")
        sequence.fail("tokenizer-field", "the template of one text names the sequence " + quote(which));
      parts.push_back({true, {}});
      continue;
    }
    const Reader special = item.member("SpecialToken");
    const std::string name = special.string("id");
    if (!reader.ok()) return nullptr;
    const Reader all = reader.member("special_tokens");
    if (!all.has(name)) {
      special.fail("tokenizer-field", "the template names " + quote(name) + ", but special_tokens does not have it");
      return nullptr;
    }
    std::vector<std::int32_t> ids;
    for (const Reader& id : all.member(name).list("ids")) ids.push_back(id.as_whole());
    parts.push_back({false, std::move(ids)});
  }
  return std::make_unique<Template>(std::move(parts));
}

}  // namespace

std::unique_ptr<PostProcessor> read_post_processor(const Reader& reader) {
  const std::string type = reader.type();
  if (!reader.ok()) return nullptr;
  if (type == "ByteLevel") {
    reader.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return std::make_unique<ByteLevel>();
  }
  if (type == "TemplateProcessing") return read_template(reader);
  if (type == "Sequence") {
    reader.only({"type", "processors"});
    std::vector<std::unique_ptr<PostProcessor>> stages;
    for (const Reader& r : reader.list("processors")) stages.push_back(read_post_processor(r));
    return std::make_unique<Sequence>(std::move(stages));
  }
  reader.refuse_type(type, {"ByteLevel", "TemplateProcessing", "Sequence"});
  return nullptr;
}

}  // namespace modelc

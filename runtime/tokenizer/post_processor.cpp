#include "runtime/tokenizer/post_processor.h"

#include <string>
#include <utility>

#include "runtime/base/strings.h"

namespace modelc {

namespace {

// Trims offsets of tokens in the text; there are none here, so the ids stay as they are.
class ByteLevel : public PostProcessor {
 public:
  void apply(IdRows&, bool) const override {}
};

// A template like "<s> $A": special tokens and the texts, in order; one for one text and one for two.
class Template : public PostProcessor {
 public:
  struct Part {
    int text;                       // 0 or 1; -1: a special token
    std::vector<std::int32_t> ids;  // of a special token
  };
  Template(std::vector<Part> single, std::vector<Part> pair) : single_(std::move(single)), pair_(std::move(pair)) {}

  void apply(IdRows& rows, bool add_special_tokens) const override {
    IdRows result;
    for (const Part& p : rows.size() == 2 ? pair_ : single_) {
      if (p.text >= 0) result.push_back(rows[static_cast<std::size_t>(p.text)]);
      else if (add_special_tokens) result.push_back(p.ids);
    }
    rows.swap(result);
  }

 private:
  std::vector<Part> single_, pair_;
};

// A token before the first text and one after each; before the second the same one again, if it is `doubled`.
class Enclosed : public PostProcessor {
 public:
  Enclosed(std::int32_t begin, std::int32_t end, bool doubled) : begin_(begin), end_(end), doubled_(doubled) {}
  void apply(IdRows& rows, bool add_special_tokens) const override {
    if (!add_special_tokens) return;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i == 0 || doubled_) rows[i].insert(rows[i].begin(), i == 0 ? begin_ : end_);
      rows[i].push_back(end_);
    }
  }

 private:
  std::int32_t begin_, end_;
  bool doubled_;
};

class Sequence : public PostProcessor {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PostProcessor>> stages) : stages_(std::move(stages)) {}
  void apply(IdRows& rows, bool add_special_tokens) const override {
    for (const auto& stage : stages_) stage->apply(rows, add_special_tokens);
  }

 private:
  std::vector<std::unique_ptr<PostProcessor>> stages_;
};

// The member "single" or "pair"; "special_tokens" says which ids stand for a name in the template.
std::vector<Template::Part> read_parts(const Reader& reader, std::string_view key) {
  std::vector<Template::Part> parts;
  for (const Reader& item : reader.list(key)) {
    item.only({"Sequence", "SpecialToken"});
    if (item.has("Sequence")) {
      const Reader sequence = item.member("Sequence");
      const std::string which = sequence.string("id");
      if (which != "A" && (which != "B" || key == "single"))
        sequence.fail("tokenizer-field",
                      "the template of " + std::string(key == "single" ? "one text" : "two texts") + " names the sequence " + quote(which));
      parts.push_back({which == "A" ? 0 : 1, {}});
      continue;
    }
    const Reader special = item.member("SpecialToken");
    const std::string name = special.string("id");
    if (!reader.ok()) return parts;
    const Reader all = reader.member("special_tokens");
    if (!all.has(name)) {
      special.fail("tokenizer-field", "the template names " + quote(name) + ", but special_tokens does not have it");
      return parts;
    }
    std::vector<std::int32_t> ids;
    for (const Reader& id : all.member(name).list("ids")) ids.push_back(id.as_whole());
    parts.push_back({-1, std::move(ids)});
  }
  return parts;
}

std::unique_ptr<PostProcessor> read_template(const Reader& reader) {
  reader.only({"type", "single", "pair", "special_tokens"});
  std::vector<Template::Part> single = read_parts(reader, "single"), pair;
  if (reader.has("pair")) pair = read_parts(reader, "pair");
  else pair = {{0, {}}, {1, {}}};
  return std::make_unique<Template>(std::move(single), std::move(pair));
}

// ["[SEP]", 102]
std::int32_t read_named_id(const Reader& reader, std::string_view key) {
  const std::vector<Reader> pair = reader.list(key);
  if (reader.ok() && pair.size() != 2) reader.member(key).fail("tokenizer-field", "expected a token and its id");
  if (!reader.ok()) return 0;
  static_cast<void>(pair[0].as_string());
  return pair[1].as_whole();
}

// Whether it puts tokens in or joins the texts, after which no other can tell them apart.
bool is_about_tokens(const Reader& reader) {
  const std::string type = reader.type();
  if (type != "Sequence") return type != "ByteLevel";
  for (const Reader& r : reader.list("processors"))
    if (reader.ok() && is_about_tokens(r)) return true;
  return false;
}

}  // namespace

std::unique_ptr<PostProcessor> read_post_processor(const Reader& reader) {
  const std::string type = reader.type();
  if (!reader.ok()) return nullptr;
  if (type == "ByteLevel") {
    reader.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return std::make_unique<ByteLevel>();
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    reader.only({"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
    return std::make_unique<Enclosed>(read_named_id(reader, "cls"), read_named_id(reader, "sep"), type == "RobertaProcessing");
  }
  if (type == "TemplateProcessing") return read_template(reader);
  if (type == "Sequence") {
    reader.only({"type", "processors"});
    std::vector<std::unique_ptr<PostProcessor>> stages;
    bool any = false;
    for (const Reader& r : reader.list("processors")) {
      if (!reader.ok()) return nullptr;
      const bool about_tokens = is_about_tokens(r);
      if (about_tokens && any) r.fail("tokenizer-unsupported", "a second processor that puts special tokens in is not carried out");
      any = any || about_tokens;
      stages.push_back(read_post_processor(r));
    }
    return std::make_unique<Sequence>(std::move(stages));
  }
  reader.refuse_type(type, {"ByteLevel", "TemplateProcessing", "BertProcessing", "RobertaProcessing", "Sequence"});
  return nullptr;
}

}  // namespace modelc

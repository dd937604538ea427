// YAML through yaml-cpp's events, so that anchors, marks and duplicate keys are seen as they stand in the text.
#include "runtime/base/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "runtime/base/mapped_file.h"
#include "runtime/base/strings.h"

namespace modelc {
namespace {

// Leaves yaml-cpp's parser; caught in parse_yaml and nowhere else.
struct Refused {
  Error error;
};

bool all_of(std::string_view text, std::string_view set) { return !text.empty() && text.find_first_not_of(set) == text.npos; }

// A float of the core schema: [-+]? (digits, with at most one point) ([eE] [-+]? digits)?
std::optional<double> core_float(std::string_view text) {
  std::string_view rest = text;
  if (rest.starts_with('+') || rest.starts_with('-')) rest.remove_prefix(1);
  const bool negative = text.starts_with('-');
  if (rest == ".inf" || rest == ".Inf" || rest == ".INF")
    return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  const std::size_t exponent = rest.find_first_of("eE");
  const std::string_view mantissa = rest.substr(0, exponent);
  const std::size_t point = mantissa.find('.');
  if (point == mantissa.npos ? !all_of(mantissa, "0123456789")
                             : mantissa.size() == 1 || !all_of(std::string(mantissa).erase(point, 1), "0123456789"))
    return std::nullopt;
  if (exponent != rest.npos) {
    std::string_view e = rest.substr(exponent + 1);
    if (e.starts_with('+') || e.starts_with('-')) e.remove_prefix(1);
    if (!all_of(e, "0123456789")) return std::nullopt;
  }
  const std::optional<double> value = parse_double(rest);
  if (!value) return std::nullopt;
  return negative ? -*value : *value;
}

// A plain scalar by YAML 1.2's core schema. Nothing for what is not accepted (.nan).
std::optional<Json> core_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return Json(nullptr);
  if (text == "true" || text == "True" || text == "TRUE") return Json(true);
  if (text == "false" || text == "False" || text == "FALSE") return Json(false);
  if (text == ".nan" || text == ".NaN" || text == ".NAN") return std::nullopt;
  if (text.starts_with("0o") || text.starts_with("0x")) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data() + 2, end, value, text[1] == 'o' ? 8 : 16);
    if (error == std::errc{} && at == end && text.size() > 2) return Json(value);
  }
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const std::string_view unsigned_digits = digits.starts_with('-') ? digits.substr(1) : digits;
  if (all_of(unsigned_digits, "0123456789")) {
    if (const auto i = parse_int(digits)) return Json(*i);
    if (const auto u = parse_uint(digits)) return Json(*u);
  }
  if (const auto d = core_float(text)) return Json(*d);
  return Json(text);
}

// Values in a tree, itself included.
std::size_t count_values(const Json& value) {
  std::size_t n = 1;
  if (const JsonArray* items = value.as_array())
    for (const Json& item : *items) n += count_values(item);
  if (const JsonObject* members = value.as_object())
    for (const JsonMember& m : *members) n += count_values(m.value);
  return n;
}

int depth_of(const Json& value) {
  int deepest = 0;
  if (const JsonArray* items = value.as_array())
    for (const Json& item : *items) deepest = std::max(deepest, depth_of(item));
  if (const JsonObject* members = value.as_object())
    for (const JsonMember& m : *members) deepest = std::max(deepest, depth_of(m.value));
  return deepest + (value.is_array() || value.is_object() ? 1 : 0);
}

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const JsonOptions& options) : options_(options) {}

  Json take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { scalar(mark, anchor, Json(nullptr), {}); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchored_.find(anchor);
    if (it == anchored_.end()) refuse("yaml-syntax", mark, "this alias stands inside of what it names");
    values_ += it->second.values;
    check_count(mark);
    if (static_cast<int>(open_.size()) + it->second.depth > options_.max_depth) too_deep(mark);
    Json copy = it->second.value;
    if (!open_.empty() && open_.back().expects_key) {
      if (!copy.is_string()) refuse("yaml-syntax", mark, "a key must be a string");
      key(mark, *copy.as_string());
      return;
    }
    // Its parts keep the lines where they are written; the value itself stands here.
    copy.set_place(offset(mark), line(mark));
    attach(std::move(copy), 0, mark);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& text) override {
    const bool as_string = tag == "!" || tag == "tag:yaml.org,2002:str";
    std::optional<Json> value;
    if (as_string) {
      value = Json(text);
    } else if (tag == "?" || tag.empty()) {
      value = core_scalar(text);
      if (!value) refuse("yaml-syntax", mark, "NaN is no value that can be used");
    } else {
      check_tag(mark, tag);
      value = core_scalar(text);
      const bool fits = value && ((tag == core("null") && value->is_null()) || (tag == core("bool") && value->is_bool()) ||
                                  (tag == core("int") && value->is_integer()) || (tag == core("float") && value->is_number()));
      if (!fits) refuse("yaml-syntax", mark, quote(text, 40) + " is not what its tag says");
      if (tag == core("float")) value = Json(*value->as_double());
    }
    scalar(mark, anchor, *std::move(value), text);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(mark, tag, "seq", anchor, Json(JsonArray()));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(mark, tag, "map", anchor, Json(JsonObject()));
    open_.back().expects_key = true;
  }
  void OnMapEnd() override { close(); }

  [[noreturn]] void refuse(const char* kind, const YAML::Mark& mark, std::string message) const {
    std::string where = options_.name;
    if (!mark.is_null()) where += ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
    throw Refused{Error{kind, where + ": " + std::move(message), {}, {}}};
  }

 private:
  // A container that is not closed yet.
  struct Open {
    Json value;
    YAML::anchor_t anchor;
    YAML::Mark mark;
    JsonMember member;          // of a map: the key whose value comes next
    bool expects_key = false;
  };
  struct Anchored {
    Json value;
    std::size_t values;
    int depth;
  };

  static std::string core(const char* name) { return std::string("tag:yaml.org,2002:") + name; }
  static std::uint32_t offset(const YAML::Mark& m) { return m.is_null() ? 0 : static_cast<std::uint32_t>(m.pos); }
  static std::uint32_t line(const YAML::Mark& m) { return m.is_null() ? 0 : static_cast<std::uint32_t>(m.line + 1); }

  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag == "?" || tag == "!" || tag.empty()) return;
    for (const char* known : {"null", "bool", "int", "float", "str", "seq", "map"})
      if (tag == core(known)) return;
    refuse("yaml-syntax", mark, "the tag " + quote(tag, 60) + " is not one of YAML's core schema");
  }

  void check_count(const YAML::Mark& mark) const {
    if (values_ > options_.max_values)
      refuse("yaml-size", mark, "more than " + grouped(static_cast<std::uint64_t>(options_.max_values)) + " values, aliases expanded");
  }

  [[noreturn]] void too_deep(const YAML::Mark& mark) const {
    refuse("yaml-depth", mark, "lists and maps are nested deeper than " + std::to_string(options_.max_depth));
  }

  void scalar(const YAML::Mark& mark, YAML::anchor_t anchor, Json value, const std::string& text) {
    ++values_;
    check_count(mark);
    value.set_place(offset(mark), line(mark));
    if (!open_.empty() && open_.back().expects_key) {
      if (anchor) anchored_.insert_or_assign(anchor, Anchored{value, 1, 0});
      // A plain key such as 1 or true is taken by its text: keys of a configuration are names.
      key(mark, value.is_string() ? *value.as_string() : text);
      return;
    }
    attach(std::move(value), anchor, mark);
  }

  void key(const YAML::Mark& mark, const std::string& text) {
    if (text == "<<") refuse("yaml-syntax", mark, "merge keys are not carried out; write the members out");
    Open& map = open_.back();
    if (const JsonMember* first = map.value.as_object()->find_member(text))
      refuse("yaml-duplicate-key", mark, "duplicate key " + quote(text) + ", first at line " + std::to_string(first->line));
    map.member.key = text;
    map.member.offset = offset(mark);
    map.member.line = line(mark);
    map.expects_key = false;
  }

  void open(const YAML::Mark& mark, const std::string& tag, const char* kind, YAML::anchor_t anchor, Json value) {
    check_tag(mark, tag);
    if (tag.starts_with("tag:") && tag != core(kind)) refuse("yaml-syntax", mark, "this is not what its tag says");
    ++values_;
    check_count(mark);
    if (!open_.empty() && open_.back().expects_key) refuse("yaml-syntax", mark, "a key must be a string");
    if (static_cast<int>(open_.size()) >= options_.max_depth) too_deep(mark);
    value.set_place(offset(mark), line(mark));
    open_.push_back(Open{std::move(value), anchor, mark, {}, false});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    attach(std::move(done.value), done.anchor, done.mark);
  }

  void attach(Json value, YAML::anchor_t anchor, const YAML::Mark& mark) {
    if (anchor) {
      Anchored entry{value, count_values(value), depth_of(value)};
      // The copy that is kept takes memory, too.
      values_ += entry.values;
      check_count(mark);
      anchored_.insert_or_assign(anchor, std::move(entry));
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    if (JsonArray* items = parent.value.as_array()) {
      items->push_back(std::move(value));
      return;
    }
    parent.member.value = std::move(value);
    parent.value.as_object()->append(std::exchange(parent.member, JsonMember{}));
    parent.expects_key = true;
  }

  const JsonOptions& options_;
  Json root_;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, Anchored> anchored_;
  std::size_t values_ = 0;
};

}  // namespace

Result<Json> parse_yaml(std::string_view text, const JsonOptions& options) {
  const auto error = [&](const char* kind, std::string message) { return Error{kind, options.name + ": " + std::move(message), {}, {}}; };
  if (text.size() > options.max_bytes)
    return error("yaml-size", "the text has " + grouped(static_cast<std::uint64_t>(text.size())) + " bytes; at most " +
                                  grouped(static_cast<std::uint64_t>(options.max_bytes)) + " are read");
  if (!is_utf8(text)) return error("yaml-syntax", "the text is not UTF-8");
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder(options);
    if (!parser.HandleNextDocument(builder)) return error("yaml-syntax", "the text holds no document");
    Json root = builder.take_root();
    TreeBuilder second(options);
    if (parser.HandleNextDocument(second)) return error("yaml-syntax", "the text holds several documents");
    return root;
  } catch (Refused& refused) { return std::move(refused.error); } catch (const YAML::Exception& e) {
    std::string where;
    if (!e.mark.is_null()) where = std::to_string(e.mark.line + 1) + ":" + std::to_string(e.mark.column + 1) + ": ";
    Error out = error("yaml-syntax", e.msg);
    if (!where.empty()) out.message = options.name + ":" + where + e.msg;
    return out;
  } catch (const std::exception& e) { return error("yaml-syntax", e.what()); }
}

Result<JsonFile> read_yaml_file(const std::string& path, JsonOptions options) {
  if (options.name == JsonOptions{}.name) options.name = printable(path);
  Result<std::string> text = read_text_file(path, options.max_bytes);
  if (!text) return std::move(text.error());
  Result<Json> root = parse_yaml(*text, options);
  if (!root) return std::move(root.error());
  return JsonFile{path, *std::move(text), *std::move(root)};
}

Result<JsonFile> read_config_file(const std::string& path, JsonOptions options) {
  const std::string lower = to_lower_ascii(path);
  if (lower.ends_with(".yaml") || lower.ends_with(".yml")) return read_yaml_file(path, std::move(options));
  return read_json_file(path, std::move(options));
}

}  // namespace modelc

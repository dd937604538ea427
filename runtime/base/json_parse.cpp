// Reads JSON text into the value tree. simdjson finds the structure and decodes strings; numbers, duplicate keys,
// limits and places are ours. Every value is visited, so that nothing of the text goes unchecked.
#include <simdjson.h>

#include <cassert>
#include <charconv>
#include <limits>
#include <system_error>

#include "runtime/base/json.h"
#include "runtime/base/json_fault.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/strings.h"

namespace modelc {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::string_view space = " \t\r\n";

class Parser {
 public:
  Parser(std::string_view text, std::size_t skipped, const JsonOptions& options)
      : options_(options), padded_(text), skipped_(skipped), base_(padded_.data()), counted_to_(base_) {}

  Result<Json> parse() {
    ondemand::document document;
    if (const auto code = parser_.iterate(padded_).get(document)) return structure_error(code);
    const std::string_view text(base_, padded_.size());
    const std::size_t first = text.find_first_not_of(space);
    const std::string_view rest = text.substr(first);  // iterate() refused an empty text
    Json root;
    place(root, base_ + first);
    bool good;
    if (rest.front() == '[') {
      ondemand::array array;
      const auto code = document.get_array().get(array);
      good = code ? fail_root(code) : read_array(array, root, 1);
    } else if (rest.front() == '{') {
      ondemand::object object;
      const auto code = document.get_object().get(object);
      good = code ? fail_root(code) : read_object(object, root, 1);
    } else if (rest.front() == '"') {
      std::string_view string;
      const auto code = document.get_string().get(string);
      good = code ? fail(code, base_ + first) : true;
      if (good) root = Json(string);
    } else {
      // A single number or word: what follows it, if anything, makes it none.
      good = read_scalar(rest.substr(0, rest.find_last_not_of(space) + 1), root);
      return finish(good, std::move(root));
    }
    // Past the last token there is no location.
    const char* at = nullptr;
    if (good && document.current_location().get(at) != simdjson::OUT_OF_BOUNDS) {
      if (at) last_ = at;
      good = refuse_syntax(last_, "there is more text after the end of the value");
    }
    return finish(good, std::move(root));
  }

 private:
  Result<Json> finish(bool good, Json root) {
    if (!good) return std::move(error_);
    return root;
  }

  // ---- places ----

  std::uint32_t offset_of(const char* at) const { return static_cast<std::uint32_t>(static_cast<std::size_t>(at - base_) + skipped_); }

  // Values come in the order of the text, so lines are counted once over the whole text.
  std::uint32_t line_of(const char* at) {
    if (at < counted_to_) {
      counted_to_ = base_;
      line_ = 1;
    }
    for (; counted_to_ < at; ++counted_to_) line_ += *counted_to_ == '\n';
    return line_;
  }

  void place(Json& value, const char* at) {
    last_ = at;
    const std::uint32_t line = line_of(at);
    value.set_place(offset_of(at), line);
  }

  // ---- errors ----

  bool refuse(const char* kind, const char* at, std::string message, std::string help = {}) {
    std::string where = options_.name;
    if (at) {
      if (options_.places_are_bytes) {
        where += ": byte " + grouped(options_.byte_base + offset_of(at));
      } else {
        const char* begin = at;
        while (begin > base_ && begin[-1] != '\n') --begin;
        where += ":" + std::to_string(line_of(at)) + ":" + std::to_string(at - begin + 1);
      }
    }
    error_ = Error{kind, where + ": " + std::move(message), {}, std::move(help)};
    return false;
  }

  // Says what is wrong with the text's grammar at the place where it is wrong; `otherwise`, at `at`, where it is not that.
  bool refuse_syntax(const char* at, const char* otherwise) {
    if (auto fault = find_json_fault({base_, padded_.size()}))
      return refuse("json-syntax", base_ + fault->at, std::move(fault->what), std::move(fault->help));
    return refuse("json-syntax", at, otherwise);
  }

  bool fail(simdjson::error_code code, const char* at) {
    if (code == simdjson::STRING_ERROR) return refuse("json-syntax", at, "this string has an escape that JSON does not know");
    return refuse_syntax(at, "this is not JSON");
  }

  // The first bracket that is nested too deep, in a text that does not close all of them; null where none is.
  const char* beyond_depth() const {
    int depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < padded_.size(); ++i) {
      const char c = base_[i];
      if (in_string) {
        if (c == '\\') ++i;
        else if (c == '"') in_string = false;
      } else if (c == '"') {
        in_string = true;
      } else if (c == '[' || c == '{') {
        if (++depth > options_.max_depth) return base_ + i;
      } else if (c == ']' || c == '}') {
        --depth;
      }
    }
    return nullptr;
  }

  bool fail_root(simdjson::error_code code) {
    if (code != simdjson::INCOMPLETE_ARRAY_OR_OBJECT) return fail(code, last_);
    if (const char* deep = beyond_depth()) return too_deep(deep);
    return fail(code, last_);
  }

  // Errors of the first pass, which does not know where it was.
  Error structure_error(simdjson::error_code code) {
    const std::string_view text(base_, padded_.size());
    switch (code) {
      case simdjson::EMPTY: refuse("json-syntax", nullptr, "the text is empty"); break;
      case simdjson::UTF8_ERROR: {
        const std::size_t at = first_not_utf8(text);
        refuse("json-syntax", at == text.npos ? nullptr : base_ + at, "the text is not UTF-8");
        break;
      }
      case simdjson::MEMALLOC: refuse("json-size", nullptr, "there is not enough memory to read the text"); break;
      default: refuse_syntax(nullptr, "this is not JSON"); break;
    }
    return std::move(error_);
  }

  bool count(const char* at) {
    if (++values_ <= options_.max_values) return true;
    return refuse("json-size", at, "more than " + grouped(static_cast<std::uint64_t>(options_.max_values)) + " values");
  }

  // ---- values ----

  bool read_value(ondemand::value value, Json& out, int depth) {
    const std::string_view token = value.raw_json_token();
    const char* at = token.data();
    place(out, at);
    if (!count(at)) return false;
    switch (token.front()) {
      case '[': {
        ondemand::array array;
        if (const auto code = value.get_array().get(array)) return fail(code, at);
        return read_array(array, out, depth + 1);
      }
      case '{': {
        ondemand::object object;
        if (const auto code = value.get_object().get(object)) return fail(code, at);
        return read_object(object, out, depth + 1);
      }
      case '"': {
        std::string_view string;
        if (const auto code = value.get_string().get(string)) return fail(code, at);
        assign(out, Json(string));
        return true;
      }
      default: return read_scalar(token.substr(0, token.find_last_not_of(space) + 1), out);
    }
  }

  // Numbers and words, by the text of their token; the walk steps over them by itself.
  bool read_scalar(std::string_view token, Json& out) {
    const char* at = token.data();
    const char* end = at + token.size();
    bool whole = false;
    if (is_json_number(token, whole)) {
      if (whole) {
        std::int64_t i = 0;
        if (std::from_chars(at, end, i).ec == std::errc{}) return assign(out, Json(i));
        std::uint64_t u = 0;
        if (std::from_chars(at, end, u).ec == std::errc{}) return assign(out, Json(u));
      }
      double d = 0;
      if (std::from_chars(at, end, d).ec == std::errc{}) return assign(out, Json(d));
      return refuse("json-syntax", at, "the number " + printable(token, 40) + " is beyond what a double holds");
    }
    if (token == "true" || token == "false") return assign(out, Json(token == "true"));
    if (token == "null") return assign(out, Json(nullptr));
    if (token == "Infinity") return assign(out, Json(std::numeric_limits<double>::infinity()));
    if (token == "-Infinity") return assign(out, Json(-std::numeric_limits<double>::infinity()));
    if (token == "NaN") return refuse("json-syntax", at, "NaN is no value that can be used");
    return refuse_syntax(at, "expected a value");
  }

  // Keeps the place that `out` has.
  static bool assign(Json& out, Json value) {
    value.set_place(out.offset(), out.line());
    out = std::move(value);
    return true;
  }

  bool too_deep(const char* at) {
    return refuse("json-depth", at, "arrays and objects are nested deeper than " + std::to_string(options_.max_depth));
  }

  bool read_array(ondemand::array array, Json& out, int depth) {
    const char* at = last_;
    if (depth > options_.max_depth) return too_deep(at);
    JsonArray items;
    for (auto element : array) {
      ondemand::value value;
      if (const auto code = element.get(value)) return fail(code, last_);
      if (!read_value(value, items.emplace_back(), depth)) return false;
    }
    return assign(out, Json(std::move(items)));
  }

  bool read_object(ondemand::object object, Json& out, int depth) {
    const char* at = last_;
    if (depth > options_.max_depth) return too_deep(at);
    JsonObject members;
    for (auto field : object) {
      if (const auto code = field.error()) return fail(code, last_);
      JsonMember member;
      const char* key_at = field.key().value_unsafe().raw() - 1;
      last_ = key_at;
      std::string_view key;
      if (const auto code = field.unescaped_key().get(key)) return fail(code, key_at);
      member.key = key;
      member.offset = offset_of(key_at);
      member.line = line_of(key_at);
      if (const JsonMember* first = members.find_member(key)) {
        const std::string before =
            options_.places_are_bytes ? "byte " + grouped(options_.byte_base + first->offset) : "line " + std::to_string(first->line);
        return refuse(depth == 1 ? options_.root_duplicate_kind.c_str() : "json-duplicate-key", key_at,
                      "duplicate key " + quote(key) + ", first at " + before);
      }
      ondemand::value value;
      if (const auto code = field.value().get(value)) return fail(code, last_);
      if (!read_value(value, member.value, depth)) return false;
      members.append(std::move(member));
    }
    return assign(out, Json(std::move(members)));
  }

  const JsonOptions& options_;
  simdjson::padded_string padded_;
  std::size_t skipped_;      // bytes before padded_ that belong to the text (a byte order mark)
  const char* base_;
  ondemand::parser parser_;
  const char* last_ = nullptr;  // the newest place reached
  const char* counted_to_;
  std::uint32_t line_ = 1;
  std::size_t values_ = 0;
  Error error_;
};

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonOptions& options) {
  assert(options.max_depth >= 1 && options.max_depth <= 512);
  assert(options.max_bytes <= 0xffff'ff00u);
  if (text.size() > options.max_bytes)
    return Error{"json-size",
                 options.name + ": the text has " + grouped(static_cast<std::uint64_t>(text.size())) + " bytes; at most " +
                     grouped(static_cast<std::uint64_t>(options.max_bytes)) + " are read",
                 {},
                 {}};
  const std::size_t mark = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
  text.remove_prefix(mark);
  if (text.find_first_not_of(space) == text.npos) return Error{"json-syntax", options.name + ": the text is empty", {}, {}};
  return Parser(text, mark, options).parse();
}

Result<JsonFile> read_json_file(const std::string& path, JsonOptions options) {
  if (options.name == JsonOptions{}.name) options.name = printable(path);
  Result<std::string> text = read_text_file(path, options.max_bytes);
  if (!text) return std::move(text.error());
  Result<Json> root = parse_json(*text, options);
  if (!root) return std::move(root.error());
  return JsonFile{path, *std::move(text), *std::move(root)};
}

}  // namespace modelc

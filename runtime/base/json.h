// A JSON value with its place in the text: what configurations, tokenizers and file headers are read into. Members keep
// their order, integers stay integers, and every value knows its line, so that a message can say "config.json:12".
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/result.h"

namespace modelc {

class Json;
struct JsonMember;

// The members of an object in the order of the text. Keys are unique.
class JsonObject {
 public:
  JsonObject();
  JsonObject(const JsonObject& other);
  JsonObject(JsonObject&& other) noexcept;
  JsonObject& operator=(const JsonObject& other);
  JsonObject& operator=(JsonObject&& other) noexcept;
  ~JsonObject();

  std::size_t size() const;
  bool empty() const { return size() == 0; }
  const JsonMember* begin() const;
  const JsonMember* end() const;
  const JsonMember& operator[](std::size_t i) const;

  // The value of `key`, or null. A hashed lookup beyond a few members.
  const Json* find(std::string_view key) const;
  Json* find(std::string_view key);
  // The same with the key's place.
  const JsonMember* find_member(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  // Replaces the value of `key`, or appends the member.
  Json& set(std::string_view key, Json value);
  // Appends a member as it stands; false, and nothing changes, where the key is there already.
  bool append(JsonMember member);
  // Takes the member out; false where there is none.
  bool erase(std::string_view key);

 private:
  std::size_t position(std::string_view key) const;  // size() where there is none
  void rehash();
  std::vector<JsonMember> members_;
  std::vector<std::uint32_t> slots_;  // open addressing over member numbers + 1; empty while linear search is faster
};

using JsonArray = std::vector<Json>;

class Json {
 public:
  // Whole numbers that fit are int64; those above 2^63 - 1 that fit are uint64; every other number is a double.
  enum class Kind : std::uint8_t { null, boolean, int64, uint64, number, string, array, object };

  Json() = default;
  Json(std::nullptr_t) {}                                                    // NOLINT(google-explicit-constructor)
  template <std::same_as<bool> B>                                            // not what merely converts to bool
  Json(B v) : v_(v) {}                                                       // NOLINT(google-explicit-constructor)
  Json(int v) : v_(std::int64_t{v}) {}                                       // NOLINT(google-explicit-constructor)
  Json(std::int64_t v) : v_(v) {}                                            // NOLINT(google-explicit-constructor)
  Json(std::uint64_t v);                                                     // NOLINT(google-explicit-constructor)
  Json(double v) : v_(v) {}                                                  // NOLINT(google-explicit-constructor)
  Json(std::string v) : v_(std::move(v)) {}                                  // NOLINT(google-explicit-constructor)
  Json(std::string_view v) : v_(std::string(v)) {}                           // NOLINT(google-explicit-constructor)
  Json(const char* v) : v_(std::string(v)) {}                                // NOLINT(google-explicit-constructor)
  Json(JsonArray v) : v_(std::move(v)) {}                                    // NOLINT(google-explicit-constructor)
  Json(JsonObject v) : v_(std::move(v)) {}                                   // NOLINT(google-explicit-constructor)

  Kind kind() const { return static_cast<Kind>(v_.index()); }
  bool is_null() const { return kind() == Kind::null; }
  bool is_bool() const { return kind() == Kind::boolean; }
  bool is_integer() const { return kind() == Kind::int64 || kind() == Kind::uint64; }
  bool is_number() const { return is_integer() || kind() == Kind::number; }
  bool is_string() const { return kind() == Kind::string; }
  bool is_array() const { return kind() == Kind::array; }
  bool is_object() const { return kind() == Kind::object; }

  // The value if it is of that kind, else nothing. No conversion takes place, but that a whole number is also a double
  // and that an int64 that is not negative is also a uint64.
  std::optional<bool> as_bool() const;
  std::optional<std::int64_t> as_int() const;
  std::optional<std::uint64_t> as_uint() const;
  std::optional<double> as_double() const;
  const std::string* as_string() const { return std::get_if<std::string>(&v_); }
  const JsonArray* as_array() const { return std::get_if<JsonArray>(&v_); }
  JsonArray* as_array() { return std::get_if<JsonArray>(&v_); }
  const JsonObject* as_object() const { return std::get_if<JsonObject>(&v_); }
  JsonObject* as_object() { return std::get_if<JsonObject>(&v_); }

  // Member of an object; null where this is no object or has no such member.
  const Json* find(std::string_view key) const;
  // The same through nested objects: find_path("text_config.rope_scaling.factor"). Keys with a dot are not reached.
  const Json* find_path(std::string_view dotted) const;

  // Where the value begins: byte offset in the text and line from 1 (0: not read from a text).
  std::uint32_t offset() const { return offset_; }
  std::uint32_t line() const { return line_; }
  void set_place(std::uint32_t offset, std::uint32_t line) {
    offset_ = offset;
    line_ = line;
  }

  // Same kind and value, members in any order; places are not compared. 1 and 1.0 differ.
  friend bool operator==(const Json& a, const Json& b);

 private:
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, JsonArray, JsonObject> v_;
  std::uint32_t offset_ = 0;
  std::uint32_t line_ = 0;
};

struct JsonMember {
  std::string key;
  Json value;
  std::uint32_t offset = 0;  // of the key
  std::uint32_t line = 0;    // of the key
};

inline JsonObject::JsonObject() = default;
inline JsonObject::~JsonObject() = default;
inline std::size_t JsonObject::size() const { return members_.size(); }
inline const JsonMember* JsonObject::begin() const { return members_.data(); }
inline const JsonMember* JsonObject::end() const { return members_.data() + members_.size(); }
inline const JsonMember& JsonObject::operator[](std::size_t i) const { return members_[i]; }

// "an object", "a string": for messages.
std::string_view kind_name(Json::Kind kind);

struct JsonOptions {
  std::string name = "JSON";                // what messages call the text: "config.json"
  std::size_t max_bytes = 256u << 20;       // at most 4 GB - 64
  int max_depth = 64;                       // nested arrays and objects
  std::size_t max_values = 16'000'000;      // bounds the memory that a text of brackets can ask for
  std::string root_duplicate_kind = "json-duplicate-key";   // kind of the error of a key twice in the outermost object
  // Messages give the byte in the file instead of the line (for headers of one line): byte_base + offset.
  bool places_are_bytes = false;
  std::uint64_t byte_base = 0;
};

// Reads one value. Refused: more than one value, a key twice ("json-duplicate-key"), nesting beyond max_depth
// ("json-depth"), a text or a number of values beyond the limits ("json-size"), everything that is not JSON
// ("json-syntax") but for the bare numbers Infinity and -Infinity, which Python's json module writes. A whole number
// beyond 64 bits becomes the nearest double (tokenizer_config.json holds 10^30); a byte order mark is skipped.
Result<Json> parse_json(std::string_view text, const JsonOptions& options = {});
// The same from a file; options.name is set from the path where it is left as it stands. Also returns the text.
struct JsonFile {
  std::string path;
  std::string text;
  Json root;
};
Result<JsonFile> read_json_file(const std::string& path, JsonOptions options = {});

// Text of a value: indent < 0 gives one line without spaces, otherwise that many spaces a level. Reading it back gives
// an equal value: doubles stand in their shortest exact form. A NaN is written as NaN, which parse_json refuses; bytes
// of a string that are not UTF-8 become U+FFFD.
std::string dump(const Json& value, int indent = -1);
// A string in quotation marks with JSON's escapes.
std::string json_quote(std::string_view text);

}  // namespace modelc

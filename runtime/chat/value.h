// The values of a chat template: Python's, as far as templates see them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/json.h"

namespace modelc::chat {

class Value;
class Interpreter;
struct Call;

struct Undefined {
  std::string name;  // of what is missing, for messages
};
struct None {};
struct List;
struct Dict;       // keys are strings
struct Namespace;  // a dict that `set ns.x = ..` may change
struct Callable {
  std::string name;
  std::function<Value(const Call&)> call;
};

class Value {
 public:
  Value() : v_(Undefined{}) {}
  Value(Undefined v) : v_(std::move(v)) {}                                                    // NOLINT
  Value(None v) : v_(v) {}                                                                    // NOLINT
  Value(bool v) : v_(v) {}                                                                    // NOLINT
  Value(std::int64_t v) : v_(v) {}                                                            // NOLINT
  Value(double v) : v_(v) {}                                                                  // NOLINT
  Value(std::string v) : v_(std::make_shared<const std::string>(std::move(v))) {}             // NOLINT
  Value(std::string_view v) : Value(std::string(v)) {}                                        // NOLINT
  Value(const char* v) : Value(std::string(v)) {}                                             // NOLINT
  Value(std::shared_ptr<List> v) : v_(std::move(v)) {}                                        // NOLINT
  Value(std::shared_ptr<Dict> v) : v_(std::move(v)) {}                                        // NOLINT
  Value(std::shared_ptr<Namespace> v) : v_(std::move(v)) {}                                   // NOLINT
  Value(std::shared_ptr<Callable> v) : v_(std::move(v)) {}                                    // NOLINT

  bool is_undefined() const { return std::holds_alternative<Undefined>(v_); }
  bool is_none() const { return std::holds_alternative<None>(v_); }
  bool is_bool() const { return std::holds_alternative<bool>(v_); }
  bool is_int() const { return std::holds_alternative<std::int64_t>(v_); }
  bool is_float() const { return std::holds_alternative<double>(v_); }
  bool is_number() const { return is_int() || is_float() || is_bool(); }
  const Undefined* undefined() const { return std::get_if<Undefined>(&v_); }
  const bool* boolean() const { return std::get_if<bool>(&v_); }
  // A bool counts as 0 or 1.
  std::optional<std::int64_t> integer() const;
  std::optional<double> number() const;
  const std::string* string() const {
    const auto* p = std::get_if<std::shared_ptr<const std::string>>(&v_);
    return p ? p->get() : nullptr;
  }
  List* list() const { return pointer<List>(); }
  Dict* dict() const { return pointer<Dict>(); }
  Namespace* name_space() const { return pointer<Namespace>(); }
  const Callable* callable() const { return pointer<Callable>(); }
  // The same object, not an equal one.
  bool same(const Value& other) const;

 private:
  template <class T> T* pointer() const {
    const auto* p = std::get_if<std::shared_ptr<T>>(&v_);
    return p ? p->get() : nullptr;
  }
  std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const std::string>, std::shared_ptr<List>,
               std::shared_ptr<Dict>, std::shared_ptr<Namespace>, std::shared_ptr<Callable>>
      v_;
};

struct List {
  std::vector<Value> items;
  bool is_tuple = false;
};
struct Dict {
  std::vector<std::pair<std::string, Value>> items;
  Value* find(std::string_view key);
  void set(std::string_view key, Value value);
};
struct Namespace {
  Dict members;
};

inline Value make_list(std::vector<Value> items, bool is_tuple = false) { return std::make_shared<List>(List{std::move(items), is_tuple}); }

Value from_json(const Json& json);

// "string", "list": for messages.
std::string type_name(const Value& value);
bool truth(const Value& value);
// Python's == . Values nested deeper than `depth` are unequal.
bool equal(const Value& a, const Value& b, int depth = 50);
// -1, 0, 1; nothing where the two have no order.
std::optional<int> compare(const Value& a, const Value& b, int depth = 50);
// Python's str() and repr(), cut off once they are longer than `limit`.
std::string to_text(const Value& value, std::size_t limit);
void append_repr(std::string& out, const Value& value, std::size_t limit, int depth = 50);
// 1.0, 1e-05, 1e+16, inf
std::string float_text(double value);

struct JsonStyle {
  std::optional<std::string> indent;  // of one level; none: all in one line
  std::string item_separator = ", ", key_separator = ": ";
  bool ensure_ascii = false, sort_keys = false;
};
// json.dumps; gives what is wrong, if anything.
std::optional<std::string> append_json(std::string& out, const Value& value, const JsonStyle& style, std::size_t limit, int depth = 0);

// Characters of Python's str: positions count characters, not bytes.
std::vector<std::string_view> characters(std::string_view text);
std::vector<std::string_view> characters(std::string&& text) = delete;   // the parts would outlive it
bool is_python_space(char32_t c);
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalized(std::string_view text);
// `chars` empty: white space.
std::string_view strip(std::string_view text, const std::optional<std::string>& chars, bool left, bool right);

}  // namespace modelc::chat

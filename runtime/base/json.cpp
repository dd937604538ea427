// The value tree: object lookup and the typed getters. Parsing is in json_parse.cpp, writing in json_write.cpp.
#include "runtime/base/json.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>

namespace modelc {
namespace {

// Below this many members a linear search is as fast as a hashed one.
constexpr std::size_t linear_limit = 12;

std::size_t hash(std::string_view key) { return std::hash<std::string_view>{}(key); }

}  // namespace

JsonObject::JsonObject(const JsonObject& other) = default;
JsonObject& JsonObject::operator=(const JsonObject& other) = default;
JsonObject::JsonObject(JsonObject&& other) noexcept = default;
JsonObject& JsonObject::operator=(JsonObject&& other) noexcept = default;

std::size_t JsonObject::position(std::string_view key) const {
  if (slots_.empty()) {
    const auto it = std::find_if(members_.begin(), members_.end(), [&](const JsonMember& m) { return m.key == key; });
    return static_cast<std::size_t>(it - members_.begin());
  }
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash(key) & mask; slots_[i] != 0; i = (i + 1) & mask)
    if (members_[slots_[i] - 1].key == key) return slots_[i] - 1;
  return members_.size();
}

// At most half of the slots are in use afterwards, so that a search always meets an empty one.
void JsonObject::rehash() {
  slots_.clear();
  if (members_.size() <= linear_limit) return;
  std::size_t n = 64;
  while (n < members_.size() * 4) n *= 2;
  slots_.resize(n);
  for (std::size_t m = 0; m < members_.size(); ++m) {
    std::size_t i = hash(members_[m].key) & (n - 1);
    while (slots_[i] != 0) i = (i + 1) & (n - 1);
    slots_[i] = static_cast<std::uint32_t>(m + 1);
  }
}

const Json* JsonObject::find(std::string_view key) const {
  const std::size_t i = position(key);
  return i < members_.size() ? &members_[i].value : nullptr;
}

Json* JsonObject::find(std::string_view key) {
  const std::size_t i = position(key);
  return i < members_.size() ? &members_[i].value : nullptr;
}

const JsonMember* JsonObject::find_member(std::string_view key) const {
  const std::size_t i = position(key);
  return i < members_.size() ? &members_[i] : nullptr;
}

bool JsonObject::append(JsonMember member) {
  if (position(member.key) < members_.size()) return false;
  assert(members_.size() < std::numeric_limits<std::uint32_t>::max());
  members_.push_back(std::move(member));
  if (slots_.empty() ? members_.size() > linear_limit : members_.size() * 2 > slots_.size()) {
    rehash();
  } else if (!slots_.empty()) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = hash(members_.back().key) & mask;
    while (slots_[i] != 0) i = (i + 1) & mask;
    slots_[i] = static_cast<std::uint32_t>(members_.size());
  }
  return true;
}

Json& JsonObject::set(std::string_view key, Json value) {
  if (Json* there = find(key)) return *there = std::move(value);
  append(JsonMember{std::string(key), std::move(value)});
  return members_.back().value;
}

bool JsonObject::erase(std::string_view key) {
  const std::size_t i = position(key);
  if (i == members_.size()) return false;
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(i));
  rehash();
  return true;
}

Json::Json(std::uint64_t v) {
  if (v <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) v_ = static_cast<std::int64_t>(v);
  else v_ = v;
}

std::optional<bool> Json::as_bool() const {
  if (const bool* v = std::get_if<bool>(&v_)) return *v;
  return std::nullopt;
}

std::optional<std::int64_t> Json::as_int() const {
  if (const auto* v = std::get_if<std::int64_t>(&v_)) return *v;
  return std::nullopt;
}

std::optional<std::uint64_t> Json::as_uint() const {
  if (const auto* v = std::get_if<std::uint64_t>(&v_)) return *v;
  if (const auto* v = std::get_if<std::int64_t>(&v_); v && *v >= 0) return static_cast<std::uint64_t>(*v);
  return std::nullopt;
}

std::optional<double> Json::as_double() const {
  if (const auto* v = std::get_if<double>(&v_)) return *v;
  if (const auto* v = std::get_if<std::int64_t>(&v_)) return static_cast<double>(*v);
  if (const auto* v = std::get_if<std::uint64_t>(&v_)) return static_cast<double>(*v);
  return std::nullopt;
}

const Json* Json::find(std::string_view key) const {
  const JsonObject* object = as_object();
  return object ? object->find(key) : nullptr;
}

const Json* Json::find_path(std::string_view dotted) const {
  const Json* at = this;
  for (std::size_t begin = 0; at && begin <= dotted.size();) {
    const std::size_t end = std::min(dotted.find('.', begin), dotted.size());
    at = at->find(dotted.substr(begin, end - begin));
    begin = end + 1;
  }
  return at;
}

bool operator==(const Json& a, const Json& b) {
  if (a.kind() != b.kind()) return false;
  if (const JsonArray* x = a.as_array()) return *x == *b.as_array();
  if (const JsonObject* x = a.as_object()) {
    const JsonObject& y = *b.as_object();
    return x->size() == y.size() && std::all_of(x->begin(), x->end(), [&](const JsonMember& m) {
             const Json* other = y.find(m.key);
             return other && m.value == *other;
           });
  }
  switch (a.kind()) {
    case Json::Kind::boolean: return a.as_bool() == b.as_bool();
    case Json::Kind::int64: return a.as_int() == b.as_int();
    case Json::Kind::uint64: return a.as_uint() == b.as_uint();
    case Json::Kind::number: return a.as_double() == b.as_double();
    case Json::Kind::string: return *a.as_string() == *b.as_string();
    default: return true;  // null
  }
}

std::string_view kind_name(Json::Kind kind) {
  switch (kind) {
    case Json::Kind::null: return "null";
    case Json::Kind::boolean: return "a bool";
    case Json::Kind::int64:
    case Json::Kind::uint64: return "a whole number";
    case Json::Kind::number: return "a number";
    case Json::Kind::string: return "a string";
    case Json::Kind::array: return "an array";
    case Json::Kind::object: return "an object";
  }
  return "a value";
}

}  // namespace modelc

#include "runtime/tokenizer/reader.h"

#include <algorithm>
#include <limits>

#include "runtime/base/strings.h"

namespace modelc {

namespace {
const Json null_value;
}

void Reader::fail(std::string kind, std::string_view what, std::string help) const {
  fail(Error{std::move(kind), std::string(what), {}, std::move(help)});
}

void Reader::fail(Error error) const {
  if (!ok()) return;
  std::string place = state_->file + ": ";
  if (value_->line() > 0) place.insert(state_->file.size(), ':' + std::to_string(value_->line()));
  if (!path_.empty()) place += path_ + ": ";
  error.message = place + error.message;
  state_->error = std::move(error);
}

const Json* Reader::find(std::string_view key) const { return value_->find(key); }

bool Reader::has(std::string_view key) const {
  const Json* found = find(key);
  return found && !found->is_null();
}

void Reader::wrong_kind(std::string_view expected) const {
  fail("tokenizer-field", "expected " + std::string(expected) + ", found " + std::string(kind_name(value_->kind())));
}

Reader Reader::member(std::string_view key) const {
  std::string path = path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  if (const Json* found = find(key)) return {*found, std::move(path), *state_};
  if (!value_->is_object()) wrong_kind("an object");
  else fail("tokenizer-field", "has no member " + quote(key));
  return {null_value, std::move(path), *state_};
}

std::string Reader::as_string() const {
  if (const std::string* s = value_->as_string()) return *s;
  wrong_kind("a string");
  return {};
}

std::int32_t Reader::as_whole() const {
  const std::optional<std::uint64_t> n = value_->as_uint();
  if (n && *n < static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) return static_cast<std::int32_t>(*n);
  if (value_->is_number()) fail("tokenizer-field", "expected a whole number from 0 to 2147483646, found another");
  else wrong_kind("a whole number");
  return 0;
}

std::string Reader::string(std::string_view key) const { return member(key).as_string(); }

bool Reader::boolean(std::string_view key) const {
  const Reader value = member(key);
  if (const std::optional<bool> b = value.value_->as_bool()) return *b;
  value.wrong_kind("true or false");
  return false;
}

bool Reader::boolean(std::string_view key, bool otherwise) const { return has(key) ? boolean(key) : otherwise; }

std::int32_t Reader::whole(std::string_view key) const { return member(key).as_whole(); }

std::vector<Reader> Reader::list(std::string_view key) const {
  const Reader value = member(key);
  std::vector<Reader> items;
  const JsonArray* array = value.value_->as_array();
  if (!array) {
    value.wrong_kind("an array");
    return items;
  }
  items.reserve(array->size());
  for (std::size_t i = 0; i < array->size(); ++i) items.emplace_back((*array)[i], value.path_ + "[" + std::to_string(i) + "]", *state_);
  return items;
}

void Reader::refuse_type(std::string_view type, std::initializer_list<std::string_view> known) const {
  std::vector<std::string> names(known.begin(), known.end());
  fail("tokenizer-unsupported", "the type " + quote(type) + " is not carried out", "carried out here: " + listed(names, names.size()));
}

void Reader::only(std::initializer_list<std::string_view> keys) const {
  const JsonObject* object = value_->as_object();
  if (!object) return;
  for (const JsonMember& m : *object) {
    if (m.value.is_null() || std::find(keys.begin(), keys.end(), m.key) != keys.end()) continue;
    member(m.key).fail("tokenizer-unsupported", "this member is not known, so what it asks for is not carried out");
  }
}

}  // namespace modelc

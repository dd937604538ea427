// Reads fields of a tokenizer.json and remembers the first thing that is wrong. After that, reading goes on and gives
// default values, so that a stage reads its fields one after another and whoever began asks once, at the end.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace modelc {

struct ReadState {
  std::string file;  // what messages call it
  std::optional<Error> error;
};

// One value of the file and where it stands.
class Reader {
 public:
  Reader(const Json& value, std::string path, ReadState& state) : value_(&value), path_(std::move(path)), state_(&state) {}

  bool ok() const { return !state_->error; }
  const Json& json() const { return *value_; }
  const std::string& path() const { return path_; }
  ReadState& state() const { return *state_; }
  bool is_null() const { return value_->is_null(); }
  bool has(std::string_view key) const;  // present and not null

  // "FILE:12: pre_tokenizer.pattern: WHAT"
  void fail(std::string kind, std::string_view what, std::string help = {}) const;
  void fail(Error error) const;  // its message with the place before it

  // Members by key. A missing one or one of another kind fails, unless a value to take instead is given.
  Reader member(std::string_view key) const;
  std::string string(std::string_view key) const;
  bool boolean(std::string_view key) const;
  bool boolean(std::string_view key, bool otherwise) const;
  // 0 .. 2^31 - 2: a token id or a count.
  std::int32_t whole(std::string_view key) const;
  std::vector<Reader> list(std::string_view key) const;

  // This value itself.
  std::string as_string() const;
  std::int32_t as_whole() const;

  // The member "type".
  std::string type() const { return string("type"); }
  // Refuses a type that is not carried out; `known` are those that are.
  void refuse_type(std::string_view type, std::initializer_list<std::string_view> known) const;
  // Refuses members beyond these, unless they are null: what they mean is not known.
  void only(std::initializer_list<std::string_view> keys) const;

 private:
  const Json* find(std::string_view key) const;
  void wrong_kind(std::string_view expected) const;

  const Json* value_;
  std::string path_;
  ReadState* state_;
};

}  // namespace modelc

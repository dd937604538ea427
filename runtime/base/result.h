// A result is a value or an Error. Used wherever a user's file, device or system may fail; a bug asserts instead.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace modelc {

// What went wrong, in the form in which it is shown: `message` says what was found and what was expected, `notes` where
// each came from, `help` the way out. `kind` is a stable word for programs and tests ("header-length",
// "missing-weight").
struct Error {
  std::string kind;
  std::string message;
  std::vector<std::string> notes;
  std::string help;

  // "message\n  note\n  help: …"
  std::string text() const {
    std::string s = message;
    for (const auto& n : notes) s.append("\n  ").append(n);
    if (!help.empty()) s.append("\n  help: ").append(help);
    return s;
  }
};

template <class T> class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Error error) : v_(std::in_place_index<1>, std::move(error)) {}      // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return v_.index() == 0; }
  bool ok() const { return v_.index() == 0; }
  T& value() & {
    assert(ok());
    return std::get<0>(v_);
  }
  const T& value() const& {
    assert(ok());
    return std::get<0>(v_);
  }
  T&& value() && {
    assert(ok());
    return std::get<0>(std::move(v_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const {
    assert(!ok());
    return std::get<1>(v_);
  }
  Error& error() {
    assert(!ok());
    return std::get<1>(v_);
  }

 private:
  std::variant<T, Error> v_;
};

// Success, or an Error: what a function returns that has nothing else to return.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}                          // NOLINT(google-explicit-constructor)
  explicit operator bool() const { return !error_; }
  bool ok() const { return !error_; }
  const Error& error() const {
    assert(error_);
    return *error_;
  }
  Error& error() {
    assert(error_);
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace modelc

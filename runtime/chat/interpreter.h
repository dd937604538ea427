// Carries a template's tree out.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/chat/syntax.h"
#include "runtime/chat/template.h"
#include "runtime/chat/value.h"

namespace modelc::chat {

// The arguments of a call, filter or test. A filter's value is the first.
struct Call {
  Interpreter& in;
  Place place;
  std::string name;  // for messages
  std::vector<Value> arguments;
  std::vector<std::pair<std::string, Value>> named;

  // The argument by position or name; nothing where it is not given. The position counts the value of a filter.
  const Value* find(std::size_t position, std::string_view argument) const;
  // Fails where there are more arguments than these, or other names: what they ask for is not known. The first
  // `unnamed` of them have no name that may be said.
  bool only(std::vector<std::string_view> names, std::size_t unnamed = 0) const;
};

// Counts depth while it lives.
struct Deeper {
  explicit Deeper(int& counter) : depth(++counter), counter_(counter) {}
  ~Deeper() { --counter_; }
  int depth;

 private:
  int& counter_;
};

// After the first error everything is undefined and nothing more is carried out.
class Interpreter {
 public:
  Interpreter(const std::string& name, const RenderOptions& options) : name_(name), options_(options) {}
  ~Interpreter();

  Result<std::string> run(const Node& root, const Json& context);

  bool ok() const { return !error_; }
  Value fail(Place place, const std::string& message, std::string kind = "template-error", std::string help = {});
  // Counts work; fails where there is too much of it.
  bool work(Place place, std::size_t steps);
  std::size_t text_limit() const { return options_.max_output; }
  // A value's text, counted.
  std::string text(Place place, const Value& value);
  const RenderOptions& options() const { return options_; }

  Value attribute(Place place, const Value& object, const std::string& name);
  Value item(Place place, const Value& object, const Value& key);
  // The items to go through: of a list, the characters of a string, the keys of a mapping; undefined has none.
  std::vector<Value> items(Place place, const Value& value);
  Value call(Place place, const Value& function, std::vector<Value> arguments, std::vector<std::pair<std::string, Value>> named = {});

  // builtins.cpp and filters.cpp
  Value call_filter(const Call& call);
  std::optional<bool> call_test(const Call& call);
  std::optional<Value> call_method(const Value& object, const Call& call);
  static bool is_method(const Value& object, std::string_view name);
  Value global(const std::string& name);
  Value binary(Place place, const std::string& sign, const Value& left, const Value& right);
  bool contains(Place place, const Value& where, const Value& what);
  std::shared_ptr<Namespace> new_namespace();

 private:
  struct Scope {
    std::shared_ptr<Scope> outer;
    std::map<std::string, Value, std::less<>> names;
  };
  using ScopePointer = std::shared_ptr<Scope>;
  enum class Flow : std::uint8_t { on, break_, continue_ };

  Flow statement(const Node& node, const ScopePointer& scope, std::string& out);
  Flow for_loop(const Node& node, const ScopePointer& scope, std::string& out);
  Flow for_each(const Node& node, const Value& iterable, const ScopePointer& scope, std::string& out, int depth);
  void assign(const Node& target, Value value, const ScopePointer& scope);
  Value evaluate(const Node& node, const ScopePointer& scope);
  Value compared(const Node& node, const ScopePointer& scope);
  Value sliced(const Node& node, const ScopePointer& scope);
  Value macro(const Node& node, const ScopePointer& scope);
  Value variable(const Node& node, const ScopePointer& scope);
  Call arguments_of(const Node& node, const ScopePointer& scope, std::size_t skip);
  void print(Place place, std::string& out, std::string_view text);

  const std::string& name_;
  const RenderOptions& options_;
  std::optional<Error> error_;
  std::uint64_t steps_ = 0;
  int depth_ = 0;
  Value captured_;
  // What may hold itself: emptied at the end, so that it is freed.
  std::vector<std::weak_ptr<Scope>> held_scopes_;
  std::vector<std::weak_ptr<Namespace>> namespaces_;
};

}  // namespace modelc::chat

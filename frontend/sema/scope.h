// Lexical scopes: what a name means where it stands. Names are looked up in locals, then in the members and parameters
// of the module (or the fields of the config), the file, its imports, the prelude.
//
// An Environment is a persistent chain: copying it is cheap and takes a snapshot, so a closure captures what is known
// where it is written, and defining a name in a copy changes no one else's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/source/source.h"

namespace modelc::sema {

class Value;
struct FileSymbols;

// Names that come from outside the text of a function: the members and parameters of an instance, the fields of a
// config. Looked up on use, so that a function may use what is declared after it. Not owned by the environments that
// refer to it: it lives as long as the Evaluator.
class NameSource {
 public:
  virtual ~NameSource() = default;
  // The value of the name, reading it: a lookup makes a weight appear in the graph, marks a field as read, evaluates a
  // `let` on first use. Nothing when the name is not one of these; an error value when it is and has failed.
  virtual std::optional<Value> lookup(std::string_view name, source::Span use) const = 0;
  // The value where that needs no evaluation and has no effect: a parameter, a fn, a `let` that was evaluated before.
  // Nothing otherwise, for names that are not one of these as for members.
  virtual std::optional<Value> peek(std::string_view name) const = 0;
  // Whether it is one of these, without reading it; where it is declared.
  virtual std::optional<source::Span> declared(std::string_view name) const = 0;
  virtual void names(std::vector<std::string>& into) const = 0;
};

class Environment {
 public:
  Environment() = default;                                    // the prelude alone
  explicit Environment(const FileSymbols* file) : file_(file) {}

  // A scope inside this one. The source's names are found before those already here.
  Environment with(const NameSource& source) const;

  // From here on `name` is `value`. The last definition of a name counts.
  void define(std::string name, Value value, source::Span span);

  // The value of a local, or of a name of a source; nothing when it is neither.
  std::optional<Value> lookup(std::string_view name, source::Span use) const;
  // The same without any effect; an error value where the name is known and its value is not.
  std::optional<Value> peek(std::string_view name) const;
  // Where a local, a parameter, a member of this name is declared, if one is: these share one name space.
  std::optional<source::Span> declared(std::string_view name) const;
  // Whether the name is a local, defined by `define`, and not a name of a source.
  bool is_local(std::string_view name) const;
  // The source that the name comes from; null for a local and for a name that is neither.
  const NameSource* source_of(std::string_view name) const;

  const FileSymbols* file() const { return file_; }
  // Everything visible but for the file's and the prelude's names: for "did you mean".
  void names(std::vector<std::string>& into) const;

 private:
  struct Node;
  const Node* find(std::string_view name) const;
  std::shared_ptr<const Node> head_;
  const FileSymbols* file_ = nullptr;
};

}  // namespace modelc::sema

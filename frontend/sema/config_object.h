// Binding of one object of a configuration's tree to one definition. Private to the binding: config_object.cpp
// (fields), config_values.cpp (values), config_bind.cpp (the file).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/sema/config_tree.h"
#include "frontend/sema/evaluator.h"

namespace modelc::sema {

class ObjectBinder;

// The names that a config's own expressions see. While it is being bound, a field is bound when it is first asked
// for, so that the order of the declarations and of inheritance does not matter; afterwards the instance answers.
class ConfigScope : public NameSource {
 public:
  explicit ConfigScope(const ConfigDef& def) : def_(def) {}
  void set_binder(ObjectBinder* binder) { binder_ = binder; }
  void set_instance(const ConfigInstance* instance) { instance_ = instance; }

  std::optional<Value> lookup(std::string_view name, source::Span use) const override;
  std::optional<Value> peek(std::string_view name) const override;
  std::optional<source::Span> declared(std::string_view name) const override;
  void names(std::vector<std::string>& into) const override;

 private:
  std::optional<Value> function(std::string_view name) const;
  const ConfigDef& def_;
  ObjectBinder* binder_ = nullptr;
  const ConfigInstance* instance_ = nullptr;
};

// What the binding of one file shares: the tree and where messages go.
struct Binding {
  Evaluator& ev;
  ConfigTree& tree;
};

// One object of the tree as one definition's fields: the file itself, a nested config, a case of a variant.
class ObjectBinder {
 public:
  // `where` is the object's path with a dot behind it, "" for the file itself.
  ObjectBinder(Binding& binding, const ConfigDef& def, const Json& object, std::string where);

  // Null when something was wrong.
  const ConfigInstance* bind();

  // The value of a field or `let`, bound when it is first asked for. Nothing for other names.
  std::optional<Value> value_of(std::string_view name);

 private:
  enum class State : std::uint8_t { fresh, open, done };
  struct Slot {
    State state = State::fresh;
    ConfigField field;
  };
  // A value that was found, and the key that it was found under.
  struct Found {
    const ast::Path* path;
    const Json* json;
    std::string key;  // whole, from the top of the file
    Value value;
  };

  bool is_field(std::size_t slot) const { return slot < def_.fields.size(); }
  const LetDef& let(std::size_t slot) const { return def_.lets[slot - def_.fields.size()]; }
  std::string_view name_of(std::size_t slot) const { return is_field(slot) ? def_.fields[slot].name : let(slot).name; }
  source::Span span_of(std::size_t slot) const { return is_field(slot) ? def_.fields[slot].span : let(slot).item->name.span; }
  Environment scope(const FileSymbols& file) const { return Environment(&file).with(*scope_); }

  Value value_of(std::size_t index);
  void report_circle(std::size_t index);

  // ---- fields (config_object.cpp); `origin` is where the value came from
  static ast::Path own_path(const FieldDef& field) { return {{{field.name, field.span}}, field.span}; }
  Value bind_field(const FieldDef& field, std::string& origin);
  // The value with a formula that names the field.
  static Value with_name(const std::string& name, const Value& value, const std::string& origin, FormulaPtr inner);
  // All spellings that are there give one value.
  bool agree(const FieldDef& field, const std::vector<Found>& found);
  // The default, none, or a message. `nulls` are the keys that say null.
  Value absent(const FieldDef& field, const std::vector<ast::Path>& paths, const std::vector<const Json*>& nulls, std::string& origin);
  void report_missing(const FieldDef& field, const std::vector<ast::Path>& paths, const std::vector<const Json*>& nulls);
  // `found` is null for a default.
  bool in_range(const FieldDef& field, const Value& value, const Found* found);

  // ---- values (config_values.cpp); `key` is the whole path, from the top of the file
  Value wrong(const Json& json, const ast::Type& type, const FieldDef& field, const std::string& key, std::string_view why = {});
  Value read(const Json& json, const ast::Type& type, const FieldDef& field, const std::string& key);
  bool has_length(const Json& json, std::size_t count, const ast::ListType& type, const FieldDef& field, const std::string& key);
  Value read_literal(const Json& json, const ast::LiteralType& type, const FieldDef& field, const std::string& key);
  Value read_named(const Json& json, const ast::NamedType& type, const FieldDef& field, const std::string& key);
  Value read_symbol(const Json& json, const ast::NamedType& type, const Symbol& symbol, const FieldDef& field, const std::string& key);
  // The case that the tag names; both spellings of the tag, when they are there, name the same.
  std::optional<std::size_t> read_tag(const Json& json, const VariantDef& variant, const FieldDef& field, const std::string& key,
                                      std::string& tag);

  Binding& b_;
  Evaluator& ev_;
  const ConfigDef& def_;
  const Json& object_;
  std::string where_;
  std::vector<Slot> slots_;        // fields, then lets
  std::vector<std::size_t> open_;  // being bound, outermost first
  ConfigScope* scope_ = nullptr;
};

}  // namespace modelc::sema

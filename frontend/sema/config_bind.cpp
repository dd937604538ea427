// Binding: from the tree of a config.json to the values of a config's fields.
#include <algorithm>
#include <cassert>
#include <filesystem>

#include "frontend/sema/config_tree.h"
#include "frontend/sema/expressions.h"
#include "frontend/sema/types.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace {

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
  ObjectBinder(Binding& binding, const ConfigDef& def, const Json& object, std::string where)
      : b_(binding),
        ev_(binding.ev),
        def_(def),
        object_(object),
        where_(std::move(where)),
        slots_(def.fields.size() + def.lets.size()) {
    auto scope = std::make_unique<ConfigScope>(def_);
    scope_ = scope.get();
    scope_->set_binder(this);
    ev_.adopt(std::move(scope));
  }

  // Null when something was wrong.
  const ConfigInstance* bind() {
    b_.tree.claim_object(object_, def_);
    bool good = true;
    for (std::size_t i = 0; i < slots_.size(); ++i) good = !value_of(i).is_error() && good;
    if (good) {
      for (const RequireDef& require : def_.requires_)
        good = ev_.require(*require.item, scope(*require.file), def_.name) && good;
    }
    auto instance = std::make_unique<ConfigInstance>();
    instance->definition = &def_;
    for (std::size_t i = 0; i < slots_.size(); ++i) instance->fields.push_back(std::move(slots_[i].field));
    instance->read.resize(slots_.size());
    for (std::size_t i = 0; i < def_.fields.size(); ++i) instance->read[i] = def_.fields[i].mentioned;
    const ConfigInstance* owned = ev_.adopt(std::move(instance));
    ev_.set_scope(*owned, *scope_);
    scope_->set_instance(owned);
    scope_->set_binder(nullptr);
    return good ? owned : nullptr;
  }

  // The value of a field or `let`, bound when it is first asked for. Nothing for other names.
  std::optional<Value> value_of(std::string_view name) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (name_of(i) == name) return value_of(i);
    }
    return std::nullopt;
  }

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
  source::Span span_of(std::size_t slot) const {
    return is_field(slot) ? def_.fields[slot].span : let(slot).item->name.span;
  }
  Environment scope(const FileSymbols& file) const { return Environment(&file).with(*scope_); }

  Value value_of(std::size_t index) {
    Slot& slot = slots_[index];
    if (slot.state == State::done) return slot.field.value;
    if (slot.state == State::open) {
      report_circle(index);
      return Value::error();
    }
    slot.state = State::open;
    open_.push_back(index);
    slot.field.name = name_of(index);
    slot.field.span = span_of(index);
    if (is_field(index)) {
      const FieldDef& def = def_.fields[index];
      slot.field.decl = def.item;
      slot.field.reads_itself = def.reads_itself;
      slot.field.value = bind_field(def, slot.field.origin);
    } else {
      const LetDef& def = let(index);
      slot.field.value = Expressions::named(def.name, ev_.eval(*def.item->value, scope(*def.file)));
    }
    open_.pop_back();
    slot.state = State::done;
    return slot.field.value;
  }

  void report_circle(std::size_t index) {
    std::string circle;
    for (auto it = std::find(open_.begin(), open_.end(), index); it != open_.end(); ++it) {
      circle += "`" + std::string(name_of(*it)) + "` needs ";
    }
    ev_.sink()
        .error(diag::code::config_cycle, span_of(index),
               "the value of `" + std::string(name_of(index)) + "` depends on itself: " + circle + "`" +
                   std::string(name_of(index)) + "`")
        .help("give one of them in the configuration, or write a default that does not need the others");
  }

  // ---- fields
  static ast::Path own_path(const FieldDef& field) { return {{{field.name, field.span}}, field.span}; }

  Value bind_field(const FieldDef& field, std::string& origin) {
    std::vector<ast::Path> own;
    if (field.item->from.empty()) own.push_back(own_path(field));
    const std::vector<ast::Path>& paths = field.item->from.empty() ? own : field.item->from;

    std::vector<Found> found;
    std::vector<const Json*> nulls;
    bool any_set = false;
    for (const ast::Path& path : paths) {
      b_.tree.claim_path(object_, path);
      const Json* null = nullptr;
      const Json* json = b_.tree.find(object_, path, &null);
      if (null != nullptr) nulls.push_back(null);
      if (json == nullptr) continue;
      any_set = any_set || b_.tree.is_set(*json);
      found.push_back({&path, json, where_ + path.text(), Value::error()});
    }
    // The command line decides over the spellings in the file.
    if (any_set) {
      std::erase_if(found, [&](const Found& f) {
        if (b_.tree.is_set(*f.json)) return false;
        b_.tree.claim(*f.json);
        return true;
      });
    }
    if (found.empty()) return absent(field, paths, nulls, origin);

    bool failed = false;
    for (Found& f : found) {
      f.value = read(*f.json, *field.item->type, field, f.key);
      failed = failed || f.value.is_error();
    }
    if (failed || !agree(field, found) || !in_range(field, found[0].value, &found[0])) return Value::error();
    origin = "from " + b_.tree.place(*found[0].json);
    return with_name(field.name, found[0].value, origin, nullptr);
  }

  static Value with_name(const std::string& name, const Value& value, const std::string& origin, FormulaPtr inner) {
    switch (value.kind()) {
      case ValueKind::none:
      case ValueKind::boolean:
      case ValueKind::integer:
      case ValueKind::real:
      case ValueKind::string: return value.with_formula(named_formula(name, show(value, 60), origin, std::move(inner)));
      default: return value;
    }
  }

  bool agree(const FieldDef& field, const std::vector<Found>& found) {
    for (std::size_t i = 1; i < found.size(); ++i) {
      if (equal(found[0].value, found[i].value)) continue;
      const auto said = [&](const Found& f) {
        return "`" + f.key + "` is " + json_text(*f.json) + " in " + b_.tree.place(*f.json);
      };
      ev_.sink()
          .error(diag::code::config_disagree, b_.tree.place(*found[i].json),
                 "`" + field.name + "` is given twice and differently: " + said(found[0]) + ", " + said(found[i]))
          .label(field.span, "`" + field.name + "` is declared here")
          .help("correct the file, or decide with --set " + found[0].key + "=…");
      return false;
    }
    return true;
  }

  Value absent(const FieldDef& field, const std::vector<ast::Path>& paths, const std::vector<const Json*>& nulls,
               std::string& origin) {
    const std::string file = b_.tree.name();
    if (field.item->default_value) {
      const ast::Expr& expr = *field.item->default_value;
      Evaluator::Reason reason(ev_, "for the default of `" + field.name + "`, which " + file + " does not give");
      const Environment env = scope(*field.file);
      Value value = ev_.eval(expr, env);
      value = ev_.conform(value, *field.item->type, env, "the default of `" + field.name + "`", expr.span);
      if (value.is_error() || !in_range(field, value, nullptr)) return Value::error();
      origin = "by default";
      return with_name(field.name, value, origin, value.formula());
    }
    if (field.item->type->optional) {
      origin = "absent";
      const VariantDef* variant = nullptr;
      if (const auto* named = ast::try_as<ast::NamedType>(*field.item->type)) {
        const TypeName type = resolve_type(ev_, *named, Environment(field.file));
        if (type.symbol != nullptr && type.symbol->kind == SymbolKind::variant) {
          variant = ev_.config_defs().variant(*type.symbol);
          if (variant == nullptr) return Value::error();
        }
      }
      return with_name(field.name, Value::none(variant), "(absent from " + file + ")", nullptr);
    }
    report_missing(field, paths, nulls);
    return Value::error();
  }

  void report_missing(const FieldDef& field, const std::vector<ast::Path>& paths,
                      const std::vector<const Json*>& nulls) {
    const std::string inside = where_.empty() ? "" : where_.substr(0, where_.size() - 1);
    const std::string place = inside.empty() ? b_.tree.name() : b_.tree.place(object_);
    std::string looked = paths.size() == 1 ? "" : ": it has none of ";
    for (std::size_t i = 0; i < paths.size() && paths.size() > 1; ++i) {
      looked += (i == 0 ? "`" : i + 1 == paths.size() ? " and `" : ", `") + where_ + paths[i].text() + "`";
    }
    const bool other_key = paths.size() == 1 && paths[0].text() != field.name;
    auto message = ev_.sink().error(
        diag::code::config_missing, place,
        "`" + (other_key ? field.name + "` (the key `" + where_ + paths[0].text() : where_ + field.name) + "`" +
            (other_key ? ")" : "") + " is missing in " + (inside.empty() ? "" : "`" + inside + "` of ") +
            b_.tree.name() + looked);
    message.label(field.span, "`" + field.name + "` of " + def_.name + " is declared here, without a default");
    for (const Json* null : nulls) message.note(b_.tree.place(*null) + " says null, which counts as absent");
    // A key that is nearly it and that no field asks for.
    std::vector<std::string> others;
    for (const JsonMember& member : *object_.as_object()) {
      if (!member.value.is_null() && def_.field(member.key) == nullptr) others.push_back(member.key);
    }
    const auto near = diag::nearest(paths.back().parts.back().text, others);
    const std::string key = where_ + paths.back().text();
    if (near) {
      message.help("is it `" + *near + "` in " + b_.tree.place(*object_.find(*near)) + "? Else supply it with --set " +
                   key + "=…");
    } else {
      message.help("supply it with --set " + key + "=…");
    }
  }

  // `found` is null for a default.
  bool in_range(const FieldDef& field, const Value& value, const Found* found) {
    if (!field.item->range || value.is_none()) return true;
    const Environment env = scope(*field.file);
    const Value low = ev_.eval(*field.item->range->low, env);
    const Value high = field.item->range->high ? ev_.eval(*field.item->range->high, env) : Value::none();
    if (low.is_error() || high.is_error()) return false;
    if (!low.is_number() || !(high.is_number() || high.is_none()) || !value.is_number()) {
      ev_.sink().error(diag::code::wrong_operand, field.item->range->span, "a range is of numbers, for a number");
      return false;
    }
    const bool below = value.as_real() < low.as_real();
    const bool above = high.is_number() && value.as_real() > high.as_real();
    if (!below && !above) return true;
    const std::string message = "`" + field.name + "` is " + show(value) + ": expected " + show(low) + ".." +
                                (high.is_none() ? "" : show(high));
    auto report = found != nullptr
                      ? ev_.sink().error(diag::code::config_out_of_range, b_.tree.place(*found->json), message)
                      : ev_.sink().error(diag::code::config_out_of_range, field.item->default_value->span, message);
    report.label(field.item->range->span, "the range of `" + field.name + "`");
    for (const Value* end : {&low, &high}) {
      for (std::string& line : formula_origins(end->formula())) report.note(std::move(line));
    }
    return false;
  }

  // ---- values
  Value wrong(const Json& json, const ast::Type& type, const FieldDef& field, const std::string& key,
              std::string_view why = {}) {
    const Expressions ex(ev_);
    ev_.sink()
        .error(
            diag::code::config_wrong_type, b_.tree.place(json),
            "`" + key + "` is " + json_text(json) + ", " + json_kind(json) + ": expected `" + ex.text(type.span) + "`")
        .label(field.span, "`" + field.name + "` is declared here")
        .help(std::string(why));
    return Value::error();
  }

  Value read(const Json& json, const ast::Type& type, const FieldDef& field, const std::string& key) {
    // Objects of configs and cases are claimed as such; everything else whole.
    switch (type.kind) {
      case ast::TypeKind::literal:
        b_.tree.claim(json);
        return read_literal(json, ast::as<ast::LiteralType>(type), field, key);
      case ast::TypeKind::list: {
        const auto& list = ast::as<ast::ListType>(type);
        if (!json.is_array()) break;
        std::vector<Value> items;
        bool failed = false;
        for (const Json& item : *json.as_array()) {
          const std::string item_key = key + "[" + std::to_string(items.size()) + "]";
          if (item.is_null() && list.element->optional) {
            items.push_back(Value::none());
          } else {
            items.push_back(read(item, *list.element, field, item_key));
          }
          failed = failed || items.back().is_error();
          items.back() = with_name(item_key, items.back(), "from " + b_.tree.place(item), nullptr);
          if (failed) break;  // one message for a list of the wrong kind of thing
        }
        b_.tree.claim(json);
        if (failed || (list.length && !has_length(json, items.size(), list, field, key))) return Value::error();
        return Value::list(std::move(items));
      }
      case ast::TypeKind::map: {
        if (!json.is_object()) break;
        std::vector<std::pair<std::string, Value>> entries;
        bool failed = false;
        for (const JsonMember& member : *json.as_object()) {
          const std::string entry_key = key + "." + printable(member.key);
          entries.emplace_back(member.key, read(member.value, *ast::as<ast::MapType>(type).element, field, entry_key));
          failed = failed || entries.back().second.is_error();
          if (failed) break;
        }
        b_.tree.claim(json);
        return failed ? Value::error() : Value::map(std::move(entries));
      }
      case ast::TypeKind::named: return read_named(json, ast::as<ast::NamedType>(type), field, key);
      default: break;  // the definition has been refused
    }
    b_.tree.claim(json);
    return wrong(json, type, field, key);
  }

  bool has_length(const Json& json, std::size_t count, const ast::ListType& type, const FieldDef& field,
                  const std::string& key) {
    const Value length = ev_.eval(*type.length, scope(*field.file));
    if (length.is_error()) return false;
    if (!length.is(ValueKind::integer)) {
      ev_.sink().error(diag::code::wrong_operand, type.length->span,
                       "the length of a list is a whole number, not " + kind_name(length));
      return false;
    }
    if (length.as_int() == static_cast<std::int64_t>(count)) return true;
    auto message =
        ev_.sink().error(diag::code::config_list_length, b_.tree.place(json),
                         "`" + key + "` has " + counted(count, "element") + ": expected " + show_formula(length));
    message.label(field.span, "`" + field.name + "` is declared here");
    for (std::string& line : formula_origins(length.formula())) message.note(std::move(line));
    return false;
  }

  Value read_literal(const Json& json, const ast::LiteralType& type, const FieldDef& field, const std::string& key) {
    std::vector<std::string> texts;
    for (const ast::Literal& literal : type.literals) {
      const Value wanted = Expressions::literal(literal);
      bool same = false;
      switch (literal.kind) {
        case ast::LiteralKind::string: same = json.as_string() != nullptr && *json.as_string() == literal.text; break;
        case ast::LiteralKind::boolean: same = json.as_bool() == std::optional(literal.boolean); break;
        case ast::LiteralKind::integer: same = json.as_int() == std::optional(literal.integer); break;
        case ast::LiteralKind::floating:
          same = json.is_number() && json.as_double() == std::optional(literal.floating);
          break;
        case ast::LiteralKind::none: break;
      }
      if (same) return wanted;
      texts.push_back(show(wanted));
    }
    ev_.sink()
        .error(diag::code::config_wrong_literal, b_.tree.place(json),
               "`" + key + "` is " + json_text(json) + ": " + def_.name + " takes " +
                   (texts.size() == 1 ? texts[0] + " only" : "only " + listed(texts, 12)))
        .label(field.span, "`" + field.name + "` is declared here")
        .help("this model file describes no model with another value: use one that does");
    return Value::error();
  }

  Value read_named(const Json& json, const ast::NamedType& type, const FieldDef& field, const std::string& key) {
    const TypeName resolved = resolve_type(ev_, type, Environment(field.file));
    if (resolved.kind == TypeName::Kind::symbol) return read_symbol(json, type, *resolved.symbol, field, key);
    b_.tree.claim(json);
    switch (resolved.kind) {
      case TypeName::Kind::dim:
      case TypeName::Kind::integer: {
        if (!json.is_integer()) {
          const auto number = json.as_double();
          const bool whole =
              number && *number == static_cast<double>(static_cast<std::int64_t>(std::clamp(*number, -9e15, 9e15)));
          return wrong(json, type, field, key, whole ? "write it as a whole number, without a point or exponent" : "");
        }
        const auto value = json.as_int();
        if (value && (resolved.kind == TypeName::Kind::integer || *value >= 1)) return Value::integer(*value);
        ev_.sink()
            .error(diag::code::config_out_of_range, b_.tree.place(json),
                   "`" + key + "` is " + json_text(json) + ": " +
                       (value ? "a dim is at least 1" : "a whole number has 64 bits"))
            .label(field.span, "`" + field.name + "` is declared here");
        return Value::error();
      }
      case TypeName::Kind::real: {
        const auto value = json.as_double();
        return value ? Value::real(*value) : wrong(json, type, field, key);
      }
      case TypeName::Kind::boolean: {
        const auto value = json.as_bool();
        return value ? Value::boolean(*value) : wrong(json, type, field, key);
      }
      case TypeName::Kind::string: {
        const std::string* value = json.as_string();
        return value != nullptr ? Value::string(*value) : wrong(json, type, field, key);
      }
      default: return Value::error();  // the definition has been refused
    }
  }

  Value read_symbol(const Json& json, const ast::NamedType& type, const Symbol& symbol, const FieldDef& field,
                    const std::string& key) {
    if (!json.is_object()) {
      b_.tree.claim(json);
      return wrong(json, type, field, key);
    }
    if (symbol.kind == SymbolKind::config) {
      const ConfigDef* def = ev_.config_defs().config(symbol);
      const ConfigInstance* instance = def != nullptr ? ObjectBinder(b_, *def, json, key + ".").bind() : nullptr;
      if (instance == nullptr && def == nullptr) b_.tree.claim(json);
      return instance != nullptr ? Value::config(instance) : Value::error();
    }
    const VariantDef* variant = ev_.config_defs().variant(symbol);
    std::string tag;
    const auto index = variant != nullptr ? read_tag(json, *variant, field, key, tag) : std::nullopt;
    if (!index) {
      b_.tree.claim(json);  // its keys cannot be judged
      return Value::error();
    }
    const ConfigInstance* fields = ObjectBinder(b_, *variant->cases[*index].fields, json, key + ".").bind();
    if (fields == nullptr) return Value::error();
    auto instance = std::make_unique<VariantInstance>();
    instance->definition = variant;
    instance->case_index = *index;
    instance->tag = tag;
    instance->optional = type.optional;
    instance->fields = fields;
    return Value::variant(ev_.adopt(std::move(instance)));
  }

  // The case that the tag names; both spellings of the tag, when they are there, name the same.
  std::optional<std::size_t> read_tag(const Json& json, const VariantDef& variant, const FieldDef& field,
                                      const std::string& key, std::string& tag) {
    const auto& decl = ast::as<ast::VariantDecl>(*variant.symbol->decl);
    std::vector<std::string> cases, keys;
    for (const std::string& known : variant.tags()) cases.push_back(modelc::quote(known));
    std::optional<std::size_t> index;
    const Json* first = nullptr;
    for (const ast::Path& path : decl.tag_keys) {
      keys.push_back("`" + key + "." + path.text() + "`");
      b_.tree.claim_path(json, path);
      const Json* value = b_.tree.find(json, path);
      if (value == nullptr) continue;
      b_.tree.claim(*value);
      const std::string* text = value->as_string();
      const auto found = text != nullptr ? variant.find(*text) : std::nullopt;
      if (!found) {
        const std::string near = text != nullptr ? diag::did_you_mean(*text, variant.tags()) : "";
        ev_.sink()
            .error(diag::code::variant_unknown_tag, b_.tree.place(*value),
                   keys.back() + " is " + json_text(*value) + ", which is no case of " + variant.symbol->name)
            .label(variant.symbol->span, "its cases are " + listed(cases, 16))
            .help(near.empty() ? "this model file does not describe such a model" : near);
        return std::nullopt;
      }
      if (index && *index != *found) {
        ev_.sink()
            .error(diag::code::config_disagree, b_.tree.place(*value),
                   "the case of " + variant.symbol->name + " is given twice and differently: " + keys.front() + " is " +
                       json_text(*first) + " in " + b_.tree.place(*first) + ", " + keys.back() + " is " +
                       json_text(*value) + " in " + b_.tree.place(*value))
            .label(variant.symbol->span, "declared here")
            .help("correct the file, or decide with --set");
        return std::nullopt;
      }
      if (!index) {
        index = found;
        first = value;
        tag = *text;
      }
    }
    if (!index) {
      ev_.sink()
          .error(diag::code::variant_no_tag, b_.tree.place(json),
                 "`" + key + "` does not say which " + variant.symbol->name + " it is: it has no " + listed(keys))
          .label(field.span, "`" + field.name + "` is declared here")
          .note("the cases of " + variant.symbol->name + " are " + listed(cases, 16))
          .help("add the tag to the file, or say it with --set " + key + "." + decl.tag_keys.front().text() + "=…");
    }
    return index;
  }

  Binding& b_;
  Evaluator& ev_;
  const ConfigDef& def_;
  const Json& object_;
  std::string where_;
  std::vector<Slot> slots_;        // fields, then lets
  std::vector<std::size_t> open_;  // being bound, outermost first
  ConfigScope* scope_ = nullptr;
};

std::optional<Value> ConfigScope::function(std::string_view name) const {
  for (const FunctionDef& f : def_.functions) {
    if (f.name != name) continue;
    const ast::FunctionDecl& decl = *f.item;
    return Value::closure(Closure{f.name, &decl.params, decl.value.get(), decl.block ? &*decl.block : nullptr,
                                  Environment(f.file).with(*this), decl.name.span});
  }
  return std::nullopt;
}

std::optional<Value> ConfigScope::lookup(std::string_view name, source::Span) const {
  if (binder_ != nullptr) {
    if (auto value = binder_->value_of(name)) return value;
    return function(name);
  }
  return peek(name);
}

std::optional<Value> ConfigScope::peek(std::string_view name) const {
  const ConfigField* field = instance_ != nullptr ? instance_->find(name) : nullptr;
  return field != nullptr ? std::optional(field->value) : function(name);
}

std::optional<source::Span> ConfigScope::declared(std::string_view name) const {
  if (const FieldDef* field = def_.field(name)) return field->span;
  for (const LetDef& l : def_.lets) {
    if (l.name == name) return l.item->name.span;
  }
  for (const FunctionDef& f : def_.functions) {
    if (f.name == name) return f.item->name.span;
  }
  return std::nullopt;
}

void ConfigScope::names(std::vector<std::string>& into) const {
  for (const FieldDef& f : def_.fields) into.push_back(f.name);
  for (const LetDef& l : def_.lets) into.push_back(l.name);
  for (const FunctionDef& f : def_.functions) into.push_back(f.name);
}

// "hidden_size = 64 by --set (config.json:3 says 40)"
void note_overrides(const ConfigInput& input, std::vector<std::string>& notes) {
  for (const ConfigInput::Override& override_ : input.overrides) {
    const Json* before = input.tree.find_path(override_.key);
    std::string line = override_.key + " = " + json_text(override_.value) + " by --set";
    if (before != nullptr && !before->is_null()) {
      line += " (" + input.name + (before->line() != 0 ? ":" + std::to_string(before->line()) : "") + " says " +
              json_text(*before) + ")";
    }
    notes.push_back(std::move(line));
  }
}

}  // namespace

Value bind_config(Evaluator& evaluator, const Symbol& symbol, const ConfigInput& input,
                  std::vector<std::string>& notes) {
  diag::Sink& sink = evaluator.sink();
  const ConfigDef* def = evaluator.config_defs().config(symbol);
  if (def == nullptr) return Value::error();
  Json root = input.tree;
  std::string name = input.name;
  if (def->file) {
    name = *def->file;
    const source::Span span = ast::as<ast::ConfigDecl>(*symbol.decl).file->span;
    if (input.folder.empty()) {
      sink.error(diag::code::config_file, span,
                 symbol.name + " is bound to " + *def->file + ", and no folder is known to look for it")
          .help("give the checkpoint's folder with --checkpoint");
      return Value::error();
    }
    const std::filesystem::path relative(*def->file);
    const bool outside = relative.is_absolute() ||
                         std::any_of(relative.begin(), relative.end(), [](const auto& part) { return part == ".."; });
    if (outside) {
      sink.error(diag::code::config_file, span, "the file of a config lies in the checkpoint's folder: " + *def->file);
      return Value::error();
    }
    JsonOptions options;
    options.name = name;
    auto file = read_json_file((std::filesystem::path(input.folder) / relative).string(), options);
    if (!file) {
      sink.error(diag::code::config_file, name, file.error()).label(span, symbol.name + " is bound to it here");
      return Value::error();
    }
    root = std::move(file->root);
  } else {
    note_overrides(input, notes);
  }
  if (!root.is_object()) {
    sink.error(diag::code::config_no_object, name,
               name + " holds " + json_kind(root) + ": expected an object with the keys of " + symbol.name)
        .label(symbol.span, symbol.name + " is declared here");
    return Value::error();
  }
  ConfigTree tree(input, name, std::move(root), !def->file, sink);
  Binding binding{evaluator, tree};
  const ConfigInstance* instance = ObjectBinder(binding, *def, tree.root(), "").bind();
  const bool judged = tree.judge(*def, sink, notes);
  return instance != nullptr && judged && tree.good() ? Value::config(instance) : Value::error();
}

bool check_config(Evaluator& evaluator, const Symbol& config) {
  return evaluator.config_defs().config(config) != nullptr;
}

namespace {

void report_unread(diag::Sink& sink, const ConfigInstance& instance, std::string_view model) {
  for (std::size_t i = 0; i < instance.fields.size(); ++i) {
    const ConfigField& field = instance.fields[i];
    if (field.decl == nullptr) continue;
    const bool read = i < instance.read.size() && instance.read[i];
    if (!read && !field.reads_itself) {
      sink.error(diag::code::config_unread, field.span,
                 "nothing in " + std::string(model) + " reads `" + field.name + "` of " + instance.definition->name)
          .note("its value is " + show(field.value, 60) + " " + field.origin)
          .help("use it where the model depends on it, or take the field out and write `ignore " + field.name + "`");
      continue;
    }
    if (field.value.is(ValueKind::config)) report_unread(sink, field.value.as_config(), model);
    if (field.value.is(ValueKind::variant)) report_unread(sink, *field.value.as_variant().fields, model);
  }
}

}  // namespace

void report_unread_fields(Evaluator& evaluator, const Value& config, std::string_view model) {
  if (config.is(ValueKind::config)) report_unread(evaluator.sink(), config.as_config(), model);
}

}  // namespace modelc::sema

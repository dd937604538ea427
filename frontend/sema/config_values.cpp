// Values of the tree as values of the declared types.
#include "frontend/sema/config_object.h"

#include <algorithm>
#include <limits>

#include "frontend/sema/expressions.h"
#include "frontend/sema/types.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

Value ObjectBinder::wrong(const Json& json, const ast::Type& type, const FieldDef& field, const std::string& key, std::string_view why) {
  const Expressions ex(ev_);
  b_.tree
      .error(ev_.sink(), diag::code::config_wrong_type, json,
             "`" + key + "` is " + json_text(json) + ", " + json_kind(json) + ": expected `" + ex.text(type.span) + "`")
      .label(field.span, "`" + field.name + "` is declared here")
      .help(std::string(why));
  return Value::error();
}

Value ObjectBinder::read(const Json& json, const ast::Type& type, const FieldDef& field, const std::string& key) {
  // Objects of configs and cases are claimed as such; everything else whole.
  switch (type.kind) {
    case ast::TypeKind::literal: b_.tree.claim(json); return read_literal(json, ast::as<ast::LiteralType>(type), field, key);
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

namespace {

// A float, also as transformers 5 writes those that JSON has no word for: {"__float__": "Infinity"}.
std::optional<double> float_of(const Json& json) {
  if (const auto number = json.as_double()) return number;
  const JsonObject* object = json.as_object();
  const Json* tag = object != nullptr && object->size() == 1 ? object->find("__float__") : nullptr;
  const std::string* text = tag != nullptr ? tag->as_string() : nullptr;
  if (text == nullptr || (*text != "Infinity" && *text != "-Infinity")) return std::nullopt;
  const double infinity = std::numeric_limits<double>::infinity();
  return *text == "Infinity" ? infinity : -infinity;
}

}  // namespace

bool ObjectBinder::has_length(const Json& json, std::size_t count, const ast::ListType& type, const FieldDef& field,
                              const std::string& key) {
  const Value length = ev_.eval(*type.length, scope(*field.file));
  if (length.is_error()) return false;
  if (!length.is(ValueKind::integer)) {
    ev_.sink().error(diag::code::wrong_operand, type.length->span, "the length of a list is a whole number, not " + kind_name(length));
    return false;
  }
  if (length.as_int() == static_cast<std::int64_t>(count)) return true;
  auto message = b_.tree.error(ev_.sink(), diag::code::config_list_length, json,
                               "`" + key + "` has " + counted(count, "element") + ": expected " + show_formula(length));
  message.label(field.span, "`" + field.name + "` is declared here");
  for (std::string& line : formula_origins(length.formula())) message.note(std::move(line));
  return false;
}

Value ObjectBinder::read_literal(const Json& json, const ast::LiteralType& type, const FieldDef& field, const std::string& key) {
  std::vector<std::string> texts;
  for (const ast::Literal& literal : type.literals) {
    const Value wanted = Expressions::literal(literal);
    bool same = false;
    switch (literal.kind) {
      case ast::LiteralKind::string: same = json.as_string() != nullptr && *json.as_string() == literal.text; break;
      case ast::LiteralKind::boolean: same = json.as_bool() == std::optional(literal.boolean); break;
      case ast::LiteralKind::integer: same = json.as_int() == std::optional(literal.integer); break;
      case ast::LiteralKind::floating: same = json.is_number() && json.as_double() == std::optional(literal.floating); break;
      case ast::LiteralKind::none: break;
    }
    if (same) return wanted;
    texts.push_back(show(wanted));
  }
  std::vector<std::string> strings;
  for (const ast::Literal& literal : type.literals)
    if (literal.kind == ast::LiteralKind::string) strings.push_back(literal.text);
  const std::string near = json.as_string() != nullptr ? diag::did_you_mean(*json.as_string(), strings) : "";
  // The key by which transformers says whose configuration it is.
  const bool architecture = key == "model_type" && json.as_string() != nullptr;
  b_.tree
      .error(ev_.sink(), architecture ? diag::code::wrong_architecture : diag::code::config_wrong_literal, json,
             (architecture ? "the checkpoint is of another architecture: `" : "`") + key + "` is " + json_text(json) + ": " + def_.name +
                 " takes " + (texts.size() == 1 ? texts[0] + " only" : "only " + listed(texts, 12)))
      .label(field.span, "`" + field.name + "` is declared here")
      .help(near.empty() ? "this model file describes no model with another value: use one that does"
                         : near + " Else this model file describes no such model: use one that does");
  return Value::error();
}

Value ObjectBinder::read_named(const Json& json, const ast::NamedType& type, const FieldDef& field, const std::string& key) {
  const TypeName resolved = resolve_type(ev_, type, Environment(field.file));
  if (resolved.kind == TypeName::Kind::symbol) return read_symbol(json, type, *resolved.symbol, field, key);
  b_.tree.claim(json);
  switch (resolved.kind) {
    case TypeName::Kind::dim:
    case TypeName::Kind::integer: {
      if (!json.is_integer()) {
        const auto number = json.as_double();
        const bool whole = number && *number == static_cast<double>(static_cast<std::int64_t>(std::clamp(*number, -9e15, 9e15)));
        return wrong(json, type, field, key, whole ? "write it as a whole number, without a point or exponent" : "");
      }
      const auto value = json.as_int();
#ifdef MODELC_PLANTED_FAULT                                 // tests/fuzz: the fuzzer must find this one
      constexpr bool in_range = true;
#else
      const bool in_range = resolved.kind == TypeName::Kind::integer || (value && *value >= 1);
#endif
      if (value && in_range) return Value::integer(*value);
      b_.tree
          .error(ev_.sink(), diag::code::config_out_of_range, json,
                 "`" + key + "` is " + json_text(json) + ": " + (value ? "a dim is at least 1" : "a whole number has 64 bits"))
          .label(field.span, "`" + field.name + "` is declared here");
      return Value::error();
    }
    case TypeName::Kind::real: {
      const auto value = float_of(json);
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

Value ObjectBinder::read_symbol(const Json& json, const ast::NamedType& type, const Symbol& symbol, const FieldDef& field,
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

std::optional<std::size_t> ObjectBinder::read_tag(const Json& json, const VariantDef& variant, const FieldDef& field,
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
      b_.tree
          .error(ev_.sink(), diag::code::variant_unknown_tag, *value,
                 keys.back() + " is " + json_text(*value) + ", which is no case of " + variant.symbol->name)
          .label(variant.symbol->span, "its cases are " + listed(cases, 16))
          .help(near.empty() ? "this model file does not describe such a model" : near);
      return std::nullopt;
    }
    if (index && *index != *found) {
      b_.tree
          .error(ev_.sink(), diag::code::config_disagree, *value,
                 "the case of " + variant.symbol->name + " is given twice and differently: " + keys.front() + " is " + json_text(*first) +
                     " in " + b_.tree.place(*first) + ", " + keys.back() + " is " + json_text(*value) + " in " + b_.tree.place(*value))
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
    b_.tree
        .error(ev_.sink(), diag::code::variant_no_tag, json,
               "`" + key + "` does not say which " + variant.symbol->name + " it is: it has no " + listed(keys))
        .label(field.span, "`" + field.name + "` is declared here")
        .note("the cases of " + variant.symbol->name + " are " + listed(cases, 16))
        .help("add the tag to the file, or say it with --set " + key + "." + decl.tag_keys.front().text() + "=…");
  }
  return index;
}

}  // namespace modelc::sema

// Fields: where their values are found, defaults, ranges; the scope that a config's expressions see.
#include "frontend/sema/config_object.h"

#include <algorithm>

#include "frontend/sema/expressions.h"
#include "frontend/sema/types.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

ObjectBinder::ObjectBinder(Binding& binding, const ConfigDef& def, const Json& object, std::string where)
    : b_(binding), ev_(binding.ev), def_(def), object_(object), where_(std::move(where)), slots_(def.fields.size() + def.lets.size()) {
  auto scope = std::make_unique<ConfigScope>(def_);
  scope_ = scope.get();
  scope_->set_binder(this);
  ev_.adopt(std::move(scope));
}

const ConfigInstance* ObjectBinder::bind() {
  b_.tree.claim_object(object_, def_);
  bool good = true;
  for (std::size_t i = 0; i < slots_.size(); ++i) good = !value_of(i).is_error() && good;
  if (good) {
    for (const RequireDef& require : def_.requires_) good = ev_.require(*require.item, scope(*require.file), def_.name) && good;
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

std::optional<Value> ObjectBinder::value_of(std::string_view name) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (name_of(i) == name) return value_of(i);
  }
  return std::nullopt;
}

Value ObjectBinder::value_of(std::size_t index) {
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

void ObjectBinder::report_circle(std::size_t index) {
  std::string circle;
  for (auto it = std::find(open_.begin(), open_.end(), index); it != open_.end(); ++it) {
    circle += "`" + std::string(name_of(*it)) + "` needs ";
  }
  ev_.sink()
      .error(diag::code::config_cycle, span_of(index),
             "the value of `" + std::string(name_of(index)) + "` depends on itself: " + circle + "`" + std::string(name_of(index)) + "`")
      .help("give one of them in the configuration, or write a default that does not need the others");
}

Value ObjectBinder::bind_field(const FieldDef& field, std::string& origin) {
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

Value ObjectBinder::with_name(const std::string& name, const Value& value, const std::string& origin, FormulaPtr inner) {
  switch (value.kind()) {
    case ValueKind::none:
    case ValueKind::boolean:
    case ValueKind::integer:
    case ValueKind::real:
    case ValueKind::string: return value.with_formula(named_formula(name, show(value, 60), origin, std::move(inner)));
    default: return value;
  }
}

bool ObjectBinder::agree(const FieldDef& field, const std::vector<Found>& found) {
  for (std::size_t i = 1; i < found.size(); ++i) {
    if (equal(found[0].value, found[i].value)) continue;
    const auto said = [&](const Found& f) { return "`" + f.key + "` is " + json_text(*f.json) + " in " + b_.tree.place(*f.json); };
    b_.tree
        .error(ev_.sink(), diag::code::config_disagree, *found[i].json,
               "`" + field.name + "` is given twice and differently: " + said(found[0]) + ", " + said(found[i]))
        .label(field.span, "`" + field.name + "` is declared here")
        .help("correct the file, or decide with --set " + found[0].key + "=…");
    return false;
  }
  return true;
}

Value ObjectBinder::absent(const FieldDef& field, const std::vector<ast::Path>& paths, const std::vector<const Json*>& nulls,
                           std::string& origin) {
  const std::string file = b_.tree.name();
  if (field.item->default_value) {
    const ast::Expr& expr = *field.item->default_value;
    Evaluator::Reason reason(ev_, "for the default of `" + field.name + "`, which " + file + " does not give (--set " + where_ +
                                      paths.front().text() + "=… would)");
    const Environment env = scope(*field.file);
    Value value = ev_.eval(expr, env);
    value = ev_.conform(value, *field.item->type, env, "the default of `" + field.name + "`", expr.span);
    if (value.is_error() || !in_range(field, value, nullptr)) return Value::error();
    origin = "by default";
    return with_name(field.name, value, origin, value.formula());
  }
  if (field.item->type->optional) {
    origin = "(absent from " + file + ")";
    const VariantDef* variant = nullptr;
    if (const auto* named = ast::try_as<ast::NamedType>(*field.item->type)) {
      const TypeName type = resolve_type(ev_, *named, Environment(field.file));
      if (type.symbol != nullptr && type.symbol->kind == SymbolKind::variant) {
        variant = ev_.config_defs().variant(*type.symbol);
        if (variant == nullptr) return Value::error();
      }
    }
    return with_name(field.name, Value::none(variant), origin, nullptr);
  }
  report_missing(field, paths, nulls);
  return Value::error();
}

void ObjectBinder::report_missing(const FieldDef& field, const std::vector<ast::Path>& paths, const std::vector<const Json*>& nulls) {
  const std::string inside = where_.empty() ? "" : where_.substr(0, where_.size() - 1);
  std::string looked = paths.size() == 1 ? "" : ": it has none of ";
  for (std::size_t i = 0; i < paths.size() && paths.size() > 1; ++i) {
    looked += (i == 0 ? "`" : i + 1 == paths.size() ? " and `" : ", `") + where_ + paths[i].text() + "`";
  }
  const bool other_key = paths.size() == 1 && paths[0].text() != field.name;
  const std::string text = "`" + (other_key ? field.name + "` (the key `" + where_ + paths[0].text() : where_ + field.name) + "`" +
                           (other_key ? ")" : "") + " is missing in " + (inside.empty() ? "" : "`" + inside + "` of ") + b_.tree.name() +
                           looked;
  auto message = inside.empty() ? ev_.sink().error(diag::code::config_missing, b_.tree.name(), text)
                                : b_.tree.error(ev_.sink(), diag::code::config_missing, object_, text);
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
    message.help("is it `" + *near + "` in " + b_.tree.place(*object_.find(*near)) + "? Else supply it with --set " + key + "=…");
  } else {
    message.help("supply it with --set " + key + "=…");
  }
}

bool ObjectBinder::in_range(const FieldDef& field, const Value& value, const Found* found) {
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
  const std::string message =
      "`" + field.name + "` is " + show(value) + ": expected " + show(low) + ".." + (high.is_none() ? "" : show(high));
  auto report = found != nullptr ? b_.tree.error(ev_.sink(), diag::code::config_out_of_range, *found->json, message)
                                 : ev_.sink().error(diag::code::config_out_of_range, field.item->default_value->span, message);
  report.label(field.item->range->span, "the range of `" + field.name + "`");
  for (const Value* end : {&low, &high}) {
    for (std::string& line : formula_origins(end->formula())) report.note(std::move(line));
  }
  return false;
}

// ---- the scope ------------------------------------------------------------------------------------------------------

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

}  // namespace modelc::sema

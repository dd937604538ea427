// Whether a value is of a declared type, and what it becomes as one: int to float, a variant that may be none.
#include <algorithm>

#include "frontend/sema/expressions.h"
#include "frontend/sema/types.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace {

// One value against one type; the parts of lists and options recurse.
class Conformance {
 public:
  Conformance(Expressions& expressions, const Environment& env, std::string_view what, source::Span use)
      : ex_(expressions), ev_(expressions.evaluator()), env_(env), what_(what), use_(use) {}

  Value conform(const Value& value, const ast::Type& type) {
    if (value.is_error()) return value;
    if (value.is(ValueKind::absent)) {
      ex_.unusable(value, use_);
      return Value::error();
    }
    if (value.is_none()) return none(value, type);
    switch (type.kind) {
      case ast::TypeKind::literal: return literal(value, ast::as<ast::LiteralType>(type));
      case ast::TypeKind::list: return list(value, ast::as<ast::ListType>(type));
      case ast::TypeKind::map: return map(value, ast::as<ast::MapType>(type));
      case ast::TypeKind::function: {
        const bool good = value.is(ValueKind::closure) || value.is(ValueKind::builtin) || value.is(ValueKind::op);
        return good ? value : wrong(value, type);
      }
      case ast::TypeKind::named: return named(value, ast::as<ast::NamedType>(type));
      case ast::TypeKind::index:
      case ast::TypeKind::tensor: return tensor_type(type);
    }
    return Value::error();
  }

 private:
  std::string place() const { return part_.empty() ? what_ : part_ + " of " + what_; }

  Value wrong(const Value& value, const ast::Type& type, std::string_view help = {}) {
    std::string found = kind_name(value);
    const bool small = value.is_number() || value.is(ValueKind::boolean) || value.is(ValueKind::string);
    if (small) found += ", " + show_formula(value);
    ex_.fail(diag::code::wrong_type, use_, place() + " is `" + ex_.text(type.span) + "`: found " + found, {&value})
        .label(type.span, "declared here")
        .help(std::string(help));
    return Value::error();
  }

  Value tensor_type(const ast::Type& type) {
    ex_.fail(diag::code::unknown_type, type.span,
             "`" + ex_.text(type.span) + "` is a type of tensors: only parameters and results of forward and entries have one")
        .label(use_, "for this value");
    return Value::error();
  }

  Value none(const Value& value, const ast::Type& type) {
    if (!type.optional) {
      ex_.fail(diag::code::none_used, use_, place() + " is `" + ex_.text(type.span) + "`: found none", {&value})
          .label(type.span, "declared here: `" + ex_.text(type.span) + "?` would take none")
          .help("say what to use instead with `??`");
      return Value::error();
    }
    // Remembers what it is none of, for `match`.
    if (const auto* type_name = ast::try_as<ast::NamedType>(type)) {
      const TypeName resolved = resolve_type(ev_, *type_name, env_);
      if (resolved.symbol != nullptr && resolved.symbol->kind == SymbolKind::variant) {
        return Value::none(ev_.config_defs().variant(*resolved.symbol), value.formula());
      }
    }
    return value;
  }

  Value literal(const Value& value, const ast::LiteralType& type) {
    for (const ast::Literal& literal : type.literals) {
      const Value wanted = Expressions::literal(literal);
      const bool same_kind = wanted.kind() == value.kind() || (wanted.is(ValueKind::real) && value.is_number());
      if (same_kind && equal(wanted, value)) return value;
    }
    std::string help;
    if (value.is(ValueKind::string)) {
      std::vector<std::string> texts;
      for (const ast::Literal& literal : type.literals) texts.push_back(literal.text);
      help = diag::did_you_mean(value.as_string(), texts);
    }
    return wrong(value, type, help);
  }

  Value list(const Value& value, const ast::ListType& type) {
    if (!value.is(ValueKind::list)) return wrong(value, type);
    std::vector<Value> items;
    const std::string outer = part_;
    for (std::size_t i = 0; i < value.items().size(); ++i) {
      part_ = "element " + std::to_string(i) + (outer.empty() ? "" : " of " + outer);
      items.push_back(conform(value.items()[i], *type.element));
      if (items.back().is_error()) {
        part_ = outer;
        return Value::error();
      }
    }
    part_ = outer;
    if (type.length) {
      const Value length = ex_.eval(*type.length, env_);
      if (ex_.unusable(length, type.length->span)) return Value::error();
      if (!length.is(ValueKind::integer)) {
        ex_.fail(diag::code::wrong_operand, type.length->span, "the length of a list is a whole number, not " + kind_name(length));
        return Value::error();
      }
      if (length.as_int() != static_cast<std::int64_t>(items.size())) {
        ex_.fail(diag::code::wrong_type, use_, place() + " has " + counted(items.size(), "element") + ", expected " + show_formula(length),
                 {&length})
            .label(type.span, "declared here");
        return Value::error();
      }
    }
    return Value::list(std::move(items));
  }

  Value map(const Value& value, const ast::MapType& type) {
    if (!value.is(ValueKind::map)) return wrong(value, type);
    std::vector<std::pair<std::string, Value>> entries;
    const std::string outer = part_;
    for (const auto& [key, entry] : value.entries()) {
      part_ = "entry " + modelc::quote(key) + (outer.empty() ? "" : " of " + outer);
      entries.emplace_back(key, conform(entry, *type.element));
      if (entries.back().second.is_error()) {
        part_ = outer;
        return Value::error();
      }
    }
    part_ = outer;
    return Value::map(std::move(entries));
  }

  Value named(const Value& value, const ast::NamedType& type) {
    if (type.shape) return tensor_type(type);
    const TypeName resolved = resolve_type(ev_, type, env_);
    switch (resolved.kind) {
      case TypeName::Kind::failed: return Value::error();
      case TypeName::Kind::tensor:
      case TypeName::Kind::batch: return tensor_type(type);
      case TypeName::Kind::dim:
      case TypeName::Kind::integer: {
        if (value.is(ValueKind::dim)) {
          ex_.fail(diag::code::run_time_size, use_, place() + " is known early: `" + ex_.text(use_) + "` is a size of run time")
              .label(type.span, "declared here");
          return Value::error();
        }
        if (!value.is(ValueKind::integer)) {
          const bool whole = value.is(ValueKind::real);
          return wrong(value, type, whole ? "`int(x)` drops the fraction" : "");
        }
        if (resolved.kind == TypeName::Kind::dim && value.as_int() < 1) { return wrong(value, type, "a dim is at least 1"); }
        return value;
      }
      case TypeName::Kind::real:
        if (value.is(ValueKind::integer)) return Value::real(value.as_real(), value.formula());
        return value.is(ValueKind::real) ? value : wrong(value, type);
      case TypeName::Kind::boolean: return value.is(ValueKind::boolean) ? value : wrong(value, type);
      case TypeName::Kind::string: return value.is(ValueKind::string) ? value : wrong(value, type);
      case TypeName::Kind::module: return recipe(value, type) ? value : Value::error();
      case TypeName::Kind::symbol: return symbol(value, type, *resolved.symbol);
    }
    return Value::error();
  }

  bool recipe(const Value& value, const ast::Type& type) {
    if (!value.is(ValueKind::recipe)) {
      wrong(value, type);
      return false;
    }
    const Recipe& recipe = value.as_recipe();
    if (recipe.called) return true;
    ex_.fail(diag::code::wrong_type, use_, place() + " is a module with its arguments: `" + recipe.symbol->name + "` has none here")
        .label(type.span, "declared here")
        .help("write `" + recipe.symbol->name + "(…)`");
    return false;
  }

  Value symbol(const Value& value, const ast::NamedType& type, const Symbol& symbol) {
    switch (symbol.kind) {
      case SymbolKind::config: {
        if (!value.is(ValueKind::config)) return wrong(value, type);
        return value.as_config().definition->is_a(symbol) ? value : wrong(value, type, "a derived config passes, too");
      }
      case SymbolKind::variant: {
        if (!value.is(ValueKind::variant) || value.as_variant().definition->symbol != &symbol) return wrong(value, type);
        if (!type.optional || value.as_variant().optional) return value;
        auto widened = std::make_unique<VariantInstance>(value.as_variant());
        widened->optional = true;
        return Value::variant(ev_.adopt(std::move(widened)));
      }
      case SymbolKind::interface: return interface(value, type, symbol);
      default: return Value::error();  // resolve_type lets no other through
    }
  }

  Value interface(const Value& value, const ast::NamedType& type, const Symbol& symbol) {
    if (!recipe(value, type)) return Value::error();
    const auto& decl = ast::as<ast::InterfaceDecl>(*symbol.decl);
    std::vector<Argument> arguments;
    if (type.args) arguments = ex_.arguments(*type.args, env_);
    Environment scope(symbol.file);
    const auto bound = ex_.bind(decl.params, arguments, "the interface `" + symbol.name + "`", type.span, scope);
    if (!bound) return Value::error();
    InterfaceChecker* checker = ev_.interfaces();
    return checker == nullptr || checker->fits(value.as_recipe(), symbol, *bound, use_) ? value : Value::error();
  }

  Expressions& ex_;
  Evaluator& ev_;
  const Environment& env_;
  std::string what_;
  source::Span use_;
  std::string part_;  // "element 3", inside lists
};

}  // namespace

Value Expressions::conform(const Value& value, const ast::Type& type, const Environment& env, std::string_view what, source::Span use) {
  return Conformance(*this, env, what, use).conform(value, type);
}

}  // namespace modelc::sema

#include "frontend/sema/types.h"

#include "frontend/sema/expressions.h"
#include "frontend/sema/habits.h"

namespace modelc::sema {

namespace {

TypeName::Kind word_kind(std::string_view word) {
  using Kind = TypeName::Kind;
  if (word == "dim") return Kind::dim;
  if (word == "int") return Kind::integer;
  if (word == "float") return Kind::real;
  if (word == "bool") return Kind::boolean;
  if (word == "string") return Kind::string;
  if (word == "module") return Kind::module;
  if (word == "Batch" || word == "Sequences") return Kind::batch;
  return dtype_from_name(word) ? Kind::tensor : Kind::failed;
}

TypeName of_symbol(Expressions& ex, const Symbol& symbol, const ast::NamedType& type) {
  switch (symbol.kind) {
    case SymbolKind::config:
    case SymbolKind::variant:
      if (type.args) {
        ex.fail(diag::code::unknown_type, type.args->span, "a " + std::string(word(symbol)) + " takes no arguments");
        return {};
      }
      return {TypeName::Kind::symbol, &symbol};
    case SymbolKind::interface: return {TypeName::Kind::symbol, &symbol};
    default: {
      auto message =
          ex.fail(diag::code::unknown_type, type.path.span, "`" + symbol.name + "` is a " + std::string(word(symbol)) + ", not a type");
      message.label(symbol.span, "declared here");
      if (symbol.kind == SymbolKind::module) message.help("the type of a module is `module` or an interface that it fits");
      return {};
    }
  }
}

// What a type of Python or PyTorch is called here; `torch.float16` counts by its last word.
std::string written_here(std::string_view word, bool of_tensor) {
  if (!of_tensor) return habit_of_type(word);
  const std::string_view element = element_of_habit(word);
  return element.empty() ? std::string() : "write `" + std::string(element) + "`";
}

}  // namespace

TypeName resolve_type(Evaluator& evaluator, const ast::NamedType& type, const Environment& env) {
  Expressions ex(evaluator);
  const ast::Name& first = type.path.parts.front();
  if (type.path.parts.size() == 1) {
    if (const TypeName::Kind kind = word_kind(first.text); kind != TypeName::Kind::failed) {
      if (!type.args) return {kind, nullptr};
      ex.fail(diag::code::unknown_type, type.args->span, "`" + first.text + "` takes no arguments");
      return {};
    }
  }
  if (env.file() != nullptr && type.path.parts.size() == 1) {
    bool failed = false;
    const Symbol* symbol = resolve(*env.file(), first.text, first.span, evaluator.sink(), failed);
    if (failed) return {};
    if (symbol != nullptr) return of_symbol(ex, *symbol, type);
  }
  if (env.file() != nullptr && type.path.parts.size() == 2) {
    if (const FileSymbols* files = find_symbol(*env.file(), first.text).alias) {
      if (const Symbol* symbol = files->own(type.path.parts[1].text)) return of_symbol(ex, *symbol, type);
    }
  }
  std::vector<std::string> names = {"dim", "int", "float", "bool", "string", "module", "Batch", "Sequences"};
  if (type.shape) names = {"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool"};
  if (env.file() != nullptr && !type.shape) symbol_names(*env.file(), names);
  std::string near = written_here(type.path.parts.back().text, type.shape.has_value());
  if (near.empty()) near = diag::did_you_mean(type.path.text(), names);
  if (near.empty() && type.args) {
    const std::string import = evaluator.import_of(type.path.text());
    if (!import.empty()) near = "a child is declared by its name alone, `name: " + type.path.text() + "(…)`; " + import;
  }
  ex.fail(diag::code::unknown_type, type.path.span, "no type `" + type.path.text() + "` is known here")
      .help(near.empty() ? evaluator.import_of(type.path.text()) : near);
  return {};
}

bool check_config_type(Evaluator& evaluator, const ast::Type& type, const Environment& env) {
  Expressions ex(evaluator);
  const auto misplaced = [&](std::string_view why) {
    ex.fail(diag::code::unknown_type, type.span, "`" + ex.text(type.span) + "` is no type of a configuration's value: " + std::string(why));
    return false;
  };
  switch (type.kind) {
    case ast::TypeKind::list: return check_config_type(evaluator, *ast::as<ast::ListType>(type).element, env);
    case ast::TypeKind::map: return check_config_type(evaluator, *ast::as<ast::MapType>(type).element, env);
    case ast::TypeKind::literal:
      for (const ast::Literal& literal : ast::as<ast::LiteralType>(type).literals) {
        if (literal.kind != ast::LiteralKind::none) continue;
        return misplaced("none is no value; `T?` is a value that may be absent");
      }
      return true;
    case ast::TypeKind::named: {
      const auto& named = ast::as<ast::NamedType>(type);
      if (named.shape) return misplaced("it is a type of tensors");
      const TypeName resolved = resolve_type(evaluator, named, env);
      switch (resolved.kind) {
        case TypeName::Kind::failed: return false;
        case TypeName::Kind::module: return misplaced("modules are not in configurations");
        case TypeName::Kind::tensor:
        case TypeName::Kind::batch: return misplaced("it is a type of tensors");
        case TypeName::Kind::symbol:
          return resolved.symbol->kind != SymbolKind::interface || misplaced("modules are not in configurations");
        default: return true;
      }
    }
    case ast::TypeKind::function: return misplaced("functions are not in configurations");
    case ast::TypeKind::index:
    case ast::TypeKind::tensor: return misplaced("it is a type of tensors");
  }
  return false;
}

bool reads_itself(const ast::Type& type) {
  if (type.kind == ast::TypeKind::literal) return true;
  const auto* list = ast::try_as<ast::ListType>(type);
  if (list == nullptr) return false;
  const auto* element = ast::try_as<ast::LiteralType>(*list->element);
  return element != nullptr && element->literals.size() == 1;
}

}  // namespace modelc::sema

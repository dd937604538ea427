#include "frontend/sema/symbols.h"

#include <algorithm>
#include <optional>

namespace modelc::sema {

namespace {

struct Declared {
  SymbolKind kind;
  const ast::Name* name;
};

// Null for a test, which has no name to refer to.
std::optional<Declared> declared_name(const ast::Item& item) {
  switch (item.kind) {
    case ast::ItemKind::axis: return Declared{SymbolKind::axis, &ast::as<ast::AxisDecl>(item).name};
    case ast::ItemKind::config: return Declared{SymbolKind::config, &ast::as<ast::ConfigDecl>(item).name};
    case ast::ItemKind::variant: return Declared{SymbolKind::variant, &ast::as<ast::VariantDecl>(item).name};
    case ast::ItemKind::interface: return Declared{SymbolKind::interface, &ast::as<ast::InterfaceDecl>(item).name};
    case ast::ItemKind::module: return Declared{SymbolKind::module, &ast::as<ast::ModuleDecl>(item).name};
    case ast::ItemKind::function: return Declared{SymbolKind::function, &ast::as<ast::FunctionDecl>(item).name};
    case ast::ItemKind::op: return Declared{SymbolKind::op, &ast::as<ast::OpDecl>(item).name};
    case ast::ItemKind::encoding: return Declared{SymbolKind::encoding, &ast::as<ast::EncodingDecl>(item).name};
    default: return std::nullopt;
  }
}

std::string with_article(std::string_view noun) {
  const bool vowel = noun.find_first_of("aeiou") == 0 || noun == "fn";
  return (vowel ? "an " : "a ") + std::string(noun);
}

}  // namespace

std::string_view word(const Symbol& symbol) {
  switch (symbol.kind) {
    case SymbolKind::config: return "config";
    case SymbolKind::variant: return "variant";
    case SymbolKind::interface: return "interface";
    case SymbolKind::module: return ast::as<ast::ModuleDecl>(*symbol.decl).is_model ? "model" : "module";
    case SymbolKind::function: return "fn";
    case SymbolKind::op: return "op";
    case SymbolKind::encoding: return "encoding";
    case SymbolKind::axis: return "axis";
  }
  return "name";
}

const Symbol* FileSymbols::own(std::string_view wanted) const {
  const auto it = declared.find(wanted);
  return it == declared.end() ? nullptr : &it->second;
}

SymbolLookup find_symbol(const FileSymbols& file, std::string_view name) {
  SymbolLookup found;
  found.symbol = file.own(name);
  if (found.symbol != nullptr) return found;
  for (const ImportedFile& import : file.imports) {
    if (!import.alias.empty()) {
      if (import.alias == name) found.alias = import.file;
      continue;
    }
    const Symbol* symbol = import.file->own(name);
    if (symbol != nullptr && std::find(found.candidates.begin(), found.candidates.end(), symbol) == found.candidates.end()) {
      found.candidates.push_back(symbol);
    }
  }
  if (found.alias != nullptr) {
    found.candidates.clear();
  } else if (found.candidates.size() == 1) {
    found.symbol = found.candidates.front();
    found.candidates.clear();
  }
  return found;
}

const Symbol* resolve(const FileSymbols& file, std::string_view name, source::Span use, diag::Sink& sink, bool& failed) {
  const SymbolLookup found = find_symbol(file, name);
  if (found.candidates.empty()) return found.symbol;
  failed = true;
  const std::string& first = found.candidates[0]->file->name;
  const std::string& second = found.candidates[1]->file->name;
  diag::Builder message =
      sink.error(diag::code::ambiguous_name, use, "`" + std::string(name) + "` is declared in " + first + " and in " + second);
  for (const Symbol* candidate : found.candidates) message.label(candidate->span, "one of them");
  message.help("give one import a name of its own, as in `import a.b as other`, and write `other." + std::string(name) +
               "` where that file's is meant");
  return nullptr;
}

void symbol_names(const FileSymbols& file, std::vector<std::string>& into) {
  for (const auto& [name, symbol] : file.declared) into.push_back(name);
  for (const ImportedFile& import : file.imports) {
    if (!import.alias.empty()) {
      into.push_back(import.alias);
      continue;
    }
    for (const auto& [name, symbol] : import.file->declared) into.push_back(name);
  }
}

void declare(FileSymbols& file, diag::Sink& sink) {
  for (const ast::ItemPtr& item : file.ast->decls) {
    const auto declared = declared_name(*item);
    if (!declared) continue;
    Symbol symbol{declared->kind, declared->name->text, item.get(), &file, declared->name->span};
    const auto [it, fresh] = file.declared.emplace(symbol.name, symbol);
    if (fresh) continue;
    sink.error(diag::code::duplicate_name, symbol.span, "`" + symbol.name + "` is declared twice in " + file.name)
        .label(it->second.span, "first declared here, as " + with_article(word(it->second)))
        .help("give one of them another name");
  }
}

}  // namespace modelc::sema

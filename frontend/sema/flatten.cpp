#include "frontend/sema/flatten.h"

#include <algorithm>
#include <filesystem>

#include "frontend/sema/definitions.h"
#include "frontend/sema/flatten_parts.h"
#include "frontend/sema/mentions.h"
#include "frontend/syntax/format.h"
#include "frontend/syntax/printer.h"

namespace modelc::sema {

using source::Span;

namespace {

const Symbol* symbol_of(const FileSymbols& file, const ast::Item& item) {
  for (const auto& [name, symbol] : file.declared) {
    if (symbol.decl == &item) return &symbol;
  }
  return nullptr;
}

bool is_model(const ast::Item& item) {
  const auto* module = ast::try_as<ast::ModuleDecl>(item);
  return module != nullptr && module->is_model;
}

}  // namespace

std::string doc_lines(const std::string& doc, const std::string& indent) {
  std::string out;
  for (std::size_t at = 0; !doc.empty() && at <= doc.size();) {
    const std::size_t end = std::min(doc.find('\n', at), doc.size());
    out += indent + "/// " + doc.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

std::optional<std::string> Flattener::run() {
  check_definitions(evaluator_, modules_, imports_);
  if (sink_.has_errors()) return std::nullopt;
  collect_names();
  // What is needed and which configs pass where is known once the texts are made; so they are made until that settles. A pass
  // that leaves out more makes fewer demands, so it does soon.
  constexpr int most = 16;
  for (int pass = 0; pass < most; ++pass) {
    write_texts();
    Decisions next;
    decide_configs(next);
    for (const auto& [symbol, made] : texts_)
      if (symbol->kind == SymbolKind::module) next.modules.insert(symbol);
    if (next == decisions_) break;
    decisions_ = std::move(next);
  }
  const source::FileId made = sources_.add("flattened " + imports_.main().name, joined());
  return syntax::format(made, sources_, sink_);
}

bool Flattener::has_model() const {
  const auto& decls = imports_.main().ast->decls;
  return std::any_of(decls.begin(), decls.end(), [](const ast::ItemPtr& item) { return is_model(*item); });
}

void Flattener::write_texts() {
  texts_.clear(), tests_.clear(), names_.clear(), taken_.clear(), wanted_.clear(), bound_.clear();
  const FileSymbols& main = imports_.main();
  for (const auto& [own, symbol] : main.declared) name_of(symbol);            // the main file's names come first
  const bool library = !has_model();                                          // else nothing stands there that the model does not need
  for (const ast::ItemPtr& item : main.ast->decls) {
    const Symbol* symbol = symbol_of(main, *item);
    if (symbol != nullptr && (library || is_model(*item))) need(*symbol);
    if (symbol == nullptr) tests_.push_back(copy({&main}, *item));
  }
}

std::string Flattener::joined() const {
  std::string out = "language 1\n";
  for (const FileSymbols* file : imports_.in_order()) {
    for (const ast::ItemPtr& item : file->ast->decls) {
      const Symbol* symbol = symbol_of(*file, *item);
      const auto text = symbol == nullptr ? texts_.end() : texts_.find(symbol);
      if (text != texts_.end()) out += "\n" + doc_lines(item->doc, "") + text->second + "\n";
    }
  }
  for (const std::string& test : tests_) out += "\n" + test + "\n";
  return out;
}

void Flattener::need(const Symbol& symbol) {
  if (!texts_.try_emplace(&symbol).second) return;
  std::string text = declaration(symbol);
  texts_[&symbol] = std::move(text);
}

// ---- names ----------------------------------------------------------------------------------------------------------

void Flattener::collect_names() {
  for (const FileSymbols* file : imports_.in_order()) {
    for (const ast::ItemPtr& item : file->ast->decls) {
      Names own;
      local_names(*item, own);
      each_mention(*item, [&](const Mention& m) {
        const SymbolLookup found = find_symbol(*file, m.name);
        const bool declared = found.symbol != nullptr || found.alias != nullptr || own.contains(m.name);
        if (!declared && m.kind != MentionKind::argument) builtins_[m.name].insert(file);
      });
      locals_.merge(own);
    }
  }
}

// Whether a declaration may have a name: no other has it, and no text says it and means something else.
bool Flattener::is_free(const Symbol& symbol, const std::string& name) const {
  if (taken_.contains(name)) return false;
  if (name != symbol.name) return !locals_.contains(name) && !builtins_.contains(name);
  const auto language = builtins_.find(name);
  if (language != builtins_.end()) return false;                              // said in a file that does not see this one
  if (!locals_.contains(name)) return true;
  // A text that knows it by an alias may have a local of its name.
  for (const FileSymbols* file : imports_.in_order())
    for (const ImportedFile& import : file->imports)
      if (!import.alias.empty() && import.file == symbol.file) return false;
  return true;
}

// What a declaration is called in the text: its own name, where that is free.
std::string Flattener::name_of(const Symbol& symbol) {
  const auto known = names_.find(&symbol);
  if (known != names_.end()) return known->second;
  std::string name = symbol.name;
  for (int n = 2; !is_free(symbol, name); ++n) name = symbol.name + "_" + std::to_string(n);
  taken_.insert(name);
  names_.emplace(&symbol, name);
  return name;
}

std::string Flattener::use(const Symbol& symbol) {
  const Symbol& kept = standing(symbol);
  need(kept);
  return name_of(kept);
}

// ---- texts ----------------------------------------------------------------------------------------------------------

// The text of a span of an item with names replaced by what they are called here, and what `edits` says.
std::string Flattener::copy(const Scope& scope, const ast::Item& item, std::optional<Span> part, Edits edits) {
  const Span span = part.value_or(item.span);
  const Edits whole = edits;
  const auto replaced = [&](Span at) {
    return std::any_of(whole.begin(), whole.end(), [&](const auto& e) { return e.first.begin <= at.begin && at.end <= e.first.end; });
  };
  Names local;
  local_names(item, local);
  if (scope.own != nullptr) local.insert(scope.own->begin(), scope.own->end());
  each_mention(item, [&](const Mention& m) {
    if (m.span.begin < span.begin || m.span.end > span.end || replaced(m.span)) return;
    if (m.kind == MentionKind::name && scope.params != nullptr) {
      const auto renamed = scope.params->find(m.name);
      if (renamed != scope.params->end()) {
        if (scope.used != nullptr) scope.used->insert(m.name);
        if (renamed->second != m.name) edits.emplace_back(m.span, renamed->second);
        return;
      }
    }
    if ((m.kind == MentionKind::name || m.kind == MentionKind::argument) && local.contains(m.name)) return;
    const SymbolLookup found = find_symbol(*scope.file, m.name);
    const bool aliased = found.alias != nullptr && !m.member.empty();
    const Symbol* symbol = aliased ? found.alias->own(m.member) : m.kind == MentionKind::base ? nullptr : found.symbol;
    if (symbol == nullptr) return;
    if (m.kind == MentionKind::argument) {
      const auto& called = own_parameters(*symbol);
      if (const auto other = called.find(text(m.span)); other != called.end()) edits.emplace_back(m.span, other->second);
      return;
    }
    if (m.kind == MentionKind::type && symbol->kind == SymbolKind::config) note_config(*symbol, item, m.span);
    const std::string name = use(*symbol);
    if (aliased) edits.emplace_back(m.whole, name);
    else if (name != m.name) edits.emplace_back(m.span, name);
  });
  std::sort(edits.begin(), edits.end());
  std::string out;
  std::uint32_t at = span.begin;
  for (const auto& [where, name] : edits) {
    if (where.begin < at || where.end > span.end) continue;    // a part of what is replaced already, or of another text
    out += text({span.file, at, where.begin}) + name;
    at = where.end;
  }
  return out + text({span.file, at, span.end});
}

std::string Flattener::declaration(const Symbol& symbol) {
  const ast::Item& item = *symbol.decl;
  if (symbol.kind == SymbolKind::config && ast::as<ast::ConfigDecl>(item).base) return config(symbol);
  if (symbol.kind == SymbolKind::module && ast::as<ast::ModuleDecl>(item).base) return module(symbol);
  Edits edits = {{symbol.span, name_of(symbol)}};
  if (const auto* op = ast::try_as<ast::OpDecl>(item)) {
    for (const ast::Kernel& kernel : op->kernels)
      if (std::string path = kernel_path(*symbol.file, kernel.file.value); path != kernel.file.value)
        edits.emplace_back(kernel.file.span, syntax::quote(path));
  }
  if (const auto* module = ast::try_as<ast::ModuleDecl>(item)) {
    for (const ast::ItemPtr& member : module->members)
      if (const auto* block = ast::try_as<ast::CheckpointMember>(*member)) rule_edits({symbol.file}, *member, block->rules, edits, {});
  }
  return copy({symbol.file}, item, std::nullopt, std::move(edits));
}

// A file that stands beside the declaration's, as seen from the main file.
std::string Flattener::kernel_path(const FileSymbols& file, const std::string& path) const {
  const std::filesystem::path& own = sources_.real_path(file.id);
  const std::filesystem::path& main = sources_.real_path(imports_.main().id);
  if (own.empty() || main.empty() || own.parent_path() == main.parent_path()) return path;
  const std::filesystem::path seen = (own.parent_path() / path).lexically_relative(main.parent_path());
  return seen.empty() ? path : seen.generic_string();
}

std::optional<std::string> flatten(source::SourceManager& sources, const std::shared_ptr<Imports>& imports, diag::Sink& sink) {
  return Flattener(sources, *imports, sink).run();
}

}  // namespace modelc::sema

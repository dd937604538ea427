#include "frontend/sema/flatten.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "frontend/graph/dims.h"
#include "frontend/sema/config.h"
#include "frontend/sema/definitions.h"
#include "frontend/sema/evaluator.h"
#include "frontend/sema/imports.h"
#include "frontend/sema/mentions.h"
#include "frontend/sema/module_def.h"
#include "frontend/syntax/format.h"
#include "frontend/syntax/parser.h"
#include "frontend/syntax/printer.h"

namespace modelc::sema {

namespace {

using source::Span;
using Renames = std::map<std::string, std::string, std::less<>>;

// Texts of one file with names replaced.
struct Scope {
  const FileSymbols* file = nullptr;
  const Renames* params = nullptr;               // parameters of a base: what they are called or given
  const std::set<std::string, std::less<>>* own = nullptr;   // members and fields beside the text, which hide declarations
};

class Flattener {
 public:
  Flattener(source::SourceManager& sources, const Imports& imports, diag::Sink& sink)
      : sources_(sources), imports_(imports), sink_(sink), evaluator_(sources, dims_, sink), modules_(sink) {}

  std::optional<std::string> run() {
    check_definitions(evaluator_, modules_, imports_);
    if (sink_.has_errors()) return std::nullopt;
    find_config_uses();
    for (const ast::ItemPtr& item : imports_.main().ast->decls) {
      const Symbol* symbol = symbol_of(imports_.main(), *item);
      if (symbol != nullptr && is_root(*symbol)) need(*symbol);
      if (symbol == nullptr) tests_.push_back(copy({&imports_.main(), nullptr}, *item));
    }
    // What a text needs is known once it is made, and it is made of the names that all have.
    std::string out = "language 1\n";
    for (const FileSymbols* file : imports_.in_order()) {
      for (const ast::ItemPtr& item : file->ast->decls) {
        const Symbol* symbol = symbol_of(*file, *item);
        const auto text = symbol == nullptr ? texts_.end() : texts_.find(symbol);
        if (text == texts_.end()) continue;
        out += "\n";
        for (std::size_t at = 0; !item->doc.empty() && at <= item->doc.size();) {
          const std::size_t end = std::min(item->doc.find('\n', at), item->doc.size());
          out += "/// " + item->doc.substr(at, end - at) + "\n";
          at = end + 1;
        }
        out += text->second + "\n";
      }
    }
    for (const std::string& test : tests_) out += "\n" + test + "\n";
    const source::FileId made = sources_.add("flattened " + imports_.main().name, out);
    return syntax::format(made, sources_, sink_);
  }

 private:
  static const Symbol* symbol_of(const FileSymbols& file, const ast::Item& item) {
    for (const auto& [name, symbol] : file.declared) {
      if (symbol.decl == &item) return &symbol;
    }
    return nullptr;
  }

  // A main file with a model is flattened for it: of its configs and modules those that it needs.
  bool is_root(const Symbol& symbol) const {
    if (symbol.kind != SymbolKind::module && symbol.kind != SymbolKind::config) return true;
    const auto& decls = imports_.main().ast->decls;
    const auto is_model = [](const ast::ItemPtr& item) {
      const auto* module = ast::try_as<ast::ModuleDecl>(*item);
      return module != nullptr && module->is_model;
    };
    return std::none_of(decls.begin(), decls.end(), is_model) ||
           (symbol.kind == SymbolKind::module && ast::as<ast::ModuleDecl>(*symbol.decl).is_model);
  }

  void need(const Symbol& symbol) {
    if (!texts_.try_emplace(&symbol).second) return;
    std::string text = declaration(symbol);
    texts_[&symbol] = std::move(text);
  }

  // --- Names -------------------------------------------------------------------------------------------------------

  // What a declaration is called in the text: its own name, unless another one has it.
  std::string name_of(const Symbol& symbol) {
    const auto known = names_.find(&symbol);
    if (known != names_.end()) return known->second;
    std::string name = symbol.name;
    if (taken_.empty()) {
      for (const auto& [own, s] : imports_.main().declared) taken_.insert(own), names_.emplace(&s, own);
      if (const auto mine = names_.find(&symbol); mine != names_.end()) return mine->second;
    }
    for (int n = 2; !taken_.insert(name).second; ++n) name = symbol.name + "_" + std::to_string(n);
    names_.emplace(&symbol, name);
    return name;
  }

  // The declaration that stands for one in the text: a base config gives way to the one config made of it.
  const Symbol& standing(const Symbol& symbol) {
    const auto merged = merged_into_.find(&symbol);
    return merged == merged_into_.end() ? symbol : *merged->second;
  }

  std::string use(const Symbol& symbol) {
    const Symbol& kept = standing(symbol);
    need(kept);
    return name_of(kept);
  }

  // --- Configs that are asked for as types -------------------------------------------------------------------------

  void find_config_uses() {
    std::map<const Symbol*, std::set<const Symbol*>> derived;   // of a config: those that extend it, by whatever way
    std::set<const Symbol*> bases, wanted;
    for (const FileSymbols* file : imports_.in_order()) {
      for (const auto& [name, symbol] : file->declared) {
        each_mention(*symbol.decl, [&](const Mention& m) {
          const SymbolLookup found = find_symbol(*file, m.name);
          if (m.kind == MentionKind::type && found.symbol != nullptr && found.symbol->kind == SymbolKind::config)
            wanted.insert(found.symbol);
        });
        if (symbol.kind != SymbolKind::config) continue;
        const ConfigDef* def = evaluator_.config_defs().config(symbol);
        for (const ConfigDef* base = def == nullptr ? nullptr : def->base; base != nullptr; base = base->base) {
          derived[base->symbol].insert(&symbol);
          bases.insert(base->symbol);
        }
      }
    }
    for (const Symbol* base : bases) {
      if (!wanted.contains(base)) continue;
      // The one at the end of the chain, where all others lie between.
      const Symbol* last = nullptr;
      std::size_t ends = 0;
      for (const Symbol* d : derived[base]) {
        if (bases.contains(d)) continue;
        last = d;
        ++ends;
      }
      if (ends == 1) merged_into_.emplace(base, last);
      else kept_.insert(base);
    }
  }

  // --- Texts -------------------------------------------------------------------------------------------------------

  std::string text(Span span) const { return std::string(sources_.text(span)); }

  // The text of a span of an item, with names replaced by what they are called here.
  std::string copy(const Scope& scope, const ast::Item& item, std::optional<Span> part = std::nullopt) {
    const Span span = part.value_or(item.span);
    std::vector<std::pair<Span, std::string>> edits;
    std::set<std::string, std::less<>> local;
    local_names(item, local);
    if (scope.own != nullptr) local.insert(scope.own->begin(), scope.own->end());
    each_mention(item, [&](const Mention& m) {
      if (m.span.begin < span.begin || m.span.end > span.end) return;
      if (m.kind == MentionKind::name && scope.params != nullptr) {
        const auto renamed = scope.params->find(m.name);
        if (renamed != scope.params->end()) {
          if (renamed->second != m.name) edits.emplace_back(m.span, renamed->second);
          return;
        }
      }
      if (m.kind == MentionKind::name && local.contains(m.name)) return;
      const SymbolLookup found = find_symbol(*scope.file, m.name);
      if (found.alias != nullptr && !m.member.empty()) {
        if (const Symbol* symbol = found.alias->own(m.member)) edits.emplace_back(m.whole, use(*symbol));
      } else if (found.symbol != nullptr && m.kind != MentionKind::base) {
        const std::string name = use(*found.symbol);
        if (name != m.name) edits.emplace_back(m.span, name);
      }
    });
    std::sort(edits.begin(), edits.end());
    std::string out;
    std::uint32_t at = span.begin;
    for (const auto& [where, name] : edits) {
      if (where.begin < at) continue;                          // a part of what is replaced already
      out += text({span.file, at, where.begin}) + name;
      at = where.end;
    }
    return out + text({span.file, at, span.end});
  }

  std::string without_override(const Scope& scope, const ast::Item& item, const std::optional<Span>& word) {
    return copy(scope, item, word ? std::optional(Span{item.span.file, word->end, item.span.end}) : std::nullopt);
  }

  std::string declaration(const Symbol& symbol) {
    const ast::Item& item = *symbol.decl;
    if (symbol.kind == SymbolKind::config && ast::as<ast::ConfigDecl>(item).base && !extends_kept(symbol)) return config(symbol);
    if (symbol.kind == SymbolKind::module && ast::as<ast::ModuleDecl>(item).base) return module(symbol);
    const Scope scope{symbol.file, nullptr};
    std::string out = copy(scope, item);
    std::string base;
    if (symbol.kind == SymbolKind::config && ast::as<ast::ConfigDecl>(item).base) {
      const SymbolLookup found = find_symbol(*symbol.file, ast::as<ast::ConfigDecl>(item).base->text);
      if (found.symbol != nullptr) base = use(*found.symbol);
    }
    // The names of the declaration itself and of its base, which stand once each, in its head.
    replace_word(out, symbol.name, name_of(symbol));
    if (!base.empty() && base != ast::as<ast::ConfigDecl>(item).base->text) replace_word(out, ast::as<ast::ConfigDecl>(item).base->text, base);
    return out;
  }

  static void replace_word(std::string& text, const std::string& word, const std::string& by) {
    if (word == by) return;
    const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      if ((at > 0 && is_letter(text[at - 1])) || (at + word.size() < text.size() && is_letter(text[at + word.size()]))) continue;
      text.replace(at, word.size(), by);
      return;
    }
  }

  bool extends_kept(const Symbol& symbol) {
    const ConfigDef* def = evaluator_.config_defs().config(symbol);
    for (const ConfigDef* base = def == nullptr ? nullptr : def->base; base != nullptr; base = base->base) {
      if (kept_.contains(base->symbol)) return true;
    }
    return false;
  }

  // --- Configs -----------------------------------------------------------------------------------------------------

  std::string config(const Symbol& symbol) {
    const auto& decl = ast::as<ast::ConfigDecl>(*symbol.decl);
    const ConfigDef& def = *evaluator_.config_defs().config(symbol);
    std::string out = "config " + name_of(symbol);
    if (decl.file) out += " file " + syntax::quote(decl.file->value);
    out += " {\n";
    const auto line = [&](const std::string& text) { out += "    " + text + "\n"; };
    std::set<std::string, std::less<>> own;
    for (const FieldDef& field : def.fields) own.insert(field.name);
    for (const LetDef& let : def.lets) own.insert(let.name);
    for (const FunctionDef& function : def.functions) own.insert(function.name);
    for (const FieldDef& field : def.fields)
      line(field.name + ": " + copy({field.file, nullptr, &own}, *field.item, Span{field.item->span.file, field.item->type->span.begin, field.item->span.end}));
    for (const LetDef& let : def.lets) line(copy({let.file, nullptr, &own}, *let.item));
    for (const FunctionDef& function : def.functions) line(copy({function.file, nullptr, &own}, *function.item));
    for (const RequireDef& require : def.requires_) line(copy({require.file, nullptr, &own}, *require.item));
    // Of rules for one key the most derived holds; a key that is bound needs none.
    std::map<std::string, int> level;
    for (const KeyRule& rule : def.key_rules) {
      const auto [at, fresh] = level.emplace(rule.pattern->text(), rule.level);
      if (!fresh) at->second = std::min(at->second, rule.level);
    }
    std::set<std::string> said;
    for (const KeyRule& rule : def.key_rules) {
      if (level[rule.pattern->text()] != rule.level || !said.insert(rule.pattern->text()).second) continue;
      line(std::string(rule.refuse ? "refuse " : "ignore ") + text(rule.pattern->span));
    }
    return out + "}";
  }

  // --- Modules -----------------------------------------------------------------------------------------------------

  std::string module(const Symbol& symbol) {
    const ModuleDef& def = *modules_.get(symbol);
    const auto& decl = ast::as<ast::ModuleDecl>(*symbol.decl);
    const Scope own{symbol.file, nullptr};
    std::string out = (decl.is_model ? "model " : "module ") + name_of(symbol) + "(";
    std::set<std::string, std::less<>> taken;
    for (std::size_t i = 0; i < decl.params.size(); ++i) {
      out += (i == 0 ? "" : ", ") + copy(own, *symbol.decl, decl.params[i].span);
      taken.insert(decl.params[i].name.text);
    }
    out += ") {\n";
    const auto line = [&](const std::string& text) { out += "    " + text + "\n"; };
    for (const MemberDef& member : def.members) taken.insert(member.name);
    const std::set<std::string, std::less<>> members = taken;

    // What each level's parameters are called here.
    std::vector<Renames> params(def.levels.size());
    for (const ast::Param& param : decl.params) params[0].emplace(param.name.text, param.name.text);
    for (std::size_t level = 1; level < def.levels.size(); ++level) {
      const ModuleDef::Level& above = def.levels[level - 1];
      const ModuleDef::Level& at = def.levels[level];
      const Scope outer{above.symbol->file, &params[level - 1]};
      std::size_t position = 0;
      for (const ast::Param& param : at.decl->params) {
        const ast::Expr* given = nullptr;
        if (above.decl->base_args) {
          std::size_t index = 0;
          for (const ast::Arg& arg : above.decl->base_args->items) {
            if (arg.name ? arg.name->text == param.name.text : index == position) given = arg.value.get();
            index += arg.name ? 0 : 1;
          }
        }
        ++position;
        const bool by_default = given == nullptr;
        if (by_default) given = param.default_value.get();
        if (given == nullptr) continue;                        // said of the definition
        const Scope scope = by_default ? Scope{at.symbol->file, &params[level]} : outer;
        const ast::Item& item = by_default ? *at.symbol->decl : *above.symbol->decl;
        const std::string type = text(param.type->span);
        const auto* name = ast::try_as<ast::NameExpr>(*given);
        const auto same = name == nullptr || by_default ? params[level - 1].end() : params[level - 1].find(name->name.text);
        if (name != nullptr && !by_default && same != params[level - 1].end() && type != "float") {
          params[level].emplace(param.name.text, same->second);
          continue;
        }
        std::string called = param.name.text;
        for (int n = 2; !taken.insert(called).second; ++n) called = param.name.text + "_" + std::to_string(n);
        params[level].emplace(param.name.text, called);
        const std::string value = copy(scope, item, given->parens ? widened(*given) : given->span);
        line("let " + called + " = " + (type == "float" ? "float(" + value + ")" : value));
      }
    }
    const auto scope_of = [&](std::size_t level) { return Scope{def.levels[level].symbol->file, &params[level], &members}; };
    if (def.context) line(copy(scope_of(def.context->level), *def.context->item));
    for (const auto& require : def.requires_) line(copy(scope_of(require.level), *require.item));
    for (const MemberDef& member : def.members) line(without_override(scope_of(member.level), *member.item, override_of(*member.item)));
    for (const CheckpointDef& checkpoint : def.checkpoints) line(block(checkpoint, scope_of));
    for (const auto& section : def.sections) line(copy(scope_of(section.level), *section.item));
    return out + "}";
  }

  // An expression with the parentheses around it.
  Span widened(const ast::Expr& expr) const {
    const std::string_view all = sources_.text(expr.span.file);
    Span span = expr.span;
    while (span.begin > 0 && all[span.begin] != '(') --span.begin;
    while (span.end < all.size() && all[span.end - 1] != ')') ++span.end;
    return span;
  }

  static std::optional<Span> override_of(const ast::Item& item) {
    switch (item.kind) {
      case ast::ItemKind::param: return ast::as<ast::ParamMember>(item).override_;
      case ast::ItemKind::constant: return ast::as<ast::ConstMember>(item).override_;
      case ast::ItemKind::state: return ast::as<ast::StateMember>(item).override_;
      case ast::ItemKind::child: return ast::as<ast::ChildMember>(item).override_;
      case ast::ItemKind::method: return ast::as<ast::MethodMember>(item).override_;
      default: return std::nullopt;
    }
  }

  // The blocks of one format joined: of rules for the same weights the most derived.
  template <class ScopeOf>
  std::string block(const CheckpointDef& def, ScopeOf scope_of) {
    std::string head = "checkpoint " + def.format, rules;
    for (const auto& one : def.blocks) {
      if (!one.item->architecture) continue;
      head += " " + syntax::quote(one.item->architecture->value);
      break;
    }
    std::set<std::string> taken;
    for (const auto& one : def.blocks) {
      std::set<std::string> own;
      for (const ast::RulePtr& rule : one.item->rules) {
        const std::string key = key_of(*rule);
        if (!key.empty() && taken.contains(key)) continue;
        own.insert(key);
        rules += "        " + copy(scope_of(one.level), *one.item, rule->span) + "\n";
      }
      taken.insert(own.begin(), own.end());
    }
    return head + " {\n" + rules + "    }";
  }

  std::string key_of(const ast::Rule& rule) const {
    switch (rule.kind) {
      case ast::RuleKind::map: return "map " + text(ast::as<ast::MapRule>(rule).model.span);
      case ast::RuleKind::via: return "via " + text(ast::as<ast::ViaRule>(rule).tensor.span);
      case ast::RuleKind::alias: return "alias " + text(ast::as<ast::AliasRule>(rule).alias.span);
      case ast::RuleKind::encode: return "encode " + text(ast::as<ast::EncodeRule>(rule).tensor.span);
      default: return "";
    }
  }

  source::SourceManager& sources_;
  const Imports& imports_;
  diag::Sink& sink_;
  graph::DimTable dims_;
  Evaluator evaluator_;
  ModuleDefs modules_;
  std::map<const Symbol*, std::string> texts_;
  std::vector<std::string> tests_;
  std::map<const Symbol*, std::string> names_;
  std::set<std::string, std::less<>> taken_;
  std::map<const Symbol*, const Symbol*> merged_into_;
  std::set<const Symbol*> kept_;
};

}  // namespace

std::optional<std::string> flatten(source::SourceManager& sources, const std::shared_ptr<Imports>& imports, diag::Sink& sink) {
  return Flattener(sources, *imports, sink).run();
}

}  // namespace modelc::sema

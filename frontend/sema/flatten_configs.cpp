// Configs in a flattened text: one that extends another has its items; which of them stay declarations for others to extend.
#include <algorithm>

#include "frontend/sema/flatten_parts.h"
#include "frontend/syntax/printer.h"

namespace modelc::sema {

using source::Span;

// The config that stands for one in the text: a base gives way to the one config that passes where it is asked for.
const Symbol& Flattener::standing(const Symbol& symbol) const {
  const auto merged = decisions_.merged_into.find(&symbol);
  return merged == decisions_.merged_into.end() ? symbol : *merged->second;
}

// The nearest base that stays a declaration.
const ConfigDef* Flattener::kept_base(const Symbol& symbol) {
  const ConfigDef* def = evaluator_.config_defs().config(symbol);
  for (const ConfigDef* base = def == nullptr ? nullptr : def->base; base != nullptr; base = base->base) {
    if (decisions_.kept.contains(base->symbol)) return base;
  }
  return nullptr;
}

// A config is asked for as a type. A file is bound to it where a model's parameter or another config's field asks.
void Flattener::note_config(const Symbol& config, const ast::Item& item, Span where) {
  wanted_.insert(&config);
  bool bound = item.kind == ast::ItemKind::config || item.kind == ast::ItemKind::variant || item.kind == ast::ItemKind::field;
  if (const auto* module = ast::try_as<ast::ModuleDecl>(item); module != nullptr && module->is_model) {
    bound = std::any_of(module->params.begin(), module->params.end(),
                        [&](const ast::Param& p) { return p.span.begin <= where.begin && where.end <= p.span.end; });
  }
  if (bound) bound_.insert(&config);
}

void Flattener::decide_configs(Decisions& next) {
  const auto those_of = [&](const std::set<const Symbol*>& configs, const Symbol& base) {
    std::vector<const Symbol*> out;
    for (const Symbol* c : configs) {
      const ConfigDef* def = evaluator_.config_defs().config(*c);
      if (def != nullptr && def->is_a(base)) out.push_back(c);
    }
    return out;
  };
  std::set<const Symbol*> configs;
  for (const auto& [symbol, made] : texts_)
    if (symbol->kind == SymbolKind::config) configs.insert(symbol);
  // A file without a model is a library: any of them may be bound by who imports it.
  const std::set<const Symbol*>& bound = has_model() ? bound_ : configs;
  for (const Symbol* asked : wanted_) {
    std::vector<const Symbol*> passing = those_of(bound, *asked);
    if (passing.empty()) passing = those_of(configs, *asked);
    if (passing.size() == 1 && passing[0] != asked) next.merged_into.emplace(asked, passing[0]);
    else if (passing.size() > 1) next.kept.insert(asked);
  }
}

std::string Flattener::config(const Symbol& symbol) {
  const auto& decl = ast::as<ast::ConfigDecl>(*symbol.decl);
  const ConfigDef& def = *evaluator_.config_defs().config(symbol);
  const ConfigDef* base = kept_base(symbol);
  std::string out = "config " + name_of(symbol);
  if (decl.file) out += " file " + syntax::quote(decl.file->value);
  if (base != nullptr) out += " extends " + use(*base->symbol);
  out += " {\n";
  Names own;
  for (const FieldDef& field : def.fields) own.insert(field.name);
  for (const LetDef& let : def.lets) own.insert(let.name);
  for (const FunctionDef& function : def.functions) own.insert(function.name);
  const auto line = [&](const std::string& text) { out += "    " + text + "\n"; };

  // Fields stand in order: those of the base that are there still, overridden or not, then those that are new.
  const std::size_t inherited = base == nullptr ? 0 : base->fields.size();
  std::vector<bool> gone(inherited, true), overridden(def.fields.size(), false), as_before(def.fields.size(), false);
  for (std::size_t i = 0, at = 0; i < def.fields.size(); ++i) {
    std::size_t same = at;
    while (same < inherited && base->fields[same].name != def.fields[i].name) ++same;
    if (same == inherited) break;                          // a new one, and so are all behind it: one that was removed and made anew too
    gone[same] = false;
    at = same + 1;
    (base->fields[same].item == def.fields[i].item ? as_before : overridden)[i] = true;
  }
  for (std::size_t i = 0; i < inherited; ++i)
    if (gone[i]) line("remove " + base->fields[i].name);
  // An item of the base, by its tree; what is left out of it is removed.
  const auto has = [](const auto& list, const auto& entry) {
    return std::any_of(list.begin(), list.end(), [&](const auto& other) { return other.item == entry.item; });
  };
  const auto inherits = [&](const auto& list, const auto& entry) { return base != nullptr && has(list(*base), entry); };
  const auto lets = [](const ConfigDef& d) -> const auto& { return d.lets; };
  const auto functions = [](const ConfigDef& d) -> const auto& { return d.functions; };
  const auto requires_of = [](const ConfigDef& d) -> const auto& { return d.requires_; };
  if (base != nullptr) {
    for (const LetDef& let : base->lets)
      if (!has(def.lets, let)) line("remove " + let.name);
    for (const FunctionDef& function : base->functions)
      if (!has(def.functions, function)) line("remove " + function.name);
  }

  for (std::size_t i = 0; i < def.fields.size(); ++i) {
    const FieldDef& field = def.fields[i];
    if (as_before[i]) continue;
    if (field.span == field.item->names.front().span) out += doc_lines(field.item->doc, "    ");
    const Span rest{field.item->span.file, field.item->type->span.begin, field.item->span.end};
    line((overridden[i] ? "override " : "") + field.name + ": " + copy({field.file, nullptr, &own, nullptr}, *field.item, rest));
  }
  const auto item = [&](const auto& list, const auto& entry) {
    if (inherits(list, entry)) return;
    out += doc_lines(entry.item->doc, "    ");
    line(copy({entry.file, nullptr, &own, nullptr}, *entry.item));
  };
  for (const LetDef& let : def.lets) item(lets, let);
  for (const FunctionDef& function : def.functions) item(functions, function);
  for (const RequireDef& require : def.requires_) item(requires_of, require);

  // Of rules for one key the most derived holds.
  std::map<std::string, int> level;
  for (const KeyRule& rule : def.key_rules) {
    const auto [at, fresh] = level.emplace(rule.pattern->text(), rule.level);
    if (!fresh) at->second = std::min(at->second, rule.level);
  }
  std::set<std::string> said;
  for (const KeyRule& rule : def.key_rules) {
    if (level[rule.pattern->text()] != rule.level || !said.insert(rule.pattern->text()).second) continue;
    const bool of_base = base != nullptr && std::any_of(base->key_rules.begin(), base->key_rules.end(),
                                                        [&](const KeyRule& r) { return r.pattern == rule.pattern; });
    if (!of_base) line(std::string(rule.refuse ? "refuse " : "ignore ") + text(rule.pattern->span));
  }
  return out + "}";
}

}  // namespace modelc::sema

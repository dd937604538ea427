// Modules in a flattened text: one that extends another has its members, and of its parameters those that they use.
#include <algorithm>

#include "frontend/sema/flatten_parts.h"
#include "frontend/sema/mentions.h"
#include "frontend/syntax/printer.h"

namespace modelc::sema {

using source::Span;

// A parameter of a base that becomes a `let`.
struct Flattener::Given {
  std::string name;
  const ast::Expr* value = nullptr;
  std::size_t level = 0;                         // whose text the value is: the base's own for a default
  bool widen = false;                            // an integer given for a float is one
};

namespace {

std::optional<Span> override_of(const ast::Item& item) {
  switch (item.kind) {
    case ast::ItemKind::param: return ast::as<ast::ParamMember>(item).override_;
    case ast::ItemKind::constant: return ast::as<ast::ConstMember>(item).override_;
    case ast::ItemKind::state: return ast::as<ast::StateMember>(item).override_;
    case ast::ItemKind::child: return ast::as<ast::ChildMember>(item).override_;
    case ast::ItemKind::method: return ast::as<ast::MethodMember>(item).override_;
    default: return std::nullopt;
  }
}

// The names that a declaration makes for itself, its parameters left out.
std::set<std::string, std::less<>> inner_names(const ast::ModuleDecl& decl) {
  std::set<std::string, std::less<>> out;
  for (const ast::ItemPtr& member : decl.members) local_names(*member, out);
  for (const ast::Param& param : decl.params) out.erase(param.name.text);
  return out;
}

std::string free_name(const std::string& wanted, const std::set<std::string, std::less<>>& taken) {
  std::string name = wanted;
  for (int n = 2; taken.contains(name); ++n) name = wanted + "_" + std::to_string(n);
  return name;
}

// `c`, `c.text.size`: the name that it begins with; null of anything else.
const ast::NameExpr* head_of_path(const ast::Expr& expr) {
  if (const auto* name = ast::try_as<ast::NameExpr>(expr)) return name;
  const auto* member = ast::try_as<ast::MemberExpr>(expr);
  return member == nullptr || expr.parens ? nullptr : head_of_path(*member->object);
}

// What a base gets for a parameter; null when nothing is given.
const ast::Expr* argument_for(const ast::ModuleDecl& derived, const ast::ModuleDecl& base, const ast::Param& param) {
  if (!derived.base_args) return nullptr;
  std::size_t position = 0, index = 0;
  while (position < base.params.size() && &base.params[position] != &param) ++position;
  for (const ast::Arg& arg : derived.base_args->items) {
    if (arg.name ? arg.name->text == param.name.text : index == position) return arg.value.get();
    index += arg.name ? 0 : 1;
  }
  return nullptr;
}

std::string key_of(const source::SourceManager& sources, const ast::Rule& rule) {
  const auto text = [&](Span span) { return std::string(sources.text(span)); };
  switch (rule.kind) {
    case ast::RuleKind::map: return "map " + text(ast::as<ast::MapRule>(rule).model.span);
    case ast::RuleKind::via: return "via " + text(ast::as<ast::ViaRule>(rule).tensor.span);
    case ast::RuleKind::alias: return "alias " + text(ast::as<ast::AliasRule>(rule).alias.span);
    case ast::RuleKind::encode: return "encode " + text(ast::as<ast::EncodeRule>(rule).tensor.span);
    default: return "";
  }
}

}  // namespace

// Parameters of a module whose names a text of its bases has for something else: they get other ones, here and where it is made.
const Flattener::Renames& Flattener::own_parameters(const Symbol& module) {
  const auto [at, fresh] = own_parameters_.try_emplace(&module);
  const ModuleDef* def = fresh && module.kind == SymbolKind::module ? modules_.get(module) : nullptr;
  if (def == nullptr) return at->second;
  Names taken;
  for (std::size_t level = 1; level < def->levels.size(); ++level) taken.merge(inner_names(*def->levels[level].decl));
  for (const ast::Param& param : def->levels[0].decl->params)
    if (std::string name = free_name(param.name.text, taken); name != param.name.text) at->second.emplace(param.name.text, std::move(name));
  return at->second;
}

// What the parameters of all levels are called: one name is one value in the whole module, so one table holds them. A base's is
// what it is given, where that is a parameter or something of one (`c`, `c.hidden_size`); else a `let` of its name holds the value.
std::vector<Flattener::Given> Flattener::base_parameters(const ModuleDef& def, Renames& called) {
  std::vector<Given> lets;
  called = own_parameters(*def.symbol);
  for (const ast::Param& param : def.levels[0].decl->params) called.emplace(param.name.text, param.name.text);
  Names inner;
  for (const ModuleDef::Level& level : def.levels) inner.merge(inner_names(*level.decl));
  for (std::size_t level = 1; level < def.levels.size(); ++level) {
    const ast::ModuleDecl& above = *def.levels[level - 1].decl;
    const ast::ModuleDecl& at = *def.levels[level].decl;
    for (const ast::Param& param : at.params) {
      if (called.contains(param.name.text)) continue;
      Given given{param.name.text, argument_for(above, at, param), level - 1};
      if (given.value == nullptr) given.value = param.default_value.get(), given.level = level;
      if (given.value == nullptr) continue;                    // said of the definition
      given.widen = text(param.type->span) == "float";
      const ast::NameExpr* head = given.widen ? nullptr : head_of_path(*given.value);
      const auto known = head == nullptr ? called.end() : called.find(head->name.text);
      if (known != called.end() && !inner.contains(known->second.substr(0, known->second.find('.')))) {
        const std::string rest = text({head->span.file, head->span.end, given.value->span.end});
        called.emplace(param.name.text, known->second + rest);
        continue;
      }
      called.emplace(param.name.text, free_name(param.name.text, inner));
      lets.push_back(std::move(given));
    }
  }
  return lets;
}

std::string Flattener::module(const Symbol& symbol) {
  const ModuleDef& def = *modules_.get(symbol);
  const auto& decl = ast::as<ast::ModuleDecl>(*symbol.decl);
  Renames called;
  Names used, own;
  const std::vector<Given> given = base_parameters(def, called);
  for (const ast::Param& param : decl.params) own.insert(param.name.text);
  for (const MemberDef& member : def.members) own.insert(member.name);
  // A text sees the parameters of its own level and of the bases below; another's name may be a local of it.
  std::vector<Renames> seen(def.levels.size());
  for (std::size_t level = def.levels.size(); level-- > 0;) {
    if (level + 1 < def.levels.size()) seen[level] = seen[level + 1];
    for (const ast::Param& param : def.levels[level].decl->params)
      if (const auto name = called.find(param.name.text); name != called.end()) seen[level].insert(*name);
  }
  std::vector<Scope> scopes;
  for (std::size_t level = 0; level < def.levels.size(); ++level)
    scopes.push_back({def.levels[level].symbol->file, &seen[level], &own, &used});

  std::string head = (decl.is_model ? "model " : "module ") + name_of(symbol) + "(", body;
  for (std::size_t i = 0; i < decl.params.size(); ++i) {
    const ast::Name& name = decl.params[i].name;
    const Scope scope{symbol.file, &seen[0], nullptr, &used};
    head += (i == 0 ? "" : ", ") + copy(scope, decl, decl.params[i].span, {{name.span, called.at(name.text)}});
  }
  head += ") {\n";
  const auto line = [&](const std::string& text) { body += "    " + text + "\n"; };
  if (def.context) line(copy(scopes[def.context->level], *def.context->item));
  for (const auto& require : def.requires_) line(copy(scopes[require.level], *require.item));
  for (const MemberDef& member : def.members) {
    const std::optional<Span> word = override_of(*member.item);
    body += doc_lines(member.item->doc, "    ");
    line(copy(scopes[member.level], *member.item, word ? std::optional(Span{word->file, word->end, member.item->span.end}) : std::nullopt));
  }
  for (const CheckpointDef& checkpoint : def.checkpoints) line(block(def, checkpoint, scopes));
  for (const auto& section : def.sections) line(copy(scopes[section.level], *section.item));

  // The lets of those parameters that a text uses, or a let below: from the outermost base inwards.
  std::vector<std::string> lets;
  for (std::size_t i = given.size(); i-- > 0;) {
    const Given& g = given[i];
    if (!used.contains(g.name)) continue;
    const Scope scope{def.levels[g.level].symbol->file, &seen[g.level], nullptr, &used};
    const std::string value = copy(scope, *def.levels[g.level].symbol->decl, g.value->parens ? widened(*g.value) : g.value->span);
    lets.push_back("    let " + called.at(g.name) + " = " + (g.widen ? "float(" + value + ")" : value) + "\n");
  }
  for (std::size_t i = lets.size(); i-- > 0;) head += lets[i];
  return head + body + "}";
}

// An expression with the parentheses around it.
Span Flattener::widened(const ast::Expr& expr) const {
  const std::string_view all = sources_.text(expr.span.file);
  Span span = expr.span;
  while (span.begin > 0 && all[span.begin] != '(') --span.begin;
  while (span.end < all.size() && all[span.end - 1] != ')') ++span.end;
  return span;
}

// ---- checkpoint blocks ----------------------------------------------------------------------------------------------

namespace {

// What the members of a level are called in a checkpoint, as far as their names go before a dot.
void first_components(const ast::Item& item, std::set<std::string, std::less<>>& into) {
  const auto* param = ast::try_as<ast::ParamMember>(item);
  const auto* child = ast::try_as<ast::ChildMember>(item);
  if (param == nullptr && child == nullptr) return;
  const auto& at = param != nullptr ? param->at : child->at;
  into.insert(at && !at->self ? at->path.text.substr(0, at->path.text.find('.')) : param != nullptr ? param->name.text : child->name.text);
}

}  // namespace

// The blocks of one format joined: of rules for the same weights the most derived.
std::string Flattener::block(const ModuleDef& def, const CheckpointDef& checkpoint, const std::vector<Scope>& scopes) {
  std::string head = "checkpoint " + checkpoint.format, rules;
  for (const auto& one : checkpoint.blocks) {
    if (!one.item->architecture) continue;
    head += " " + syntax::quote(one.item->architecture->value);
    break;
  }
  Names there;
  for (const MemberDef& member : def.members) first_components(*member.item, there);
  std::set<std::string> taken;
  for (const auto& one : checkpoint.blocks) {
    std::set<std::string> own;
    Names removed;                               // members of the bases at hand that a derived module has removed
    for (std::size_t level = one.level; one.level > 0 && level < def.levels.size(); ++level)
      for (const ast::ItemPtr& item : def.levels[level].decl->members) first_components(*item, removed);
    for (const std::string& name : there) removed.erase(name);
    Edits edits;
    rule_edits(scopes[one.level], *one.item, one.item->rules, edits, removed);
    for (const ast::RulePtr& rule : one.item->rules) {
      const std::string key = key_of(sources_, *rule);
      if (!key.empty() && taken.contains(key)) continue;
      own.insert(key);
      rules += "        " + copy(scopes[one.level], *one.item, rule->span, edits) + "\n";
    }
    taken.insert(own.begin(), own.end());
  }
  return head + " {\n" + rules + "    }";
}

namespace {

// Whether a rule of a base is void in a derived module: it names a member that this has removed.
bool is_void(const ast::Rule& rule, const std::set<std::string, std::less<>>& removed) {
  const auto gone = [&](const ast::Tensor& t) { return removed.contains(t.text.substr(0, t.text.find('.'))); };
  switch (rule.kind) {
    case ast::RuleKind::map: {
      const auto& model = ast::as<ast::MapRule>(rule).model;
      return std::any_of(model.items.begin(), model.items.end(), gone);
    }
    case ast::RuleKind::via: return gone(ast::as<ast::ViaRule>(rule).tensor);
    case ast::RuleKind::alias: return gone(ast::as<ast::AliasRule>(rule).alias) || gone(ast::as<ast::AliasRule>(rule).target);
    default: return false;
  }
}

}  // namespace

// A rule for a type of module holds for those that extend it too, which here extend nothing: it is said for each of them that
// has a text. One that is for no module of the text goes.
void Flattener::rule_edits(const Scope& scope, const ast::Item& item, const std::vector<ast::RulePtr>& rules, Edits& edits,
                           const Names& removed) {
  for (const ast::RulePtr& rule : rules) {
    if (is_void(*rule, removed)) edits.emplace_back(rule->span, "");
    if (const auto* set = ast::try_as<ast::OneOfRule>(*rule))
      for (const auto& alternative : set->alternatives) rule_edits(scope, item, alternative.rules, edits, removed);
    const auto* type = ast::try_as<ast::ForRule>(*rule);
    if (type == nullptr) continue;
    const SymbolLookup found = find_symbol(*scope.file, type->module.text);
    if (found.symbol == nullptr) continue;
    Edits inner;
    rule_edits(scope, item, type->rules, inner, {});
    const std::vector<const Symbol*> modules = present_of(*found.symbol);
    if (modules.size() == 1 && modules[0] == found.symbol) {
      edits.insert(edits.end(), inner.begin(), inner.end());
      continue;
    }
    std::string said;
    for (const Symbol* module : modules) {
      said += (said.empty() ? "for " : " for ") + name_of(*module) + " {";
      for (const ast::RulePtr& one : type->rules) said += " " + copy(scope, item, one->span, inner);
      said += " }";
    }
    edits.emplace_back(rule->span, said);
  }
}

// The modules with a text that are of a type, in the order of the text.
std::vector<const Symbol*> Flattener::present_of(const Symbol& type) {
  std::vector<const Symbol*> out;
  for (const FileSymbols* file : imports_.in_order()) {
    for (const ast::ItemPtr& decl : file->ast->decls) {
      const auto* module = ast::try_as<ast::ModuleDecl>(*decl);
      const Symbol* symbol = module == nullptr ? nullptr : file->own(module->name.text);
      if (symbol == nullptr || !decisions_.modules.contains(symbol)) continue;
      const ModuleDef* def = modules_.get(*symbol);
      const auto is_type = [&](const ModuleDef::Level& level) { return level.symbol == &type; };
      if (def != nullptr && std::any_of(def->levels.begin(), def->levels.end(), is_type)) out.push_back(symbol);
    }
  }
  return out;
}

}  // namespace modelc::sema

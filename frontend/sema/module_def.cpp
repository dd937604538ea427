#include "frontend/sema/module_def.h"

#include <algorithm>
#include <cassert>

#include "frontend/sema/walk.h"

namespace modelc::sema {

namespace code = diag::code;
using Names = std::set<std::string, std::less<>>;

std::string_view word(MemberKind kind) {
  switch (kind) {
    case MemberKind::let: return "let";
    case MemberKind::function: return "fn";
    case MemberKind::param: return "param";
    case MemberKind::constant: return "const";
    case MemberKind::state: return "state";
    case MemberKind::child: return "child";
    case MemberKind::method: return "forward or entry";
  }
  return "";
}

const MemberDef* ModuleDef::find(std::string_view member) const {
  const auto i = index_of(member);
  return i ? &members[*i] : nullptr;
}

std::optional<std::size_t> ModuleDef::index_of(std::string_view member) const {
  const auto it = by_name_.find(std::string(member));
  if (it == by_name_.end()) return std::nullopt;
  return it->second;
}

bool ModuleDef::has_method() const {
  return std::any_of(members.begin(), members.end(), [](const MemberDef& m) { return m.kind == MemberKind::method; });
}

const ast::Param* ModuleDef::parameter(std::string_view parameter, std::size_t* level) const {
  for (std::size_t i = 0; i < levels.size(); ++i) {
    for (const ast::Param& p : levels[i].decl->params) {
      if (p.name.text != parameter) continue;
      if (level != nullptr) *level = i;
      return &p;
    }
  }
  return nullptr;
}

// ---- names that a text uses -----------------------------------------------------------------------------------------

void mentioned_names(const ast::Expr& expr, Names& into) {
  if (const auto* name = ast::try_as<ast::NameExpr>(expr)) {
    into.insert(name->name.text);
    return;
  }
  each_child(expr, [&](const ast::Expr& child) { mentioned_names(child, into); });
}

void mentioned_names(const ast::Block& block, Names& into) {
  const auto visit = [&](const ast::Expr& expr) { mentioned_names(expr, into); };
  for (const ast::StatementPtr& statement : block.statements) {
    switch (statement->kind) {
      case ast::StatementKind::let: visit(*ast::as<ast::LetStatement>(*statement).value); break;
      case ast::StatementKind::for_:
        visit(*ast::as<ast::ForStatement>(*statement).source);
        mentioned_names(ast::as<ast::ForStatement>(*statement).body, into);
        break;
      case ast::StatementKind::return_:
        for (const auto& value : ast::as<ast::ReturnStatement>(*statement).values) visit(*value);
        break;
      case ast::StatementKind::assign: visit(*ast::as<ast::AssignStatement>(*statement).value); break;
      case ast::StatementKind::call:
        into.insert(ast::as<ast::CallStatement>(*statement).path.parts.front().text);
        each_expr(ast::as<ast::CallStatement>(*statement).args, visit);
        break;
    }
  }
}

void mentioned_names(const ast::Signature& signature, Names& into) {
  const auto visit = [&](const ast::Expr& expr) { mentioned_names(expr, into); };
  for (const ast::Param& param : signature.params) {
    each_expr(*param.type, visit);
    if (param.default_value) visit(*param.default_value);
  }
  if (!signature.result) return;
  for (const ast::ResultItem& item : *signature.result) each_expr(*item.type, visit);
}

// ---- definitions ----------------------------------------------------------------------------------------------------

const ModuleDef* ModuleDefs::get(const Symbol& symbol) {
  const auto it = defs_.find(&symbol);
  if (it != defs_.end()) return it->second.get();
  defs_[&symbol] = nullptr;
  return (defs_[&symbol] = make(symbol)).get();
}

std::unique_ptr<ModuleDef> ModuleDefs::make(const Symbol& symbol) {
  auto def = std::make_unique<ModuleDef>();
  def->symbol = &symbol;
  constexpr std::size_t max_levels = 64;
  for (const Symbol* at = &symbol;;) {
    const auto& decl = ast::as<ast::ModuleDecl>(*at->decl);
    def->levels.push_back({at, &decl});
    if (!decl.base) break;
    bool failed = false;
    const Symbol* base = resolve(*at->file, decl.base->text, decl.base->span, sink_, failed);
    if (failed) return nullptr;
    if (base == nullptr) {
      std::vector<std::string> names;
      symbol_names(*at->file, names);
      sink_.error(code::bad_base, decl.base->span, "there is no module `" + decl.base->text + "`")
          .help(diag::did_you_mean(decl.base->text, names));
      return nullptr;
    }
    if (base->kind != SymbolKind::module) {
      sink_.error(code::bad_base, decl.base->span, "`" + base->name + "` is a " + std::string(word(*base)) + ", not a module")
          .label(base->span, "`" + base->name + "` is declared here");
      return nullptr;
    }
    const bool cycle =
        std::any_of(def->levels.begin(), def->levels.end(), [&](const ModuleDef::Level& level) { return level.symbol == base; });
    if (cycle || def->levels.size() == max_levels) {
      sink_.error(code::bad_base, decl.base->span,
                  cycle ? "`" + symbol.name + "` extends itself, by way of `" + base->name + "`"
                        : "`" + symbol.name + "` has more than " + std::to_string(max_levels) + " bases, one above the other");
      return nullptr;
    }
    at = base;
  }
  for (std::size_t level = def->levels.size(); level-- > 0;) add_level(*def, level);
  finish(*def);
  return def;
}

void ModuleDefs::add_level(ModuleDef& def, std::size_t level) {
  const ModuleDef::Level& at = def.levels[level];
  for (std::size_t i = 0; i < at.decl->params.size(); ++i) {
    const ast::Name& name = at.decl->params[i].name;
    for (std::size_t j = 0; j < i; ++j) {
      if (at.decl->params[j].name.text != name.text) continue;
      sink_.error(code::duplicate_name, name.span, "the module `" + at.symbol->name + "` has two parameters `" + name.text + "`")
          .label(at.decl->params[j].name.span, "the first is here");
    }
  }
  std::vector<MemberDef> own;
  // What is removed goes first, wherever the word stands, so that a new member may take its name.
  for (const ast::ItemPtr& item : at.decl->members) {
    if (const auto* removal = ast::try_as<ast::RemoveItem>(item)) remove(def, *removal, level);
  }
  for (const ast::ItemPtr& item : at.decl->members) {
    const auto named = [&](MemberKind kind, const ast::Name& name, bool overrides) {
      add_member(def, own, MemberDef{kind, name.text, item.get(), level, name.span, false}, overrides);
    };
    switch (item->kind) {
      case ast::ItemKind::let: named(MemberKind::let, ast::as<ast::LetItem>(*item).name, false); break;
      case ast::ItemKind::function: named(MemberKind::function, ast::as<ast::FunctionDecl>(*item).name, false); break;
      case ast::ItemKind::param: {
        const auto& param = ast::as<ast::ParamMember>(*item);
        named(MemberKind::param, param.name, param.override_.has_value());
        break;
      }
      case ast::ItemKind::constant: {
        const auto& constant = ast::as<ast::ConstMember>(*item);
        named(MemberKind::constant, constant.name, constant.override_.has_value());
        break;
      }
      case ast::ItemKind::state: {
        const auto& state = ast::as<ast::StateMember>(*item);
        named(MemberKind::state, state.name, state.override_.has_value());
        break;
      }
      case ast::ItemKind::child: {
        const auto& child = ast::as<ast::ChildMember>(*item);
        named(MemberKind::child, child.name, child.override_.has_value());
        break;
      }
      case ast::ItemKind::method: {
        const auto& method = ast::as<ast::MethodMember>(*item);
        named(MemberKind::method, method.signature.name, method.override_.has_value());
        break;
      }
      case ast::ItemKind::require: def.requires_.push_back({&ast::as<ast::RequireItem>(*item), level}); break;
      case ast::ItemKind::context: {
        const auto& context = ast::as<ast::ContextMember>(*item);
        if (def.context && def.context->level == level) {
          sink_.error(code::duplicate_name, context.span, "`context` stands twice in `" + at.symbol->name + "`")
              .label(def.context->item->span, "the first is here");
        }
        def.context = {&context, level};
        break;
      }
      case ast::ItemKind::policy:
      case ast::ItemKind::shard:
      case ast::ItemKind::quantize:
      case ast::ItemKind::place: {
        const auto same = std::find_if(def.sections.begin(), def.sections.end(), [&](const auto& s) { return s.item->kind == item->kind; });
        if (same == def.sections.end()) {
          def.sections.push_back({item.get(), level});
        } else if (same->level == level) {
          sink_.error(code::duplicate_name, item->span, "a section of this kind stands twice in `" + at.symbol->name + "`")
              .label(same->item->span, "the first is here");
        } else {
          *same = {item.get(), level};
        }
        break;
      }
      case ast::ItemKind::checkpoint: {
        const auto& block = ast::as<ast::CheckpointMember>(*item);
        auto it = std::find_if(def.checkpoints.begin(), def.checkpoints.end(),
                               [&](const CheckpointDef& c) { return c.format == block.format.text; });
        if (block.override_ && it == def.checkpoints.end()) {
          sink_.error(code::override_mismatch, *block.override_, "there is no block `checkpoint " + block.format.text + "` to override")
              .help("leave out `override`");
        }
        if (it == def.checkpoints.end()) it = def.checkpoints.insert(it, CheckpointDef{block.format.text, {}});
        if (block.override_) {
          std::erase_if(it->blocks, [&](const auto& b) { return b.level != level; });
        }
        it->blocks.insert(it->blocks.begin(), {&block, level});
        break;
      }
      default: break;
    }
  }
  for (MemberDef& member : own) {
    check_name(def, member);
    def.by_name_[member.name] = def.members.size();
    def.members.push_back(std::move(member));
  }
}

// Puts an override in its place at once; a new member waits in `own`, so that a module's own words are judged together.
void ModuleDefs::add_member(ModuleDef& def, std::vector<MemberDef>& own, MemberDef member, bool overrides) {
  const auto twin = std::find_if(own.begin(), own.end(), [&](const MemberDef& m) { return m.name == member.name; });
  if (twin != own.end()) {
    sink_
        .error(code::duplicate_name, member.span,
               "`" + member.name + "` is declared twice in `" + def.levels[member.level].symbol->name + "`")
        .label(twin->span, "the first is here")
        .note("parameters, members and locals of a module share one name space");
    return;
  }
  const auto at = def.index_of(member.name);
  if (!overrides) {
    if (!at) {
      own.push_back(std::move(member));
      return;
    }
    const MemberDef& old = def.members[*at];
    if (old.level == member.level) {
      sink_.error(code::duplicate_name, member.span, "`" + member.name + "` is declared twice").label(old.span, "the first is here");
      return;
    }
    sink_
        .error(
            code::duplicate_name, member.span,
            "the base `" + def.levels[old.level].symbol->name + "` already has a " + std::string(word(old.kind)) + " `" + member.name + "`")
        .label(old.span, "declared here")
        .help(member.kind == MemberKind::let || member.kind == MemberKind::function
                  ? "choose another name, or `remove " + member.name + "` first"
                  : "write `override` before it to replace the base's");
    return;
  }
  const std::string& module = def.levels[member.level].symbol->name;
  if (def.levels.size() == member.level + 1) {
    sink_.error(code::override_mismatch, member.span, "`" + module + "` extends no module, so `" + member.name + "` overrides nothing")
        .help("leave out `override`");
    member.doubtful = true;
    own.push_back(std::move(member));
    return;
  }
  if (!at) {
    std::vector<std::string> names;
    for (const MemberDef& m : def.members) names.push_back(m.name);
    sink_
        .error(code::override_mismatch, member.span,
               "`" + member.name + "` overrides nothing: no base of `" + module + "` has a member of this name")
        .label(def.levels[member.level + 1].symbol->span, "the base is declared here")
        .help(diag::did_you_mean(member.name, names));
    member.doubtful = true;
    own.push_back(std::move(member));
    return;
  }
  MemberDef& old = def.members[*at];
  if (old.level == member.level) {
    sink_.error(code::duplicate_name, member.span, "`" + member.name + "` is overridden twice in `" + module + "`")
        .label(old.span, "the first is here");
    return;
  }
  if (old.kind != member.kind) {
    sink_
        .error(
            code::override_mismatch, member.span,
            "`" + member.name + "` is a " + std::string(word(member.kind)) + " here and a " + std::string(word(old.kind)) + " in the base")
        .label(old.span, "the base's is declared here")
        .help("`remove " + member.name + "`, then declare it anew without `override`");
    return;
  }
  old = std::move(member);
}

void ModuleDefs::remove(ModuleDef& def, const ast::RemoveItem& item, std::size_t level) {
  const std::string& module = def.levels[level].symbol->name;
  if (item.checkpoint) {
    const auto it =
        std::find_if(def.checkpoints.begin(), def.checkpoints.end(), [&](const CheckpointDef& c) { return c.format == item.name.text; });
    if (it == def.checkpoints.end()) {
      sink_.error(code::override_mismatch, item.name.span, "no base of `" + module + "` has a block `checkpoint " + item.name.text + "`");
      return;
    }
    def.checkpoints.erase(it);
    return;
  }
  const auto at = def.index_of(item.name.text);
  if (!at || def.members[*at].level == level) {
    std::vector<std::string> names;
    for (const MemberDef& m : def.members) names.push_back(m.name);
    sink_
        .error(code::override_mismatch, item.name.span,
               "there is nothing to remove: no base of `" + module + "` has a member `" + item.name.text + "`")
        .help(diag::did_you_mean(item.name.text, names));
    return;
  }
  def.members.erase(def.members.begin() + static_cast<std::ptrdiff_t>(*at));
  def.by_name_.clear();
  for (std::size_t i = 0; i < def.members.size(); ++i) def.by_name_[def.members[i].name] = i;
}

// A new member's name against the parameters of all levels so far, and against axes.
void ModuleDefs::check_name(const ModuleDef& def, const MemberDef& member) {
  for (std::size_t level = member.level; level < def.levels.size(); ++level) {
    for (const ast::Param& param : def.levels[level].decl->params) {
      if (param.name.text != member.name) continue;
      sink_
          .error(code::duplicate_name, member.span,
                 "`" + member.name + "` is a parameter of `" + def.levels[level].symbol->name + "` and cannot be a " +
                     std::string(word(member.kind)) + " too")
          .label(param.name.span, "the parameter is declared here")
          .note("parameters, members and locals of a module share one name space");
      return;
    }
  }
  const FileSymbols& file = *def.levels[member.level].symbol->file;
  if (!is_axis(file, member.name)) return;
  const Symbol* axis = find_symbol(file, member.name).symbol;
  auto builder = sink_.error(code::duplicate_name, member.span,
                             "`" + member.name + "` is a run-time axis and cannot be a " + std::string(word(member.kind)) + " too");
  if (axis != nullptr && axis->kind == SymbolKind::axis) builder.label(axis->span, "the axis is declared here");
}

void ModuleDefs::finish(ModuleDef& def) {
  // A derived module's parameter against members that its bases brought.
  for (std::size_t level = 0; level < def.levels.size(); ++level) {
    for (const ast::Param& param : def.levels[level].decl->params) {
      const MemberDef* member = def.find(param.name.text);
      if (member == nullptr || member->level <= level) continue;
      sink_
          .error(code::duplicate_name, param.name.span,
                 "the base `" + def.levels[member->level].symbol->name + "` has a " + std::string(word(member->kind)) + " `" +
                     member->name + "`: a parameter of this name would hide it")
          .label(member->span, "declared here");
    }
  }
  Names names;
  for (const MemberDef& member : def.members) {
    if (member.kind == MemberKind::method) {
      const auto& method = ast::as<ast::MethodMember>(*member.item);
      mentioned_names(method.signature, names);
      mentioned_names(method.body, names);
    } else if (member.kind == MemberKind::constant) {
      const auto& constant = ast::as<ast::ConstMember>(*member.item);
      each_expr(*constant.type, [&](const ast::Expr& expr) { mentioned_names(expr, names); });
      mentioned_names(*constant.value, names);
    }
  }
  // Through the module's fns, until nothing is added.
  std::vector<std::string> open(names.begin(), names.end());
  while (!open.empty()) {
    const MemberDef* member = def.find(open.back());
    open.pop_back();
    if (member == nullptr || member->kind != MemberKind::function) continue;
    const auto& function = ast::as<ast::FunctionDecl>(*member->item);
    Names inner;
    if (function.value) mentioned_names(*function.value, inner);
    if (function.block) mentioned_names(*function.block, inner);
    for (const std::string& name : inner) {
      if (names.insert(name).second) open.push_back(name);
    }
  }
  def.mentioned = std::move(names);
}

}  // namespace modelc::sema

#include "frontend/sema/shard.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "frontend/sema/walk.h"

namespace modelc::sema {

namespace code = diag::code;

namespace {

// The names that stand in the size of some weight, under whatever configuration: followed from the shapes of `param`s
// back through lets, fns, arguments and the defaults of configuration fields, by name. Where it cannot be told what is called,
// every argument counts, so that a name that is not here is in no size.
class SizeNames {
 public:
  explicit SizeNames(const Imports& imports) {
    for (const FileSymbols* file : imports.in_order())
      for (const auto& [name, symbol] : file->declared) declarations_.push_back(&symbol);
    for (bool grew = true; grew;) {
      grew_ = false;
      for (const Symbol* symbol : declarations_) declaration(*symbol);
      grew = grew_;
    }
  }

  bool field(const std::string& name) const { return fields_.contains(name); }
  bool local(const Symbol& owner, const std::string& name) const { return locals_.contains({&owner, name}); }
  const std::set<std::string>& fields() const { return fields_; }

 private:
  void add_field(const std::string& name) { grew_ = fields_.insert(name).second || grew_; }
  void add_local(const Symbol* owner, const std::string& name) { grew_ = locals_.insert({owner, name}).second || grew_; }

  // What this expression is made of is a size.
  void flow(const Symbol& owner, const ast::Expr& e) {
    if (const auto* name = ast::try_as<ast::NameExpr>(e)) {
      if (owner.kind == SymbolKind::config || owner.kind == SymbolKind::variant) add_field(name->name.text);
      else add_local(&owner, name->name.text);
      if (const Symbol* global = find_symbol(*owner.file, name->name.text).symbol)
        if (global->kind == SymbolKind::function) add_local(global, global->name);
      return;
    }
    if (const auto* member = ast::try_as<ast::MemberExpr>(e)) add_field(member->name.text);
    each_child(e, [&](const ast::Expr& child) { flow(owner, child); });
  }
  void flow(const Symbol& owner, const ast::Block& block) {
    for (const auto& s : block.statements) {
      if (const auto* let = ast::try_as<ast::LetStatement>(*s)) flow(owner, *let->value);
      if (const auto* result = ast::try_as<ast::ReturnStatement>(*s))
        for (const auto& v : result->values) flow(owner, *v);
    }
  }
  void function(const Symbol& owner, const ast::FunctionDecl& f) {
    if (f.value) flow(owner, *f.value);
    if (f.block) flow(owner, *f.block);
  }

  // A call hands on to the parameters of a module what its arguments are made of.
  void arguments(const Symbol& owner, const Symbol* callee, const ast::Args& args) {
    const auto* module = callee != nullptr && callee->kind == SymbolKind::module ? &ast::as<ast::ModuleDecl>(*callee->decl) : nullptr;
    for (std::size_t i = 0; i < args.items.size(); ++i) {
      const ast::Arg& arg = args.items[i];
      const std::string name = arg.name                                         ? arg.name->text
                               : module != nullptr && i < module->params.size() ? module->params[i].name.text
                                                                                : "";
      if (module == nullptr || local(*callee, name)) flow(owner, *arg.value);
    }
  }
  void calls(const Symbol& owner, const ast::Expr& e) {
    if (const auto* call = ast::try_as<ast::CallExpr>(e)) {
      const Symbol* callee = nullptr;
      bool known = false;                        // a function, which gives a size only where its own value is one
      if (const auto* name = ast::try_as<ast::NameExpr>(*call->callee)) {
        callee = find_symbol(*owner.file, name->name.text).symbol;
        known = find_builtin(name->name.text) != nullptr;
      } else if (const auto* member = ast::try_as<ast::MemberExpr>(*call->callee)) {
        if (const auto* alias = ast::try_as<ast::NameExpr>(*member->object))
          if (const FileSymbols* file = find_symbol(*owner.file, alias->name.text).alias) callee = file->own(member->name.text);
      }
      if (!known || callee != nullptr) arguments(owner, callee, call->args);
    }
    each_child(e, [&](const ast::Expr& child) { calls(owner, child); });
  }
  void calls(const Symbol& owner, const ast::ExprPtr& e) {
    if (e) calls(owner, *e);
  }
  void calls(const Symbol& owner, const ast::Block& block) {
    for (const auto& s : block.statements) {
      if (const auto* let = ast::try_as<ast::LetStatement>(*s)) calls(owner, let->value);
      if (const auto* result = ast::try_as<ast::ReturnStatement>(*s))
        for (const auto& v : result->values) calls(owner, v);
    }
  }

  void declaration(const Symbol& symbol) {
    switch (symbol.kind) {
      case SymbolKind::module: module(symbol, ast::as<ast::ModuleDecl>(*symbol.decl)); break;
      case SymbolKind::function: {
        const auto& f = ast::as<ast::FunctionDecl>(*symbol.decl);
        if (local(symbol, symbol.name)) function(symbol, f);
        calls(symbol, f.value);
        if (f.block) calls(symbol, *f.block);
        break;
      }
      case SymbolKind::config: items(symbol, ast::as<ast::ConfigDecl>(*symbol.decl).items); break;
      case SymbolKind::variant:
        for (const auto& one : ast::as<ast::VariantDecl>(*symbol.decl).cases) items(symbol, one.items);
        break;
      default: break;
    }
  }

  void items(const Symbol& config, const std::vector<ast::ItemPtr>& list) {
    for (const auto& item : list) {
      if (const auto* f = ast::try_as<ast::FieldItem>(item)) {
        const bool size = std::any_of(f->names.begin(), f->names.end(), [&](const ast::Name& n) { return field(n.text); });
        if (size && f->default_value) flow(config, *f->default_value);
      } else if (const auto* let = ast::try_as<ast::LetItem>(item)) {
        if (field(let->name.text)) flow(config, *let->value);
      } else if (const auto* fn = ast::try_as<ast::FunctionDecl>(item)) {
        if (field(fn->name.text)) function(config, *fn);
      }
    }
  }

  void module(const Symbol& symbol, const ast::ModuleDecl& decl) {
    for (const ast::Param& param : decl.params) {
      calls(symbol, param.default_value);
      if (param.default_value && local(symbol, param.name.text)) flow(symbol, *param.default_value);
    }
    if (decl.base) {
      const Symbol* base = find_symbol(*symbol.file, decl.base->text).symbol;
      if (decl.base_args) arguments(symbol, base, *decl.base_args);
    }
    for (const auto& item : decl.members) {
      if (const auto* param = ast::try_as<ast::ParamMember>(item)) {
        each_expr(*param->type, [&](const ast::Expr& e) { flow(symbol, e); });
      } else if (const auto* let = ast::try_as<ast::LetItem>(item)) {
        if (local(symbol, let->name.text)) flow(symbol, *let->value);
        calls(symbol, let->value);
      } else if (const auto* fn = ast::try_as<ast::FunctionDecl>(item)) {
        if (local(symbol, fn->name.text)) function(symbol, *fn);
        calls(symbol, fn->value);
        if (fn->block) calls(symbol, *fn->block);
      } else if (const auto* child = ast::try_as<ast::ChildMember>(item)) {
        calls(symbol, child->value);
      }
    }
  }

  std::vector<const Symbol*> declarations_;
  std::set<std::string> fields_;                                       // of configurations, by name alone
  std::set<std::pair<const Symbol*, std::string>> locals_;             // parameters, lets and fns of a declaration
  bool grew_ = false;
};

bool is_factor(const Formula& f, const Formula& wanted) {
  return f.kind == Formula::Kind::named && f.text == wanted.text && f.value == wanted.value && f.origin == wanted.origin;
}

// Whether a size grows with the factor: not below a division, unless what is left is still a multiple of it.
bool has_factor(const FormulaPtr& formula, const Formula& wanted, std::int64_t factor) {
  if (!formula) return false;
  const Formula& f = *formula;
  if (is_factor(f, wanted)) return true;
  const auto any = [&] {
    return std::any_of(f.operands.begin(), f.operands.end(), [&](const FormulaPtr& o) { return has_factor(o, wanted, factor); });
  };
  switch (f.kind) {
    case Formula::Kind::constant: return false;
    case Formula::Kind::named:
    case Formula::Kind::unary: return any();
    case Formula::Kind::binary:
      if (f.text == "*" || f.text == "+" || f.text == "-") return any();
      break;
    case Formula::Kind::call: break;
  }
  if (f.operands.empty() || !has_factor(f.operands[0], wanted, factor)) return false;
  std::int64_t value = 0;
  for (const char c : f.value) {
    if (c < '0' || c > '9' || value > (INT64_MAX - 9) / 10) return false;
    value = value * 10 + (c - '0');
  }
  return value % factor == 0;
}

}  // namespace

void check_shard(Instances& instances, ClassInfo& root, std::size_t level, const ast::ShardSection& section, const Imports& imports,
                 std::vector<std::string>& notes, const std::function<void(const std::string& line, std::size_t axes)>& say) {
  const Environment env = root.instance->environment(level);
  std::optional<SizeNames> sizes;
  for (const auto& entry : section.entries) {
    for (const ast::Path& path : entry.factors) {
      Value value = instances.evaluator().lookup(path.parts.front(), env);
      for (std::size_t i = 1; i < path.parts.size() && !value.is_error(); ++i)
        value = instances.evaluator().field(value, path.parts[i], path.parts[i - 1].span);
      if (value.is_error() || value.is_none()) continue;
      if (!value.is(ValueKind::integer)) {
        instances.sink().error(code::section_target_unknown, path.span,
                               "an axis is split by one of its factors, a whole number: `" + path.text() + "` is " + kind_name(value));
        continue;
      }
      if (!sizes) sizes.emplace(imports);
      const std::string& name = path.parts.back().text;
      bool possible = path.parts.size() > 1 && sizes->field(name);
      if (path.parts.size() == 1)
        for (const ModuleDef::Level& l : root.instance->def.levels) possible = possible || sizes->local(*l.symbol, name);
      if (!possible) {
        std::vector<std::string> known(sizes->fields().begin(), sizes->fields().end());
        const std::string near = diag::did_you_mean(name, known);
        instances.sink()
            .error(code::section_target_unknown, path.span,
                   "`" + path.text() + "` is in no size of a weight, so no axis can be split by it")
            .help(near.empty() ? "name a value that the shape of some `param` is made of" : near);
        continue;
      }
      const std::int64_t factor = value.as_int();
      std::size_t found = 0;
      // By the axis as told, so that an axis of many instances is told once and always in the same order.
      std::map<std::string, std::pair<const Instance*, const AxisPattern*>> uneven;
      instances.each_instance([&](const Instance& instance) {
        for (std::size_t i = 0; i < instance.slots.size(); ++i) {
          const Slot& slot = instance.slots[i];
          if (instance.def.members[i].kind != MemberKind::param || slot.state != Slot::State::done || slot.failed || !slot.present)
            continue;
          for (const AxisPattern& axis : slot.type.axes) {
            if (!value.formula() || factor < 1 || !has_factor(axis.formula, *value.formula(), factor)) continue;
            ++found;
            const auto size = instances.module().dims.value(axis.dim);
            if (size && *size % factor != 0)
              uneven.emplace("`" + instance.def.members[i].name + "` of " + instance.title() + ": " + formula_text(axis.formula) + " = " +
                                 formula_values(axis.formula) + " = " + std::to_string(*size),
                             std::pair(&instance, &axis));
          }
        }
      });
      for (const auto& [text, where] : uneven) {
        auto message = instances.sink().error(code::uneven_shard, path.span,
                                              "an axis with the factor `" + path.text() + "` is no multiple of it: " +
                                                  std::to_string(instances.module().dims.value(where.second->dim).value_or(0)) + " by " +
                                                  std::to_string(factor));
        message.label(where.second->span, "the axis that would be split");
        message.note("found " + text);
        for (const std::string& origin : formula_origins(where.second->formula)) message.note(origin);
        for (const std::string& origin : formula_origins(value.formula())) message.note(origin);
        message.help("split by another factor, or pad the size to a multiple of " + std::to_string(factor));
      }
      say(path.text() + " over " + entry.over.text, found);
      if (found == 0)
        notes.push_back(instances.sources().place(path.span) + ": `shard`: no weight of this configuration has an axis with the factor `" +
                        path.text() + "`");
    }
  }
}

}  // namespace modelc::sema

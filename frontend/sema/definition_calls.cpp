#include "frontend/sema/definition_calls.h"

#include <algorithm>
#include <vector>

#include "frontend/graph/ops.h"
#include "frontend/sema/config.h"
#include "frontend/sema/expressions.h"
#include "frontend/sema/walk.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace code = diag::code;

namespace {

using Specs = std::vector<Expressions::ParamSpec>;

// Numbers and names of arguments alone; their values are of no account.
void arrange(Evaluator& evaluator, const Specs& specs, const ast::Args& args, const std::string& owner, source::Span span) {
  std::vector<Argument> given;
  for (const ast::Arg& arg : args.items) {
    Argument a;
    if (arg.name) {
      a.name = arg.name->text;
      a.name_span = arg.name->span;
    }
    a.span = arg.value->span;
    given.push_back(std::move(a));
  }
  std::vector<const Argument*> arranged;
  Expressions(evaluator).arrange(specs, given, owner, span, arranged);
}

Specs specs_of(const std::vector<ast::Param>& params) {
  Specs specs;
  for (const ast::Param& param : params) specs.push_back({param.name.text, param.default_value == nullptr, param.name.span});
  return specs;
}

}  // namespace

// ---- the walk -------------------------------------------------------------------------------------------------------

void DefinitionCalls::check(const ast::Block& block) {
  for (const ast::StatementPtr& statement : block.statements) {
    switch (statement->kind) {
      case ast::StatementKind::let: {
        const auto& let = ast::as<ast::LetStatement>(*statement);
        check(*let.value);
        for (const ast::Name& name : let.names) local(name.text);
        break;
      }
      case ast::StatementKind::for_: {
        const auto& loop = ast::as<ast::ForStatement>(*statement);
        check(*loop.source);
        local(loop.variable.text);
        check(loop.body);
        break;
      }
      case ast::StatementKind::return_:
        for (const auto& value : ast::as<ast::ReturnStatement>(*statement).values) check(*value);
        break;
      case ast::StatementKind::assign: check(*ast::as<ast::AssignStatement>(*statement).value); break;
      case ast::StatementKind::call: each_expr(ast::as<ast::CallStatement>(*statement).args, [&](const ast::Expr& e) { check(e); }); break;
    }
  }
}

void DefinitionCalls::check(const ast::Expr& e) {
  if (const auto* call = ast::try_as<ast::CallExpr>(e)) {
    if (const auto* name = ast::try_as<ast::NameExpr>(*call->callee)) {
      of_name(name->name, *call);
    } else if (const auto* member = ast::try_as<ast::MemberExpr>(*call->callee)) {
      if (of_member(*member, *call)) {
        each_expr(call->args, [&](const ast::Expr& arg) { check(arg); });
        return;
      }
    }
  } else if (const auto* member = ast::try_as<ast::MemberExpr>(e)) {
    of_field(*member);
  } else if (const auto* fn = ast::try_as<ast::FunctionExpr>(e)) {
    for (const ast::Name& param : fn->params) local(param.text);
  } else if (const auto* comprehension = ast::try_as<ast::ComprehensionExpr>(e)) {
    local(comprehension->variable.text);
  } else if (const auto* match = ast::try_as<ast::MatchExpr>(e)) {
    for (const ast::Arm& arm : match->arms) {
      if (arm.binding) local(arm.binding->text);
    }
  }
  each_child(e, [&](const ast::Expr& child) { check(child); });
}

// ---- what is called -------------------------------------------------------------------------------------------------

bool DefinitionCalls::is_own(const std::string& name) const {
  return locals_.contains(name) || (def_ != nullptr && def_->parameter(name) != nullptr);
}

// The module of a child whose text says it outright: `q_proj: Linear(…)`.
const ModuleDef* DefinitionCalls::child_module(const std::string& name) {
  if (def_ == nullptr || is_own(name)) return nullptr;
  const MemberDef* member = def_->find(name);
  if (member == nullptr || member->kind != MemberKind::child) return nullptr;
  const auto* recipe = ast::try_as<ast::CallExpr>(*ast::as<ast::ChildMember>(*member->item).value);
  const auto* module = recipe != nullptr ? ast::try_as<ast::NameExpr>(*recipe->callee) : nullptr;
  if (module == nullptr || def_->find(module->name.text) != nullptr || def_->parameter(module->name.text) != nullptr) { return nullptr; }
  const Symbol* symbol = find_symbol(*def_->levels[member->level].symbol->file, module->name.text).symbol;
  // What a module that contains itself calls is judged where it is made, which says that it does.
  const bool other = symbol != nullptr && symbol->kind == SymbolKind::module && symbol != def_->symbol;
  return other ? defs_.get(*symbol) : nullptr;
}

void DefinitionCalls::of_name(const ast::Name& name, const ast::CallExpr& call) {
  if (is_own(name.text)) return;
  if (const MemberDef* member = def_ != nullptr ? def_->find(name.text) : nullptr) {
    if (member->kind == MemberKind::function) {
      of_function(ast::as<ast::FunctionDecl>(*member->item), call);
    } else if (member->kind == MemberKind::method) {
      of_method(*member, "`" + name.text + "`", call);
    } else if (const ModuleDef* child = child_module(name.text)) {
      const MemberDef* forward = child->find("forward");
      if (forward != nullptr && forward->kind == MemberKind::method) of_method(*forward, "`" + name.text + "`", call);
    }
    return;
  }
  if (const Symbol* symbol = find_symbol(file_, name.text).symbol) {
    if (symbol->kind == SymbolKind::module) check(*symbol, call.args, call.span);
    if (symbol->kind == SymbolKind::function) of_function(ast::as<ast::FunctionDecl>(*symbol->decl), call);
    return;
  }
  // Operations that have one form, that of the table.
  const Builtin* builtin = find_builtin(name.text);
  if (builtin == nullptr || !builtin->on_tensors || builtin->is_static) return;
  const graph::OpInfo* row = graph::find_op(name.text);
  if (row == nullptr || !graph::carried_out(*row) || row->has_state || row->variadic) return;
  const auto own_form = {graph::OpKind::expand, graph::OpKind::route, graph::OpKind::moe};
  if (std::find(own_form.begin(), own_form.end(), row->kind) != own_form.end()) return;
  Specs specs;
  for (const graph::OperandSpec& o : row->operands) specs.push_back({o.name, !o.optional});
  for (const graph::AttrSpec& a : row->attrs) specs.push_back({a.name, !a.optional});
  arrange(ev_, specs, call.args, "the operation `" + name.text + "`", call.span);
}

// `child.entry(…)`; false where nothing is known of the child or of the name.
bool DefinitionCalls::of_member(const ast::MemberExpr& member, const ast::CallExpr& call) {
  const auto* object = ast::try_as<ast::NameExpr>(*member.object);
  const ModuleDef* child = object != nullptr ? child_module(object->name.text) : nullptr;
  const MemberDef* found = child != nullptr ? child->find(member.name.text) : nullptr;
  if (found == nullptr) return false;
  if (found->kind == MemberKind::method) { of_method(*found, "`" + object->name.text + "`'s `" + member.name.text + "`", call); }
  return true;
}

// A field of a parameter that is declared as a config.
bool DefinitionCalls::of_config(const ast::MemberExpr& member, const std::string& object) {
  std::size_t level = 0;
  const ast::Param* param = def_ != nullptr && !locals_.contains(object) ? def_->parameter(object, &level) : nullptr;
  const auto* type = param != nullptr ? ast::try_as<ast::NamedType>(param->type) : nullptr;
  if (type == nullptr || type->optional || type->path.parts.size() != 1) return false;
  const Symbol* symbol = find_symbol(*def_->levels[level].symbol->file, type->path.parts.front().text).symbol;
  if (symbol == nullptr || symbol->kind != SymbolKind::config) return false;
  const ConfigDef* config = ev_.config_defs().config(*symbol);
  if (config == nullptr) return true;
  std::vector<std::string> names;
  for (const FieldDef& f : config->fields) names.push_back(f.name);
  for (const LetDef& l : config->lets) names.push_back(l.name);
  for (const FunctionDef& f : config->functions) names.push_back(f.name);
  if (std::find(names.begin(), names.end(), member.name.text) != names.end()) return true;
  const std::string near = diag::did_you_mean(member.name.text, names);
  auto message = ev_.sink().error(code::unknown_field, member.name.span, config->name + " has no field `" + member.name.text + "`");
  message.label(config->span, "declared here").help(near);
  if (near.empty() && !names.empty()) message.note("it has " + listed(names, 12));
  return true;
}

void DefinitionCalls::of_field(const ast::MemberExpr& member) {
  const auto* object = ast::try_as<ast::NameExpr>(*member.object);
  if (object != nullptr && of_config(member, object->name.text)) return;
  const ModuleDef* child = object != nullptr ? child_module(object->name.text) : nullptr;
  if (child == nullptr || child->find(member.name.text) != nullptr) return;
  std::vector<std::string> names;
  for (const MemberDef& m : child->members) names.push_back(m.name);
  ev_.sink()
      .error(code::unknown_field, member.name.span,
             "the module `" + child->name() + "` of `" + object->name.text + "` has no member `" + member.name.text + "`")
      .label(child->symbol->span, "declared here")
      .help(diag::did_you_mean(member.name.text, names));
}

void DefinitionCalls::check(const Symbol& module, const ast::Args& args, source::Span span) {
  arrange(ev_, specs_of(ast::as<ast::ModuleDecl>(*module.decl).params), args, "the " + std::string(word(module)) + " `" + module.name + "`",
          span);
}

void DefinitionCalls::of_function(const ast::FunctionDecl& fn, const ast::CallExpr& call) {
  Specs specs;
  for (const ast::Name& param : fn.params) specs.push_back({param.text, true, param.span});
  arrange(ev_, specs, call.args, "the fn `" + fn.name.text + "`", call.span);
}

void DefinitionCalls::of_method(const MemberDef& method, const std::string& owner, const ast::CallExpr& call) {
  arrange(ev_, specs_of(ast::as<ast::MethodMember>(*method.item).signature.params), call.args, owner, call.span);
}

}  // namespace modelc::sema

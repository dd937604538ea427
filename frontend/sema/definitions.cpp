#include "frontend/sema/definitions.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "frontend/sema/config.h"
#include "frontend/sema/definition_calls.h"
#include "frontend/sema/expressions.h"
#include "frontend/sema/walk.h"

namespace modelc::sema {

namespace code = diag::code;

namespace {

using Names = std::set<std::string, std::less<>>;

// ---- walks ----------------------------------------------------------------------------------------------------------

// Every expression of a block, with nested blocks.
void each_expr(const ast::Block& block, const ExprVisitor& visit) {
  for (const ast::StatementPtr& statement : block.statements) {
    switch (statement->kind) {
      case ast::StatementKind::let: visit(*ast::as<ast::LetStatement>(*statement).value); break;
      case ast::StatementKind::for_:
        visit(*ast::as<ast::ForStatement>(*statement).source);
        each_expr(ast::as<ast::ForStatement>(*statement).body, visit);
        break;
      case ast::StatementKind::return_:
        for (const auto& value : ast::as<ast::ReturnStatement>(*statement).values) visit(*value);
        break;
      case ast::StatementKind::assign: visit(*ast::as<ast::AssignStatement>(*statement).value); break;
      case ast::StatementKind::call: sema::each_expr(ast::as<ast::CallStatement>(*statement).args, visit); break;
    }
  }
}

void visit_if(const ast::ExprPtr& expr, const ExprVisitor& visit) {
  if (expr) visit(*expr);
}

// The expressions of a member of a module; those of types included.
void each_expr(const ast::Item& item, const ExprVisitor& visit) {
  switch (item.kind) {
    case ast::ItemKind::let: visit(*ast::as<ast::LetItem>(item).value); break;
    case ast::ItemKind::function: {
      const auto& fn = ast::as<ast::FunctionDecl>(item);
      visit_if(fn.value, visit);
      if (fn.block) each_expr(*fn.block, visit);
      break;
    }
    case ast::ItemKind::require: visit(*ast::as<ast::RequireItem>(item).condition); break;
    case ast::ItemKind::context: visit(*ast::as<ast::ContextMember>(item).value); break;
    case ast::ItemKind::param: {
      const auto& param = ast::as<ast::ParamMember>(item);
      sema::each_expr(*param.type, visit);
      visit_if(param.default_value, visit);
      visit_if(param.condition, visit);
      break;
    }
    case ast::ItemKind::constant: {
      const auto& constant = ast::as<ast::ConstMember>(item);
      sema::each_expr(*constant.type, visit);
      visit(*constant.value);
      break;
    }
    case ast::ItemKind::state: {
      const auto& state = ast::as<ast::StateMember>(item);
      visit(*state.value);
      visit_if(state.condition, visit);
      break;
    }
    case ast::ItemKind::child: {
      const auto& child = ast::as<ast::ChildMember>(item);
      visit(*child.value);
      visit_if(child.condition, visit);
      break;
    }
    case ast::ItemKind::method: {
      const auto& method = ast::as<ast::MethodMember>(item);
      for (const ast::Param& param : method.signature.params) {
        sema::each_expr(*param.type, visit);
        visit_if(param.default_value, visit);
      }
      if (method.signature.result) {
        for (const ast::ResultItem& result : *method.signature.result) sema::each_expr(*result.type, visit);
      }
      each_expr(method.body, visit);
      break;
    }
    default: break;
  }
}

// Names behind a dot, in all expressions below.
void selected_names(const ast::Expr& expr, Names& into) {
  if (const auto* member = ast::try_as<ast::MemberExpr>(expr)) into.insert(member->name.text);
  each_child(expr, [&](const ast::Expr& child) { selected_names(child, into); });
}

void selected_names(const ast::Block& block, Names& into) {
  each_expr(block, [&](const ast::Expr& expr) { selected_names(expr, into); });
  for (const ast::StatementPtr& statement : block.statements) {
    if (const auto* call = ast::try_as<ast::CallStatement>(*statement)) {
      for (std::size_t i = 1; i < call->path.parts.size(); ++i) into.insert(call->path.parts[i].text);
    } else if (const auto* loop = ast::try_as<ast::ForStatement>(*statement)) {
      selected_names(loop->body, into);
    }
  }
}

// ---- one module -----------------------------------------------------------------------------------------------------

class DefinitionChecker {
 public:
  // `selected`: names behind dots, anywhere; `derived`: names that modules with a base mention. `def`: the module that is
  // looked at; null for other declarations.
  DefinitionChecker(Evaluator& evaluator, ModuleDefs& defs, const Names& selected, const Names& derived, const FileSymbols& file,
                    const ModuleDef* def = nullptr)
      : ev_(evaluator),
        ex_(evaluator),
        defs_(defs),
        selected_(selected),
        derived_(derived),
        calls_(evaluator, defs, file, def),
        def_(def) {}

  void check_module() {
    const ModuleDef& def = *def_;
    const ast::ModuleDecl& decl = *def.levels[0].decl;
    const FileSymbols& file = *def.symbol->file;
    Environment parameters(&file);
    for (const ast::Param& param : decl.params) {
      ev_.check_names(*param.type, parameters);
      if (param.default_value) expr(*param.default_value, parameters);
      parameters.define(param.name.text, Value::error(), param.name.span);
    }
    if (decl.base_args) {
      sema::each_expr(*decl.base_args, [&](const ast::Expr& e) { expr(e, parameters); });
      calls_.check(*def.levels[1].symbol, *decl.base_args, decl.base_args->span);
    }
    env_ = Environment(&file);
    for (std::size_t level = def.levels.size(); level-- > 0;) {
      for (const ast::Param& param : def.levels[level].decl->params) env_.define(param.name.text, Value::error(), param.name.span);
    }
    for (const MemberDef& member : def.members) env_.define(member.name, Value::error(), member.span);
    for (const ast::ItemPtr& item : decl.members) member(*item, decl.is_model);
    unused();
  }

  void check(const ast::FunctionDecl& fn, Environment env) { function(fn, std::move(env)); }

  void check(const ast::InterfaceDecl& decl, Environment env) {
    for (const ast::Param& param : decl.params) {
      ev_.check_names(*param.type, env);
      if (param.default_value) ev_.check_names(*param.default_value, env);
      env.define(param.name.text, Value::error(), param.name.span);
    }
    for (const ast::Signature& s : decl.signatures) signature(s, env);
  }

  // The names that an encoding's shape binds are known in its parts and in its value.
  void check(const ast::EncodingDecl& decl, Environment env) {
    for (const ast::Param& param : decl.params) {
      ev_.check_names(*param.type, env);
      env.define(param.name.text, Value::error(), param.name.span);
    }
    bind_names(decl.shape, env);
    for (const ast::EncodingPart& part : decl.parts) ev_.check_names(*part.type, env);
    for (const ast::EncodingPart& part : decl.parts) env.define(part.name.text, Value::error(), part.name.span);
    ev_.check_names(*decl.value, env);
  }

  // The same of an operation's inputs.
  void check(const ast::OpDecl& decl, Environment env) {
    for (const ast::Param& param : decl.params) {
      if (const auto* tensor = ast::try_as<ast::TensorType>(param.type)) bind_names(tensor->shape, env);
      if (const auto* named = ast::try_as<ast::NamedType>(param.type); named != nullptr && named->shape) bind_names(*named->shape, env);
      if (const auto* index = ast::try_as<ast::IndexType>(param.type)) bind_names(index->shape, env);
    }
    for (const ast::Param& param : decl.params) ev_.check_names(*param.type, env);
    for (const ast::ResultItem& item : decl.result) ev_.check_names(*item.type, env);
    for (const ast::Param& param : decl.params) env.define(param.name.text, Value::error(), param.name.span);
    if (decl.reference) ev_.check_names(*decl.reference, env);
    if (decl.reference_block) ev_.check_names(*decl.reference_block, env);
    // `when dtype(x) == f16`: here alone an element type is a value.
    for (int t = 0; t <= static_cast<int>(DType::boolean); ++t) env.define(std::string(name(static_cast<DType>(t))), Value::error(), {});
    for (const ast::Kernel& kernel : decl.kernels) {
      for (const auto* e : {&kernel.local_size, &kernel.dispatch, &kernel.when}) {
        if (*e) ev_.check_names(**e, env);
      }
    }
  }

 private:
  static void bind_names(const ast::Shape& shape, Environment& env) {
    for (const ast::Axis& axis : shape.axes) {
      const auto* name = axis.size ? ast::try_as<ast::NameExpr>(*axis.size) : nullptr;
      if (name == nullptr || env.declared(name->name.text) || is_prelude_axis(name->name.text)) continue;
      env.define(name->name.text, Value::error(), name->name.span);
    }
  }

  void member(const ast::Item& item, bool is_model) {
    switch (item.kind) {
      case ast::ItemKind::function: return function(ast::as<ast::FunctionDecl>(item), env_);
      case ast::ItemKind::method: {
        const auto& method = ast::as<ast::MethodMember>(item);
        signature(method.signature, env_);
        Environment inner = env_;
        for (const ast::Param& param : method.signature.params) {
          ex_.check_new_name(param.name, inner);
          inner.define(param.name.text, Value::error(), param.name.span);
        }
        return block(method.body, inner, method.signature.params);
      }
      case ast::ItemKind::param: ev_.check_names(*ast::as<ast::ParamMember>(item).type, env_); break;
      case ast::ItemKind::constant: ev_.check_names(*ast::as<ast::ConstMember>(item).type, env_); break;
      case ast::ItemKind::checkpoint: return rules(ast::as<ast::CheckpointMember>(item).rules);
      case ast::ItemKind::context:
      case ast::ItemKind::policy:
      case ast::ItemKind::shard:
      case ast::ItemKind::quantize:
      case ast::ItemKind::place:
        if (!is_model) {
          ev_.sink()
              .error(code::misplaced_member, item.span, "`" + def_->name() + "` is a module: this speaks of a whole model")
              .label(def_->symbol->span, "declared here")
              .help("move it to the `model`, or write `model` for `module` if this is the whole");
        }
        break;
      default: break;
    }
    each_expr(item, [&](const ast::Expr& e) { expr(e, env_); });
  }

  void function(const ast::FunctionDecl& fn, Environment env) {
    for (const ast::Name& param : fn.params) {
      ex_.check_new_name(param, env);
      env.define(param.text, Value::error(), param.span);
    }
    for (const ast::Name& param : fn.params) calls_.local(param.text);
    if (fn.value) expr(*fn.value, env);
    if (fn.block) {
      ev_.check_names(*fn.block, env);
      calls_.check(*fn.block);
    }
    calls_.forget_locals();
  }

  void signature(const ast::Signature& signature, const Environment& env) {
    for (const ast::Param& param : signature.params) {
      ev_.check_names(*param.type, env);
      if (param.default_value) ev_.check_names(*param.default_value, env);
    }
    if (!signature.result) return;
    for (const ast::ResultItem& item : *signature.result) ev_.check_names(*item.type, env);
  }

  void block(const ast::Block& block, const Environment& env, const std::vector<ast::Param>& params) {
    ev_.check_names(block, env);
    for (const ast::Param& param : params) calls_.local(param.name.text);
    calls_.check(block);
    calls_.forget_locals();
  }

  void expr(const ast::Expr& e, const Environment& env) {
    ev_.check_names(e, env);
    calls_.check(e);
  }

  void rules(const std::vector<ast::RulePtr>& rules) {
    const auto condition = [&](const ast::ExprPtr& when, std::initializer_list<const ast::Tensor*> tensors) {
      if (!when) return;
      Environment env = env_;
      for (const ast::Tensor* tensor : tensors) {
        for (const ast::Seg& seg : tensor->segs) {
          if (seg.kind == ast::SegKind::index || seg.kind == ast::SegKind::rest) env.define(seg.text, Value::error(), seg.span);
        }
      }
      ev_.check_names(*when, env);
    };
    for (const ast::RulePtr& rule : rules) {
      switch (rule->kind) {
        case ast::RuleKind::map: {
          const auto& map = ast::as<ast::MapRule>(*rule);
          condition(map.when, {&map.file.items.front(), &map.model.items.front()});
          for (const ast::Tensor& made : map.model.items)
            if (made.segs.size() == 1) written_.insert(made.segs.front().text);
          break;
        }
        case ast::RuleKind::via: condition(ast::as<ast::ViaRule>(*rule).when, {&ast::as<ast::ViaRule>(*rule).tensor}); break;
        case ast::RuleKind::alias: condition(ast::as<ast::AliasRule>(*rule).when, {&ast::as<ast::AliasRule>(*rule).alias}); break;
        case ast::RuleKind::ignore:
          condition(ast::as<ast::IgnoreRule>(*rule).when, {&ast::as<ast::IgnoreRule>(*rule).tensors.front()});
          break;
        case ast::RuleKind::encode:
          condition(ast::as<ast::EncodeRule>(*rule).when, {&ast::as<ast::EncodeRule>(*rule).tensor});
          ev_.check_names(*ast::as<ast::EncodeRule>(*rule).encoding, env_);
          break;
        case ast::RuleKind::one_of:
          for (const auto& alternative : ast::as<ast::OneOfRule>(*rule).alternatives) this->rules(alternative.rules);
          break;
        case ast::RuleKind::for_:
        case ast::RuleKind::config: break;
      }
    }
  }

  // ---- members that nothing uses ----

  void unused() {
    const ModuleDef& def = *def_;
    if (!def.has_method()) return;
    for (const MemberDef& member : def.members) {
      if (member.kind == MemberKind::let || member.kind == MemberKind::function || member.kind == MemberKind::method) continue;
      if (member.doubtful || def.mentioned.contains(member.name) || selected_.contains(member.name)) continue;
      if (member.kind == MemberKind::constant && written_.contains(member.name)) continue;    // `file = const`
      if (member.level == 0) {
        if (derived_.contains(member.name)) continue;
        ev_.sink().warning(code::unused_member, member.span,
                           "nothing uses the " + std::string(word(member.kind)) + " `" + member.name + "` of `" + def.name() + "`");
        continue;
      }
      // A base's member that only the overridden functions used.
      const ModuleDef* base = defs_.get(*def.levels[member.level].symbol);
      if (base == nullptr || !base->mentioned.contains(member.name)) continue;
      ev_.sink()
          .warning(code::unused_member, def.symbol->span,
                   "`" + def.name() + "` no longer uses the " + std::string(word(member.kind)) + " `" + member.name + "` of its base `" +
                       base->name() + "`")
          .label(member.span, "declared here")
          .help("write `remove " + member.name + "` if it is not in the checkpoint");
    }
  }

  Evaluator& ev_;
  Expressions ex_;
  ModuleDefs& defs_;
  const Names& selected_;
  const Names& derived_;
  DefinitionCalls calls_;
  const ModuleDef* def_;
  Environment env_;
  std::set<std::string> written_;                    // what a rule of a checkpoint names by itself
};

}  // namespace

Names check_definitions(Evaluator& evaluator, ModuleDefs& defs, const Imports& imports) {
  Names selected, derived;
  for (const FileSymbols* file : imports.in_order()) {
    for (const ast::ItemPtr& decl : file->ast->decls) {
      if (const auto* fn = ast::try_as<ast::FunctionDecl>(*decl)) {
        if (fn->value) selected_names(*fn->value, selected);
        if (fn->block) selected_names(*fn->block, selected);
      }
      const auto* module = ast::try_as<ast::ModuleDecl>(*decl);
      if (module == nullptr) continue;
      const Symbol* symbol = module->base ? file->own(module->name.text) : nullptr;
      if (const ModuleDef* def = symbol != nullptr && symbol->decl == decl.get() ? defs.get(*symbol) : nullptr) {
        derived.insert(def->mentioned.begin(), def->mentioned.end());
      }
      for (const ast::ItemPtr& item : module->members) {
        each_expr(*item, [&](const ast::Expr& e) { selected_names(e, selected); });
        if (const auto* method = ast::try_as<ast::MethodMember>(*item)) selected_names(method->body, selected);
        if (const auto* fn = ast::try_as<ast::FunctionDecl>(*item); fn != nullptr && fn->block) selected_names(*fn->block, selected);
      }
    }
  }
  for (const FileSymbols* file : imports.in_order()) {
    const Environment env(file);
    for (const ast::ItemPtr& decl : file->ast->decls) {
      DefinitionChecker checker(evaluator, defs, selected, derived, *file);
      switch (decl->kind) {
        case ast::ItemKind::axis: {
          const Symbol* symbol = file->own(ast::as<ast::AxisDecl>(*decl).name.text);
          if (symbol != nullptr) evaluator.axis(*symbol);
          break;
        }
        case ast::ItemKind::function: checker.check(ast::as<ast::FunctionDecl>(*decl), env); break;
        case ast::ItemKind::interface: checker.check(ast::as<ast::InterfaceDecl>(*decl), env); break;
        case ast::ItemKind::encoding: checker.check(ast::as<ast::EncodingDecl>(*decl), env); break;
        case ast::ItemKind::op: checker.check(ast::as<ast::OpDecl>(*decl), env); break;
        case ast::ItemKind::config:
        case ast::ItemKind::variant: {
          const bool is_config = decl->kind == ast::ItemKind::config;
          const Symbol* symbol =
              file->own(is_config ? ast::as<ast::ConfigDecl>(*decl).name.text : ast::as<ast::VariantDecl>(*decl).name.text);
          if (symbol == nullptr || symbol->decl != decl.get()) break;
          if (is_config) check_config(evaluator, *symbol);
          else evaluator.config_defs().variant(*symbol);
          break;
        }
        case ast::ItemKind::module: {
          const Symbol* symbol = file->own(ast::as<ast::ModuleDecl>(*decl).name.text);
          if (symbol == nullptr || symbol->decl != decl.get()) break;
          if (const ModuleDef* def = defs.get(*symbol)) {
            DefinitionChecker(evaluator, defs, selected, derived, *file, def).check_module();
          }
          break;
        }
        default: break;
      }
    }
  }
  return selected;
}

}  // namespace modelc::sema

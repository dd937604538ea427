// Text that is not evaluated: which configuration fields it mentions, and whether there are such fields.
#include <algorithm>
#include <map>

#include "frontend/sema/config.h"
#include "frontend/sema/expressions.h"
#include "frontend/sema/walk.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

// Walks text with what is known of its names: configurations, cases, fns and modules are followed, all else is unknown
// (an error value). Nothing is evaluated, and nothing reported but a field that a configuration or a case does not have,
// which is wrong whatever is chosen.
class Toucher {
 public:
  explicit Toucher(Evaluator& evaluator) : ev_(evaluator), st_(*evaluator.state_) {}

  // What the expression is, as far as it can be told, with everything in it touched.
  Value look(const ast::Expr& expr, const Environment& env) {
    if (depth_ >= max_depth) return Value::error();
    ++depth_;
    Value value = look_kind(expr, env);
    --depth_;
    return value;
  }

  void look(const ast::Arm& arm, const Value& subject, const Environment& env) {
    Environment inner = env;
    if (arm.binding) {
      inner.define(arm.binding->text, subject, arm.binding->span);
      if (const VariantDef* variant = variant_of(subject)) bound_[arm.binding->span] = {variant, &arm};
    }
    look(*arm.value, inner);
  }

  void look(const ast::Block& block, Environment env) {
    for (const ast::StatementPtr& statement : block.statements) {
      switch (statement->kind) {
        case ast::StatementKind::let: {
          const auto& let = ast::as<ast::LetStatement>(*statement);
          const Value value = look(*let.value, env);
          for (const ast::Name& name : let.names) { env.define(name.text, let.names.size() == 1 ? value : Value::error(), name.span); }
          break;
        }
        case ast::StatementKind::for_: {
          const auto& loop = ast::as<ast::ForStatement>(*statement);
          look(*loop.source, env);
          Environment inner = env;
          inner.define(loop.variable.text, Value::error(), loop.variable.span);
          look(loop.body, inner);
          break;
        }
        case ast::StatementKind::return_:
          for (const auto& value : ast::as<ast::ReturnStatement>(*statement).values) look(*value, env);
          break;
        case ast::StatementKind::assign: look(*ast::as<ast::AssignStatement>(*statement).value, env); break;
        case ast::StatementKind::call: {
          const auto& call = ast::as<ast::CallStatement>(*statement);
          Value callee = of_name(call.path.parts.front(), env);
          for (std::size_t i = 1; i < call.path.parts.size(); ++i) callee = field(callee, call.path.parts[i]);
          follow(callee, look(call.args, env));
          break;
        }
      }
    }
  }

  void look(const ast::ModuleDecl& module, const FileSymbols& file, std::span<const Argument> arguments) {
    if (depth_ >= max_depth || !once(&module, arguments)) return;
    ++depth_;
    Environment env(&file);
    define_params(module.params, arguments, env);
    // A member may use a fn or `let` that stands behind it, so all members' names are known first.
    std::vector<const ast::FunctionDecl*> functions;
    for (const ast::ItemPtr& item : module.members) {
      if (const auto* let = ast::try_as<ast::LetItem>(*item)) env.define(let->name.text, look(*let->value, env), let->name.span);
    }
    const Environment known = env;
    for (const ast::ItemPtr& item : module.members) {
      if (const auto* fn = ast::try_as<ast::FunctionDecl>(*item)) {
        env.define(fn->name.text, Value::closure(closure(*fn, known)), fn->name.span);
        functions.push_back(fn);
      }
    }
    for (const ast::FunctionDecl* fn : functions) {
      Environment inner = env;
      for (const ast::Name& param : fn->params) inner.define(param.text, Value::error(), param.span);
      if (fn->value) look(*fn->value, inner);
      if (fn->block) look(*fn->block, inner);
    }
    for (const ast::ItemPtr& item : module.members) look(*item, env);
    if (module.base) {
      const Symbol* base = find_symbol(file, module.base->text).symbol;
      const auto base_args = module.base_args ? look(*module.base_args, env) : std::vector<Argument>();
      if (base != nullptr && base->kind == SymbolKind::module) { look(ast::as<ast::ModuleDecl>(*base->decl), *base->file, base_args); }
    }
    --depth_;
  }

 private:
  static constexpr std::size_t max_depth = 800;

  static Closure closure(const ast::FunctionDecl& fn, const Environment& env) {
    return Closure{fn.name.text, &fn.params, fn.value.get(), fn.block ? &*fn.block : nullptr, env, fn.name.span};
  }

  // True the first time that this text is walked with these configurations.
  bool once(const void* text, std::span<const Argument> arguments) {
    std::string given;
    for (const Argument& argument : arguments) {
      given += argument.name;
      given += '=';
      switch (argument.value.kind()) {
        case ValueKind::config: given += std::to_string(reinterpret_cast<std::uintptr_t>(&argument.value.as_config())); break;
        case ValueKind::variant: given += std::to_string(reinterpret_cast<std::uintptr_t>(argument.value.as_variant().fields)); break;
        case ValueKind::closure: given += std::to_string(reinterpret_cast<std::uintptr_t>(argument.value.as_closure().params)); break;
        default: given += '?';
      }
      given += ',';
    }
    return st_.touched.emplace(text, std::move(given)).second;
  }

  std::vector<Argument> look(const ast::Args& args, const Environment& env) {
    std::vector<Argument> out;
    for (const ast::Arg& arg : args.items) {
      Argument argument;
      if (arg.name) argument.name = arg.name->text;
      argument.value = look(*arg.value, env);
      out.push_back(std::move(argument));
    }
    return out;
  }

  void look_type(const ast::Type& type, const Environment& env) {
    each_expr(type, [&](const ast::Expr& expr) { look(expr, env); });
  }

  void look_if(const ast::ExprPtr& expr, const Environment& env) {
    if (expr) look(*expr, env);
  }

  void define_params(const std::vector<ast::Param>& params, std::span<const Argument> arguments, Environment& env) {
    for (std::size_t i = 0; i < params.size(); ++i) {
      const ast::Param& param = params[i];
      look_type(*param.type, env);
      Value value;
      for (std::size_t j = 0; j < arguments.size(); ++j) {
        if (arguments[j].name.empty() ? j == i : arguments[j].name == param.name.text) value = arguments[j].value;
      }
      if (value.is_error() && param.default_value) value = look(*param.default_value, env);
      env.define(param.name.text, value, param.name.span);
    }
  }

  void look(const ast::Item& item, const Environment& env) {
    switch (item.kind) {
      case ast::ItemKind::require: look(*ast::as<ast::RequireItem>(item).condition, env); break;
      case ast::ItemKind::context: look(*ast::as<ast::ContextMember>(item).value, env); break;
      case ast::ItemKind::param: {
        const auto& param = ast::as<ast::ParamMember>(item);
        look_type(*param.type, env);
        look_if(param.default_value, env);
        look_if(param.condition, env);
        break;
      }
      case ast::ItemKind::constant:
        look_type(*ast::as<ast::ConstMember>(item).type, env);
        look(*ast::as<ast::ConstMember>(item).value, env);
        break;
      case ast::ItemKind::state:
        look(*ast::as<ast::StateMember>(item).value, env);
        look_if(ast::as<ast::StateMember>(item).condition, env);
        break;
      case ast::ItemKind::child:
        look(*ast::as<ast::ChildMember>(item).value, env);
        look_if(ast::as<ast::ChildMember>(item).condition, env);
        break;
      case ast::ItemKind::method: {
        const auto& method = ast::as<ast::MethodMember>(item);
        Environment inner = env;
        for (const ast::Param& param : method.signature.params) {
          look_type(*param.type, env);
          look_if(param.default_value, env);
          inner.define(param.name.text, Value::error(), param.name.span);
        }
        if (method.signature.result) {
          for (const ast::ResultItem& result : *method.signature.result) look_type(*result.type, env);
        }
        look(method.body, inner);
        break;
      }
      case ast::ItemKind::checkpoint: look(ast::as<ast::CheckpointMember>(item).rules, env); break;
      case ast::ItemKind::shard:
        for (const auto& entry : ast::as<ast::ShardSection>(item).entries) {
          for (const ast::Path& path : entry.factors) {
            Value value = of_name(path.parts.front(), env);
            for (std::size_t i = 1; i < path.parts.size(); ++i) value = field(value, path.parts[i]);
          }
        }
        break;
      case ast::ItemKind::place:
        for (const auto& entry : ast::as<ast::PlaceSection>(item).entries) {
          if (entry.range) each_expr(*entry.range, [&](const ast::Expr& expr) { look(expr, env); });
        }
        break;
      default: break;
    }
  }

  void look(const std::vector<ast::RulePtr>& rules, const Environment& env) {
    const auto via = [&](const std::vector<ast::Call>& calls) {
      for (const ast::Call& call : calls) {
        if (call.args) look(*call.args, env);
      }
    };
    for (const ast::RulePtr& rule : rules) {
      switch (rule->kind) {
        case ast::RuleKind::map:
          via(ast::as<ast::MapRule>(*rule).via);
          look_if(ast::as<ast::MapRule>(*rule).when, env);
          break;
        case ast::RuleKind::via:
          via(ast::as<ast::ViaRule>(*rule).via);
          look_if(ast::as<ast::ViaRule>(*rule).when, env);
          break;
        case ast::RuleKind::alias: look_if(ast::as<ast::AliasRule>(*rule).when, env); break;
        case ast::RuleKind::ignore: look_if(ast::as<ast::IgnoreRule>(*rule).when, env); break;
        case ast::RuleKind::encode:
          look(*ast::as<ast::EncodeRule>(*rule).encoding, env);
          look_if(ast::as<ast::EncodeRule>(*rule).when, env);
          break;
        case ast::RuleKind::one_of:
          for (const auto& alternative : ast::as<ast::OneOfRule>(*rule).alternatives) look(alternative.rules, env);
          break;
        case ast::RuleKind::for_: look(ast::as<ast::ForRule>(*rule).rules, env); break;
        case ast::RuleKind::config:         // the keys are of the file's metadata, not of the configuration
          for (const auto& entry : ast::as<ast::ConfigRule>(*rule).entries) look_if(entry.when, env);
          break;
      }
    }
  }

  Value of_symbol(const Symbol& symbol) {
    if (symbol.kind == SymbolKind::function) {
      return Value::closure(closure(ast::as<ast::FunctionDecl>(*symbol.decl), Environment(symbol.file)));
    }
    if (symbol.kind == SymbolKind::module) return Value::recipe(Recipe{&symbol, false, {}, symbol.span});
    return Value::error();
  }

  Value of_name(const ast::Name& name, const Environment& env) {
    if (auto value = env.peek(name.text)) return std::move(*value);
    if (env.file() == nullptr) return Value::error();
    const SymbolLookup found = find_symbol(*env.file(), name.text);
    if (found.alias != nullptr) return Value::files(found.alias);
    return found.symbol != nullptr ? of_symbol(*found.symbol) : Value::error();
  }

  Value field(const Value& object, const ast::Name& name) {
    if (object.is(ValueKind::config) || object.is(ValueKind::variant)) {
      const ConfigInstance& instance = object.is(ValueKind::config) ? object.as_config() : *object.as_variant().fields;
      if (const ConfigField* found = instance.find(name.text)) {
        instance.mark_read(name.text);
        return found->value;
      }
      if (object.is(ValueKind::variant)) check_case(object.as_variant().definition, nullptr, name);
      else Expressions(ev_).field(object, name, name.span);  // a fn of the configuration, or unknown, which is said
    }
    if (object.is(ValueKind::files)) {
      const Symbol* symbol = object.as_files().own(name.text);
      return symbol != nullptr ? of_symbol(*symbol) : Value::error();
    }
    return Value::error();
  }

  // A field of what an arm binds, which is of the arm's own cases and not of the case at hand.
  Value field_of_arm(const Value& bound, const VariantDef* variant, const ast::Arm& arm, const ast::Name& name) {
    if (bound.is(ValueKind::variant)) {
      if (const ConfigField* found = bound.as_variant().fields->find(name.text)) {
        bound.as_variant().fields->mark_read(name.text);
        return found->value;
      }
    }
    check_case(variant, arm.wildcard ? nullptr : &arm, name);
    return Value::error();
  }

  // Reports a name that is a field of none of the cases: those of the arm, or all of the variant.
  void check_case(const VariantDef* variant, const ast::Arm* arm, const ast::Name& name) {
    std::vector<std::string> names, tags;
    for (const VariantDef::Case& one : variant->cases) {
      const bool asked = arm == nullptr || std::any_of(arm->literals.begin(), arm->literals.end(), [&](const ast::Literal& l) {
                           const auto index = l.kind == ast::LiteralKind::string ? variant->find(l.text) : std::nullopt;
                           return index && &variant->cases[*index] == &one;
                         });
      if (!asked) continue;
      if (one.fields->field(name.text) != nullptr || is_let(*one.fields, name.text)) return;
      tags.push_back(modelc::quote(one.decl->tags.front().value));
      for (const FieldDef& field : one.fields->fields) names.push_back(field.name);
    }
    if (tags.empty()) return;  // an arm of a case that the variant does not have, which is said of the arm
    const std::string of = arm == nullptr     ? "no case of " + variant->symbol->name + " has a field"
                           : tags.size() == 1 ? "the case " + tags[0] + " of " + variant->symbol->name + " has no field"
                                              : "the cases " + listed(tags) + " of " + variant->symbol->name + " have no field";
    Expressions(ev_)
        .fail(diag::code::unknown_field, name.span, of + " `" + name.text + "`")
        .label(variant->symbol->span, "declared here")
        .help(diag::did_you_mean(name.text, names));
  }

  static bool is_let(const ConfigDef& def, const std::string& name) {
    return std::any_of(def.lets.begin(), def.lets.end(), [&](const LetDef& let) { return let.name == name; }) ||
           std::any_of(def.functions.begin(), def.functions.end(), [&](const FunctionDef& fn) { return fn.name == name; });
  }

  static const VariantDef* variant_of(const Value& value) {
    if (value.is(ValueKind::variant)) return value.as_variant().definition;
    return value.is_none() ? value.none_of() : nullptr;
  }

  // The text behind a call.
  void follow(const Value& callee, std::span<const Argument> arguments) {
    if (callee.is(ValueKind::recipe) && callee.as_recipe().symbol != nullptr) {
      look(callee.as_recipe().module(), *callee.as_recipe().symbol->file, arguments);
    }
    if (!callee.is(ValueKind::closure)) return;
    const Closure& function = callee.as_closure();
    if (!once(function.params, arguments)) return;
    Environment env = function.environment;
    for (std::size_t i = 0; i < function.params->size(); ++i) {
      const ast::Name& param = (*function.params)[i];
      Value value;
      for (std::size_t j = 0; j < arguments.size(); ++j) {
        if (arguments[j].name.empty() ? j == i : arguments[j].name == param.text) value = arguments[j].value;
      }
      env.define(param.text, value, param.span);
    }
    if (function.value != nullptr) look(*function.value, env);
    if (function.block != nullptr) look(*function.block, env);
  }

  Value look_kind(const ast::Expr& expr, const Environment& env) {
    switch (expr.kind) {
      case ast::ExprKind::name: return of_name(ast::as<ast::NameExpr>(expr).name, env);
      case ast::ExprKind::member: {
        const auto& e = ast::as<ast::MemberExpr>(expr);
        const Value object = look(*e.object, env);
        if (const auto* of = ast::try_as<ast::NameExpr>(*e.object)) {
          const auto declared = env.declared(of->name.text);
          const auto bound = declared ? bound_.find(*declared) : bound_.end();
          if (bound != bound_.end()) return field_of_arm(object, bound->second.first, *bound->second.second, e.name);
        }
        return field(object, e.name);
      }
      case ast::ExprKind::call: {
        const auto& e = ast::as<ast::CallExpr>(expr);
        const Value callee = look(*e.callee, env);
        follow(callee, look(e.args, env));
        return Value::error();
      }
      case ast::ExprKind::function: {
        const auto& e = ast::as<ast::FunctionExpr>(expr);
        Environment inner = env;
        for (const ast::Name& param : e.params) inner.define(param.text, Value::error(), param.span);
        look(*e.body, inner);
        return Value::closure(Closure{"", &e.params, e.body.get(), nullptr, env, e.span});
      }
      case ast::ExprKind::comprehension: {
        const auto& e = ast::as<ast::ComprehensionExpr>(expr);
        if (e.range) each_expr(*e.range, [&](const ast::Expr& end) { look(end, env); });
        look_if(e.source, env);
        Environment inner = env;
        inner.define(e.variable.text, Value::error(), e.variable.span);
        look(*e.element, inner);
        look_if(e.condition, inner);
        return Value::error();
      }
      case ast::ExprKind::match: {
        const auto& e = ast::as<ast::MatchExpr>(expr);
        const Value subject = look(*e.subject, env);
        for (const ast::Arm& arm : e.arms) look(arm, subject, env);
        return Value::error();
      }
      case ast::ExprKind::binary: {
        const auto& e = ast::as<ast::BinaryExpr>(expr);
        const Value left = look(*e.left, env);
        look(*e.right, env);
        return e.op == ast::BinaryOp::coalesce ? left : Value::error();
      }
      default: each_child(expr, [&](const ast::Expr& child) { look(child, env); }); return Value::error();
    }
  }

  Evaluator& ev_;
  Evaluator::State& st_;
  std::size_t depth_ = 0;
  std::map<source::Span, std::pair<const VariantDef*, const ast::Arm*>> bound_;   // what arms bind, by the name's place
};

void Evaluator::touch(const ast::Expr& expr, const Environment& env) { Toucher(*this).look(expr, env); }
void Evaluator::touch(const ast::Arm& arm, const Value& subject, const Environment& env) { Toucher(*this).look(arm, subject, env); }
void Evaluator::touch(const ast::Block& block, const Environment& env) { Toucher(*this).look(block, env); }
void Evaluator::touch(const ast::ModuleDecl& module, const FileSymbols& file, std::span<const Argument> arguments) {
  Toucher(*this).look(module, file, arguments);
}

}  // namespace modelc::sema

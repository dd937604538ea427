// Names in text of which no instance is made: is each one something?
#include "frontend/sema/expressions.h"
#include "frontend/sema/types.h"
#include "frontend/sema/walk.h"

namespace modelc::sema {

namespace {

class NameChecker {
 public:
  explicit NameChecker(Evaluator& evaluator) : ev_(evaluator), ex_(evaluator) {}

  void check(const ast::Expr& expr, const Environment& env) {
    switch (expr.kind) {
      case ast::ExprKind::name: return name(ast::as<ast::NameExpr>(expr).name, env);
      case ast::ExprKind::member: {
        // Through an import's alias the name is a declaration; of all else only its value tells.
        const auto& e = ast::as<ast::MemberExpr>(expr);
        const auto* object = ast::try_as<ast::NameExpr>(e.object);
        const bool alias = object != nullptr && !env.declared(object->name.text) && env.file() != nullptr &&
                           find_symbol(*env.file(), object->name.text).alias != nullptr;
        if (alias) {
          ex_.field(ex_.name(object->name, env), e.name, object->span);
        } else {
          check(*e.object, env);
        }
        return;
      }
      case ast::ExprKind::call: {
        // Of `x.to(f32)` it is the function that there is not: what is given to it is looked at when it is called.
        const auto& e = ast::as<ast::CallExpr>(expr);
        const bool method = e.callee->kind == ast::ExprKind::member;
        check(*e.callee, env);
        each_expr(e.args, [&](const ast::Expr& arg) {
          const auto* word = ast::try_as<ast::NameExpr>(arg);
          if (method && word != nullptr && dtype_from_name(word->name.text) && !env.declared(word->name.text)) return;
          check(arg, env);
        });
        return;
      }
      case ast::ExprKind::function: {
        const auto& e = ast::as<ast::FunctionExpr>(expr);
        Environment inner = env;
        for (const ast::Name& param : e.params) inner.define(param.text, Value::error(), param.span);
        return check(*e.body, inner);
      }
      case ast::ExprKind::comprehension: {
        const auto& e = ast::as<ast::ComprehensionExpr>(expr);
        if (e.range) each_expr(*e.range, [&](const ast::Expr& end) { check(end, env); });
        if (e.source) check(*e.source, env);
        Environment inner = env;
        inner.define(e.variable.text, Value::error(), e.variable.span);
        check(*e.element, inner);
        if (e.condition) check(*e.condition, inner);
        return;
      }
      case ast::ExprKind::match: {
        const auto& e = ast::as<ast::MatchExpr>(expr);
        check(*e.subject, env);
        for (const ast::Arm& arm : e.arms) {
          Environment inner = env;
          if (arm.binding) inner.define(arm.binding->text, Value::error(), arm.binding->span);
          check(*arm.value, inner);
        }
        return;
      }
      default: each_child(expr, [&](const ast::Expr& child) { check(child, env); });
    }
  }

  // `in_loop`: a `for` assigns names that stand before it.
  void check(const ast::Block& block, Environment env, bool in_loop = false) {
    for (const ast::StatementPtr& statement : block.statements) {
      switch (statement->kind) {
        case ast::StatementKind::let: {
          const auto& let = ast::as<ast::LetStatement>(*statement);
          check(*let.value, env);
          for (const ast::Name& local : let.names) {
            const auto before = in_loop && env.is_local(local.text) ? env.declared(local.text) : std::nullopt;
            if (before) {
              ex_.fail(diag::code::duplicate_name, local.span, "`" + local.text + "` is already a name here")
                  .label(*before, "this one")
                  .help("within a loop a name gets its new value without `let`: `" + local.text + " = …`");
            } else {
              ex_.check_new_name(local, env);
            }
            env.define(local.text, Value::error(), local.span);
          }
          break;
        }
        case ast::StatementKind::for_: {
          const auto& loop = ast::as<ast::ForStatement>(*statement);
          check(*loop.source, env);
          Environment inner = env;
          inner.define(loop.variable.text, Value::error(), loop.variable.span);
          check(loop.body, inner, true);
          break;
        }
        case ast::StatementKind::return_:
          for (const auto& value : ast::as<ast::ReturnStatement>(*statement).values) check(*value, env);
          break;
        case ast::StatementKind::assign: {
          const auto& assign = ast::as<ast::AssignStatement>(*statement);
          check(*assign.value, env);
          const bool unknown = !env.declared(assign.name.text);
          if (!unknown || in_loop) name(assign.name, env);
          else ex_.fail_made_without_let(assign.name);
          if (unknown) env.define(assign.name.text, Value::error(), assign.name.span);
          break;
        }
        case ast::StatementKind::call: {
          const auto& call = ast::as<ast::CallStatement>(*statement);
          name(call.path.parts.front(), env);
          each_expr(call.args, [&](const ast::Expr& expr) { check(expr, env); });
          break;
        }
      }
    }
  }

  void check(const ast::Type& type, const Environment& env) {
    if (const auto* list = ast::try_as<ast::ListType>(type)) {
      check(*list->element, env);
      if (list->length) check(*list->length, env);
      return;
    }
    if (const auto* map = ast::try_as<ast::MapType>(type)) return check(*map->element, env);
    if (const auto* named = ast::try_as<ast::NamedType>(type)) resolve_type(ev_, *named, env);
    each_expr(type, [&](const ast::Expr& expr) { check(expr, env); });
  }

 private:
  void name(const ast::Name& name, const Environment& env) {
    if (env.declared(name.text)) return;
    if (is_state_kind(name.text)) return;  // whether it stands where it may, is the reader's of states affair
    ex_.name(name, env);
  }

  Evaluator& ev_;
  Expressions ex_;
};

}  // namespace

void Evaluator::check_names(const ast::Expr& expr, const Environment& env) { NameChecker(*this).check(expr, env); }
void Evaluator::check_names(const ast::Block& block, const Environment& env) { NameChecker(*this).check(block, env); }
void Evaluator::check_names(const ast::Type& type, const Environment& env) { NameChecker(*this).check(type, env); }

}  // namespace modelc::sema

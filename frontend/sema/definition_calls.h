// Calls as they are written: what can be said of them without any value. Arguments of modules, fns, operations and
// children by number and name, members of children whose module the text names outright.
#pragma once

#include <set>
#include <string>

#include "frontend/sema/evaluator.h"
#include "frontend/sema/module_def.h"

namespace modelc::sema {

class DefinitionCalls {
 public:
  // Texts of a file; `def` is the module in which they stand, or null.
  DefinitionCalls(Evaluator& evaluator, ModuleDefs& defs, const FileSymbols& file, const ModuleDef* def)
      : ev_(evaluator), defs_(defs), file_(file), def_(def) {}

  void check(const ast::Expr& expr);
  void check(const ast::Block& block);
  // The arguments of a base.
  void check(const Symbol& module, const ast::Args& args, source::Span span);

  // Names that the text at hand makes itself. As no name hides another, it does not matter where.
  void local(const std::string& name) { locals_.insert(name); }
  void forget_locals() { locals_.clear(); }

 private:
  bool is_own(const std::string& name) const;
  const ModuleDef* child_module(const std::string& name);
  bool of_member(const ast::MemberExpr& member, const ast::CallExpr& call);
  void of_name(const ast::Name& name, const ast::CallExpr& call);
  void of_field(const ast::MemberExpr& member);
  bool of_config(const ast::MemberExpr& member, const std::string& object);
  void of_function(const ast::FunctionDecl& fn, const ast::CallExpr& call);
  void of_method(const MemberDef& method, const std::string& owner, const ast::CallExpr& call);

  Evaluator& ev_;
  ModuleDefs& defs_;
  const FileSymbols& file_;
  const ModuleDef* def_;
  std::set<std::string, std::less<>> locals_;
};

}  // namespace modelc::sema

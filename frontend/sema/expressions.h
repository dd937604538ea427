// The inside of the Evaluator: one class in several files.
//   expressions.cpp  names, fields, literals, lists, conditions   arithmetic.cpp  operators on static values and sizes
//   calls.cpp        calls, arguments, parameters                 builtins.cpp    the language's functions on numbers
//   choices.cpp      match, is, comprehension, index, cast        conform.cpp     declared types of values
//   blocks.cpp       statements                                   touch.cpp       text that is not evaluated
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/sema/evaluator.h"

namespace modelc::sema {

struct Evaluator::State {
  TensorContext* tensors = nullptr;
  InterfaceChecker* interfaces = nullptr;

  std::size_t nesting = 0;                           // of evaluations in evaluations, all fns together
  std::uint64_t steps = 0;
  bool exhausted = false;                            // said once; everything is an error from then on

  struct CallSite {
    std::string name;                                // of the fn
    source::Span span;                               // of the call
  };
  std::vector<CallSite> calls;                       // innermost last
  std::vector<std::string> reasons;                  // "for the default of `head_dim`, which …": notes for messages

  // Of the function whose block is being run: the names that a `let` made, which a `for` may assign.
  struct Frame {
    std::set<std::string, std::less<>> lets;
    std::set<std::string, std::less<>> assignable;   // inside a `for`: those made before it
    bool in_loop = false;
  };
  std::vector<Frame> frames;

  std::set<const ast::Expr*> checked_matches;        // their arms were looked at
  std::set<const void*> checked_params;              // of fns: their names were looked at
  std::set<std::pair<const void*, std::string>> touched;   // text and the configurations it was given

  std::vector<std::unique_ptr<ConfigInstance>> configs;
  std::vector<std::unique_ptr<VariantInstance>> variants;
  std::vector<std::unique_ptr<NameSource>> name_sources;
  std::map<const ConfigInstance*, const NameSource*> scopes;
};

// Evaluations in evaluations, beyond which an expression is refused: what a stack of 8 MiB holds with room to spare.
inline constexpr std::size_t max_nesting_of_evaluation = 1200;

// As in the language: higher binds tighter.
namespace precedence {
inline constexpr int or_ = 1, and_ = 2, not_ = 3, comparison = 4, sum = 5, product = 6, negation = 8, power = 9;
}

class Expressions {
 public:
  explicit Expressions(Evaluator& evaluator) : ev_(evaluator), st_(*evaluator.state_) {}

  // expressions.cpp
  Value eval(const ast::Expr& expr, const Environment& env);
  Value name(const ast::Name& name, const Environment& env);
  Value field(const Value& object, const ast::Name& name, source::Span object_span);
  Value of_symbol(const Symbol& symbol, source::Span use);
  std::optional<bool> condition(const ast::Expr& expr, const Environment& env);
  Value size(const ast::Expr& expr, const Environment& env, std::string_view what);
  std::vector<ShapeAxis> shape(const ast::Shape& shape, const Environment& env);
  static Value literal(const ast::Literal& literal);

  // arithmetic.cpp
  Value unary(ast::UnaryOp op, const Value& x, source::Span span);
  Value binary(ast::BinaryOp op, const Value& a, const Value& b, const ast::BinaryExpr& expr);

  // calls.cpp
  std::vector<Argument> arguments(const ast::Args& args, const Environment& env);
  Value call_value(const Value& callee, std::span<const Argument> arguments, source::Span callee_span, source::Span span);
  Value call_closure(const Closure& function, std::span<const Argument> arguments, source::Span span);
  std::optional<std::vector<std::pair<std::string, Value>>> bind(const std::vector<ast::Param>& params, std::span<const Argument> arguments,
                                                                 std::string_view owner, source::Span span, Environment& scope);
  // Positional and named arguments in the order of the parameters; null where none is given. False when one does not
  // fit.
  struct ParamSpec {
    std::string_view name;
    bool required = true;
    source::Span declared = {};  // where a file declares it; invalid for what is built in
  };
  bool arrange(std::span<const ParamSpec> params, std::span<const Argument> arguments, std::string_view owner, source::Span span,
               std::vector<const Argument*>& arranged);

  // builtins.cpp
  Value call_builtin(const Builtin& function, std::span<const Argument> arguments, source::Span span);

  // conform.cpp
  Value conform(const Value& value, const ast::Type& type, const Environment& env, std::string_view what, source::Span use);

  // blocks.cpp
  // `y = …` outside of a loop where nothing is called `y`.
  void fail_made_without_let(const ast::Name& name);
  std::optional<Value> run(const ast::Block& block, Environment& env);

  // A local is made; its name must not be one of the module's, of an axis, or another local's.
  void check_new_name(const ast::Name& name, const Environment& env);
  // A number takes the name of what it is bound to; other values stay as they are.
  static Value named(const std::string& name, const Value& value);
  // A parameter keeps the formula that it is given: `heads * d`, not `out_dim`; a number without one takes its name.
  static Value parameter(const std::string& name, const Value& value);

  // An error with the calls that led there. The builder may be used in the same expression only.
  diag::Builder fail(const diag::Code& code, source::Span span, std::string message);
  // The same with the origins of the factors of a formula as notes.
  diag::Builder fail(const diag::Code& code, source::Span span, std::string message, std::initializer_list<const Value*> origins_of);
  // Reports none, absent and values of the wrong kind where a value is needed; true when it did (or it is an error).
  bool unusable(const Value& value, source::Span span);
  // Whether a graph is being built; reports that `what` needs one when not.
  bool have_tensors(source::Span span, std::string_view what);
  std::string text(source::Span span) const;         // of the source, blanks and line breaks as one blank

  Evaluator& evaluator() { return ev_; }

 private:
  Value eval_kind(const ast::Expr& expr, const Environment& env);
  Value eval_conditional(const ast::ConditionalExpr& expr, const Environment& env);
  Value eval_logical(const ast::BinaryExpr& expr, const Environment& env);
  Value eval_coalesce(const ast::BinaryExpr& expr, const Environment& env);
  Value eval_list(const ast::ListExpr& expr, const Environment& env);
  Value eval_call(const ast::CallExpr& expr, const Environment& env);
  // choices.cpp
  Value eval_is(const ast::IsExpr& expr, const Environment& env);
  Value eval_match(const ast::MatchExpr& expr, const Environment& env);
  Value eval_comprehension(const ast::ComprehensionExpr& expr, const Environment& env);
  Value eval_index(const ast::IndexExpr& expr, const Environment& env);
  Value eval_cast(const ast::CastExpr& expr, const Environment& env);
  bool check_arms(const ast::MatchExpr& expr, const Value& subject);
  bool matches(const Value& subject, const ast::Literal& literal, bool& failed);
  Value index_static(const Value& object, const ast::IndexExpr& expr, std::span<const SliceValue> slices);
  // arithmetic.cpp
  Value arithmetic(ast::BinaryOp op, const Value& a, const Value& b, const ast::BinaryExpr& expr);
  Value integers(ast::BinaryOp op, const Value& a, const Value& b, const ast::BinaryExpr& expr);
  Value reals(ast::BinaryOp op, const Value& a, const Value& b, const ast::BinaryExpr& expr);
  Value sizes(ast::BinaryOp op, const Value& a, const Value& b, const ast::BinaryExpr& expr);
  Value comparison(ast::BinaryOp op, const Value& a, const Value& b, const ast::BinaryExpr& expr);
  Value contains(const Value& a, const Value& b, const ast::BinaryExpr& expr);
  // calls.cpp
  Value call_recipe(const Recipe& recipe, std::span<const Argument> arguments, source::Span callee_span, source::Span span, ValueKind kind);
  // blocks.cpp
  bool statement(const ast::Statement& statement, Environment& env, std::optional<Value>& result);
  bool let_statement(const ast::LetStatement& statement, Environment& env);
  bool for_statement(const ast::ForStatement& statement, Environment& env);
  bool assign_statement(const ast::AssignStatement& statement, Environment& env);
  bool call_statement(const ast::CallStatement& statement, Environment& env);
  bool spend(source::Span span);

  Evaluator& ev_;
  Evaluator::State& st_;
};

// "`a`" with the formula and value when they say more: for messages about an operand.
std::string explained(const Value& value);

}  // namespace modelc::sema

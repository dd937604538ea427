// Evaluates expressions, types of values, fns and blocks. One evaluator serves configurations, module arguments and
// forward bodies; what touches the graph goes to the TensorContext that is set at the time.
//
// Every function reports its mistakes to the sink and returns an error value (or nothing), which stays silent
// afterwards.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/diagnostics/diagnostics.h"
#include "frontend/graph/dims.h"
#include "frontend/sema/config.h"
#include "frontend/sema/scope.h"
#include "frontend/sema/symbols.h"
#include "frontend/sema/tensor_context.h"
#include "frontend/sema/value.h"

namespace modelc::sema {

// What bounds an evaluation, so that no file and no configuration can make it run on or exhaust the stack.
struct EvaluatorLimits {
  std::size_t call_depth = 64;                       // fns in fns
  std::size_t list_elements = 1'000'000;             // of one comprehension
  std::uint64_t steps = 10'000'000;                  // expressions evaluated by one Evaluator
};

class Evaluator {
 public:
  // Declares the prelude's axes in `dims` where they are not yet.
  Evaluator(source::SourceManager& sources, graph::DimTable& dims, diag::Sink& sink, EvaluatorLimits limits = {});
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  diag::Sink& sink() { return sink_; }
  const source::SourceManager& sources() const { return sources_; }
  // For further ones that messages point into: a configuration's.
  source::SourceManager& texts() { return sources_; }
  graph::DimTable& dims() { return dims_; }
  ConfigDefs& config_defs() { return *config_defs_; }

  // Who builds the graph; null: only static values are allowed. Returns the one before: restore it.
  TensorContext* set_tensors(TensorContext* tensors);
  InterfaceChecker* set_interfaces(InterfaceChecker* interfaces);
  TensorContext* tensors() const;
  InterfaceChecker* interfaces() const;

  // ---- expressions
  Value eval(const ast::Expr& expr, const Environment& env);
  // A name where it is used: locals, sources, file, imports, prelude.
  Value lookup(const ast::Name& name, const Environment& env);
  // `value.name`, and a value called.
  Value field(const Value& object, const ast::Name& name, source::Span object_span);
  Value call(const Value& callee, std::span<const Argument> arguments, source::Span callee_span, source::Span span);
  // A condition: `if` of a member, `require`, `when`. Nothing when it is not a static boolean (reported).
  std::optional<bool> condition(const ast::Expr& expr, const Environment& env);
  // An integer or a dim, or an error. `what` is for the message: "a size of `weight`".
  Value size(const ast::Expr& expr, const Environment& env, std::string_view what);
  // Each size at least 1, or with a run-time axis in it.
  std::vector<ShapeAxis> shape(const ast::Shape& shape, const Environment& env);
  std::vector<Argument> arguments(const ast::Args& args, const Environment& env);

  // The size that an `axis` declares; the axis is made in dims() when it is first used. An error when it is wrong.
  Value axis(const Symbol& symbol);
  // What is said of a name that is nowhere: what to import, or the nearest one.
  void report_unknown_name(const ast::Name& name, const Environment& env);
  // "`RMSNorm` is declared in `nn.norm`: …"; "" where no file that could be imported declares the name.
  std::string import_of(const std::string& name) const;
  // Given a name, the path by which a file that declares it is imported, or "".
  void set_finder(std::function<std::string(const std::string&)> finder) { finder_ = std::move(finder); }

  // ---- functions and blocks
  Value call(const Closure& function, std::span<const Argument> arguments, source::Span span);
  // The body of a forward or an entry: its `return` (a tuple of several values), or none without one. Names defined
  // stay in `env`.
  Value run(const ast::Block& block, Environment& env);
  // For definitions of which no instance is made: reports each name that is nothing, evaluating nothing. `env` says
  // what is declared around; the values of its names do not matter.
  void check_names(const ast::Expr& expr, const Environment& env);
  void check_names(const ast::Block& block, const Environment& env);
  void check_names(const ast::Type& type, const Environment& env);

  // ---- parameters
  // Binds arguments to the parameters of `owner` ("the module `Linear`"), positional first, then by name; missing
  // ones by their default, evaluated in `scope` with the earlier parameters. `scope` is the environment of the
  // declaration's file and is left with all parameters defined. Nothing when one failed (all problems are reported).
  std::optional<std::vector<std::pair<std::string, Value>>> bind(const std::vector<ast::Param>& params, std::span<const Argument> arguments,
                                                                 std::string_view owner, source::Span span, Environment& scope);
  // The value as a value of the declared type: integers widen to float, none passes where `T?` is asked, recipes are
  // checked against interfaces. Types of tensors are not values' types and are refused here. `what` names the place:
  // "the argument `eps` of the module `RMSNorm`".
  Value conform(const Value& value, const ast::Type& type, const Environment& env, std::string_view what, source::Span use);
  // The module's scope: its file, and the parameters of the recipe.
  Environment module_scope(const Recipe& recipe) const;

  // ---- what is not evaluated
  // Marks the configuration fields that the expression mentions as read, without evaluating it: for the branch that a
  // condition does not take and for members that are absent. Follows fns and the modules that it calls. A field is
  // unread only when no text that the model could have used mentions it. A field that there is not is reported.
  void touch(const ast::Expr& expr, const Environment& env);
  // Of an arm that is not taken: what it binds has the fields of the arm's own cases.
  void touch(const ast::Arm& arm, const Value& subject, const Environment& env);
  void touch(const ast::Block& block, const Environment& env);
  // All of a module's text, its parameters being the values given where they are configurations, else unknown.
  void touch(const ast::ModuleDecl& module, const FileSymbols& file, std::span<const Argument> arguments);

  // `require condition, "text"` of a module or config. False when it is not met or cannot be told (reported).
  bool require(const ast::RequireItem& item, const Environment& env, std::string_view owner);

  // While it lives, each message carries the note: what is being done, and for whom. Notes nest.
  class Reason {
   public:
    Reason(Evaluator& evaluator, std::string note);
    ~Reason();
    Reason(const Reason&) = delete;
    Reason& operator=(const Reason&) = delete;

   private:
    Evaluator& evaluator_;
  };

  // ---- ownership
  const ConfigInstance* adopt(std::unique_ptr<ConfigInstance> instance);
  const VariantInstance* adopt(std::unique_ptr<VariantInstance> instance);
  const NameSource& adopt(std::unique_ptr<NameSource> source);
  // The scope of a bound configuration's fields, lets and fns, as its own expressions see them.
  const NameSource& scope_of(const ConfigInstance& instance);
  void set_scope(const ConfigInstance& instance, const NameSource& scope);

 private:
  friend class Expressions;                          // evaluator.cpp and its neighbours: one class, several files
  friend class Toucher;
  struct State;
  source::SourceManager& sources_;
  graph::DimTable& dims_;
  diag::Sink& sink_;
  EvaluatorLimits limits_;
  std::unique_ptr<ConfigDefs> config_defs_;
  std::unique_ptr<State> state_;
  std::function<std::string(const std::string&)> finder_;
  mutable std::map<std::string, std::string> imports_of_;  // what the finder said
};

}  // namespace modelc::sema

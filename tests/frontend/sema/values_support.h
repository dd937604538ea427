// Files in memory, a configuration in memory, and what the evaluator makes of them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/sema/config.h"
#include "frontend/sema/evaluator.h"
#include "frontend/sema/imports.h"

namespace modelc::sema::test {

// One front end run. `main.model` is the file at hand.
class Session {
 public:
  // `language 1` is put before the text.
  explicit Session(std::string_view text, EvaluatorLimits limits = {});
  Session& file(std::string name, std::string_view text);
  Session& import_path(std::string folder);

  // Loads the imports on first use. REQUIREs that this succeeds unless `may_fail`.
  bool load(bool may_fail = false);
  const Symbol& symbol(std::string_view name);

  // The value of an expression in the scope of the main file; `let`s as "name = expr" before it.
  Value eval(std::string_view expr, const std::vector<std::pair<std::string, std::string>>& lets = {});
  // An environment of the main file.
  Environment environment();
  // Binds the config of this name to the JSON text.
  Value bind(std::string_view config, std::string_view json, std::vector<ConfigInput::Override> overrides = {}, std::string folder = "");
  // The same with the sink's messages as text, and "" when there is none.
  std::string bind_errors(std::string_view config, std::string_view json, std::vector<ConfigInput::Override> overrides = {});

  // All messages, rendered; "" when there is none.
  std::string messages() const;
  // The codes in order: "E0201 E0204".
  std::string codes() const;

  source::SourceManager sources;
  diag::Sink sink;
  graph::DimTable dims;
  std::unique_ptr<Evaluator> evaluator;
  std::shared_ptr<Imports> imports;
  std::vector<std::string> notes;

  const ast::Expr& expression(std::string_view text);

 private:
  Options options_;
  source::FileId main_;
  std::vector<ast::ExprPtr> expressions_;
};

// A field of a bound configuration as text: "40", "\"silu\"".
std::string field_text(const Value& config, std::string_view name);
// Whether `text` holds `part`, which doctest shows when not.
bool holds(const std::string& text, std::string_view part);

}  // namespace modelc::sema::test

#include "tests/frontend/sema/values_support.h"

#include <doctest/doctest.h>

#include "frontend/diagnostics/render.h"
#include "frontend/syntax/parser.h"

namespace modelc::sema::test {

Session::Session(std::string_view text, EvaluatorLimits limits) : evaluator(std::make_unique<Evaluator>(sources, dims, sink, limits)) {
  main_ = sources.add("main.model", "language 1\n" + std::string(text));
}

Session& Session::file(std::string name, std::string_view text) {
  sources.add(std::move(name), "language 1\n" + std::string(text));
  return *this;
}

Session& Session::import_path(std::string folder) {
  options_.import_paths.push_back(std::move(folder));
  return *this;
}

bool Session::load(bool may_fail) {
  if (!imports) imports = load_imports(sources, main_, options_, sink);
  if (!may_fail) {
    INFO(messages());
    REQUIRE(imports);
  }
  return imports != nullptr;
}

const Symbol& Session::symbol(std::string_view name) {
  load();
  const Symbol* found = find_symbol(imports->main(), name).symbol;
  REQUIRE(found != nullptr);
  return *found;
}

Environment Session::environment() {
  load();
  return Environment(&imports->main());
}

const ast::Expr& Session::expression(std::string_view text) {
  const auto id = sources.add("expression " + std::to_string(expressions_.size()), std::string(text));
  auto parsed = syntax::parse_expr(id, sources, sink);
  INFO(messages());
  REQUIRE(parsed);
  expressions_.push_back(std::move(parsed));
  return *expressions_.back();
}

Value Session::eval(std::string_view expr, const std::vector<std::pair<std::string, std::string>>& lets) {
  Environment env = environment();
  for (const auto& [name, text] : lets) env.define(name, evaluator->eval(expression(text), env), {});
  return evaluator->eval(expression(expr), env);
}

Value Session::bind(std::string_view config, std::string_view json, std::vector<ConfigInput::Override> overrides, std::string folder) {
  auto tree = parse_json(json, {.name = "config.json"});
  if (!tree) FAIL(tree.error().text());
  ConfigInput input;
  input.tree = std::move(*tree);
  input.overrides = std::move(overrides);
  input.folder = std::move(folder);
  return bind_config(*evaluator, symbol(config), input, notes);
}

std::string Session::bind_errors(std::string_view config, std::string_view json, std::vector<ConfigInput::Override> overrides) {
  const Value value = bind(config, json, std::move(overrides));
  CHECK(value.is_error() == sink.has_errors());
  return messages();
}

std::string Session::messages() const {
  diag::RenderOptions options;
  options.limit = 0;
  return diag::render(sink, sources, options);
}

std::string Session::codes() const {
  std::string out;
  for (const diag::Diagnostic& d : sink.diagnostics()) out += (out.empty() ? "" : " ") + std::string(d.code->text);
  return out;
}

std::string field_text(const Value& config, std::string_view name) {
  REQUIRE(config.is(ValueKind::config));
  const ConfigField* field = config.as_config().find(name);
  REQUIRE(field != nullptr);
  return show(field->value);
}

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace modelc::sema::test

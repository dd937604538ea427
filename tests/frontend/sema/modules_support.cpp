#include "modules_support.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "frontend/diagnostics/render.h"
#include "frontend/graph/printer.h"
#include "frontend/graph/verifier.h"

namespace modelc::sema::test {

Model::Model(std::string_view text) {
  main_ = sources_->add("main.model", "language 1\n" + std::string(text));
  options_.library = MODELC_SOURCE_DIR "/stdlib";
}

Model& Model::file(std::string name, std::string_view text) {
  sources_->add(std::move(name), "language 1\n" + std::string(text));
  return *this;
}

Model& Model::config(std::string_view json) {
  auto tree = parse_json(json, {.name = "config.json"});
  if (!tree) FAIL(tree.error().text());
  config_.emplace();
  config_->tree = std::move(*tree);
  config_->text = sources_->add("config.json", std::string(json));
  return *this;
}

Model& Model::root(std::string expression) {
  options_.root = std::move(expression);
  return *this;
}

const std::optional<Program>& Model::program() {
  if (ran_) return program_;
  ran_ = true;
  imports_ = load_imports(*sources_, main_, options_, sink);
  if (imports_ == nullptr) return program_;
  program_ = analyze(*sources_, imports_, config_ ? &*config_ : nullptr, options_, sink);
  CHECK_FALSE((program_.has_value() && sink.has_errors()));
  if (!program_) return program_;
  for (const std::string& fault : graph::verify(program_->graph)) FAIL_CHECK(fault);
  return program_;
}

const Program& Model::good() {
  program();
  const std::string said = messages();
  if (!said.empty()) FAIL(said);
  REQUIRE(program_.has_value());
  return *program_;
}

std::string Model::graph() { return graph::print(good().graph, {.places = false}); }

std::string Model::part(std::string_view name) {
  const std::string all = graph();
  const std::size_t dot = name.find('.');
  const std::string head = "\nclass " + std::string(name.substr(0, dot)) + ":";
  std::size_t begin = all.find(head);
  if (begin == std::string::npos) FAIL("no class " << name << " in\n" << all);
  std::string text = all.substr(begin + 1, all.find("\n}", begin) + 2 - begin);
  if (dot == std::string_view::npos) return text;
  const std::string function(name.substr(dot + 1));
  for (const std::string kind : {"forward ", "entry ", "init "}) {
    begin = text.find("\n  " + kind + function + "(");
    if (begin != std::string::npos) return text.substr(begin + 1, text.find("\n  }", begin) + 4 - begin);
  }
  FAIL("no function " << name << " in\n" << text);
  return "";
}

std::string Model::messages() {
  program();
  diag::RenderOptions options;
  options.limit = 0;
  return diag::render(sink, *sources_, options);
}

std::string Model::codes() {
  program();
  std::string out;
  for (const diag::Diagnostic& d : sink.diagnostics()) out += (out.empty() ? "" : " ") + std::string(d.code->text);
  return out;
}

std::string text_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) FAIL("cannot read " << path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::string around(std::string_view fields, std::string_view members, std::string_view before) {
  return "import nn.linear\nimport nn.norm\nimport nn.embedding\nimport nn.mlp\n" + std::string(before) + "\nconfig C { " +
         std::string(fields) + " }\nmodel M(c: C) { " + std::string(members) + " }\n";
}

std::int64_t parameters(const graph::Module& module) {
  std::int64_t total = 0;
  for (const graph::WeightInstance& weight : graph::weight_instances(module)) {
    bool given = weight.decl->default_value.has_value();
    for (const auto& alias : module.checkpoints[0].aliases) { given = given || (alias.weight == weight.name && alias.when.empty()); }
    if (given) continue;
    std::int64_t n = 1;
    for (const graph::DimId dim : weight.decl->type.shape) n *= *module.dims.value(dim);
    total += n;
  }
  return total;
}

}  // namespace modelc::sema::test

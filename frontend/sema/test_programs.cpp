#include "frontend/sema/test_programs.h"

#include <algorithm>

#include "frontend/sema/imports.h"
#include "frontend/sema/occasion.h"
#include "frontend/sema/symbols.h"

namespace modelc::sema {

namespace code = diag::code;

namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string s = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + "]";
}

// The element type of an input as it is declared: "f32", "u8", "index(n)"; the compute dtype is f32 here.
std::string element_text(const ast::Type& type, const source::SourceManager& sources) {
  if (const auto* index = ast::try_as<ast::IndexType>(type))
    return "index" + (index->bound ? "(" + std::string(sources.text(index->bound->span)) + ")" : "");
  if (const auto* named = ast::try_as<ast::NamedType>(type)) return named->path.text();
  return "f32";
}

}  // namespace

std::optional<Program> inputs_program(source::SourceManager& sources, const std::shared_ptr<Imports>& imports, const ConfigInput* config,
                                      std::span<const ast::InputTestItem* const> items, const Options& options, diag::Sink& sink) {
  Occasion occasion{"the test's inputs", "module Inputs(", {}, {}};
  for (std::size_t i = 0; i < items.size(); ++i) {
    // Names of inputs may be anything; those of the parameters are ours.
    occasion.fns.emplace_back("given_" + std::to_string(i), items[i]->value.get());
    occasion.text += (i ? ", " : "") + occasion.fns.back().first + ": fn";
  }
  occasion.text += ") { forward() { return ";
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i) occasion.text += ", ";
    occasion.append("tensor(" + occasion.fns[i].first + "())", items[i]->value->span);
  }
  occasion.text += " } }";
  Options with = options;
  with.occasion = &occasion;
  auto program = analyze(sources, imports, config, with, sink);
  if (!program) return std::nullopt;
  for (graph::Function& f : program->graph.classes[program->graph.root.index].functions)
    for (std::size_t i = 0; i < items.size() && i < f.result_names.size(); ++i) f.result_names[i] = items[i]->name.text;
  return program;
}

std::optional<Program> op_program(source::SourceManager& sources, const std::shared_ptr<Imports>& imports, const ast::OpTestItem& item,
                                  std::span<const GivenShape> given, const Options& options, diag::Sink& sink) {
  const FileSymbols& main = imports->main();
  bool failed = false;
  const Symbol* symbol = resolve(main, item.name.text, item.name.span, sink, failed);
  if (failed) return std::nullopt;
  if (symbol == nullptr || symbol->kind != SymbolKind::op) {
    std::vector<std::string> names;
    symbol_names(main, names);
    std::erase_if(names, [&](const std::string& n) {
      const Symbol* s = find_symbol(main, n).symbol;
      return s == nullptr || s->kind != SymbolKind::op;
    });
    sink.error(code::unknown_name, item.name.span,
               symbol == nullptr ? "no operation `" + item.name.text + "` is declared here"
                                 : "`" + item.name.text + "` is a " + std::string(word(*symbol)) + ", and no operation of the file")
        .help(names.empty() ? "an operation is declared by `op " + item.name.text + "(…) -> … { reference … }`"
                            : diag::did_you_mean(item.name.text, names));
    return std::nullopt;
  }
  const auto& decl = ast::as<ast::OpDecl>(*symbol->decl);
  for (const GivenShape& g : given) {
    const auto same = [&](const ast::Param& p) { return p.name.text == g.name; };
    if (std::any_of(decl.params.begin(), decl.params.end(), same)) continue;
    std::vector<std::string> names;
    for (const ast::Param& p : decl.params) names.push_back(p.name.text);
    sink.error(code::wrong_arguments, g.place, "the operation `" + symbol->name + "` has no input `" + g.name + "`")
        .label(symbol->span, "declared here")
        .help(diag::did_you_mean(g.name, names));
    failed = true;
  }
  Occasion occasion{"the test's call", "module Operation() { forward(", {}, {}};
  occasion.places.push_back({0, 0, item.name.span});
  std::string arguments;
  for (const ast::Param& param : decl.params) {
    const auto shape = std::find_if(given.begin(), given.end(), [&](const GivenShape& g) { return g.name == param.name.text; });
    if (shape == given.end()) {
      if (param.default_value) continue;
      sink.error(code::wrong_arguments, item.name.span, "the input `" + param.name.text + "` of `" + symbol->name + "` is given no numbers")
          .label(param.span, "declared here")
          .help("write `input " + param.name.text + " = …`");
      failed = true;
      continue;
    }
    if (!arguments.empty()) occasion.text += ", ";
    occasion.append(param.name.text + ": " + element_text(*param.type, sources) + shape_text(shape->shape), shape->place);
    arguments += (arguments.empty() ? "" : ", ") + param.name.text + ": ";
    arguments += param.name.text;
  }
  if (failed) return std::nullopt;
  occasion.text += ") { return ";
  // Messages about an argument are about its numbers.
  const std::size_t begin = occasion.text.size();
  occasion.text += symbol->name + "(";
  for (std::size_t at = 0; at < arguments.size();) {
    const std::size_t comma = std::min(arguments.find(", ", at), arguments.size());
    const std::string one = arguments.substr(at, comma - at);
    const std::string name = one.substr(0, one.find(':'));
    const auto shape = std::find_if(given.begin(), given.end(), [&](const GivenShape& g) { return g.name == name; });
    if (at > 0) occasion.text += ", ";
    occasion.append(one, shape->place);
    at = comma + 2;
  }
  occasion.places.push_back({begin, occasion.text.size() + 1, item.name.span});
  occasion.text += ") } }";
  Options with = options;
  with.occasion = &occasion;
  auto program = analyze(sources, imports, nullptr, with, sink);
  if (!program) return std::nullopt;
  program->graph.name = symbol->name;
  const auto is_input = [&](const std::string& name) {
    return std::any_of(decl.params.begin(), decl.params.end(), [&](const ast::Param& p) { return p.name.text == name; });
  };
  for (graph::Function& f : program->graph.classes[program->graph.root.index].functions)
    for (std::size_t i = 0; i < f.result_names.size(); ++i) {
      f.result_names[i] = decl.result.size() > i && decl.result[i].name ? decl.result[i].name->text
                          : f.result_names.size() == 1                  ? "result"
                                                                        : "result_" + std::to_string(i + 1);
      while (is_input(f.result_names[i])) f.result_names[i] += "_";   // one file holds both
    }
  return program;
}

}  // namespace modelc::sema

// The front end from parsed files to a graph: which model, which configuration, then instances, functions, rules.
#include "frontend/sema/analyze.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <unordered_map>

#include "frontend/graph/members.h"
#include "frontend/sema/checkpoint_rules.h"
#include "frontend/sema/config.h"
#include "frontend/sema/definitions.h"
#include "frontend/sema/evaluator.h"
#include "frontend/sema/imports.h"
#include "frontend/sema/instances.h"
#include "frontend/sema/module_def.h"
#include "frontend/sema/occasion.h"
#include "frontend/sema/resolved.h"
#include "frontend/sema/sections.h"
#include "frontend/syntax/parser.h"

namespace modelc::sema {

namespace code = diag::code;

namespace {

// What stands before an occasion's text to make a file of it.
constexpr std::string_view occasion_prefix = "language 1\n";

// Messages of a text that is looked at for several instances say one cause once: a code at one place.
class OncePerPlace {
 public:
  OncePerPlace(diag::Sink& into) : into_(into) {}
  ~OncePerPlace() { flush(); }
  OncePerPlace(const OncePerPlace&) = delete;
  OncePerPlace& operator=(const OncePerPlace&) = delete;

  diag::Sink& sink() { return sink_; }

  // What stands unused is no news where a mistake was found: often the mistake is that it is not reached.
  void flush(const Occasion* occasion = nullptr, source::FileId text = {}) {
    const bool wrong = sink_.has_errors();
    for (diag::Diagnostic d : sink_.diagnostics()) {
      if (occasion != nullptr) {
        const auto of_text = [&](const diag::Label& l) { return l.span.valid() && l.span.file == text; };
        if (d.primary.valid() && d.primary.file == text) d.primary = occasion->place(d.primary.begin - occasion_prefix.size());
        std::erase_if(d.labels, of_text);
      }
      if (wrong && d.code == &code::unused_member) continue;
      if (d.primary.valid() && !seen_.emplace(d.code, d.primary).second) continue;
      // A name that a file does not know is one mistake, however often it stands there.
      if (d.code == &code::unknown_name && d.primary.valid() && !unknown_.emplace(d.primary.file, d.message).second) continue;
      auto message = d.primary.valid() ? into_.report(*d.code, d.primary, d.message) : into_.report(*d.code, d.place, d.message);
      if (!d.primary_label.empty()) message.mark(d.primary_label);
      for (const diag::Label& label : d.labels) message.label(label.span, label.text);
      for (const std::string& note : d.notes) message.note(note);
      if (!d.help.empty()) message.help(d.help);
    }
    sink_.clear();
  }

 private:
  diag::Sink& into_;
  diag::Sink sink_;
  std::set<std::pair<const diag::Code*, source::Span>> seen_;
  std::set<std::pair<source::FileId, std::string>> unknown_;     // names, by the message of each
};

class Analysis {
 public:
  Analysis(source::SourceManager& sources, const Imports& imports, const ConfigInput* config, const Options& options, diag::Sink& sink)
      : sources_(sources),
        imports_(imports),
        config_(config),
        options_(options),
        once_(sink),
        evaluator_(sources, program_.graph.dims, once_.sink()),
        defs_(once_.sink()) {
    evaluator_.set_finder([this](const std::string& name) { return import_that_declares(imports_, options_, name); });
  }

  std::optional<Program> run() {
    selected_ = check_definitions(evaluator_, defs_, imports_);
    const Symbol* model = find_model();
    const auto recipe = options_.occasion != nullptr ? occasion_recipe(model) : options_.root ? root_recipe(model) : model_recipe(model);
    if (recipe) build(*recipe, model);
    const bool ok = recipe && built_ && !sink().has_errors();
    once_.flush(options_.occasion, occasion_text_);
    if (!ok) return std::nullopt;
    finish();
    return std::move(program_);
  }

 private:
  diag::Sink& sink() { return once_.sink(); }
  const FileSymbols& main() const { return imports_.main(); }
  // Whether something else than the file's model is the root.
  bool other_root() const { return options_.root.has_value() || options_.occasion != nullptr; }

  // The file's one model; null where there is none (which is a mistake only without --root).
  const Symbol* find_model() {
    const Symbol* found = nullptr;
    for (const ast::ItemPtr& item : main().ast->decls) {
      const auto* module = ast::try_as<ast::ModuleDecl>(*item);
      if (module == nullptr || !module->is_model) continue;
      const Symbol* symbol = main().own(module->name.text);
      if (symbol == nullptr || symbol->decl != item.get()) continue;
      if (found != nullptr && !other_root()) {
        sink()
            .error(code::no_model, symbol->span, main().name + " declares two models, `" + found->name + "` and `" + symbol->name + "`")
            .label(found->span, "the first")
            .help("keep one to a file, or name one with --root");
        return nullptr;
      }
      if (found == nullptr) found = symbol;
    }
    const auto misplaced = [](const diag::Diagnostic& d) { return d.code == &code::misplaced_member; };
    const auto& said = sink().diagnostics();
    if (found == nullptr && !other_root() && config_ != nullptr && std::none_of(said.begin(), said.end(), misplaced)) {
      sink()
          .error(code::no_model, main().name, "there is no `model` in " + main().name)
          .help("a module of it can be taken alone: --root \"Name(arguments)\"");
    }
    return found;
  }

  // The configurations that a model takes, by its parameters; nothing when one cannot be had.
  std::optional<std::vector<Argument>> bind_configs(const Symbol& model) {
    std::vector<Argument> arguments;
    const auto& decl = ast::as<ast::ModuleDecl>(*model.decl);
    bool ok = true;
    for (const ast::Param& param : decl.params) {
      const auto* type = ast::try_as<ast::NamedType>(param.type);
      bool failed = false;
      const Symbol* symbol = type == nullptr ? nullptr : resolve(*model.file, type->path.parts.front().text, type->span, sink(), failed);
      const bool misspelt = symbol == nullptr && type != nullptr && !is_type_word(type->path.parts.front().text);
      if (misspelt || failed) {
        ok = false;  // said of the definition
        continue;
      }
      if (symbol == nullptr || symbol->kind != SymbolKind::config) {
        if (param.default_value) continue;
        sink()
            .error(code::wrong_type, param.span,
                   "the parameter `" + param.name.text + "` of the model `" + model.name +
                       "` is no configuration: nothing could give it a value")
            .help("a model takes configs; give other parameters a default");
        ok = false;
        continue;
      }
      if (config_ == nullptr) {
        ok = false;
        continue;
      }
      Value value = bind_config(evaluator_, *symbol, *config_, program_.notes);
      ok = ok && !value.is_error();
      configs_.push_back(value);
      Argument argument;
      argument.name = param.name.text;
      argument.value = std::move(value);
      argument.span = argument.name_span = param.name.span;
      arguments.push_back(std::move(argument));
    }
    if (!ok) return std::nullopt;
    return arguments;
  }

  std::optional<Recipe> model_recipe(const Symbol* model) {
    if (model == nullptr) return std::nullopt;
    auto arguments = bind_configs(*model);
    if (!arguments) return std::nullopt;
    Environment scope(model->file);
    auto bound =
        evaluator_.bind(ast::as<ast::ModuleDecl>(*model->decl).params, *arguments, "the model `" + model->name + "`", model->span, scope);
    if (!bound) return std::nullopt;
    return Recipe{model, true, std::move(*bound), model->span};
  }

  // What the model is made of when a module of its file is the root: it says how long sequences get.
  std::optional<Recipe> around_;

  // --root "Linear(5, 10)": an expression in the main file, which sees the model's configurations by their names.
  std::optional<Recipe> root_recipe(const Symbol* model) {
    const source::FileId text = sources_.add("--root", *options_.root);
    const ast::ExprPtr expr = syntax::parse_expr(text, sources_, sink());
    if (!expr) return std::nullopt;
    Environment env(&main());
    if (model != nullptr && config_ != nullptr) {
      const auto arguments = bind_configs(*model);
      if (!arguments) return std::nullopt;
      Environment scope(model->file);
      const auto& params = ast::as<ast::ModuleDecl>(*model->decl).params;
      if (auto bound = evaluator_.bind(params, *arguments, "the model `" + model->name + "`", model->span, scope)) {
        around_ = Recipe{model, true, std::move(*bound), model->span};
      }
      for (const Argument& argument : *arguments) env.define(std::string(argument.name), argument.value, argument.span);
    }
    const Value value = evaluator_.eval(*expr, env);
    root_exprs_.push_back(std::unique_ptr<ast::Expr>(const_cast<ast::ExprPtr&>(expr).release()));
    if (value.is_error()) return std::nullopt;
    if (!value.is(ValueKind::recipe) || !value.as_recipe().called) {
      sink().error(code::no_model, root_exprs_.back()->span, "--root takes a module with its arguments, not " + kind_name(value));
      return std::nullopt;
    }
    return value.as_recipe();
  }

  std::optional<Recipe> occasion_recipe(const Symbol* model) {
    const Occasion& occasion = *options_.occasion;
    occasion_text_ = sources_.add(occasion.name, std::string(occasion_prefix) + occasion.text);
    occasion_file_ = syntax::parse(occasion_text_, sources_, sink());
    if (occasion_file_ == nullptr || occasion_file_->decls.empty()) return std::nullopt;
    const auto* module = ast::try_as<ast::ModuleDecl>(*occasion_file_->decls.front());
    if (module == nullptr) return std::nullopt;
    occasion_symbol_ = {SymbolKind::module, module->name.text, module, &main(), module->name.span};
    Environment env(&main());
    if (model != nullptr && config_ != nullptr) {
      const auto arguments = bind_configs(*model);
      if (!arguments) return std::nullopt;
      for (const Argument& argument : *arguments) env.define(std::string(argument.name), argument.value, argument.span);
    }
    static const std::vector<ast::Name> none;
    Recipe recipe{&occasion_symbol_, true, {}, module->name.span};
    for (const auto& [name, expr] : occasion.fns)
      recipe.arguments.emplace_back(name, Value::closure(Closure{name, &none, expr, nullptr, env, expr->span}));
    return recipe;
  }

  void build(const Recipe& recipe, const Symbol* model) {
    Instances instances(evaluator_, defs_, program_.graph, selected_);
    instances.extensions = options_.extensions;
    const ModuleDef* def = defs_.get(*recipe.symbol);
    Instance* instance = def == nullptr ? nullptr : instances.instance(recipe);
    if (instance == nullptr) return;
    // Positions are bounded by it, so it is known before any function is.
    const Instance* longest = around_ && !def->context ? instances.instance(*around_) : instance;
    if (longest != nullptr && longest->def.context && !context(*longest)) return;
    for (const auto& section : def->sections)
      if (section.item->kind == ast::ItemKind::policy) instances.keep_casts = true;
    ClassInfo* root = instances.make(recipe, true);
    if (root == nullptr) return;
    program_.graph.root = root->id;
    program_.graph.name = recipe.symbol->name;
    program_.graph.file = main().name;
    if (!def->has_method()) {
      sink().error(code::no_forward, recipe.symbol->span,
                   "the " + std::string(word(*recipe.symbol)) + " `" + recipe.symbol->name + "` has no forward");
    }
    instances.finish();
    check_paths(instances);
    CheckpointRulesReader(instances).read(*root);
    check_sections(instances, *root, imports_, program_.notes, program_.facts);
    program_.notes.insert(program_.notes.end(), instances.kernel_notes.begin(), instances.kernel_notes.end());
    shader_paths_ = std::move(instances.shader_paths);
    if (!other_root() && model != nullptr) {
      std::vector<Argument> arguments;
      for (const auto& [name, value] : recipe.arguments) {
        Argument argument;
        argument.name = name;
        argument.value = value;
        arguments.push_back(std::move(argument));
      }
      evaluator_.touch(ast::as<ast::ModuleDecl>(*model->decl), *model->file, arguments);
      if (!sink().has_errors()) {
        for (const Value& config : configs_) report_unread_fields(evaluator_, config, model->name);
      }
    }
    config_facts();
    built_ = true;
  }

  bool context(const Instance& instance) {
    const auto& member = *instance.def.context;
    const Value value = evaluator_.eval(*member.item->value, instance.environment(member.level));
    if (value.is_error()) return false;
    if (!value.is(ValueKind::integer) || value.as_int() < 1) {
      sink().error(code::wrong_type, member.item->value->span,
                   "`context` is the longest sequence, a whole number of at least 1, not " +
                       (value.is_number() ? show_formula(value) : kind_name(value)));
      return false;
    }
    program_.graph.context = value.as_int();
    return true;
  }

  // The word at a place.
  source::Span word_at(const graph::Where& where) const {
    const auto file = sources_.find(where.file);
    if (!file || where.line <= 0) return {};
    const std::string_view text = sources_.text(*file);
    const std::uint32_t begin =
        sources_.line_begin(*file, static_cast<std::uint32_t>(where.line)) + static_cast<std::uint32_t>(where.column) - 1;
    std::uint32_t end = begin;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
    return {*file, begin, end};
  }

  // Whole names of weights: each once.
  void check_paths(Instances& instances) {
    if (instances.info(program_.graph.root)->instances > Instances::max_instances) return;
    std::unordered_map<std::string, graph::Where> names;
    for (const graph::WeightInstance& weight : graph::weight_instances(program_.graph)) {
      const auto [it, fresh] = names.emplace(weight.name, weight.use);
      if (fresh) continue;
      sink()
          .error(code::path_collision, word_at(weight.use), "two weights have the path `" + weight.name + "`")
          .label(word_at(it->second), "the other is asked for here")
          .help("give one of them, or a module around it, another path with `at`");
    }
  }

  void config_facts() {
    for (const Value& config : configs_) {
      if (!config.is(ValueKind::config)) continue;
      for (const ConfigField& field : config.as_config().fields) {
        if (field.decl == nullptr) continue;
        graph::ConfigFact fact;
        fact.name = field.name;
        fact.type = collapsed(sources_.text(field.decl->type->span));
        switch (field.value.kind()) {
          case ValueKind::integer: fact.value = field.value.as_int(); break;
          case ValueKind::real: fact.value = field.value.as_real(); break;
          case ValueKind::boolean: fact.value = field.value.as_bool(); break;
          case ValueKind::string: fact.value = field.value.as_string(); break;
          default: continue;
        }
        program_.graph.config.push_back(std::move(fact));
      }
    }
  }

  void finish() {
    program_.tests = tests_of(imports_);
    program_.files = imports_.paths();
    program_.files.insert(program_.files.end(), shader_paths_.begin(), shader_paths_.end());
    program_.resolved = resolved_text(program_.graph);
  }

  source::SourceManager& sources_;
  const Imports& imports_;
  std::vector<std::string> shader_paths_;
  const ConfigInput* config_;
  const Options& options_;
  Program program_;
  OncePerPlace once_;
  std::vector<std::unique_ptr<ast::Expr>> root_exprs_;
  source::FileId occasion_text_;
  std::unique_ptr<ast::File> occasion_file_;
  Symbol occasion_symbol_;
  Evaluator evaluator_;
  ModuleDefs defs_;
  std::vector<Value> configs_;
  std::set<std::string, std::less<>> selected_;              // names behind a dot
  bool built_ = false;
};

}  // namespace

std::optional<Program> analyze(source::SourceManager& sources, const std::shared_ptr<Imports>& imports, const ConfigInput* config,
                               const Options& options, diag::Sink& sink) {
  if (imports == nullptr) return std::nullopt;
  return Analysis(sources, *imports, config, options, sink).run();
}

}  // namespace modelc::sema

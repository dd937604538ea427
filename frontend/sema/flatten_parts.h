// The parts of flatten.cpp: one class in three files. Private to flatten*.cpp.
//
//   flatten.cpp          what is needed, what it is called, a text with its names replaced
//   flatten_configs.cpp  which configs stay declarations, and their texts
//   flatten_modules.cpp  modules with what they inherit, checkpoint blocks joined
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frontend/graph/dims.h"
#include "frontend/sema/config.h"
#include "frontend/sema/evaluator.h"
#include "frontend/sema/imports.h"
#include "frontend/sema/module_def.h"

namespace modelc::sema {

class Flattener {
 public:
  Flattener(source::SourceManager& sources, const Imports& imports, diag::Sink& sink)
      : sources_(sources), imports_(imports), sink_(sink), evaluator_(sources, dims_, sink), modules_(sink) {}

  std::optional<std::string> run();

 private:
  using Names = std::set<std::string, std::less<>>;
  using Renames = std::map<std::string, std::string, std::less<>>;
  using Edits = std::vector<std::pair<source::Span, std::string>>;

  // Where a text stands: whose names it sees.
  struct Scope {
    const FileSymbols* file = nullptr;
    const Renames* params = nullptr;             // parameters of all levels: what they are called here
    const Names* own = nullptr;                  // members and fields beside the text, which hide declarations
    Names* used = nullptr;                       // gets those of `params` that the text uses
  };

  // What a pass goes by and the one after it knows better: it is read off the texts that were made.
  struct Decisions {
    std::map<const Symbol*, const Symbol*> merged_into;   // a config asked for as a type: the one config that passes there
    std::set<const Symbol*> kept;                         // … or several do: it stays, and they extend it
    std::set<const Symbol*> modules;                      // that have a text: what a rule `for` may speak of
    friend bool operator==(const Decisions&, const Decisions&) = default;
  };

  // flatten.cpp
  bool has_model() const;
  void write_texts();
  std::string joined() const;
  void need(const Symbol& symbol);
  void collect_names();
  bool is_free(const Symbol& symbol, const std::string& name) const;
  std::string name_of(const Symbol& symbol);
  std::string use(const Symbol& symbol);
  std::string text(source::Span span) const { return std::string(sources_.text(span)); }
  std::string copy(const Scope& scope, const ast::Item& item, std::optional<source::Span> part = std::nullopt, Edits edits = {});
  std::string declaration(const Symbol& symbol);
  std::string kernel_path(const FileSymbols& file, const std::string& path) const;

  // flatten_configs.cpp
  const Symbol& standing(const Symbol& symbol) const;
  const ConfigDef* kept_base(const Symbol& symbol);
  void decide_configs(Decisions& next);
  void note_config(const Symbol& config, const ast::Item& item, source::Span where);
  std::string config(const Symbol& symbol);

  // flatten_modules.cpp
  std::string module(const Symbol& symbol);
  const Renames& own_parameters(const Symbol& module);
  struct Given;
  std::vector<Given> base_parameters(const ModuleDef& def, Renames& called);
  std::vector<const Symbol*> present_of(const Symbol& type);
  source::Span widened(const ast::Expr& expr) const;
  std::string block(const ModuleDef& def, const CheckpointDef& checkpoint, const std::vector<Scope>& scopes);
  void rule_edits(const Scope& scope, const ast::Item& item, const std::vector<ast::RulePtr>& rules, Edits& edits, const Names& removed);

  source::SourceManager& sources_;
  const Imports& imports_;
  diag::Sink& sink_;
  graph::DimTable dims_;
  Evaluator evaluator_;
  ModuleDefs modules_;

  // Of the whole program: what a new name must not be (collect_names).
  Names locals_;                                          // names that some text declares for itself
  std::map<std::string, std::set<const FileSymbols*>, std::less<>> builtins_;   // names of the language, and the files that use them

  // Of a pass.
  std::map<const Symbol*, std::string> texts_;
  std::vector<std::string> tests_;
  std::map<const Symbol*, std::string> names_;
  Names taken_;
  std::set<const Symbol*> wanted_, bound_;                // configs asked for as types; those that a file is bound to
  Decisions decisions_;
  std::map<const Symbol*, Renames> own_parameters_;       // those of a module that are called otherwise here
};

// The `///` lines of a declaration or member.
std::string doc_lines(const std::string& doc, const std::string& indent);

}  // namespace modelc::sema

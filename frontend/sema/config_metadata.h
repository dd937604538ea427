// The lines `config { key = expr }` of a model's `checkpoint gguf` block, for both directions: a configuration from a
// file's metadata (config_metadata.cpp), and a file's metadata from a configuration (config_write.cpp).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/sema/imports.h"
#include "frontend/sema/module_def.h"
#include "frontend/syntax/ast.h"

namespace modelc::sema {

struct GgufConfigLines {
  const Symbol* model = nullptr;
  std::vector<ModuleDef::Level> levels;                    // of the model and its bases
  std::optional<ast::String> architecture;
  // Of each key the lines of the most derived block that has any: those with a condition, and the first without one.
  struct Line {
    const ast::Path* key;
    const ast::Expr* value;
    const ast::Expr* when;                                 // on the configuration: which of them a writer takes; may be null
    std::size_t level;                                     // of the model in whose block it stands, in ModuleDef::levels
  };
  std::vector<Line> lines;
  std::vector<const ast::Path*> ignored;
  std::vector<const ast::Expr*> every;                     // of overridden lines too: what they read is read
  source::Span where;                                      // of the first block with lines
};
// Of the main file's model; nothing where it has no such lines (said in the sink) or no sound definition (said by analyze).
std::optional<GgufConfigLines> gguf_config_lines(const Imports& imports, diag::Sink& sink);

// `arch.x` with the architecture's name.
std::string metadata_key(const std::string& path, const std::string& architecture);
// a.b.c as text; nothing for what is no chain of names.
std::optional<std::string> name_path(const ast::Expr& e);

}  // namespace modelc::sema

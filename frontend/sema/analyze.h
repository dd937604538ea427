// The front end as one function: a parsed .model file and a configuration in, a resolved and typed program out.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/diagnostics/diagnostics.h"
#include "frontend/graph/graph.h"
#include "frontend/source/source.h"
#include "frontend/syntax/ast.h"
#include "runtime/base/json.h"
#include "runtime/base/metadata.h"

namespace modelc::sema {

// One configuration: the tree of a config.json (or YAML), the name to use in messages, and what the command line says on top.
struct ConfigInput {
  Json tree;
  std::string name = "config.json";
  struct Override {
    std::string key;
    Json value;
  };       // --set key.path=value, applied last and said in `notes`
  std::vector<Override> overrides;
  source::FileId text = {};                               // what `tree` was read from, for the marks of messages; may be none
  std::string unplaced = {};                              // what messages call a value that has no line in it; "" = `name`
  std::string folder;                                     // where `config X file "sub/other.json"` looks; "" = nowhere
};

struct Occasion;
struct Options {
  std::vector<std::string> import_paths;                  // searched after the importing file's own folder and its siblings
  std::string library = {};                               // the standard library's folder, searched last; "" = none
  std::optional<std::string> root;                        // one module instead of the model: "Linear(5, 10)"
  std::vector<std::string> extensions = {};               // folders whose C++ a custom operation may bring
  const Occasion* occasion = nullptr;                     // one that no file holds (occasion.h)
};

// A `test` block, its paths resolved against the file that holds it; its meaning is given by codegen/driver.
struct Test {
  const ast::TestDecl* decl = nullptr;
  std::string folder;
};

struct Program {
  graph::Module graph;
  std::vector<Test> tests;
  std::vector<std::string> files;                         // every file read, as real paths, for depfiles and caches
  std::vector<std::string> notes;                         // what the command line overrode, what takes effect later
  std::vector<std::string> facts;                         // what `check` says beside them: what the lines of `place` come to
  std::string resolved;                                   // `modelc dump --stage program`: one resolved text
};

// Every file of the closure of imports, parsed. Owns the ASTs, so it outlives a Program made from it.
class Imports;

// Parses `main` and what it imports. All syntax errors of all files are reported; null when there was one.
std::shared_ptr<Imports> load_imports(source::SourceManager&, source::FileId main, const Options&, diag::Sink&);

// Without a configuration only what does not depend on one is checked, and the result is none even when all is well.
std::optional<Program> analyze(source::SourceManager&, const std::shared_ptr<Imports>&, const ConfigInput* config, const Options&,
                               diag::Sink&);

// A weight file's metadata, and whether it holds a tensor.
struct FileMetadata {
  Metadata values;
  std::function<bool(std::string_view)> has_tensor;
  std::string name;                                       // "model.gguf", for messages
};
// The tree that config.json would be, by the model's `checkpoint gguf { config { … } }`; nothing when it cannot be made (in
// the sink).
std::optional<Json> config_of_metadata(const Imports&, const FileMetadata&, diag::Sink&);

// The test blocks of the main file, in order; known before any configuration is.
std::vector<Test> tests_of(const Imports&);

}  // namespace modelc::sema

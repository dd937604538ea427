// The files of a program: the main file and the closure of its imports, parsed and with their names declared.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "frontend/sema/analyze.h"
#include "frontend/sema/symbols.h"

namespace modelc::sema {

// Made by load_imports (analyze.h). `import a.b` is `a/b.model` in the folder of the importing file, then in the import
// paths, then in the library; `import a` also `a/a.model` in a folder beside the importing file's own, as examples lie.
// Owns trees and symbols: whoever keeps a Value, a Symbol or a Program made from them keeps this.
class Imports {
 public:
  const FileSymbols& main() const { return *main_; }
  // Every file read, a file after those that it imports; the main file is the last.
  const std::vector<const FileSymbols*>& in_order() const { return in_order_; }
  // The real paths of the files that have one, in the same order, each once.
  const std::vector<std::string>& paths() const { return paths_; }
  const FileSymbols* find(source::FileId file) const;
  // The folder of the main file; empty for a file from memory.
  const std::filesystem::path& folder() const { return folder_; }

 private:
  friend class ImportLoader;
  friend std::string import_that_declares(const Imports&, const Options&, const std::string& name);
  std::vector<std::unique_ptr<ast::File>> trees_;
  std::deque<FileSymbols> files_;
  std::vector<const FileSymbols*> in_order_;
  std::vector<std::string> paths_;
  std::filesystem::path folder_;
  const FileSymbols* main_ = nullptr;
};

// The path of the import that would make a name known: "nn.norm" for "RMSNorm"; "" where there is none. Looks at the files
// that were read, then at those in the import paths and the library, one folder deep.
std::string import_that_declares(const Imports& imports, const Options& options, const std::string& name);

}  // namespace modelc::sema

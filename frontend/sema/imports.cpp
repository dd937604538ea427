#include "frontend/sema/imports.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "frontend/syntax/parser.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t max_import_depth = 128;
constexpr std::size_t max_listed_files = 2000;  // looked at for "did you mean"
constexpr std::size_t max_searched_bytes = 1 << 20;

// "nn/attention.model"
std::string file_of(const ast::Path& path) {
  std::string file;
  for (const ast::Name& part : path.parts) {
    if (!file.empty()) file += '/';
    file += part.text;
  }
  return file + ".model";
}

// "nn/" of "nn/attention.model", "" of "llama.model".
std::string folder_of(std::string_view display_name) {
  const std::size_t slash = display_name.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(display_name.substr(0, slash + 1));
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error) && !fs::is_directory(path, error);
}

fs::path canonical_path(const fs::path& path) {
  std::error_code error;
  fs::path real = fs::weakly_canonical(path, error);
  return error ? path : real;
}

}  // namespace

// Depth first: a file is finished when all that it imports are.
class ImportLoader {
 public:
  ImportLoader(source::SourceManager& sources, const Options& options, diag::Sink& sink, Imports& imports)
      : sources_(sources), options_(options), sink_(sink), imports_(imports) {}

  bool load(source::FileId main) {
    imports_.folder_ = sources_.real_path(main).parent_path();
    imports_.main_ = visit(main);
    return imports_.main_ != nullptr && !failed_;
  }

 private:
  FileSymbols* visit(source::FileId id) {
    if (const auto known = by_id_.find(id); known != by_id_.end()) return known->second;
    std::unique_ptr<ast::File> tree = syntax::parse(id, sources_, sink_);
    by_id_[id] = nullptr;
    if (!tree) {
      failed_ = true;
      return nullptr;
    }
    FileSymbols& file = imports_.files_.emplace_back();
    file.id = id;
    file.name = sources_.display_name(id);
    file.ast = tree.get();
    imports_.trees_.push_back(std::move(tree));
    by_id_[id] = &file;
    const std::size_t errors = sink_.error_count();
    declare(file, sink_);
    if (sink_.error_count() != errors) failed_ = true;

    open_.push_back({&file, nullptr});
    for (const ast::Import& import : file.ast->imports) {
      open_.back().second = &import;
      add_import(file, import);
    }
    open_.pop_back();
    finished_.insert(&file);
    imports_.in_order_.push_back(&file);
    const fs::path& real = sources_.real_path(id);
    if (!real.empty()) imports_.paths_.push_back(real.string());
    return &file;
  }

  void add_import(FileSymbols& file, const ast::Import& import) {
    const std::string alias = import.alias ? import.alias->text : std::string();
    if (import.alias) check_alias(file, *import.alias);
    const auto id = find(file, import);
    if (!id) {
      failed_ = true;
      return;
    }
    if (const auto known = by_id_.find(*id); known != by_id_.end()) {
      if (known->second == nullptr) return;  // it has syntax errors, which have been said
      if (!finished_.contains(known->second)) return report_cycle(*known->second, import);
    } else if (open_.size() >= max_import_depth) {
      failed_ = true;
      sink_.error(diag::code::too_much_work, import.path.span,
                  "files import each other more than " + std::to_string(max_import_depth) + " deep");
      return;
    }
    if (const FileSymbols* imported = visit(*id)) file.imports.push_back({imported, alias, import.span});
  }

  void check_alias(const FileSymbols& file, const ast::Name& alias) {
    const Symbol* own = file.own(alias.text);
    const auto same =
        std::find_if(file.imports.begin(), file.imports.end(), [&](const ImportedFile& other) { return other.alias == alias.text; });
    if (own == nullptr && same == file.imports.end()) return;
    failed_ = true;
    sink_.error(diag::code::duplicate_name, alias.span, "`" + alias.text + "` names something else in this file")
        .label(own != nullptr ? own->span : same->span, "declared here")
        .help("give the import another name");
  }

  void report_cycle(const FileSymbols& target, const ast::Import& import) {
    failed_ = true;
    diag::Builder message =
        sink_.error(diag::code::import_cycle, import.path.span, "`import " + import.path.text() + "` closes a circle: " + circle(target));
    bool inside = false;
    for (const auto& [file, through] : open_) {
      inside = inside || file == &target;
      if (inside && through != &import) message.label(through->path.span, "on the way");
    }
    message.help("move what both files need to a third one");
  }

  std::string circle(const FileSymbols& target) const {
    std::string text;
    bool inside = false;
    for (const auto& [file, through] : open_) {
      inside = inside || file == &target;
      if (inside) text += file->name + " imports ";
    }
    return text + target.name;
  }

  // The file that the import means: beside the importing file; for a name of one part, as NAME/NAME.model in a folder
  // next to the importing file's own; in an import path; in the library. The first place that has it counts.
  std::optional<source::FileId> find(const FileSymbols& file, const ast::Import& import) {
    const std::string relative = file_of(import.path);
    const std::string own_folder = folder_of(file.name);
    const std::string beside = own_folder + relative;
    const std::string stem = import.path.parts.size() == 1 ? import.path.parts[0].text : std::string();
    const std::string sibling = stem.empty() ? std::string() : stem + "/" + relative;
    Searched searched;

    const fs::path folder = folder_on_disk(file);
    if (!folder.empty()) {
      if (is_file(folder / relative)) return load(folder / relative, beside, import);
      searched.add(folder, folder / relative);
    }
    for (const std::string& name : {beside, relative}) {
      if (const auto in_memory = find_in_memory(name)) return in_memory;
    }
    if (folder.empty()) searched.files.push_back(beside);
    if (!sibling.empty()) {
      const std::string display = folder_of(own_folder.substr(0, own_folder.empty() ? 0 : own_folder.size() - 1)) + sibling;
      if (!folder.empty() && folder.has_parent_path() && folder != folder.parent_path()) {
        const fs::path path = folder.parent_path() / sibling;
        if (is_file(path)) return load(path, display, import);
        searched.files.push_back(path.string());
      }
      if (const auto in_memory = find_in_memory(display)) return in_memory;
    }
    std::vector<std::pair<fs::path, std::string>> found;  // with the name to show
    for (const std::string& name : options_.import_paths) {
      for (const std::string& inner : {relative, sibling}) {
        if (inner.empty()) continue;
        const fs::path path = fs::path(name) / inner;
        if (!is_file(path)) {
          searched.add(inner == relative ? fs::path(name) : fs::path(), path);
        } else if (std::none_of(found.begin(), found.end(),
                                [&](const auto& other) { return canonical_path(other.first) == canonical_path(path); })) {
          found.emplace_back(path, inner);
        }
      }
    }
    if (found.size() > 1) {
      report_ambiguous(import, found);
      return std::nullopt;
    }
    if (found.size() == 1) return load(found[0].first, found[0].second, import);
    if (!options_.library.empty()) {
      const fs::path path = fs::path(options_.library) / relative;
      if (is_file(path)) return load(path, relative, import);
      searched.add(options_.library, path);
    }
    report_missing(import, relative, searched);
    return std::nullopt;
  }

  // Where was looked in vain, each place once, and the folders that could hold a file of a similar name.
  struct Searched {
    void add(const fs::path& folder, const fs::path& file) {
      if (std::find(files.begin(), files.end(), file.string()) != files.end()) return;
      files.push_back(file.string());
      if (!folder.empty()) folders.push_back(folder);
    }
    std::vector<std::string> files;
    std::vector<fs::path> folders;
  };

  // The folder of the file, absolute, so that it has a parent; empty for a file from memory.
  fs::path folder_on_disk(const FileSymbols& file) const {
    const fs::path& real = sources_.real_path(file.id);
    if (real.empty()) return {};
    std::error_code error;
    const fs::path absolute = fs::absolute(real, error).lexically_normal();
    return (error ? real : absolute).parent_path();
  }

  std::optional<source::FileId> find_in_memory(const std::string& name) const {
    const auto id = sources_.find(name);
    return id && sources_.real_path(*id).empty() ? id : std::nullopt;
  }

  void report_ambiguous(const ast::Import& import, const std::vector<std::pair<fs::path, std::string>>& found) {
    diag::Builder message =
        sink_.error(diag::code::import_ambiguous, import.path.span, "`import " + import.path.text() + "` means more than one file");
    for (const auto& [path, name] : found) message.note("found " + path.string());
    message.help("give one import path only that has it, or put the file beside the importing one");
  }

  std::optional<source::FileId> load(const fs::path& path, const std::string& display_name, const ast::Import& import) {
    const fs::path real = canonical_path(path);
    if (const auto known = by_path_.find(real.string()); known != by_path_.end()) return known->second;
    // The main file and files that someone else has loaded are known to the manager by their path alone.
    for (const auto& [id, symbols] : by_id_) {
      if (!sources_.real_path(id).empty() && canonical_path(sources_.real_path(id)) == real) { return by_path_[real.string()] = id; }
    }
    const auto id = diag::load_source(sources_, real, display_name, sink_, import.path.span);
    by_path_[real.string()] = id;
    return id;
  }

  void report_missing(const ast::Import& import, const std::string& relative, const Searched& searched) {
    diag::Builder message =
        sink_.error(diag::code::import_not_found, import.path.span, "no file " + relative + " for `import " + import.path.text() + "`");
    for (const std::string& place : searched.files) message.note("looked for " + place);
    const std::string wanted = import.path.text();
    if (const auto near = diag::nearest(wanted, candidates(import, searched.folders))) {
      message.help("did you mean `import " + *near + "`?");
    } else {
      message.help("put the file beside the importing one, or name its folder as an import path (-I)");
    }
  }

  // What could have been imported with a path of this many parts.
  std::vector<std::string> candidates(const ast::Import& import, const std::vector<fs::path>& folders) const {
    std::vector<std::string> names;
    std::string inner, prefix;  // "nn/", "nn."
    for (std::size_t i = 0; i + 1 < import.path.parts.size(); ++i) {
      inner += import.path.parts[i].text + "/";
      prefix += import.path.parts[i].text + ".";
    }
    const auto add = [&](std::string stem) { names.push_back(prefix + std::move(stem)); };
    for (std::uint32_t i = 0; i < sources_.size(); ++i) {
      const std::string& name = sources_.display_name(source::FileId{i});
      const fs::path path(name);
      if (path.extension() == ".model" && folder_of(name) == inner) add(path.stem().string());
    }
    for (const fs::path& folder : folders) {
      std::error_code error;
      fs::directory_iterator at(folder / inner, error);
      for (; !error && at != fs::directory_iterator() && names.size() < max_listed_files; at.increment(error)) {
        if (at->path().extension() == ".model") add(at->path().stem().string());
      }
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }

  source::SourceManager& sources_;
  const Options& options_;
  diag::Sink& sink_;
  Imports& imports_;
  std::map<source::FileId, FileSymbols*> by_id_;  // null: its syntax is wrong
  std::map<std::string, std::optional<source::FileId>> by_path_;
  std::vector<std::pair<const FileSymbols*, const ast::Import*>> open_;  // from main down to the file at hand
  std::set<const FileSymbols*> finished_;
  bool failed_ = false;
};

const FileSymbols* Imports::find(source::FileId file) const {
  for (const FileSymbols& symbols : files_) {
    if (symbols.id == file) return &symbols;
  }
  return nullptr;
}

std::shared_ptr<Imports> load_imports(source::SourceManager& sources, source::FileId main, const Options& options, diag::Sink& sink) {
  auto imports = std::make_shared<Imports>();
  if (!ImportLoader(sources, options, sink, *imports).load(main)) return nullptr;
  return imports;
}

std::vector<Test> tests_of(const Imports& imports) {
  std::vector<Test> tests;
  for (const ast::ItemPtr& item : imports.main().ast->decls) {
    if (const auto* test = ast::try_as<ast::TestDecl>(*item)) tests.push_back({test, imports.folder().string()});
  }
  return tests;
}

namespace {

// Whether a text has a declaration of this name at the beginning of a line. It need not parse: this is for advice.
bool declares(std::string_view text, const std::string& name) {
  for (std::string_view word : {"module", "fn", "config", "variant", "interface", "encoding", "op"}) {
    const std::string wanted = "\n" + std::string(word) + " " + name;
    for (std::size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted, at + 1)) {
      const std::size_t end = at + wanted.size();
      if (end == text.size() || (std::isalnum(static_cast<unsigned char>(text[end])) == 0 && text[end] != '_')) return true;
    }
  }
  return false;
}

// "nn.norm" of "nn/norm.model".
std::string import_path(std::string_view display_name) {
  std::string path(display_name.substr(0, display_name.size() - std::string_view(".model").size()));
  std::replace(path.begin(), path.end(), '/', '.');
  return path;
}

}  // namespace

std::string import_that_declares(const Imports& imports, const Options& options, const std::string& name) {
  for (const FileSymbols* file : imports.in_order_) {
    if (file != imports.main_ && file->own(name) != nullptr && file->name.ends_with(".model")) return import_path(file->name);
  }
  std::vector<std::string> roots = options.import_paths;
  if (!options.library.empty()) roots.push_back(options.library);
  std::size_t read = 0;
  for (const std::string& root : roots) {
    std::vector<std::string> names;  // "nn/norm.model"
    std::error_code error;
    fs::recursive_directory_iterator at(root, fs::directory_options::skip_permission_denied, error);
    for (; !error && at != fs::recursive_directory_iterator() && read < max_listed_files; at.increment(error), ++read) {
      if (at.depth() >= 1) at.disable_recursion_pending();
      const fs::path& path = at->path();
      std::error_code unknown;
      if (path.extension() != ".model" || !fs::is_regular_file(path, unknown)) continue;
      if (const auto size = fs::file_size(path, unknown); unknown || size > max_searched_bytes) continue;
      names.push_back(fs::path(path).lexically_relative(root).generic_string());
    }
    std::sort(names.begin(), names.end());
    for (const std::string& file : names) {
      std::ifstream in(fs::path(root) / file, std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
      if (declares(text, name)) return import_path(file);
    }
  }
  return {};
}

}  // namespace modelc::sema

// The whole compiler on any bytes: a .model text, a configuration and a root expression, up to the generated C++. What
// comes out is a program or messages; anything else (a crash, an exception, a graph that its own reader refuses, a
// formatter that changes a tree, a flattened model that is none) is a fault.
//
// An input is up to four texts between lines of `%%%`: the model, the configuration (JSON, or YAML unless it begins
// with `{`), the root (`Linear(4, 8)`), and the bytes of the files beside the model: x.h and x.comp, the host code and the
// shader of a custom operation, and x.json, a second configuration.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/emit/emit.h"
#include "codegen/lower/lower.h"
#include "codegen/plan/printer.h"
#include "codegen/plan/reader.h"
#include "codegen/plan/verifier.h"
#include "frontend/diagnostics/render.h"
#include "frontend/graph/printer.h"
#include "frontend/graph/reader.h"
#include "frontend/graph/verifier.h"
#include "frontend/sema/analyze.h"
#include "frontend/sema/flatten.h"
#include "frontend/syntax/dump.h"
#include "frontend/syntax/format.h"
#include "frontend/syntax/parser.h"
#include "frontend/syntax/printer.h"
#include "runtime/base/json.h"
#include "runtime/base/yaml.h"

namespace {

using namespace modelc;

constexpr std::string_view separator = "\n%%%\n";

// What must hold, whatever the input.
void require(bool holds, const char* what, const std::string& detail = {}) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n%s\n", what, detail.c_str());
  std::abort();
}

std::string_view take_part(std::string_view& rest) {
  const std::size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + separator.size());
  return part;
}

void check_messages(const diag::Sink& sink, const source::SourceManager& sources) {
  const std::string shown = diag::render(sink, sources) + diag::render_json(sink, sources);
  require(!source::find_text_problem(shown), "a message is not text", shown);
  for (const diag::Diagnostic& d : sink.diagnostics()) require(!d.message.empty(), "a message without text");
}

// A tree survives printing and reading again.
void check_tree(std::string_view text) {
  source::SourceManager sources;
  diag::Sink sink;
  const auto tree = syntax::parse(sources.add("tree.model", std::string(text)), sources, sink);
  if (tree == nullptr) return;
  const std::string dumped = syntax::dump(*tree);
  const auto printed = syntax::parse(sources.add("printed.model", syntax::print(*tree)), sources, sink);
  require(printed != nullptr && syntax::dump(*printed) == dumped, "printing changes a tree");
}

// The formatter keeps the tree, and leaves what it made as it is.
void check_format(std::string_view text, std::size_t columns) {
  source::SourceManager sources;
  diag::Sink sink;
  const source::FileId file = sources.add("loose.model", std::string(text));
  const auto tree = syntax::parse(file, sources, sink);
  const auto formatted = syntax::format(file, sources, sink, {.columns = columns});
  require((tree != nullptr) == formatted.has_value(), "the formatter and the parser differ in what is a file");
  if (!formatted) return;
  const source::FileId neat = sources.add("neat.model", *formatted);
  const auto again = syntax::format(neat, sources, sink, {.columns = columns});
  require(again == formatted, "formatting twice changes a text", *formatted);
  const auto same = syntax::parse(neat, sources, sink);
  require(same != nullptr && syntax::dump(*same) == syntax::dump(*tree), "formatting changes a tree", *formatted);
}

// A flattened model is a model by itself, of the same weights.
void check_flat(source::SourceManager& sources, const std::shared_ptr<sema::Imports>& imports, const sema::ConfigInput* config,
                const sema::Program* program) {
  diag::Sink sink;
  const auto text = sema::flatten(sources, imports, sink);
  require(text.has_value() != sink.has_errors(), "no flattened text and no message, or both");
  if (program != nullptr) require(text.has_value(), "a model that does not flatten", diag::render(sink, sources));
  if (!text) return;
  sema::Options alone;                            // no library: nothing is imported
  const auto flat = sema::load_imports(sources, sources.add("flat.model", *text), alone, sink);
  require(flat != nullptr, "a flattened model that does not parse", *text + diag::render(sink, sources));
  if (program == nullptr) return;
  const auto same = sema::analyze(sources, flat, config, alone, sink);
  require(same.has_value(), "a flattened model that does not check", *text + diag::render(sink, sources));
  const auto a = graph::weight_instances(program->graph), b = graph::weight_instances(same->graph);
  bool equal = a.size() == b.size();
  for (std::size_t i = 0; equal && i < a.size(); ++i) equal = a[i].name == b[i].name;
  require(equal, "a flattened model with other weights", *text);
}

// Files beside the model, in a folder that goes with the process.
const std::filesystem::path& folder_beside(std::string_view bytes) {
  struct Folder {
    std::filesystem::path path = std::filesystem::temp_directory_path() / ("modelc_fuzz_" + std::to_string(::getpid()));
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  for (const char* name : {"x.h", "x.comp", "x.json"})
    std::ofstream(folder.path / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return folder.path;
}

// A plan is one to its verifier, and survives printing and reading again.
void check_plan(const plan::Program& program, const emit::Options& names) {
  for (const std::string& fault : plan::verify(program)) require(false, "the verifier refuses a plan", fault);
  const std::string text = plan::print(program, true);
  const auto again = plan::read(text);
  require(static_cast<bool>(again), "the reader refuses a printed plan", again ? std::string() : again.error().text() + text);
  require(plan::print(*again, true) == text, "reading changes a plan", text);
  const auto made = emit::cpp(program, names), same = emit::cpp(*again, names);
  require(!made.empty() && made.size() == same.size(), "nothing emitted");
  for (std::size_t i = 0; i < made.size(); ++i) require(made[i].text == same[i].text, "a plan's text makes other C++", text);
}

// A graph is one to its verifier, and survives printing and reading again.
void check_graph(const graph::Module& module) {
  for (const std::string& fault : graph::verify(module)) require(false, "the verifier refuses a graph", fault);
  const std::string text = graph::print(module);
  const auto again = graph::read(text);
  require(static_cast<bool>(again), "the reader refuses a printed graph", again ? std::string() : again.error().text());
  require(graph::print(*again) == text, "reading changes a graph", text);
}

void compile(std::string_view model, std::string_view config, std::string_view root, std::string_view beside) {
  source::SourceManager sources;
  diag::Sink sink;
  sema::Options options;
  options.import_paths = {MODELC_SOURCE_DIR "/stdlib"};
  if (!root.empty()) options.root = std::string(root);
  std::filesystem::path folder;
  if (!beside.empty()) folder = folder_beside(beside);
  const source::FileId main = sources.add("main.model", std::string(model), folder.empty() ? folder : folder / "main.model");
  const auto imports = sema::load_imports(sources, main, options, sink);
  require((imports == nullptr) == sink.has_errors(), "no imports and no message, or both");
  if (imports == nullptr) return check_messages(sink, sources);

  std::optional<sema::ConfigInput> input;
  if (!config.empty()) {
    auto tree = config.front() == '{' ? parse_json(config, {.name = "config.json"}) : parse_yaml(config, {.name = "config.yaml"});
    if (tree) {
      input.emplace();
      input->tree = std::move(*tree);
      input->text = sources.add("config.json", std::string(config));
      input->folder = folder.string();
    } else {
      sink.error(diag::code::config_unreadable, "config.json", tree.error());
    }
  }
  const auto program = sema::analyze(sources, imports, input ? &*input : nullptr, options, sink);
  check_messages(sink, sources);
  const bool whole = program && root.empty() && !sink.has_errors();
  check_flat(sources, imports, input ? &*input : nullptr, whole ? &*program : nullptr);
  if (!program) return;
  if (config.empty() || input) require(!sink.has_errors(), "a program with errors", diag::render(sink, sources));
  check_graph(program->graph);

  const auto module = std::make_shared<const graph::Module>(program->graph);
  const lower::Lowered lowered = lower::lower(module);
  for (const lower::Failure& f : lowered.failures) require(!f.fault, "lowering is at fault", f.message);
  if (!lowered.failures.empty()) return;
  const emit::Options names{.file = "main", .class_name = module->name, .name_space = "main", .version = "0"};
  check_plan(lowered.program, names);
  require(!emit::manifest(lowered.program, names).text.empty(), "nothing emitted");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view model = take_part(rest), config = take_part(rest), root = take_part(rest), beside = rest;
  try {
    check_tree(model);
    check_format(model, 40 + size % 100);
    compile(model, config, root, beside);
  } catch (const std::exception& e) { require(false, "an exception leaves the compiler", e.what()); }
  return 0;
}

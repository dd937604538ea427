// The whole compiler on any bytes: a .model text, a configuration and a root expression, up to the generated C++. What
// comes out is a program or messages; anything else (a crash, an exception, a graph that its own reader refuses, a
// formatter that changes a tree) is a fault.
//
// An input is up to three texts between lines of `%%%`: the model, the configuration (JSON, or YAML unless it begins
// with `{`), the root (`Linear(4, 8)`).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/emit/emit.h"
#include "codegen/lower/lower.h"
#include "codegen/plan/printer.h"
#include "frontend/diagnostics/render.h"
#include "frontend/graph/printer.h"
#include "frontend/graph/reader.h"
#include "frontend/graph/verifier.h"
#include "frontend/sema/analyze.h"
#include "frontend/syntax/dump.h"
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

// A graph is one to its verifier, and survives printing and reading again.
void check_graph(const graph::Module& module) {
  for (const std::string& fault : graph::verify(module)) require(false, "the verifier refuses a graph", fault);
  const std::string text = graph::print(module);
  const auto again = graph::read(text);
  require(static_cast<bool>(again), "the reader refuses a printed graph", again ? std::string() : again.error().text());
  require(graph::print(*again) == text, "reading changes a graph", text);
}

void compile(std::string_view model, std::string_view config, std::string_view root) {
  source::SourceManager sources;
  diag::Sink sink;
  sema::Options options;
  options.import_paths = {MODELC_SOURCE_DIR "/stdlib"};
  if (!root.empty()) options.root = std::string(root);
  const source::FileId main = sources.add("main.model", std::string(model));
  const auto imports = sema::load_imports(sources, main, options, sink);
  require((imports == nullptr) == sink.has_errors(), "no imports and no message, or both");
  if (imports == nullptr) return check_messages(sink, sources);

  std::optional<sema::ConfigInput> input;
  if (!config.empty()) {
    auto tree = config.front() == '{' ? parse_json(config, {.name = "config.json"}) : parse_yaml(config, {.name = "config.yaml"});
    if (tree) {
      input.emplace();
      input->tree = std::move(*tree);
    } else {
      sink.error(diag::code::config_unreadable, "config.json", tree.error());
    }
  }
  const auto program = sema::analyze(sources, imports, input ? &*input : nullptr, options, sink);
  check_messages(sink, sources);
  if (!program) return;
  if (config.empty() || input) require(!sink.has_errors(), "a program with errors", diag::render(sink, sources));
  check_graph(program->graph);

  const auto module = std::make_shared<const graph::Module>(program->graph);
  const lower::Lowered lowered = lower::lower(module);
  for (const lower::Failure& f : lowered.failures) require(!f.fault, "lowering is at fault", f.message);
  if (!lowered.failures.empty()) return;
  require(!plan::print(lowered.program).empty(), "an empty plan");
  const emit::Options names{.file = "main", .class_name = module->name, .name_space = "main", .version = "0"};
  require(!emit::cpp(lowered.program, names).empty() && !emit::manifest(lowered.program, names).text.empty(), "nothing emitted");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view model = take_part(rest), config = take_part(rest), root = take_part(rest);
  try {
    check_tree(model);
    compile(model, config, root);
  } catch (const std::exception& e) {
    require(false, "an exception leaves the compiler", e.what());
  }
  return 0;
}

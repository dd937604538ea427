#include "tests/codegen/support.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "frontend/diagnostics/render.h"
#include "frontend/sema/analyze.h"
#include "frontend/source/source.h"

namespace modelc::test {

std::shared_ptr<const graph::Module> graph_of(const std::string& text, const std::string& config) {
  source::SourceManager sources;
  diag::Sink sink;
  const source::FileId file = sources.add("test.model", text);
  sema::Options options;
  options.library = MODELC_SOURCE_DIR "/stdlib";
  auto json = parse_json(config);
  REQUIRE(json.ok());
  sema::ConfigInput input;
  input.tree = std::move(*json);
  auto imports = sema::load_imports(sources, file, options, sink);
  if (!imports) FAIL(diag::render(sink, sources));
  auto program = sema::analyze(sources, imports, &input, options, sink);
  if (!program || sink.has_errors()) FAIL(diag::render(sink, sources));
  return std::make_shared<const graph::Module>(std::move(program->graph));
}

std::shared_ptr<const graph::Module> llama_graph(const std::string& changes) {
  std::stringstream text;
  text << std::ifstream(MODELC_SOURCE_DIR "/examples/llama/llama.model").rdbuf();
  auto config = read_json_file(MODELC_SOURCE_DIR "/examples/llama/fixtures/llama-tiny/config.json");
  REQUIRE(config.ok());
  auto with = parse_json(changes);
  REQUIRE(with.ok());
  for (const JsonMember& m : *with->as_object()) config->root.as_object()->set(m.key, m.value);
  return graph_of(text.str(), dump(config->root));
}

}  // namespace modelc::test

// Any bytes as config.json, bound to a model: the first byte, a digit, says which of `models`. Lines behind one of %%% are key=value,
// values in JSON, as --set gives them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/diagnostics/render.h"
#include "frontend/sema/analyze.h"
#include "runtime/base/json.h"
#include "runtime/base/strings.h"
#include "tests/fuzz/memory_file.h"

namespace {

using namespace modelc;

// Of what stands beside this file; the others are examples.
const std::string every = "config";

struct Parsed {
  source::SourceManager sources;
  sema::Options options;
  std::shared_ptr<sema::Imports> imports;
};

std::unique_ptr<Parsed> parse(const std::string& name) {
  auto p = std::make_unique<Parsed>();
  const std::string path =
      std::string(MODELC_SOURCE_DIR) + (name == every ? "/tests/fuzz/" + name : "/examples/" + name + "/" + name) + ".model";
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  p->options.library = MODELC_SOURCE_DIR "/stdlib";
  diag::Sink sink;
  p->imports = sema::load_imports(p->sources, p->sources.add(path, text.str()), p->options, sink);
  fuzz::require(p->imports != nullptr, "a model of the examples does not parse", diag::render(sink, p->sources));
  return p;
}

const std::vector<std::string> models = {"llama", "qwen3_moe", "gemma3_text", "qwen2", "bert", every};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static std::vector<std::unique_ptr<Parsed>> parsed(models.size());
  const std::size_t which = static_cast<std::uint8_t>(data[0] - '0') % models.size();
  if (!parsed[which]) parsed[which] = parse(models[which]);
  Parsed& p = *parsed[which];

  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t end = std::min(bytes.find("\n%%%\n"), bytes.size());
  auto tree = parse_json(bytes.substr(0, end), {.name = "config.json"});
  if (!tree) {
    fuzz::check_error(tree.error());
    return 0;
  }
  sema::ConfigInput input;
  input.tree = std::move(*tree);
  for (const std::string_view line : split(bytes.substr(std::min(end + 5, bytes.size())), '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == line.npos) continue;
    auto value = parse_json(line.substr(equals + 1), {.name = "--set"});
    if (value) input.overrides.push_back({std::string(line.substr(0, equals)), std::move(*value)});
  }
  diag::Sink sink;
  const auto program = sema::analyze(p.sources, p.imports, &input, p.options, sink);
  const std::string shown = diag::render(sink, p.sources) + diag::render_json(sink, p.sources);
  fuzz::require(is_utf8(shown), "a message that is not text", shown);
  fuzz::require(program.has_value() != sink.has_errors(), "a program with errors, or neither", shown);
  return 0;
}

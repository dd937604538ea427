// The graph that comes out of the examples, run by the reference evaluator on their fixtures, against the logits and
// stages that transformers computed.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "frontend/diagnostics/render.h"
#include "frontend/graph/eval/evaluator.h"
#include "frontend/graph/printer.h"
#include "frontend/graph/reader.h"
#include "frontend/graph/verifier.h"
#include "frontend/sema/analyze.h"
#include "modules_support.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/tensor_data.h"
#include "runtime/checkpoint/weight_data.h"

using namespace modelc;
namespace fs = std::filesystem;

namespace {

constexpr double bound = 1e-4;  // absolute, in f32 throughout

struct Checkpoint {
  std::shared_ptr<const CheckpointIndex> index;
  std::unique_ptr<CheckpointData> data;
};

Checkpoint open(const fs::path& path) {
  auto index = open_checkpoint(path.string());
  if (!index) FAIL(index.error().text());
  Checkpoint out;
  out.index = std::make_shared<const CheckpointIndex>(std::move(*index));
  out.data = std::make_unique<CheckpointData>(out.index);
  return out;
}

sema::Program program_of(const fs::path& model, const fs::path& folder) {
  source::SourceManager sources;
  diag::Sink sink;
  auto file = sources.load(model, model.filename().string());
  REQUIRE(file.ok());
  sema::Options options;
  options.library = MODELC_SOURCE_DIR "/stdlib";
  auto json = read_json_file((folder / "config.json").string());
  REQUIRE(json.ok());
  sema::ConfigInput config;
  config.tree = std::move(json->root);
  auto imports = sema::load_imports(sources, *file, options, sink);
  auto program = sema::analyze(sources, imports, &config, options, sink);
  if (!program) FAIL(diag::render(sink, sources));
  CHECK(sink.diagnostics().empty());
  for (const std::string& fault : graph::verify(program->graph)) FAIL_CHECK(fault);
  const std::string text = graph::print(program->graph);
  const auto again = graph::read(text);
  if (!again) FAIL(again.error().text());
  CHECK(graph::print(*again) == text);
  return std::move(*program);
}

double distance(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - b[i]);
    most = std::isnan(d) ? INFINITY : std::max(most, d);
  }
  return most;
}

// The weights as a load places them.
graph::eval::WeightSource source_of(const sema::Program& program, const Checkpoint& weights) {
  std::vector<MappingWeight> declared;
  std::map<std::string, std::size_t> at;
  for (const graph::WeightInstance& w : graph::weight_instances(program.graph)) {
    MappingWeight m;
    m.name = w.name;
    for (const graph::DimId d : w.decl->type.shape) m.shape.push_back(*program.graph.dims.value(d));
    m.has_default = w.decl->default_value.has_value();
    at.emplace(m.name, declared.size());
    declared.push_back(std::move(m));
  }
  const Mapping mapping = map_weights(declared, rules_for(program.graph.checkpoints, *weights.index), *weights.index, {});
  for (const Problem& p : mapping.problems) FAIL_CHECK(p.message);
  REQUIRE(mapping.problems.empty());
  return [=, &weights](const std::string& name, const graph::WeightDecl&) -> std::optional<std::vector<float>> {
    const WeightSource& source = mapping.sources[at.at(name)];
    if (source.kind == WeightSource::Kind::default_value) return std::nullopt;
    auto values = read_weight_f32(*weights.data, mapping, source, declared[at.at(name)].shape);
    REQUIRE(values.ok());
    return std::move(*values);
  };
}

void check(const fs::path& model, const fs::path& folder) {
  CAPTURE(folder.string());
  const sema::Program program = program_of(model, folder);
  const Checkpoint weights = open(folder);
  const Checkpoint expected = open(folder / "expected.safetensors");
  graph::eval::Evaluator evaluator(program.graph, source_of(program, weights));
  std::map<std::string, std::vector<float>> stages;
  evaluator.set_trace([&](const std::string& path, const graph::eval::Array& value) { stages[path] = value.reals; });

  const TensorInfo* ids = expected.index->find("input_ids");
  REQUIRE(ids != nullptr);
  const auto tokens = expected.data->read_i64(*ids);
  REQUIRE(tokens.ok());
  const bool batched = ids->shape.size() == 2;
  const std::int64_t rows = batched ? ids->shape[0] : 1;
  const std::int64_t length = batched ? ids->shape[1] : ids->shape[0];
  std::vector<graph::eval::Evaluator::Next> next;
  for (std::int64_t row = 0; row < rows; ++row) next.push_back({row, length});
  const auto batch = evaluator.batch(next, graph::eval::Outputs::all);
  REQUIRE(batch.ok());
  auto outputs = evaluator.run("forward", {{"input_ids", graph::eval::index_array({rows * length}, *tokens)}, {"at", *batch}});
  if (!outputs) FAIL(outputs.error().text());

  std::size_t compared = 0;
  for (const TensorInfo& tensor : expected.index->tensors()) {
    if (tensor.name == "input_ids") continue;
    CAPTURE(tensor.name);
    auto wanted = expected.data->read_f32(tensor);
    REQUIRE(wanted.ok());
    const auto output = std::find_if(outputs->begin(), outputs->end(), [&](const auto& o) { return o.name == tensor.name; });
    if (output != outputs->end()) {
      CHECK(distance(output->value.reals, *wanted) <= bound);
    } else {
      REQUIRE(stages.contains(tensor.name));
      CHECK(distance(stages[tensor.name], *wanted) <= bound);
    }
    ++compared;
  }
  CHECK(compared >= 3);
}

// The first sequence of the fixture in pieces of these many tokens, a second sequence that begins with the same tokens
// alongside, one token a call: both must come to the logits of the whole.
void check_pieces(const fs::path& model, const fs::path& folder, const std::vector<std::int64_t>& pieces) {
  CAPTURE(folder.string());
  const sema::Program program = program_of(model, folder);
  const Checkpoint weights = open(folder);
  const Checkpoint expected = open(folder / "expected.safetensors");
  graph::eval::Evaluator evaluator(program.graph, source_of(program, weights));
  const auto tokens = expected.data->read_i64(*expected.index->find("input_ids"));
  const auto wanted = expected.data->read_f32(*expected.index->find("logits"));
  REQUIRE(tokens.ok());
  REQUIRE(wanted.ok());
  const std::size_t vocab = wanted->size() / tokens->size();

  std::size_t done = 0, other = 0;
  for (const std::int64_t piece : pieces) {
    std::vector<std::int64_t> ids(tokens->begin() + static_cast<std::ptrdiff_t>(done),
                                  tokens->begin() + static_cast<std::ptrdiff_t>(done) + piece);
    ids.push_back((*tokens)[other]);
    const auto batch = evaluator.batch({{3, piece}, {1, 1}}, graph::eval::Outputs::all);
    REQUIRE(batch.ok());
    auto out = evaluator.run("forward", {{"input_ids", graph::eval::index_array({piece + 1}, ids)}, {"at", *batch}});
    if (!out) FAIL(out.error().text());
    const std::span<const float> got((*out)[0].value.reals), whole(*wanted);
    const std::size_t n = static_cast<std::size_t>(piece) * vocab;
    CHECK(distance(got.subspan(0, n), whole.subspan(done * vocab, n)) <= bound);
    CHECK(distance(got.subspan(n), whole.subspan(other * vocab, vocab)) <= bound);
    done += static_cast<std::size_t>(piece);
    ++other;
  }
}

}  // namespace

TEST_CASE("the examples compute what transformers does") {
  std::size_t folders = 0;
  for (const std::string name :
       {"llama", "qwen2", "qwen3", "qwen3_moe", "gemma3_text", "gpt_oss", "apertus", "mamba2", "deepseek_v3", "qwen3_next"}) {
    const fs::path example = fs::path(MODELC_SOURCE_DIR) / "examples" / name;
    for (const auto& entry : fs::directory_iterator(example / "fixtures")) {
      if (!fs::exists(entry.path() / "config.json") || !fs::exists(entry.path() / "expected.safetensors")) continue;
      check(example / (name + ".model"), entry.path());
      ++folders;
    }
  }
  CHECK(folders >= 20);
}

TEST_CASE("where a prompt is cut changes nothing: caches, rings and recurrent states") {
  const fs::path examples = fs::path(MODELC_SOURCE_DIR) / "examples";
  const std::vector<std::int64_t> pieces = {11, 2, 1, 1, 9};
  check_pieces(examples / "llama/llama.model", examples / "llama/fixtures/llama-tiny", pieces);
  check_pieces(examples / "mamba2/mamba2.model", examples / "mamba2/fixtures/mamba2-tiny", pieces);
  check_pieces(examples / "mamba2/mamba2.model", examples / "mamba2/fixtures/mamba2-limits", {1, 1, 1, 21});
  for (const char* name : {"deepseek-v3-dense", "deepseek-v3-experts"})
    check_pieces(examples / "deepseek_v3/deepseek_v3.model", examples / "deepseek_v3/fixtures" / name, pieces);
  for (const char* name : {"qwen3-next-dense", "qwen3-next-experts"})
    check_pieces(examples / "qwen3_next/qwen3_next.model", examples / "qwen3_next/fixtures" / name, pieces);
}

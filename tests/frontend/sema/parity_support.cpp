#include "parity_support.h"

#include <doctest/doctest.h>

#include <cmath>

#include "frontend/diagnostics/render.h"
#include "frontend/graph/verifier.h"
#include "runtime/base/json.h"

namespace modelc::sema::test {

namespace fs = std::filesystem;
using graph::eval::Array;
using graph::eval::Shape;

namespace {
const TensorInfo& found(const Checkpoint& in, const std::string& name) {
  const TensorInfo* tensor = in.index->find(name);
  CAPTURE(name);
  REQUIRE(tensor != nullptr);
  return *tensor;
}
Shape shape_of(const TensorInfo& tensor) { return {tensor.shape.begin(), tensor.shape.end()}; }
}  // namespace

Array Checkpoint::floats(const std::string& name) const {
  const TensorInfo& tensor = found(*this, name);
  auto values = data->read_f32(tensor);
  REQUIRE(values.ok());
  return graph::eval::array(shape_of(tensor), std::move(*values));
}

Array Checkpoint::integers(const std::string& name) const {
  const TensorInfo& tensor = found(*this, name);
  auto values = data->read_i64(tensor);
  REQUIRE(values.ok());
  return graph::eval::index_array(shape_of(tensor), {values->begin(), values->end()});
}

Array Checkpoint::booleans(const std::string& name) const {
  Array a = integers(name);
  for (std::int64_t& v : a.integers) v = v != 0;
  return graph::eval::bool_array(a.shape, a.integers);
}

Checkpoint open_fixture(const fs::path& path) {
  auto index = open_checkpoint(path.string());
  if (!index) FAIL(index.error().text());
  Checkpoint out;
  out.index = std::make_shared<const CheckpointIndex>(std::move(*index));
  out.data = std::make_unique<CheckpointData>(out.index);
  return out;
}

Program program_of(const fs::path& model, const fs::path& folder) {
  source::SourceManager sources;
  diag::Sink sink;
  auto file = sources.load(model, model.filename().string());
  REQUIRE(file.ok());
  Options options;
  options.import_paths = {MODELC_SOURCE_DIR "/stdlib"};
  auto json = read_json_file((folder / "config.json").string());
  REQUIRE(json.ok());
  ConfigInput config;
  config.tree = std::move(json->root);
  config.folder = folder.string();
  auto imports = load_imports(sources, *file, options, sink);
  auto program = analyze(sources, imports, &config, options, sink);
  if (!program) FAIL(diag::render(sink, sources));
  CHECK(sink.diagnostics().empty());
  for (const std::string& fault : graph::verify(program->graph)) FAIL_CHECK(fault);
  return std::move(*program);
}

graph::eval::WeightSource weights_of(const Program& program, const Checkpoint& weights, std::string prefix) {
  const auto aliases = program.graph.checkpoints.at(0).aliases;
  return [&weights, aliases, prefix](const std::string& name, const graph::WeightDecl&) -> std::optional<std::vector<float>> {
    const TensorInfo* tensor = weights.index->find(prefix + name);
    for (const auto& alias : aliases) {
      if (tensor == nullptr && alias.when.empty() && alias.weight == name) tensor = weights.index->find(prefix + alias.target);
    }
    if (tensor == nullptr) return std::nullopt;
    auto values = weights.data->read_f32(*tensor);
    REQUIRE(values.ok());
    return std::move(*values);
  };
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - b[i]);
    most = std::isnan(d) ? INFINITY : std::max(most, d);
  }
  return most;
}

std::vector<float> kept_rows(const Array& a, const std::vector<std::int64_t>& keep) {
  std::vector<float> out;
  const std::size_t width = a.reals.size() / std::max<std::size_t>(1, keep.size());
  for (std::size_t row = 0; row < keep.size(); ++row) {
    if (keep[row] == 0) continue;
    const auto from = a.reals.begin() + static_cast<std::ptrdiff_t>(row * width);
    out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(width));
  }
  return out;
}

}  // namespace modelc::sema::test

#include "codegen/driver/random_checkpoint.h"

#include <cmath>
#include <filesystem>
#include <numbers>
#include <set>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/safetensors/writer.h"
#include "runtime/sampler/random.h"

namespace modelc::driver {

Status write_random_checkpoint(const graph::Module& module, std::uint64_t seed, const std::string& folder) {
  std::set<std::string> aliases;
  for (const graph::CheckpointRules& r : module.checkpoints)
    if (r.format == "safetensors") {
      for (const graph::AliasRule& a : r.aliases)
        if (a.off_when.empty()) aliases.insert(a.weight);
      if (!r.renames.empty())
        return Error{"random", "random weights for a model whose checkpoint block renames tensors are not carried out yet", {}, ""};
    }
  Random random(seed);
  SafetensorsWriter writer;
  std::uint64_t total = 0;
  for (const graph::WeightInstance& w : graph::weight_instances(module)) {
    if (w.decl->default_value || aliases.count(w.name) > 0) continue;
    std::vector<std::int64_t> shape;
    std::uint64_t count = 1;
    for (graph::DimId d : w.decl->type.shape) {
      shape.push_back(module.dims.value(d).value_or(1));
      count *= static_cast<std::uint64_t>(shape.back());
      if (count > (std::uint64_t{1} << 34)) return Error{"random", w.name + " is too large for random weights", {}, ""};
    }
    total += count;
    if (total > (std::uint64_t{1} << 32))
      return Error{"random", "random weights of more than " + human_bytes(std::uint64_t{16} << 30) + " are not made", {}, ""};
    const bool vector = w.decl->role == graph::WeightRole::vector;
    const double deviation = shape.empty() ? 1 : 1 / std::sqrt(static_cast<double>(shape.back()));
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& v : values) {
      if (vector) {
        v = static_cast<float>(1 + 0.6 * (random.uniform() - 0.5));
      } else {
        const double r = std::sqrt(-2 * std::log(1 - random.uniform()));                       // Box and Muller
        v = static_cast<float>(deviation * r * std::cos(2 * std::numbers::pi * random.uniform()));
      }
    }
    if (w.decl->required_dtype && *w.decl->required_dtype != DType::f32)
      return Error{"random", w.name + " declares a type other than f32: random weights of it are not carried out yet", {}, ""};
    if (auto s = writer.add_f32(w.name, std::move(shape), values); !s) return s;
  }
  return writer.write((std::filesystem::path(folder) / "model.safetensors").string());
}

}  // namespace modelc::driver

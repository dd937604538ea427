#include "codegen/driver/random_checkpoint.h"

#include <cmath>
#include <filesystem>
#include <numbers>

#include "codegen/driver/pipeline.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/file_layout.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/safetensors/writer.h"
#include "runtime/sampler/random.h"

namespace modelc::driver {

Status write_random_checkpoint(const graph::Module& module, std::uint64_t seed, const std::string& folder,
                               const std::function<bool()>& stopped) {
  MappingRules rules;
  for (const graph::CheckpointRules& r : module.checkpoints)
    if (r.format == "safetensors") rules = r;
  const std::vector<MappingWeight> weights = mapping_weights(module);
  const std::vector<graph::WeightInstance> declared = graph::weight_instances(module);
  auto groups = file_groups(weights, rules);
  if (!groups) return std::move(groups.error());
  Random random(seed);
  SafetensorsWriter writer;
  std::uint64_t total = 0;
  for (const FileGroup& group : *groups) {
    if (weights[group.weights[0]].has_default) continue;
    if (stopped && stopped()) return Error{"interrupted", "interrupted: nothing was written", {}, ""};
    std::vector<HostArray> made;
    for (std::size_t i : group.weights) {
      const MappingWeight& w = weights[i];
      const auto elements = element_count(w.shape);
      if (!elements || *elements > std::int64_t{1} << 34) return Error{"random", w.name + " is too large for random weights", {}, ""};
      const auto count = static_cast<std::uint64_t>(*elements);
      total += count;
      if (total > (std::uint64_t{1} << 32))
        return Error{"random", "random weights of more than " + human_bytes(std::uint64_t{16} << 30) + " are not made", {}, ""};
      if (w.dtype == DType::u8) {                            // packed numbers: any bytes
        std::vector<std::byte> bytes(static_cast<std::size_t>(count));
        for (std::byte& b : bytes) b = static_cast<std::byte>(random.next() >> 32 & 255);
        made.push_back({Encoding::u8, w.shape, std::move(bytes)});
        continue;
      }
      if (w.dtype && *w.dtype != DType::f32)
        return Error{"random", w.name + " declares a type other than f32 and u8: random weights of it are not carried out yet", {}, ""};
      const bool vector = declared[i].decl->role == graph::WeightRole::vector;
      const double deviation = w.shape.empty() ? 1 : 1 / std::sqrt(static_cast<double>(w.shape.back()));
      std::vector<float> values(static_cast<std::size_t>(count));
      for (float& v : values) {
        if (vector) {
          v = static_cast<float>(1 + 0.6 * (random.uniform() - 0.5));
        } else {
          const double r = std::sqrt(-2 * std::log(1 - random.uniform()));                     // Box and Muller
          v = static_cast<float>(deviation * r * std::cos(2 * std::numbers::pi * random.uniform()));
        }
      }
      const auto bytes = std::as_bytes(std::span(values));
      made.push_back({Encoding::f32, w.shape, {bytes.begin(), bytes.end()}});
    }
    auto tensors = file_tensors(group, std::move(made));
    if (!tensors) return std::move(tensors.error());
    for (std::size_t k = 0; k < tensors->size(); ++k) {
      HostArray& t = (*tensors)[k];
      if (auto s = writer.add(group.file[k], *dtype_of(t.encoding), t.shape, t.bytes); !s) return s;
    }
  }
  return writer.write((std::filesystem::path(folder) / "model.safetensors").string());
}

Result<std::shared_ptr<const CheckpointIndex>> make_random_checkpoint(const graph::Module& module, const Json& config, std::uint64_t seed,
                                                                      const std::string& folder, const std::function<bool()>& stopped) {
  if (auto s = write_random_checkpoint(module, seed, folder, stopped); !s) return std::move(s.error());
  if (auto s = write_file((std::filesystem::path(folder) / "config.json").string(), dump(config, 2) + "\n", Flush::none); !s)
    return std::move(s.error());
  auto index = open_checkpoint(folder);
  if (!index) return std::move(index.error());
  return std::make_shared<const CheckpointIndex>(std::move(*index));
}

}  // namespace modelc::driver

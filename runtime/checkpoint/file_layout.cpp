#include "runtime/checkpoint/file_layout.h"

#include <map>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/mapping_names.h"
#include "runtime/checkpoint/tensor_pattern.h"

namespace modelc {

Result<std::vector<FileGroup>> file_groups(const std::vector<MappingWeight>& weights, const MappingRules& rules) {
  const WeightRules names(rules, weights);
  std::vector<TensorPattern> aliases;
  for (const auto& a : rules.aliases)
    if (a.when.empty()) aliases.emplace_back(a.weight);
  constexpr auto open = static_cast<std::size_t>(-1);
  std::vector<FileGroup> groups;
  std::map<std::string, std::size_t> at;                   // by the tensors' names
  for (std::size_t i = 0; i < weights.size(); ++i) {
    bool alias = false;
    for (const TensorPattern& p : aliases) alias = alias || p.matches(weights[i].name);
    if (alias) continue;
    Wanted w = names.wanted(weights[i]);
    if (!w.wrong.empty()) return Error{"layout", weights[i].name + ": " + w.wrong, {}, {}};
    const auto [it, fresh] = at.emplace(join(w.file, "\n"), groups.size());
    if (fresh) groups.push_back({w.file, std::vector<std::size_t>(w.plan ? w.plan->model().size() : 1, open), w.plan});
    std::size_t& place = groups[it->second].weights[w.pick];
    if (place == open) place = i;
  }
  for (const FileGroup& g : groups)
    for (std::size_t i : g.weights)
      if (i == open) return Error{"layout", g.file[0] + " holds a weight that the model does not have", {}, {}};
  return groups;
}

Result<std::vector<HostArray>> file_tensors(const FileGroup& group, std::vector<HostArray> weights) {
  return group.plan ? to_file(*group.plan, std::move(weights)) : Result<std::vector<HostArray>>(std::move(weights));
}

}  // namespace modelc

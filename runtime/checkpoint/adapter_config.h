// adapter_config.json of a low-rank adapter, as PEFT writes it. Closed world: each key is bound, ignored by name or refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace modelc {

struct AdapterConfig {
  std::int64_t rank = 0;                                   // r
  double alpha = 0;                                        // lora_alpha
  // rank_pattern and alpha_pattern: of modules whose names end so (with ^ before it: are so); the first that fits counts.
  std::vector<std::pair<std::string, std::int64_t>> ranks;
  std::vector<std::pair<std::string, double>> alphas;
  bool rank_stabilized = false;                            // use_rslora: alpha / sqrt(r) instead of alpha / r
  bool fan_in_fan_out = false;                             // the base's matrices are stored [in, out]
  std::vector<std::string> targets;                        // target_modules; empty: it is a pattern, or all that are linear
  std::vector<std::string> saved;                          // modules_to_save: whole weights that take the base's place

  std::int64_t rank_of(std::string_view module) const;
  double scale_of(std::string_view module) const;          // of B · A
  bool targets_module(std::string_view module) const;      // its name ends with one of `targets`, by whole components
};

// "adapter-config" for what is missing, of another type or out of range; "adapter-key" for a key that is not known;
// "adapter-unsupported" for what changes the weights in a way that is not carried out. `name` is what messages call the file.
Result<AdapterConfig> read_adapter_config(const Json& root, const std::string& name);

}  // namespace modelc

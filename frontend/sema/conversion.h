// What a model file says to whoever writes a checkpoint: a GGUF file's metadata from a configuration, and its `quantize` block.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/sema/analyze.h"
#include "runtime/abi/quantize_rule.h"

namespace modelc::sema {

// The way back of config_of_metadata, by the same lines. A line `key = arch.k ?? arch.l` is written to each of its keys that
// no line has as its first; what is computed (`len(…)`, `has(…)`, a condition) is not written, and whether it comes out
// right is for config_differences to say.
struct MetadataOfConfig {
  std::string architecture;
  // Of whole numbers, texts, bools, or lists of one of them; `real`: an f32 or a list of f32.
  struct Item {
    std::string key;
    Json value;
    bool real = false;
  };
  std::vector<Item> items;
  std::vector<std::string> lost;                          // keys of the configuration that no field of the model has
};
std::optional<MetadataOfConfig> metadata_of_config(source::SourceManager&, const Imports&, const ConfigInput&, diag::Sink&);

// The configuration's tree with what --set says in it; what cannot be set is in the sink.
Json tree_with_overrides(const source::SourceManager&, const ConfigInput&, diag::Sink&);

// Keys of the configuration that no line writes, as every line of them has a condition that does not hold: they tell how one
// GGUF file is laid out, and belong into no other checkpoint.
std::vector<std::string> keys_of_file(source::SourceManager&, const Imports&, const ConfigInput&);

// The fields that two configurations of the main file's model give different values, one line each. A real equals what
// f32 makes of it; no scaling equals a case without fields ("default"). Where the second does not bind, what is wrong with
// it. Nothing when the first does not (in the sink).
std::optional<std::vector<std::string>> config_differences(source::SourceManager&, const Imports&, const ConfigInput&, const ConfigInput&,
                                                           diag::Sink&);

// The lines of the main file's model's `quantize`, in order; what is wrong with them is said by analyze.
std::vector<QuantizeRule> quantize_rules(const source::SourceManager&, const Imports&);

}  // namespace modelc::sema

// Which tensor of a checkpoint each weight is: the one place where names, shapes and dtypes are compared. `modelc
// check` asks it with the declared weights and a header; a load asks it with the module tree's weights and the same
// header; both get the same report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/abi/dtype.h"
#include "runtime/base/result.h"
#include "runtime/checkpoint/index.h"

namespace modelc {

struct MappingWeight {
  std::string name;                                        // qualified: "model.layers.0.self_attn.q_proj.weight"
  std::vector<std::int64_t> shape;
  std::string formula;                                     // "[heads * d, c.hidden_size]"
  std::string numbers;                                     // the same in numbers: "[4 * 16, 40]"; "": no more to say
  std::string where;                                       // "llama.model:42:5"
  std::vector<std::string> origins;                        // "hidden_size = 40 from config.json:12"
  std::optional<DType> dtype;                              // required dtype; none: any float encoding
  bool has_default = false;
};
struct MappingRules {                                      // patterns of tensor_pattern.h
  // The weight takes the target's tensor when it has none of its own; with one of its own, both must be equal.
  struct Alias {
    std::string weight, target;
    // Of an alias that the config turned off, so that the missing weight can say why: its condition
    // ("c.tie_word_embeddings") and the values in it ("tie_word_embeddings = false from config.json:24").
    std::string when, because;
  };
  // Weights (or all weights below a module) that match `model` are called `file` in the checkpoint. Of several that
  // match, the one with the most components in `model` counts; of those the first.
  struct Rename { std::string file, model; };
  std::vector<Alias> aliases;
  std::vector<std::string> ignores;                        // tensors of the file that nothing needs
  std::vector<Rename> renames;
};
struct MappingOptions { bool strict = true; bool auto_cast = false; };

struct WeightSource {
  enum class Kind : std::uint8_t { tensor, alias, default_value } kind = Kind::tensor;
  std::size_t tensor = 0;                                  // index into the checkpoint's tensors (alias: the target's)
  bool compare_alias = false;                              // alias whose own tensor is there too: bytes must be equal
  std::size_t own_tensor = 0;                              // that tensor
};
struct Problem {                                           // one line of the report, grouped over alike names
  std::string kind;                                        // missing-weight, unexpected-tensor, shape, dtype
  std::string message;
  std::vector<std::string> notes;
  std::string help;
  std::string where;                                       // declaration, or ""
};
struct Mapping {
  std::string checkpoint;                                  // the path that was asked for
  std::vector<WeightSource> sources;                       // one per weight, in order; void when there are problems
  std::vector<std::string> notes;                          // aliases used, tensors ignored (counted by pattern), …
  std::vector<std::string> left_to_load;                   // what only bytes can tell: that an alias equals its target
  std::vector<Problem> problems;                           // all of them: missing, unexpected, mis-shaped, wrong dtype
};

Mapping map_weights(const std::vector<MappingWeight>& weights, const MappingRules& rules, const CheckpointIndex& index,
                    const MappingOptions& options);
// The whole report as one Error (kind "checkpoint"), for a load; at most `cap` problems in full, the rest counted.
Error as_error(const Mapping& mapping, std::size_t cap = 40);
// An encoding that a weight without declared dtype may have: what kernels read, or what is made f32 at load (f64).
bool is_loadable(Encoding encoding);

}  // namespace modelc

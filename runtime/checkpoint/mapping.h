// Which tensor of a checkpoint each weight is: the one place where names, shapes and dtypes are compared. `modelc
// check` asks it with the declared weights and a header; a load asks it with the module tree's weights and the same
// header; both get the same report.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/abi/checkpoint_rules.h"
#include "runtime/abi/dtype.h"
#include "runtime/base/result.h"
#include "runtime/checkpoint/index.h"
#include "runtime/checkpoint/transform.h"
#include "runtime/checkpoint/weight_value.h"

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
  bool plain = false;                                      // its numbers enter operations as they are: no rows of a product or a table
  std::string own = {};                                    // its path in its module: "weight"; "": the last component
};
struct MappingOptions {
  bool strict = true;                                      // false: tensors that nothing asks for are noted, not refused
  bool auto_cast = false;                                  // f32 ↔ bf16 where a weight declares its dtype
  const WeightMap* given = nullptr;                        // weights by the model's names, taken instead of the checkpoint's
};

// Rows of a tensor of the file: its elements [first, first + rows) along axis 0 (a scalar has one row).
struct WeightPart {
  std::size_t tensor = 0;                                  // index into the checkpoint's tensors
  std::int64_t first = 0, rows = 1;
  // Where the tensor is stored in parts: which of Mapping::encodes, and the tensors of its parts (`tensor` is the first).
  std::optional<std::size_t> encode = {};
  std::vector<std::size_t> coded = {};
};
// Where a weight comes from. One data type for the check, the load and the evaluator; weight_data.h reads it.
struct WeightSource {
  enum class Kind : std::uint8_t { tensor, alias, default_value, given } kind = Kind::tensor;
  // Without a plan the parts' rows, one after the other, are the weight's rows, in its order: they can stay where they
  // lie, each in its own encoding. With one, the parts are whole tensors, and the weight is result `pick` of the plan.
  std::vector<WeightPart> parts;
  std::shared_ptr<const TransformPlan> plan;
  std::size_t pick = 0;
  // Of an alias whose own tensors are there too: where they are. Both must be equal.
  std::shared_ptr<const WeightSource> own;
  std::optional<WeightValue> value = {};                   // of a given one
  std::optional<DType> cast = {};                          // what auto_cast makes of it

  bool as_stored() const {                                 // no bytes have to be made
    for (const WeightPart& p : parts)
      if (p.encode) return false;
    return plan == nullptr && !value && !cast;
  }
};
struct Problem {                                           // one line of the report, grouped over alike names
  std::string kind; // missing-weight, unexpected-tensor, unknown-weight, shape, dtype, layout, parts,
                    // one-of, architecture, list-length
  std::string message;
  std::vector<std::string> notes;
  std::string help;
  std::string where; // declaration, or ""
};
struct Mapping {
  std::string checkpoint; // the path that was asked for
  std::vector<MappingRules::Encode> encodes; // what WeightPart::encode counts
  std::vector<WeightSource> sources; // one per weight, in order; void when there are problems
  std::vector<std::string> notes; // aliases used, tensors ignored (counted by pattern), …
  std::vector<std::string> left_to_load; // what only bytes can tell: that an alias equals its target
  std::vector<Problem> problems; // all of them: missing, unexpected, mis-shaped, wrong dtype
};

Mapping map_weights(const std::vector<MappingWeight>& weights, const MappingRules& rules, const CheckpointIndex& index,
                    const MappingOptions& options);
// The rules of the checkpoint's format; without any, none.
MappingRules rules_for(std::span<const MappingRules> all, const CheckpointIndex& index);
// The whole report as one Error (kind "checkpoint"), for a load; at most `cap` problems in full, the rest counted.
Error as_error(const Mapping& mapping, std::size_t cap = 40);
// An encoding that a weight without declared dtype may have: what kernels read, or what is made f32 at load.
bool is_loadable(Encoding encoding);

} // namespace modelc

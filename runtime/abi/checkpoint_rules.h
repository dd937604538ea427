// The rules of a model file's checkpoint blocks as data, with whole names: made by the compiler, read at compile time and
// at load by runtime/checkpoint/mapping.h. `where` is the rule's place, "llama.model:42:5".
#pragma once

#include <string>
#include <vector>

namespace modelc {

// Patterns are those of tensor_pattern.h. `only` bounds the indices of a pattern, `{1}` as well as `{i}`: "i in 0..3,5..;
// 1 in 2" (ends inclusive; parse_only). Of rules within a `one_of`, `set` is its number in MappingRules::sets.
struct MappingRules {
  std::string format = "safetensors";
  std::string architecture = {};                           // of GGUF: general.architecture; "": any

  // The weight takes the target's tensor when it has none of its own; with one of its own, both must be equal.
  struct Alias {
    std::string weight, target;
    // Of an alias that the config turned off, so that the missing weight can say why: its condition
    // ("c.tie_word_embeddings") and the values in it ("tie_word_embeddings = false from config.json:24").
    std::string when = {}, because = {}, where = {};
  };
  // Tensors of the file that nothing needs. `made_of`: a writer makes the one of this name of the model's const there
  // ("rope.factors"), for programs that do not compute it; to a reader it says nothing that the configuration has not.
  struct Ignore {
    std::string pattern, only = {}, where = {}, made_of = {};
  };
  // Weights (or all weights below a module) that match `model` are called `file` in the checkpoint, and are made of those
  // tensors by `via` (transform.h), left to right. Of several rules that match, the one with the most components in
  // `model` counts; of those the first. Without `file`, `via` is added to what the other rules say of the weight.
  struct Map {
    std::vector<std::string> file, model;
    std::string via = {}, only = {};
    int set = -1, alternative = 0;
    std::string where = {};
  };
  // One whole alternative holds for the file. One without rules is the default.
  struct Set {
    std::string where;
    std::vector<std::string> alternatives;
  };
  // Tensors of the file that match are stored in parts (coded.h): `at` gives each part's name, "{name}_scales".
  struct Encode {
    struct Part {
      std::string name, at, dtype, shape;
    };
    std::string pattern, only = {};
    std::string name, axes;                                // "fp8_block(128, 128)", "... n k"
    std::vector<Part> parts;
    std::string value;
  };
  std::vector<Alias> aliases = {};
  std::vector<Ignore> ignores = {};
  std::vector<Map> maps = {};
  std::vector<Set> sets = {};
  std::vector<Encode> encodes = {};
};

}  // namespace modelc

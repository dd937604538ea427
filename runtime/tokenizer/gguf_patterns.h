// How a byte-level vocabulary in a GGUF cuts text into words: by the name that the file gives as tokenizer.ggml.pre.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace modelc {

struct GgufPattern {
  std::vector<std::string_view> splits = {};  // in order, each of which isolates its matches
  bool byte_level_regex = false;         // and then the pattern that came with the byte alphabet
  bool single_digits = false;
  bool ignore_merges = false;
  bool nfc = false;
};

// Nothing for a name that is not known.
std::optional<GgufPattern> gguf_pattern(std::string_view pre);
// The names for a writer to choose of: one for each way of cutting, the usual one.
std::vector<std::string_view> gguf_pattern_names();

}  // namespace modelc

// A checkpoint rendered for a person, as a tree in which layers that are alike stand once, or for a program, as JSON.
#pragma once

#include <string>

#include "runtime/checkpoint/index.h"

namespace modelc {

struct InspectOptions {
  bool every_tensor = false;          // a line for each instead of one for all layers that are alike
  std::size_t metadata_limit = 400;   // bytes of a metadata value that are shown
};

// Lines: name, encoding, shape, bytes, file; then totals. Ends with a newline.
std::string inspect_text(const CheckpointIndex& index, const InspectOptions& options = {});
// One object on one line: path, format, files, tensors, encodings, beside, metadata (of a GGUF), config, elements, bytes, notes.
std::string inspect_json(const CheckpointIndex& index);

}  // namespace modelc

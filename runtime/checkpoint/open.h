// Opens what a user names as a checkpoint: a Hugging Face style folder, one .safetensors file, a list of them, or a GGUF.
// Headers only; every problem comes back as an Error with the way out.
#pragma once

#include <string>
#include <vector>

#include "runtime/checkpoint/index.h"

namespace modelc {

struct OpenOptions {
  bool need_config = false;        // no config.json beside safetensors is then an error ("no-config")
  bool allow_trailing = false;     // accept bytes that no tensor covers, with a note (--allow-trailing-bytes)
};

// A folder with config.json, *.safetensors (with or without model.safetensors.index.json), tokenizer.json and so on; or
// a single .safetensors, beside which the same files are looked for; or a .gguf (with the other parts of a split one),
// which holds all of that itself: nothing is looked for beside it.
Result<CheckpointIndex> open_checkpoint(const std::string& path, const OpenOptions& options = {});
// Several .safetensors that together are one checkpoint. One path is the same as the call above.
Result<CheckpointIndex> open_checkpoint(const std::vector<std::string>& paths, const OpenOptions& options = {});

}  // namespace modelc

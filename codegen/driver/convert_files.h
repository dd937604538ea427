// What stands beside the weights when a checkpoint is converted: configuration, tokenizer, chat template.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/driver/pipeline.h"
#include "runtime/base/metadata.h"
#include "runtime/checkpoint/convert.h"

namespace modelc::driver {

// A file of the folder that is written: its name and its text.
struct SideFile {
  std::string name, text;
};

// The metadata of the GGUF: of the source's own, or made of its folder by the model's block. What would be read from them is
// compared with `config`; nothing, and the reasons in the sink, where it differs. `lost` gets what has no place there.
std::optional<Metadata> gguf_metadata(Session& s, const CheckpointIndex& source, const sema::ConfigInput& config,
                                      const Conversion& conversion, std::int64_t vocabulary, std::vector<std::string>& lost);

// The files of the folder: made of a GGUF's metadata, or the source folder's own.
std::optional<std::vector<SideFile>> folder_files(Session& s, const CheckpointIndex& source, const sema::ConfigInput& config, bool decoded,
                                                  std::vector<std::string>& lost);

// Vectors that a former conversion to GGUF widened, by the names of their tensors.
std::map<std::string, Encoding> widened_of(const CheckpointIndex& source);

// Whether the file says anything of a tokenizer.
bool has_tokenizer(const CheckpointIndex& source);

}  // namespace modelc::driver

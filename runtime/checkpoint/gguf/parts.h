// A GGUF with all its parts, where it was split over several files.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/checkpoint/gguf/reader.h"
#include "runtime/checkpoint/index.h"

namespace modelc {

// Adds the file at `path` to the index, and where its metadata say that it is one of several parts, all of them, which
// must lie in the same folder under numbered names ("model-00001-of-00003.gguf"). Any part may be named. The metadata
// are those of the first part. Kinds of errors: those of the reader; "missing-shard"; "split" where the parts and
// what their metadata say of them disagree.
Status add_gguf(const std::string& path, const GgufOptions& options, CheckpointIndex& index);

}  // namespace modelc

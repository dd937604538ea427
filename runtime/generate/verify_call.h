// verify() of a model whose forward takes its inputs alone (no Batch): an encoder, a classifier of images. Private to the
// folder.
#pragma once

#include <memory>
#include <string>

#include "runtime/checkpoint/index.h"
#include "runtime/generate/compare.h"

namespace modelc {

// `index` is the file at `path`. Rows that an attention_mask [batch, seq] in it leaves out are not compared, in tensors
// that begin with its axes.
Result<VerifyReport> verify_call(Model& model, const EntryDesc& entry, const std::string& path,
                                 std::shared_ptr<const CheckpointIndex> index, const VerifyOptions& options);

}  // namespace modelc

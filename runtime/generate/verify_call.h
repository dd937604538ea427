// verify() of a model whose forward takes its inputs alone (no Batch): an encoder, a classifier of images; and what it shares
// with that of others. Private to the folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/checkpoint/index.h"
#include "runtime/checkpoint/tensor_data.h"
#include "runtime/generate/compare.h"

namespace modelc {

// `index` is the file at `path`. Rows that an attention_mask [batch, seq] in it leaves out are not compared, in tensors
// that begin with its axes.
Result<VerifyReport> verify_call(Model& model, const EntryDesc& entry, const std::string& path,
                                 std::shared_ptr<const CheckpointIndex> index, const VerifyOptions& options);

// An input as the file has it, whole numbers as i32 or bool. `path`: of the file, for errors.
Result<HostTensor> read_port(CheckpointData& data, const TensorInfo& t, const PortDesc& port, const std::string& path);
// Numbers that are compared, integers and bools as what they are: of a result, and of a tensor of the file.
std::vector<float> numbers_of(const HostTensor& t);
Result<std::vector<float>> numbers_of(CheckpointData& data, const TensorInfo& t);

}  // namespace modelc

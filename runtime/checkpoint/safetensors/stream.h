// Writes a folder's .safetensors, tensor by tensor: one file, or numbered ones with their index. All of them or none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/abi/encoding.h"
#include "runtime/base/result.h"

namespace modelc {

struct SafetensorsTensor {
  std::string name;
  Encoding encoding = Encoding::f32;
  std::vector<std::int64_t> shape;
};

// The bytes of tensor i, as many as its shape takes; they are used before the next call.
using SafetensorsBytes = std::function<Result<std::span<const std::byte>>(std::size_t i)>;
// Told after each tensor: how many are written, of how many.
using SafetensorsProgress = std::function<void(std::size_t done, std::size_t all)>;

struct SafetensorsFiles {
  // Bytes of tensors in one file; 0: all in model.safetensors. One tensor that is larger is a file by itself.
  std::uint64_t max_shard = 0;
  std::vector<std::pair<std::string, std::string>> metadata = {{"format", "pt"}};  // of each header
};

// Into `folder`, which exists: model.safetensors, or model-00001-of-0000N.safetensors and model.safetensors.index.json
// (weight_map and total_size). Tensors stand in the order given, which the caller chooses so that elements are aligned.
// Every name, shape and type is checked before a file is made; a tensor is asked for when its turn has come. No file has
// its name before the last byte of the last one is written. Kinds of errors: "size-mismatch", "reserved-name", "name",
// "duplicate-name", "encoding" for what the format does not hold, "shape", "header-length", those of the callback,
// "cannot-write".
Status write_safetensors(const std::string& folder, std::span<const SafetensorsTensor> tensors, const SafetensorsBytes& bytes,
                         const SafetensorsFiles& files = {}, const SafetensorsProgress& progress = {});

// Header of one file: eight bytes of length and the JSON text, padded. The tensors were checked.
Result<std::string> safetensors_header(const std::string& path, std::span<const SafetensorsTensor> tensors,
                                       std::span<const std::pair<std::string, std::string>> metadata);
// What cannot be a tensor of a .safetensors.
Status check_safetensors_tensor(const SafetensorsTensor& tensor);

}  // namespace modelc

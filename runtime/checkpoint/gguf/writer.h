// Writes a .gguf file, whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/abi/encoding.h"
#include "runtime/base/metadata.h"
#include "runtime/base/result.h"

namespace modelc {

struct GgufTensor {
  std::string name;
  Encoding encoding = Encoding::f32;
  std::vector<std::int64_t> shape;  // outermost first
};

// The bytes of tensor i, as many as its shape takes; they are used before the next call.
using GgufTensorBytes = std::function<Result<std::span<const std::byte>>(std::size_t i)>;
// Told after each tensor: how many are written, of how many.
using GgufProgress = std::function<void(std::size_t done, std::size_t all)>;

// Version 3, in the order given, aligned as the metadata's general.alignment says (32 where they do not). Every name,
// shape and type is checked before the file is made; a tensor is asked for when its turn has come, so that a model need
// not fit into memory. Kinds of errors: those of the reader for what it would refuse ("name-length", "ndims",
// "block-size", "alignment", "duplicate-name", …), "encoding" for what the format does not hold, "size-mismatch" for
// bytes that are not as many as the shape says, those of the callback, "cannot-write".
Status write_gguf(const std::string& path, const Metadata& metadata, std::span<const GgufTensor> tensors, const GgufTensorBytes& bytes,
                  const GgufProgress& progress = {});

}  // namespace modelc

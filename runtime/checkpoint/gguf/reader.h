// Reads the header of one .gguf file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/metadata.h"
#include "runtime/checkpoint/index.h"

namespace modelc {

struct GgufOptions {
  std::string label;             // what messages call the file; its path where empty
  bool allow_trailing = false;   // bytes that no tensor covers are accepted and noted
};

struct GgufHeader {
  CheckpointFile file;
  std::uint32_t version = 0;
  std::uint32_t alignment = 32;
  Metadata metadata;
  std::vector<TensorInfo> tensors;   // in the order of the header; `file` of each is 0
  std::vector<std::string> notes;
};

inline constexpr std::uint64_t gguf_max_header = 1u << 30;     // bytes
inline constexpr std::uint64_t gguf_max_alignment = 1u << 20;  // bytes
inline constexpr std::uint64_t gguf_max_name = 64;             // bytes of a tensor's name
inline constexpr int gguf_max_dimensions = 4;
inline constexpr int gguf_max_array_depth = 8;

// Kinds of errors: not-gguf, version, truncated, header-length, count, string-length, metadata-key, metadata-type,
// metadata-value, array-depth, duplicate-key, alignment, name-length, name, duplicate-name, ndims, shape, dtype,
// type-removed, block-size, offset-alignment, out-of-file, overlap, trailing-bytes, and those of ReadFile.
Result<GgufHeader> read_gguf_header(const std::string& path, const GgufOptions& options = {});

}  // namespace modelc

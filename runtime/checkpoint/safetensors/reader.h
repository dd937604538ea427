// Reads the header of one .safetensors file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/index.h"

namespace modelc {

struct SafetensorsOptions {
  std::string label;             // what messages call the file; its path where empty
  bool allow_trailing = false;   // bytes after the last tensor or between two are accepted and noted
};

struct SafetensorsHeader {
  CheckpointFile file;
  std::vector<TensorInfo> tensors;   // in the order of the header; `file` of each is 0
  std::vector<std::string> notes;
};

inline constexpr std::uint64_t safetensors_max_header = 100'000'000;  // bytes, the format's own limit

// Kinds of errors: truncated, header-length, not-safetensors, header-json, json-depth, duplicate-name, dtype, shape,
// offset-type, out-of-file, size-mismatch, overlap, trailing-bytes, and those of ReadFile.
Result<SafetensorsHeader> read_safetensors_header(const std::string& path, const SafetensorsOptions& options = {});

// The format's spelling ("BF16", "F8_E4M3") and back.
std::optional<Encoding> encoding_from_safetensors(std::string_view dtype);
std::string_view safetensors_name(Encoding encoding);  // empty for what the format does not hold

}  // namespace modelc

// What a checkpoint holds, by its headers alone: names, encodings, shapes and byte ranges, the configuration beside it.
// Filled by the format readers; no weight is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/abi/encoding.h"
#include "runtime/base/json.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/metadata.h"
#include "runtime/base/result.h"

namespace modelc {

struct TensorInfo {
  std::string name;
  Encoding encoding = Encoding::f32;
  std::vector<std::int64_t> shape;  // outermost first; empty: a scalar
  std::uint32_t file = 0;           // in CheckpointIndex::files()
  std::uint64_t offset = 0;         // of the first byte, from the beginning of the file; not aligned to anything
  std::uint64_t size = 0;           // bytes; offset + size lies within the file

  std::int64_t elements() const { return element_count(shape).value_or(0); }
};

// The numbers of those tensors of one file that have bytes, as they lie in it; of equal offsets the earlier one first.
std::vector<std::uint32_t> by_offset(const std::vector<TensorInfo>& tensors);

// One file of weights, with its size when the header was read.
struct CheckpointFile {
  std::string path;   // as it can be opened
  std::string label;  // as messages call it: the name in its folder
  std::uint64_t size = 0;
  // Which file it was: another one of the same size is told from it.
  std::uint64_t device = 0, inode = 0;
  std::int64_t modified = 0;
  std::size_t header_bytes = 0;                                    // up to the first byte of data
  std::vector<std::pair<std::string, std::string>> metadata;       // strings of its header, in order
  std::shared_ptr<const MappedFile> memory;                        // the bytes, of what lies in no file
};

enum class CheckpointFormat : std::uint8_t { safetensors, gguf };

class CheckpointIndex {
 public:
  CheckpointFormat format = CheckpointFormat::safetensors;
  std::string path;                     // the folder or file that was asked for
  std::optional<JsonFile> config;       // config.json
  std::optional<Metadata> metadata;     // of a GGUF (of the first of its parts): configuration, tokenizer, template
  // Paths of the files beside the weights; empty where there is none.
  std::string tokenizer_json, tokenizer_config_json, generation_config_json, chat_template;
  // What is odd yet allowed ("model.safetensors.index.json gives total_size …"), one line each.
  std::vector<std::string> notes;

  const std::vector<CheckpointFile>& files() const { return files_; }
  // In the order of the files and of each header.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  // By hash; null where there is none.
  const TensorInfo* find(std::string_view name) const;
  const CheckpointFile& file_of(const TensorInfo& t) const { return files_[t.file]; }
  std::uint64_t total_bytes() const;     // of all tensors
  std::int64_t total_elements() const;

  // Takes over a file and its tensors (whose `file` is set here). A name that another file holds is an error
  // ("duplicate-name") that names both files.
  Status add(CheckpointFile file, std::vector<TensorInfo> tensors);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  std::vector<CheckpointFile> files_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> by_name_;
};

}  // namespace modelc

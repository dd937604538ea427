// The bytes of a checkpoint's tensors: files are mapped (or read) when the first tensor of each is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/base/mapped_file.h"
#include "runtime/checkpoint/index.h"

namespace modelc {

// Bytes as they lie in the file: little-endian, at any address. Never form a typed pointer from `data`.
struct TensorBytes {
  const std::byte* data = nullptr;
  std::size_t size = 0;
  std::shared_ptr<const MappedFile> owner;  // keeps `data` alive; ask its intact() after the bytes were used

  std::span<const std::byte> bytes() const { return {data, size}; }
};

// Access to the tensors of one index, from several threads.
class CheckpointData {
 public:
  explicit CheckpointData(std::shared_ptr<const CheckpointIndex> index, FileAccess access = FileAccess::map);

  const CheckpointIndex& index() const { return *index_; }
  // "missing-tensor" (with the nearest name), "file-shrunk", "file-grown" and "file-changed" where the file is not what
  // it was when its header was read, and those of ReadFile.
  Result<TensorBytes> bytes(std::string_view name);
  Result<TensorBytes> bytes(const TensorInfo& tensor);
  // All elements as f32: f16, bf16 and f32 exactly (NaN payloads too), f64 rounded to nearest even, packed blocks as
  // encoding/decode.h defines them. Integers, bool and c64 are refused ("encoding").
  Result<std::vector<float>> read_f32(const TensorInfo& tensor);
  // Whole numbers of any integer type or bool as int64; a u64 above 2^63 - 1 is refused ("range").
  Result<std::vector<std::int64_t>> read_i64(const TensorInfo& tensor);
  // Lets go of a file's bytes (those handed out stay alive).
  void release(std::uint32_t file);

 private:
  struct Slot {
    std::mutex lock;
    std::shared_ptr<const MappedFile> file;
  };
  std::shared_ptr<const CheckpointIndex> index_;
  FileAccess access_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace modelc

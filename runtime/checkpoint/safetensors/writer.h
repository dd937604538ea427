// Writes a .safetensors file, whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/abi/dtype.h"
#include "runtime/base/result.h"

namespace modelc {

// Collects named tensors and writes them, wide elements first and otherwise in the order in which they were added, so
// that each is aligned to its element and no byte lies between them.
class SafetensorsWriter {
 public:
  // Copies the bytes (little-endian). They must be as many as the shape says ("size-mismatch"); a name may come only
  // once ("duplicate-name"), be UTF-8 ("name") and not the format's own ("reserved-name").
  Status add(std::string name, DType dtype, std::vector<std::int64_t> shape, std::span<const std::byte> bytes);
  Status add_f32(std::string name, std::vector<std::int64_t> shape, std::span<const float> values);
  Status add_i32(std::string name, std::vector<std::int64_t> shape, std::span<const std::int32_t> values);
  Status add_i64(std::string name, std::vector<std::int64_t> shape, std::span<const std::int64_t> values);
  // Strings of the header's __metadata__.
  void set_metadata(std::string key, std::string value);

  std::size_t count() const { return entries_.size(); }
  Status write(const std::string& path) const;

 private:
  struct Entry {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;
  };
  std::vector<Entry> entries_;
  std::unordered_set<std::string> names_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace modelc

// One weight in memory, and maps of them: what a caller hands in instead of a file, and what Weights gives out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/mapped_file.h"
#include "runtime/checkpoint/index.h"
#include "runtime/checkpoint/transform.h"

namespace modelc {

// Cheap to copy: the elements are shared, in memory of their own or where a file is mapped, at any address.
class WeightValue {
 public:
  // Copies the elements. "shape" where their number is not the shape's.
  static Result<WeightValue> of(std::span<const float> values, TensorShape shape);
  // The same of bytes in any encoding ("shape" where it does not take so many).
  static Result<WeightValue> of(Encoding encoding, TensorShape shape, std::span<const std::byte> bytes);
  // Elements that lie in a file, without a copy: [at, at + what the shape takes) of it.
  static Result<WeightValue> in(std::shared_ptr<const MappedFile> file, std::uint64_t at, Encoding encoding, TensorShape shape);

  Encoding encoding() const { return encoding_; }
  const TensorShape& shape() const { return shape_; }
  std::span<const std::byte> bytes() const { return {size_ > 0 ? file_->data() + at_ : nullptr, size_}; }
  // The file that they lie in, and where in it.
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  std::uint64_t at() const { return at_; }

  // The same numbers in another float type, rounded to nearest even; packed blocks are decoded. Kinds of errors:
  // "encoding" where they stand for no real numbers or `type` is no float, "file-shrunk".
  Result<WeightValue> astype(DType type) const;
  Result<std::vector<float>> f32() const;

 private:
  WeightValue() = default;
  Encoding encoding_ = Encoding::f32;
  TensorShape shape_;
  std::shared_ptr<const MappedFile> file_;
  std::uint64_t at_ = 0;
  std::size_t size_ = 0;
};

using WeightMap = std::map<std::string, WeightValue>;

// A checkpoint that lies in no file: by the names that a safetensors file would have. `label` is what messages call it.
Result<CheckpointIndex> checkpoint_of(const WeightMap& weights, const std::string& label = "weights in memory");

}  // namespace modelc

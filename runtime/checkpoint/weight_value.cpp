#include "runtime/checkpoint/weight_value.h"

#include "runtime/base/strings.h"
#include "runtime/encoding/decode.h"

namespace modelc {
namespace {

Error wrong_size(Encoding encoding, const TensorShape& shape, std::uint64_t bytes) {
  const auto takes = stored_bytes(encoding, shape);
  return Error{"shape",
               std::string(name(encoding)) + " " + shape_text(shape) +
                   (takes ? " takes " + counted(static_cast<std::uint64_t>(*takes), "byte") : " is no shape of whole blocks") +
                   ", and there are " + grouped(bytes),
               {},
               {}};
}

}  // namespace

Result<WeightValue> WeightValue::of(std::span<const float> values, TensorShape shape) {
  return of(Encoding::f32, std::move(shape), std::as_bytes(values));
}

Result<WeightValue> WeightValue::of(Encoding encoding, TensorShape shape, std::span<const std::byte> bytes) {
  if (stored_bytes(encoding, shape) != static_cast<std::int64_t>(bytes.size())) return wrong_size(encoding, shape, bytes.size());
  auto copy = MappedFile::of(bytes, "a weight in memory");
  if (!copy) return std::move(copy.error());
  return in(std::make_shared<const MappedFile>(std::move(*copy)), 0, encoding, std::move(shape));
}

Result<WeightValue> WeightValue::in(std::shared_ptr<const MappedFile> file, std::uint64_t at, Encoding encoding, TensorShape shape) {
  const auto size = stored_bytes(encoding, shape);
  if (!size || at > file->size() || static_cast<std::uint64_t>(*size) > file->size() - at)
    return wrong_size(encoding, shape, at < file->size() ? file->size() - at : 0);
  WeightValue v;
  v.encoding_ = encoding;
  v.shape_ = std::move(shape);
  v.file_ = std::move(file);
  v.at_ = at;
  v.size_ = static_cast<std::size_t>(*size);
  return v;
}

Result<WeightValue> WeightValue::astype(DType type) const {
  if (encoding_ == encoding_of(type)) return *this;
  auto made = cast({encoding_, shape_, {bytes().begin(), bytes().end()}}, type);
  if (!made) return Error{"encoding", std::move(made.error().message), {}, "weights are cast to f32, f16 and bf16"};
  if (Status s = file_->intact(); !s) return std::move(s.error());
  return of(made->encoding, shape_, made->bytes);
}

Result<std::vector<float>> WeightValue::f32() const {
  std::vector<float> values(static_cast<std::size_t>(element_count(shape_).value_or(0)));
  if (!decode(encoding_, bytes().data(), values))
    return Error{"encoding", std::string(name(encoding_)) + " stands for no real numbers", {}, {}};
  if (Status s = file_->intact(); !s) return std::move(s.error());
  return values;
}

Result<CheckpointIndex> checkpoint_of(const WeightMap& weights, const std::string& label) {
  CheckpointIndex index;
  index.path = label;
  for (const auto& [name, value] : weights) {
    CheckpointFile file;
    file.path = file.label = label;
    file.size = value.file()->size();
    file.memory = value.file();
    TensorInfo t;
    t.name = name;
    t.encoding = value.encoding();
    t.shape = value.shape();
    t.offset = value.at();
    t.size = value.bytes().size();
    if (Status s = index.add(std::move(file), {std::move(t)}); !s) return std::move(s.error());
  }
  return index;
}

}  // namespace modelc

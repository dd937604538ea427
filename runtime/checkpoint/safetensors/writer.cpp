#include "runtime/checkpoint/safetensors/writer.h"

#include <algorithm>
#include <bit>

#include "runtime/abi/encoding.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/safetensors/stream.h"

namespace modelc {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

Status SafetensorsWriter::add(std::string name, DType dtype, std::vector<std::int64_t> shape, std::span<const std::byte> bytes) {
  const std::optional<std::int64_t> size = stored_bytes(encoding_of(dtype), shape);
  if (!size || static_cast<std::uint64_t>(*size) != bytes.size())
    return Error{"size-mismatch",
                 "tensor " + quote(name) + ": " + std::string(modelc::name(dtype)) + " " + shape_text(shape) + " takes " +
                     (size ? grouped(*size) + " bytes" : std::string("no possible number of bytes")) + ", given " +
                     grouped(static_cast<std::uint64_t>(bytes.size())),
                 {},
                 {}};
  if (Status s = check_safetensors_tensor({name, encoding_of(dtype), shape}); !s) return s;
  if (!names_.insert(name).second) return Error{"duplicate-name", "tensor " + quote(name) + " is added twice", {}, {}};
  entries_.push_back(Entry{std::move(name), dtype, std::move(shape), {bytes.begin(), bytes.end()}});
  return {};
}

Status SafetensorsWriter::add_f32(std::string name, std::vector<std::int64_t> shape, std::span<const float> values) {
  return add(std::move(name), DType::f32, std::move(shape), std::as_bytes(values));
}
Status SafetensorsWriter::add_i32(std::string name, std::vector<std::int64_t> shape, std::span<const std::int32_t> values) {
  return add(std::move(name), DType::i32, std::move(shape), std::as_bytes(values));
}
Status SafetensorsWriter::add_i64(std::string name, std::vector<std::int64_t> shape, std::span<const std::int64_t> values) {
  return add(std::move(name), DType::i64, std::move(shape), std::as_bytes(values));
}

void SafetensorsWriter::set_metadata(std::string key, std::string value) {
  for (auto& [k, v] : metadata_)
    if (k == key) {
      v = std::move(value);
      return;
    }
  metadata_.emplace_back(std::move(key), std::move(value));
}

Status SafetensorsWriter::write(const std::string& path) const {
  std::vector<const Entry*> order;
  for (const Entry& e : entries_) order.push_back(&e);
  std::stable_sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) { return bytes(a->dtype) > bytes(b->dtype); });

  std::vector<SafetensorsTensor> tensors;
  for (const Entry* e : order) tensors.push_back({e->name, encoding_of(e->dtype), e->shape});
  const auto header = safetensors_header(path, tensors, metadata_);
  if (!header) return header.error();
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file) return std::move(file.error());
  if (Status s = file->write(*header); !s) return s;
  for (const Entry* e : order)
    if (Status s = file->write(e->bytes); !s) return s;
  return file->commit();
}

}  // namespace modelc

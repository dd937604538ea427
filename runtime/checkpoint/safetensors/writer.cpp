#include "runtime/checkpoint/safetensors/writer.h"

#include <algorithm>
#include <array>
#include <bit>

#include "runtime/abi/encoding.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/json.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/safetensors/reader.h"

namespace modelc {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

Status SafetensorsWriter::add(std::string name, DType dtype, std::vector<std::int64_t> shape,
                              std::span<const std::byte> bytes) {
  const std::optional<std::int64_t> size = stored_bytes(encoding_of(dtype), shape);
  if (!size || static_cast<std::uint64_t>(*size) != bytes.size())
    return Error{"size-mismatch",
                 "tensor " + quote(name) + ": " + std::string(modelc::name(dtype)) + " " + shape_text(shape) +
                     " takes " + (size ? grouped(*size) + " bytes" : std::string("no possible number of bytes")) +
                     ", given " + grouped(static_cast<std::uint64_t>(bytes.size())),
                 {},
                 {}};
  if (name == "__metadata__")
    return Error{
        "reserved-name", "a tensor cannot be called \"__metadata__\": the format keeps that name for itself", {}, {}};
  if (!is_utf8(name)) return Error{"name", "the name " + quote(name) + " is not UTF-8", {}, {}};
  if (!names_.insert(name).second)
    return Error{"duplicate-name", "tensor " + quote(name) + " is added twice", {}, {}};
  entries_.push_back(Entry{std::move(name), dtype, std::move(shape), {bytes.begin(), bytes.end()}});
  return {};
}

Status SafetensorsWriter::add_f32(std::string name, std::vector<std::int64_t> shape, std::span<const float> values) {
  return add(std::move(name), DType::f32, std::move(shape), std::as_bytes(values));
}
Status SafetensorsWriter::add_i32(std::string name, std::vector<std::int64_t> shape,
                                  std::span<const std::int32_t> values) {
  return add(std::move(name), DType::i32, std::move(shape), std::as_bytes(values));
}
Status SafetensorsWriter::add_i64(std::string name, std::vector<std::int64_t> shape,
                                  std::span<const std::int64_t> values) {
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
  std::stable_sort(order.begin(), order.end(),
                   [](const Entry* a, const Entry* b) { return bytes(a->dtype) > bytes(b->dtype); });

  JsonObject header;
  if (!metadata_.empty()) {
    JsonObject metadata;
    for (const auto& [key, value] : metadata_) metadata.set(key, value);
    header.set("__metadata__", std::move(metadata));
  }
  std::uint64_t at = 0;
  for (const Entry* e : order) {
    JsonArray shape, offsets;
    for (std::int64_t d : e->shape) shape.emplace_back(d);
    offsets.emplace_back(at);
    offsets.emplace_back(at += e->bytes.size());
    JsonObject entry;
    entry.set("dtype", safetensors_name(encoding_of(e->dtype)));
    entry.set("shape", std::move(shape));
    entry.set("data_offsets", std::move(offsets));
    header.set(e->name, std::move(entry));
  }
  std::string text = dump(Json(std::move(header)));
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > safetensors_max_header)
    return Error{"header-length",
                 "cannot write " + quote(path) + ": its header would take " +
                     grouped(static_cast<std::uint64_t>(text.size())) + " bytes, more than readers accept (" +
                     grouped(safetensors_max_header) + ")",
                 {}, {}};
  std::array<char, 8> length;
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> 8 * i & 0xff);

  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file) return std::move(file.error());
  if (Status s = file->write(std::string_view(length.data(), length.size())); !s) return s;
  if (Status s = file->write(text); !s) return s;
  for (const Entry* e : order)
    if (Status s = file->write(e->bytes); !s) return s;
  return file->commit();
}

}  // namespace modelc

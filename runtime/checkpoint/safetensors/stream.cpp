#include "runtime/checkpoint/safetensors/stream.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <unordered_set>

#include "runtime/base/atomic_file.h"
#include "runtime/base/json.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/safetensors/reader.h"

namespace modelc {
namespace {

std::uint64_t size_of(const SafetensorsTensor& t) { return static_cast<std::uint64_t>(stored_bytes(t.encoding, t.shape).value_or(0)); }

// Tensors [first, last) of one file.
struct Shard {
  std::size_t first = 0, last = 0;
};

std::vector<Shard> cut(std::span<const SafetensorsTensor> tensors, std::uint64_t most) {
  std::vector<Shard> shards(1);
  std::uint64_t held = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t size = size_of(tensors[i]);
    if (most > 0 && held > 0 && (size > most || held > most - size)) {
      shards.push_back({i, i});
      held = 0;
    }
    held += size;
    shards.back().last = i + 1;
  }
  return shards;
}

std::string shard_name(std::size_t number, std::size_t of) {
  if (of == 1) return "model.safetensors";
  const auto digits = [](std::size_t n) {
    const std::string s = std::to_string(n);
    return std::string(s.size() < 5 ? 5 - s.size() : 0, '0') + s;
  };
  return "model-" + digits(number) + "-of-" + digits(of) + ".safetensors";
}

}  // namespace

Status check_safetensors_tensor(const SafetensorsTensor& t) {
  if (t.name == "__metadata__")
    return Error{"reserved-name", "a tensor cannot be called \"__metadata__\": the format keeps that name for itself", {}, {}};
  if (!is_utf8(t.name)) return Error{"name", "the name " + quote(t.name) + " is not UTF-8", {}, {}};
  if (safetensors_name(t.encoding).empty())
    return Error{"encoding",
                 "tensor " + quote(t.name) + " cannot be written as safetensors: the format does not hold " + std::string(name(t.encoding)),
                 {},
                 {}};
  if (!stored_bytes(t.encoding, t.shape))
    return Error{
        "shape",
        "tensor " + quote(t.name) + ": " + std::string(name(t.encoding)) + " " + shape_text(t.shape) + " takes no possible number of bytes",
        {},
        {}};
  return {};
}

Result<std::string> safetensors_header(const std::string& path, std::span<const SafetensorsTensor> tensors,
                                       std::span<const std::pair<std::string, std::string>> metadata) {
  JsonObject header;
  if (!metadata.empty()) {
    JsonObject strings;
    for (const auto& [key, value] : metadata) strings.set(key, value);
    header.set("__metadata__", std::move(strings));
  }
  std::uint64_t at = 0;
  for (const SafetensorsTensor& t : tensors) {
    JsonArray shape, offsets;
    for (std::int64_t d : t.shape) shape.emplace_back(d);
    offsets.emplace_back(at);
    offsets.emplace_back(at += size_of(t));
    JsonObject entry;
    entry.set("dtype", safetensors_name(t.encoding));
    entry.set("shape", std::move(shape));
    entry.set("data_offsets", std::move(offsets));
    header.set(t.name, std::move(entry));
  }
  std::string text = dump(Json(std::move(header)));
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > safetensors_max_header)
    return Error{"header-length",
                 "cannot write " + quote(path) + ": its header would take " + grouped(static_cast<std::uint64_t>(text.size())) +
                     " bytes, more than readers accept (" + grouped(safetensors_max_header) + ")",
                 {},
                 {}};
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> 8 * i & 0xff);
  return length + text;
}

Status write_safetensors(const std::string& folder, std::span<const SafetensorsTensor> tensors, const SafetensorsBytes& bytes,
                         const SafetensorsFiles& files, const SafetensorsProgress& progress) {
  std::unordered_set<std::string_view> names;
  std::uint64_t total = 0;
  for (const SafetensorsTensor& t : tensors) {
    if (Status s = check_safetensors_tensor(t); !s) return s;
    if (!names.insert(t.name).second) return Error{"duplicate-name", "tensor " + quote(t.name) + " is to be written twice", {}, {}};
    if (__builtin_add_overflow(total, size_of(t), &total) || total > std::uint64_t{1} << 62)
      return Error{"shape", "the tensors take more than 2^62 bytes together", {}, {}};
  }
  const std::vector<Shard> shards = cut(tensors, files.max_shard);
  if (shards.size() > 99'999)
    return Error{"shard-count",
                 grouped(std::uint64_t{shards.size()}) + " files would be written; at most 99,999 have a name",
                 {},
                 "a larger --max-shard-size"};

  std::vector<AtomicFile> open;                            // each has its name only when all are whole
  JsonObject weight_map;
  for (std::size_t k = 0; k < shards.size(); ++k) {
    const std::string label = shard_name(k + 1, shards.size()), path = folder + "/" + label;
    const auto own = tensors.subspan(shards[k].first, shards[k].last - shards[k].first);
    auto header = safetensors_header(path, own, files.metadata);
    if (!header) return std::move(header.error());
    auto file = AtomicFile::create(path);
    if (!file) return std::move(file.error());
    if (Status s = file->write(*header); !s) return s;
    for (std::size_t i = shards[k].first; i < shards[k].last; ++i) {
      const auto data = bytes(i);
      if (!data) return data.error();
      if (data->size() != size_of(tensors[i]))
        return Error{"size-mismatch",
                     "tensor " + quote(tensors[i].name) + ": " + std::string(name(tensors[i].encoding)) + " " +
                         shape_text(tensors[i].shape) + " takes " + grouped(size_of(tensors[i])) + " bytes, given " +
                         grouped(std::uint64_t{data->size()}),
                     {},
                     {}};
      if (Status s = file->write(*data); !s) return s;
      weight_map.set(tensors[i].name, label);
      if (progress) progress(i + 1, tensors.size());
    }
    open.push_back(std::move(*file));
  }
  std::optional<AtomicFile> index;
  std::error_code ignored;
  if (shards.size() > 1) {
    JsonObject metadata, root;
    metadata.set("total_size", total);
    root.set("metadata", std::move(metadata));
    root.set("weight_map", std::move(weight_map));
    auto file = AtomicFile::create(folder + "/model.safetensors.index.json");
    if (!file) return std::move(file.error());
    if (Status s = file->write(dump(Json(std::move(root)), 2) + "\n"); !s) return s;
    index.emplace(std::move(*file));
  }
  if (index) open.push_back(std::move(*index));
  for (std::size_t k = 0; k < open.size(); ++k) {
    Status s = open[k].commit();
    if (s) continue;
    for (std::size_t before = 0; before < k; ++before) std::filesystem::remove(open[before].path(), ignored);
    return s;
  }
  return {};
}

}  // namespace modelc

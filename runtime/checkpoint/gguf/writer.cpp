// The format stands at the top of reader.cpp.
#include "runtime/checkpoint/gguf/writer.h"

#include <array>
#include <unordered_set>

#include "runtime/base/atomic_file.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/gguf/reader.h"
#include "runtime/checkpoint/gguf/types.h"

namespace modelc {
namespace {

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i & 0xff);
}

Status check(const GgufTensor& t) {
  const auto refuse = [&](const char* kind, std::string why) {
    return Error{kind, "tensor " + quote(t.name) + " cannot be written as GGUF: " + std::move(why), {}, {}};
  };
  if (t.name.size() > gguf_max_name)
    return refuse("name-length",
                  "its name has " + grouped(std::uint64_t{t.name.size()}) + " bytes; at most " + grouped(gguf_max_name) + " are allowed");
  if (t.name.empty() || !is_utf8(t.name)) return refuse("name", t.name.empty() ? "its name is empty" : "its name is not UTF-8");
  if (t.shape.size() > gguf_max_dimensions)
    return refuse("ndims", shape_text(t.shape) + " has more than " + std::to_string(gguf_max_dimensions) + " dimensions");
  if (!gguf_type(t.encoding)) return refuse("encoding", "the format does not hold " + std::string(name(t.encoding)));
  if (stored_bytes(t.encoding, t.shape)) return {};
  const std::int64_t block = block_elements(t.encoding);
  if (block > 1 && (t.shape.empty() || t.shape.back() % block != 0))
    return refuse("block-size",
                  std::string(name(t.encoding)) + " " + shape_text(t.shape) + ": rows are no multiple of its blocks of " + grouped(block));
  return refuse("shape", shape_text(t.shape) + " takes more than 2^63 bytes or holds a negative extent");
}

}  // namespace

Status write_gguf(const std::string& path, const Metadata& metadata, std::span<const GgufTensor> tensors, const GgufTensorBytes& bytes,
                  const GgufProgress& progress) {
  std::uint64_t alignment = 32;
  if (const auto given = metadata.find("general.alignment")) {
    const auto a = given->type() == MetadataType::u32 ? given->as_uint() : std::nullopt;
    if (!a || *a == 0 || (*a & (*a - 1)) != 0 || *a > gguf_max_alignment)
      return Error{
          "alignment",
          "general.alignment is " + given->text() + "; it must be a u32 and a power of two from 1 to " + grouped(gguf_max_alignment),
          {},
          {}};
    alignment = *a;
  }
  const auto padding = [&](std::uint64_t n) { return static_cast<std::size_t>((alignment - n % alignment) % alignment); };

  std::string head = "GGUF";
  put(head, 3, 4);
  put(head, tensors.size(), 8);
  put(head, metadata.size(), 8);
  head.append(reinterpret_cast<const char*>(metadata.bytes().data()), metadata.bytes().size());
  std::unordered_set<std::string_view> names;
  std::uint64_t at = 0;
  for (const GgufTensor& t : tensors) {
    if (Status s = check(t); !s) return s;
    if (!names.insert(t.name).second) return Error{"duplicate-name", "tensor " + quote(t.name) + " is to be written twice", {}, {}};
    put(head, t.name.size(), 8);
    head += t.name;
    put(head, t.shape.size(), 4);
    for (std::size_t d = t.shape.size(); d-- > 0;) put(head, static_cast<std::uint64_t>(t.shape[d]), 8);
    put(head, *gguf_type(t.encoding), 4);
    put(head, at, 8);
    const auto size = static_cast<std::uint64_t>(*stored_bytes(t.encoding, t.shape));
    if (__builtin_add_overflow(at, size, &at) || at > std::uint64_t{1} << 62)
      return Error{"shape", "the tensors take more than 2^62 bytes together", {}, {}};
    at += padding(at);
  }
  head.append(padding(head.size()), '\0');

  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file) return std::move(file.error());
  if (Status s = file->write(head); !s) return s;
  const std::string zeros(static_cast<std::size_t>(alignment), '\0');
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Result<std::span<const std::byte>> data = bytes(i);
    if (!data) return data.error();
    const auto size = static_cast<std::uint64_t>(*stored_bytes(tensors[i].encoding, tensors[i].shape));
    if (data->size() != size)
      return Error{"size-mismatch",
                   "tensor " + quote(tensors[i].name) + ": " + std::string(name(tensors[i].encoding)) + " " + shape_text(tensors[i].shape) +
                       " takes " + grouped(size) + " bytes, given " + grouped(std::uint64_t{data->size()}),
                   {},
                   {}};
    if (Status s = file->write(*data); !s) return s;
    if (Status s = file->write(std::string_view(zeros).substr(0, padding(size))); !s) return s;
    if (progress) progress(i + 1, tensors.size());
  }
  return file->commit();
}

}  // namespace modelc

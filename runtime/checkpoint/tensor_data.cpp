#include "runtime/checkpoint/tensor_data.h"

#include <cassert>
#include <limits>

#include "runtime/base/strings.h"
#include "runtime/encoding/convert.h"
#include "runtime/encoding/decode.h"

namespace modelc {

CheckpointData::CheckpointData(std::shared_ptr<const CheckpointIndex> index, FileAccess access)
    : index_(std::move(index)), access_(access) {
  for (const CheckpointFile& file : index_->files()) {
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->file = file.memory;
  }
}

Result<TensorBytes> CheckpointData::bytes(std::string_view name) {
  if (const TensorInfo* t = index_->find(name)) return bytes(*t);
  std::vector<std::string_view> names;
  for (const TensorInfo& t : index_->tensors()) names.push_back(t.name);
  Error error{"missing-tensor", quote(index_->path) + " holds no tensor " + quote(name), {}, {}};
  if (const auto near = nearest(name, std::span<const std::string_view>(names))) error.help = "it holds " + quote(*near);
  return error;
}

Result<TensorBytes> CheckpointData::bytes(const TensorInfo& tensor) {
  assert(tensor.file < slots_.size());
  const CheckpointFile& file = index_->files()[tensor.file];
  Slot& slot = *slots_[tensor.file];
  std::shared_ptr<const MappedFile> mapped;
  {
    const std::lock_guard held(slot.lock);
    if (!slot.file) {
      Result<ReadFile> opened = ReadFile::open(file.path);
      if (!opened) return std::move(opened.error());
      // The header was checked against the size that the file had then. A shorter file would end the program in the
      // middle of a load; a longer one is not the file that was checked.
      if (opened->size() != file.size)
        return Error{
            opened->size() < file.size ? "file-shrunk" : "file-grown",
            quote(file.label) + " had " + grouped(file.size) + " bytes when its header was read and now has " + grouped(opened->size()),
            {"file " + quote(file.path)},
            "something writes to the file; let it finish, then load again"};
      const bool known = file.inode != 0;  // an index that no reader made does not say which file it was
      if (known && (opened->device() != file.device || opened->inode() != file.inode || opened->modified() != file.modified))
        return Error{"file-changed",
                     quote(file.label) + " is not what it was when its header was read: it was replaced or written to",
                     {"file " + quote(file.path)},
                     "something writes to the file; let it finish, then load again"};
      Result<MappedFile> made = MappedFile::from(*opened, access_);
      if (!made) return std::move(made.error());
      slot.file = std::make_shared<const MappedFile>(*std::move(made));
    }
    mapped = slot.file;
  }
  if (tensor.offset > mapped->size() || tensor.size > mapped->size() - tensor.offset)  // of an index that no reader made
    return Error{"out-of-file", "tensor " + quote(tensor.name) + " reaches past the end of " + quote(file.label), {}, {}};
  return TensorBytes{tensor.size ? mapped->data() + tensor.offset : nullptr, static_cast<std::size_t>(tensor.size), std::move(mapped)};
}

Result<std::vector<float>> CheckpointData::read_f32(const TensorInfo& tensor) {
  if (!is_float(tensor.encoding))
    return Error{"encoding",
                 "tensor " + quote(tensor.name) + " is " + std::string(name(tensor.encoding)) +
                     "; only what stands for real numbers can be read as f32",
                 {},
                 {}};
  const Result<TensorBytes> stored = bytes(tensor);
  if (!stored) return stored.error();
  // The index was checked: the elements fill the tensor's bytes, which lie in the file.
  std::vector<float> values(stored->size / static_cast<std::size_t>(block_bytes(tensor.encoding)) *
                            static_cast<std::size_t>(block_elements(tensor.encoding)));
  if (!decode(tensor.encoding, stored->data, values))
    return Error{"encoding", "tensor " + quote(tensor.name) + " stands for no real numbers", {}, {}};
  if (Status s = stored->owner->intact(); !s) return std::move(s.error());
  return values;
}

Result<std::vector<std::int64_t>> CheckpointData::read_i64(const TensorInfo& tensor) {
  const std::optional<DType> type = dtype_of(tensor.encoding);
  if (!type || is_float(*type))
    return Error{"encoding",
                 "tensor " + quote(tensor.name) + " is " + std::string(name(tensor.encoding)) + "; integers and bool can be read as i64",
                 {},
                 {}};
  const Result<TensorBytes> stored = bytes(tensor);
  if (!stored) return stored.error();
  const auto width = static_cast<std::size_t>(modelc::bytes(*type));
  std::vector<std::int64_t> values(stored->size / width);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::byte* at = stored->data + i * width;
    switch (*type) {
      case DType::i64: values[i] = static_cast<std::int64_t>(load_u64(at)); break;
      case DType::i32: values[i] = static_cast<std::int32_t>(load_u32(at)); break;
      case DType::i16: values[i] = static_cast<std::int16_t>(load_u16(at)); break;
      case DType::i8: values[i] = static_cast<std::int8_t>(*at); break;
      case DType::u32: values[i] = load_u32(at); break;
      case DType::u16: values[i] = load_u16(at); break;
      case DType::u64: {
        const std::uint64_t v = load_u64(at);
        if (v > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
          return Error{
              "range",
              "element " + std::to_string(i) + " of tensor " + quote(tensor.name) + " is " + grouped(v) + ", beyond what i64 holds",
              {},
              {}};
        values[i] = static_cast<std::int64_t>(v);
        break;
      }
      default: values[i] = static_cast<std::uint8_t>(*at); break;  // u8, bool
    }
  }
  if (Status s = stored->owner->intact(); !s) return std::move(s.error());
  return values;
}

void CheckpointData::release(std::uint32_t file) {
  assert(file < slots_.size());
  const std::lock_guard held(slots_[file]->lock);
  slots_[file]->file = index_->files()[file].memory;
}

}  // namespace modelc

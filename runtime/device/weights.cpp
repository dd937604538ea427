#include "runtime/device/weights.h"

#include "runtime/base/strings.h"

namespace modelc {

Weights::Weights(std::shared_ptr<const CheckpointIndex> index, FileAccess access)
    : shared_(std::make_shared<Shared>(std::move(index), access)) {}

Result<Weights> Weights::open(const std::string& path, const OpenOptions& options, FileAccess access) {
  return open(std::vector<std::string>{path}, options, access);
}

Result<Weights> Weights::open(const std::vector<std::string>& paths, const OpenOptions& options, FileAccess access) {
  auto index = open_checkpoint(paths, options);
  if (!index) return std::move(index.error());
  return Weights(std::make_shared<const CheckpointIndex>(std::move(*index)), access);
}

Result<Weights> Weights::of(const WeightMap& weights, const std::string& label) {
  auto index = checkpoint_of(weights, label);
  if (!index) return std::move(index.error());
  return Weights(std::make_shared<const CheckpointIndex>(std::move(*index)));
}

Weights Weights::operator[](std::string_view name) const {
  Weights below = *this;
  if (!below.name_.empty()) below.name_ += '.';
  below.name_ += name;
  return below;
}

std::vector<std::pair<std::string, Weights>> Weights::items() const {
  std::vector<std::pair<std::string, Weights>> below;
  const std::size_t skip = name_.empty() ? 0 : name_.size() + 1;
  for (const TensorInfo& t : index().tensors()) {
    if (skip > 0 && !(t.name.size() > skip && t.name.starts_with(name_) && t.name[skip - 1] == '.')) continue;
    Weights w = *this;
    w.name_ = t.name;
    below.emplace_back(t.name.substr(skip), std::move(w));
  }
  return below;
}

Result<WeightValue> Weights::data() const {
  const TensorInfo* t = info();
  auto bytes = t != nullptr ? shared_->data.bytes(*t) : shared_->data.bytes(name_);
  if (!bytes) {
    if (t == nullptr && !items().empty())
      bytes.error().help = "it is a module of " + counted(items().size(), "tensor") + ": items() lists them";
    return std::move(bytes.error());
  }
  return WeightValue::in(bytes->owner, t->offset, t->encoding, t->shape);
}

Result<AllocatedWeight> Weights::allocate(const WeightRequest& request) const {
  auto value = data();
  if (!value) return std::move(value.error());
  const std::string where = quote(name_) + " in " + quote(index().file_of(*info()).label);
  const auto differs = [&](const char* kind, const std::string& has, const std::string& wanted, const char* help) {
    return Error{kind, where + " is " + has + ", and " + wanted + " was asked for", {}, help};
  };
  if (request.encoding && value->encoding() != *request.encoding)
    return differs("encoding", std::string(modelc::name(value->encoding())), std::string(modelc::name(*request.encoding)), "");
  if (request.dtype && value->encoding() != encoding_of(*request.dtype))
    return differs("dtype", std::string(modelc::name(value->encoding())), std::string(modelc::name(*request.dtype)),
                   "data() and astype() convert it");
  if (request.shape && value->shape() != *request.shape)
    return differs("shape", shape_text(value->shape()), shape_text(*request.shape), "");

  AllocatedWeight made{*value};
  if (request.device) {
    const auto type = dtype_of(value->encoding());
    // In a file elements may lie at any address; a tensor of a device is one of whole elements.
    if (type && reinterpret_cast<std::uintptr_t>(value->bytes().data()) % static_cast<std::uintptr_t>(bytes(*type)) != 0) {
      value = WeightValue::of(value->encoding(), value->shape(), value->bytes());
      if (!value) return std::move(value.error());
    }
    auto buffer = request.device->place(value->file(), value->at(), static_cast<std::int64_t>(value->bytes().size()));
    if (!buffer) return std::move(buffer.error());
    made.buffer = std::shared_ptr<const Buffer>(*buffer, [device = request.device](const Buffer* b) { device->free(b); });
    if (type && value->shape().size() > Shape::max_rank)
      return Error{"shape",
                   where + " has " + std::to_string(value->shape().size()) + " axes; a device's tensors have at most " +
                       std::to_string(Shape::max_rank),
                   {},
                   {}};
    made.tensor = type ? Tensor{made.buffer.get(), 0, *type, Shape(std::span<const std::int64_t>(value->shape()))}
                       : Tensor{made.buffer.get(), 0, DType::u8, {static_cast<std::int64_t>(value->bytes().size())}};
  }
  shared_->allocated.insert_or_assign(name_, made);
  return made;
}

}  // namespace modelc

#include "runtime/vulkan/vulkan_device.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>

#include "runtime/base/strings.h"
#include "runtime/device/step.h"
#include "runtime/kv_cache/kv_cache.h"
#include "runtime/vulkan/cut.h"
#include "runtime/vulkan/shaders.h"

namespace modelc::vulkan {
namespace {

GpuBuffer* gpu(const Buffer* b) { return static_cast<GpuBuffer*>(const_cast<Buffer*>(b)); }

}  // namespace

Result<std::unique_ptr<VulkanDevice>> VulkanDevice::open(const VulkanOptions& options) {
  auto instance = Instance::open();
  if (!instance) return std::move(instance.error());
  auto devices = physical_devices(**instance);
  if (!devices) return std::move(devices.error());
  if (devices->empty())
    return Error{
        "no-vulkan", "Vulkan is there and no device with it", {}, "install a driver (Debian: mesa-vulkan-drivers), or run on the CPU"};
  if (options.device < 0 || static_cast<std::size_t>(options.device) >= devices->size()) {
    std::vector<std::string> list;
    for (std::size_t i = 0; i < devices->size(); ++i)
      list.push_back("vulkan:" + std::to_string(i) + " is " + describe(**instance, (*devices)[i]).name);
    return Error{"device-name", "there is no device vulkan:" + std::to_string(options.device), list, "`modelc devices` lists them"};
  }
  PlanOptions plan;
  plan.masked = options.masked;
  // For a driver whose feature is broken.
  if (const char* without = std::getenv("MODELC_VULKAN_WITHOUT"); without != nullptr)
    for (const std::string_view feature : split(without, ',')) {
      const auto known = feature_names();
      if (!feature.empty() && std::find(known.begin(), known.end(), feature) == known.end())
        return Error{"device-name",
                     "MODELC_VULKAN_WITHOUT names " + quote(feature) + ", which is no feature that is used",
                     {},
                     "known are " + listed(known, known.size())};
      if (!feature.empty()) plan.masked.emplace_back(feature);
    }
  plan.binding_bytes = options.binding_bytes;
  plan.max_groups = options.max_groups;
  auto c = open_context(*instance, (*devices)[static_cast<std::size_t>(options.device)], plan);
  if (!c) return std::move(c.error());
  std::unique_ptr<VulkanDevice> d(new VulkanDevice(std::move(*c)));
  for (const EmbeddedShader& s : embedded_shaders()) d->shaders_.emplace(s.name, ShaderCode{s.name, s.code, s.bytes, s.needs});
  auto recorder = Recorder::make(*d->c_, d->memory_, d->pipelines_);
  if (!recorder) return std::move(recorder.error());
  d->recorder_ = std::move(*recorder);
  d->recorder_->replay = options.device_graph;
  d->recorder_->fail_submit = options.fail_submit;
  return d;
}

VulkanDevice::~VulkanDevice() {
  recorder_.reset();                                       // waits
  for (GpuBuffer* b : scratch_)
    if (b != nullptr) memory_.release(b);
}

std::string VulkanDevice::description() const {
  return "Vulkan, " + c_->description.name + (c_->plan.subgroup > 0 ? ", subgroups of " + std::to_string(c_->plan.subgroup) : "");
}

std::string VulkanDevice::operations() const {
  const Recorder::Counts& n = recorder_->counts;
  std::string custom;
  if (custom_runs_ > 0) custom += ", " + counted(custom_runs_, "custom operation") + " by a shader of its own";
  for (const auto& [op, why] : by_formula_) custom += "; `" + op + "` by its reference formula: " + why;
  return grouped(n.dispatches) + " dispatches, " + grouped(n.copies) + " copies, " + grouped(n.barriers) + " barriers, " +
         counted(n.submissions, "submission") + ", " + grouped(n.replayed) + " of them recorded before" + custom;
}

// ---- memory

Result<const Buffer*> VulkanDevice::allocate(std::int64_t size) {
  auto b = memory_.allocate(size, this);
  if (!b) {
    recorder_->note_last(b.error());
    return std::move(b.error());
  }
  return static_cast<const Buffer*>(*b);
}

std::int64_t VulkanDevice::largest_buffer() const {
  return static_cast<std::int64_t>(c_->plan.largest_tensor - std::min<std::uint64_t>(c_->plan.largest_tensor, c_->plan.alignment));
}

void VulkanDevice::free(const Buffer* buffer) {
  assert(buffer != nullptr && buffer->owner == this);
  recorder_->retire(gpu(buffer));
}

Result<const Buffer*> VulkanDevice::place(std::shared_ptr<const MappedFile> file, std::uint64_t at, std::int64_t size) {
  if (size < 0 || at > file->size() || static_cast<std::uint64_t>(size) > file->size() - at)
    return Error{"file-shrunk",
                 file->path() + " has " + grouped(static_cast<std::uint64_t>(file->size())) + " bytes, and no " + grouped(size) +
                     " of them from " + grouped(at) + " on",
                 {},
                 {}};
  auto buffer = allocate(size);
  if (!buffer) {
    buffer.error().notes.insert(buffer.error().notes.begin(), "for " + grouped(size) + " bytes of " + file->path());
    return buffer;
  }
  file->will_need(at, static_cast<std::size_t>(size));
  write({file->data() + at, static_cast<std::size_t>(size)}, {*buffer, 0, DType::u8, {size}});
  return buffer;
}

Status VulkanDevice::read(const Tensor& t, std::span<std::byte> to) {
  assert(static_cast<std::int64_t>(to.size()) == t.size());
  if (Status s = recorder_->download(t, to); !s) return s;
  return check_faults();
}

void VulkanDevice::write(std::span<const std::byte> from, const Tensor& t) {
  assert(static_cast<std::int64_t>(from.size()) == t.size());
  recorder_->upload(from, t);
}

Tensor VulkanDevice::scratch(std::size_t k, DType dtype, Shape shape) {
  Tensor t{nullptr, 0, dtype, shape};
  if (scratch_.size() <= k) scratch_.resize(k + 1, nullptr);
  GpuBuffer*& b = scratch_[k];
  if (b == nullptr || b->size < t.size()) {
    if (b != nullptr) recorder_->retire(b);
    b = nullptr;
    auto fresh = memory_.allocate(std::max<std::int64_t>(t.size(), 1), this);
    if (!fresh) {
      recorder_->note_last(fresh.error());
      recorder_->fail(std::move(fresh.error()));
      return {};
    }
    b = *fresh;
  }
  t.buffer = b;
  return t;
}

// ---- steps

Status VulkanDevice::begin(const StepSizes&, const Batch*, const BatchTensors& fields) {
  batch_ = fields;
  return {};
}

Status VulkanDevice::finish() {
  if (Status s = recorder_->wait(); !s) return s;
  return check_faults();
}

Status VulkanDevice::check_faults() {
  const auto words = recorder_->fault_words();
  if (words[0] == 0) return {};
  const bool expert = words[0] == 2;
  const Error e{"index-range",
                (expert ? "expert " : "row ") + std::to_string(static_cast<std::int32_t>(words[1])) +
                    (expert ? " is chosen of " : " is taken of ") + grouped(std::uint64_t{words[2]}),
                {},
                "the model computes an index that its own type does not allow"};
  std::fill(words.begin(), words.end(), 0U);
  return e;
}

namespace {

// Whether it has shaders for such a state.
Status supported(const StateSlot& slot) {
  if (slot.dtype == DType::f32) return {};
  return Error{"state-kind", "a state of " + std::string(name(slot.dtype)) + " is not carried out by the Vulkan device", {}, {}};
}

// Bytes of the two buffers of a cache of keys and values.
struct CacheBytes {
  std::int64_t keys = 0, values = 0;
};
Result<CacheBytes> cache_bytes(const StateSlot& slot, std::int64_t asked_for, int sequences) {
  const auto [heads, dim, value_dim, capacity] = KeySizes(slot, asked_for);
  CacheBytes b;
  std::int64_t rows = 0, both = 0;
  if (capacity > (std::int64_t{1} << 40) || __builtin_mul_overflow(capacity * 4, static_cast<std::int64_t>(sequences) * heads, &rows) ||
      __builtin_mul_overflow(rows, dim, &b.keys) || __builtin_mul_overflow(rows, value_dim, &b.values) ||
      __builtin_add_overflow(b.keys, b.values, &both))
    return Error{"out-of-memory",
                 "a cache of " + grouped(capacity) + " positions for " + counted(static_cast<std::uint64_t>(sequences), "sequence") +
                     " passes all memory",
                 {},
                 {}};
  return b;
}

}  // namespace

Error VulkanDevice::too_large(const std::string& what, std::int64_t size, const std::string& help) const {
  return {
      "tensor-size",
      c_->description.name + ": " + what + " of " + grouped(size) + " bytes; one piece of memory has at most " + grouped(largest_buffer()),
      {},
      help};
}

Result<std::int64_t> VulkanDevice::state_bytes(const StateSlot& slot, std::int64_t capacity, int sequences) const {
  if (Status s = supported(slot); !s) return std::move(s.error());
  if (slot.kind == StateSlot::Kind::latent_cache) {
    auto size = LatentCache::bytes_of(slot, capacity, sequences);
    if (size && *size > largest_buffer()) return too_large("latents", *size, "fewer positions or sequences");
    return size;
  }
  if (!slot.has_keys()) {
    auto both = SlotState::bytes_of(slot, sequences);      // and the copy to go back to, of the same size
    if (both && *both / 2 > largest_buffer()) return too_large("a state", *both / 2, "fewer sequences");
    return both;
  }
  auto size = cache_bytes(slot, capacity, sequences);
  if (!size) return std::move(size.error());
  if (const std::int64_t larger = std::max(size->keys, size->values); larger > largest_buffer())
    return too_large("keys or values", larger, "fewer positions or sequences");
  return size->keys + size->values;
}

Result<std::unique_ptr<StateStore>> VulkanDevice::reserve(const StateSlot& slot, std::int64_t capacity, int sequences) {
  if (auto size = state_bytes(slot, capacity, sequences); !size) return std::move(size.error());
  if (slot.kind == StateSlot::Kind::latent_cache) {
    auto size = LatentCache::bytes_of(slot, capacity, sequences);
    if (!size) return std::move(size.error());
    auto rows = allocate(*size);
    if (!rows) return std::move(rows.error());
    return std::unique_ptr<StateStore>(std::make_unique<LatentCache>(
        *this, slot, capacity, sequences, Tensor{*rows, 0, DType::f32, {sequences, capacity, slot.sizes[0] + slot.sizes[1]}}));
  }
  if (!slot.has_keys()) {
    auto state = SlotState::make(*this, slot, sequences);
    if (!state) return std::move(state.error());
    return std::unique_ptr<StateStore>(std::move(*state));
  }
  auto size = cache_bytes(slot, capacity, sequences);
  if (!size) return std::move(size.error());
  auto keys = allocate(size->keys);
  if (!keys) return std::move(keys.error());
  auto values = allocate(size->values);
  if (!values) {
    free(*keys);
    return std::move(values.error());
  }
  const KeySizes of(slot, capacity);
  return std::unique_ptr<StateStore>(
      std::make_unique<KvCache>(*this, slot, of, sequences, Tensor{*keys, 0, DType::f32, {sequences, of.heads, of.capacity, of.dim}},
                                Tensor{*values, 0, DType::f32, {sequences, of.heads, of.capacity, of.value_dim}}));
}

// ---- shaders

bool VulkanDevice::has(const std::string& name) const {
  const auto s = shaders_.find(name);
  return s != shaders_.end() && (s->second.needs & ~c_->plan.features) == 0;
}

Dispatch VulkanDevice::shader(const std::string& name) const {
  const auto s = shaders_.find(name);
  assert(s != shaders_.end() && "a shader that no .variants file declares");
  Dispatch d;
  d.shader = s->second;
  return d;
}

void VulkanDevice::run(const Dispatch& d) {
  if (c_->plan.loop_rounds > 0 && d.rounds > c_->plan.loop_rounds)
    return recorder_->fail(Error{"tensor-size",
                                 std::string(d.shader.name) + ": loops of " + grouped(d.rounds) + " rounds, and the driver of " +
                                     c_->description.name + " carries out " + grouped(std::uint64_t{c_->plan.loop_rounds}),
                                 {},
                                 "this is a limit of a software driver: run what is so large on the CPU"});
  const auto parts = in_parts(d, c_->plan);
  if (parts.empty()) recorder_->dispatch(d);
  for (const Dispatch& part : parts) recorder_->dispatch(part);
}

}  // namespace modelc::vulkan

namespace modelc {

Result<std::unique_ptr<Device>> open_vulkan(const VulkanOptions& options) {
  auto d = vulkan::VulkanDevice::open(options);
  if (!d) return std::move(d.error());
  return std::unique_ptr<Device>(std::move(*d));
}

}  // namespace modelc

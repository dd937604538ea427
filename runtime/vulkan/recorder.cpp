#include "runtime/vulkan/recorder.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "runtime/base/strings.h"

namespace modelc::vulkan {
namespace {

constexpr std::size_t most_recorded = 8;                  // runs of items that are kept
constexpr std::uint64_t patience = 60ULL * 1000 * 1000 * 1000;         // nanoseconds to wait for a fence before it is asked again

const GpuBuffer& gpu(const Tensor& t) { return *static_cast<const GpuBuffer*>(t.buffer); }

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::make(const Context& c, Memory& memory, Pipelines& pipelines) {
  std::unique_ptr<Recorder> r(new Recorder(c, memory, pipelines));
  if (Status s = r->prepare(); !s) return std::move(s.error());
  return r;
}

Status Recorder::prepare() {
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = c_.plan.queue_family;
  if (const VkResult r = c_.f.CreateCommandPool(c_.device, &pool, nullptr, &pool_); r != VK_SUCCESS) return c_.failed(r, "a command pool");
  slots_.resize(c_.plan.slices);
  for (Slot& s : slots_) {
    VkCommandBufferAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool_;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    if (const VkResult r = c_.f.AllocateCommandBuffers(c_.device, &info, &s.commands); r != VK_SUCCESS)
      return c_.failed(r, "a command buffer");
    VkFenceCreateInfo fence{};
    fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    if (const VkResult r = c_.f.CreateFence(c_.device, &fence, nullptr, &s.fence); r != VK_SUCCESS) return c_.failed(r, "a fence");
    auto staging = memory_.host_block(c_.plan.staging_bytes, c_.plan.upload_type);
    if (!staging) return std::move(staging.error());
    s.staging = std::move(*staging);
  }
  auto faults = memory_.host_block(c_.plan.alignment, c_.plan.readback_type);
  if (!faults) return std::move(faults.error());
  faults_ = std::move(*faults);
  std::memset(faults_.host, 0, 16);
  faults_buffer_.size = 16;
  faults_tensor_ = {&faults_buffer_, 0, DType::i32, {4}};
  auto readback = memory_.host_block(c_.plan.staging_bytes, c_.plan.readback_type);
  if (!readback) return std::move(readback.error());
  readback_ = std::move(*readback);
  auto none = memory_.allocate(c_.plan.alignment, nullptr);
  if (!none) return std::move(none.error());
  none_ = *none;
  return {};
}

Recorder::~Recorder() {
  c_.f.DeviceWaitIdle(c_.device);                          // of a lost device it says so, and that is all the same here
  for (const Retired& r : retired_) memory_.release(r.buffer);
  for (const auto& r : recorded_) forget(*r);
  for (Slot& s : slots_) {
    if (s.fence != VK_NULL_HANDLE) c_.f.DestroyFence(c_.device, s.fence, nullptr);
    memory_.destroy(s.staging);
  }
  if (pool_ != VK_NULL_HANDLE) c_.f.DestroyCommandPool(c_.device, pool_, nullptr);
  memory_.destroy(faults_);
  memory_.destroy(readback_);
  if (none_ != nullptr) memory_.release(none_);
}

void Recorder::forget(Recorded& r) {
  if (r.pool != VK_NULL_HANDLE) c_.f.DestroyDescriptorPool(c_.device, r.pool, nullptr);
  if (r.fence != VK_NULL_HANDLE) c_.f.DestroyFence(c_.device, r.fence, nullptr);
  if (r.commands != VK_NULL_HANDLE) c_.f.FreeCommandBuffers(c_.device, pool_, 1, &r.commands);
  r = {};
}

bool Recorder::check(VkResult r, const char* doing) {
  if (r == VK_SUCCESS) return true;
  if (r == VK_ERROR_DEVICE_LOST) lost_ = true;
  Error e = c_.failed(r, doing);
  note_last(e);
  fail(std::move(e));
  return false;
}

void Recorder::note_last(Error& e) const {
  if (!last_.empty()) e.notes.push_back("the last operation was " + last_ + ", number " + grouped(counts.dispatches));
}

bool Recorder::usable() {
  if (failure_) return false;
  if (lost_) fail(Error{"device-lost", c_.description.name + ": the device was lost before", {}, "load the model again"});
  return !failure_;
}

bool Recorder::await(VkFence fence, std::uint64_t& serial) {
  if (serial == 0) return true;
  VkResult r = VK_TIMEOUT;
  while (r == VK_TIMEOUT) r = c_.f.WaitForFences(c_.device, 1, &fence, VK_TRUE, patience);
  done_ = std::max(done_, serial);
  serial = 0;
  return check(r, "waiting for the device") && check(c_.f.ResetFences(c_.device, 1, &fence), "a fence");
}

void Recorder::release_retired() {
  const auto blocks = memory_.blocks();
  std::erase_if(retired_, [&](const Retired& r) {
    if (r.after > done_) return false;
    memory_.release(r.buffer);
    return true;
  });
  if (memory_.blocks() == blocks) return;
  // A block is gone, and another may come under its name: what was recorded with it must not run again.
  for (const auto& r : recorded_) {
    await(r->fence, r->serial);
    forget(*r);
  }
  recorded_.clear();
}

bool Recorder::begin(VkCommandBuffer commands, bool once) {
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  if (once) info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  if (!check(c_.f.BeginCommandBuffer(commands, &info), "recording commands")) return false;
  // What earlier submissions wrote is seen from here on.
  VkMemoryBarrier all{};
  all.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  all.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  all.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  c_.f.CmdPipelineBarrier(commands, stages, stages, 0, 1, &all, 0, nullptr, 0, nullptr);
  return true;
}

bool Recorder::end(VkCommandBuffer commands) {
  VkMemoryBarrier host{};
  host.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  host.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  host.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  c_.f.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                          &host, 0, nullptr, 0, nullptr);
  return check(c_.f.EndCommandBuffer(commands), "recording commands");
}

bool Recorder::submit(VkCommandBuffer commands, VkFence fence, std::uint64_t& serial) {
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  const bool planted = fail_submit > 0 && --fail_submit == 0;
  if (!check(planted ? VK_ERROR_DEVICE_LOST : c_.f.QueueSubmit(c_.queue, 1, &info, fence), "submitting commands")) return false;
  serial = ++serial_;
  ++counts.submissions;
  return true;
}

bool Recorder::open() {
  if (!usable()) return false;
  if (open_) return true;
  submit_items();
  if (!usable()) return false;
  Slot& s = slots_[current_];
  if (!await(s.fence, s.serial)) return false;
  s.staged = 0;
  release_retired();
  if (!begin(s.commands, true)) return false;
  open_ = true;
  since_.clear();
  return true;
}

void Recorder::submit_slot() {
  if (!open_) return;
  Slot& s = slots_[current_];
  open_ = false;
  if (!end(s.commands) || failure_) return;                // half of a step is not worth running
  if (submit(s.commands, s.fence, s.serial)) current_ = (current_ + 1) % slots_.size();
}

Recorder::Recorded* Recorder::find_recorded() {
  if (!replay) return nullptr;
  for (const auto& r : recorded_)
    if (r->items == items_) return r.get();
  return nullptr;
}

void Recorder::submit_items() {
  if (items_.empty()) return;
  if (!failure_) {
    Recorded* r = find_recorded();
    const bool known = r != nullptr;
    if (!known) {
      // A new one, or the one that was not used for longest.
      if (recorded_.size() < most_recorded) {
        recorded_.push_back(std::make_unique<Recorded>());
        r = recorded_.back().get();
      } else {
        r = std::min_element(recorded_.begin(), recorded_.end(), [](const auto& a, const auto& b) { return a->used < b->used; })->get();
      }
    }
    if (await(r->fence, r->serial) && (known || record(*r))) {
      for (const Item& i : items_) ++(i.pipeline != VK_NULL_HANDLE ? counts.dispatches : counts.copies);
      counts.barriers += r->barriers;
      counts.replayed += known ? 1 : 0;
      if (submit(r->commands, r->fence, r->serial)) r->used = serial_;
    } else {
      r->items.clear();                                    // half recorded: equal to nothing
    }
  }
  items_.clear();
  work_ = 0;
}

bool Recorder::record(Recorded& r) {
  r.items.clear();
  if (r.commands == VK_NULL_HANDLE) {
    VkCommandBufferAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool_;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    if (!check(c_.f.AllocateCommandBuffers(c_.device, &info, &r.commands), "a command buffer")) return false;
    VkFenceCreateInfo fence{};
    fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    if (!check(c_.f.CreateFence(c_.device, &fence, nullptr, &r.fence), "a fence")) return false;
  }
  if (r.pool != VK_NULL_HANDLE) c_.f.DestroyDescriptorPool(c_.device, r.pool, nullptr);
  r.pool = VK_NULL_HANDLE;
  std::uint32_t sets = 0, bindings = 0;
  for (const Item& i : items_)
    if (i.pipeline != VK_NULL_HANDLE) {
      ++sets;
      bindings += static_cast<std::uint32_t>(i.ranges.size());
    }
  if (sets > 0) {
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, bindings};
    VkDescriptorPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    info.maxSets = sets;
    info.poolSizeCount = 1;
    info.pPoolSizes = &size;
    if (!check(c_.f.CreateDescriptorPool(c_.device, &info, nullptr, &r.pool), "a pool of bindings")) return false;
  }
  if (!begin(r.commands, false)) return false;
  std::vector<Range> since;
  const std::uint64_t before = counts.barriers;
  for (const Item& i : items_) {
    if (i.pipeline == VK_NULL_HANDLE) {
      order(r.commands, i.ranges, since);
      const Range& to = i.ranges.back();
      if (i.ranges.size() == 1) {
        c_.f.CmdFillBuffer(r.commands, to.buffer, to.begin, to.end - to.begin, i.push[0]);
      } else {
        const VkBufferCopy region = {i.ranges[0].begin, to.begin, to.end - to.begin};
        c_.f.CmdCopyBuffer(r.commands, i.ranges[0].buffer, to.buffer, 1, &region);
      }
      continue;
    }
    const std::size_t n = i.ranges.size();
    auto layout = pipelines_.layout(n);
    if (!layout) return fail(std::move(layout.error())), false;
    VkDescriptorSetAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    info.descriptorPool = r.pool;
    info.descriptorSetCount = 1;
    info.pSetLayouts = &layout->set;
    VkDescriptorSet set = VK_NULL_HANDLE;
    if (!check(c_.f.AllocateDescriptorSets(c_.device, &info, &set), "bindings of a shader")) return false;
    std::vector<VkDescriptorBufferInfo> infos(n);
    std::vector<VkWriteDescriptorSet> updates(n);
    for (std::size_t k = 0; k < n; ++k) {
      infos[k] = {i.ranges[k].buffer, i.ranges[k].begin, i.ranges[k].end - i.ranges[k].begin};
      updates[k].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
      updates[k].dstSet = set;
      updates[k].dstBinding = static_cast<std::uint32_t>(k);
      updates[k].descriptorCount = 1;
      updates[k].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      updates[k].pBufferInfo = &infos[k];
    }
    c_.f.UpdateDescriptorSets(c_.device, static_cast<std::uint32_t>(n), updates.data(), 0, nullptr);
    order(r.commands, i.ranges, since);
    c_.f.CmdBindPipeline(r.commands, VK_PIPELINE_BIND_POINT_COMPUTE, i.pipeline);
    c_.f.CmdBindDescriptorSets(r.commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout->pipeline, 0, 1, &set, 0, nullptr);
    c_.f.CmdPushConstants(r.commands, layout->pipeline, VK_SHADER_STAGE_COMPUTE_BIT, 0, static_cast<std::uint32_t>(i.push.size() * 4),
                          i.push.data());
    c_.f.CmdDispatch(r.commands, i.groups[0], i.groups[1], i.groups[2]);
  }
  r.barriers = counts.barriers - before;
  counts.barriers = before;
  if (!end(r.commands)) return false;
  r.items = items_;
  return true;
}

Status Recorder::wait() {
  submit_slot();
  submit_items();
  for (Slot& s : slots_) await(s.fence, s.serial);
  for (const auto& r : recorded_) await(r->fence, r->serial);
  if (failure_) c_.f.DeviceWaitIdle(c_.device);
  done_ = serial_;
  items_.clear();
  open_ = false;
  release_retired();
  if (!failure_) return {};
  Error e = std::move(*failure_);
  failure_.reset();
  return e;
}

void Recorder::retire(GpuBuffer* b) {
  // What waits, or is open, comes with the next submission.
  const bool waiting = open_ || !items_.empty();
  retired_.push_back({b, serial_ + (waiting ? 1 : 0)});
  if (!waiting && done_ == serial_) release_retired();
}

Recorder::Range Recorder::range(const Tensor& t, std::int64_t bytes, bool read, bool written) const {
  if (t.buffer == &faults_buffer_) return {faults_.buffer, 0, static_cast<std::uint64_t>(bytes), read, written};
  const GpuBuffer& b = gpu(t);
  const std::uint64_t at = b.begin + static_cast<std::uint64_t>(t.offset);
  return {b.block->buffer, at, at + static_cast<std::uint64_t>(bytes), read, written};
}

void Recorder::order(VkCommandBuffer commands, std::span<const Range> ranges, std::vector<Range>& since) {
  bool needed = false;
  for (const Range& a : ranges) {
    if (!a.read && !a.written) continue;
    for (const Range& e : since)
      needed = needed || (e.buffer == a.buffer && e.begin < a.end && a.begin < e.end && (e.written || a.written));
  }
  if (needed) {
    VkMemoryBarrier b{};
    b.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    b.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    b.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    c_.f.CmdPipelineBarrier(commands, stages, stages, 0, 1, &b, 0, nullptr, 0, nullptr);
    since.clear();
    ++counts.barriers;
  }
  for (const Range& a : ranges)
    if (a.read || a.written) since.push_back(a);
}

void Recorder::add(Item item, std::uint64_t work) {
  submit_slot();
  items_.push_back(std::move(item));
  work_ += work;
  if (items_.size() >= c_.plan.dispatches || work_ >= c_.plan.work) submit_items();
}

void Recorder::dispatch(const Dispatch& d) {
  if (d.groups == 0 || !usable()) return;
  last_ = d.shader.name;
  const auto too_much = [&](const std::string& kind, const std::string& what, const std::string& help) {
    fail(Error{kind, c_.description.name + ": " + d.shader.name + " " + what, {}, help});
  };
  const std::size_t n = d.bindings.size();
  if (n > c_.plan.max_bindings)
    return too_much("vulkan-limit",
                    "sees " + std::to_string(n) + " buffers, and the device lets a shader see " + std::to_string(c_.plan.max_bindings),
                    "run on another device");
  const auto groups = d.shape[0] > 0 ? std::optional(d.shape) : fold_groups(d.groups, c_.plan.max_groups);
  if (!groups)
    return too_much("vulkan-limit", "needs " + grouped(d.groups) + " workgroups, more than the device has", "fewer tokens in a call");
  const std::size_t told = d.offsets ? n : 0;
  if (told + d.arguments.size() > Dispatch::max_words) return too_much("vulkan-limit", "has more than 128 bytes of arguments", {});

  Item item;
  item.groups = *groups;
  for (std::size_t i = 0; i < n; ++i) {
    const Binding& b = d.bindings[i];
    if (!b.tensor || b.bytes == 0) {                       // what the shader does not touch
      item.ranges.push_back({none_->block->buffer, none_->begin, none_->begin + c_.plan.alignment, false, false});
      continue;
    }
    Range r = range(b.tensor, b.bytes, b.read, b.written);
    const std::uint64_t aligned = r.begin / c_.plan.alignment * c_.plan.alignment;
    if (d.offsets) item.push[i] = static_cast<std::uint32_t>(r.begin - aligned);
    assert(d.offsets || r.begin == aligned);
    r.begin = aligned;
    r.end = (r.end + 3) / 4 * 4;                           // shaders read whole words
    if (r.end - r.begin > c_.plan.binding_bytes)
      return too_much(
          "tensor-size",
          "needs " + grouped(r.end - r.begin) + " bytes of one tensor at once, and a shader sees " + grouped(c_.plan.binding_bytes),
          "fewer tokens in a call, or another device");
    item.ranges.push_back(r);
  }
  std::copy(d.arguments.begin(), d.arguments.end(), item.push.begin() + static_cast<std::ptrdiff_t>(told));
  auto pipeline = pipelines_.pipeline(d);
  if (!pipeline) return fail(std::move(pipeline.error()));
  item.pipeline = *pipeline;
  add(std::move(item), d.work);
}

bool Recorder::begins_binding(const Tensor& t) const { return range(t, 0, true, false).begin % c_.plan.alignment == 0; }

void Recorder::copy(const Tensor& from, const Tensor& to, std::int64_t bytes) {
  if (bytes == 0 || !usable()) return;
  last_ = "copy";
  Item item;
  item.ranges = {range(from, bytes, true, false), range(to, bytes, false, true)};
  assert(item.ranges[0].buffer != item.ranges[1].buffer || item.ranges[0].end <= item.ranges[1].begin ||
         item.ranges[1].end <= item.ranges[0].begin);
  add(std::move(item), static_cast<std::uint64_t>(bytes));
}

void Recorder::fill(const Tensor& t, std::uint32_t word) {
  if (t.size() == 0 || !usable()) return;
  last_ = "fill";
  Item item;
  item.ranges = {range(t, t.size(), false, true)};
  item.push[0] = word;
  add(std::move(item), static_cast<std::uint64_t>(t.count()));
}

std::optional<std::uint64_t> Recorder::stage(std::uint64_t bytes) {
  assert(bytes <= c_.plan.staging_bytes);
  if (!open()) return std::nullopt;
  if (slots_[current_].staged + bytes > slots_[current_].staging.bytes) {
    submit_slot();
    if (!open()) return std::nullopt;
  }
  Slot& s = slots_[current_];
  const std::uint64_t at = s.staged;
  s.staged = (at + bytes + c_.plan.alignment - 1) / c_.plan.alignment * c_.plan.alignment;
  return at;
}

void Recorder::upload(std::span<const std::byte> from, const Tensor& t) {
  std::uint64_t done = 0;
  while (done < from.size() && !failure_) {
    // What fills a slice, or what is left of this one.
    const std::uint64_t left =
        open_ ? slots_[current_].staging.bytes - std::min(slots_[current_].staged, slots_[current_].staging.bytes) : 0;
    const std::uint64_t room = left >= 64 * 1024 ? left : c_.plan.staging_bytes;
    const std::uint64_t bytes = std::min<std::uint64_t>(from.size() - done, room);
    const auto at = stage(bytes);
    if (!at) return;
    last_ = "upload";
    Slot& s = slots_[current_];
    std::memcpy(s.staging.host + *at, from.data() + done, bytes);
    Range a = range(t, t.size(), false, true);
    a.begin += done;
    a.end = a.begin + bytes;
    order(s.commands, {&a, 1}, since_);
    const VkBufferCopy region = {*at, a.begin, bytes};
    c_.f.CmdCopyBuffer(s.commands, s.staging.buffer, a.buffer, 1, &region);
    counts.uploaded += bytes;
    done += bytes;
  }
}

Status Recorder::download(const Tensor& t, std::span<std::byte> to) {
  std::uint64_t done = 0;
  if (to.empty()) return wait();
  while (done < to.size()) {
    const std::uint64_t bytes = std::min<std::uint64_t>(to.size() - done, readback_.bytes);
    if (open()) {
      last_ = "download";
      const std::uint64_t begin = range(t, t.size(), true, false).begin + done;
      const Range both[] = {{range(t, t.size(), true, false).buffer, begin, begin + bytes, true, false},
                            {readback_.buffer, 0, bytes, false, true}};
      order(slots_[current_].commands, both, since_);
      const VkBufferCopy region = {begin, 0, bytes};
      c_.f.CmdCopyBuffer(slots_[current_].commands, both[0].buffer, readback_.buffer, 1, &region);
    }
    if (Status s = wait(); !s) return s;
    std::memcpy(to.data() + done, readback_.host, bytes);
    done += bytes;
  }
  return {};
}

}  // namespace modelc::vulkan

// Commands on their way to the device. What is recorded runs in order; barriers stand only where something is read or
// written that an earlier command wrote, or written that one reads. A few submissions are under way at a time; what they
// use is left alone until they are done.
//
// Operations are collected as plain data (Item). A run of them that is the same as one before (the step of one more token)
// is not recorded again: its command buffer is submitted once more. Uploads go through slices of staging memory, in
// command buffers of their own.
//
// A failure is kept and said by wait(): until then everything recorded is dropped. After a lost device nothing runs any
// more, and destruction works.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/vulkan/context.h"
#include "runtime/vulkan/dispatch.h"
#include "runtime/vulkan/memory.h"
#include "runtime/vulkan/pipelines.h"

namespace modelc::vulkan {

class Recorder {
 public:
  static Result<std::unique_ptr<Recorder>> make(const Context& c, Memory& memory, Pipelines& pipelines);
  Recorder(const Recorder&) = delete;
  ~Recorder();

  void dispatch(const Dispatch& d);
  void copy(const Tensor& from, const Tensor& to, std::int64_t bytes);
  bool begins_binding(const Tensor& t) const;              // it lies where a binding may begin
  void fill(const Tensor& t, std::uint32_t word);          // all of a tensor of 4-byte elements
  void upload(std::span<const std::byte> from, const Tensor& t);
  // Memory that what was recorded may still use: given back when that is done.
  void retire(GpuBuffer* b);

  // Submits, waits for everything, and says what failed since the last wait.
  Status wait();
  Status download(const Tensor& t, std::span<std::byte> to);
  // Words that shaders write faults to, seen by the host after wait(); the tensor is one of the device.
  const Tensor& faults() const { return faults_tensor_; }
  std::span<std::uint32_t> fault_words() { return {reinterpret_cast<std::uint32_t*>(faults_.host), 4}; }

  bool failed() const { return failure_.has_value(); }
  void fail(Error e) {
    if (!failure_) failure_ = std::move(e);
  }
  bool lost() const { return lost_; }
  // Adds to a failure what was done last, where something was.
  void note_last(Error& e) const;

  std::int64_t fail_submit = 0;                            // for tests: the k-th submission from now on fails; 0: none
  bool replay = true;                                      // false: everything is recorded each time
  struct Counts {
    std::uint64_t dispatches = 0, copies = 0, barriers = 0, submissions = 0, replayed = 0, uploaded = 0;
  } counts;

 private:
  Recorder(const Context& c, Memory& memory, Pipelines& pipelines) : c_(c), memory_(memory), pipelines_(pipelines) {}
  struct Slot {                                            // an upload or a download on its way
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    Block staging;
    std::uint64_t staged = 0;                              // bytes of it in use
    std::uint64_t serial = 0;                              // of its submission; 0: none is under way
  };
  // One operation, resolved: a dispatch, a copy (no pipeline) or a fill (no pipeline, one range).
  struct Range {
    VkBuffer buffer;
    std::uint64_t begin, end;
    bool read, written;
    bool operator==(const Range&) const = default;
  };
  struct Item {
    VkPipeline pipeline = VK_NULL_HANDLE;
    std::vector<Range> ranges;                             // one a binding; copy: from, to; fill: to
    std::array<std::uint32_t, Dispatch::max_words> push{}; // fill: the word
    std::array<std::uint32_t, 3> groups{};
    bool operator==(const Item&) const = default;
  };
  struct Recorded {                                        // items in a command buffer, ready to be submitted again
    std::vector<Item> items;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    VkDescriptorPool pool = VK_NULL_HANDLE;
    std::uint64_t barriers = 0;
    std::uint64_t serial = 0;                              // of its submission; 0: none is under way
    std::uint64_t used = 0;                                // serial of the last one
  };

  Status prepare();
  bool usable();                                           // nothing has failed so far
  bool open();                                             // a slot is open for recording, or something failed
  bool check(VkResult r, const char* doing);
  void submit_slot();
  void submit_items();
  bool submit(VkCommandBuffer commands, VkFence fence, std::uint64_t& serial);
  bool await(VkFence fence, std::uint64_t& serial);        // until that submission is done
  void add(Item item, std::uint64_t work);
  Recorded* find_recorded();                               // the same items as are waiting
  bool record(Recorded& r);                                // what is waiting
  void forget(Recorded& r);
  bool begin(VkCommandBuffer commands, bool once);
  bool end(VkCommandBuffer commands);
  // A barrier where these meet what came since the last one; the lists are of one command buffer.
  void order(VkCommandBuffer commands, std::span<const Range> ranges, std::vector<Range>& since);
  // Bytes of the open slot's staging memory; submits and takes the next slot when this one is full.
  std::optional<std::uint64_t> stage(std::uint64_t bytes);
  Range range(const Tensor& t, std::int64_t bytes, bool read, bool written) const;
  void release_retired();

  const Context& c_;
  Memory& memory_;
  Pipelines& pipelines_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::vector<Slot> slots_;
  std::size_t current_ = 0;
  bool open_ = false;
  std::vector<Range> since_;                               // of the open slot, since its last barrier
  // Of items that wait to be submitted; never while a slot is open.
  std::vector<Item> items_;
  std::uint64_t work_ = 0;
  std::vector<std::unique_ptr<Recorded>> recorded_;
  std::uint64_t serial_ = 0, done_ = 0;                    // the last submission; up to which all are done
  struct Retired {
    GpuBuffer* buffer;
    std::uint64_t after;
  };
  std::vector<Retired> retired_;
  Block faults_, readback_;
  Buffer faults_buffer_;
  Tensor faults_tensor_;
  GpuBuffer* none_ = nullptr;                              // bound where a shader has no use for a binding
  std::optional<Error> failure_;
  bool lost_ = false;
  std::string last_;                                       // what was recorded last, for messages
};

}  // namespace modelc::vulkan

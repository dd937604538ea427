// A Vulkan device: turns each operation into dispatches of shaders. What it has no shader for is an error that names the
// operation; nothing is ever computed elsewhere in silence.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "runtime/device/device.h"
#include "runtime/vulkan/context.h"
#include "runtime/vulkan/dispatch.h"
#include "runtime/vulkan/memory.h"
#include "runtime/vulkan/pipelines.h"
#include "runtime/vulkan/recorder.h"

namespace modelc::vulkan {

class VulkanDevice final : public Device {
 public:
  static Result<std::unique_ptr<VulkanDevice>> open(const VulkanOptions& options);
  ~VulkanDevice() override;

  std::string description() const override;
  std::string operations() const override;
  Result<const Buffer*> allocate(std::int64_t size) override;
  std::int64_t largest_buffer() const override;
  void free(const Buffer* buffer) override;
  Result<const Buffer*> place(std::shared_ptr<const MappedFile> file, std::uint64_t at, std::int64_t size) override;
  Status read(const Tensor& t, std::span<std::byte> to) override;
  void write(std::span<const std::byte> from, const Tensor& t) override;
  std::string layout() const override { return "vulkan-rows"; }
  bool reads(Encoding encoding, MatrixUse use) const override;
  Status prepare(Matrix& matrix, MatrixUse use) override;
  Status begin(const StepSizes& sizes, const Batch* at, const BatchTensors& fields) override;
  Result<std::unique_ptr<StateStore>> reserve(const StateSlot& slot, std::int64_t capacity, int sequences) override;
  Result<std::int64_t> state_bytes(const StateSlot& slot, std::int64_t capacity, int sequences) const override;

  void linear(const Tensor& x, const Matrix& w, std::span<const Tensor> outs, const Tensor& residual) override;
  void linear_map(const Tensor& x, const Matrix& w, const MapKernel& f, const Tensor& out) override;
  void take(const Matrix& table, const Tensor& rows, float scale, const Tensor& out) override;
  void take_rows(const Tensor& x, const Tensor& rows, const Tensor& out) override;
  void rms_norm(const Tensor& x, const Tensor& w, const NormArgs& args, const Tensor& out) override;
  void add_rms_norm(const Tensor& x, const Tensor& y, const Tensor& w, const NormArgs& args, const Tensor& sum, const Tensor& out) override;
  void layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, const NormArgs& args, const Tensor& out) override;
  void rope(const Tensor& x, const Tensor& cos, const Tensor& sin, Pairs pairs, const Tensor& out) override;
  void append(KvCache& cache, const Tensor& k, const Tensor& v, const Batch& at) override;
  void set(KvCache& cache, const Tensor& k, const Tensor& v, const Sequences& at) override;
  void attend(const Tensor& q, const KvCache& cache, const Batch& at, const AttendArgs& args, const Tensor& out) override;
  void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Batch& at, const AttendArgs& args, const Tensor& out) override;
  void attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttendArgs& args, const Tensor& out) override;
  void append(LatentCache& cache, const Tensor& latent, const Tensor& key, const Batch& at) override;
  void attend_latent(const LatentArgs& args, const LatentCache& cache, const Batch& at, const Tensor& out) override;
  void map(const MapKernel& f, std::span<const Tensor> inputs, const Tensor& out) override;
  void copy(const Tensor& from, const Tensor& to) override;
  void copy_strided(const Strided& from, const Strided& to) override;
  void fill(double value, const Tensor& out) override;
  void reduce(Reduction kind, const Tensor& x, const ReduceArgs& args, const Tensor& out) override;
  void route(const Tensor& scores, const Tensor& bias, const RouteArgs& args, const Tensor& chosen, const Tensor& weights) override;
  void experts(const Tensor& x, const Tensor& chosen, const Tensor& weights, const ExpertArgs& args, const MapKernel& f,
               const Tensor& out) override;
  void conv(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvArgs& args, const Tensor& out) override;
  void causal_conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& ring, const Batch& at, const Tensor& out) override;
  void ssd_scan(const ScanArgs& args, const Tensor& state, const Batch& at, const Tensor& out) override;
  void gated_delta(const DeltaArgs& args, const Tensor& state, const Batch& at, const Tensor& out) override;
  bool custom(std::span<const Tensor> inputs, std::span<const Tensor> outs, std::span<const std::int64_t> sizes,
              std::span<const CustomDispatch> ways, const HostKernel* host) override;
  Status finish() override;

  const DevicePlan& plan() const { return c_->plan; }
  const Recorder::Counts& counts() const { return recorder_->counts; }

 private:
  explicit VulkanDevice(std::unique_ptr<Context> c) : c_(std::move(c)), memory_(*c_), pipelines_(*c_) {}

  // A dispatch of the runtime's shader of this name; "" fails with the name.
  Dispatch shader(const std::string& name) const;
  bool has(const std::string& name) const;                 // and its features are there
  void run(const Dispatch& d);                             // in parts where a binding does not show all
  Status check_faults();
  // Device memory of the k-th use of scratch in an operation; none when it fails, which is kept.
  Tensor scratch(std::size_t k, DType dtype, Shape shape);
  // Where attention's keys lie.
  struct Keys {
    std::uint32_t layout = 0;                              // in_cache, ragged, rectangular, latents: attend.comp
    Tensor k, v, places;
    std::int64_t heads = 0, dv = 0, capacity = 0, n = 0;
    std::int64_t sequences = 1, longest = 0;               // of the queries; keys of a sequence, at most
    std::int64_t first = 0, held = 0;                      // what of them is bound: attend.comp
  };
  // Rows first_row … of the batch.
  void attend_over(const Tensor& q, const Keys& keys, const AttendArgs& args, std::int64_t first_row, const Tensor& out);
  Error too_large(const std::string& what, std::int64_t size, const std::string& help) const;
  void not_seen(std::int64_t bytes, const std::string& of, const std::string& help);
  // Which experts tokens chose, and, where a row of weights serves several of them, the pairs by expert: shaders/experts/sort.comp.
  struct Choice {
    Tensor chosen, sorted;
    std::uint32_t together = 1;
    std::int64_t tiles = 0, list = 0;
  };
  Choice by_expert(const Tensor& chosen, std::int64_t experts);
  void chosen_product(const Tensor& x, std::int64_t per_row, const Matrix& w, std::int64_t experts, const Tensor& bias,
                      const Choice& choice, const Tensor& out);
  // A scan by the shader of this name: `d` has its own bindings and arguments; the state and the batch's fields follow.
  void scan_over(const std::string& name, Dispatch d, const ScanShape& shape, const Tensor& state, const Batch& at);
  // Where rows of d numbers a head go: in a cache [slots, heads, capacity, width], from `column` on.
  struct CacheRows {
    std::int64_t heads = 0, d = 0, capacity = 0, width = 0, column = 0;
  };
  void append_to(const Tensor& rows, const Tensor& cache, const CacheRows& of);
  bool held_of(const RowCache& cache, const Batch& at, Tensor& held);          // false: out of memory, which is kept
  struct Heads {
    std::int64_t heads = 0, n = 0, v = 0, tokens = 0;
  };
  void latent_product(const Tensor& x, const Matrix& up, const Heads& of, std::int64_t width, const Tensor& out);

  std::unique_ptr<Context> c_;
  Memory memory_;
  Pipelines pipelines_;
  std::unique_ptr<Recorder> recorder_;
  std::map<std::string, ShaderCode, std::less<>> shaders_;
  BatchTensors batch_;
  std::vector<GpuBuffer*> scratch_;
  std::uint64_t custom_runs_ = 0;                          // custom operations that ran as shaders of theirs
  std::map<std::string, std::string> by_formula_;          // those that did not, and why
};

// Rows and length of a row, as the kernels see a tensor.
inline std::int64_t width_of(const Tensor& t) { return t.shape.rank() == 0 ? 1 : t.shape[-1]; }
inline std::int64_t rows_of(const Tensor& t) {
  const std::int64_t n = width_of(t);
  return n > 0 ? t.count() / n : 0;
}
// Rows [first, first + n) of a tensor whose first axis has `all` of them.
inline Tensor part_of(const Tensor& t, std::int64_t all, std::int64_t first, std::int64_t n) {
  Tensor part = t;
  const std::int64_t each = t.count() / all;
  part.offset += first * each * bytes(t.dtype);
  part.shape = {n, each};
  return part;
}
inline std::uint32_t type_number(DType t) { return t == DType::f32 ? 0 : t == DType::i32 ? 1 : 2; }   // common.glsl's

}  // namespace modelc::vulkan

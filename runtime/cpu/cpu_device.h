// The CPU as a device: cuts each operation into pieces, gives them to a team of threads, and calls the kernels of the
// instruction set that was chosen at run time.
#pragma once

#include <cassert>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/thread_team.h"
#include "runtime/cpu/buffers.h"
#include "runtime/cpu/kernels.h"
#include "runtime/device/device.h"

namespace modelc::cpu {

// How a row block is stored, for kernels; none for what they do not read.
constexpr std::optional<Stored> stored(Encoding e) {
  switch (e) {
    case Encoding::f32: return Stored::f32;
    case Encoding::f16: return Stored::f16;
    case Encoding::bf16: return Stored::bf16;
    case Encoding::q4_0: return Stored::q4_0;
    case Encoding::q4_1: return Stored::q4_1;
    case Encoding::q5_0: return Stored::q5_0;
    case Encoding::q5_1: return Stored::q5_1;
    case Encoding::q8_0: return Stored::q8_0;
    case Encoding::q4_k: return Stored::q4_k;
    case Encoding::q5_k: return Stored::q5_k;
    case Encoding::q6_k: return Stored::q6_k;
    default: return std::nullopt;
  }
}

// Of a cache's elements: f32, f16 or bf16.
constexpr Stored stored_as(DType t) { return t == DType::f16 ? Stored::f16 : t == DType::bf16 ? Stored::bf16 : Stored::f32; }

// Whether products with rows stored so can take rounded activations.
constexpr bool is_quantised(Stored s) { return s >= Stored::q4_0; }

// Activations of a product rounded to 13 bits, a record a row (kernels.h); null where the product takes them as they are.
struct RoundedRows {
  const std::byte* data = nullptr;
  std::int64_t stride = 0;                                 // bytes
};

class CpuDevice final : public Device {
 public:
  CpuDevice(const Kernels& kernels, const CpuOptions& options);

  std::string description() const override;
  bool has_fast_mode() const override { return true; }
  Result<const Buffer*> allocate(std::int64_t size) override;
  std::int64_t largest_buffer() const override { return largest_buffer_; }
  void free(const Buffer* buffer) override { buffers_.free(buffer); }
  Result<const Buffer*> place(std::shared_ptr<const MappedFile> file, std::uint64_t at, std::int64_t size) override;
  Status read(const Tensor& t, std::span<std::byte> to) override;
  void write(std::span<const std::byte> from, const Tensor& t) override;
  std::string layout() const override { return "cpu-rows"; }  // rows as files store them, for every instruction set
  bool reads(Encoding encoding, MatrixUse use) const override;
  Status prepare(Matrix& matrix, MatrixUse use) override;
  Status begin(const StepSizes&, const Batch*, const BatchTensors&) override { return {}; }
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
  bool custom(std::span<const Tensor> inputs, std::span<const Tensor> outs, std::span<const std::int64_t> sizes,
              std::span<const CustomDispatch> ways, const HostKernel* host) override;
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
  Status finish() override { return {}; }                  // every operation is done when its call returns

 private:
  // f(begin, end, worker) over [0, count); in the calling thread when `work` (elements touched, multiplications) is
  // small.
  template <class F> void spread(std::int64_t count, std::int64_t grain, std::int64_t work, F&& f) {
    if (count <= 0) return;
    if (work < inline_work || team_.size() == 1 || count <= grain) return f(std::int64_t{0}, count, 0);
    team_.run(count, grain, f);
  }
  // The same over rows of `width` elements.
  template <class F> void spread_rows(std::int64_t rows, std::int64_t width, F&& f) {
    const std::int64_t grain = row_elements / (width > 0 ? width : 1);
    spread(rows, grain > 0 ? grain : 1, rows * width, [&](std::int64_t begin, std::int64_t end, int) { f(begin, end); });
  }

  // Rows of x for products with w, in rounded_; with lock_ held.
  RoundedRows round(const float* x, std::int64_t rows, const Matrix& w);
  // Rows of k and v into a cache; place(row) gives each row's slot and position.
  template <class Place> void put_rows(KvCache& cache, const Tensor& k, const Tensor& v, std::int64_t rows, const Place& place);
  struct Keys;                                             // where attention's keys and values lie: attention.cpp
  struct Queries;                                          // and its queries and results
  void attend_over(const Queries& q, const Keys& keys, const AttendArgs& args);
  // Tokens [begin, end) of the batch over latents: q [end - begin, heads, rank + rope] → out [end - begin, heads, rank].
  void attend_rows(const float* q, std::int64_t heads, const LatentCache& cache, const Batch& at, std::int64_t begin, std::int64_t end,
                   const AttendArgs& args, float* out);

  static constexpr std::int64_t inline_work = 32 * 1024;   // some microseconds: less than waking a thread pays
  static constexpr std::int64_t row_elements = 8 * 1024;   // of one piece of an elementwise operation

  const Kernels& kernels_;
  ThreadTeam team_;
  const std::int64_t largest_buffer_;
  Buffers buffers_{this};
  std::mutex lock_;                                        // of what follows: models may share the device
  std::vector<Scratch> scratch_;                           // one a worker
  Scratch partials_, packed_; // attention: results of chunks; keys of a call without state, queries over latents
  Scratch rounded_; // activations of the product under way
};

} // namespace modelc::cpu

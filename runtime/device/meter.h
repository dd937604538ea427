// A device that passes everything on to another and notes what each operation was, how long it took and what it moved:
// for `bench`. What it notes is the run itself: the same plan, the same kernels, nothing traced.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/device/device.h"

namespace modelc {

class Model;
class State;

// One operation of a step.
struct Operation {
  const char* kind;                                        // "linear", "attend", …
  std::string module;                                      // "model.layers.0.self_attn": whose it is
  std::string of;                                          // "q_proj, k_proj, v_proj", or ""
  double seconds = 0;
  double flops = 0;                                        // of products and attention; else 0
  double bytes = 0;                                        // of weights and caches that it reads; else 0
};

class MeterDevice final : public Device {
 public:
  explicit MeterDevice(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  // Learns the names of a loaded model's weights and of a state's caches.
  void know(Model& model, const State& state);
  // From here on operations are noted, each waited for by itself; take() ends it and gives them in their order.
  void start();
  std::vector<Operation> take();

  std::string description() const override { return device_->description(); }
  std::string operations() const override { return device_->operations(); }
  bool has_fast_mode() const override { return device_->has_fast_mode(); }
  int members() const override { return device_->members(); }
  const Device& member(int i) const override { return device_->member(i); }
  void enter(int member) override { device_->enter(member); }
  std::string layout() const override { return device_->layout(); }
  Result<const Buffer*> allocate(std::int64_t size) override { return device_->allocate(size); }
  std::int64_t largest_buffer() const override { return device_->largest_buffer(); }
  void free(const Buffer* buffer) override { device_->free(buffer); }
  Result<const Buffer*> place(std::shared_ptr<const MappedFile> file, std::uint64_t at, std::int64_t size) override {
    return device_->place(std::move(file), at, size);
  }
  Status read(const Tensor& t, std::span<std::byte> to) override { return device_->read(t, to); }
  void write(std::span<const std::byte> from, const Tensor& t) override { device_->write(from, t); }
  bool reads(Encoding encoding, MatrixUse use) const override { return device_->reads(encoding, use); }
  Status prepare(Matrix& matrix, MatrixUse use) override { return device_->prepare(matrix, use); }
  Status begin(const StepSizes& sizes, const Batch* at, const BatchTensors& fields) override;
  Result<std::unique_ptr<StateStore>> reserve(const StateSlot& slot, std::int64_t capacity, int sequences) override;
  Result<std::int64_t> state_bytes(const StateSlot& slot, std::int64_t capacity, int sequences) const override {
    return device_->state_bytes(slot, capacity, sequences);
  }
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
  Status finish() override { return device_->finish(); }

 private:
  struct Name {
    std::string module, member;
  };
  struct Place {
    const Buffer* buffer;
    std::int64_t offset;
    bool operator==(const Place&) const = default;
  };
  struct HashPlace {
    std::size_t operator()(const Place& p) const {
      return std::hash<const void*>{}(p.buffer) ^ (std::hash<std::int64_t>{}(p.offset) * 0x9e3779b97f4a7c15ULL);
    }
  };
  template <class F> void noted(const char* kind, const Name& name, double flops, double bytes, F&& f);
  Name of(const Matrix& m) const;
  Name of(const Tensor& weight) const;
  Name of(const void* store) const;

  std::shared_ptr<Device> device_;
  std::unordered_map<Place, Name, HashPlace> weights_;     // by where the first row, or the values, lie
  std::unordered_map<const void*, Name> stores_;
  bool noting_ = false;
  std::string module_;                                     // of the last operation that has a name
  std::vector<Operation> operations_;
};

}  // namespace modelc

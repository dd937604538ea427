// Several devices as one, for a model whose layers are on more than one (placement.h). A buffer has a copy on each member that uses
// it, made when it is first needed, and a note of which bytes are right where (whereabouts.h). An operation runs on one member: that
// of the matrix or the cache that it reads, else of the norm's weights, else the one that was entered. What it reads is brought
// there first, once; what it writes is right there alone. So a value crosses where a layer of another device reads it, and nowhere else.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/device/whereabouts.h"

namespace modelc {

class DeviceSet final : public Device {
 public:
  struct Member {
    std::string name;                                      // "vulkan:0"
    std::shared_ptr<Device> device;
  };
  // At most Whereabouts::max_members, each device once.
  explicit DeviceSet(std::vector<Member> members);
  ~DeviceSet() override;

  const std::vector<Member>& list() const { return members_; }
  int find(const std::string& name) const;                 // -1: no member
  int add(Member member);                                  // gives its number

  // A buffer of a member's own becomes one of the set, right on that member; and back. What the member has stays where it is.
  const Buffer* adopt(int member, const Buffer* own);
  void release(const Buffer* adopted);

  std::string description() const override;
  // By member, and what went between them.
  std::string operations() const override;
  bool has_fast_mode() const override;
  int members() const override { return static_cast<int>(members_.size()); }
  const Device& member(int i) const override { return *members_[static_cast<std::size_t>(i)].device; }
  void enter(int member) override { at_ = member; }

  Result<const Buffer*> allocate(std::int64_t size) override;
  void free(const Buffer* buffer) override;
  Result<const Buffer*> place(std::shared_ptr<const MappedFile> file, std::uint64_t at, std::int64_t size) override;
  Status read(const Tensor& t, std::span<std::byte> to) override;
  void write(std::span<const std::byte> from, const Tensor& t) override;
  std::string layout() const override { return "several"; }
  bool reads(Encoding encoding, MatrixUse use) const override;
  Status prepare(Matrix& matrix, MatrixUse use) override;
  Status begin(const StepSizes& sizes, const Batch* at, const BatchTensors& fields) override;
  // On the member that the slot says.
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

 private:
  struct Shared;                                           // a buffer of the set
  class On;                                                // an operation on one member

  static Shared& shared(const Tensor& t);
  Device& device(int member) { return *members_[static_cast<std::size_t>(member)].device; }
  Result<const Buffer*> make(std::int64_t size, int home, const Buffer* own);
  Result<const Buffer*> copy_on(Shared& b, int member);    // made when it is not there yet
  Status bring(Shared& b, std::int64_t begin, std::int64_t end, int member);
  int home_of(const Matrix& m) const;
  int home_of(const Tensor& weights) const;                // absent: where we are
  int home_of(const KvCache& cache) const;
  int home_of(const LatentCache& cache) const;
  int owner_of(const Tensor& own) const;                   // whose memory a tensor is that is not of the set
  Matrix on(const Matrix& m, int member);
  AttendArgs on(const AttendArgs& args, On& run);

  std::vector<Member> members_;
  int at_ = 0;
  std::vector<std::uint64_t> runs_;                        // operations, by member
  std::uint64_t transfers_ = 0, transferred_ = 0;          // and their bytes
  std::vector<std::byte> staging_;
  // The step under way, and the members that know its batch.
  std::vector<bool> begun_;
  const Batch* batch_ = nullptr;
  StepSizes sizes_;
  BatchTensors fields_;
  std::mutex lock_;                                        // of what follows: states come and go beside calls
  std::unordered_map<const Buffer*, std::unique_ptr<Shared>> buffers_;
};

}  // namespace modelc

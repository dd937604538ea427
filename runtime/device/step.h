// One call of a model on one device: what generated forward functions speak to. Holds the sizes of the run-time axes,
// the arena from which frames are cut, the values computed once a step, and the hooks.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/abi/axes.h"
#include "runtime/device/batch.h"
#include "runtime/device/device.h"
#include "runtime/device/module.h"

namespace modelc {

class State;

// What a hook is given: a value's qualified name ("model.layers.0.self_attn.q"), its shape, and its contents on the
// host, valid during the call.
struct LayerValue {
  std::string_view name;
  Shape shape;
  std::span<const float> data;
};
using LayerHook = std::function<void(const LayerValue&)>;

// A fused call's inner values, the products: the names under which they are traced, in the order of its blocks
// ({"gate_proj", "up_proj"}), and what the policy rounds them to.
struct InnerValues {
  const Module* module = nullptr;
  std::initializer_list<const char*> names;
  DType rounded = DType::f32;
};

// Stacked expert weights as a module has them: [E, f, d], [E, f, d], [E, d, f], and their biases or none.
struct ExpertWeights {
  const Weight& gate;
  const Weight& up;
  const Weight& down;
  Tensor gate_bias = {}, up_bias = {}, down_bias = {};
};

// What a step keeps beside the arena, used by one step after another: the batch's fields, values computed once a step,
// and scratch for tracing. Buffers grow and stay.
class StepMemory {
 public:
  explicit StepMemory(Device& device) : device_(device) {}
  StepMemory(const StepMemory&) = delete;
  ~StepMemory();
  // A tensor in buffer `slot`; what was there is lost when it has to grow.
  Result<Tensor> get(std::size_t slot, DType dtype, Shape shape);
  Device& device() { return device_; }

 private:
  Device& device_;
  std::vector<const Buffer*> buffers_;
};

// An expression, and the same with values rounded where the model's policy says so: for a model that runs by it. Without the
// second the first is for both.
struct Expression {
  Expression(const MapKernel& f) : plain(f), rounded(f) {}
  Expression(const MapKernel& f, const MapKernel& by_policy) : plain(f), rounded(by_policy) {}
  const MapKernel& plain;
  const MapKernel& rounded;
};

// What an entry is called with beside its inputs: a Batch (which says the sequences too), Sequences, or neither.
struct StepAt {
  const Sequences* sequences = nullptr;
  const Batch* batch = nullptr;
  StepAt() = default;
  StepAt(std::nullptr_t) {}
  StepAt(const Batch* b) : sequences(b), batch(b) {}
  explicit StepAt(const Sequences* s) : sequences(s) {}
};

// Thrown inside a step (out of memory in the middle of a forward function) and caught by Model::enter, which returns
// it.
struct StepFailure {
  Error error;
};

class Step {
 public:
  // arena: at least the model's peak for these sizes; without one each frame gets memory of its own (constants at
  // load). `at` and state may be null for what needs none. Uploads the batch's fields; StepFailure when that fails.
  // by_policy: values are rounded where generated code says that the model's policy does.
  Step(StepMemory& memory, Tensor arena, const StepSizes& sizes, StepAt at, State* state, const std::vector<LayerHook>* hooks,
       bool by_policy = false);
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // ---- sizes of the run-time axes
  std::int64_t tokens() const { return sizes_.tokens(); }
  std::int64_t outputs() const { return sizes_.outputs(); }
  std::int64_t batch() const { return sizes_.batch(); }
  std::int64_t seq() const { return sizes_.seq(); }
  std::int64_t axis(int i) const { return sizes_.axis(i); }          // one of the model's own
  const Batch& at() const {
    assert(at_.batch != nullptr);
    return *at_.batch;
  }
  const Sequences& sequences() const {
    assert(at_.sequences != nullptr);
    return *at_.sequences;
  }
  // Fields of the batch as device tensors (i32).
  const Tensor& positions() const { return fields_.positions; }
  const Tensor& lengths() const { return fields_.lengths; }
  const Tensor& sequence() const { return fields_.sequence; }
  const Tensor& output_rows() const { return fields_.outputs; }
  const Tensor& last_rows() const { return fields_.last; }

  // What a module's function does is done on the module's device: stands at its beginning. When it ends, its caller goes on on
  // its own. Values follow by themselves where they are read next (device_set.h).
  class On {
   public:
    On(Step& step, const Module& module) : step_(step), before_(step.member_) { step.enter(module.member()); }
    ~On() { step_.enter(before_); }
    On(const On&) = delete;
    On& operator=(const On&) = delete;

   private:
    Step& step_;
    int before_;
  };

  // ---- memory: a frame is a piece of the arena, a stack: cut when a function begins, given back when it ends.
  class Frame {
   public:
    Frame(Step& step, std::int64_t bytes);
    ~Frame();
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   protected:                                              // generated code derives a struct with its named buffers
    // Views at offsets (the plan's).
    Tensor at(std::int64_t offset, DType dtype, Shape shape) const;
    Tensor f32(std::int64_t offset, Shape shape) const { return at(offset, DType::f32, shape); }
    Tensor i32(std::int64_t offset, Shape shape) const { return at(offset, DType::i32, shape); }
    std::int64_t tokens() const { return step_.tokens(); }
    std::int64_t outputs() const { return step_.outputs(); }
    std::int64_t batch() const { return step_.batch(); }
    std::int64_t seq() const { return step_.seq(); }
    std::int64_t axis(int i) const { return step_.axis(i); }

   private:
    Step& step_;
    Tensor memory_;                                        // u8
    const Buffer* own_ = nullptr;                          // of a step without arena
  };
  // The value computed once a step: calls `compute` the first time that the number is seen in this step.
  Tensor once(StepValue value, Shape shape, const std::function<void(const Tensor& out)>& compute);

  // ---- kernels (device.h says what each computes)
  void linear(const Tensor& x, const Matrix& w, std::initializer_list<Tensor> outs);
  void linear_add(const Tensor& x, const Matrix& w, const Tensor& residual, const Tensor& out, const InnerValues& inner);
  void linear_map(const Tensor& x, const Matrix& w, const Expression& f, const Tensor& out, const InnerValues& inner);
  void take(const Weight& table, const Tensor& rows, float scale, const Tensor& out);
  void take_rows(const Tensor& x, const Tensor& rows, const Tensor& out);
  void rms_norm(const Tensor& x, const Tensor& w, const NormArgs& args, const Tensor& out);
  void add_rms_norm(const Tensor& x, const Tensor& y, const Tensor& w, const NormArgs& args, const Tensor& sum, const Tensor& out);
  void layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, const NormArgs& args, const Tensor& out);
  void rope(const Tensor& x, const Tensor& cos, const Tensor& sin, Pairs pairs, const Tensor& out);
  void append(const StateSlot& cache, const Tensor& k, const Tensor& v, const Batch& at);
  // StepFailure where one of the sequences has tokens already.
  void cross_set(const StateSlot& cache, const Tensor& k, const Tensor& v, const Sequences& at);
  // StepFailure where nothing has been set in a cross_cache for one of the sequences.
  void attend(const Tensor& q, const StateSlot& cache, const Batch& at, const AttendArgs& args, const Tensor& out);
  void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Batch& at, const AttendArgs& args, const Tensor& out);
  void attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttendArgs& args, const Tensor& out);
  // append above serves a LatentCache too: k is the latent, v the key that heads share. args.mask and args.scale alone are read.
  void attend_latent(const Tensor& q_nope, const Tensor& q_rope, const StateSlot& cache, const Batch& at, const Weight& up,
                     const AttendArgs& args, const Tensor& out);
  void map(const Expression& f, std::initializer_list<Tensor> inputs, const Tensor& out);
  void copy(const Tensor& from, const Tensor& to);
  void copy(const Strided& from, const Strided& to);
  void fill(double value, const Tensor& out);
  void reduce(Reduction kind, const Tensor& x, const ReduceArgs& args, const Tensor& out);
  void route(const Tensor& scores, const Tensor& bias, const RouteArgs& args, const Tensor& chosen, const Tensor& weights);
  void experts(const Tensor& x, const Tensor& chosen, const Tensor& weights, const ExpertWeights& w, const Expression& f,
               const Tensor& out);
  void conv(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvArgs& args, const Tensor& out);
  void causal_conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const StateSlot& ring, const Batch& at, const Tensor& out);
  void ssd_scan(const ScanArgs& args, const StateSlot& memory, const Batch& at, const Tensor& out);
  void gated_delta(const DeltaArgs& args, const StateSlot& memory, const Batch& at, const Tensor& out);
  bool custom(std::initializer_list<Tensor> inputs, std::initializer_list<Tensor> outs, std::initializer_list<std::int64_t> sizes,
              std::initializer_list<CustomDispatch> ways, const HostKernel* host = nullptr);
  // By the policy: the values of x become the nearest ones of the type (bf16 or f16; ties to even), in place. Else nothing.
  void round(const Tensor& x, DType to);
  // Rows start .. stop of the first axis: a view. StepFailure when they are not all there.
  static Tensor rows(const Tensor& x, std::int64_t start, std::int64_t stop);
  // out[i] = start + i · by, and a list of numbers: written by the host, for the constants and once-a-step values.
  void arange(const Tensor& out, float start = 0, float by = 1);
  void values(std::initializer_list<float> numbers, const Tensor& out);

  // ---- hooks. Free when there are none: one test of a bool.
  bool traced() const { return hooks_ != nullptr; }
  // Reports module's value `name` ("" : the module's own result).
  void trace(const Module& module, const char* name, const Tensor& value) {
    if (traced()) report(module, name, value);
  }
  Device& device() { return memory_.device(); }

 private:
  void enter(int member) {
    if (member == member_) return;
    member_ = member;
    device().enter(member);
  }
  void report(const Module& module, const char* name, const Tensor& value);
  void upload(const Batch& at);
  KvCache& cache_of(const StateSlot& slot);
  Tensor rows_of(const StateSlot& slot);                   // [slots, …] of a Ring or a Recurrent
  LatentCache& latents_of(const StateSlot& slot);
  void read(const Tensor& value, std::span<std::byte> to);
  Tensor temporary(std::size_t slot, DType dtype, Shape shape);
  const MapKernel& kernel(const Expression& f) const { return by_policy_ ? f.rounded : f.plain; }
  StepMemory& memory_;
  Tensor arena_;                                           // u8
  StepSizes sizes_;
  StepAt at_;
  State* state_;
  const std::vector<LayerHook>* hooks_;                    // null when there are none
  const bool by_policy_;
  int member_ = 0;                                         // of the device: where what is done now runs
  std::int64_t top_ = 0;                                   // of the frame stack, bytes
  BatchTensors fields_;
  std::vector<Tensor> values_;                             // computed in this step, by StepValue
  std::vector<float> host_;                                // of the value that is being reported
};

}  // namespace modelc

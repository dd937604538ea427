// A loaded model: the base of generated model classes, and what programs that know no architecture (the stock main, the
// generator) call.
#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/abi/checkpoint_rules.h"
#include "runtime/abi/place_rule.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/checkpoint/index.h"
#include "runtime/checkpoint/weight_value.h"
#include "runtime/device/module.h"
#include "runtime/device/step.h"

namespace modelc {

struct ModelImpl;
class ModuleTree;

// The pack beside a checkpoint (checkpoint/pack.h). use: mapped where there is one and it is of this checkpoint, model,
// version and layout; where it is not, a note says why and the checkpoint is loaded. write: and written then, or anew.
enum class PackUse : std::uint8_t { use, none, write };
struct LoadProgress {
  std::int64_t weights = 0, of_weights = 0;                // that are on the device, of all
  std::int64_t bytes = 0;                                  // of the checkpoint that they were made of
};
struct LoadOptions {
  bool strict = true;                                      // false: extra tensors are allowed; a missing one never is
  bool auto_cast = false;                                  // f32 ↔ bf16 where a weight declares its dtype
  bool no_mmap = false;
  WeightMap weights = {};                                  // by the model's own names: taken instead of the checkpoint's
  std::vector<std::string> adapters = {};                  // folders of low-rank adapters, merged in this order
  Mode mode = Mode::exact;                                 // of all calls (device/matrix.h says what each is)
  bool prefer_fast = false;                                // mode fast, where every device of the model has it; else `mode`
  PackUse pack = PackUse::use;
  bool pack_hash = false;                                  // every byte of files and pack is compared, not size and time alone
  std::function<void(const LoadProgress&)> progress = {};  // called after each weight, by the thread that loads
  CpuOptions cpu = {};                                     // its threads make the weights, too
  VulkanOptions vulkan = {};                               // of Vulkan devices that placement opens
  // Where the model runs: all on `device`; else as `place` says; else as the file's own `place` does. What no line matches is on the
  // CPU, and so is all where there are no lines.
  std::shared_ptr<Device> device = {};
  std::vector<PlaceRule> place = {};
  std::map<std::string, std::shared_ptr<Device>> devices = {};   // by the names that lines use: taken instead of opening them
  // Given the device of all of it, gives what stands in its place: for measurements (meter.h). Such a model is not moved.
  std::function<std::shared_ptr<Device>(std::shared_ptr<Device>)> around = {};
};
// What a load did: one line each ("lm_head.weight = alias of model.embed_tokens.weight"), and figures.
struct LoadReport {
  std::vector<std::string> notes;
  std::int64_t weights = 0, parameters = 0, bytes = 0;
  std::string pack;                                        // the pack that was used or written; "": none
  bool pack_written = false;
  double seconds = 0;
};

// The checkpoint rules of the .model file, as whole names (language.md section 5): generated as data, one a format, and read
// by the compiler's own check too, so that both say the same.
using CheckpointRulesData = MappingRules;

// One input or output of an entry.
struct PortDesc {
  const char* name;
  DType dtype = DType::f32;
  const char* shape;                                       // "[outputs, 49152]": numbers, axes, sums of products of them
  std::int64_t index_bound = 0;                            // i32 values lie in 0..index_bound (exclusive); 0: no bound
  std::optional<double> default_value = {};                // of an input that may be left out
};
// What an entry takes beside its inputs.
enum class CallAt : std::uint8_t { none, sequences, batch };
struct EntryDesc {
  const char* name;                                        // "forward"
  std::vector<PortDesc> inputs = {}, outputs = {};
  CallAt at = CallAt::batch;
  bool advances = true;                                    // the batch's tokens are in the state afterwards
};

// Holds the caches of the sequences of one model; several may exist, each used by one call at a time.
struct StateOptions {
  int sequences = 1;                                       // slots, 65,536 at most
  std::int64_t capacity = 0;                               // positions a sequence may hold; 0: the model's context
};

// A host array that a caller passes in or gets out.
struct HostTensor {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<std::byte> data;
  template <class T> std::span<const T> as() const { return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)}; }
  static HostTensor of(std::span<const float> values, Shape shape) { return from(DType::f32, shape, std::as_bytes(values)); }
  static HostTensor of(std::span<const std::int32_t> values, Shape shape) { return from(DType::i32, shape, std::as_bytes(values)); }

 private:
  static HostTensor from(DType dtype, Shape shape, std::span<const std::byte> bytes) {
    return {dtype, shape, {bytes.begin(), bytes.end()}};
  }
};

// Elements of a caller, or of a result: valid while their owner lets them be.
struct HostView {
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> data;
  bool given = true;                                       // false: an input that is left out, to have its default

  static HostView of(std::span<const float> values, Shape shape);
  static HostView of(std::span<const std::int32_t> values, Shape shape);
  static HostView of(const HostTensor& t) { return {t.dtype, t.shape, t.data, true}; }
  std::span<const float> f32() const { return {reinterpret_cast<const float*>(data.data()), data.size() / sizeof(float)}; }
};

// A generated class derives from it and is the root of its module tree. One call at a time: calls of several threads on
// one model take turns.
class Model : public Module {
 public:
  Model();
  Model(const Model&) = delete;
  ~Model() override;

  const char* name() const { return type_name(); }         // "Llama"
  virtual std::span<const EntryDesc> entries() const = 0;
  virtual std::int64_t context() const = 0;                // the longest sequence; 0: memory decides
  // The run-time axes: the four that every model has, then its own.
  virtual std::span<const AxisDesc> axes() const { return prelude_axes; }
  // What the file's `place` says, line by line.
  virtual std::vector<PlaceRule> placement() const { return {}; }
  // Bytes of arena that a step of these sizes needs: the plan's peak, without the values computed once a step.
  virtual std::int64_t arena_bytes(const StepSizes& s) const = 0;
  Module& root() { return *this; }

  Result<std::unique_ptr<State>> new_state(const StateOptions& options = {}) const;
  // Calls entry `name` by the names of its inputs; every argument is checked (names, dtype, shape, index range) and the
  // error says which. Results by name. A failed call leaves the state as it was.
  Result<std::map<std::string, HostTensor>> call(const std::string& entry, State* state, const Batch& at,
                                                 const std::map<std::string, HostTensor>& inputs);
  // Of an entry that takes Sequences, or neither.
  Result<std::map<std::string, HostTensor>> call(const std::string& entry, State* state, const Sequences& at,
                                                 const std::map<std::string, HostTensor>& inputs);
  Result<std::map<std::string, HostTensor>> call(const std::string& entry, State* state, const std::map<std::string, HostTensor>& inputs);
  // The same without copies for a model tokens → logits: logits [outputs, vocab] f32, valid until the next call.
  Result<std::span<const float>> logits(State& state, const Batch& at, std::span<const std::int32_t> input_ids);
  // Entry forward, when it is index[tokens], Batch → f32[outputs, vocab]: what a generator calls. Else null.
  const EntryDesc* language_entry() const;
  std::optional<std::int64_t> vocabulary() const;          // of that entry; none where there is none

  // Hooks see every named value and every module's result, by qualified name.
  int add_layer_hook(LayerHook hook);                      // gives a number for remove_layer_hook
  void remove_layer_hook(int number);
  void clear_hooks();

  const LoadReport& load_report() const { return report_; }
  Device& device() { return *device_; }
  Mode mode() const;                                       // of all calls

 protected:
  // Generated load() calls it on a fresh object: binds every weight (strict, all problems in one Error), computes
  // constants, calls bind() bottom up.
  Status load_weights(const CheckpointIndex& checkpoint, const CheckpointRulesData& rules, const LoadOptions& options);
  // The same with the rules of several formats: those of the checkpoint's count, and those for safetensors say what an
  // adapter's tensors are.
  Status load_weights(const CheckpointIndex& checkpoint, std::span<const CheckpointRulesData> rules, const LoadOptions& options);
  // Generated: runs entry `index` on device tensors; inputs and outputs in the order of entries()[index].
  virtual void run(int index, Step& step, std::span<const Tensor> inputs, std::span<const Tensor> outputs) const = 0;
  // What call() and logits() are made of, for generated typed methods: checks every argument, runs entry `index`, moves
  // the state on. The results stay valid until the next call.
  Result<std::vector<HostView>> enter(int index, State* state, StepAt at, std::span<const HostView> inputs);

 private:
  friend class State;
  friend class Module;
  Status move(Module& module, const std::string& device);
  Status load_weights(const CheckpointIndex& checkpoint, const CheckpointRulesData& rules, const CheckpointRulesData& adapter_rules,
                      const LoadOptions& options);
  Result<std::map<std::string, HostTensor>> call_at(const std::string& entry, State* state, StepAt at,
                                                    const std::map<std::string, HostTensor>& inputs);
  std::unique_ptr<ModelImpl> impl_;                        // buffers, step values, arena, hooks
  std::shared_ptr<Device> device_;
  LoadReport report_;
};

// How a program that is not generated gets a generated model: one per model class, made by generated code.
struct ModelFactory {
  const char* name;                                        // "Llama"
  const char* file;                                        // "llama.model"
  const char* version;                                     // of modelc that generated it
  Result<std::unique_ptr<Model>> (*load)(const CheckpointIndex& checkpoint, const LoadOptions& options);
};

// The factory of class M, which has static Result<std::unique_ptr<M>> load(const CheckpointIndex&, const LoadOptions&).
template <class M> constexpr ModelFactory factory_of(const char* name, const char* file, const char* version) {
  return {name, file, version, [](const CheckpointIndex& checkpoint, const LoadOptions& options) -> Result<std::unique_ptr<Model>> {
            auto model = M::load(checkpoint, options);
            if (!model) return std::move(model.error());
            return std::unique_ptr<Model>(std::move(*model));
          }};
}

// A print hook as users know it: lines "name [shape] min max mean: first values" to `out`, for names that match one of
// the patterns (components, * and **; none = all); with export_path the values are also written as .safetensors there
// (name(2) on re-entry) when the returned object's `finish` is called.
struct PrintHookOptions {
  std::vector<std::string> filter = {};
  std::string export_path = {};
  std::FILE* out = nullptr;
};
struct PrintHook {
  LayerHook hook;
  std::function<Status()> finish;
};
PrintHook make_print_hook(const PrintHookOptions& options);

}  // namespace modelc

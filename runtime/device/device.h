// What a backend implements: memory, and the kernels that plans are made of. All activations are f32 and contiguous.
// A kernel's documentation is its reference: frontend/graph/eval computes the same on plain loops.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/mapped_file.h"
#include "runtime/base/result.h"
#include "runtime/abi/axes.h"
#include "runtime/device/batch.h"
#include "runtime/device/custom.h"
#include "runtime/device/map.h"
#include "runtime/device/matrix.h"
#include "runtime/device/strided.h"
#include "runtime/tensor/tensor.h"

namespace modelc {

class KvCache;                                             // runtime/kv_cache/kv_cache.h
class LatentCache;
class RowCache;
class StateStore;
struct StateSlot;                                          // runtime/device/module.h

enum class Pairs : std::uint8_t { halves, adjacent };      // rope turns (i, i + r/2) or (2i, 2i + 1)
enum class Mask : std::uint8_t { causal, full };

struct NormArgs {
  float eps = 0;                                           // added to the mean square (variance) before the root
  float offset = 0;                                        // rms: the weight is w + offset
};

struct AttendArgs {
  Mask mask = Mask::causal;
  float scale = 1;
  std::int64_t window = 0;                                 // visible positions, own included; 0: all. Of Mask::causal
                                                           // alone, as the language has it
  float softcap = 0;                                       // c: scores become c · tanh(score / c); 0: none
  Tensor sinks = {};                                       // [heads] one extra logit each, or absent
  Tensor keep = {};                                        // bool, or f32 that is not 0: [..., m] keys that are seen; or
                                                           // absent. Only without a batch
};

// Attention over latents: `up` has H · (n + v) rows of `rank`, of each head n for keys and then v for values.
struct LatentArgs {
  Tensor q_nope, q_rope;                                   // [t, H, n] and [t, H, rope]
  const Matrix* up = nullptr;
  Mask mask = Mask::causal;
  float scale = 1;
};

enum class Reduction : std::uint8_t { sum, mean, max, min, argmax, softmax, cumsum, l2_normalize };

struct ReduceArgs {
  int axis = 0;                                            // of x, from 0
  Tensor where = {};                                       // bool, or f32 that is not 0: x's axes up to `axis`, the
                                                           // elements that count; or absent
  float eps = 0;                                           // l2_normalize: the least divisor
};

struct RouteArgs {
  std::int64_t groups = 1, keep_groups = 1;                // only the best groups stand
  bool top2_sum = false;                                   // a group's score: its two best, not its best
  bool renormalize = false;                                // the chosen weights are divided by their sum
  float scale = 1;                                         // and multiplied by this
};

// The weights of all experts, one below the other: gate and up have E · f rows of d, down E · d rows of f.
struct ExpertArgs {
  const Matrix* gate = nullptr;
  const Matrix* up = nullptr;
  const Matrix* down = nullptr;
  Tensor gate_bias = {}, up_bias = {}, down_bias = {};     // [E, f], [E, f], [E, d], or absent
  std::int64_t experts = 0;
};

struct ConvArgs {                                          // the same along every axis
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};

struct ScanArgs {                                          // ssd_scan: heads H of P channels, in groups G that share b and c
  Tensor x, dt, a, b, c, d;                                // [t, H, P], [t, H], [H], [t, G, N], [t, G, N], [H]
};

struct DeltaArgs {                                         // gated_delta: Hv heads, Hk of keys that each serve Hv / Hk
  Tensor q, k, v, decay, beta;                             // [t, Hk, dk], [t, Hk, dk], [t, Hv, dv], [t, Hv], [t, Hv]
  float scale = 1;
  float normalize = 0;                                     // q and k by head become x / sqrt(sum x² + normalize); 0: stay
};

// The fields of a step's batch on the device, i32; absent in a step without one.
struct BatchTensors {
  Tensor positions, lengths, sequence, outputs, last, slots, starts;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string description() const = 0;             // "CPU, 2 threads, avx512"

  // What was run here since it was opened, for people: "1,204 dispatches and copies, 96 barriers"; "" where nobody counts.
  virtual std::string operations() const { return {}; }
  // Whether it carries out Mode::fast (matrix.h); a model is not loaded in that mode where it does not.
  virtual bool has_fast_mode() const { return false; }

  // ---- several devices that act as one (device_set.h). One alone is its own and only member.
  virtual int members() const { return 1; }
  virtual const Device& member(int) const { return *this; }
  // What follows is of this member: memory that is asked for is there, kernels run there (those that read a matrix or a cache
  // run where that lies). 0 to begin with.
  virtual void enter(int) {}

  // ---- memory. Buffers live until freed or until the device goes.
  virtual Result<const Buffer*> allocate(std::int64_t size) = 0;
  // Bytes of the largest buffer that there can be. Weights that are larger come in several, by rows.
  virtual std::int64_t largest_buffer() const { return INT64_MAX; }
  // What was enqueued before may still use it: a device that runs behind keeps the memory until that is done.
  virtual void free(const Buffer* buffer) = 0;
  // Bytes [at, at + size) of a file as a buffer of that size, read by kernels and written by none. The CPU uses them
  // where they lie and holds on to the file, a GPU copies.
  virtual Result<const Buffer*> place(std::shared_ptr<const MappedFile> file, std::uint64_t at, std::int64_t size) = 0;
  // Waits for what was enqueued; a failure of it is said here.
  virtual Status read(const Tensor& t, std::span<std::byte> to) = 0;
  virtual void write(std::span<const std::byte> from, const Tensor& t) = 0;

  // ---- weights
  // Names the form in which weights lie in this device's memory, for packs (checkpoint/pack.h): devices that use the same
  // bytes give the same name, and a changed form has another. Letters, digits and hyphens.
  virtual std::string layout() const = 0;
  // Whether kernels read rows of this encoding as they are stored.
  virtual bool reads(Encoding encoding, MatrixUse use) const = 0;
  // Called once for each matrix that is bound: the place to make a layout of its own of it (Matrix::prepared).
  virtual Status prepare(Matrix& matrix, MatrixUse use) = 0;

  // ---- steps
  // A step begins: how long its axes are, and its batch. What follows until finish() belongs to it.
  virtual Status begin(const StepSizes& sizes, const Batch* at, const BatchTensors& fields) = 0;
  // The memory of a `state` member for so many sequences, in the device's own layout: a KvCache for what has_keys(), a LatentCache for
  // latent_cache, with room for `capacity` positions of each, or for a cross_cache's own. "state-kind" for a kind, or a dtype, that its
  // kernels do not have.
  virtual Result<std::unique_ptr<StateStore>> reserve(const StateSlot& slot, std::int64_t capacity, int sequences) = 0;
  // The bytes that it comes to once all its sequences were in a call: what is reserved, and of a state without a past the copy to go
  // back to. Errors as reserve()'s.
  virtual Result<std::int64_t> state_bytes(const StateSlot& slot, std::int64_t capacity, int sequences) const = 0;

  // ---- kernels. Shapes: t = rows (all leading axes multiplied).
  // out_r[t, rows of result r] = x[t, k] · its blocksᵀ + their biases; with `residual` (one result): + residual[t, rows];
  // may alias out.
  virtual void linear(const Tensor& x, const Matrix& w, std::span<const Tensor> outs, const Tensor& residual) = 0;
  // All results have n rows: out[t, n] = f(result 0, result 1, …), f elementwise on [t, n] f32 inputs.
  virtual void linear_map(const Tensor& x, const Matrix& w, const MapKernel& f, const Tensor& out) = 0;
  // out[r, ...] = table[rows[r], ...] · scale; the table in its encodings, rows i32; StepFailure for a row
  // that is not there.
  virtual void take(const Matrix& table, const Tensor& rows, float scale, const Tensor& out) = 0;
  // The same of an f32 activation x [n, ...].
  virtual void take_rows(const Tensor& x, const Tensor& rows, const Tensor& out) = 0;
  // out = x / sqrt(mean(x²) + eps) · (w + offset) over the last axis; w absent: 1. May alias x.
  virtual void rms_norm(const Tensor& x, const Tensor& w, const NormArgs& args, const Tensor& out) = 0;
  // sum = x + y; out = rms_norm(sum). sum may alias x or y.
  virtual void add_rms_norm(const Tensor& x, const Tensor& y, const Tensor& w, const NormArgs& args, const Tensor& sum,
                            const Tensor& out) = 0;
  // out = (x − mean) / sqrt(var + eps) · w + b over the last axis; w, b may be absent. May alias x.
  virtual void layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, const NormArgs& args, const Tensor& out) = 0;
  // x [t, heads, d], cos and sin [t, r/2] (magnitude already in them); turns the first r channels. May alias x.
  virtual void rope(const Tensor& x, const Tensor& cos, const Tensor& sin, Pairs pairs, const Tensor& out) = 0;
  // Appends k [t, heads, d] and v [t, heads, dv] to the batch's sequences, at the batch's positions.
  virtual void append(KvCache& cache, const Tensor& k, const Tensor& v, const Batch& at) = 0;
  // All positions of a cross_cache, of each of these sequences: k [b, n, heads, d], v [b, n, heads, dv], b and n may be one axis.
  // What a sequence had before is written over.
  virtual void set(KvCache& cache, const Tensor& k, const Tensor& v, const Sequences& at) = 0;
  // q [t, H, d] → out [t, H, dv]: softmax(scale · q kᵀ + mask) v per head over what the cache holds; head h reads kv
  // head h / (H/Hk). A row that sees nothing gives 0. Of a cross_cache every row sees all that was set (args.mask is full).
  virtual void attend(const Tensor& q, const KvCache& cache, const Batch& at, const AttendArgs& args, const Tensor& out) = 0;
  // The same without state, within each sequence of `at`: k [t, Hk, d], v [t, Hk, dv].
  virtual void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Batch& at, const AttendArgs& args, const Tensor& out) = 0;
  // The same of rectangular sequences: q [..., n, H, d], k [..., m, Hk, d], v [..., m, Hk, dv] → out [..., n, H, dv], each
  // sequence of n rows over its m keys that args.keep leaves. Causal: n = m, and row i sees keys up to i.
  virtual void attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttendArgs& args, const Tensor& out) = 0;
  // Appends latent [t, rank] and key [t, rope], one for all heads, to the batch's sequences.
  virtual void append(LatentCache& cache, const Tensor& latent, const Tensor& key, const Batch& at) = 0;
  // attend whose keys and values of head h are made of the cache's latents c and the key r that they share:
  // k_h = [up_k_h · c, r], v_h = up_v_h · c → out [t, H, v]. Computed without making them: q_h becomes [up_k_hᵀ q_nope_h, q_rope_h],
  // which is multiplied with [c, r], and up_v_h comes after the weighted sum of latents.
  virtual void attend_latent(const LatentArgs& args, const LatentCache& cache, const Batch& at, const Tensor& out) = 0;
  // One fused elementwise expression; inputs broadcast to out's shape as NumPy's do. Inputs of out's shape may alias
  // it.
  virtual void map(const MapKernel& f, std::span<const Tensor> inputs, const Tensor& out) = 0;
  virtual void copy(const Tensor& from, const Tensor& to) = 0; // same count and dtype
  // The same elements of two sides, in order; where their shapes differ one of them lies together, and takes the other's.
  // One dtype, or whole numbers and bools to f32. They do not overlap.
  virtual void copy_strided(const Strided& from, const Strided& to) = 0;
  // Every element becomes the value; f32 or i32.
  virtual void fill(double value, const Tensor& out) = 0;
  // Along one axis of x, f32 or i32: sum, mean, max, min give one element (of nothing 0, 0, -inf, inf, of i32 the least
  // and the largest), argmax where the largest is (i32; of equals the first, of nothing 0). softmax, cumsum and
  // l2_normalize (x / max(sqrt(sum x²), eps)) keep the axis; what `where` leaves out gives 0 in softmax and counts 0 in
  // cumsum. Sums are in f64.
  virtual void reduce(Reduction kind, const Tensor& x, const ReduceArgs& args, const Tensor& out) = 0;
  // scores [t, n] → chosen i32 [t, k], weights [t, k]: the k largest of scores + bias, largest first, of equals the lower
  // index first, and their scores without bias. bias [n] may be absent.
  virtual void route(const Tensor& scores, const Tensor& bias, const RouteArgs& args, const Tensor& chosen, const Tensor& weights) = 0;
  // out[t, d] = Σ_i weights[t, i] · (down_e · f(gate_e · x[t], up_e · x[t])), e = chosen[t, i], each product with its
  // bias; StepFailure for an expert that is not there.
  virtual void experts(const Tensor& x, const Tensor& chosen, const Tensor& weights, const ExpertArgs& args, const MapKernel& f,
                       const Tensor& out) = 0;
  // Convolution as PyTorch's over one to three axes: x [batch, c, n…], w [o, c / groups, k…], bias [o] or absent →
  // out [batch, o, m…].
  virtual void conv(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvArgs& args, const Tensor& out) = 0;
  // Depthwise convolution over each sequence's tokens and the k − 1 before them, which `ring` [slots, k − 1, c] holds and is left
  // with the last ones of: x [t, c], w [c, k], bias [c] or absent → out[t] = bias + Σ_j w[:, j] · x[t − (k − 1) + j].
  virtual void causal_conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& ring, const Batch& at,
                             const Tensor& out) = 0;
  // Token by token, by head: S ← exp(dt · a) S + dt · x bᵀ, out [t, H, P] = S c + d · x; state [slots, H, P, N]. State space duality
  // (arXiv:2405.21060).
  virtual void ssd_scan(const ScanArgs& args, const Tensor& state, const Batch& at, const Tensor& out) = 0;
  // The same: S ← exp(decay) S, S ← S + k (beta · (v − Sᵀ k))ᵀ, out [t, Hv, dv] = scale · Sᵀ q; state [slots, Hv, dk, dv]. The gated
  // delta rule (arXiv:2412.06464).
  virtual void gated_delta(const DeltaArgs& args, const Tensor& state, const Batch& at, const Tensor& out) = 0;
  // A custom operation by the first of its shaders that can run here, or by its C++ (may be null): outs from inputs, f32 and i32;
  // `sizes` is what a shader is told. False, with nothing done: its reference formula is computed by the kernels above.
  virtual bool custom(std::span<const Tensor> inputs, std::span<const Tensor> outs, std::span<const std::int64_t> sizes,
                      std::span<const CustomDispatch> ways, const HostKernel* host) = 0;
  // Waits until everything enqueued is done; a deferred failure (device lost, …) is said here.
  virtual Status finish() = 0;
};

struct CpuOptions {
  int threads = 0; // 0: one per core the process may use
  std::string isa = {}; // "": the best; or a name that isa.h knows: "avx2"
  std::int64_t largest_buffer = INT64_MAX; // for tests: as a device whose buffers have a limit
};
Result<std::unique_ptr<Device>> open_cpu(const CpuOptions& options); // runtime/cpu

struct VulkanOptions {
  int device = 0; // in Vulkan's order
  bool device_graph = true; // a step that is as one before is submitted again, not recorded anew
  // For tests: features to do without though the device has them ("subgroup"), smaller limits than its own (0: its own),
  // and which submission fails as if the device were lost (0: none).
  std::vector<std::string> masked = {};
  std::uint64_t binding_bytes = 0;
  std::uint32_t max_groups = 0;
  std::int64_t fail_submit = 0;
};
// runtime/vulkan. Errors: "no-vulkan" (no loader, no driver, or a library built without), "device-name" (no such device),
// "vulkan-device" (one that lacks what is needed, which is named).
Result<std::unique_ptr<Device>> open_vulkan(const VulkanOptions& options);

// What `modelc devices` lists: a device's name as --device takes it, what it is, and lines of limits.
struct DeviceInfo {
  std::string name, description;
  std::vector<std::string> limits;
  bool usable = true;
  // Bytes that tensors can be in, and those that nobody uses now: of a GPU its own memory, else the machine's. 0: not known.
  std::uint64_t memory = 0, free = 0;
};
Result<std::vector<DeviceInfo>> vulkan_devices();

// "cpu" (or ""), "vulkan" (the first) or "vulkan:N"; which one `vulkan` says is passed over. Errors: "device-name", and those of the
// device.
Result<std::unique_ptr<Device>> open_device(const std::string& name, const CpuOptions& cpu, const VulkanOptions& vulkan = {});

} // namespace modelc

#include "runtime/device/meter.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/device/model.h"
#include "runtime/device/step.h"
#include "runtime/kv_cache/kv_cache.h"

namespace modelc {
namespace {

double rows_of(const Tensor& t) {
  const std::int64_t rows = t.shape.rank() == 0 ? 1 : t.count() / std::max<std::int64_t>(t.shape[-1], 1);
  return static_cast<double>(rows);
}
double bytes_of(const Matrix& m) {
  double bytes = 0;
  for (const RowBlock& b : m.blocks) bytes += static_cast<double>(b.rows * b.row_bytes);
  return bytes;
}
double flops_of(const Tensor& x, const Matrix& w) {
  return 2 * rows_of(x) * static_cast<double>(w.rows()) * static_cast<double>(w.columns);
}

// Pairs of a query and a key that it sees, for one head.
double pairs_of(const Batch& at, const AttendArgs& args) {
  double pairs = 0;
  for (std::size_t i = 0; i < at.positions.size(); ++i) {
    const double seen = args.mask == Mask::causal ? at.positions[i] + 1 : at.lengths[i];
    pairs += args.window > 0 ? std::min(seen, static_cast<double>(args.window)) : seen;
  }
  return pairs;
}

// Keys and values of a batch's sequences, once each.
double cache_bytes(const Batch& at, double row_bytes, const AttendArgs& args) {
  double bytes = 0;
  for (std::size_t i = 0; i < at.slots.size(); ++i) {
    double held = at.lengths[static_cast<std::size_t>(at.last[i])];
    if (args.window > 0) held = std::min(held, static_cast<double>(args.window + at.last[i] + 1 - (i > 0 ? at.last[i - 1] + 1 : 0)));
    bytes += held * row_bytes;
  }
  return bytes;
}

// Names the caches of a module tree by their numbers.
class StateNames final : public MemberVisitor {
 public:
  void weight(const char*, Weight&) override {}
  void child(const char* path, Module& m) override { below(path, m); }
  void element(const char* path, std::int64_t i, Module& m) override { below(std::string(path) + "." + std::to_string(i), m); }
  void state(const char* name, StateSlot& s) override { found.push_back({s.index, path_, name}); }
  struct Found {
    int index;
    std::string module, name;
  };
  std::vector<Found> found;

 private:
  void below(const std::string& path, Module& m) {
    const std::string before = path_;
    if (!path.empty()) path_ += (path_.empty() ? "" : ".") + path;
    m.members(*this);
    path_ = before;
  }
  std::string path_;
};

std::pair<std::string, std::string> split_last(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

}  // namespace

void MeterDevice::know(Model& model, const State& state) {
  for (const NamedParameter& p : model.parameters()) {
    // "model.layers.0.self_attn.q_proj.weight" belongs to the module self_attn, as q_proj; a norm's is the norm.
    const auto [module, member] = split_last(p.name);
    const auto [parent, leaf] = split_last(module);
    const Name name{parent, leaf};
    if (p.weight->tensor) weights_.insert({{p.weight->tensor.buffer, p.weight->tensor.offset}, name});
    for (const RowBlock& b : p.weight->matrix.blocks) weights_.insert({{b.data.buffer, b.data.offset}, name});
  }
  StateNames states;
  model.members(states);
  for (const StateNames::Found& f : states.found)
    if (f.index >= 0 && f.index < state.stores()) stores_[&state.store(f.index)] = {f.module, f.name};
}

void MeterDevice::start() {
  operations_.clear();
  module_.clear();
  noting_ = true;
}
std::vector<Operation> MeterDevice::take() {
  noting_ = false;
  return std::exchange(operations_, {});
}

MeterDevice::Name MeterDevice::of(const Tensor& weight) const {
  const auto it = weight && noting_ ? weights_.find({weight.buffer, weight.offset}) : weights_.end();
  return it == weights_.end() ? Name{} : it->second;
}
MeterDevice::Name MeterDevice::of(const void* store) const {
  const auto it = noting_ ? stores_.find(store) : stores_.end();
  return it == stores_.end() ? Name{} : it->second;
}
// A packed product has several: they are members of one module.
MeterDevice::Name MeterDevice::of(const Matrix& m) const {
  Name all;
  if (!noting_) return all;
  for (const RowBlock& b : m.blocks) {
    const Name one = of(b.data);
    if (one.member.empty() || all.member.find(one.member) != std::string::npos) continue;
    all.module = one.module;
    all.member += (all.member.empty() ? "" : ", ") + one.member;
  }
  return all;
}

template <class F> void MeterDevice::noted(const char* kind, const Name& name, double flops, double bytes, F&& f) {
  if (!noting_) return f();
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  f();
  if (Status s = device_->finish(); !s) throw StepFailure{std::move(s.error())};
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  // What has no weight of its own stands between those of its module.
  if (!name.member.empty()) module_ = name.module;
  operations_.push_back({kind, module_, name.member, seconds, flops, bytes});
}

Status MeterDevice::begin(const StepSizes& sizes, const Batch* at, const BatchTensors& fields) {
  module_.clear();
  return device_->begin(sizes, at, fields);
}

Result<std::unique_ptr<StateStore>> MeterDevice::reserve(const StateSlot& slot, std::int64_t capacity, int sequences) {
  return device_->reserve(slot, capacity, sequences);
}

void MeterDevice::linear(const Tensor& x, const Matrix& w, std::span<const Tensor> outs, const Tensor& residual) {
  noted("linear", of(w), flops_of(x, w), bytes_of(w), [&] { device_->linear(x, w, outs, residual); });
}
void MeterDevice::linear_map(const Tensor& x, const Matrix& w, const MapKernel& f, const Tensor& out) {
  noted("linear", of(w), flops_of(x, w), bytes_of(w), [&] { device_->linear_map(x, w, f, out); });
}
void MeterDevice::take(const Matrix& table, const Tensor& rows, float scale, const Tensor& out) {
  const double row = table.blocks.empty() ? 0 : static_cast<double>(table.blocks[0].row_bytes);
  noted("take", of(table), 0, row * static_cast<double>(rows.count()), [&] { device_->take(table, rows, scale, out); });
}
void MeterDevice::take_rows(const Tensor& x, const Tensor& rows, const Tensor& out) {
  noted("take rows", {}, 0, 0, [&] { device_->take_rows(x, rows, out); });
}
void MeterDevice::rms_norm(const Tensor& x, const Tensor& w, const NormArgs& args, const Tensor& out) {
  noted("norm", of(w), 0, 0, [&] { device_->rms_norm(x, w, args, out); });
}
void MeterDevice::add_rms_norm(const Tensor& x, const Tensor& y, const Tensor& w, const NormArgs& args, const Tensor& sum,
                               const Tensor& out) {
  noted("add, norm", of(w), 0, 0, [&] { device_->add_rms_norm(x, y, w, args, sum, out); });
}
void MeterDevice::layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, const NormArgs& args, const Tensor& out) {
  noted("norm", of(w), 0, 0, [&] { device_->layer_norm(x, w, b, args, out); });
}
void MeterDevice::rope(const Tensor& x, const Tensor& cos, const Tensor& sin, Pairs pairs, const Tensor& out) {
  noted("rope", {}, 0, 0, [&] { device_->rope(x, cos, sin, pairs, out); });
}
void MeterDevice::append(KvCache& cache, const Tensor& k, const Tensor& v, const Batch& at) {
  noted("append", of(static_cast<const StateStore*>(&cache)), 0, 0, [&] { device_->append(cache, k, v, at); });
}
void MeterDevice::set(KvCache& cache, const Tensor& k, const Tensor& v, const Sequences& at) {
  noted("set", of(static_cast<const StateStore*>(&cache)), 0, 0, [&] { device_->set(cache, k, v, at); });
}
void MeterDevice::attend(const Tensor& q, const KvCache& cache, const Batch& at, const AttendArgs& args, const Tensor& out) {
  if (!noting_) return device_->attend(q, cache, at, args, out);
  const double heads = static_cast<double>(q.shape[-2]), d = static_cast<double>(q.shape[-1]), dv = static_cast<double>(out.shape[-1]);
  const double row = static_cast<double>(
      cache.heads * (cache.dim * modelc::bytes(cache.keys.dtype) + cache.value_dim * modelc::bytes(cache.values.dtype)));
  const double all = static_cast<double>(cache.capacity);   // that every row of a cross_cache sees
  const double pairs = cache.whole ? all * static_cast<double>(at.tokens()) : pairs_of(at, args);
  const double bytes = cache.whole ? all * row * static_cast<double>(at.batch()) : cache_bytes(at, row, args);
  noted("attend", of(static_cast<const StateStore*>(&cache)), 2 * heads * (d + dv) * pairs, bytes,
        [&] { device_->attend(q, cache, at, args, out); });
}
void MeterDevice::attend(const Tensor& q, const Tensor& k, const Tensor& v, const Batch& at, const AttendArgs& args, const Tensor& out) {
  if (!noting_) return device_->attend(q, k, v, at, args, out);
  const double heads = static_cast<double>(q.shape[-2]), d = static_cast<double>(q.shape[-1]), dv = static_cast<double>(out.shape[-1]);
  noted("attend", {}, 2 * heads * (d + dv) * pairs_of(at, args), 0, [&] { device_->attend(q, k, v, at, args, out); });
}
void MeterDevice::attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttendArgs& args, const Tensor& out) {
  const double m = static_cast<double>(k.shape[-3]), all = static_cast<double>(q.count() + out.count());
  noted("attend", {}, (args.mask == Mask::causal ? 1 : 2) * m * all, 0, [&] { device_->attend(q, k, v, args, out); });
}
void MeterDevice::append(LatentCache& cache, const Tensor& latent, const Tensor& key, const Batch& at) {
  noted("append", of(static_cast<const StateStore*>(&cache)), 0, 0, [&] { device_->append(cache, latent, key, at); });
}
// As it is computed: for each head rank + rope of every pair for the score and rank for the sum, and `up` before and after. The cache's
// rows count once, though each is key and value.
void MeterDevice::attend_latent(const LatentArgs& args, const LatentCache& cache, const Batch& at, const Tensor& out) {
  if (!noting_) return device_->attend_latent(args, cache, at, out);
  const double heads = static_cast<double>(args.q_nope.shape[-2]), rank = static_cast<double>(cache.rank);
  const double row = rank + static_cast<double>(cache.rope), up = static_cast<double>(args.up->rows());
  const AttendArgs pairs{.mask = args.mask};
  noted("attend", of(static_cast<const StateStore*>(&cache)),
        2 * heads * (row + rank) * pairs_of(at, pairs) + 2 * static_cast<double>(at.tokens()) * up * rank,
        cache_bytes(at, row * static_cast<double>(modelc::bytes(cache.rows.dtype)), pairs) + bytes_of(*args.up),
        [&] { device_->attend_latent(args, cache, at, out); });
}
void MeterDevice::map(const MapKernel& f, std::span<const Tensor> inputs, const Tensor& out) {
  noted(f.name, {}, 0, 0, [&] { device_->map(f, inputs, out); });
}
void MeterDevice::copy(const Tensor& from, const Tensor& to) {
  noted("copy", {}, 0, 0, [&] { device_->copy(from, to); });
}
void MeterDevice::copy_strided(const Strided& from, const Strided& to) {
  noted("copy", {}, 0, 0, [&] { device_->copy_strided(from, to); });
}
void MeterDevice::fill(double value, const Tensor& out) {
  noted("fill", {}, 0, 0, [&] { device_->fill(value, out); });
}
void MeterDevice::reduce(Reduction kind, const Tensor& x, const ReduceArgs& args, const Tensor& out) {
  noted("reduce", {}, 0, 0, [&] { device_->reduce(kind, x, args, out); });
}
void MeterDevice::route(const Tensor& scores, const Tensor& bias, const RouteArgs& args, const Tensor& chosen, const Tensor& weights) {
  noted("route", {}, 0, 0, [&] { device_->route(scores, bias, args, chosen, weights); });
}
void MeterDevice::experts(const Tensor& x, const Tensor& chosen, const Tensor& weights, const ExpertArgs& args, const MapKernel& f,
                          const Tensor& out) {
  const double pairs = static_cast<double>(chosen.count()), experts = std::max(1.0, static_cast<double>(args.experts));
  double bytes = 0, flops = 0;
  for (const Matrix* m : {args.gate, args.up, args.down})
    if (m != nullptr) {
      flops += 2 * pairs * static_cast<double>(m->rows()) / experts * static_cast<double>(m->columns);
      bytes += bytes_of(*m) / experts * std::min(pairs, experts);          // at most: several rows may choose one expert
    }
  noted("experts", args.gate != nullptr ? of(*args.gate) : Name{}, flops, bytes,
        [&] { device_->experts(x, chosen, weights, args, f, out); });
}
void MeterDevice::conv(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvArgs& args, const Tensor& out) {
  const std::int64_t kernel = w.shape.rank() > 1 ? w.count() / std::max<std::int64_t>(w.shape[0], 1) : 0;
  noted("conv", of(w), 2 * static_cast<double>(kernel) * static_cast<double>(out.count()), static_cast<double>(w.size()),
        [&] { device_->conv(x, w, bias, args, out); });
}
namespace {

// Bytes of the state that the batch's sequences read and write.
double state_traffic(const Tensor& state, const Batch& at) {
  const std::int64_t slots = std::max<std::int64_t>(state.shape[0], 1);
  return 2 * static_cast<double>(state.size() / slots) * static_cast<double>(at.batch());
}

}  // namespace

void MeterDevice::causal_conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& ring, const Batch& at,
                                const Tensor& out) {
  const auto kernel = static_cast<double>(w.shape[1]);
  noted("causal_conv1d", of(w), 2 * kernel * static_cast<double>(out.count()), static_cast<double>(w.size()) + state_traffic(ring, at),
        [&] { device_->causal_conv1d(x, w, bias, ring, at, out); });
}
// For each element of a state and token: to decay it, to add to it, to read it out.
void MeterDevice::ssd_scan(const ScanArgs& args, const Tensor& state, const Batch& at, const Tensor& out) {
  const double each = static_cast<double>(out.count()) * static_cast<double>(args.b.shape[2]);
  noted("ssd_scan", {}, 5 * each, state_traffic(state, at), [&] { device_->ssd_scan(args, state, at, out); });
}
// The same, and what it holds under the key.
void MeterDevice::gated_delta(const DeltaArgs& args, const Tensor& state, const Batch& at, const Tensor& out) {
  const double each = static_cast<double>(out.count()) * static_cast<double>(args.k.shape[2]);
  noted("gated_delta", {}, 7 * each, state_traffic(state, at), [&] { device_->gated_delta(args, state, at, out); });
}
bool MeterDevice::custom(std::span<const Tensor> inputs, std::span<const Tensor> outs, std::span<const std::int64_t> sizes,
                         std::span<const CustomDispatch> ways, const HostKernel* host) {
  bool ran = false;
  noted("custom", {}, 0, 0, [&] { ran = device_->custom(inputs, outs, sizes, ways, host); });
  if (!ran && noting_) operations_.pop_back();             // what its formula is made of is noted instead
  return ran;
}

}  // namespace modelc

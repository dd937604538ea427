#include "runtime/device/step.h"

#include <algorithm>
#include <array>

#include "runtime/base/strings.h"
#include "runtime/device/round.h"
#include "runtime/device/model.h"
#include "runtime/kv_cache/kv_cache.h"

namespace modelc {
namespace {

// Slots of the step memory: the batch's fields, scratch for tracing, then the values computed once a step.
constexpr std::size_t batch_fields = 0, first_trace = 1;
constexpr std::size_t first_value = first_trace + MapArgs::max_inputs;

constexpr MapKernel round_bf16 = {"round_bf16", [](const MapArgs& a, std::int64_t begin, std::int64_t end) {
                                    map_rows<1>(a, begin, end, [](float x) { return math::bf16(x); });
                                  }};
constexpr MapKernel round_f16 = {"round_f16", [](const MapArgs& a, std::int64_t begin, std::int64_t end) {
                                   map_rows<1>(a, begin, end, [](float x) { return math::f16(x); });
                                 }};
constexpr MapKernel sum_of_two = {"sum_of_two", [](const MapArgs& a, std::int64_t begin, std::int64_t end) {
                                    map_rows<2>(a, begin, end, [](float x, float y) { return x + y; });
                                  }};

template <class T> T must(Result<T> r) {
  if (!r) throw StepFailure{std::move(r.error())};
  return std::move(*r);
}

}  // namespace

// ---- memory

StepMemory::~StepMemory() {
  for (const Buffer* b : buffers_)
    if (b != nullptr) device_.free(b);
}

Result<Tensor> StepMemory::get(std::size_t slot, DType dtype, Shape shape) {
  Tensor t{nullptr, 0, dtype, shape};
  if (slot >= buffers_.size()) buffers_.resize(slot + 1, nullptr);
  const Buffer*& buffer = buffers_[slot];
  if (buffer == nullptr || buffer->size < t.size()) {
    if (buffer != nullptr) device_.free(buffer);
    buffer = nullptr;
    auto fresh = device_.allocate(std::max<std::int64_t>(t.size(), 1));
    if (!fresh) return std::move(fresh.error());
    buffer = *fresh;
  }
  t.buffer = buffer;
  return t;
}

Step::Step(StepMemory& memory, Tensor arena, const StepSizes& sizes, StepAt at, State* state, const std::vector<LayerHook>* hooks,
           bool by_policy)
    : memory_(memory),
      arena_(arena),
      sizes_(sizes),
      at_(at),
      state_(state),
      hooks_(hooks != nullptr && !hooks->empty() ? hooks : nullptr),
      by_policy_(by_policy) {
  if (at_.batch != nullptr) upload(*at_.batch);
  if (Status s = device().begin(sizes_, at_.batch, fields_); !s) throw StepFailure{std::move(s.error())};
}

// All fields in one buffer, each aligned to 64 bytes.
void Step::upload(const Batch& at) {
  const std::pair<const std::vector<std::int32_t>*, Tensor*> fields[] = {
      {&at.positions, &fields_.positions}, {&at.lengths, &fields_.lengths}, {&at.sequence, &fields_.sequence},
      {&at.outputs, &fields_.outputs},     {&at.last, &fields_.last},       {&at.slots, &fields_.slots},
      {&at.starts, &fields_.starts}};
  std::vector<std::int32_t> all;
  std::vector<std::size_t> begins;
  for (const auto& [values, tensor] : fields) {
    begins.push_back(all.size());
    all.insert(all.end(), values->begin(), values->end());
    all.resize((all.size() + 15) / 16 * 16);
  }
  const Tensor whole = temporary(batch_fields, DType::i32, {static_cast<std::int64_t>(all.size())});
  device().write(std::as_bytes(std::span(all)), whole);
  for (std::size_t i = 0; i < begins.size(); ++i)
    *fields[i].second = {whole.buffer,
                         static_cast<std::int64_t>(begins[i] * sizeof(std::int32_t)),
                         DType::i32,
                         {static_cast<std::int64_t>(fields[i].first->size())}};
}

Tensor Step::temporary(std::size_t slot, DType dtype, Shape shape) { return must(memory_.get(slot, dtype, shape)); }

Step::Frame::Frame(Step& step, std::int64_t bytes) : step_(step) {
  memory_ = {step.arena_.buffer, step.arena_.offset + step.top_, DType::u8, {bytes}};
  if (!step.arena_) {
    own_ = must(step.device().allocate(std::max<std::int64_t>(bytes, 1)));
    memory_ = {own_, 0, DType::u8, {bytes}};
    return;
  }
  if (step.top_ + bytes > step.arena_.size()) {
    assert(false && "arena_bytes() of the model promises less than its frames take");
    throw StepFailure{{"arena",
                       "the model's frames take more than the " + std::to_string(step.arena_.size()) + " bytes that it asked for",
                       {},
                       "this is a fault of modelc: please report it"}};
  }
  step.top_ += bytes;
}

Step::Frame::~Frame() {
  if (own_ != nullptr) step_.device().free(own_);
  else step_.top_ -= memory_.size();
}

Tensor Step::Frame::at(std::int64_t offset, DType dtype, Shape shape) const {
  const Tensor t{memory_.buffer, memory_.offset + offset, dtype, shape};
  assert(offset >= 0 && offset % bytes(dtype) == 0 && offset + t.size() <= memory_.size());
  return t;
}

Tensor Step::once(StepValue value, Shape shape, const std::function<void(const Tensor& out)>& compute) {
  assert(value.index >= 0);
  const auto i = static_cast<std::size_t>(value.index);
  if (i < values_.size() && values_[i]) {
    assert(values_[i].shape == shape);
    return values_[i];
  }
  const Tensor t = temporary(first_value + i, DType::f32, shape);
  compute(t);
  if (values_.size() <= i) values_.resize(i + 1);          // not before: compute may ask for other values
  values_[i] = t;
  return t;
}

// ---- kernels

void Step::linear(const Tensor& x, const Matrix& w, std::initializer_list<Tensor> outs) {
  device().linear(x, w, {outs.begin(), outs.size()}, {});
}

void Step::linear_add(const Tensor& x, const Matrix& w, const Tensor& residual, const Tensor& out, const InnerValues& inner) {
  const bool rounds = by_policy_ && inner.rounded != DType::f32;
  if (!traced() && !rounds) return device().linear(x, w, {&out, 1}, residual);
  assert(inner.names.size() == 1);
  const Tensor product = temporary(first_trace, DType::f32, out.shape);
  device().linear(x, w, {&product, 1}, {});
  round(product, inner.rounded);
  if (traced()) report(*inner.module, *inner.names.begin(), product);
  if (rounds) device().map(sum_of_two, std::array{residual, product}, out);
  else device().linear(x, w, {&out, 1}, residual);         // once more: to the bits of an untraced call
}

void Step::linear_map(const Tensor& x, const Matrix& w, const Expression& f, const Tensor& out, const InnerValues& inner) {
  if (!traced()) return device().linear_map(x, w, kernel(f), out);
  assert(static_cast<int>(inner.names.size()) == w.results());
  std::vector<Tensor> products;
  for (std::size_t i = 0; i < inner.names.size(); ++i) products.push_back(temporary(first_trace + i, DType::f32, out.shape));
  device().linear(x, w, products, {});
  for (std::size_t i = 0; i < products.size(); ++i) {
    round(products[i], inner.rounded);
    report(*inner.module, inner.names.begin()[i], products[i]);
  }
  device().map(kernel(f), products, out);
}

void Step::take(const Weight& table, const Tensor& rows, float scale, const Tensor& out) {
  if (table.spec.shape.rank() <= 2) return device().take(table.matrix, rows, scale, out);
  // What is taken is several rows of the matrix, which lie together.
  Matrix whole = table.matrix;
  const std::int64_t together = table.spec.shape[0] > 0 ? table.matrix.rows() / table.spec.shape[0] : 1;
  whole.columns *= together;
  for (RowBlock& b : whole.blocks) {
    assert(b.rows % together == 0 && b.first % together == 0);
    b.rows /= together;
    b.first /= together;
    b.row_bytes *= together;
  }
  device().take(whole, rows, scale, out);
}
void Step::take_rows(const Tensor& x, const Tensor& rows, const Tensor& out) { device().take_rows(x, rows, out); }
void Step::rms_norm(const Tensor& x, const Tensor& w, const NormArgs& args, const Tensor& out) { device().rms_norm(x, w, args, out); }
void Step::add_rms_norm(const Tensor& x, const Tensor& y, const Tensor& w, const NormArgs& args, const Tensor& sum, const Tensor& out) {
  device().add_rms_norm(x, y, w, args, sum, out);
}
void Step::layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, const NormArgs& args, const Tensor& out) {
  device().layer_norm(x, w, b, args, out);
}
void Step::rope(const Tensor& x, const Tensor& cos, const Tensor& sin, Pairs pairs, const Tensor& out) {
  device().rope(x, cos, sin, pairs, out);
}
KvCache& Step::cache_of(const StateSlot& slot) {
  assert(state_ != nullptr && slot.has_keys());
  return static_cast<KvCache&>(state_->store(slot.index));
}
LatentCache& Step::latents_of(const StateSlot& slot) {
  assert(state_ != nullptr && slot.kind == StateSlot::Kind::latent_cache);
  return static_cast<LatentCache&>(state_->store(slot.index));
}
void Step::append(const StateSlot& cache, const Tensor& k, const Tensor& v, const Batch& at) {
  if (cache.kind == StateSlot::Kind::latent_cache) device().append(latents_of(cache), k, v, at);
  else device().append(cache_of(cache), k, v, at);
}
void Step::cross_set(const StateSlot& cache, const Tensor& k, const Tensor& v, const Sequences& at) {
  KvCache& memory = cache_of(cache);
  for (const std::int32_t slot : at.slots)
    if (const std::int64_t length = state_->length(slot); length > 0)
      throw StepFailure{{"state",
                         "sequence " + std::to_string(slot) + " has " + counted(static_cast<std::uint64_t>(length), "token") +
                             " already, and the state " + state_->name(cache.index) + " is set before the first",
                         {},
                         "clear the sequence, or take another"}};
  if (Status s = memory.keep(at); !s) throw StepFailure{std::move(s.error())};
  device().set(memory, k, v, at);
}
namespace {

// The entries that may set what tokens attend to: "encode (input_features: f32[batch, 80, 3000])".
std::string setters(const Model& model) {
  std::vector<std::string> all;
  for (const EntryDesc& e : model.entries()) {
    if (e.at != CallAt::sequences) continue;
    std::string inputs;
    for (const PortDesc& p : e.inputs)
      inputs += (inputs.empty() ? "" : ", ") + std::string(p.name) + ": " + std::string(name(p.dtype)) + p.shape;
    all.push_back(e.name + (" (" + inputs + ")"));
  }
  return all.empty() ? "the entry that sets it" : listed(all, all.size());
}

}  // namespace

void Step::attend(const Tensor& q, const StateSlot& cache, const Batch& at, const AttendArgs& args, const Tensor& out) {
  const KvCache& store = cache_of(cache);
  if (store.whole)
    for (const std::int32_t slot : at.slots)
      if (store.held[static_cast<std::size_t>(slot)] == 0)
        throw StepFailure{{"state",
                           "nothing has been set in the state " + state_->name(cache.index) + " for sequence " + std::to_string(slot),
                           {},
                           "call " + setters(state_->model()) +
                               " before the sequence's first token: programs do so with Model::call, and `modelc verify` does with the "
                               "inputs that its file holds"}};
  device().attend(q, store, at, args, out);
}
void Step::attend(const Tensor& q, const Tensor& k, const Tensor& v, const Batch& at, const AttendArgs& args, const Tensor& out) {
  device().attend(q, k, v, at, args, out);
}
void Step::attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttendArgs& args, const Tensor& out) {
  device().attend(q, k, v, args, out);
}
void Step::attend_latent(const Tensor& q_nope, const Tensor& q_rope, const StateSlot& cache, const Batch& at, const Weight& up,
                         const AttendArgs& args, const Tensor& out) {
  device().attend_latent({q_nope, q_rope, &up.matrix, args.mask, args.scale}, latents_of(cache), at, out);
}
void Step::map(const Expression& f, std::initializer_list<Tensor> inputs, const Tensor& out) {
  device().map(kernel(f), {inputs.begin(), inputs.size()}, out);
}
void Step::round(const Tensor& x, DType to) {
  if (!by_policy_ || to == DType::f32) return;
  assert(x.dtype == DType::f32 && (to == DType::bf16 || to == DType::f16));
  device().map(to == DType::bf16 ? round_bf16 : round_f16, {&x, 1}, x);
}
void Step::copy(const Tensor& from, const Tensor& to) { device().copy(from, to); }
void Step::copy(const Strided& from, const Strided& to) { device().copy_strided(from, to); }
void Step::fill(double value, const Tensor& out) { device().fill(value, out); }
void Step::reduce(Reduction kind, const Tensor& x, const ReduceArgs& args, const Tensor& out) { device().reduce(kind, x, args, out); }
void Step::route(const Tensor& scores, const Tensor& bias, const RouteArgs& args, const Tensor& chosen, const Tensor& weights) {
  device().route(scores, bias, args, chosen, weights);
}
void Step::experts(const Tensor& x, const Tensor& chosen, const Tensor& weights, const ExpertWeights& w, const Expression& f,
                   const Tensor& out) {
  const ExpertArgs args = {&w.gate.matrix, &w.up.matrix, &w.down.matrix, w.gate_bias, w.up_bias, w.down_bias, w.gate.spec.shape[0]};
  device().experts(x, chosen, weights, args, kernel(f), out);
}
bool Step::custom(std::initializer_list<Tensor> inputs, std::initializer_list<Tensor> outs, std::initializer_list<std::int64_t> sizes,
                  std::initializer_list<CustomDispatch> ways, const HostKernel* host) {
  return device().custom({inputs.begin(), inputs.size()}, {outs.begin(), outs.size()}, {sizes.begin(), sizes.size()},
                         {ways.begin(), ways.size()}, host);
}
void Step::conv(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvArgs& args, const Tensor& out) {
  for (int i = 2; i < x.shape.rank(); ++i) {
    const std::int64_t padded = x.shape[i] + 2 * args.padding, span = args.dilation * (w.shape[i] - 1) + 1;
    if (padded < span)
      throw StepFailure{{"conv-size",
                         "an axis of " + std::to_string(padded) +
                             " with padding is convolved with a kernel that "
                             "spans " +
                             std::to_string(span),
                         {},
                         "give inputs that are at least as long"}};
  }
  device().conv(x, w, bias, args, out);
}
Tensor Step::rows_of(const StateSlot& slot) {
  assert(state_ != nullptr && (slot.kind == StateSlot::Kind::ring || slot.kind == StateSlot::Kind::recurrent));
  return static_cast<SlotState&>(state_->store(slot.index)).all();
}
void Step::causal_conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const StateSlot& ring, const Batch& at, const Tensor& out) {
  device().causal_conv1d(x, w, bias, rows_of(ring), at, out);
}
void Step::ssd_scan(const ScanArgs& args, const StateSlot& memory, const Batch& at, const Tensor& out) {
  device().ssd_scan(args, rows_of(memory), at, out);
}
void Step::gated_delta(const DeltaArgs& args, const StateSlot& memory, const Batch& at, const Tensor& out) {
  device().gated_delta(args, rows_of(memory), at, out);
}
Tensor Step::rows(const Tensor& x, std::int64_t start, std::int64_t stop) {
  assert(x.shape.rank() >= 1);
  check_slice(start, stop, x.shape[0]);
  std::array<std::int64_t, Shape::max_rank> axes{};
  std::copy(x.shape.axes().begin(), x.shape.axes().end(), axes.begin());
  axes[0] = stop - start;
  Tensor t = x;
  t.shape = Shape(std::span(axes.data(), static_cast<std::size_t>(x.shape.rank())));
  if (x.shape[0] > 0) t.offset += start * (x.size() / x.shape[0]);
  return t;
}

void Step::arange(const Tensor& out, float start, float by) {
  std::vector<float> values(static_cast<std::size_t>(out.count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<float>(i) * by;
  device().write(std::as_bytes(std::span(values)), out);
}
void Step::values(std::initializer_list<float> numbers, const Tensor& out) {
  assert(static_cast<std::int64_t>(numbers.size()) == out.count());
  device().write(std::as_bytes(std::span(numbers.begin(), numbers.size())), out);
}

// ---- hooks

void Step::read(const Tensor& value, std::span<std::byte> to) {
  if (Status s = device().read(value, to); !s) throw StepFailure{std::move(s.error())};
}

void Step::report(const Module& module, const char* name, const Tensor& value) {
  const auto n = static_cast<std::size_t>(value.count());
  host_.resize(n);
  if (value.dtype == DType::f32) {
    read(value, std::as_writable_bytes(std::span(host_)));
  } else {
    assert(value.dtype == DType::i32 || value.dtype == DType::boolean);
    std::vector<std::byte> raw(static_cast<std::size_t>(value.size()));
    read(value, raw);
    const MapArgs::Input in{raw.data(), value.dtype, {}};
    for (std::size_t i = 0; i < n; ++i) host_[i] = detail::load(in, static_cast<std::int64_t>(i));
  }
  std::string full = module.qualified_name();
  if (*name != '\0') full += (full.empty() ? "" : ".") + std::string(name);
  const LayerValue v{full, value.shape, host_};
  for (const LayerHook& hook : *hooks_) hook(v);
}

}  // namespace modelc

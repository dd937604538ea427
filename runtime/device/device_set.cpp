#include "runtime/device/device_set.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "runtime/base/strings.h"
#include "runtime/device/step.h"
#include "runtime/kv_cache/kv_cache.h"

namespace modelc {
namespace {

// What the host writes goes to all members that have a copy already, so that none has to wait for another's (the batch's fields
// every step); more than this to one alone.
constexpr std::int64_t small_write = std::int64_t{64} << 10;
// Between two devices whose memory the host does not see, a transfer goes through so many bytes of the host's at a time.
constexpr std::int64_t staging_bytes = std::int64_t{16} << 20;

}  // namespace

struct DeviceSet::Shared : Buffer {
  Shared(std::int64_t bytes, int home_member, const Device* set, std::size_t members) : home(home_member), copies(members), where(bytes) {
    size = bytes;
    owner = set;
  }
  int home;                                                // where it was asked for
  std::vector<const Buffer*> copies;                       // by member; none where it was never used
  Whereabouts where;
};

DeviceSet::DeviceSet(std::vector<Member> members)
    : members_(std::move(members)), runs_(members_.size(), 0), begun_(members_.size(), false) {
  assert(!members_.empty() && members_.size() <= Whereabouts::max_members);
}

DeviceSet::~DeviceSet() {
  for (auto& [key, b] : buffers_)
    for (std::size_t i = 0; i < b->copies.size(); ++i)
      if (b->copies[i] != nullptr) members_[i].device->free(b->copies[i]);
}

int DeviceSet::find(const std::string& name) const {
  const auto it = std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.name == name; });
  return it == members_.end() ? -1 : static_cast<int>(it - members_.begin());
}

int DeviceSet::add(Member member) {
  assert(find(member.name) < 0 && members() < Whereabouts::max_members);
  members_.push_back(std::move(member));
  runs_.push_back(0);
  begun_.push_back(false);
  const std::lock_guard guard(lock_);
  for (auto& [key, b] : buffers_) b->copies.push_back(nullptr);
  return members() - 1;
}

std::string DeviceSet::description() const {
  std::vector<std::string> each;
  for (const Member& m : members_) each.push_back(m.name + " (" + m.device->description() + ")");
  return listed(each, each.size());
}

std::string DeviceSet::operations() const {
  std::string text;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const std::string own = members_[i].device->operations();
    text += members_[i].name + ": " + counted(runs_[i], "operation") + (own.empty() ? "" : " (" + own + ")") + "; ";
  }
  return text + counted(transfers_, "transfer") + " between them, " + human_bytes(transferred_);
}

bool DeviceSet::has_fast_mode() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& m) { return m.device->has_fast_mode(); });
}

bool DeviceSet::reads(Encoding encoding, MatrixUse use) const {
  return std::all_of(members_.begin(), members_.end(), [&](const Member& m) { return m.device->reads(encoding, use); });
}

// ---- memory

DeviceSet::Shared& DeviceSet::shared(const Tensor& t) { return *static_cast<Shared*>(const_cast<Buffer*>(t.buffer)); }

namespace {

// Bytes of a tensor in its buffer, to whole words: what a device copies at least.
struct Range {
  std::int64_t begin, end;
  bool partly;                                             // a word of it holds bytes of something else
  explicit Range(const Tensor& t)
      : begin(t.offset / 4 * 4),
        end(std::max(begin, std::min((t.offset + t.size() + 3) / 4 * 4, t.buffer->size))),
        partly(begin != t.offset || (end != t.offset + t.size() && t.size() > 0)) {}
};

void must(Status s) {
  if (!s) throw StepFailure{std::move(s.error())};
}

}  // namespace

Result<const Buffer*> DeviceSet::make(std::int64_t size, int home, const Buffer* own) {
  auto b = std::make_unique<Shared>(size, home, this, members_.size());
  b->copies[static_cast<std::size_t>(home)] = own;
  const Buffer* key = b.get();
  const std::lock_guard guard(lock_);
  buffers_.emplace(key, std::move(b));
  return key;
}

const Buffer* DeviceSet::adopt(int member, const Buffer* own) {
  assert(own->owner == members_[static_cast<std::size_t>(member)].device.get());
  const Buffer* b = *make(own->size, member, own);
  const_cast<Shared*>(static_cast<const Shared*>(b))->where.wrote(0, own->size, member);
  return b;
}

void DeviceSet::release(const Buffer* adopted) {
  auto* b = const_cast<Shared*>(static_cast<const Shared*>(adopted));
  b->copies[static_cast<std::size_t>(b->home)] = nullptr;
  free(adopted);
}

// The copy at home is made at once, so that memory that is not there is said to whom asks for it.
Result<const Buffer*> DeviceSet::allocate(std::int64_t size) {
  auto own = device(at_).allocate(size);
  if (!own) {
    own.error().notes.push_back("on " + members_[static_cast<std::size_t>(at_)].name);
    return own;
  }
  return make(size, at_, *own);
}

void DeviceSet::free(const Buffer* buffer) {
  if (buffer == nullptr) return;
  std::unique_ptr<Shared> gone;
  {
    const std::lock_guard guard(lock_);
    const auto at = buffers_.find(buffer);
    assert(at != buffers_.end());
    if (at == buffers_.end()) return;
    gone = std::move(at->second);
    buffers_.erase(at);
  }
  for (std::size_t i = 0; i < gone->copies.size(); ++i)
    if (gone->copies[i] != nullptr) members_[i].device->free(gone->copies[i]);
}

Result<const Buffer*> DeviceSet::place(std::shared_ptr<const MappedFile> file, std::uint64_t at, std::int64_t size) {
  auto own = device(at_).place(std::move(file), at, size);
  if (!own) {
    own.error().notes.push_back("on " + members_[static_cast<std::size_t>(at_)].name);
    return own;
  }
  return adopt(at_, *own);
}

Result<const Buffer*> DeviceSet::copy_on(Shared& b, int member) {
  const Buffer*& copy = b.copies[static_cast<std::size_t>(member)];
  if (copy != nullptr) return copy;
  auto own = device(member).allocate(b.size);
  if (!own) {
    own.error().notes.push_back("on " + members_[static_cast<std::size_t>(member)].name + ", for values that come from another device");
    return own;
  }
  return copy = *own;
}

Status DeviceSet::bring(Shared& b, std::int64_t begin, std::int64_t end, int member) {
  for (const Whereabouts::Move& move : b.where.missing(begin, end, member)) {
    auto to = copy_on(b, member);
    if (!to) return std::move(to.error());
    const Buffer* from = b.copies[static_cast<std::size_t>(move.from)];
    const auto piece = [](const Buffer* of, std::int64_t at, std::int64_t n) { return Tensor{of, at, DType::u8, {n}}; };
    const std::int64_t size = move.end - move.begin;
    if (from->host != nullptr) {
      device(member).write({from->host + move.begin, static_cast<std::size_t>(size)}, piece(*to, move.begin, size));
    } else if ((*to)->host != nullptr) {
      if (Status s = device(move.from).read(piece(from, move.begin, size), {(*to)->host + move.begin, static_cast<std::size_t>(size)}); !s)
        return s;
    } else {
      for (std::int64_t at = move.begin; at < move.end; at += staging_bytes) {
        const std::int64_t n = std::min(staging_bytes, move.end - at);
        staging_.resize(static_cast<std::size_t>(n));
        if (Status s = device(move.from).read(piece(from, at, n), staging_); !s) return s;
        device(member).write(staging_, piece(*to, at, n));
      }
    }
    ++transfers_;
    transferred_ += static_cast<std::uint64_t>(size);
    b.where.brought(move.begin, move.end, member);
  }
  return {};
}

Status DeviceSet::read(const Tensor& t, std::span<std::byte> to) {
  if (to.empty()) return {};
  Shared& b = shared(t);
  const Range r(t);
  int from = b.where.holder(r.begin, r.end, b.home);
  if (from < 0) {                                          // in pieces on several
    from = b.home;
    if (Status s = bring(b, r.begin, r.end, from); !s) return s;
  }
  Tensor own = t;
  own.buffer = b.copies[static_cast<std::size_t>(from)];
  if (own.buffer == nullptr) own.buffer = b.copies[static_cast<std::size_t>(from = b.home)];
  return device(from).read(own, to);
}

void DeviceSet::write(std::span<const std::byte> from, const Tensor& t) {
  if (from.empty()) return;
  Shared& b = shared(t);
  const Range r(t);
  if (r.partly)
    if (Status s = bring(b, r.begin, r.end, b.home); !s) throw StepFailure{std::move(s.error())};
  b.where.wrote(r.begin, r.end, b.home);
  for (int i = 0; i < members(); ++i) {
    Tensor own = t;
    own.buffer = b.copies[static_cast<std::size_t>(i)];
    if (i != b.home && (own.buffer == nullptr || t.size() > small_write || r.partly)) continue;
    device(i).write(from, own);
    b.where.brought(r.begin, r.end, i);
  }
}

// ---- operations

class DeviceSet::On {
 public:
  On(DeviceSet& set, int member) : device(set.device(member)), set_(set), member_(member) { ++set.runs_[static_cast<std::size_t>(member)]; }
  // Before an operation that reads the batch: what a step begins with is told to a member when that first needs it.
  void begin() {
    DeviceSet& set = set_;
    const auto i = static_cast<std::size_t>(member_);
    if (set.begun_[i]) return;
    set.begun_[i] = true;
    BatchTensors fields = set.fields_;
    for (Tensor* t : {&fields.positions, &fields.lengths, &fields.sequence, &fields.outputs, &fields.last, &fields.slots, &fields.starts})
      *t = in(*t);
    must(device.begin(set.sizes_, set.batch_, fields));
  }
  On(const On&) = delete;
  On& operator=(const On&) = delete;

  Tensor in(const Tensor& t) { return t ? own(t, true, false) : t; }
  Tensor out(const Tensor& t) { return own(t, false, true); }
  Tensor changed(const Tensor& t) { return own(t, true, true); }
  std::span<const Tensor> ins(std::span<const Tensor> from) { return all(ins_, from, true); }
  std::span<const Tensor> outs(std::span<const Tensor> to) { return all(outs_, to, false); }
  int member() const { return member_; }

  Device& device;

 private:
  Tensor own(const Tensor& t, bool reads, bool writes) {
    assert(t.buffer != nullptr && t.buffer->owner == &set_);
    Shared& b = shared(t);
    const Range r(t);
    if (reads || (writes && r.partly)) must(set_.bring(b, r.begin, r.end, member_));
    auto copy = set_.copy_on(b, member_);
    if (!copy) throw StepFailure{std::move(copy.error())};
    if (writes) b.where.wrote(r.begin, r.end, member_);
    Tensor t2 = t;
    t2.buffer = *copy;
    return t2;
  }
  std::span<const Tensor> all(std::vector<Tensor>& into, std::span<const Tensor> from, bool reads) {
    for (const Tensor& t : from) into.push_back(reads ? in(t) : out(t));
    return into;
  }

  DeviceSet& set_;
  const int member_;
  std::vector<Tensor> ins_, outs_;
};

int DeviceSet::home_of(const Matrix& m) const { return m.blocks.empty() ? at_ : home_of(m.blocks.front().data); }
int DeviceSet::home_of(const Tensor& weights) const { return weights ? shared(weights).home : at_; }
int DeviceSet::home_of(const KvCache& cache) const { return owner_of(cache.keys); }
int DeviceSet::home_of(const LatentCache& cache) const { return owner_of(cache.rows); }
int DeviceSet::owner_of(const Tensor& own) const {
  const auto it = std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.device.get() == own.buffer->owner; });
  assert(it != members_.end());
  return static_cast<int>(it - members_.begin());
}

// The matrix as the member has it. Weights are on one device, where they are brought to at most once.
Matrix DeviceSet::on(const Matrix& m, int member) {
  Matrix own = m;
  for (RowBlock& b : own.blocks)
    for (Tensor* t : {&b.data, &b.bias}) {
      if (!*t) continue;
      Shared& buffer = shared(*t);
      const Range r(*t);
      must(bring(buffer, r.begin, r.end, member));
      t->buffer = buffer.copies[static_cast<std::size_t>(member)];
    }
  return own;
}

AttendArgs DeviceSet::on(const AttendArgs& args, On& run) {
  AttendArgs own = args;
  own.sinks = run.in(args.sinks);
  own.keep = run.in(args.keep);
  return own;
}

Status DeviceSet::prepare(Matrix& matrix, MatrixUse use) {
  const int member = home_of(matrix);
  Matrix own = on(matrix, member);
  Status s = device(member).prepare(own, use);
  matrix.prepared = std::move(own.prepared);
  return s;
}

Status DeviceSet::begin(const StepSizes& sizes, const Batch* at, const BatchTensors& fields) {
  sizes_ = sizes;
  batch_ = at;
  fields_ = fields;
  begun_.assign(members_.size(), false);
  return {};
}

Result<std::unique_ptr<StateStore>> DeviceSet::reserve(const StateSlot& slot, std::int64_t capacity, int sequences) {
  const auto there = [&](Error e) {
    e.notes.push_back("on " + members_[static_cast<std::size_t>(slot.member)].name);
    return e;
  };
  if (slot.narrows()) {
    auto store = device(slot.member).reserve(slot, capacity, sequences);
    if (!store) return there(std::move(store.error()));
    return store;
  }
  // One whose tensors go into operations as any others do: of the set, once the member has said that it has kernels for it.
  if (auto size = state_bytes(slot, capacity, sequences); !size) return there(std::move(size.error()));
  const int before = std::exchange(at_, slot.member);
  auto state = SlotState::make(*this, slot, sequences);
  at_ = before;
  if (!state) return std::move(state.error());
  return std::unique_ptr<StateStore>(std::move(*state));
}

Result<std::int64_t> DeviceSet::state_bytes(const StateSlot& slot, std::int64_t capacity, int sequences) const {
  return member(slot.member).state_bytes(slot, capacity, sequences);
}

void DeviceSet::linear(const Tensor& x, const Matrix& w, std::span<const Tensor> outs, const Tensor& residual) {
  On run(*this, home_of(w));
  const Tensor own = run.in(x), added = run.in(residual);
  run.device.linear(own, on(w, run.member()), run.outs(outs), added);
}
void DeviceSet::linear_map(const Tensor& x, const Matrix& w, const MapKernel& f, const Tensor& out) {
  On run(*this, home_of(w));
  const Tensor own = run.in(x);
  run.device.linear_map(own, on(w, run.member()), f, run.out(out));
}
void DeviceSet::take(const Matrix& table, const Tensor& rows, float scale, const Tensor& out) {
  On run(*this, home_of(table));
  const Tensor own = run.in(rows);
  run.device.take(on(table, run.member()), own, scale, run.out(out));
}
void DeviceSet::take_rows(const Tensor& x, const Tensor& rows, const Tensor& out) {
  On run(*this, at_);
  const Tensor from = run.in(x), index = run.in(rows);
  run.device.take_rows(from, index, run.out(out));
}
void DeviceSet::rms_norm(const Tensor& x, const Tensor& w, const NormArgs& args, const Tensor& out) {
  On run(*this, home_of(w));
  const Tensor from = run.in(x), weights = run.in(w);
  run.device.rms_norm(from, weights, args, run.out(out));
}
void DeviceSet::add_rms_norm(const Tensor& x, const Tensor& y, const Tensor& w, const NormArgs& args, const Tensor& sum,
                             const Tensor& out) {
  On run(*this, home_of(w));
  const Tensor a = run.in(x), b = run.in(y), weights = run.in(w);
  const Tensor added = run.out(sum);
  run.device.add_rms_norm(a, b, weights, args, added, run.out(out));
}
void DeviceSet::layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, const NormArgs& args, const Tensor& out) {
  On run(*this, home_of(w ? w : b));
  const Tensor from = run.in(x), weights = run.in(w), bias = run.in(b);
  run.device.layer_norm(from, weights, bias, args, run.out(out));
}
void DeviceSet::rope(const Tensor& x, const Tensor& cos, const Tensor& sin, Pairs pairs, const Tensor& out) {
  On run(*this, at_);
  const Tensor from = run.in(x), c = run.in(cos), s = run.in(sin);
  run.device.rope(from, c, s, pairs, run.out(out));
}
void DeviceSet::append(KvCache& cache, const Tensor& k, const Tensor& v, const Batch& at) {
  On run(*this, home_of(cache));
  run.begin();
  const Tensor keys = run.in(k);
  run.device.append(cache, keys, run.in(v), at);
}
void DeviceSet::set(KvCache& cache, const Tensor& k, const Tensor& v, const Sequences& at) {
  On run(*this, home_of(cache));
  const Tensor keys = run.in(k);
  run.device.set(cache, keys, run.in(v), at);
}
void DeviceSet::attend(const Tensor& q, const KvCache& cache, const Batch& at, const AttendArgs& args, const Tensor& out) {
  On run(*this, home_of(cache));
  run.begin();
  const Tensor from = run.in(q);
  const AttendArgs own = on(args, run);
  run.device.attend(from, cache, at, own, run.out(out));
}
void DeviceSet::attend(const Tensor& q, const Tensor& k, const Tensor& v, const Batch& at, const AttendArgs& args, const Tensor& out) {
  On run(*this, at_);
  run.begin();
  const Tensor from = run.in(q), keys = run.in(k), values = run.in(v);
  const AttendArgs own = on(args, run);
  run.device.attend(from, keys, values, at, own, run.out(out));
}
void DeviceSet::attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttendArgs& args, const Tensor& out) {
  On run(*this, at_);
  const Tensor from = run.in(q), keys = run.in(k), values = run.in(v);
  const AttendArgs own = on(args, run);
  run.device.attend(from, keys, values, own, run.out(out));
}
void DeviceSet::append(LatentCache& cache, const Tensor& latent, const Tensor& key, const Batch& at) {
  On run(*this, home_of(cache));
  run.begin();
  const Tensor own = run.in(latent);
  run.device.append(cache, own, run.in(key), at);
}
// Where the cache lies; `up` is brought there, once, where its module was placed elsewhere.
void DeviceSet::attend_latent(const LatentArgs& args, const LatentCache& cache, const Batch& at, const Tensor& out) {
  On run(*this, home_of(cache));
  run.begin();
  const Matrix up = on(*args.up, run.member());
  LatentArgs own = args;
  own.q_nope = run.in(args.q_nope), own.q_rope = run.in(args.q_rope), own.up = &up;
  run.device.attend_latent(own, cache, at, run.out(out));
}
void DeviceSet::map(const MapKernel& f, std::span<const Tensor> inputs, const Tensor& out) {
  On run(*this, at_);
  const std::span<const Tensor> from = run.ins(inputs);
  run.device.map(f, from, run.out(out));
}
// Copies where the elements are: they go elsewhere when something there reads them.
void DeviceSet::copy(const Tensor& from, const Tensor& to) {
  if (from.count() == 0) return;
  const Range r(from);
  const int holder = shared(from).where.holder(r.begin, r.end, at_);
  On run(*this, holder < 0 ? at_ : holder);
  const Tensor own = run.in(from);
  run.device.copy(own, run.out(to));
}
void DeviceSet::copy_strided(const Strided& from, const Strided& to) {
  On run(*this, at_);
  Strided source = from, target = to;
  source.tensor = run.in(from.tensor);
  // What of the target is not written stays, and has to be right there.
  const bool whole = to.contiguous() && to.offset == 0 && to.count() == to.tensor.count();
  target.tensor = whole ? run.out(to.tensor) : run.changed(to.tensor);
  run.device.copy_strided(source, target);
}
void DeviceSet::fill(double value, const Tensor& out) {
  On run(*this, at_);
  run.device.fill(value, run.out(out));
}
void DeviceSet::reduce(Reduction kind, const Tensor& x, const ReduceArgs& args, const Tensor& out) {
  On run(*this, at_);
  ReduceArgs own = args;
  own.where = run.in(args.where);
  const Tensor from = run.in(x);
  run.device.reduce(kind, from, own, run.out(out));
}
void DeviceSet::route(const Tensor& scores, const Tensor& bias, const RouteArgs& args, const Tensor& chosen, const Tensor& weights) {
  On run(*this, at_);
  const Tensor from = run.in(scores), added = run.in(bias);
  const Tensor which = run.out(chosen);
  run.device.route(from, added, args, which, run.out(weights));
}
void DeviceSet::experts(const Tensor& x, const Tensor& chosen, const Tensor& weights, const ExpertArgs& args, const MapKernel& f,
                        const Tensor& out) {
  On run(*this, home_of(*args.gate));
  const Matrix gate = on(*args.gate, run.member()), up = on(*args.up, run.member()), down = on(*args.down, run.member());
  const ExpertArgs own = {&gate, &up, &down, run.in(args.gate_bias), run.in(args.up_bias), run.in(args.down_bias), args.experts};
  const Tensor from = run.in(x), which = run.in(chosen), by = run.in(weights);
  run.device.experts(from, which, by, own, f, run.out(out));
}
void DeviceSet::conv(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvArgs& args, const Tensor& out) {
  On run(*this, home_of(w));
  const Tensor from = run.in(x), weights = run.in(w), added = run.in(bias);
  run.device.conv(from, weights, added, args, run.out(out));
}
// What has a state runs where that lies.
void DeviceSet::causal_conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& ring, const Batch& at,
                              const Tensor& out) {
  On run(*this, home_of(ring));
  run.begin();
  const Tensor from = run.in(x), weights = run.in(w), added = run.in(bias), rows = run.changed(ring);
  run.device.causal_conv1d(from, weights, added, rows, at, run.out(out));
}
void DeviceSet::ssd_scan(const ScanArgs& args, const Tensor& state, const Batch& at, const Tensor& out) {
  On run(*this, home_of(state));
  run.begin();
  const ScanArgs own = {run.in(args.x), run.in(args.dt), run.in(args.a), run.in(args.b), run.in(args.c), run.in(args.d)};
  const Tensor rows = run.changed(state);
  run.device.ssd_scan(own, rows, at, run.out(out));
}
void DeviceSet::gated_delta(const DeltaArgs& args, const Tensor& state, const Batch& at, const Tensor& out) {
  On run(*this, home_of(state));
  run.begin();
  const DeltaArgs own = {run.in(args.q), run.in(args.k), run.in(args.v), run.in(args.decay), run.in(args.beta), args.scale, args.normalize};
  const Tensor rows = run.changed(state);
  run.device.gated_delta(own, rows, at, run.out(out));
}
bool DeviceSet::custom(std::span<const Tensor> inputs, std::span<const Tensor> outs, std::span<const std::int64_t> sizes,
                       std::span<const CustomDispatch> ways, const HostKernel* host) {
  On run(*this, at_);
  const std::span<const Tensor> from = run.ins(inputs);
  return run.device.custom(from, run.outs(outs), sizes, ways, host);
}

Status DeviceSet::finish() {
  Status first;
  for (const Member& m : members_)
    if (Status s = m.device->finish(); first && !s) first = std::move(s);
  return first;
}

}  // namespace modelc

// Attention and its cache: the layout of keys and values, and how the rows are cut into pieces for the team.
//
// Keys:   [slots][heads][capacity / 16][dim][16], transposed in blocks of 16 positions (kernels.h).
// Values: [slots][heads][capacity][value_dim]. Both f32, f16 or bf16. Latents (latent.cpp) lie row after row, for both.
#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>

#include "runtime/base/strings.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/device/step.h"
#include "runtime/kv_cache/kv_cache.h"

namespace modelc::cpu {
namespace {

constexpr std::int64_t item_rows = 48;                     // (token, query head) pairs of one piece
static_assert(item_rows <= attend_max_rows);

std::int64_t key_positions(std::int64_t positions) { return (positions + key_block - 1) / key_block * key_block; }

// Writes the keys of one head, one position.
template <class T> void put_key(const T* key, std::int64_t dim, std::int64_t position, T* keys) {
  T* to = keys + position / key_block * (key_block * dim) + position % key_block;
  for (std::int64_t i = 0; i < dim; ++i) to[i * key_block] = key[i];
}

// Rows that are computed together: tokens [t0, t1), query heads [h0, h1) of one kv head.
struct Item {
  std::int64_t t0, t1, h0, h1;
  std::int64_t segment, head;
  std::int64_t lo, hi;                                     // positions that some row of it sees
  std::int64_t rows() const { return (t1 - t0) * (h1 - h0); }
  std::int64_t first_chunk() const { return lo / attend_chunk; }
  std::int64_t chunks() const { return lo < hi ? (hi + attend_chunk - 1) / attend_chunk - first_chunk() : 0; }
};

}  // namespace

struct CpuDevice::Keys {
  const std::byte* keys = nullptr;
  const std::byte* values = nullptr;
  Stored stored = Stored::f32;                             // f32, f16 or bf16
  std::int64_t heads = 0, dv = 0;
  const Batch* at = nullptr;
  const RowCache* cache = nullptr;                         // or null: each segment's own rows, from position 0
  std::int64_t latent_row = 0;                             // of latents: numbers of a row, which is the key, and the value its first dv
  // Without cache, of each segment: where its keys and values begin, and how many there are.
  std::vector<std::int64_t> segment_keys, segment_values, segment_length;
  // Of rectangular sequences whose keys were thinned out: before position j of segment s, kept[s · (m + 1) + j] are left.
  std::vector<std::int64_t> kept;
  std::int64_t m = 0;

  std::int64_t bytes(std::int64_t elements) const { return elements * (stored == Stored::f32 ? 4 : 2); }
  const std::byte* keys_of(std::int64_t segment, std::int64_t head, std::int64_t dim) const {
    const auto s = static_cast<std::size_t>(segment);
    if (latent_row > 0) return keys + bytes(at->slots[s] * cache->capacity * latent_row);
    if (cache != nullptr) return keys + bytes((at->slots[s] * heads + head) * key_positions(cache->capacity) * dim);
    return keys + bytes(segment_keys[s] + head * key_positions(segment_length[s]) * dim);
  }
  const std::byte* values_of(std::int64_t segment, std::int64_t head) const {
    const auto s = static_cast<std::size_t>(segment);
    if (latent_row > 0) return keys_of(segment, head, 0);
    if (cache != nullptr) return values + bytes((at->slots[s] * heads + head) * cache->capacity * dv);
    return values + bytes(segment_values[s] + head * dv);
  }
  std::int64_t value_stride() const { return latent_row > 0 ? latent_row : cache != nullptr ? dv : heads * dv; }
  // The positions lo <= p < hi that token t sees.
  void seen(std::int64_t t, std::int64_t segment, const AttendArgs& args, std::int64_t& lo, std::int64_t& hi) const {
    const auto s = static_cast<std::size_t>(segment);
    const auto row = static_cast<std::size_t>(t);
    std::int64_t position = t - at->starts[s], held = cache == nullptr ? segment_length[s] : 0;
    if (!kept.empty()) {
      const std::int64_t* before = kept.data() + segment * (m + 1);
      const bool causal = args.mask == Mask::causal;
      hi = causal ? before[position + 1] : held;
      lo = causal && args.window > 0 ? before[std::max<std::int64_t>(position + 1 - args.window, 0)] : 0;
      return;
    }
    if (cache != nullptr) {
      position = at->positions[row];
      held = cache->held[static_cast<std::size_t>(at->slots[s])];
      if (!cache->whole) held = std::min<std::int64_t>(held, at->lengths[row]);
    }
    hi = args.mask == Mask::causal ? std::min(position + 1, held) : held;
    lo = args.window > 0 ? std::max<std::int64_t>(position + 1 - args.window, 0) : 0;
    lo = std::min(lo, hi);
  }
};

// Queries of tokens [begin, end) of the batch: [end - begin, heads, d], and their results [end - begin, heads, dv].
struct CpuDevice::Queries {
  const float* from = nullptr;
  float* to = nullptr;
  std::int64_t heads = 0, d = 0;
  std::int64_t begin = 0, end = 0;
  Queries(const Tensor& q, const Tensor& out)
      : from(q.host<float>()), to(out.host<float>()), heads(q.shape[1]), d(q.shape[2]), end(q.shape[0]) {}
  Queries(const float* q, float* out, std::int64_t query_heads, std::int64_t width, std::int64_t first, std::int64_t last)
      : from(q), to(out), heads(query_heads), d(width), begin(first), end(last) {}
};

namespace {

// Whether it has kernels for such a state.
Status supported(const StateSlot& slot) {
  const bool narrow = slot.narrows() && (slot.dtype == DType::f16 || slot.dtype == DType::bf16);
  if (slot.dtype == DType::f32 || narrow) return {};
  return Error{"state-kind", "a state of " + std::string(name(slot.dtype)) + " is not carried out by the CPU device", {}, {}};
}

// Bytes of the two buffers of a cache of keys and values.
struct CacheBytes {
  std::int64_t keys = 0, values = 0;
};
Result<CacheBytes> cache_bytes(const StateSlot& slot, std::int64_t asked_for, int sequences) {
  const auto [heads, dim, value_dim, capacity] = KeySizes(slot, asked_for);
  const std::int64_t rows = static_cast<std::int64_t>(sequences) * heads, element = bytes(slot.dtype);
  CacheBytes b;
  std::int64_t both = 0;
  if (capacity > (std::int64_t{1} << 40) || __builtin_mul_overflow(rows, key_positions(capacity) * element, &b.keys) ||
      __builtin_mul_overflow(rows, capacity * element, &b.values) || __builtin_mul_overflow(b.keys, dim, &b.keys) ||
      __builtin_mul_overflow(b.values, value_dim, &b.values) || __builtin_add_overflow(b.keys, b.values, &both))
    return Error{"out-of-memory",
                 "a cache of " + grouped(capacity) + " positions for " + counted(static_cast<std::uint64_t>(sequences), "sequence") +
                     " passes all memory",
                 {},
                 {}};
  return b;
}

}  // namespace

Result<std::int64_t> CpuDevice::state_bytes(const StateSlot& slot, std::int64_t capacity, int sequences) const {
  if (Status s = supported(slot); !s) return std::move(s.error());
  if (slot.kind == StateSlot::Kind::latent_cache) return LatentCache::bytes_of(slot, capacity, sequences);
  if (!slot.has_keys()) return SlotState::bytes_of(slot, sequences);
  auto size = cache_bytes(slot, capacity, sequences);
  if (!size) return std::move(size.error());
  return size->keys + size->values;
}

Result<std::unique_ptr<StateStore>> CpuDevice::reserve(const StateSlot& slot, std::int64_t capacity, int sequences) {
  if (Status s = supported(slot); !s) return std::move(s.error());
  if (slot.kind == StateSlot::Kind::latent_cache) {
    auto size = LatentCache::bytes_of(slot, capacity, sequences);
    if (!size) return std::move(size.error());
    auto rows = buffers_.allocate(*size);
    if (!rows) return std::move(rows.error());
    return std::unique_ptr<StateStore>(std::make_unique<LatentCache>(
        *this, slot, capacity, sequences, Tensor{*rows, 0, slot.dtype, {sequences, capacity, slot.sizes[0] + slot.sizes[1]}}));
  }
  if (!slot.has_keys()) {
    auto state = SlotState::make(*this, slot, sequences);
    if (!state) return std::move(state.error());
    return std::unique_ptr<StateStore>(std::move(*state));
  }
  auto size = cache_bytes(slot, capacity, sequences);
  if (!size) return std::move(size.error());
  auto keys = buffers_.allocate(size->keys);
  if (!keys) return std::move(keys.error());
  auto values = buffers_.allocate(size->values);
  if (!values) {
    buffers_.free(*keys);
    return std::move(values.error());
  }
  const KeySizes of(slot, capacity);
  return std::unique_ptr<StateStore>(std::make_unique<KvCache>(
      *this, slot, of, sequences,
      Tensor{*keys, 0, slot.dtype, {sequences, of.heads, key_positions(of.capacity) / key_block, of.dim, key_block}},
      Tensor{*values, 0, slot.dtype, {sequences, of.heads, of.capacity, of.value_dim}}));
}

template <class Place> void CpuDevice::put_rows(KvCache& cache, const Tensor& k, const Tensor& v, std::int64_t rows, const Place& place) {
  const std::int64_t heads = cache.heads, d = cache.dim, dv = cache.value_dim;
  assert(k.count() == rows * heads * d && v.count() == rows * heads * dv);
  const float* from_k = k.host<float>();
  const float* from_v = v.host<float>();
  const Stored as = stored_as(cache.keys.dtype);
  // A row of one head, as it is or made shorter on the way.
  const auto put = [&](const auto* key, const auto* value, std::int64_t head, std::int64_t position) {
    using T = std::remove_cvref_t<decltype(*key)>;
    put_key(key, d, position, cache.keys.host<T>() + head * key_positions(cache.capacity) * d);
    std::memcpy(cache.values.host<T>() + (head * cache.capacity + position) * dv, value, static_cast<std::size_t>(dv) * sizeof(T));
  };
  spread_rows(rows, heads * (d + dv), [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::uint16_t> half(static_cast<std::size_t>(as == Stored::f32 ? 0 : d + dv));
    for (std::int64_t row = begin; row < end; ++row) {
      const auto [slot, position] = place(row);
      assert(position < cache.capacity);
      for (std::int64_t h = 0; h < heads; ++h) {
        const float* key = from_k + (row * heads + h) * d;
        const float* value = from_v + (row * heads + h) * dv;
        if (as == Stored::f32) {
          put(key, value, slot * heads + h, position);
          continue;
        }
        kernels_.narrow(as, key, d, half.data());
        kernels_.narrow(as, value, dv, half.data() + d);
        put(half.data(), half.data() + d, slot * heads + h, position);
      }
    }
  });
}

void CpuDevice::append(KvCache& cache, const Tensor& k, const Tensor& v, const Batch& at) {
  put_rows(cache, k, v, at.tokens(), [&](std::int64_t row) {
    const auto t = static_cast<std::size_t>(row);
    return std::pair<std::int64_t, std::int64_t>(at.slots[static_cast<std::size_t>(at.sequence[t])], at.positions[t]);
  });
  cache.advance(at);
}

void CpuDevice::set(KvCache& cache, const Tensor& k, const Tensor& v, const Sequences& at) {
  const std::int64_t n = cache.capacity;
  put_rows(cache, k, v, at.batch() * n,
           [&](std::int64_t row) { return std::pair<std::int64_t, std::int64_t>(at.slots[static_cast<std::size_t>(row / n)], row % n); });
  for (const std::int32_t slot : at.slots) cache.held[static_cast<std::size_t>(slot)] = n;
}

void CpuDevice::attend(const Tensor& q, const KvCache& cache, const Batch& at, const AttendArgs& args, const Tensor& out) {
  assert(q.shape.rank() == 3 && q.shape[2] == cache.dim && q.shape[1] % cache.heads == 0);
  Keys keys;
  keys.keys = cache.keys.host<std::byte>();
  keys.values = cache.values.host<std::byte>();
  keys.stored = stored_as(cache.keys.dtype);
  keys.heads = cache.heads;
  keys.dv = cache.value_dim;
  keys.at = &at;
  keys.cache = &cache;
  const std::lock_guard guard(lock_);
  attend_over({q, out}, keys, args);
}

void CpuDevice::attend(const Tensor& q, const Tensor& k, const Tensor& v, const Batch& at, const AttendArgs& args, const Tensor& out) {
  assert(q.shape.rank() == 3 && k.shape.rank() == 3 && v.shape.rank() == 3 && q.shape[2] == k.shape[2]);
  const std::int64_t heads = k.shape[1], d = k.shape[2];
  assert(q.shape[1] % heads == 0 && v.shape[1] == heads);
  Keys keys;
  keys.values = v.host<std::byte>();
  keys.heads = heads;
  keys.dv = v.shape[2];
  keys.at = &at;
  std::int64_t floats = 0;
  for (std::size_t s = 0; s < at.slots.size(); ++s) {
    keys.segment_keys.push_back(floats);
    keys.segment_values.push_back(at.starts[s] * heads * keys.dv);
    keys.segment_length.push_back(at.starts[s + 1] - at.starts[s]);
    floats += key_positions(keys.segment_length.back()) * heads * d;
  }
  const std::lock_guard guard(lock_);
  float* packed = packed_.at_least(floats);
  keys.keys = reinterpret_cast<const std::byte*>(packed);
  const float* from = k.host<float>();
  spread_rows(at.tokens(), heads * d, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const auto s = static_cast<std::size_t>(at.sequence[static_cast<std::size_t>(t)]);
      const std::int64_t length = key_positions(at.starts[s + 1] - at.starts[s]);
      for (std::int64_t h = 0; h < heads; ++h)
        put_key(from + (t * heads + h) * d, d, t - at.starts[s], packed + keys.segment_keys[s] + h * length * d);
    }
  });
  attend_over({q, out}, keys, args);
}

void CpuDevice::attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttendArgs& args, const Tensor& out) {
  assert(q.shape.rank() >= 3 && k.shape.rank() == q.shape.rank() && v.shape.rank() == q.shape.rank());
  assert(q.shape[-1] == k.shape[-1]);
  const std::int64_t n = q.shape[-3], m = k.shape[-3], query_heads = q.shape[-2], heads = k.shape[-2], d = k.shape[-1], dv = v.shape[-1];
  assert(query_heads % heads == 0 && v.shape[-2] == heads && (args.mask == Mask::full || n == m));
  if (out.count() == 0) return;
  const std::int64_t sequences = q.count() / (n * query_heads * d);
  const auto at = Batch::make(std::vector<std::int64_t>(static_cast<std::size_t>(sequences), n), Outputs::all);
  if (!at) throw StepFailure{at.error()};

  // Keys that are not kept are left out of the packed ones, and so are their values.
  Keys keys;
  keys.heads = heads;
  keys.dv = dv;
  keys.at = &*at;
  keys.m = m;
  assert(!args.keep || args.keep.count() == sequences * m);
  const MapArgs::Input keep{args.keep.host<std::byte>(), args.keep.dtype, {}};
  std::vector<std::int64_t> from_row;                      // of each packed key: its row of k and v
  std::int64_t key_floats = 0, value_floats = 0;
  for (std::int64_t s = 0; s < sequences; ++s) {
    const auto begin = static_cast<std::int64_t>(from_row.size());
    for (std::int64_t j = 0; j < m; ++j) {
      keys.kept.push_back(static_cast<std::int64_t>(from_row.size()) - begin);
      if (!args.keep || detail::load(keep, s * m + j) != 0) from_row.push_back(s * m + j);
    }
    const std::int64_t length = static_cast<std::int64_t>(from_row.size()) - begin;
    keys.kept.push_back(length);
    keys.segment_keys.push_back(key_floats);
    keys.segment_values.push_back(args.keep ? value_floats : s * m * heads * dv);
    keys.segment_length.push_back(length);
    key_floats += key_positions(length) * heads * d;
    value_floats += length * heads * dv;
  }
  const std::lock_guard guard(lock_);
  float* packed = packed_.at_least(key_floats + (args.keep ? value_floats : 0));
  float* packed_values = packed + key_floats;
  keys.keys = reinterpret_cast<const std::byte*>(packed);
  keys.values = args.keep ? reinterpret_cast<const std::byte*>(packed_values) : v.host<std::byte>();
  const float* from_k = k.host<float>();
  const float* from_v = v.host<float>();
  spread_rows(static_cast<std::int64_t>(from_row.size()), heads * (d + dv), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = from_row[static_cast<std::size_t>(i)], s = row / m;
      const auto segment = static_cast<std::size_t>(s);
      const std::int64_t position = keys.kept[static_cast<std::size_t>(s * (m + 1) + row % m)];
      const std::int64_t length = key_positions(keys.segment_length[segment]);
      for (std::int64_t h = 0; h < heads; ++h)
        put_key(from_k + (row * heads + h) * d, d, position, packed + keys.segment_keys[segment] + h * length * d);
      if (args.keep)
        std::memcpy(packed_values + keys.segment_values[segment] + position * heads * dv, from_v + row * heads * dv,
                    static_cast<std::size_t>(heads * dv) * sizeof(float));
    }
  });
  attend_over({q.as({sequences * n, query_heads, d}), out}, keys, args);
}

void CpuDevice::attend_rows(const float* q, std::int64_t heads, const LatentCache& cache, const Batch& at, std::int64_t begin,
                            std::int64_t end, const AttendArgs& args, float* out) {
  Keys keys;
  keys.keys = cache.rows.host<std::byte>();
  keys.stored = stored_as(cache.rows.dtype);
  keys.heads = 1;
  keys.dv = cache.rank;
  keys.at = &at;
  keys.cache = &cache;
  keys.latent_row = cache.rank + cache.rope;
  attend_over({q, out, heads, keys.latent_row, begin, end}, keys, args);
}

void CpuDevice::attend_over(const Queries& q, const Keys& keys, const AttendArgs& args) {
  const Batch& at = *keys.at;
  const std::int64_t query_heads = q.heads, d = q.d, dv = keys.dv, group = query_heads / keys.heads;
  assert(q.begin >= 0 && q.end <= at.tokens());
  assert(args.window == 0 || args.mask == Mask::causal);
  const auto query = [&](std::int64_t t, std::int64_t h) { return q.from + ((t - q.begin) * query_heads + h) * d; };
  const auto result_of = [&](std::int64_t t, std::int64_t h) { return q.to + ((t - q.begin) * query_heads + h) * dv; };
  const float* sinks = args.sinks.host<float>();

  // Tokens of a sequence stay together as far as their heads fill a piece; the last ones, which see most, come first.
  const std::int64_t heads_of = std::min(group, item_rows), tokens_of = std::max<std::int64_t>(item_rows / heads_of, 1);
  std::vector<Item> items;
  std::int64_t work = 0, most_chunks = 0;
  for (std::int64_t s = at.batch() - 1; s >= 0; --s) {
    const std::int64_t begin = std::max<std::int64_t>(at.starts[static_cast<std::size_t>(s)], q.begin);
    const std::int64_t end = std::min<std::int64_t>(at.starts[static_cast<std::size_t>(s) + 1], q.end);
    if (begin >= end) continue;
    for (std::int64_t t0 = begin + (end - begin - 1) / tokens_of * tokens_of; t0 >= begin; t0 -= tokens_of) {
      Item item{t0, std::min(t0 + tokens_of, end), 0, 0, s, 0, 0, 0};
      for (std::int64_t t = item.t0; t < item.t1; ++t) {
        std::int64_t lo = 0, hi = 0;
        keys.seen(t, s, args, lo, hi);
        if (lo >= hi) continue;
        item.lo = item.lo < item.hi ? std::min(item.lo, lo) : lo;
        item.hi = std::max(item.hi, hi);
      }
      for (item.head = 0; item.head < keys.heads; ++item.head)
        for (std::int64_t h = 0; h < group; h += heads_of) {
          item.h0 = item.head * group + h;
          item.h1 = std::min(item.h0 + heads_of, (item.head + 1) * group);
          items.push_back(item);
          work += item.rows() * (item.hi - item.lo) * (d + dv);
          most_chunks = std::max(most_chunks, item.chunks());
        }
    }
  }
  if (items.empty()) return;

  // Scratch of a worker: scores, and two results of a piece (max, sum, acc of each row).
  const std::int64_t products = keys.latent_row > 0 ? (kernels_.product_scratch(item_rows, score_block, d) + 15) / 16 * 16 : 0;
  const std::int64_t result = item_rows * (dv + 2), scores = attend_max_rows * score_block + products;
  for (Scratch& s : scratch_) s.at_least(scores + 2 * result);
  const auto chunk_of = [&](const Item& item, std::int64_t chunk, float* own, float* into) {
    const float* rows[attend_max_rows];
    std::int64_t lo[attend_max_rows], hi[attend_max_rows];
    AttendChunk a;
    for (std::int64_t t = item.t0; t < item.t1; ++t)
      for (std::int64_t h = item.h0; h < item.h1; ++h, ++a.rows) {
        rows[a.rows] = query(t, h);
        keys.seen(t, item.segment, args, lo[a.rows], hi[a.rows]);
      }
    a.q = rows;
    a.lo = lo;
    a.hi = hi;
    a.keys = keys.keys_of(item.segment, item.head, d);
    a.key_stride = keys.latent_row;                        // an item's rows follow one another: all heads, or those of one token
    a.values = keys.values_of(item.segment, item.head);
    a.stored = keys.stored;
    a.value_stride = keys.value_stride();
    a.d = d;
    a.dv = dv;
    a.scale = args.scale;
    a.softcap = args.softcap;
    a.begin = chunk * attend_chunk;
    a.end = a.begin + attend_chunk;
    a.max = into;
    a.sum = into + item_rows;
    a.acc = into + 2 * item_rows;
    a.scratch = own;
    kernels_.attend(a);
  };
  const auto join = [&](const Item& item, float* into, const float* other) {
    for (std::int64_t r = 0; r < item.rows(); ++r)
      kernels_.attend_join(into + r, into + item_rows + r, into + 2 * item_rows + r * dv, other[r], other[item_rows + r],
                           other + 2 * item_rows + r * dv, dv);
  };
  const auto finish = [&](const Item& item, const float* into) {
    std::int64_t r = 0;
    for (std::int64_t t = item.t0; t < item.t1; ++t)
      for (std::int64_t h = item.h0; h < item.h1; ++h, ++r)
        kernels_.attend_finish(into[r], into[item_rows + r], into + 2 * item_rows + r * dv, sinks != nullptr ? sinks + h : nullptr, dv,
                               result_of(t, h));
  };
  const auto nothing = [&](const Item& item, float* into) {
    std::fill_n(into, item.rows(), -__builtin_inff());
    std::fill_n(into + item_rows, item.rows(), 0.0F);
  };

  const auto pieces = static_cast<std::int64_t>(items.size());
  if (pieces >= 4 * team_.size() || most_chunks <= 1 || team_.size() == 1) {
    spread(pieces, 1, work, [&](std::int64_t begin, std::int64_t end, int worker) {
      float* own = scratch_[static_cast<std::size_t>(worker)].at_least(scores + 2 * result);
      float* into = own + scores;
      float* other = into + result;
      for (std::int64_t i = begin; i < end; ++i) {
        const Item& item = items[static_cast<std::size_t>(i)];
        nothing(item, into);
        for (std::int64_t c = 0; c < item.chunks(); ++c) {
          chunk_of(item, item.first_chunk() + c, own, c == 0 ? into : other);
          if (c > 0) join(item, into, other);
        }
        finish(item, into);
      }
    });
    return;
  }
  // Few rows and long sequences: every chunk is a piece of its own, and the results are joined in the same order.
  struct Part {
    std::int64_t item, chunk;
  };
  std::vector<Part> parts;
  for (std::int64_t i = 0; i < pieces; ++i)
    for (std::int64_t c = 0; c < items[static_cast<std::size_t>(i)].chunks(); ++c) parts.push_back({i, c});
  float* results = partials_.at_least(static_cast<std::int64_t>(parts.size()) * result);
  spread(static_cast<std::int64_t>(parts.size()), 1, work, [&](std::int64_t begin, std::int64_t end, int worker) {
    float* own = scratch_[static_cast<std::size_t>(worker)].at_least(scores + 2 * result);
    for (std::int64_t p = begin; p < end; ++p) {
      const Part part = parts[static_cast<std::size_t>(p)];
      const Item& item = items[static_cast<std::size_t>(part.item)];
      chunk_of(item, item.first_chunk() + part.chunk, own, results + p * result);
    }
  });
  std::size_t p = 0;
  for (std::int64_t i = 0; i < pieces; ++i) {
    const Item& item = items[static_cast<std::size_t>(i)];
    float* into = scratch_[0].at_least(scores + 2 * result) + scores;
    nothing(item, into);
    for (; p < parts.size() && parts[p].item == i; ++p) join(item, into, results + static_cast<std::int64_t>(p) * result);
    finish(item, into);
  }
}

}  // namespace modelc::cpu

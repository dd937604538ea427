// Attention over latents, absorbed: each head's queries go through its own rows of `up` into the latents' space, where one row of the
// cache is key and value of all heads; the weighted sums of latents go through the rows for values. Nothing is made of what the cache
// holds, however long it is. The rows of `up` are multiplied as they are stored, with f32, in mode `fast` too: what one number of a
// row is multiplied with differs by row there.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "runtime/cpu/cpu_device.h"
#include "runtime/kv_cache/kv_cache.h"

namespace modelc::cpu {
namespace {

constexpr std::int64_t query_floats = 4 << 20;             // of the queries and sums that wait at a time: 16 MB
constexpr std::int64_t head_tokens = 64;                   // of one head, in one piece

// f(block, first row of it, rows, how many of [from, from + n) stand before) for the parts of these rows, in their order.
template <class F> void each_part(const Matrix& w, std::int64_t from, std::int64_t n, F&& f) {
  for (const RowBlock& b : w.blocks) {
    const std::int64_t begin = std::max(from, b.first), end = std::min(from + n, b.first + b.rows);
    if (begin < end) f(b, begin - b.first, end - begin, begin - from);
  }
}

}  // namespace

void CpuDevice::append(LatentCache& cache, const Tensor& latent, const Tensor& key, const Batch& at) {
  const std::int64_t rank = cache.rank, rope = cache.rope, row = rank + rope, tokens = at.tokens();
  assert(latent.count() == tokens * rank && key.count() == tokens * rope);
  const float* from[] = {latent.host<float>(), key.host<float>()};
  const Stored as = stored_as(cache.rows.dtype);
  spread_rows(tokens, row, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const auto i = static_cast<std::size_t>(t);
      const std::int64_t slot = at.slots[static_cast<std::size_t>(at.sequence[i])], position = at.positions[i];
      assert(position < cache.capacity);
      const std::int64_t place = (slot * cache.capacity + position) * row;
      if (as == Stored::f32) {
        float* to = cache.rows.host<float>() + place;
        std::memcpy(to, from[0] + t * rank, static_cast<std::size_t>(rank) * sizeof(float));
        std::memcpy(to + rank, from[1] + t * rope, static_cast<std::size_t>(rope) * sizeof(float));
      } else {
        std::uint16_t* to = cache.rows.host<std::uint16_t>() + place;
        kernels_.narrow(as, from[0] + t * rank, rank, to);
        kernels_.narrow(as, from[1] + t * rope, rope, to + rank);
      }
    }
  });
  cache.advance(at);
}

void CpuDevice::attend_latent(const LatentArgs& args, const LatentCache& cache, const Batch& at, const Tensor& out) {
  const Matrix& up = *args.up;
  const std::int64_t heads = args.q_nope.shape[-2], n = args.q_nope.shape[-1], v = out.shape[-1], tokens = at.tokens();
  const std::int64_t rank = cache.rank, rope = cache.rope, row = rank + rope;
  assert(up.columns == rank && up.rows() == heads * (n + v) && n >= 1);
  assert(args.q_nope.count() == tokens * heads * n && args.q_rope.count() == tokens * heads * rope);
  assert(out.count() == tokens * heads * v);
  const std::int64_t some = std::min(std::max<std::int64_t>(query_floats / (heads * (row + rank)), 1), tokens);
  const std::lock_guard guard(lock_);
  float* q = packed_.at_least(some * heads * (row + rank));
  float* sums = q + some * heads * row;
  const std::int64_t scratch = std::max(kernels_.combine_scratch(), kernels_.product_scratch(std::min(some, head_tokens), v, rank));
  for (std::int64_t first = 0; first < tokens; first += some) {
    const std::int64_t last = std::min(first + some, tokens), pieces = (last - first + head_tokens - 1) / head_tokens;
    // f(token, tokens, head, scratch), by head: its rows of `up` are decoded for many tokens.
    const auto by_head = [&](std::int64_t work, auto&& f) {
      for (Scratch& s : scratch_) s.at_least(scratch);
      spread(heads * pieces, 1, work, [&](std::int64_t begin, std::int64_t end, int worker) {
        float* own = scratch_[static_cast<std::size_t>(worker)].at_least(scratch);
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t t = first + i % pieces * head_tokens;
          f(t, std::min(head_tokens, last - t), i / pieces, own);
        }
      });
    };
    by_head((last - first) * heads * n * rank, [&](std::int64_t t, std::int64_t m, std::int64_t h, float* own) {
      float* to = q + ((t - first) * heads + h) * row;
      each_part(up, h * (n + v), n, [&](const RowBlock& b, std::int64_t begin, std::int64_t rows, std::int64_t before) {
        CombineArgs c;
        c.x = args.q_nope.host<float>() + (t * heads + h) * n + before;
        c.x_stride = heads * n;
        c.w = b.data.host<std::byte>() + begin * b.row_bytes;
        c.w_stride = b.row_bytes;
        c.encoding = *stored(b.encoding);
        c.m = m;
        c.n = rows;
        c.k = rank;
        c.add = before > 0;
        c.out = to;
        c.out_stride = heads * row;
        c.scratch = own;
        kernels_.combine(c);
      });
      for (std::int64_t i = 0; i < m; ++i)
        std::memcpy(to + i * heads * row + rank, args.q_rope.host<float>() + ((t + i) * heads + h) * rope,
                    static_cast<std::size_t>(rope) * sizeof(float));
    });
    attend_rows(q, heads, cache, at, first, last, {.mask = args.mask, .scale = args.scale}, sums);
    by_head((last - first) * heads * v * rank, [&](std::int64_t t, std::int64_t m, std::int64_t h, float* own) {
      each_part(up, h * (n + v) + n, v, [&](const RowBlock& b, std::int64_t begin, std::int64_t rows, std::int64_t before) {
        ProductArgs p;
        p.x = sums + ((t - first) * heads + h) * rank;
        p.x_stride = heads * rank;
        p.w = b.data.host<std::byte>() + begin * b.row_bytes;
        p.w_stride = b.row_bytes;
        p.encoding = *stored(b.encoding);
        p.m = m;
        p.n = rows;
        p.k = rank;
        p.out = out.host<float>() + (t * heads + h) * v + before;
        p.out_stride = heads * v;
        p.scratch = own;
        kernels_.product(p);
      });
    });
  }
}

}  // namespace modelc::cpu

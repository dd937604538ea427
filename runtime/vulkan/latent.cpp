// Attention over latents, absorbed as on the CPU (runtime/cpu/latent.cpp): queries into the latents' space, attention over rows that are
// key and value of all heads, sums of latents into values.
#include <algorithm>
#include <cassert>

#include "runtime/base/strings.h"
#include "runtime/kv_cache/kv_cache.h"
#include "runtime/vulkan/vulkan_device.h"

namespace modelc::vulkan {
namespace {

constexpr std::int64_t query_bytes = std::int64_t{64} << 20;           // of the queries that wait at a time

// Tokens for which a row of `up` is decoded once: few numbers, so that few pipelines are made.
std::uint32_t tile_tokens(std::int64_t tokens) { return tokens == 1 ? 1 : tokens <= 4 ? 4 : 8; }

}  // namespace

void VulkanDevice::append(LatentCache& cache, const Tensor& latent, const Tensor& key, const Batch& at) {
  assert(latent.count() == at.tokens() * cache.rank && key.count() == at.tokens() * cache.rope);
  append_to(latent, cache.rows, {1, cache.rank, cache.capacity, cache.rank + cache.rope, 0});
  append_to(key, cache.rows, {1, cache.rope, cache.capacity, cache.rank + cache.rope, cache.rank});
  cache.advance(at);
}

void VulkanDevice::attend_latent(const LatentArgs& args, const LatentCache& cache, const Batch& at, const Tensor& out) {
  const std::int64_t tokens = at.tokens(), heads = args.q_nope.shape[-2], n = args.q_nope.shape[-1], v = out.shape[-1];
  const std::int64_t row = cache.rank + cache.rope;
  assert(args.up->columns == cache.rank && args.up->rows() == heads * (n + v));
  assert(args.q_rope.count() == tokens * heads * cache.rope && out.count() == tokens * heads * v);
  AttendArgs with{.mask = args.mask, .scale = args.scale};
  if (!held_of(cache, at, with.keep)) return;
  const std::int64_t slots = cache.rows.shape[0], slot_bytes = cache.capacity * row * 4, token_bytes = heads * row * 4;
  const auto shown = split_alike(slots, slot_bytes, c_->plan), fit = split_alike(tokens, token_bytes, c_->plan);
  if (shown.empty()) return not_seen(slot_bytes, "latents of one sequence", "a state of smaller capacity");
  if (fit.empty()) return not_seen(token_bytes, "a token's queries over latents", "fewer heads");
  const std::int64_t some = std::min(fit.front().rows, std::max<std::int64_t>(query_bytes / token_bytes, 1));
  for (std::int64_t first = 0; first < tokens; first += some) {
    const std::int64_t m = std::min(some, tokens - first);
    const auto part = [&](const Tensor& t) { return part_of(t, tokens, first, m); };
    const Tensor q = scratch(16, DType::f32, {m, heads, row}), sums = scratch(17, DType::f32, {m, heads, cache.rank});
    if (!q || !sums) return;
    latent_product(part(args.q_nope), *args.up, {heads, n, v, m}, row, q);
    copy_strided(Strided(part(args.q_rope).as({m, heads, cache.rope})), Strided(q).slice(2, cache.rank, row));
    Keys keys{3, {}, {}, batch_.slots, 1, cache.rank, cache.capacity, 0};
    keys.sequences = at.batch();
    keys.longest = *std::max_element(at.lengths.begin(), at.lengths.end());
    for (const RowPiece& piece : shown) {
      keys.k = keys.v = part_of(cache.rows, slots, piece.first, piece.rows);
      keys.first = piece.first;
      keys.held = piece.rows;
      attend_over(q, keys, with, first, sums);
    }
    latent_product(sums, *args.up, {heads, n, v, m}, 0, part(out));
  }
}

// Into the latents' space, where `width` is said: the distance between heads there; else from it.
void VulkanDevice::latent_product(const Tensor& x, const Matrix& up, const Heads& of, std::int64_t width, const Tensor& out) {
  const std::int64_t rank = up.columns, of_head = of.n + of.v, units = (rank + 7) / 8;
  const bool query = width > 0;
  for (const RowBlock& b : up.blocks) {
    const std::string name_of = (query ? "latent_query_" : "latent_value_") + std::string(name(b.encoding));
    const bool lanes = !query && has(name_of + "_subgroup");
    const auto pieces = split_rows(b.data.offset, b.rows, b.row_bytes, c_->plan);
    if (pieces.empty() && b.rows > 0) return not_seen(b.row_bytes, "a row of `up`", "a smaller rank");
    for (const RowPiece& piece : pieces) {
      const std::int64_t begin = b.first + piece.first, end = begin + piece.rows;
      const std::int64_t first_head = begin / of_head, end_head = (end + of_head - 1) / of_head, here = end_head - first_head;
      Tensor data = b.data;
      data.offset += piece.first * b.row_bytes;
      Dispatch d = shader(name_of + (lanes ? "_subgroup" : ""));
      d.in_rows(of.tokens).bind(data, piece.rows * b.row_bytes, true, false).read(x).of_rows();
      if (query) d.update(out).of_rows();                  // a head's rows may begin in the block before
      else d.write(out).of_rows();
      const std::uint32_t tile = tile_tokens(of.tokens);
      d.constant(tile);
      d.push_rows().push(of.heads).push(of.n).push(of_head).push(rank);
      if (query) d.push(width);
      d.push(b.row_bytes).push(begin).push(piece.rows).push(first_head).push(end_head);
      if (query) {
        const std::int64_t size = c_->plan.elements_group, across = (here * units + size - 1) / size;
        d.push(units).push(across).spread(of.tokens, tile, across, c_->plan.elements_group, size * 8 * of.n * tile);
        d.loops(of.n * (1 + tile));
      } else {
        const std::uint32_t size = lanes ? c_->plan.product_group : c_->plan.row_group;
        const std::int64_t rows = lanes ? size / c_->plan.subgroup : 1, across = (here * of.v + rows - 1) / rows;
        d.subgroup = lanes ? c_->plan.subgroup : 0;
        d.push(across).spread(of.tokens, tile, across, size, rows * rank * tile);
        d.loops((1 + tile) * (rank / (8 * (lanes ? c_->plan.subgroup : size)) + 1));
      }
      run(d);
    }
  }
}

}  // namespace modelc::vulkan

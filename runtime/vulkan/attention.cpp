// Attention and its cache: keys and values lie [slots, heads, capacity, d].
#include <cassert>

#include "runtime/base/strings.h"
#include "runtime/device/step.h"
#include "runtime/kv_cache/kv_cache.h"
#include "runtime/vulkan/vulkan_device.h"

namespace modelc::vulkan {
namespace {

constexpr std::int64_t channels_of_one = 8;                // of v, that an invocation of attend.comp sums

}  // namespace

void VulkanDevice::append_to(const Tensor& rows, const Tensor& cache, std::int64_t heads, std::int64_t d, std::int64_t capacity) {
  const std::int64_t tokens = batch_.positions.count();
  for (const RowPiece& piece : split_rows(cache.offset, cache.shape[0], heads * capacity * d * 4, c_->plan)) {
    Tensor part = cache;
    part.offset += piece.first * heads * capacity * d * 4;
    run(shader("append")
            .read(rows)
            .bind(part, piece.rows * heads * capacity * d * 4, false, true)
            .read(batch_.positions)
            .read(batch_.sequence)
            .read(batch_.slots)
            .push(tokens)
            .push(heads)
            .push(d)
            .push(capacity)
            .push(piece.first)
            .push(piece.rows)
            .each(tokens * heads * d, c_->plan.elements_group));
  }
}

void VulkanDevice::append(KvCache& cache, const Tensor& k, const Tensor& v, const Batch& at) {
  assert(k.count() == at.tokens() * cache.heads * cache.dim && v.count() == at.tokens() * cache.heads * cache.value_dim);
  append_to(k, cache.keys, cache.heads, cache.dim, cache.capacity);
  append_to(v, cache.values, cache.heads, cache.value_dim, cache.capacity);
  for (std::size_t i = 0; i < at.slots.size(); ++i)
    cache.held[static_cast<std::size_t>(at.slots[i])] = at.lengths[static_cast<std::size_t>(at.starts[i])];
}

void VulkanDevice::attend(const Tensor& q, const KvCache& cache, const Batch& at, const AttendArgs& args, const Tensor& out) {
  assert(q.shape.rank() == 3 && q.shape[2] == cache.dim && q.shape[1] % cache.heads == 0);
  // The shader goes by the lengths that this call leads to, unless a cache has not been given this call's keys.
  Tensor held;
  for (std::size_t i = 0; i < at.slots.size() && !held; ++i) {
    if (cache.held[static_cast<std::size_t>(at.slots[i])] >= at.lengths[static_cast<std::size_t>(at.starts[i])]) continue;
    std::vector<std::int32_t> all;
    for (const std::int32_t slot : at.slots) all.push_back(static_cast<std::int32_t>(cache.held[static_cast<std::size_t>(slot)]));
    held = scratch(14, DType::i32, {static_cast<std::int64_t>(all.size())});
    if (!held) return;
    recorder_->upload(std::as_bytes(std::span(all)), held);
  }
  AttendArgs with = args;
  with.keep = held;
  attend_over(q, {0, cache.keys, cache.values, batch_.slots, cache.heads, cache.value_dim, cache.capacity, 0, cache.keys.shape[0]}, with,
              out);
}

void VulkanDevice::attend(const Tensor& q, const Tensor& k, const Tensor& v, const Batch&, const AttendArgs& args, const Tensor& out) {
  assert(q.shape.rank() == 3 && k.shape.rank() == 3 && v.shape.rank() == 3 && q.shape[2] == k.shape[2]);
  attend_over(q, {1, k, v, batch_.starts, k.shape[1], v.shape[2], 0, 0, 1}, args, out);
}

void VulkanDevice::attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttendArgs& args, const Tensor& out) {
  assert(q.shape.rank() >= 3 && k.shape.rank() == q.shape.rank() && v.shape.rank() == q.shape.rank());
  if (out.count() == 0) return;
  const std::int64_t n = q.shape[-3], m = k.shape[-3], query_heads = q.shape[-2], d = q.shape[-1];
  Tensor rows = q;
  rows.shape = {q.count() / (query_heads * d), query_heads, d};
  attend_over(rows, {2, k, v, {}, k.shape[-2], v.shape[-1], m, n, 1}, args, out);
}

void VulkanDevice::attend_over(const Tensor& q, const Keys& keys, const AttendArgs& args, const Tensor& out) {
  const std::int64_t rows = q.shape[0], query_heads = q.shape[1], d = q.shape[2];
  const std::uint32_t size = 64;
  if (keys.dv > channels_of_one * size)
    return not_there("attention with " + std::to_string(keys.dv) + " channels of a value (it has at most " +
                     std::to_string(channels_of_one * size) + ")");
  const std::int64_t key_bytes = keys.layout == 0 ? keys.heads * keys.capacity * d * 4 : keys.k.size();
  const std::int64_t value_bytes = keys.layout == 0 ? keys.heads * keys.capacity * keys.dv * 4 : keys.v.size();
  const std::int64_t larger = std::max(key_bytes, value_bytes);
  // Slots of the cache, as many at a time as one binding shows.
  const auto pieces = split_rows(0, keys.slots, larger + c_->plan.alignment, c_->plan);
  if (pieces.empty())
    return recorder_->fail(
        Error{"tensor-size",
              "attention over " + grouped(larger) + " bytes of one sequence, and a shader sees " + grouped(c_->plan.binding_bytes),
              {},
              "a state of smaller capacity"});
  for (const RowPiece& piece : pieces) {
    Tensor k = keys.k, v = keys.v;
    k.offset += piece.first * key_bytes;
    v.offset += piece.first * value_bytes;
    Dispatch dispatch = shader("attend");
    dispatch.read(q).bind(k, piece.rows * key_bytes, true, false).bind(v, piece.rows * value_bytes, true, false).write(out);
    if (keys.layout == 2) dispatch.none().none().none();
    else dispatch.read(batch_.positions).read(batch_.lengths).read(batch_.sequence);
    dispatch.read(keys.places).read(args.sinks).read(args.keep);
    dispatch.constant(keys.layout)
        .constant(args.mask == Mask::causal ? 1 : 0)
        .constant(args.softcap != 0 ? 1 : 0)
        .constant(args.sinks ? 1 : 0)
        .constant(args.keep ? type_number(args.keep.dtype) : 3);
    dispatch.push(rows)
        .push(query_heads)
        .push(keys.heads)
        .push(d)
        .push(keys.dv)
        .push(keys.capacity)
        .push(keys.n)
        .push(args.window)
        .push(piece.first)
        .push(piece.rows)
        .push_real(args.scale)
        .push_real(args.softcap);
    run(dispatch.group_each(rows * query_heads, size, 4096 * (d + keys.dv)));
  }
}

}  // namespace modelc::vulkan

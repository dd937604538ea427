// Attention and its cache: keys and values lie [slots, heads, capacity, d].
#include <algorithm>
#include <cassert>

#include "runtime/base/strings.h"
#include "runtime/device/step.h"
#include "runtime/kv_cache/kv_cache.h"
#include "runtime/vulkan/cut.h"
#include "runtime/vulkan/vulkan_device.h"

namespace modelc::vulkan {

void VulkanDevice::append_to(const Tensor& rows, const Tensor& cache, const CacheRows& of) {
  const std::int64_t tokens = batch_.positions.count(), bytes = of.capacity * of.width * 4;
  // Of each slot, head by head, as many as one binding shows.
  const auto pieces = split_rows(cache.offset, cache.shape[0] * of.heads, bytes, c_->plan);
  if (pieces.empty() && bytes > 0) return not_seen(bytes, "what a cache holds for one head", "a state of smaller capacity");
  for (const RowPiece& piece : pieces) {
    Tensor part = cache;
    part.offset += piece.first * bytes;
    run(shader("append")
            .in_rows(tokens)
            .read(rows)
            .of_rows()
            .bind(part, piece.rows * bytes, false, true)
            .read(batch_.positions)
            .of_rows()
            .read(batch_.sequence)
            .of_rows()
            .read(batch_.slots)
            .push_rows()
            .push(of.heads)
            .push(of.d)
            .push(of.capacity)
            .push(piece.first)
            .push(piece.rows)
            .push(of.width)
            .push(of.column)
            .each(tokens * of.heads * of.d, c_->plan.elements_group));
  }
}

void VulkanDevice::append(KvCache& cache, const Tensor& k, const Tensor& v, const Batch& at) {
  assert(k.count() == at.tokens() * cache.heads * cache.dim && v.count() == at.tokens() * cache.heads * cache.value_dim);
  append_to(k, cache.keys, {cache.heads, cache.dim, cache.capacity, cache.dim, 0});
  append_to(v, cache.values, {cache.heads, cache.value_dim, cache.capacity, cache.value_dim, 0});
  cache.advance(at);
}

// Rows of all heads become each head's rows.
void VulkanDevice::set(KvCache& cache, const Tensor& k, const Tensor& v, const Sequences& at) {
  const auto put = [&](const Tensor& rows, const Tensor& all, std::int64_t d) {
    assert(rows.count() == at.batch() * cache.capacity * cache.heads * d);
    Tensor from = rows, to = all;
    from.shape = {cache.capacity, cache.heads, d};
    to.shape = {cache.heads, cache.capacity, d};
    for (const std::int32_t slot : at.slots) {
      to.offset = all.offset + slot * to.size();
      copy_strided(Strided(from).transpose(0, 1), Strided(to));
      from.offset += from.size();
    }
  };
  put(k, cache.keys, cache.dim);
  put(v, cache.values, cache.value_dim);
  for (const std::int32_t slot : at.slots) cache.held[static_cast<std::size_t>(slot)] = cache.capacity;
}

// The shader goes by the lengths that this call leads to, unless a cache has not been given this call's rows: then by `held`.
bool VulkanDevice::held_of(const RowCache& cache, const Batch& at, Tensor& held) {
  for (std::size_t i = 0; i < at.slots.size() && !held && !cache.whole; ++i) {
    if (cache.held[static_cast<std::size_t>(at.slots[i])] >= at.lengths[static_cast<std::size_t>(at.starts[i])]) continue;
    std::vector<std::int32_t> all;
    for (const std::int32_t slot : at.slots) all.push_back(static_cast<std::int32_t>(cache.held[static_cast<std::size_t>(slot)]));
    held = scratch(14, DType::i32, {static_cast<std::int64_t>(all.size())});
    if (!held) return false;
    recorder_->upload(std::as_bytes(std::span(all)), held);
  }
  return true;
}

void VulkanDevice::attend(const Tensor& q, const KvCache& cache, const Batch& at, const AttendArgs& args, const Tensor& out) {
  assert(q.shape.rank() == 3 && q.shape[2] == cache.dim && q.shape[1] % cache.heads == 0);
  AttendArgs with = args;
  with.keep = {};
  if (!held_of(cache, at, with.keep)) return;
  const std::int64_t key_bytes = cache.capacity * cache.dim * 4, value_bytes = cache.capacity * cache.value_dim * 4;
  Keys keys{0, cache.keys, cache.values, batch_.slots, cache.heads, cache.value_dim, cache.capacity, 0};
  keys.sequences = at.batch();
  keys.longest = cache.whole ? cache.capacity : *std::max_element(at.lengths.begin(), at.lengths.end());
  if (cache.whole) keys.n = cache.capacity;
  // Of each slot, head by head, as many as one binding shows of the larger ones.
  const std::int64_t larger = std::max(key_bytes, value_bytes), all = cache.keys.shape[0] * cache.heads;
  const auto pieces = split_alike(all, larger, c_->plan);
  if (pieces.empty()) return not_seen(larger, "attention's keys or values of one head", "a state of smaller capacity");
  for (const RowPiece& piece : pieces) {
    keys.k = part_of(cache.keys, all, piece.first, piece.rows);
    keys.v = part_of(cache.values, all, piece.first, piece.rows);
    keys.first = piece.first;
    keys.held = piece.rows;
    attend_over(q, keys, with, 0, out);
  }
}

void VulkanDevice::attend(const Tensor& q, const Tensor& k, const Tensor& v, const Batch& at, const AttendArgs& args, const Tensor& out) {
  assert(q.shape.rank() == 3 && k.shape.rank() == 3 && v.shape.rank() == 3 && q.shape[2] == k.shape[2]);
  const std::int64_t all = k.shape[0], each = std::max(k.size(), v.size()) / std::max<std::int64_t>(all, 1);
  Keys keys{1, k, v, batch_.starts, k.shape[1], v.shape[2], 0, 0};
  // Whole sequences, as many as one binding shows of their keys and of their values.
  const std::int64_t room = static_cast<std::int64_t>(c_->plan.binding_bytes) - static_cast<std::int64_t>(c_->plan.alignment) - 4;
  for (std::size_t s = 0; s + 1 < at.starts.size();) {
    const std::int64_t first = at.starts[s];
    std::int64_t end = at.starts[s + 1];
    keys.longest = end - first;
    keys.sequences = 1;
    if ((end - first) * each > room)
      return not_seen((end - first) * each, "attention's keys or values of one sequence", "fewer tokens in a call");
    for (++s; s + 1 < at.starts.size() && (at.starts[s + 1] - first) * each <= room; ++s, ++keys.sequences) {
      keys.longest = std::max<std::int64_t>(keys.longest, at.starts[s + 1] - end);
      end = at.starts[s + 1];
    }
    keys.k = part_of(k, all, first, end - first);
    keys.v = part_of(v, all, first, end - first);
    keys.first = first;
    Tensor rows = part_of(q, all, first, end - first);
    rows.shape = {end - first, q.shape[1], q.shape[2]};
    attend_over(rows, keys, args, first, part_of(out, all, first, end - first));
  }
}

void VulkanDevice::attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttendArgs& args, const Tensor& out) {
  assert(q.shape.rank() >= 3 && k.shape.rank() == q.shape.rank() && v.shape.rank() == q.shape.rank());
  if (out.count() == 0) return;
  const std::int64_t n = q.shape[-3], m = k.shape[-3], query_heads = q.shape[-2], d = q.shape[-1];
  const std::int64_t sequences = q.count() / (n * query_heads * d), larger = std::max(k.size(), v.size()) / sequences;
  Keys keys{2, k, v, {}, k.shape[-2], v.shape[-1], m, n};
  keys.longest = m;
  const auto pieces = split_alike(sequences, larger, c_->plan);
  if (pieces.empty()) return not_seen(larger, "attention's keys or values of one sequence", "shorter sequences");
  for (const RowPiece& piece : pieces) {
    const auto part = [&](const Tensor& t) { return part_of(t, sequences, piece.first, piece.rows); };
    Tensor rows = part(q);
    rows.shape = {piece.rows * n, query_heads, d};
    keys.k = part(k);
    keys.v = part(v);
    keys.sequences = piece.rows;
    AttendArgs with = args;
    if (args.keep) with.keep = part(args.keep);
    attend_over(rows, keys, with, 0, part(out));
  }
}

void VulkanDevice::not_seen(std::int64_t bytes, const std::string& of, const std::string& help) {
  recorder_->fail(Error{"tensor-size",
                        of + " are " + grouped(bytes) + " bytes, and a shader of " + c_->description.name + " sees " +
                            grouped(c_->plan.binding_bytes) + " of one tensor",
                        {},
                        help + ", or another device"});
}

void VulkanDevice::attend_over(const Tensor& q, const Keys& keys, const AttendArgs& args, std::int64_t first_row, const Tensor& out) {
  const std::int64_t rows = q.shape[0], query_heads = q.shape[1], d = q.shape[2];
  if (out.count() == 0) return;
  const AttendPlan p = plan_attend({rows, keys.sequences, query_heads, keys.heads, d, keys.dv, keys.longest}, c_->plan);
  const std::uint32_t queries = p.tokens * p.heads;
  Tensor to = out;
  if (p.parts > 1) {
    to = scratch(13, DType::f32, {rows, query_heads, p.parts, keys.dv + 2});
    if (!to) return;
  }
  Dispatch dispatch = shader(p.parts > 1 ? "attend_parts" : "attend");
  dispatch.in_rows(rows).read(q).of_rows().read(keys.k).read(keys.v).write(to).of_rows();
  if (keys.layout == 2) dispatch.none().none().none();
  else dispatch.read(batch_.positions).read(batch_.lengths).read(batch_.sequence);
  dispatch.read(keys.places).read(args.sinks).read(args.keep);
  dispatch.constant(keys.layout)
      .constant(args.mask == Mask::causal ? 1 : 0)
      .constant(args.softcap != 0 ? 1 : 0)
      .constant(args.sinks ? 1 : 0)
      .constant(args.keep ? type_number(args.keep.dtype) : 3)
      .constant(queries)
      .constant(p.heads)
      .constant(p.channels)
      .constant(p.shared_q ? queries * static_cast<std::uint32_t>(d) : 1)
      .constant(p.q_groups);
  dispatch.push_rows()
      .push(query_heads)
      .push(keys.heads)
      .push(d)
      .push(keys.dv)
      .push(keys.capacity)
      .push(keys.n)
      .push(args.window)
      .push(keys.first)
      .push(keys.held)
      .push_real(args.scale)
      .push_real(args.softcap)
      .push_first(first_row)
      .push(p.value_pieces)
      .push(p.parts)
      .push(p.part_keys);
  const std::int64_t across = keys.heads * p.head_pieces * p.value_pieces * p.parts;
  const std::int64_t keys_of_group = (keys.longest + p.parts - 1) / p.parts;
  run(dispatch.spread(rows, p.tokens, across, c_->plan.attend_group, queries * keys_of_group * (d + keys.dv)));
  if (p.parts == 1) return;
  run(shader("merge")
          .in_rows(rows)
          .read(to)
          .of_rows()
          .write(out)
          .of_rows()
          .read(args.sinks)
          .constant(args.sinks ? 1 : 0)
          .push_rows(query_heads)
          .push(query_heads)
          .push(p.parts)
          .push(keys.dv)
          .each(rows * query_heads * keys.dv, c_->plan.elements_group));
}

}  // namespace modelc::vulkan

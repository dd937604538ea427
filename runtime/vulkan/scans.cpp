// What goes token by token with a state for each sequence. A batch that is cut into parts of its tokens is as so many calls: the state
// in memory stands between them.
#include <algorithm>
#include <cassert>

#include "runtime/device/step.h"
#include "runtime/vulkan/cut.h"
#include "runtime/vulkan/vulkan_device.h"

namespace modelc::vulkan {
namespace {

// Tokens of the longest sequence.
std::int64_t longest(const Batch& at) {
  std::int64_t n = 0;
  for (std::size_t s = 0; s + 1 < at.starts.size(); ++s) n = std::max<std::int64_t>(n, at.starts[s + 1] - at.starts[s]);
  return n;
}

}  // namespace

void VulkanDevice::causal_conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& ring, const Batch& at,
                                 const Tensor& out) {
  assert(x.shape.rank() == 2 && w.shape.rank() == 2 && w.shape[0] == x.shape[1] && x.shape[0] == at.tokens());
  const std::int64_t tokens = x.shape[0], channels = x.shape[1], before = w.shape[1] - 1, row = channels * 4;
  const std::int64_t slots = ring.shape[0];
  assert(before >= 0 && ring.count() == slots * before * channels && out.count() == x.count() && (!bias || bias.count() == channels));
  if (x.count() == 0) return;
  const bool whole = is_seen(x.offset, x.size(), c_->plan) && is_seen(out.offset, out.size(), c_->plan);
  const auto parts = whole ? std::vector<RowPiece>{{0, tokens}} : split_alike(tokens, row, c_->plan);
  if (parts.empty()) return not_seen(row, "a convolution's channels of one token", "fewer channels");
  const auto pieces = split_rows(ring.offset, slots, before * row, c_->plan);
  if (pieces.empty()) return not_seen(before * row, "a convolution's tokens before the call", "a shorter kernel");
  for (const RowPiece& piece : pieces) {
    Tensor held = ring;
    held.offset += piece.first * before * row;
    held.shape = {piece.rows, before, channels};
    for (const RowPiece& part : parts) {
      const auto rows = [&](const Tensor& t) { return Tensor{t.buffer, t.offset + part.first * row, DType::f32, {part.rows, channels}}; };
      const auto say = [&](Dispatch& d) {
        d.push(channels).push(before).push(part.rows).push(part.first).push(at.batch()).push(piece.first).push(piece.rows);
      };
      Dispatch d = shader("causal_conv");
      d.read(rows(x)).read(held).read(batch_.slots).read(batch_.starts).read(batch_.sequence).read(w).read(bias).write(rows(out));
      d.constant(bias ? 1 : 0);
      say(d);
      d.each(part.rows * channels, c_->plan.elements_group).loops(before + 1);
      d.work *= static_cast<std::uint64_t>(before + 1);
      run(d);
      if (before == 0) continue;
      Dispatch kept = shader("causal_ring");
      kept.read(rows(x)).update(held).read(batch_.slots).read(batch_.starts);
      say(kept);
      run(kept.each(at.batch() * channels, c_->plan.elements_group).loops(before));
    }
  }
}

void VulkanDevice::scan_over(const std::string& name, Dispatch d, const ScanShape& shape, const Tensor& state, const Batch& at) {
  const std::int64_t tokens = at.tokens(), slots = state.shape[0], pair_bytes = shape.columns * shape.n * 4;
  assert(state.dtype == DType::f32 && state.count() * 4 == slots * shape.heads * pair_bytes && shape.sequences == at.batch());
  const ScanPlan p = plan_scan(shape, c_->plan);
  d.shader = shader(p.subgroups ? name + "_subgroup" : name).shader;
  d.constants.insert(d.constants.begin(), {p.lanes, p.held, p.columns});
  d.subgroup = p.subgroups ? p.lanes : 0;
  // A token's rounds, and those of reading the state and writing it.
  const std::int64_t most = std::max<std::int64_t>(std::int64_t{c_->plan.loop_rounds} / p.token_rounds - 1, 1), in_turn = longest(at);
  if (c_->plan.loop_rounds > 0 && in_turn > most) d.most_rows(most);
  // Of each slot, head by head, as many as one binding shows.
  const auto pieces = split_rows(state.offset, slots * shape.heads, pair_bytes, c_->plan);
  if (pieces.empty()) return not_seen(pair_bytes, "the state of one head", "smaller heads");
  for (const RowPiece& piece : pieces) {
    Tensor part = state;
    part.offset += piece.first * pair_bytes;
    Dispatch one = d;
    one.bind(part, piece.rows * pair_bytes, true, true).read(batch_.slots).read(batch_.starts);
    one.push(shape.heads).push(shape.columns).push(shape.n).push_rows().push_first(0);
    one.push(shape.sequences).push(p.pieces).push(piece.first).push(piece.rows).loops(2 * std::int64_t{p.token_rounds});
    const std::int64_t of_group = p.group / p.lanes * std::int64_t{p.columns} * shape.n * in_turn * 3;
    run(one.spread(tokens, tokens, shape.sequences * shape.heads * p.pieces, p.group, of_group));
  }
}

void VulkanDevice::ssd_scan(const ScanArgs& args, const Tensor& state, const Batch& at, const Tensor& out) {
  assert(args.x.shape.rank() == 3 && args.b.shape.rank() == 3 && args.c.shape == args.b.shape && args.x.shape[0] == at.tokens());
  const std::int64_t heads = args.x.shape[1], groups = args.b.shape[1];
  assert(heads % groups == 0 && args.a.count() == heads && args.d.count() == heads && args.dt.count() == at.tokens() * heads);
  if (out.count() == 0) return;
  Dispatch d;
  d.in_rows(at.tokens()).read(args.x).of_rows().read(args.dt).of_rows().read(args.b).of_rows().read(args.c).of_rows().write(out).of_rows();
  d.read(args.a).read(args.d).push(groups);
  scan_over("ssd_scan", std::move(d), {at.batch(), heads, args.x.shape[2], args.b.shape[2], 1, 0}, state, at);
}

void VulkanDevice::gated_delta(const DeltaArgs& args, const Tensor& state, const Batch& at, const Tensor& out) {
  assert(args.k.shape.rank() == 3 && args.v.shape.rank() == 3 && args.q.shape == args.k.shape && args.v.shape[0] == at.tokens());
  const std::int64_t heads = args.v.shape[1], key_heads = args.k.shape[1];
  assert(heads % key_heads == 0 && args.decay.count() == at.tokens() * heads && args.beta.count() == args.decay.count());
  if (out.count() == 0) return;
  Dispatch d;
  d.in_rows(at.tokens()).read(args.q).of_rows().read(args.k).of_rows().read(args.v).of_rows();
  d.read(args.decay).of_rows().read(args.beta).of_rows().write(out).of_rows();
  d.constant(args.normalize != 0 ? 1 : 0).push(key_heads).push_real(args.scale).push_real(args.normalize);
  scan_over("gated_delta", std::move(d), {at.batch(), heads, args.v.shape[2], args.k.shape[2], 2, args.normalize != 0 ? 3 : 1}, state, at);
}

}  // namespace modelc::vulkan

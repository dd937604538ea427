// Products with weights.
#include <algorithm>
#include <cassert>

#include "runtime/device/step.h"
#include "runtime/vulkan/cut.h"
#include "runtime/vulkan/vulkan_device.h"

namespace modelc::vulkan {
namespace {

constexpr std::int64_t few_tokens = 4;                     // matvec.comp's most
constexpr std::int64_t conv_outs = 4, conv_places = 4;     // of an invocation of conv.comp

enum class ProductWay { lanes, few, tiles };               // lanes.comp, matvec.comp, matmul.comp

}  // namespace

bool VulkanDevice::reads(Encoding encoding, MatrixUse use) const {
  const std::string encoded(name(encoding));
  return use == MatrixUse::rows ? has("take_" + encoded) : has("matvec_" + encoded) && has("matmul_" + encoded);
}

Status VulkanDevice::prepare(Matrix&, MatrixUse) { return {}; }

void VulkanDevice::linear(const Tensor& x, const Matrix& w, std::span<const Tensor> outs, const Tensor& residual) {
  assert(static_cast<int>(outs.size()) == w.results() && (!residual || outs.size() == 1));
  std::int64_t written = 0;
  for (const Tensor& out : outs) written += out.count();
  const std::int64_t all = w.rows(), k = w.columns, m = all > 0 ? written / all : 0;
  assert(written == m * all && x.count() == m * k);
  if (m == 0) return;
  // What is cut goes by tiles, however few the tokens.
  const bool few = m <= few_tokens && is_seen(x.offset, x.size(), c_->plan) &&
                   std::all_of(outs.begin(), outs.end(), [&](const Tensor& out) { return is_seen(out.offset, out.size(), c_->plan); });
  for (const RowBlock& b : w.blocks) {
    const Tensor& out = outs[static_cast<std::size_t>(b.result)];
    const std::string encoding(name(b.encoding));
    const auto pieces = split_rows(b.data.offset, b.rows, b.row_bytes, c_->plan);
    if (pieces.empty() && b.rows > 0)
      return recorder_->fail(Error{
          "tensor-size",
          "a product with rows of " + std::to_string(b.row_bytes) + " bytes, and a shader sees " + std::to_string(c_->plan.binding_bytes),
          {},
          {}});
    for (const RowPiece& piece : pieces) {
      const ProductWay way = c_->plan.lane_rows > 0 ? ProductWay::lanes : few ? ProductWay::few : ProductWay::tiles;
      const bool subgroups = way == ProductWay::few && has("matvec_" + encoding + "_subgroup");
      Dispatch d = shader((way == ProductWay::lanes ? "lanes_"
                           : way == ProductWay::few ? "matvec_"
                                                    : "matmul_") +
                          encoding + (subgroups ? "_subgroup" : ""));
      Tensor data = b.data, bias = b.bias;
      data.offset += piece.first * b.row_bytes;
      if (bias) bias = {bias.buffer, bias.offset + piece.first * 4, DType::f32, {piece.rows}};
      d.in_rows(m).bind(data, piece.rows * b.row_bytes, true, false).read(x).of_rows().write(out).of_rows();
      d.read(bias).read(residual).of_rows();
      d.constant(bias ? 1 : 0).constant(residual ? 1 : 0);
      d.push(piece.rows).push(k).push(b.row_bytes).push(b.first + piece.first).push(out.count() / m);
      if (way == ProductWay::lanes) {
        // Few numbers of tokens, so that few pipelines are made.
        const std::int64_t most = c_->plan.lane_tokens, tokens = m <= few_tokens ? m : m <= most / 2 ? most / 2 : most;
        const std::int64_t rows = c_->plan.row_group * std::int64_t{c_->plan.lane_rows};
        d.constant(static_cast<std::uint32_t>(tokens)).constant(c_->plan.lane_rows).push_rows().push_rows(1, tokens);
        d.subgroup = c_->plan.subgroup;
        d.spread(m, tokens, (piece.rows + rows - 1) / rows, c_->plan.row_group, rows * k * tokens);
      } else if (way == ProductWay::tiles) {
        const std::int64_t row_tiles = (piece.rows + 31) / 32;
        d.push_rows().push(row_tiles).spread(m, 32, row_tiles, 64, 32 * 32 * k).loops(2 * k);
      } else {
        d.constant(static_cast<std::uint32_t>(m));
        const std::uint32_t size = subgroups ? c_->plan.product_group : c_->plan.row_group;
        const std::int64_t rows_of_group = subgroups ? size / c_->plan.subgroup : 1;
        d.subgroup = subgroups ? c_->plan.subgroup : 0;
        d.in_rows(0).spread(piece.rows, rows_of_group, 1, size, rows_of_group * k * m);
      }
      run(d);
    }
  }
}

void VulkanDevice::linear_map(const Tensor& x, const Matrix& w, const MapKernel& f, const Tensor& out) {
  std::vector<Tensor> products;
  for (int i = 0; i < w.results(); ++i) {
    products.push_back(scratch(static_cast<std::size_t>(i), DType::f32, out.shape));
    if (!products.back()) return;
  }
  linear(x, w, products, {});
  map(f, products, out);
}

void VulkanDevice::chosen_product(const Tensor& x, std::int64_t per_row, const Matrix& w, std::int64_t experts, const Tensor& bias,
                                  const Choice& choice, const Tensor& out) {
  const std::int64_t pairs = choice.chosen.count(), rows = w.rows() / experts, k = w.columns;
  // Pairs, or tiles of pairs of one expert.
  const std::int64_t tasks = choice.together > 1 ? choice.tiles : pairs;
  for (const RowBlock& b : w.blocks) {
    const std::string encoding(name(b.encoding));
    const bool lanes = has("chosen_" + encoding + "_subgroup");
    const auto pieces = split_rows(b.data.offset, b.rows, b.row_bytes, c_->plan);
    if (pieces.empty() && b.rows > 0)
      return recorder_->fail(Error{
          "tensor-size",
          "a product with rows of " + std::to_string(b.row_bytes) + " bytes, and a shader sees " + std::to_string(c_->plan.binding_bytes),
          {},
          {}});
    for (const RowPiece& piece : pieces) {
      Dispatch d = shader("chosen_" + encoding + (lanes ? "_subgroup" : ""));
      Tensor data = b.data;
      data.offset += piece.first * b.row_bytes;
      d.bind(data, piece.rows * b.row_bytes, true, false).read(x).write(out).read(bias);
      d.read(choice.chosen).update(recorder_->faults()).read(choice.sorted);
      d.constant(bias ? 1 : 0).constant(choice.together);
      d.push(pairs).push(per_row).push(rows).push(k).push(b.row_bytes).push(b.first + piece.first).push(piece.rows).push(experts);
      d.push(choice.list);
      const std::uint32_t size = lanes ? c_->plan.product_group : c_->plan.row_group;
      const std::int64_t rows_of_group = lanes ? size / c_->plan.subgroup : 1;
      d.subgroup = lanes ? c_->plan.subgroup : 0;
      run(d.spread(tasks * rows, rows_of_group, 1, size, rows_of_group * k * choice.together));
    }
  }
}

VulkanDevice::Choice VulkanDevice::by_expert(const Tensor& chosen, std::int64_t experts) {
  const std::int64_t pairs = chosen.count();
  Choice c{chosen, {}, pairs_together(pairs, experts), 0, 0};
  if (c.together == 1) return c;
  // Each expert that is chosen at all has one tile that is not full.
  c.tiles = pairs / c.together + std::min(pairs, experts);
  c.list = experts + 1 + 3 * c.tiles;
  c.sorted = scratch(4, DType::i32, {c.list + pairs});
  for (const std::uint32_t second : {0U, 1U})
    if (c.sorted) {
      Dispatch d = shader("sort");
      d.read(chosen).update(c.sorted).update(recorder_->faults()).constant(second).constant(c.together);
      run(d.push(pairs).push(experts).push(c.list).group_each(experts, c_->plan.row_group, pairs));
    }
  return c;
}

void VulkanDevice::experts(const Tensor& x, const Tensor& chosen, const Tensor& weights, const ExpertArgs& args, const MapKernel& f,
                           const Tensor& out) {
  const std::int64_t d = args.gate->columns, inner = args.down->columns, k = chosen.shape[-1], tokens = chosen.count() / k;
  assert(x.count() == tokens * d && out.count() == x.count() && weights.count() == chosen.count() && chosen.dtype == DType::i32);
  // So many tokens at a time as a binding shows of what their choices become.
  const std::int64_t token_bytes = k * std::max(d, inner) * 4;
  const auto pieces = split_alike(tokens, token_bytes, c_->plan);
  if (pieces.empty() && tokens > 0) return not_seen(token_bytes, "what the experts of one token compute", "fewer experts");
  for (const RowPiece& piece : pieces) {
    const auto part = [&](const Tensor& t) {
      Tensor rows = t;
      const std::int64_t each = t.count() / tokens;
      rows.offset += piece.first * each * 4;
      rows.shape = {piece.rows, each};
      return rows;
    };
    const Choice choice = by_expert(part(chosen), args.experts);
    if (choice.together > 1 && !choice.sorted) return;
    // For every pair: the two products, what stands between, and the expert's result.
    const std::int64_t pairs = piece.rows * k;
    const Tensor gate = scratch(0, DType::f32, {pairs, inner}), up = scratch(1, DType::f32, {pairs, inner}),
                 hidden = scratch(2, DType::f32, {pairs, inner}), results = scratch(3, DType::f32, {pairs, d});
    if (!gate || !up || !hidden || !results) return;
    chosen_product(part(x), k, *args.gate, args.experts, args.gate_bias, choice, gate);
    chosen_product(part(x), k, *args.up, args.experts, args.up_bias, choice, up);
    const Tensor inputs[] = {gate, up};
    map(f, inputs, hidden);
    chosen_product(hidden, 1, *args.down, args.experts, args.down_bias, choice, results);
    Dispatch combine = shader("combine");
    combine.read(results).read(part(weights)).write(part(out)).push(piece.rows).push(k).push(d);
    run(combine.each(piece.rows * d, c_->plan.elements_group));
  }
}

void VulkanDevice::conv(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvArgs& args, const Tensor& out) {
  const int axes = x.shape.rank() - 2, missing = 3 - axes;
  assert(axes >= 1 && axes <= 3 && w.shape.rank() == axes + 2 && out.shape.rank() == axes + 2);
  Dispatch d = shader("conv");
  d.in_rows(x.shape[0]).read(x).of_rows().read(w).write(out).of_rows().read(bias);
  d.constant(bias ? 1 : 0).constant(static_cast<std::uint32_t>(missing));
  // Of one sequence: tiles of the outputs of a group, and of the places along the last axis.
  const std::int64_t of_group = w.shape[0] / args.groups, places = out.shape[-1], sequences = std::max<std::int64_t>(x.shape[0], 1);
  const std::int64_t out_tiles = (of_group + conv_outs - 1) / conv_outs, place_tiles = (places + conv_places - 1) / conv_places;
  const std::int64_t rest = out.count() / sequences / std::max<std::int64_t>(w.shape[0] * places, 1);
  const std::int64_t tiles = args.groups * out_tiles * rest * place_tiles;
  d.push_rows(tiles).push(x.shape[1]).push(w.shape[0]).push(args.groups);
  for (const Tensor* t : {&x, &w, &out})
    for (int a = 0; a < 3; ++a) d.push(a < missing ? 1 : t->shape[a - missing + 2]);
  d.push(args.stride).push(args.padding).push(args.dilation).push(out_tiles).push(place_tiles);
  d.each(tiles * x.shape[0], c_->plan.elements_group);
  const std::int64_t of_one = w.count() / std::max<std::int64_t>(w.shape[0], 1);
  d.work *= static_cast<std::uint64_t>(of_one * conv_outs * conv_places);
  run(d.loops(2 * of_one));
}

}  // namespace modelc::vulkan

// Operations on rows: norms, rope, taking rows, reductions, choices.
#include <cassert>

#include "runtime/device/step.h"
#include "runtime/vulkan/vulkan_device.h"

namespace modelc::vulkan {

void VulkanDevice::rms_norm(const Tensor& x, const Tensor& w, const NormArgs& args, const Tensor& out) {
  const std::int64_t n = width_of(x), rows = rows_of(x);
  assert(out.count() == x.count() && (!w || w.count() == n));
  const std::uint32_t group = row_group_of(n, 2, c_->plan);
  run(shader("rms_norm")
          .in_rows(rows)
          .read(x)
          .of_rows()
          .read(w)
          .write(out)
          .of_rows()
          .constant(w ? 1 : 0)
          .push_rows()
          .push(n)
          .push_real(args.eps)
          .push_real(args.offset)
          .loops((n + group - 1) / group * 2)
          .group_each(rows, group, n));
}

void VulkanDevice::add_rms_norm(const Tensor& x, const Tensor& y, const Tensor& w, const NormArgs& args, const Tensor& sum,
                                const Tensor& out) {
  const std::int64_t n = width_of(x), rows = rows_of(x);
  assert(y.count() == x.count() && sum.count() == x.count() && out.count() == x.count() && (!w || w.count() == n));
  const std::uint32_t group = row_group_of(n, 2, c_->plan);
  run(shader("add_rms_norm")
          .in_rows(rows)
          .read(x)
          .of_rows()
          .read(w)
          .write(out)
          .of_rows()
          .read(y)
          .of_rows()
          .update(sum)
          .of_rows()
          .constant(w ? 1 : 0)
          .push_rows()
          .push(n)
          .push_real(args.eps)
          .push_real(args.offset)
          .loops((n + group - 1) / group * 2)
          .group_each(rows, group, n));
}

void VulkanDevice::layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, const NormArgs& args, const Tensor& out) {
  const std::int64_t n = width_of(x), rows = rows_of(x);
  assert(out.count() == x.count() && (!w || w.count() == n) && (!b || b.count() == n));
  const std::uint32_t group = row_group_of(n, 3, c_->plan);
  run(shader("layer_norm")
          .in_rows(rows)
          .read(x)
          .of_rows()
          .read(w)
          .write(out)
          .of_rows()
          .read(b)
          .constant(w ? 1 : 0)
          .constant(b ? 1 : 0)
          .push_rows()
          .push(n)
          .push_real(args.eps)
          .loops((n + group - 1) / group * 3)
          .group_each(rows, group, n));
}

void VulkanDevice::rope(const Tensor& x, const Tensor& cos, const Tensor& sin, Pairs pairs, const Tensor& out) {
  assert(x.shape.rank() >= 2 && cos.shape.rank() == 2 && cos.shape == sin.shape && cos.shape[0] == x.shape[0]);
  const std::int64_t tokens = x.shape[0], d = x.shape[-1], half = cos.shape[1];
  if (x.count() == 0) return;
  const std::int64_t rows = x.count() / d;
  run(shader("rope")
          .in_rows(tokens)
          .read(x)
          .of_rows()
          .read(cos)
          .of_rows()
          .read(sin)
          .of_rows()
          .write(out)
          .of_rows()
          .constant(pairs == Pairs::adjacent ? 1 : 0)
          .push_rows(rows / tokens)
          .push(rows / tokens)
          .push(d)
          .push(half)
          .each(rows * (d - half), c_->plan.elements_group));
}

void VulkanDevice::reduce(Reduction kind, const Tensor& x, const ReduceArgs& args, const Tensor& out) {
  assert(args.axis >= 0 && args.axis < x.shape.rank() && (x.dtype == DType::f32 || x.dtype == DType::i32));
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (i < args.axis) outer *= x.shape[i];
    if (i > args.axis) inner *= x.shape[i];
  }
  const std::int64_t n = x.shape[args.axis];
  Dispatch d = shader(x.dtype == DType::f32 ? "reduce_f32" : "reduce_i32");
  d.in_rows(outer).read(x).of_rows();
  // The result twice, as what it is and as the other type: what a shader may write is never what absent tensors share.
  d.update(out).of_rows().read(args.where).of_rows().update(out).of_rows();
  d.constant(static_cast<std::uint32_t>(kind)).constant(args.where ? type_number(args.where.dtype) : 3);
  // A softmax goes over the axis three times; running sums are one invocation's.
  const std::uint32_t group = row_group_of(n, 3, c_->plan);
  d.loops(kind == Reduction::cumsum ? n : (n + group - 1) / group * 3);
  run(d.push_rows(inner).push(n).push(inner).push_real(args.eps).group_each(outer * inner, group, n));
}

void VulkanDevice::take_rows(const Tensor& x, const Tensor& rows, const Tensor& out) {
  assert(x.shape.rank() >= 1 && rows.dtype == DType::i32);
  const std::int64_t held = x.shape[0], n = held > 0 ? x.count() / held : 0;
  Matrix table;
  table.columns = n;
  RowBlock b;
  b.rows = held;
  b.row_bytes = n * 4;
  b.data = {x.buffer, x.offset, DType::u8, {x.size()}};
  table.blocks.push_back(b);
  take(table, rows, 1, out);
}

void VulkanDevice::take(const Matrix& table, const Tensor& rows, float scale, const Tensor& out) {
  const std::int64_t n = table.columns, count = rows.count();
  assert(rows.dtype == DType::i32 && out.count() == count * n);
  for (const RowBlock& b : table.blocks) {
    const auto pieces = split_rows(b.data.offset, b.rows, b.row_bytes, c_->plan);
    if (pieces.empty() && b.rows > 0)
      return recorder_->fail(
          Error{"tensor-size",
                "a row of " + std::to_string(b.row_bytes) + " bytes is taken, and a shader sees " + std::to_string(c_->plan.binding_bytes),
                {},
                {}});
    for (const RowPiece& piece : pieces) {
      Tensor data = b.data;
      data.offset += piece.first * b.row_bytes;
      run(shader("take_" + std::string(name(b.encoding)))
              .in_rows(count)
              .bind(data, piece.rows * b.row_bytes, true, false)
              .read(rows)
              .of_rows()
              .write(out)
              .of_rows()
              .update(recorder_->faults())
              .push_rows()
              .push(n)
              .push(b.row_bytes)
              .push(b.first + piece.first)
              .push(piece.rows)
              .push(table.rows())
              .push_real(scale)
              .each(count * ((n + 7) / 8), c_->plan.elements_group));
    }
  }
}

void VulkanDevice::route(const Tensor& scores, const Tensor& bias, const RouteArgs& args, const Tensor& chosen, const Tensor& weights) {
  const std::int64_t n = scores.shape[-1], k = chosen.shape[-1], rows = n > 0 ? scores.count() / n : 0;
  assert(chosen.dtype == DType::i32 && weights.count() == chosen.count() && k <= n && k >= 1);
  // The last group that stands, then each of the k: both go over the groups, and those over their scores.
  const bool in_groups = args.keep_groups < args.groups;
  const std::int64_t rounds = in_groups ? args.keep_groups * (args.groups + n) + k * (args.groups + 2 * n) : k * (n + 1);
  run(shader("route")
          .in_rows(rows)
          .read(scores)
          .of_rows()
          .read(bias)
          .update(chosen)
          .of_rows()
          .update(weights)
          .of_rows()
          .constant(bias ? 1 : 0)
          .constant(args.top2_sum ? 1 : 0)
          .constant(args.renormalize ? 1 : 0)
          .push_rows()
          .push(n)
          .push(k)
          .push(args.groups)
          .push(args.keep_groups)
          .push_real(args.scale)
          .loops(rounds)
          .each(rows, c_->plan.elements_group));
}

}  // namespace modelc::vulkan

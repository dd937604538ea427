// Products: how the rows of a matrix are cut into pieces for the team.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "runtime/cpu/cpu_device.h"

namespace modelc::cpu {
namespace {

constexpr std::int64_t streamed_bytes = 512 * 1024;        // few tokens: weights of one piece, several long streams
constexpr std::int64_t panel_rows = 64;                    // many tokens: rows of one piece
constexpr std::int64_t mapped_tokens = 128;                // linear_map: tokens whose products wait in scratch

// Rows of a piece: whole tiles, and several pieces for each worker, so that all end at about the same time.
std::int64_t piece_rows(std::int64_t tokens, std::int64_t rows, std::int64_t row_bytes, int workers, std::int64_t tile) {
  const std::int64_t wanted = tokens <= 4 ? streamed_bytes / std::max<std::int64_t>(row_bytes, 1) : panel_rows;
  const std::int64_t fair = rows / (4 * workers);
  return (std::clamp<std::int64_t>(std::min(wanted, fair), 1, rows) + tile - 1) / tile * tile;
}

ProductArgs product_of(const Tensor& x, const RoundedRows& rounded, const Matrix& w, const RowBlock& block, std::int64_t begin,
                       std::int64_t end) {
  ProductArgs p;
  p.x = x.host<float>();
  p.x_stride = w.columns;
  if (is_quantised(*stored(block.encoding))) {
    p.rounded = rounded.data;
    p.rounded_stride = rounded.stride;
  }
  p.w = block.data.host<std::byte>() + begin * block.row_bytes;
  p.w_stride = block.row_bytes;
  p.encoding = *stored(block.encoding);
  p.n = end - begin;
  p.k = w.columns;
  p.bias = block.bias ? block.bias.host<float>() + begin : nullptr;
  return p;
}

}  // namespace

RoundedRows CpuDevice::round(const float* x, std::int64_t rows, const Matrix& w) {
  const auto quantised = [](const RowBlock& b) { return is_quantised(*stored(b.encoding)); };
  if (w.mode == Mode::exact || rows == 0 || w.columns == 0 || std::none_of(w.blocks.begin(), w.blocks.end(), quantised)) return {};
  const std::int64_t stride = kernels_.rounded_size(w.columns);
  auto* to = reinterpret_cast<std::byte*>(rounded_.at_least(rows * stride / 4));
  spread_rows(rows, w.columns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) kernels_.round(x + r * w.columns, w.columns, to + r * stride);
  });
  return {to, stride};
}

void CpuDevice::linear(const Tensor& x, const Matrix& w, std::span<const Tensor> outs, const Tensor& residual) {
  assert(static_cast<int>(outs.size()) == w.results() && (!residual || outs.size() == 1));
  std::int64_t all = 0, written = 0, row_bytes = 0;
  for (const RowBlock& b : w.blocks) {
    all += b.rows;
    row_bytes = std::max(row_bytes, b.row_bytes);
  }
  for (const Tensor& out : outs) written += out.count();
  const std::int64_t k = w.columns, m = all > 0 ? written / all : 0;
  assert(written == m * all && x.count() == m * k);
  if (m == 0) return;
  const std::lock_guard guard(lock_);
  const RoundedRows rounded = round(x.host<float>(), m, w);
  const std::int64_t piece = piece_rows(m, all, row_bytes, team_.size(), kernels_.product_rows());
  const std::int64_t scratch = kernels_.product_scratch(m, piece, k);
  for (Scratch& s : scratch_) s.at_least(scratch);
  std::int64_t pieces = 0;
  for (const RowBlock& b : w.blocks) pieces += (b.rows + piece - 1) / piece;
  spread(pieces, 1, m * all * k, [&](std::int64_t begin, std::int64_t end, int worker) {
    std::size_t i = 0;
    std::int64_t first = 0;                                // piece with which block i begins
    for (std::int64_t c = begin; c < end; ++c) {
      while (c >= first + (w.blocks[i].rows + piece - 1) / piece) first += (w.blocks[i++].rows + piece - 1) / piece;
      const RowBlock& b = w.blocks[i];
      const std::int64_t from = (c - first) * piece;
      ProductArgs p = product_of(x, rounded, w, b, from, std::min(from + piece, b.rows));
      p.m = m;
      const Tensor& out = outs[static_cast<std::size_t>(b.result)];
      p.out = out.host<float>() + b.first + from;
      p.out_stride = out.count() / m;
      if (residual) {
        p.residual = residual.host<float>() + b.first + from;
        p.residual_stride = p.out_stride;
      }
      p.scratch = scratch_[static_cast<std::size_t>(worker)].at_least(scratch);
      kernels_.product(p);
    }
  });
}

void CpuDevice::linear_map(const Tensor& x, const Matrix& w, const MapKernel& f, const Tensor& out) {
  const std::int64_t results = w.results();
  assert(results >= 1 && results <= MapArgs::max_inputs);
  const std::int64_t n = w.rows() / results, k = w.columns, m = n > 0 ? out.count() / n : 0;
  assert(w.rows() == n * results);
  if (m == 0) return;
  std::int64_t row_bytes = 0;
  for (const RowBlock& b : w.blocks) row_bytes += b.row_bytes;
  const std::lock_guard guard(lock_);
  const RoundedRows rounded = round(x.host<float>(), m, w);
  const std::int64_t piece = std::min(piece_rows(m, n, row_bytes, team_.size(), kernels_.product_rows()), n);
  const std::int64_t some = std::min(m, mapped_tokens);
  const std::int64_t product = (kernels_.product_scratch(some, piece, k) + 15) / 16 * 16;
  // The products for `some` tokens, and the result when it does not lie together in `out`.
  const std::int64_t scratch = product + (results + (m > 1 ? 1 : 0)) * some * piece;
  for (Scratch& s : scratch_) s.at_least(scratch);
  spread((n + piece - 1) / piece, 1, m * n * k * results, [&](std::int64_t begin, std::int64_t end, int worker) {
    float* own = scratch_[static_cast<std::size_t>(worker)].at_least(scratch);
    float* parts = own + product;
    for (std::int64_t c = begin; c < end; ++c) {
      const std::int64_t from = c * piece, to = std::min(from + piece, n), width = to - from;
      for (std::int64_t t = 0; t < m; t += some) {
        MapArgs a;
        const std::int64_t tokens = std::min(some, m - t);
        a.shape = {tokens, width};
        a.inputs = static_cast<int>(results);
        for (std::int64_t i = 0; i < results; ++i) {
          MapArgs::Input& in = a.input[static_cast<std::size_t>(i)];
          in.data = parts + i * some * piece;
          in.strides = {width, 1};
        }
        for (const RowBlock& b : w.blocks) {
          const std::int64_t begin_row = std::max(from, b.first), end_row = std::min(to, b.first + b.rows);
          if (begin_row >= end_row) continue;
          ProductArgs p = product_of(x, rounded, w, b, begin_row - b.first, end_row - b.first);
          p.x += t * k;
          if (p.rounded != nullptr) p.rounded += t * p.rounded_stride;
          p.m = tokens;
          p.out = parts + b.result * some * piece + (begin_row - from);
          p.out_stride = width;
          p.scratch = own;
          kernels_.product(p);
        }
        float* result = out.host<float>() + t * n + from;
        float* mapped = m > 1 ? parts + results * some * piece : result;
        a.out = mapped;
        f.cpu(a, 0, tokens);
        if (m > 1)
          for (std::int64_t i = 0; i < tokens; ++i)
            std::memcpy(result + i * n, mapped + i * width, static_cast<std::size_t>(width) * sizeof(float));
      }
    }
  });
}

}  // namespace modelc::cpu

// What goes over a state token by token: each piece of work owns a piece of the state, over all tokens of a sequence.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "runtime/cpu/cpu_device.h"

namespace modelc::cpu {
namespace {

constexpr std::int64_t channel_piece = 256;                // of a convolution
constexpr std::int64_t row_piece = 32;                     // of a head's state: rows, in ssd_scan
constexpr std::int64_t column_piece = 64;                  // columns, in gated_delta

std::int64_t pieces_of(std::int64_t n, std::int64_t piece) { return (n + piece - 1) / piece; }

// The tokens of one of the batch's sequences.
struct Tokens {
  std::int64_t first, count, slot;
  Tokens(const Batch& at, std::int64_t s)
      : first(at.starts[static_cast<std::size_t>(s)]),
        count(at.starts[static_cast<std::size_t>(s) + 1] - first),
        slot(at.slots[static_cast<std::size_t>(s)]) {}
};

std::int64_t longest(const Batch& at) {
  std::int64_t n = 0;
  for (std::int64_t s = 0; s < at.batch(); ++s) n = std::max(n, Tokens(at, s).count);
  return n;
}

// Rows of one head's length: to = x / sqrt(sum x² + eps).
void normalised(const float* x, std::int64_t n, double eps, float* to) {
  double squares = eps;
  for (std::int64_t i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * x[i];
  const double root = std::sqrt(squares);
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(x[i] / root);
}

}  // namespace

void CpuDevice::causal_conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& ring, const Batch& at,
                              const Tensor& out) {
  const std::int64_t c = w.shape[0], k = w.shape[1], before = k - 1;
  assert(x.shape[0] == at.tokens() && x.shape[1] == c);
  const std::lock_guard guard(lock_);
  spread(pieces_of(c, channel_piece), 1, out.count() * k, [&](std::int64_t begin, std::int64_t end, int worker) {
    const std::int64_t from = begin * channel_piece, some = std::min(end * channel_piece, c) - from;
    // Weights by place, so that a vector of channels lies together.
    float* by_place = scratch_[static_cast<std::size_t>(worker)].at_least(k * some);
    for (std::int64_t i = 0; i < some; ++i)
      for (std::int64_t j = 0; j < k; ++j) by_place[j * some + i] = w.host<float>()[(from + i) * k + j];
    std::vector<const float*> rows(static_cast<std::size_t>(k));
    for (std::int64_t s = 0; s < at.batch(); ++s) {
      const Tokens own(at, s);
      float* kept = before > 0 ? ring.host<float>() + own.slot * before * c + from : nullptr;
      const float* given = x.host<float>() + own.first * c + from;
      // Row r of what stood in the ring and, behind it, of the call.
      const auto row = [&](std::int64_t r) { return r < before ? kept + r * c : given + (r - before) * c; };
      for (std::int64_t t = 0; t < own.count; ++t) {
        for (std::int64_t j = 0; j < k; ++j) rows[static_cast<std::size_t>(j)] = row(t + j);
        kernels_.conv_row(rows.data(), by_place, some, bias ? bias.host<float>() + from : nullptr, k, some,
                          out.host<float>() + (own.first + t) * c + from);
      }
      // In order, since a row that moves up lies behind its new place.
      for (std::int64_t r = 0; r < before; ++r)
        std::memcpy(kept + r * c, row(own.count + r), static_cast<std::size_t>(some) * sizeof(float));
    }
  });
}

void CpuDevice::ssd_scan(const ScanArgs& args, const Tensor& state, const Batch& at, const Tensor& out) {
  const std::int64_t heads = args.x.shape[1], p = args.x.shape[2], groups = args.b.shape[1], n = args.b.shape[2];
  const std::int64_t pieces = pieces_of(p, row_piece), most = longest(at);
  assert(heads % groups == 0);
  const std::lock_guard guard(lock_);
  spread(at.batch() * heads * pieces, 1, out.count() * n, [&](std::int64_t begin, std::int64_t end, int worker) {
    float* decay = scratch_[static_cast<std::size_t>(worker)].at_least(2 * most);
    float* step = decay + most;
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const Tokens own(at, unit / pieces / heads);
      const std::int64_t h = unit / pieces % heads, from = unit % pieces * row_piece;
      for (std::int64_t t = 0; t < own.count; ++t) {
        step[t] = args.dt.host<float>()[(own.first + t) * heads + h];
        decay[t] = static_cast<float>(std::exp(static_cast<double>(step[t]) * args.a.host<float>()[h]));
      }
      SsdPiece s;
      s.x = args.x.host<float>() + (own.first * heads + h) * p + from;
      s.x_stride = s.out_stride = heads * p;
      const std::int64_t shared = (own.first * groups + h / (heads / groups)) * n;
      s.b = args.b.host<float>() + shared;
      s.c = args.c.host<float>() + shared;
      s.shared_stride = groups * n;
      s.decay = decay;
      s.step = step;
      s.skip = args.d.host<float>()[h];
      s.state = state.host<float>() + ((own.slot * heads + h) * p + from) * n;
      s.tokens = own.count;
      s.p = std::min(row_piece, p - from);
      s.n = n;
      s.out = out.host<float>() + (own.first * heads + h) * p + from;
      kernels_.ssd_scan(s);
    }
  });
}

void CpuDevice::gated_delta(const DeltaArgs& args, const Tensor& state, const Batch& at, const Tensor& out) {
  const std::int64_t kv_heads = args.k.shape[1], dk = args.k.shape[2], heads = args.v.shape[1], dv = args.v.shape[2];
  const std::int64_t pieces = pieces_of(dv, column_piece), most = longest(at), rows = args.k.shape[0] * kv_heads;
  assert(heads % kv_heads == 0);
  const std::lock_guard guard(lock_);
  const float *q = args.q.host<float>(), *k = args.k.host<float>();
  if (args.normalize > 0) {
    float* to = packed_.at_least(2 * rows * dk);
    spread_rows(rows, 2 * dk, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        normalised(q + r * dk, dk, args.normalize, to + r * dk);
        normalised(k + r * dk, dk, args.normalize, to + (rows + r) * dk);
      }
    });
    q = to;
    k = to + rows * dk;
  }
  spread(at.batch() * heads * pieces, 1, 2 * out.count() * dk, [&](std::int64_t begin, std::int64_t end, int worker) {
    float* decay = scratch_[static_cast<std::size_t>(worker)].at_least(2 * most);
    float* beta = decay + most;
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const Tokens own(at, unit / pieces / heads);
      const std::int64_t h = unit / pieces % heads, from = unit % pieces * column_piece;
      for (std::int64_t t = 0; t < own.count; ++t) {
        decay[t] = static_cast<float>(std::exp(static_cast<double>(args.decay.host<float>()[(own.first + t) * heads + h])));
        beta[t] = args.beta.host<float>()[(own.first + t) * heads + h];
      }
      DeltaPiece d;
      const std::int64_t shared = (own.first * kv_heads + h / (heads / kv_heads)) * dk;
      d.q = q + shared;
      d.k = k + shared;
      d.key_stride = kv_heads * dk;
      d.v = args.v.host<float>() + (own.first * heads + h) * dv + from;
      d.v_stride = d.out_stride = heads * dv;
      d.decay = decay;
      d.beta = beta;
      d.scale = args.scale;
      d.state = state.host<float>() + (own.slot * heads + h) * dk * dv + from;
      d.tokens = own.count;
      d.dk = dk;
      d.dv = dv;
      d.columns = std::min(column_piece, dv - from);
      d.out = out.host<float>() + (own.first * heads + h) * dv + from;
      kernels_.gated_delta(d);
    }
  });
}

}  // namespace modelc::cpu

// Convolutions: the places that a kernel sees become rows, and the rows a product with the weights.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "runtime/cpu/cpu_device.h"

namespace modelc::cpu {
namespace {

constexpr std::int64_t places = 64;                        // of the result, in one piece

// Spatial axes, three with ones in front.
struct Axes {
  std::array<std::int64_t, 3> n{1, 1, 1}, m{1, 1, 1}, k{1, 1, 1}, stride{1, 1, 1}, padding{}, dilation{1, 1, 1};
};

// The row of result place `at`: [channels of the group, kernel…]; what lies outside x is 0.
void gather(const Axes& a, const float* x, std::int64_t channels, std::int64_t at, float* row) {
  const std::array<std::int64_t, 3> place = {at / (a.m[1] * a.m[2]), at / a.m[2] % a.m[1], at % a.m[2]};
  std::array<std::int64_t, 3> first{};
  for (std::size_t i = 0; i < 3; ++i) first[i] = place[i] * a.stride[i] - a.padding[i];
  for (std::int64_t c = 0; c < channels; ++c, x += a.n[0] * a.n[1] * a.n[2])
    for (std::int64_t i = 0; i < a.k[0]; ++i)
      for (std::int64_t j = 0; j < a.k[1]; ++j) {
        const std::int64_t p = first[0] + i * a.dilation[0], q = first[1] + j * a.dilation[1];
        const bool inside = p >= 0 && p < a.n[0] && q >= 0 && q < a.n[1];
        for (std::int64_t l = 0; l < a.k[2]; ++l, ++row) {
          const std::int64_t r = first[2] + l * a.dilation[2];
          *row = inside && r >= 0 && r < a.n[2] ? x[(p * a.n[1] + q) * a.n[2] + r] : 0.0F;
        }
      }
}

}  // namespace

void CpuDevice::conv(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvArgs& args, const Tensor& out) {
  const int spatial = x.shape.rank() - 2;
  assert(spatial >= 1 && spatial <= 3 && w.shape.rank() == x.shape.rank() && out.shape.rank() == x.shape.rank());
  Axes a;
  for (int i = 0; i < spatial; ++i) {
    const auto to = static_cast<std::size_t>(3 - spatial + i);
    a.n[to] = x.shape[2 + i];
    a.m[to] = out.shape[2 + i];
    a.k[to] = w.shape[2 + i];
    a.stride[to] = args.stride;
    a.padding[to] = args.padding;
    a.dilation[to] = args.dilation;
  }
  const std::int64_t channels = w.shape[1], size = a.n[0] * a.n[1] * a.n[2], all = a.m[0] * a.m[1] * a.m[2];
  const std::int64_t k = channels * a.k[0] * a.k[1] * a.k[2], group_out = w.shape[0] / args.groups;
  const std::int64_t pieces = (all + places - 1) / places;
  if (out.count() == 0) return;
  const std::lock_guard guard(lock_);
  const std::int64_t product = (kernels_.product_scratch(places, group_out, k) + 15) / 16 * 16;
  const std::int64_t scratch = product + places * (k + group_out);
  for (Scratch& s : scratch_) s.at_least(scratch);
  spread(x.shape[0] * args.groups * pieces, 1, out.count() * k, [&](std::int64_t begin, std::int64_t end, int worker) {
    float* own = scratch_[static_cast<std::size_t>(worker)].at_least(scratch);
    float* rows = own + product;
    float* result = rows + places * k;
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t from = unit % pieces * places, some = std::min(places, all - from);
      const std::int64_t group = unit / pieces % args.groups, b = unit / pieces / args.groups;
      const float* image = x.host<float>() + (b * x.shape[1] + group * channels) * size;
      for (std::int64_t i = 0; i < some; ++i) gather(a, image, channels, from + i, rows + i * k);
      ProductArgs p;
      p.x = rows;
      p.x_stride = k;
      p.w = w.host<std::byte>() + group * group_out * k * static_cast<std::int64_t>(sizeof(float));
      p.w_stride = k * static_cast<std::int64_t>(sizeof(float));
      p.m = some;
      p.n = group_out;
      p.k = k;
      p.bias = bias ? bias.host<float>() + group * group_out : nullptr;
      p.out = result;
      p.out_stride = group_out;
      p.scratch = own;
      kernels_.product(p);
      float* to = out.host<float>() + (b * out.shape[1] + group * group_out) * all + from;
      for (std::int64_t o = 0; o < group_out; ++o)
        for (std::int64_t i = 0; i < some; ++i) to[o * all + i] = result[i * group_out + o];
    }
  });
}

}  // namespace modelc::cpu

// Convolutions: every element of the result by itself, as the sum over channels and places of the kernel.
#include "frontend/graph/eval/reference.h"

namespace modelc::graph::eval::reference {

namespace {

struct Settings {
  std::int64_t stride, padding, dilation, groups;
  explicit Settings(const Op& op)
      : stride(integer_attr(op, "stride", 1)),
        padding(integer_attr(op, "padding", 0)),
        dilation(integer_attr(op, "dilation", 1)),
        groups(integer_attr(op, "groups", 1)) {}
};

// Sizes that are known only when it runs: an axis that the kernel does not fit in.
Status too_short(const Call& c, std::int64_t size, std::int64_t span) {
  return Error{"conv-size",
               std::string(info(c.op.kind).name) + ": an axis of x is " + std::to_string(size) + " with padding, and the kernel spans " +
                   std::to_string(span),
               {},
               ""};
}

}  // namespace

// y[b, o, i…] = bias[o] + Σ_{c in o's group, j…} w[o, c, j…] · x[b, c, i · stride + j · dilation - padding …]; what
// lies outside x is 0.
Status conv(Call& c) {
  const Array &x = c.in(0), &w = c.in(1);
  Array& y = c.out();
  const Settings s(c.op);
  const Shape kernel(w.shape.begin() + 2, w.shape.end());
  for (std::size_t a = 0; a < kernel.size(); ++a) {
    const std::int64_t padded = x.shape[2 + a] + 2 * s.padding, span = s.dilation * (kernel[a] - 1) + 1;
    if (padded < span) return too_short(c, padded, span);
  }
  const auto in_group = w.shape[1];                                           // channels of x in one group
  const auto out_group = w.shape[0] / s.groups;
  const std::vector<std::size_t> steps = strides_of(x.shape);
  for_each_index(y.shape, [&](const Shape& at, std::size_t flat) {
    const std::int64_t first = at[1] / out_group * in_group;
    double sum = c.has(2) ? c.in(2).reals[static_cast<std::size_t>(at[1])] : 0.0;
    for (std::int64_t channel = 0; channel < in_group; ++channel) {
      const std::size_t row = static_cast<std::size_t>(at[1] * in_group + channel) * count_of(kernel);
      for_each_index(kernel, [&](const Shape& j, std::size_t k) {
        std::size_t from = static_cast<std::size_t>(at[0]) * steps[0] + static_cast<std::size_t>(first + channel) * steps[1];
        for (std::size_t a = 0; a < kernel.size(); ++a) {
          const std::int64_t place = at[2 + a] * s.stride + j[a] * s.dilation - s.padding;
          if (place < 0 || place >= x.shape[2 + a]) return;
          from += static_cast<std::size_t>(place) * steps[2 + a];
        }
        sum += double{w.reals[row + k]} * x.reals[from];
      });
    }
    y.reals[flat] = round_to(y.dtype, sum);
  });
  return {};
}

// y[b, o, i] = bias[o] + Σ_{c in o's group, j} w[c, o in its group, j] · x[b, c, t] over the t with
// t · stride + j · dilation - padding = i.
Status conv_transpose1d(Call& c) {
  const Array &x = c.in(0), &w = c.in(1);
  Array& y = c.out();
  const Settings s(c.op);
  const std::int64_t n = x.shape[2], k = w.shape[2];
  if (y.shape[2] < 1) return Error{"conv-size", "conv_transpose1d: the padding cuts all of the result away", {}, ""};
  const std::int64_t in_group = x.shape[1] / s.groups, out_group = w.shape[1];
  for_each_index(y.shape, [&](const Shape& at, std::size_t flat) {
    const std::int64_t group = at[1] / out_group;
    double sum = c.has(2) ? c.in(2).reals[static_cast<std::size_t>(at[1])] : 0.0;
    for (std::int64_t channel = group * in_group; channel < (group + 1) * in_group; ++channel)
      for (std::int64_t j = 0; j < k; ++j) {
        const std::int64_t place = at[2] + s.padding - j * s.dilation;
        if (place < 0 || place % s.stride != 0 || place / s.stride >= n) continue;
        sum += double{w.reals[static_cast<std::size_t>((channel * out_group + at[1] % out_group) * k + j)]} *
               x.reals[static_cast<std::size_t>((at[0] * x.shape[1] + channel) * n + place / s.stride)];
      }
    y.reals[flat] = round_to(y.dtype, sum);
  });
  return {};
}

}  // namespace modelc::graph::eval::reference

// Tensors from nothing, in f32 as PyTorch makes them.
#include "frontend/graph/eval/reference.h"

namespace modelc::graph::eval::reference {

Status arange(Call& c) {
  for (std::size_t i = 0; i < c.out().reals.size(); ++i) c.out().reals[i] = static_cast<float>(i);
  return {};
}

Status linspace(Call& c) {
  const auto start = static_cast<float>(real_attr(c.op, "start", 0)), stop = static_cast<float>(real_attr(c.op, "stop", 0));
  std::vector<float>& y = c.out().reals;
  const std::size_t n = y.size();
  const float step = n > 1 ? (stop - start) / static_cast<float>(n - 1) : 0.0f;
  for (std::size_t i = 0; i < n; ++i)
    y[i] = i < n / 2 || n == 1 ? start + step * static_cast<float>(i) : stop - step * static_cast<float>(n - 1 - i);
  return {};
}

Status tensor_literal(Call& c) {
  const auto& values = std::get<std::vector<double>>(c.op.attrs.at("values"));
  for (std::size_t i = 0; i < values.size(); ++i) c.out().reals[i] = static_cast<float>(values[i]);
  return {};
}

}  // namespace modelc::graph::eval::reference

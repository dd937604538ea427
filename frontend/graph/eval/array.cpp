#include "frontend/graph/eval/array.h"

#include <cassert>
#include <cmath>
#include <limits>

namespace modelc::graph::eval {

std::size_t count_of(std::span<const std::int64_t> shape) {
  std::size_t n = 1;
  for (std::int64_t d : shape) n *= static_cast<std::size_t>(d);
  return n;
}

std::vector<std::size_t> strides_of(const Shape& shape) {
  std::vector<std::size_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * static_cast<std::size_t>(shape[i]);
  return strides;
}

Array zeros(DType dtype, Shape shape) {
  Array a;
  a.dtype = dtype;
  a.shape = std::move(shape);
  if (is_float(dtype)) a.reals.resize(count_of(a.shape));
  else a.integers.resize(count_of(a.shape));
  return a;
}

Array array(Shape shape, std::vector<float> values) {
  assert(count_of(shape) == values.size());
  return Array{DType::f32, std::move(shape), std::move(values), {}};
}
Array index_array(Shape shape, std::vector<std::int64_t> values) {
  assert(count_of(shape) == values.size());
  return Array{DType::i32, std::move(shape), {}, std::move(values)};
}
Array bool_array(Shape shape, std::vector<std::int64_t> values) {
  assert(count_of(shape) == values.size());
  return Array{DType::boolean, std::move(shape), {}, std::move(values)};
}

float round_to(DType dtype, double value) {
  if (dtype == DType::f32 || !std::isfinite(value) || value == 0) return static_cast<float>(value);
  // The distance of neighbours of the dtype at this size: 2^(exponent - fraction bits), not below the subnormals'.
  const int fraction = dtype == DType::f16 ? 10 : 7;
  const int smallest = dtype == DType::f16 ? -14 : -126;
  const double largest = dtype == DType::f16 ? 65504.0 : 0x1.fep127;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(value), smallest) - fraction);
  const double rounded = std::nearbyint(value / unit) * unit;
  if (std::abs(rounded) > largest) return std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(value));
  return static_cast<float>(rounded);
}

Broadcast::Broadcast(const Shape& from, const Shape& to) : steps_(to.size(), 0) {
  const std::vector<std::size_t> strides = strides_of(from);
  const std::size_t missing = to.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i) steps_[missing + i] = from[i] == 1 ? 0 : strides[i];
}

AxisView::AxisView(const Shape& shape, std::size_t axis) {
  for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(shape[i]);
  n = static_cast<std::size_t>(shape[axis]);
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= static_cast<std::size_t>(shape[i]);
}

}  // namespace modelc::graph::eval

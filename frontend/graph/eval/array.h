// The evaluator's tensor: plain vectors in row order. Floats of every dtype are kept as f32, rounded to their dtype;
// integers and bools as int64.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/abi/dtype.h"

namespace modelc::graph::eval {

using Shape = std::vector<std::int64_t>;

struct Array {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<float> reals;                      // of floats
  std::vector<std::int64_t> integers;            // of integers and bools (0 or 1)

  std::size_t count() const { return is_float(dtype) ? reals.size() : integers.size(); }
  // An element as a number: what a float operation reads.
  double number(std::size_t i) const { return is_float(dtype) ? reals[i] : static_cast<float>(integers[i]); }
};

Array zeros(DType dtype, Shape shape);
Array array(Shape shape, std::vector<float> values);                          // f32; as many values as the shape has
Array index_array(Shape shape, std::vector<std::int64_t> values);             // i32
Array bool_array(Shape shape, std::vector<std::int64_t> values);

// Product of the extents, which are not negative and were checked to be small.
std::size_t count_of(std::span<const std::int64_t> shape);
// Elements to step over for one step along each axis.
std::vector<std::size_t> strides_of(const Shape& shape);

inline void copy_element(const Array& from, std::size_t i, Array& to, std::size_t j) {
  if (is_float(to.dtype)) to.reals[j] = from.reals[i];
  else to.integers[j] = from.integers[i];
}

// Nearest value of the dtype, ties to even: f32, f16 and bf16; beyond its range infinity.
float round_to(DType dtype, double value);

// Calls f(index, flat) for every index of the shape, in row order.
template <class F> void for_each_index(const Shape& shape, F f) {
  Shape index(shape.size(), 0);
  const std::size_t n = count_of(shape);
  for (std::size_t flat = 0; flat < n; ++flat) {
    f(static_cast<const Shape&>(index), flat);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

// Reads an operand under the index of a result that it broadcasts to, NumPy's way: its axes are the result's last ones,
// and along an axis of size 1 it stays where it is.
class Broadcast {
 public:
  Broadcast(const Shape& from, const Shape& to);
  std::size_t operator()(const Shape& index) const {
    std::size_t at = 0;
    for (std::size_t i = 0; i < index.size(); ++i) at += steps_[i] * static_cast<std::size_t>(index[i]);
    return at;
  }

 private:
  std::vector<std::size_t> steps_;
};

// One axis of a shape: [outer, n, inner].
struct AxisView {
  std::size_t outer = 1, n = 1, inner = 1;
  AxisView(const Shape& shape, std::size_t axis);
  std::size_t at(std::size_t o, std::size_t j, std::size_t i) const { return (o * n + j) * inner + i; }
};

}  // namespace modelc::graph::eval

// A tensor's elements in another order, or only some of them: what Device::copy_strided reads or writes. Nothing moves
// until it is copied. A slice along the first axis that is not one lies together and needs no copy: Step::rows.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/tensor/tensor.h"

namespace modelc {

struct Strided {
  static constexpr int max_rank = Shape::max_rank + 1;     // repeat() adds an axis
  Tensor tensor;                                           // memory and dtype
  std::int64_t offset = 0;                                 // of the first element, in elements from the tensor's
  int rank = 0;
  std::array<std::int64_t, max_rank> shape{}, strides{};   // in elements; 0: one element for all of the axis

  explicit Strided(const Tensor& t);
  std::int64_t count() const;
  bool contiguous() const;

  // Elements start, start + step, … below stop; StepFailure unless 0 <= start <= stop <= the axis's size.
  Strided slice(int axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1) const;
  Strided transpose(int a, int b) const;
  // Axes of size 1, and missing ones at the left, become the shape's.
  Strided expand(const Shape& to) const;
  // Each element along the axis `times` times in a row.
  Strided repeat(int axis, std::int64_t times) const;
};

// StepFailure unless start .. stop lies within an axis of so many.
void check_slice(std::int64_t start, std::int64_t stop, std::int64_t size);

}  // namespace modelc

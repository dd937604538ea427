#include "runtime/device/strided.h"

#include <algorithm>

#include "runtime/device/step.h"

namespace modelc {

Strided::Strided(const Tensor& t) : tensor(t), rank(t.shape.rank()) {
  std::int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const auto k = static_cast<std::size_t>(i);
    shape[k] = t.shape[i];
    strides[k] = stride;
    stride *= shape[k];
  }
}

std::int64_t Strided::count() const {
  std::int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= shape[static_cast<std::size_t>(i)];
  return n;
}

bool Strided::contiguous() const {
  std::int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const auto k = static_cast<std::size_t>(i);
    if (shape[k] != 1 && strides[k] != stride) return false;
    stride *= shape[k];
  }
  return true;
}

void check_slice(std::int64_t start, std::int64_t stop, std::int64_t size) {
  if (start < 0 || stop < start || stop > size)
    throw StepFailure{{"slice-range",
                       "[" + std::to_string(start) + " .. " + std::to_string(stop) + "] does not lie in an axis of " + std::to_string(size),
                       {},
                       "the sizes of this call's inputs leave less than the model takes a slice of"}};
}

Strided Strided::slice(int axis, std::int64_t start, std::int64_t stop, std::int64_t step) const {
  assert(axis >= 0 && axis < rank && step >= 1);
  Strided s = *this;
  const auto k = static_cast<std::size_t>(axis);
  check_slice(start, stop, shape[k]);
  s.offset += start * strides[k];
  s.shape[k] = (stop - start + step - 1) / step;
  s.strides[k] = strides[k] * step;
  return s;
}

Strided Strided::transpose(int a, int b) const {
  assert(a >= 0 && a < rank && b >= 0 && b < rank);
  Strided s = *this;
  std::swap(s.shape[static_cast<std::size_t>(a)], s.shape[static_cast<std::size_t>(b)]);
  std::swap(s.strides[static_cast<std::size_t>(a)], s.strides[static_cast<std::size_t>(b)]);
  return s;
}

Strided Strided::expand(const Shape& to) const {
  assert(rank <= to.rank());
  Strided s = *this;
  s.rank = to.rank();
  const int added = to.rank() - rank;
  for (int i = 0; i < to.rank(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    const std::int64_t size = i < added ? 1 : shape[static_cast<std::size_t>(i - added)];
    assert(size == 1 || size == to[i]);
    s.shape[k] = to[i];
    s.strides[k] = size == 1 ? 0 : strides[static_cast<std::size_t>(i - added)];
  }
  return s;
}

Strided Strided::repeat(int axis, std::int64_t times) const {
  assert(axis >= 0 && axis < rank && rank < max_rank && times >= 1);
  Strided s = *this;
  for (int i = rank; i > axis + 1; --i) {
    s.shape[static_cast<std::size_t>(i)] = shape[static_cast<std::size_t>(i - 1)];
    s.strides[static_cast<std::size_t>(i)] = strides[static_cast<std::size_t>(i - 1)];
  }
  s.shape[static_cast<std::size_t>(axis + 1)] = times;
  s.strides[static_cast<std::size_t>(axis + 1)] = 0;
  ++s.rank;
  return s;
}

}  // namespace modelc

// Views and copies, all as copies.
#include <cmath>
#include <limits>

#include "frontend/graph/eval/reference.h"

namespace modelc::graph::eval::reference {

namespace {

std::size_t axis_of(const Call& c, std::int64_t absent = -1) { return axis_attr(c.op, c.in(0).shape.size(), absent); }

// y[o, j, i] = x[o, source(j), i] along one axis.
template <class F> void along_axis(const Array& x, std::size_t axis_x, Array& y, std::size_t axis_y, F source) {
  const AxisView from(x.shape, axis_x), to(y.shape, axis_y);
  for (std::size_t o = 0; o < to.outer; ++o)
    for (std::size_t j = 0; j < to.n; ++j)
      for (std::size_t i = 0; i < to.inner; ++i) copy_element(x, from.at(o, source(j), i), y, to.at(o, j, i));
}

}  // namespace

Status reshape(Call& c) {
  c.out().reals = c.in(0).reals;
  c.out().integers = c.in(0).integers;
  return {};
}

Status cast(Call& c) {
  const Array& x = c.in(0);
  Array& y = c.out();
  for (std::size_t i = 0; i < x.count(); ++i) {
    if (is_float(y.dtype)) {
      y.reals[i] = round_to(y.dtype, x.number(i));
    } else if (y.dtype == DType::boolean) {
      y.integers[i] = x.number(i) != 0;
    } else if (!is_float(x.dtype)) {
      y.integers[i] = x.integers[i];
    } else {
      const double whole = std::trunc(double{x.reals[i]});
      if (!(std::abs(whole) < 0x1p62))
        return Error{"cast-range",
                     "cast: " + std::to_string(x.reals[i]) + " at " + std::to_string(i) + " is no " + std::string(name(y.dtype)),
                     {},
                     ""};
      y.integers[i] = static_cast<std::int64_t>(whole);
    }
  }
  return {};
}

Status slice(Call& c) {
  const Array& x = c.in(0);
  const std::size_t axis = axis_of(c);
  const bool drop = boolean_attr(c.op, "drop", false);
  const std::int64_t step = integer_attr(c.op, "step", 1), size = x.shape[axis];
  const std::optional<std::int64_t> start = c.dim("start", 0);
  const std::optional<std::int64_t> stop = drop ? start.value_or(0) + 1 : c.dim("stop", size);
  if (!start || !stop || *start < 0 || *stop < *start || *stop > size)
    return Error{"slice-range",
                 "slice: [" + std::to_string(start.value_or(-1)) + " .. " + std::to_string(stop.value_or(-1)) +
                     "] does not lie in an axis of " + std::to_string(size),
                 {},
                 ""};
  auto source = [&](std::size_t j) { return static_cast<std::size_t>(*start) + j * static_cast<std::size_t>(step); };
  if (!drop) {
    along_axis(x, axis, c.out(), axis, source);
    return {};
  }
  const AxisView from(x.shape, axis);
  for (std::size_t o = 0; o < from.outer; ++o)
    for (std::size_t i = 0; i < from.inner; ++i) copy_element(x, from.at(o, source(0), i), c.out(), o * from.inner + i);
  return {};
}

Status concat(Call& c) {
  const std::size_t axis = axis_of(c);
  Array& y = c.out();
  const AxisView to(y.shape, axis);
  std::size_t at = 0;
  for (const Array* x : c.operands) {
    const AxisView from(x->shape, axis);
    for (std::size_t o = 0; o < from.outer; ++o)
      for (std::size_t j = 0; j < from.n; ++j)
        for (std::size_t i = 0; i < from.inner; ++i) copy_element(*x, from.at(o, j, i), y, to.at(o, at + j, i));
    at += from.n;
  }
  return {};
}

Status stack(Call& c) {
  Array& y = c.out();
  const AxisView to(y.shape, axis_attr(c.op, y.shape.size(), 0));
  for (std::size_t e = 0; e < c.operands.size(); ++e)
    for (std::size_t o = 0; o < to.outer; ++o)
      for (std::size_t i = 0; i < to.inner; ++i) copy_element(c.in(e), o * to.inner + i, y, to.at(o, e, i));
  return {};
}

Status split(Call& c) {
  const std::size_t axis = axis_of(c);
  std::size_t at = 0;
  for (Array& part : c.results) {
    along_axis(c.in(0), axis, part, axis, [at](std::size_t j) { return at + j; });
    at += static_cast<std::size_t>(part.shape[axis]);
  }
  return {};
}

Status transpose(Call& c) {
  const Array& x = c.in(0);
  Array& y = c.out();
  const auto n = static_cast<std::int64_t>(x.shape.size());
  std::int64_t a = integer_attr(c.op, "a", 0), b = integer_attr(c.op, "b", 0);
  std::vector<std::size_t> strides = strides_of(x.shape);
  std::swap(strides[static_cast<std::size_t>(a < 0 ? a + n : a)], strides[static_cast<std::size_t>(b < 0 ? b + n : b)]);
  for_each_index(y.shape, [&](const Shape& index, std::size_t flat) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < index.size(); ++i) at += static_cast<std::size_t>(index[i]) * strides[i];
    copy_element(x, at, y, flat);
  });
  return {};
}

Status repeat_axis(Call& c) {
  const std::size_t axis = axis_of(c);
  const auto times = static_cast<std::size_t>(integer_attr(c.op, "times", 1));
  along_axis(c.in(0), axis, c.out(), axis, [times](std::size_t j) { return j / times; });
  return {};
}

Status expand(Call& c) {
  const Broadcast at(c.in(0).shape, c.out().shape);
  for_each_index(c.out().shape, [&](const Shape& index, std::size_t flat) { copy_element(c.in(0), at(index), c.out(), flat); });
  return {};
}

Status pad(Call& c) {
  const Array& x = c.in(0);
  Array& y = c.out();
  const std::size_t axis = axis_of(c);
  const double value = real_attr(c.op, "value", 0);
  const AxisView from(x.shape, axis), to(y.shape, axis);
  const auto before = static_cast<std::size_t>(integer_attr(c.op, "before", 0));
  if (is_float(y.dtype)) y.reals.assign(y.reals.size(), round_to(y.dtype, value));
  else y.integers.assign(y.integers.size(), static_cast<std::int64_t>(value));
  for (std::size_t o = 0; o < from.outer; ++o)
    for (std::size_t j = 0; j < from.n; ++j)
      for (std::size_t i = 0; i < from.inner; ++i) copy_element(x, from.at(o, j, i), y, to.at(o, before + j, i));
  return {};
}

}  // namespace modelc::graph::eval::reference

// Views and copies: what changes shape or order, or the dtype, and computes nothing.
#include "frontend/graph/ops/rules.h"

namespace modelc::graph::rules {

namespace {

DimId product(DimTable& dims, const std::vector<DimId>& shape) {
  DimId p = dims.constant(1);
  for (DimId d : shape) p = dims.mul(p, d);
  return p;
}

// All operands: one dtype, one rank, equal sizes but for one axis (or none: skip < 0).
void alike(Rule& r, int count, int skip) {
  for (int i = 0; i < count && !r.failed(); ++i) {
    r.tensor(i);
    r.rank_is(i, r.rank(0));
    r.require(r.type(i).dtype == r.type(0).dtype, i, -1, r.operand(i) + " is " + r.text(i) + ", " + r.operand(0) + " " + r.text(0));
    for (int axis = 0; axis < static_cast<int>(r.rank(0)) && !r.failed(); ++axis)
      if (axis != skip) r.same(i, axis, 0, axis);
  }
}

// The first operand's type; its index bound only if all have it.
Type common(const Rule& r, int count) {
  Type t = r.type(0);
  for (int i = 1; i < count; ++i)
    if (r.type(i).index_bound != t.index_bound) t.index_bound.reset();
  return t;
}

}  // namespace

ShapeResult reshape(const ShapeQuery& q) {
  Rule r(q);
  r.tensor(0);
  r.require(q.wanted != nullptr, -1, -1, "the result's type is not known");
  if (r.failed()) return r.result(Type{});
  Type t = r.type(0);
  t.shape = q.wanted->shape;
  const DimId have = product(q.dims, r.type(0).shape), want = product(q.dims, t.shape);
  r.require(DimTable::same(have, want), 0, -1,
            shape_text(r.type(0).shape, q.dims) + " has " + q.dims.text(have) + " elements, " + shape_text(t.shape, q.dims) + " " +
                q.dims.text(want));
  return r.result(std::move(t));
}

ShapeResult cast(const ShapeQuery& q) {
  Rule r(q);
  r.tensor(0);
  const std::string given = string_attr(q.op, "dtype", "");
  const std::optional<DType> to = dtype_from_name(given);
  r.require(to && is_value_dtype(*to), -1, -1, "dtype \"" + given + "\" is none that a value can have");
  Type t = tensor(to.value_or(DType::f32), r.type(0).shape);
  if (q.wanted != nullptr && to == DType::i32) t.index_bound = q.wanted->index_bound;
  return r.result(std::move(t));
}

ShapeResult slice(const ShapeQuery& q) {
  Rule r(q);
  r.rank_at_least(0, 1);
  const std::size_t axis = r.axis(0);
  const bool drop = boolean_attr(q.op, "drop", false);
  const std::int64_t step = integer_attr(q.op, "step", 1);
  r.require(step >= 1, -1, -1, "step is " + std::to_string(step) + ", wanted at least 1");
  if (drop)
    r.require(!q.op.attrs.contains("stop") && !q.op.attrs.contains("step") && q.op.attrs.contains("start"), -1, -1,
              "an axis that is dropped takes start alone");
  if (r.failed()) return r.result(Type{});

  const DimId size = r.dim(0, static_cast<int>(axis));
  auto bound = [&](const char* name, DimId absent) {
    const auto it = q.op.attrs.find(name);
    if (it == q.op.attrs.end()) return absent;
    const std::optional<DimId> d = dim_of(it->second, q.dims);
    r.require(d && *d != DimTable::too_large, -1, -1, std::string(name) + " is no dim: \"" + string_attr(q.op, name, "") + "\"");
    return d.value_or(DimTable::too_large);
  };
  const DimId start = bound("start", q.dims.constant(0));
  const DimId stop = drop ? q.dims.add(start, q.dims.constant(1)) : bound("stop", size);

  // Whatever the axes' sizes, 0 ≤ start < stop ≤ size, as far as it can be seen; the rest is checked when it runs.
  const std::string range = "[" + q.dims.text(start) + " .. " + q.dims.text(stop) + "] of " + r.axis_name(0, static_cast<int>(axis)) +
                            " of x, which is " + q.dims.text(size);
  const auto begin = q.dims.value(start), count = q.dims.value(q.dims.sub(stop, start)), left = q.dims.value(q.dims.sub(size, stop));
  r.require(!begin || *begin >= 0, 0, static_cast<int>(axis), range + ": starts before 0");
  r.require(!count || *count >= 1, 0, static_cast<int>(axis), range + ": nothing is left");
  r.require(!left || *left >= 0, 0, static_cast<int>(axis), range + ": ends beyond it");
  if (r.failed()) return r.result(Type{});

  Type t = r.type(0);
  const auto place = t.shape.begin() + static_cast<std::ptrdiff_t>(axis);
  if (drop) t.shape.erase(place);
  else                                                                        // ceil((stop - start) / step)
    *place = q.dims.floor_div(q.dims.add(q.dims.sub(stop, start), q.dims.constant(step - 1)), step);
  return r.result(std::move(t));
}

ShapeResult concat(const ShapeQuery& q) {
  Rule r(q);
  r.rank_at_least(0, 1);
  const int count = static_cast<int>(q.operands.size());
  const int axis = static_cast<int>(r.axis(0));
  alike(r, count, axis);
  if (r.failed()) return r.result(Type{});
  Type t = common(r, count);
  for (int i = 1; i < count; ++i) t.shape[axis] = q.dims.add(t.shape[axis], r.dim(i, axis));
  return r.result(std::move(t));
}

ShapeResult stack(const ShapeQuery& q) {
  Rule r(q);
  r.tensor(0);
  const int count = static_cast<int>(q.operands.size());
  alike(r, count, -1);
  const auto n = static_cast<std::int64_t>(r.rank(0)) + 1;                    // axes of the result
  const std::int64_t axis = integer_attr(q.op, "axis", 0);
  r.require(axis >= -n && axis < n, -1, -1,
            "axis " + std::to_string(axis) + " does not exist, the result has " + std::to_string(n) + " axes");
  if (r.failed()) return r.result(Type{});
  Type t = common(r, count);
  t.shape.insert(t.shape.begin() + (axis < 0 ? axis + n : axis), q.dims.constant(count));
  return r.result(std::move(t));
}

ShapeResult split(const ShapeQuery& q) {
  Rule r(q);
  r.rank_at_least(0, 1);
  const int axis = static_cast<int>(r.axis(0));
  const auto it = q.op.attrs.find("sizes");
  const auto* sizes = it == q.op.attrs.end() ? nullptr : std::get_if<std::vector<std::int64_t>>(&it->second);
  r.require(sizes != nullptr && !sizes->empty(), -1, -1, "sizes are missing");
  if (r.failed()) return r.result(Type{});
  DimId total;
  std::string sum;
  std::vector<Type> parts;
  for (std::int64_t s : *sizes) {
    r.require(s >= 1, -1, -1, "a size is " + std::to_string(s) + ", wanted at least 1");
    total = q.dims.add(total, q.dims.constant(s));
    sum += (sum.empty() ? "" : " + ") + std::to_string(s);
    parts.push_back(r.type(0));
    parts.back().shape[axis] = q.dims.constant(s);
  }
  r.is(0, axis, total, "the sizes " + sum + " add up to");
  return r.result(std::move(parts));
}

ShapeResult transpose(const ShapeQuery& q) {
  Rule r(q);
  r.tensor(0);
  const auto n = static_cast<std::int64_t>(r.rank(0));
  std::int64_t axes[2] = {integer_attr(q.op, "a", 0), integer_attr(q.op, "b", 0)};
  for (std::int64_t& a : axes) {
    r.require(a >= -n && a < n, 0, -1, "axis " + std::to_string(a) + " does not exist, x has " + std::to_string(n) + " axes");
    if (a < 0) a += n;
  }
  Type t = r.type(0);
  if (!r.failed()) std::swap(t.shape[axes[0]], t.shape[axes[1]]);
  return r.result(std::move(t));
}

ShapeResult repeat_axis(const ShapeQuery& q) {
  Rule r(q);
  r.rank_at_least(0, 1);
  const std::size_t axis = r.axis(0);
  const std::int64_t times = integer_attr(q.op, "times", 0);
  r.require(times >= 1, -1, -1, "times is " + std::to_string(times) + ", wanted at least 1");
  Type t = r.type(0);
  if (!r.failed()) t.shape[axis] = q.dims.mul(t.shape[axis], q.dims.constant(times));
  return r.result(std::move(t));
}

ShapeResult expand(const ShapeQuery& q) {
  Rule r(q);
  r.tensor(0);
  r.require(q.wanted != nullptr, -1, -1, "the result's type is not known");
  if (r.failed()) return r.result(Type{});
  Type t = r.type(0);
  const std::vector<DimId> from = t.shape;
  t.shape = q.wanted->shape;
  r.require(from.size() <= t.shape.size(), 0, -1,
            "x has " + std::to_string(from.size()) + " axes, the result " + shape_text(t.shape, q.dims));
  for (std::size_t back = 1; back <= from.size() && !r.failed(); ++back) {
    const DimId have = from[from.size() - back], want = t.shape[t.shape.size() - back];
    r.require(DimTable::same(have, want) || is_one(q.dims, have), 0, static_cast<int>(from.size() - back),
              r.axis_name(0, -static_cast<int>(back)) + " of x is " + q.dims.text(have) + ", of the result " + q.dims.text(want) +
                  "; sizes must be equal, or literally 1");
  }
  return r.result(std::move(t));
}

ShapeResult pad(const ShapeQuery& q) {
  Rule r(q);
  r.number(0);
  r.rank_at_least(0, 1);
  const std::size_t axis = r.axis(0);
  const std::int64_t before = integer_attr(q.op, "before", 0), after = integer_attr(q.op, "after", 0);
  r.require(before >= 0 && after >= 0, -1, -1, "before and after are not negative: a slice cuts");
  const double value = real_attr(q.op, "value", 0);
  r.require(
      is_float(r.type(0).dtype) || (value >= -0x1p31 && value < 0x1p31 && value == static_cast<double>(static_cast<std::int64_t>(value))),
      -1, -1, "value must be a whole number, as x is " + r.text(0));
  Type t = tensor(r.type(0).dtype, r.type(0).shape);
  if (!r.failed()) t.shape[axis] = q.dims.add(t.shape[axis], q.dims.add(q.dims.constant(before), q.dims.constant(after)));
  return r.result(std::move(t));
}

}  // namespace modelc::graph::rules

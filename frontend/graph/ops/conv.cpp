// Convolutions, in PyTorch's layouts: x [batch, c, n…], w [o, c/groups, k…]; of the transposed one w [c, o/groups, k].
#include "frontend/graph/ops/rules.h"

namespace modelc::graph::rules {

namespace {

enum Operand { x_, w_, b_ };

struct Settings {
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};

// Operands of 2 + `spatial` axes and settings in range.
Settings checked(Rule& r, std::size_t spatial) {
  const Op& op = r.query().op;
  const Settings s{integer_attr(op, "stride", 1), integer_attr(op, "padding", 0), integer_attr(op, "dilation", 1),
                   integer_attr(op, "groups", 1)};
  for (int i : {x_, w_}) {
    r.floats(i);
    r.rank_is(i, 2 + spatial);
  }
  if (r.has(b_)) {
    r.floats(b_);
    r.rank_is(b_, 1);
  }
  const auto at_least = [&](std::string_view name, std::int64_t value, std::int64_t least) {
    r.require(value >= least, -1, -1, std::string(name) + " is " + std::to_string(value) + ", wanted at least " + std::to_string(least));
  };
  at_least("stride", s.stride, 1);
  at_least("padding", s.padding, 0);
  at_least("dilation", s.dilation, 1);
  at_least("groups", s.groups, 1);
  return s;
}

// A number of channels that falls evenly on the groups.
void groups_divide(Rule& r, int operand, int axis, std::int64_t groups, std::string_view what) {
  const DimId channels = r.dim(operand, axis);
  if (r.failed()) return;
  r.require(r.dims().exact_div(channels, r.dims().constant(groups)).has_value(), operand, axis,
            std::string(what) + " are " + r.dims().text(channels) + ", no multiple of groups, which is " + std::to_string(groups));
}

// What a kernel of k spans: dilation · (k - 1) + 1.
DimId span_of(DimTable& dims, DimId k, std::int64_t dilation) {
  return dims.add(dims.mul(dims.constant(dilation), dims.sub(k, dims.constant(1))), dims.constant(1));
}

DimId twice(DimTable& dims, std::int64_t n) { return dims.mul(dims.constant(2), dims.constant(n)); }

void not_too_large(Rule& r, DimId d, int axis) {
  r.require(d != DimTable::too_large, x_, axis, "the size of " + r.axis_name(x_, axis) + " of the result overflows");
}

ShapeResult conv(const ShapeQuery& query, std::size_t spatial) {
  Rule r(query);
  DimTable& dims = r.dims();
  const Settings s = checked(r, spatial);
  groups_divide(r, x_, 1, s.groups, "the channels of x");
  groups_divide(r, w_, 0, s.groups, "the channels of w's result");
  if (!r.failed())
    r.is(x_, 1, dims.mul(r.dim(w_, 1), dims.constant(s.groups)), s.groups == 1 ? "w wants" : "w wants groups · its axis 1, which is");
  if (r.has(b_)) r.same(b_, 0, w_, 0);
  if (r.failed()) return r.result(Type{});

  std::vector<DimId> shape = {r.dim(x_, 0), r.dim(w_, 0)};
  for (int axis = 2; axis < static_cast<int>(2 + spatial); ++axis) {
    const DimId padded = dims.add(r.dim(x_, axis), twice(dims, s.padding));
    const DimId span = span_of(dims, r.dim(w_, axis), s.dilation);
    const DimId left = dims.sub(padded, span);                                // places of the kernel but the first
    not_too_large(r, left, axis);
    const auto known = dims.value(left);
    r.require(!known || *known >= 0, x_, axis,
              r.axis_name(x_, axis) + " of x with padding is " + dims.text(padded) + ", and the kernel spans " + dims.text(span));
    if (r.failed()) return r.result(Type{});
    shape.push_back(dims.add(dims.floor_div(left, s.stride), dims.constant(1)));
  }
  return r.result(tensor(r.type(x_).dtype, std::move(shape)));
}

}  // namespace

ShapeResult conv1d(const ShapeQuery& query) { return conv(query, 1); }
ShapeResult conv2d(const ShapeQuery& query) { return conv(query, 2); }
ShapeResult conv3d(const ShapeQuery& query) { return conv(query, 3); }

ShapeResult conv_transpose1d(const ShapeQuery& query) {
  Rule r(query);
  DimTable& dims = r.dims();
  const Settings s = checked(r, 1);
  groups_divide(r, x_, 1, s.groups, "the channels of x");
  r.same(x_, 1, w_, 0);
  const DimId out = r.failed() ? DimTable::too_large : dims.mul(r.dim(w_, 1), dims.constant(s.groups));
  if (r.has(b_) && !r.failed()) r.is(b_, 0, out, "the result's channels are");
  if (r.failed()) return r.result(Type{});
  // (n - 1) · stride + span - 2 · padding
  const DimId steps = dims.mul(dims.sub(r.dim(x_, 2), dims.constant(1)), dims.constant(s.stride));
  const DimId length = dims.sub(dims.add(steps, span_of(dims, r.dim(w_, 2), s.dilation)), twice(dims, s.padding));
  not_too_large(r, length, 2);
  not_too_large(r, out, 1);
  const auto known = dims.value(length);
  r.require(!known || *known >= 1, x_, 2, "the padding cuts all away: the last axis of the result is " + dims.text(length));
  return r.result(tensor(r.type(x_).dtype, {r.dim(x_, 0), out, length}));
}

}  // namespace modelc::graph::rules

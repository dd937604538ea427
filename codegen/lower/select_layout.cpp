// Views and copies: all are one kernel, a copy whose sides may be read or written in another order (plan::Rearrange).
// What changes no element's place is a view. Slices that lie together become views after all other passes (alias_slices).
#include <fmt/format.h>

#include "codegen/lower/select_parts.h"
#include "frontend/graph/types.h"

namespace modelc::lower {

namespace {

using graph::DimId;
using graph::OpKind;
using plan::Layout;

Layout slice_of(std::size_t axis, DimId start, DimId stop, std::int64_t step = 1) {
  Layout l;
  l.kind = Layout::Kind::slice;
  l.axis = static_cast<int>(axis);
  l.start = start;
  l.stop = stop;
  l.step = step;
  return l;
}

DimId count(graph::DimTable& dims, const std::vector<DimId>& shape) {
  DimId n = dims.constant(1);
  for (DimId d : shape) n = dims.mul(n, d);
  return n;
}

void make_view(Draft& d, const Node& n) {
  d.values[n.out[0]].source = DraftValue::Source::view;
  d.values[n.out[0]].base = *n.in[0];
}

Node part_of(const Node& n, std::size_t result, Layout read) {
  Node one = n;
  one.out = {n.out[result]};
  one.parts = {{{}, std::move(read), {}}};
  return one;
}

void slice(Draft& d, const graph::Op& op, const Node& n, std::vector<Node>& nodes) {
  const std::vector<DimId> shape = d.values[*n.in[0]].type.shape;
  const std::size_t axis = graph::axis_attr(op, shape.size());
  const auto bound = [&](const char* name, DimId absent) {
    const auto it = op.attrs.find(name);
    return it == op.attrs.end() ? absent : graph::dim_of(it->second, *d.dims).value_or(absent);
  };
  const bool drop = graph::boolean_attr(op, "drop", false);
  const std::int64_t step = graph::integer_attr(op, "step", 1);
  const DimId zero = d.dims->constant(0), start = bound("start", zero);
  const DimId stop = drop ? d.dims->add(start, d.dims->constant(1)) : bound("stop", shape[axis]);
  if (step == 1 && start == zero && stop == shape[axis]) return make_view(d, n);
  nodes.push_back(part_of(n, 0, slice_of(axis, start, stop, step)));
}

// The parts one after another along an axis; stack: each at its own place of a new one.
void join(Draft& d, const graph::Op& op, Node n, std::vector<Node>& nodes) {
  const bool stacked = op.kind == OpKind::stack;
  const std::size_t axis = graph::axis_attr(op, d.values[n.out[0]].type.shape.size(), stacked ? 0 : -1);
  DimId at = d.dims->constant(0);
  for (const auto& v : n.in) {
    const DimId end = d.dims->add(at, stacked ? d.dims->constant(1) : d.values[*v].type.shape[axis]);
    n.parts.push_back({{}, {}, slice_of(axis, at, end)});
    at = end;
  }
  if (n.in.size() == 1) return make_view(d, n);
  nodes.push_back(std::move(n));
}

void split(Draft& d, const graph::Op& op, const Node& n, std::vector<Node>& nodes) {
  const std::size_t axis = graph::axis_attr(op, d.values[*n.in[0]].type.shape.size());
  DimId at = d.dims->constant(0);
  for (std::size_t i = 0; i < n.out.size(); ++i) {
    const DimId end = d.dims->add(at, d.values[n.out[i]].type.shape[axis]);
    nodes.push_back(part_of(n, i, slice_of(axis, at, end)));
    at = end;
  }
}

void one_hot(Draft& d, const Node& n, std::vector<Node>& nodes) {
  const std::vector<DimId> shape = d.values[n.out[0]].type.shape;
  DraftValue numbers, column = d.values[*n.in[0]];
  numbers.type = graph::tensor(DType::f32, {shape.back()});
  numbers.hint = "classes";
  column.source = DraftValue::Source::view;
  column.base = *n.in[0];
  column.name.clear();
  column.stage.clear();
  column.type.shape.push_back(d.dims->constant(1));
  Node fill;
  fill.kind = NodeKind::fill;
  fill.where = n.where;
  fill.out = {d.add(numbers)};
  Node equal = n;
  equal.kind = NodeKind::map;
  equal.in = {d.add(column), fill.out[0]};
  plan::MapNode a, b, head;
  b.input = 1;
  head.kind = plan::MapNode::Kind::op;
  head.op = OpKind::equal;
  head.operands = {0, 1};
  equal.kernel.nodes = {a, b, head};
  nodes.push_back(std::move(fill));
  nodes.push_back(std::move(equal));
}

}  // namespace

bool is_layout(OpKind kind) {
  switch (kind) {
    case OpKind::slice:
    case OpKind::concat:
    case OpKind::stack:
    case OpKind::split:
    case OpKind::transpose:
    case OpKind::repeat_axis:
    case OpKind::expand:
    case OpKind::pad:
    case OpKind::one_hot: return true;
    default: return false;
  }
}

std::string layout_refusal(const Draft& d, const graph::Op& op) {
  for (const auto& v : op.operands) {
    const DType t = d.function->values[v->index].type.dtype;
    if (t != DType::f32 && t != DType::i32 && t != DType::boolean) return fmt::format(" on {}", name(t));
  }
  // Whole numbers are compared as f32, which has all of them up to here.
  if (op.kind == OpKind::one_hot && graph::integer_attr(op, "count", 1) > (1 << 24)) return " with more than 2^24 classes";
  return "";
}

void select_layout(Draft& d, const graph::Op& op, const Node& n, std::vector<Node>& nodes) {
  const std::vector<DimId> from = d.values[*n.in[0]].type.shape, to = d.values[n.out[0]].type.shape;
  Layout read;
  switch (op.kind) {
    case OpKind::slice: return slice(d, op, n, nodes);
    case OpKind::concat:
    case OpKind::stack: return join(d, op, n, nodes);
    case OpKind::split: return split(d, op, n, nodes);
    case OpKind::one_hot: return one_hot(d, n, nodes);
    case OpKind::transpose: {
      const auto rank = static_cast<std::int64_t>(from.size());
      const std::int64_t a = graph::integer_attr(op, "a", 0), b = graph::integer_attr(op, "b", 0);
      read.kind = Layout::Kind::transpose;
      read.axis = static_cast<int>(a < 0 ? a + rank : a);
      read.other = static_cast<int>(b < 0 ? b + rank : b);
      if (read.axis == read.other) return make_view(d, n);
      break;
    }
    case OpKind::repeat_axis:
      read.kind = Layout::Kind::repeat;
      read.axis = static_cast<int>(graph::axis_attr(op, from.size()));
      read.step = graph::integer_attr(op, "times", 1);
      if (read.step == 1) return make_view(d, n);
      break;
    case OpKind::expand:
      if (count(*d.dims, from) == count(*d.dims, to)) return make_view(d, n);
      read.kind = Layout::Kind::expand;
      read.shape = to;
      break;
    default: {                                               // pad
      const std::size_t axis = graph::axis_attr(op, from.size());
      const DimId begin = d.dims->constant(graph::integer_attr(op, "before", 0));
      Node padded = part_of(n, 0, {});
      padded.parts[0].write = slice_of(axis, begin, d.dims->add(begin, from[axis]));
      padded.background = graph::real_attr(op, "value", 0);
      nodes.push_back(std::move(padded));
      return;
    }
  }
  nodes.push_back(part_of(n, 0, std::move(read)));
}

}  // namespace modelc::lower

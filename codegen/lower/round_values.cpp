// Where values are rounded by the policy (graph/rounding.h), once kernels are joined: inside a kernel where one makes them, else
// right after the step. The plan holds it as data; a model in mode exact passes over it.
#include "codegen/lower/draft.h"

namespace modelc::lower {

using plan::MapNode;

namespace {

MapNode rounding(std::uint32_t operand, DType to) {
  MapNode n;
  n.kind = MapNode::Kind::op;
  n.op = graph::OpKind::cast;
  n.dtype = to;
  n.operands = {operand};
  return n;
}

}  // namespace

void round_result(plan::MapKernel& kernel, DType to) {
  if (to != DType::f32) kernel.nodes.push_back(rounding(static_cast<std::uint32_t>(kernel.nodes.size() - 1), to));
}

void round_input(plan::MapKernel& kernel, std::uint32_t input, DType to) {
  if (to == DType::f32) return;
  std::vector<MapNode> nodes;
  std::vector<std::uint32_t> place(kernel.nodes.size());
  for (std::uint32_t i = 0; i < kernel.nodes.size(); ++i) {
    MapNode n = std::move(kernel.nodes[i]);
    for (std::uint32_t& o : n.operands) o = place[o];
    const bool is_it = n.kind == MapNode::Kind::input && n.input == input;
    nodes.push_back(std::move(n));
    if (is_it) nodes.push_back(rounding(static_cast<std::uint32_t>(nodes.size() - 1), to));
    place[i] = static_cast<std::uint32_t>(nodes.size() - 1);
  }
  kernel.nodes = std::move(nodes);
}

void round_view(Draft& d, ValueIndex v, std::vector<Node>& nodes) {
  DraftValue seen = d.values[v];
  seen.name.clear(), seen.stage.clear();
  seen.rounded = DType::f32;
  Node n;
  n.kind = NodeKind::map;
  n.in = {d.add(std::move(seen))};
  n.kernel.nodes.emplace_back();
  n.out = {v};
  d.values[v].source = DraftValue::Source::node;
  d.values[v].base = 0;
  nodes.push_back(std::move(n));
}

void round_in_kernels(Draft& d) {
  for_each_block(d.nodes, [&](std::vector<Node>& nodes) {
    for (Node& n : nodes) {
      if (n.kind != NodeKind::map && n.kind != NodeKind::linear_map) continue;
      DType& to = d.values[n.out[0]].rounded;
      round_result(n.kernel, to);
      to = DType::f32;
    }
  });
}

}  // namespace modelc::lower

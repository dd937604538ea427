// rope(x, angles) needs cos and sin of every angle, for every head and again in every layer. This pass makes them values
// of their own, magnitude · cos(angles) and magnitude · sin(angles): what depends on positions alone is then hoisted and
// computed once a step. Stands before fuse_maps, so that the angles' own arithmetic joins the same kernels.
#include <map>

#include "codegen/lower/draft.h"

namespace modelc::lower {

namespace {

using graph::OpKind;
using plan::MapNode;

Node table(Draft& d, ValueIndex angles, OpKind op, double magnitude, const Node& rope) {
  Node n;
  n.kind = NodeKind::map;
  n.where = rope.where;
  n.in = {angles};
  MapNode in;
  MapNode f;
  f.kind = MapNode::Kind::op;
  f.op = op;
  f.operands = {0};
  n.kernel.nodes = {in, f};
  if (magnitude != 1) {
    MapNode m;
    m.kind = MapNode::Kind::literal;
    m.literal = magnitude;
    MapNode mul;
    mul.kind = MapNode::Kind::op;
    mul.op = OpKind::mul;
    mul.operands = {1, 2};
    n.kernel.nodes.push_back(m);
    n.kernel.nodes.push_back(mul);
  }
  DraftValue v;
  v.type = d.values[angles].type;
  v.type.dtype = DType::f32;
  v.name = op == OpKind::cos ? "rope_cos" : "rope_sin";
  n.out = {d.add(v)};
  return n;
}

}  // namespace

void expand_rope_tables(Draft& d) {
  for_each_block(d.nodes, [&](std::vector<Node>& nodes) {
    std::vector<Node> result;
    std::map<std::pair<ValueIndex, double>, std::pair<ValueIndex, ValueIndex>> made;     // q and k share theirs
    for (Node& n : nodes) {
      if (n.kind == NodeKind::rope) {
        const ValueIndex angles = *n.in[1];
        auto [it, fresh] = made.try_emplace({angles, n.magnitude});
        if (fresh) {
          result.push_back(table(d, angles, OpKind::cos, n.magnitude, n));
          it->second.first = result.back().out[0];
          result.push_back(table(d, angles, OpKind::sin, n.magnitude, n));
          it->second.second = result.back().out[0];
        }
        n.in = {n.in[0], it->second.first, it->second.second};
      }
      result.push_back(std::move(n));
    }
    nodes = std::move(result);
  });
}

}  // namespace modelc::lower

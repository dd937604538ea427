// x · 1, x / 1 and x + 0 disappear (nn's Embedding multiplies by a scale that is 1 for most models); the scale of a table
// look-up moves into it. Runs first of all passes, so that no later one sees a kernel that does nothing.
#include <algorithm>

#include "codegen/lower/draft.h"

namespace modelc::lower {

namespace {

using graph::OpKind;
using plan::MapNode;

// A map of one operation on one value and one number: that number.
std::optional<double> scalar_of(const Node& n) {
  if (n.kind != NodeKind::map || n.in.size() != 1 || n.kernel.nodes.size() != 3) return std::nullopt;
  const MapNode& head = n.kernel.nodes.back();
  if (head.operands.size() != 2) return std::nullopt;
  const MapNode& a = n.kernel.nodes[head.operands[0]];
  const MapNode& b = n.kernel.nodes[head.operands[1]];
  const bool commutes = head.op == OpKind::mul || head.op == OpKind::add;
  if (b.kind == MapNode::Kind::literal && a.kind == MapNode::Kind::input) return b.literal;
  if (commutes && a.kind == MapNode::Kind::literal && b.kind == MapNode::Kind::input) return a.literal;
  return std::nullopt;
}

bool changes_nothing(OpKind op, double v) {
  return ((op == OpKind::mul || op == OpKind::div) && v == 1.0) || ((op == OpKind::add || op == OpKind::sub) && v == 0.0);
}

void fold(Draft& d, std::vector<Node>& nodes) {
  const std::vector<int> uses = count_uses(d);
  std::vector<Node> kept;
  for (Node& n : nodes) {
    const auto scalar = scalar_of(n);
    if (!scalar) {
      kept.push_back(std::move(n));
      continue;
    }
    const OpKind op = n.kernel.nodes.back().op;
    const ValueIndex x = d.root(*n.in[0]), out = n.out[0];
    const bool same = d.values[out].rounded == DType::f32 || d.values[out].rounded == d.values[x].rounded;
    if (changes_nothing(op, *scalar) && d.values[*n.in[0]].type == d.values[out].type && same) {
      d.values[out].rounded = DType::f32;
      d.values[out].source = DraftValue::Source::view;
      d.values[out].base = *n.in[0];
      continue;
    }
    const auto producer = std::find_if(kept.begin(), kept.end(), [&](const Node& k) { return k.kind == NodeKind::take && k.out[0] == x; });
    if (op == OpKind::mul && producer != kept.end() && uses[x] == 1 && !is_named(d, x) && *n.in[0] == x &&
        d.values[x].rounded == DType::f32) {
      producer->scale *= *scalar;
      producer->out[0] = out;
      producer->replaces.insert(producer->replaces.end(), n.replaces.begin(), n.replaces.end());
      continue;
    }
    kept.push_back(std::move(n));
  }
  nodes = std::move(kept);
}

}  // namespace

void fold_scalars(Draft& d) {
  for_each_block(d.nodes, [&](std::vector<Node>& nodes) { fold(d, nodes); });
}

}  // namespace modelc::lower

// An elementwise value that only one map kernel reads is computed inside that kernel. Named values stay, since hooks see
// them; in what runs once (constants, tables of a step) names do not count.
#include <algorithm>

#include "codegen/lower/draft.h"
#include "runtime/device/map.h"

namespace modelc::lower {

namespace {

using plan::MapNode;

// Puts the kernel of `inner`, whose result is rounded to a type, in the place of input `at` of `outer`.
void inline_kernel(Node& outer, std::uint32_t at, const Node& inner, DType rounded) {
  plan::MapKernel made = inner.kernel;
  round_result(made, rounded);
  std::vector<std::optional<ValueIndex>> in;
  std::vector<std::uint32_t> outer_input(outer.in.size()), inner_input(inner.in.size());
  const auto place = [&](std::optional<ValueIndex> v) {
    const auto it = std::find(in.begin(), in.end(), v);
    if (it != in.end()) return static_cast<std::uint32_t>(it - in.begin());
    in.push_back(v);
    return static_cast<std::uint32_t>(in.size() - 1);
  };
  for (std::uint32_t i = 0; i < outer.in.size(); ++i)
    if (i != at) outer_input[i] = place(outer.in[i]);
  for (std::uint32_t i = 0; i < inner.in.size(); ++i) inner_input[i] = place(inner.in[i]);

  std::vector<MapNode> nodes;
  std::vector<std::uint32_t> outer_node(outer.kernel.nodes.size());
  std::optional<std::uint32_t> result;           // of the inner kernel, once it is there
  for (std::uint32_t i = 0; i < outer.kernel.nodes.size(); ++i) {
    MapNode n = outer.kernel.nodes[i];
    if (n.kind == MapNode::Kind::input && n.input == at) {
      if (!result) {
        const auto first = static_cast<std::uint32_t>(nodes.size());
        for (MapNode m : made.nodes) {
          if (m.kind == MapNode::Kind::input) m.input = inner_input[m.input];
          for (std::uint32_t& o : m.operands) o += first;
          nodes.push_back(m);
        }
        result = static_cast<std::uint32_t>(nodes.size() - 1);
      }
      outer_node[i] = *result;
      continue;
    }
    if (n.kind == MapNode::Kind::input) n.input = outer_input[n.input];
    for (std::uint32_t& o : n.operands) o = outer_node[o];
    outer_node[i] = static_cast<std::uint32_t>(nodes.size());
    nodes.push_back(n);
  }
  outer.kernel.nodes = std::move(nodes);
  outer.in = std::move(in);
  outer.replaces.insert(outer.replaces.begin(), inner.replaces.begin(), inner.replaces.end());
}

// An input read through a view may be inlined only if the view changes nothing about the elements' places and types.
bool reads_directly(const Draft& d, ValueIndex v) {
  const graph::Type &seen = d.values[v].type, &made = d.values[d.root(v)].type;
  return seen.shape == made.shape && (seen.dtype == DType::i32) == (made.dtype == DType::i32);
}

bool fuse_one(Draft& d, std::vector<Node>& nodes, bool keep_names) {
  const std::vector<int> uses = count_uses(d);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node& outer = nodes[i];
    if (outer.kind != NodeKind::map) continue;
    for (std::uint32_t k = 0; k < outer.in.size(); ++k) {
      const ValueIndex x = d.root(*outer.in[k]);
      if (uses[x] != 1 || !reads_directly(d, *outer.in[k]) || (keep_names && is_named(d, x))) continue;
      const auto inner = std::find_if(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(i),
                                      [&](const Node& n) { return n.kind == NodeKind::map && n.out[0] == x; });
      if (inner == nodes.begin() + static_cast<std::ptrdiff_t>(i)) continue;
      if (outer.in.size() + inner->in.size() - 1 > static_cast<std::size_t>(MapArgs::max_inputs)) continue;
      inline_kernel(outer, k, *inner, d.values[x].rounded);
      nodes.erase(inner);
      return true;
    }
  }
  return false;
}

}  // namespace

void fuse_maps(Draft& d, bool keep_names) {
  for_each_block(d.nodes, [&](std::vector<Node>& nodes) {
    while (fuse_one(d, nodes, keep_names)) {}
  });
}

}  // namespace modelc::lower

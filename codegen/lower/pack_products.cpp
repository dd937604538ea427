// Products on one input become one product of several blocks of rows: q, k and v; gate and up. The input is then read once
// and the threads meet once. A product depends only on its input and on weights, so it may move up to the first of its kind.
#include "codegen/lower/draft.h"

namespace modelc::lower {

namespace {

void pack(const Draft& d, std::vector<Node>& nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind != NodeKind::linear) continue;
    for (std::size_t k = i + 1; k < nodes.size();) {
      const bool same = nodes[k].kind == NodeKind::linear && d.root(*nodes[k].in[0]) == d.root(*nodes[i].in[0]) &&
                        d.values[*nodes[k].in[0]].type.shape.back() == d.values[*nodes[i].in[0]].type.shape.back();
      if (!same) {
        ++k;
        continue;
      }
      Node& to = nodes[i];
      Node& from = nodes[k];
      to.weights.insert(to.weights.end(), from.weights.begin(), from.weights.end());
      to.biases.insert(to.biases.end(), from.biases.begin(), from.biases.end());
      to.out.insert(to.out.end(), from.out.begin(), from.out.end());
      to.replaces.insert(to.replaces.end(), from.replaces.begin(), from.replaces.end());
      nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
}

}  // namespace

void pack_products(Draft& d) {
  for_each_block(d.nodes, [&](std::vector<Node>& nodes) { pack(d, nodes); });
}

}  // namespace modelc::lower

// h = x + y followed by the RMS norm of h: one kernel that reads x and y once and writes both. Stands after fuse_products,
// which takes sums that belong to a product.
#include <algorithm>

#include "codegen/lower/draft.h"

namespace modelc::lower {

namespace {

bool is_plain_sum(const Draft& d, const Node& n) {
  if (n.kind != NodeKind::map || n.in.size() != 2 || n.kernel.nodes.size() != 3) return false;
  if (n.kernel.nodes.back().op != graph::OpKind::add) return false;
  const auto& shape = d.values[n.out[0]].type.shape;
  return std::all_of(n.in.begin(), n.in.end(),
                     [&](const auto& v) { return d.values[*v].type.shape == shape && d.values[d.root(*v)].type.dtype == DType::f32; });
}

}  // namespace

void fuse_residual_norm(Draft& d) {
  for_each_block(d.nodes, [&](std::vector<Node>& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!is_plain_sum(d, nodes[i])) continue;
      const ValueIndex sum = nodes[i].out[0];
      if (d.values[sum].rounded != DType::f32) continue;     // the norm is of the rounded sum
      // The norm may move up to the sum: it needs nothing but the sum and a weight.
      const auto norm = std::find_if(nodes.begin() + static_cast<std::ptrdiff_t>(i) + 1, nodes.end(), [&](const Node& n) {
        return n.kind == NodeKind::rms_norm && d.root(*n.in[0]) == sum &&
               d.values[*n.in[0]].type.shape.back() == d.values[sum].type.shape.back() &&
               (!n.in[1] || d.values[*n.in[1]].source == DraftValue::Source::weight);
      });
      if (norm == nodes.end()) continue;
      Node& n = nodes[i];
      n.kind = NodeKind::add_rms_norm;
      n.in.push_back(norm->in[1]);
      n.out.push_back(norm->out[0]);
      n.eps = norm->eps;
      n.offset = norm->offset;
      n.replaces.insert(n.replaces.end(), norm->replaces.begin(), norm->replaces.end());
      nodes.erase(norm);
    }
  });
}

}  // namespace modelc::lower

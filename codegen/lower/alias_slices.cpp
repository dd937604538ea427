// A slice whose elements lie together (along the first axis that is not 1) and that nodes alone read becomes a view of
// rows, which costs nothing. Stands after all fusions, which take a view for all of what it shows, and before settle.
#include <algorithm>
#include <set>

#include "codegen/lower/draft.h"

namespace modelc::lower {

namespace {

using S = DraftValue::Source;

}  // namespace

bool lies_together(const Draft& d, const Node& n) {
  if (n.kind != NodeKind::rearrange || n.parts.size() != 1 || n.background || d.values[n.out[0]].rounded != DType::f32) return false;
  const plan::Layout& read = n.parts[0].read;
  if (read.kind != plan::Layout::Kind::slice || read.step != 1 || d.rows(*n.in[0])) return false;
  const std::vector<graph::DimId>& shape = d.values[*n.in[0]].type.shape;
  for (int i = 0; i < read.axis; ++i)
    if (d.dims->value(shape[static_cast<std::size_t>(i)]) != 1) return false;
  switch (d.values[d.root(*n.in[0])].source) {
    case S::node:
    case S::input:
    case S::weight:
    case S::constant: return true;
    default: return false;
  }
}

void alias_slices(Draft& d) {
  // What the function gives, what a loop carries and what a shader writes has a buffer of its own.
  std::set<ValueIndex> kept;
  for (ValueIndex v : d.outputs) kept.insert(d.root(v));
  for_each_block(d.nodes, [&](std::vector<Node>& nodes) {
    for (const Node& n : nodes) {
      if (n.kind == NodeKind::repeat)
        for (const auto& v : n.in) kept.insert(d.root(*v));
      for (ValueIndex v : n.results) kept.insert(d.root(v));
    }
  });
  for_each_block(d.nodes, [&](std::vector<Node>& nodes) {
    std::erase_if(nodes, [&](const Node& n) {
      if (n.out.size() != 1 || kept.count(n.out[0]) > 0 || !lies_together(d, n)) return false;
      const plan::Layout& read = n.parts[0].read;
      const std::vector<graph::DimId>& shape = d.values[*n.in[0]].type.shape;
      DraftValue& v = d.values[n.out[0]];
      v.source = S::view;
      v.base = *n.in[0];
      v.rows = plan::Rows{{shape.begin() + read.axis, shape.end()}, read.start, read.stop};
      return true;
    });
  });
}

}  // namespace modelc::lower

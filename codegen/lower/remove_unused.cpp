// Nodes whose results nobody reads go: what is left over when an earlier pass has taken their work. What moves a
// state on and calls (they may do so) always stay.
#include "codegen/lower/draft.h"

namespace modelc::lower {

namespace {

bool has_effect(const Node& n) {
  switch (n.kind) {
    case NodeKind::append:
    case NodeKind::cross_set:
    case NodeKind::causal_conv1d:
    case NodeKind::ssd_scan:
    case NodeKind::gated_delta:
    case NodeKind::call:
    case NodeKind::repeat: return true;
    default: return false;
  }
}

}  // namespace

void remove_unused(Draft& d) {
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<int> uses = count_uses(d);
    for_each_block(d.nodes, [&](std::vector<Node>& nodes) {
      changed |= std::erase_if(nodes, [&](const Node& n) {
                   if (has_effect(n)) return false;
                   for (ValueIndex v : n.out)
                     if (uses[v] > 0) return false;
                   return true;
                 }) > 0;
    });
  }
}

}  // namespace modelc::lower

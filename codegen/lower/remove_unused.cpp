// Nodes whose results nobody reads go: what is left over when an earlier pass has taken their work. Appending to a state
// and calls (they may append) always stay.
#include "codegen/lower/draft.h"

namespace modelc::lower {

namespace {

bool has_effect(const Node& n) { return n.kind == NodeKind::append || n.kind == NodeKind::call || n.kind == NodeKind::repeat; }

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

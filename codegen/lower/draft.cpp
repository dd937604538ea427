#include "codegen/lower/draft.h"

namespace modelc::lower {

namespace {

void read(const Draft& d, std::optional<ValueIndex> v, const std::function<void(ValueIndex)>& f) {
  if (v) f(d.root(*v));
}

}  // namespace

void for_each_read(const Node& node, const Draft& draft, const std::function<void(ValueIndex)>& f) {
  for (const auto& v : node.in) read(draft, v, f);
  for (ValueIndex v : node.weights) read(draft, v, f);
  for (const auto& v : node.biases) read(draft, v, f);
  for (const Node& inner : node.body) for_each_read(inner, draft, f);
  for (ValueIndex v : node.results) read(draft, v, f);
}

std::vector<int> count_uses(const Draft& draft) {
  std::vector<int> uses(draft.values.size(), 0);
  for (const Node& node : draft.nodes) for_each_read(node, draft, [&](ValueIndex v) { ++uses[v]; });
  for (ValueIndex v : draft.outputs) ++uses[draft.root(v)];
  return uses;
}

bool is_named(const Draft& draft, ValueIndex root) {
  for (ValueIndex v = 0; v < draft.values.size(); ++v)
    if (draft.values[v].named() && draft.root(v) == root) return true;
  return false;
}

void for_each_block(std::vector<Node>& nodes, const std::function<void(std::vector<Node>&)>& f) {
  for (Node& node : nodes)
    if (!node.body.empty()) for_each_block(node.body, f);
  f(nodes);
}

}  // namespace modelc::lower

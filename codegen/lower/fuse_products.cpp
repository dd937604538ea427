// A packed product whose blocks meet in one elementwise expression (gate and up: silu(gate) · up) computes it on the way
// out, and the blocks' results never go to memory. A product added to a value of its own shape takes it as residual.
// With hooks set the runtime computes and reports the inner values all the same: their names go along.
// Stands after pack_products, which makes the blocks, and fuse_maps, which makes the one expression.
#include <algorithm>

#include "codegen/lower/draft.h"

namespace modelc::lower {

namespace {

using graph::OpKind;
using plan::MapNode;

// The only node that reads any of `values`, when it reads all of them and nothing else does.
Node* only_reader(const Draft& d, std::vector<Node>& nodes, const std::vector<ValueIndex>& values, const std::vector<int>& uses) {
  Node* reader = nullptr;
  for (Node& n : nodes) {
    int reads = 0;
    for_each_read(n, d, [&](ValueIndex v) { reads += std::count(values.begin(), values.end(), v) > 0 ? 1 : 0; });
    if (reads == 0) continue;
    if (reader || reads != static_cast<int>(values.size())) return nullptr;
    reader = &n;
  }
  for (ValueIndex v : values)
    if (uses[v] != 1) return nullptr;
  return reader;
}

std::string traced_name(const Draft& d, ValueIndex root) {
  for (ValueIndex v = 0; v < d.values.size(); ++v)
    if (d.root(v) == root && d.values[v].named()) return d.values[v].stage.empty() ? d.values[v].name : d.values[v].stage;
  return "";
}

// One name a value at most: an inner value is reported under one.
bool has_several_names(const Draft& d, ValueIndex root) {
  int names = 0;
  for (ValueIndex v = 0; v < d.values.size(); ++v)
    if (d.root(v) == root) names += (d.values[v].stage.empty() ? 0 : 1) + (d.values[v].name.empty() ? 0 : 1);
  return names > 1;
}

bool into_map(Draft& d, std::vector<Node>& nodes, std::size_t i, const std::vector<int>& uses) {
  Node& product = nodes[i];
  if (product.out.size() < 2) return false;
  Node* map = only_reader(d, nodes, product.out, uses);
  if (!map || map->kind != NodeKind::map || map->in.size() != product.out.size()) return false;
  const auto& shape = d.values[map->out[0]].type.shape;
  std::vector<std::uint32_t> block_of(map->in.size());
  for (std::size_t k = 0; k < map->in.size(); ++k) {
    const ValueIndex v = *map->in[k];
    if (d.values[v].type.shape != shape || d.values[d.root(v)].type.shape != shape) return false;
    const auto at = std::find(product.out.begin(), product.out.end(), d.root(v));
    block_of[k] = static_cast<std::uint32_t>(at - product.out.begin());
  }
  for (ValueIndex v : product.out)
    if (has_several_names(d, v)) return false;
  for (MapNode& n : map->kernel.nodes)
    if (n.kind == MapNode::Kind::input) n.input = block_of[n.input];
  product.kind = NodeKind::linear_map;
  for (ValueIndex v : product.out) product.inner.push_back(traced_name(d, v));
  product.kernel = std::move(map->kernel);
  product.kernel.inputs = product.inner;
  product.out = map->out;
  product.replaces.insert(product.replaces.end(), map->replaces.begin(), map->replaces.end());
  nodes.erase(nodes.begin() + (map - nodes.data()));
  return true;
}

bool into_residual(Draft& d, std::vector<Node>& nodes, std::size_t i, const std::vector<int>& uses) {
  Node& product = nodes[i];
  if (product.out.size() != 1 || has_several_names(d, product.out[0])) return false;
  Node* map = only_reader(d, nodes, product.out, uses);
  if (!map || map->kind != NodeKind::map || map->in.size() != 2 || map->kernel.nodes.size() != 3) return false;
  if (map->kernel.nodes.back().op != OpKind::add) return false;
  const auto& shape = d.values[map->out[0]].type.shape;
  for (const auto& v : map->in)
    if (d.values[*v].type.shape != shape || d.values[d.root(*v)].type.dtype != DType::f32) return false;
  const ValueIndex residual = d.root(*map->in[0]) == product.out[0] ? *map->in[1] : *map->in[0];
  // The residual must be there before the product runs, or the product moves down to where the sum stood.
  Node joined = std::move(product);
  joined.kind = NodeKind::linear_add;
  joined.inner = {traced_name(d, joined.out[0])};
  joined.in = {joined.in[0], residual};
  joined.out = map->out;
  joined.replaces.insert(joined.replaces.end(), map->replaces.begin(), map->replaces.end());
  *map = std::move(joined);
  nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
  return true;
}

}  // namespace

void fuse_products(Draft& d) {
  for_each_block(d.nodes, [&](std::vector<Node>& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].kind != NodeKind::linear) continue;
      const std::vector<int> uses = count_uses(d);
      if (!into_map(d, nodes, i, uses) && into_residual(d, nodes, i, uses)) --i;
    }
  });
}

}  // namespace modelc::lower

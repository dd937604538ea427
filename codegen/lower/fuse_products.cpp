// Products of one input that meet in one elementwise expression (gate and up: silu(gate) · up) become one kernel, whose
// parts never go to memory; a product added to a value of its own shape takes it as residual. With hooks set the runtime
// computes and reports the inner values all the same: their names go along.
// The first stands after fuse_maps, which makes the one expression, and before pack_products, which would join the parts
// with whatever else reads that input (a router, say); the second after it.
#include <algorithm>
#include <functional>

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

// The map whose inputs are all products of one input, each read by it alone: becomes one linear_map in its place.
bool into_map(Draft& d, std::vector<Node>& nodes, std::size_t at) {
  const std::vector<int> uses = count_uses(d);
  Node& map = nodes[at];
  if (map.kind != NodeKind::map || map.in.size() < 2) return false;
  const auto& shape = d.values[map.out[0]].type.shape;
  if (d.values[map.out[0]].type.dtype != DType::f32) return false;
  std::vector<std::size_t> products;
  for (const auto& v : map.in) {
    const ValueIndex r = d.root(*v);
    if (d.values[*v].type.shape != shape || d.values[r].type.shape != shape || uses[r] != 1 || has_several_names(d, r)) return false;
    const auto product = std::find_if(nodes.begin(), nodes.end(),
                                      [&](const Node& n) { return n.kind == NodeKind::linear && n.out.size() == 1 && n.out[0] == r; });
    if (product == nodes.end()) return false;
    products.push_back(static_cast<std::size_t>(product - nodes.begin()));
    if (d.root(*product->in[0]) != d.root(*nodes[products[0]].in[0])) return false;
  }
  Node joined = map;
  joined.kind = NodeKind::linear_map;
  joined.in = {nodes[products[0]].in[0]};
  joined.replaces.clear();
  for (std::size_t p : products) {
    const Node& product = nodes[p];
    joined.weights.push_back(product.weights[0]);
    joined.biases.push_back(product.biases[0]);
    joined.inner.push_back(traced_name(d, product.out[0]));
    const DType to = d.values[product.out[0]].rounded;
    round_input(joined.kernel, static_cast<std::uint32_t>(joined.inner.size() - 1), to);
    if (joined.inner.size() == 1) joined.rounded = to;
    else if (joined.rounded != to) joined.rounded = DType::f32;              // for hooks alone: the kernel has each input's own
    joined.replaces.insert(joined.replaces.end(), product.replaces.begin(), product.replaces.end());
  }
  joined.replaces.insert(joined.replaces.end(), map.replaces.begin(), map.replaces.end());
  joined.kernel.inputs = joined.inner;
  map = std::move(joined);
  std::sort(products.begin(), products.end(), std::greater<>());
  for (std::size_t p : products) nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(p));
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
  joined.rounded = d.values[joined.out[0]].rounded;
  joined.in = {joined.in[0], residual};
  joined.out = map->out;
  joined.replaces.insert(joined.replaces.end(), map->replaces.begin(), map->replaces.end());
  *map = std::move(joined);
  nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
  return true;
}

}  // namespace

void fuse_gated_products(Draft& d) {
  for_each_block(d.nodes, [&](std::vector<Node>& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (into_map(d, nodes, i)) i = static_cast<std::size_t>(-1);           // places have moved: look again from the start
  });
}

void fuse_residual_products(Draft& d) {
  for_each_block(d.nodes, [&](std::vector<Node>& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].kind == NodeKind::linear && into_residual(d, nodes, i, count_uses(d))) --i;
  });
}

}  // namespace modelc::lower

// Makes the draft fit for buffers: inserts the copies and fills without which a value could not have a place of its own.
//   - a loop's carried value begins in a buffer that the loop may overwrite, and each pass leaves its value in a node's result
//   - a result of a custom operation's reference is written by a node of it, and by one node for one result
//   - a result of the function is written by a node, and by one node for one result
//   - a number that a kernel other than a map reads stands in a buffer
//   - an index or a bool seen as f32 (a cast) is converted for every reader but maps, which convert as they read
// Stands right before plan_memory.
#include <algorithm>
#include <map>
#include <set>

#include "codegen/lower/draft.h"

namespace modelc::lower {

namespace {

using S = DraftValue::Source;

class Settler {
 public:
  explicit Settler(Draft& d) : d_(d) {}

  void run() {
    block(d_.nodes);
    std::set<ValueIndex> taken;
    const std::set<ValueIndex> loops = loop_results();
    for (ValueIndex& v : d_.outputs) {
      const ValueIndex r = d_.root(v);
      if (d_.values[r].source == S::node && whole(v) && loops.count(r) == 0 && taken.insert(r).second) continue;
      v = append_copy(v, d_.nodes);
      taken.insert(v);
    }
  }

 private:
  std::set<ValueIndex> loop_results() const {
    std::set<ValueIndex> s;
    for (const Node& n : d_.nodes)
      if (n.kind == NodeKind::repeat) s.insert(n.out.begin(), n.out.end());
    return s;
  }

  ValueIndex fresh_like(ValueIndex v) {
    DraftValue x;
    x.type = d_.values[v].type;
    if (x.type.dtype == DType::boolean) x.type.dtype = DType::f32;
    return d_.add(x);
  }
  // A view that reads the bytes of integers as floats. A bool that a node makes is f32 in its buffer.
  bool is_cast(ValueIndex v) const {
    const DType stored = d_.values[d_.root(v)].type.dtype;
    return d_.values[v].type.dtype == DType::f32 &&
           (stored == DType::i32 || (stored == DType::boolean && d_.values[d_.root(v)].source != S::node));
  }
  // Shows all of its root, as it stands in memory: may have the root's buffer.
  bool whole(ValueIndex v) const { return !d_.rows(v) && !is_cast(v); }
  ValueIndex append_conversion(ValueIndex v, std::vector<Node>& to) {
    Node n;
    n.kind = NodeKind::map;
    n.in = {v};
    plan::MapNode in, zero, sum;                             // v + 0
    zero.kind = plan::MapNode::Kind::literal;
    sum.kind = plan::MapNode::Kind::op;
    sum.op = graph::OpKind::add;
    sum.operands = {0, 1};
    n.kernel.nodes = {in, zero, sum};
    n.out = {fresh_like(v)};
    to.push_back(std::move(n));
    return to.back().out[0];
  }
  ValueIndex append_copy(ValueIndex v, std::vector<Node>& to) {
    // A bool may be a byte on one side and f32 on the other: a map reads and writes either.
    if (is_cast(v) || d_.values[v].type.dtype == DType::boolean) return append_conversion(v, to);
    Node n;
    const bool number = d_.values[d_.root(v)].source == S::literal;
    n.kind = number ? NodeKind::fill : NodeKind::copy;
    if (number) n.fill = {d_.values[d_.root(v)].literal};
    else n.in = {v};
    n.out = {fresh_like(v)};
    to.push_back(std::move(n));
    return to.back().out[0];
  }

  void block(std::vector<Node>& nodes) {
    std::vector<Node> result;
    for (Node& n : nodes) {
      if (n.kind != NodeKind::map)
        for (auto& v : n.in) {
          if (v && d_.values[d_.root(*v)].source == S::literal) v = append_copy(*v, result);
          if (v && is_cast(*v)) v = append_conversion(*v, result);
        }
      if (n.kind == NodeKind::repeat) repeat(n, result);
      if (n.kind == NodeKind::custom) body(n);
      result.push_back(std::move(n));
    }
    nodes = std::move(result);
  }

  void repeat(Node& n, std::vector<Node>& before) {
    const std::vector<int> uses = count_uses(d_);
    std::set<ValueIndex> taken;
    for (auto& v : n.in) {
      const ValueIndex r = d_.root(*v);
      const bool own = d_.values[r].source == S::node && whole(*v) && uses[r] == 1 && made_in(before, r) && taken.insert(r).second;
      if (!own) v = append_copy(*v, before);
    }
    body(n);
  }

  // What a body gives is made in it, each by a node of its own.
  void body(Node& n) {
    block(n.body);
    std::set<ValueIndex> taken;
    for (ValueIndex& v : n.results) {
      const ValueIndex r = d_.root(v);
      const bool own = d_.values[r].source == S::node && whole(v) && made_in(n.body, r) && taken.insert(r).second;
      if (!own) v = append_copy(v, n.body);
    }
  }

  static bool made_in(const std::vector<Node>& nodes, ValueIndex v) {
    return std::any_of(nodes.begin(), nodes.end(), [&](const Node& n) { return std::find(n.out.begin(), n.out.end(), v) != n.out.end(); });
  }

  Draft& d_;
};

}  // namespace

void settle(Draft& d) { Settler(d).run(); }

}  // namespace modelc::lower

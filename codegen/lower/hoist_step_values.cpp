// What depends on constants, vectors and the batch alone (the cos and sin of rope, most of all) becomes a step value: computed
// once a step, by a function of its own, and shared by all instances whose inputs are equal. Stands before fuse_maps, which
// would otherwise compute it again inside the kernels that use it.
#include <algorithm>
#include <set>

#include "codegen/lower/draft.h"
#include "frontend/graph/members.h"

namespace modelc::lower {

namespace {

using S = DraftValue::Source;

class Hoister {
 public:
  Hoister(Draft& d, plan::Class& cls, plan::Program& program) : d_(d), class_(cls), program_(program) {}

  void run() {
    std::set<ValueIndex> invariant;
    for (const Node& n : d_.nodes) {
      if (n.kind != NodeKind::map && n.kind != NodeKind::fill && n.kind != NodeKind::rearrange && n.kind != NodeKind::reduce) continue;
      bool all = d_.values[n.out[0]].type.dtype != DType::i32;             // step values are f32
      for_each_read(n, d_, [&](ValueIndex v) { all &= is_leaf(v) || invariant.count(v) > 0; });
      if (all) invariant.insert(n.out[0]);
    }
    if (invariant.empty()) return;

    // Those that something else reads: nodes that are not invariant, and results of the function.
    std::set<ValueIndex> wanted;
    for (const Node& n : d_.nodes) {
      if (!n.out.empty() && invariant.count(n.out[0]) > 0) continue;
      for_each_read(n, d_, [&](ValueIndex v) {
        if (invariant.count(v) > 0) wanted.insert(v);
      });
    }
    for (ValueIndex v : d_.outputs)
      if (invariant.count(d_.root(v)) > 0) wanted.insert(d_.root(v));

    // Rows of a weight or a constant are a view, and need no memory of a step.
    std::set<ValueIndex> views;
    for (const Node& n : d_.nodes)
      if (n.kind == NodeKind::rearrange && invariant.count(n.out[0]) > 0 && lies_together(d_, n) && is_leaf(d_.root(*n.in[0])))
        views.insert(n.out[0]);
    std::erase_if(wanted, [&](ValueIndex v) { return views.count(v) > 0; });

    std::vector<std::pair<ValueIndex, std::uint32_t>> made;
    for (ValueIndex v : wanted) made.emplace_back(v, make(v));
    for (const auto& [v, index] : made) {
      d_.values[v].source = S::step_value;
      d_.values[v].index = index;
    }
    std::erase_if(d_.nodes, [&](const Node& n) { return !n.out.empty() && invariant.count(n.out[0]) > 0 && views.count(n.out[0]) == 0; });
  }

 private:
  bool is_leaf(ValueIndex v) const {
    const DraftValue& x = d_.values[v];
    if (x.source == S::constant || x.source == S::batch_field || x.source == S::literal || x.source == S::step_value) return true;
    if (x.source != S::weight) return false;
    for (graph::ClassId id{0}; id.index < d_.module->classes.size(); ++id.index) {
      if (&d_.module->classes[id.index] != d_.owner) continue;
      const auto ref = graph::find_member(*d_.module, id, x.member);
      const graph::WeightDecl* w = ref ? graph::weight_of(*d_.module, *ref) : nullptr;
      return w && w->role == graph::WeightRole::vector;
    }
    return false;
  }

  std::uint32_t make(ValueIndex wanted) {
    Draft sub = d_;                              // same values; only the nodes that lead to `wanted`
    sub.inputs.clear();
    sub.outputs = {wanted};
    std::set<ValueIndex> needed = {wanted};
    std::vector<Node> nodes;
    for (auto it = d_.nodes.rbegin(); it != d_.nodes.rend(); ++it) {
      if (it->out.empty() || needed.count(it->out[0]) == 0) continue;
      for_each_read(*it, d_, [&](ValueIndex v) { needed.insert(v); });
      nodes.push_back(*it);
    }
    std::reverse(nodes.begin(), nodes.end());
    sub.nodes = std::move(nodes);
    fuse_maps(sub, false);

    plan::StepValue value;
    value.name = unique_name(d_.values[wanted]);
    value.shape = d_.values[wanted].type.shape;
    for (ValueIndex v : needed) {
      const DraftValue& x = d_.values[v];
      if (x.source == S::constant) value.keys.push_back(plan::ConstRef{x.member, {}});
      if (x.source == S::weight) value.keys.push_back(plan::WeightRef{x.member, {}});
    }
    for (DraftValue& v : sub.values) v.name.clear(), v.stage.clear();      // nothing in it is traced
    sub.values[wanted].hint = value.name;
    sub.values[wanted].computed_once = true;
    value.compute = plan_memory(sub, class_, program_);
    value.compute.name = value.name;
    value.compute.signature.clear();
    class_.step_values.push_back(std::move(value));
    return static_cast<std::uint32_t>(class_.step_values.size() - 1);
  }

  std::string unique_name(const DraftValue& v) const {
    std::string base = v.name.empty() ? "step_value" : v.name;
    std::string name = base;
    const auto taken = [&](const std::string& s) {
      return std::any_of(class_.step_values.begin(), class_.step_values.end(), [&](const auto& x) { return x.name == s; });
    };
    for (int i = 2; taken(name); ++i) name = base + "_" + std::to_string(i);
    return name;
  }

  Draft& d_;
  plan::Class& class_;
  plan::Program& program_;
};

}  // namespace

void hoist_step_values(Draft& d, plan::Class& cls, plan::Program& program) { Hoister(d, cls, program).run(); }

}  // namespace modelc::lower

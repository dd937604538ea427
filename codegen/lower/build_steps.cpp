#include "codegen/lower/build_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <set>

#include "codegen/lower/sizes.h"
#include "frontend/graph/members.h"

namespace modelc::lower {

namespace {

using S = DraftValue::Source;

class Builder {
 public:
  Builder(const Draft& d, const Placement& p, plan::Class& cls, plan::Program& program) : d_(d), p_(p), class_(cls), program_(program) {}

  plan::Function run() {
    const graph::Function& f = *d_.function;
    plan::Function out;
    out.name = f.name;
    out.kind = f.kind;
    out.signature = f.signature;
    out.where = f.where;
    out.buffers = p_.buffers;
    out.at = plan::TakesAt::none;
    for (const graph::Parameter& p : f.inputs) {
      const graph::TypeKind kind = f.values[p.value.index].type.kind;
      if (kind == graph::TypeKind::batch) out.at = plan::TakesAt::batch;
      if (kind == graph::TypeKind::sequences) out.at = plan::TakesAt::sequences;
    }
    for (ValueIndex v : d_.inputs) {
      out.inputs.push_back(*p_.buffer_of[v]);
      out.input_names.push_back(d_.values[v].name);
    }
    for (std::size_t i = 0; i < d_.outputs.size(); ++i) {
      out.outputs.push_back(*p_.buffer_of[d_.root(d_.outputs[i])]);
      out.output_names.push_back(i < f.result_names.size() ? f.result_names[i] : "");
    }
    out.shapes = shapes(f);
    out.steps = steps(d_.nodes);
    out.advances = advances_;
    out.frame_bytes = p_.frame_bytes;
    out.peak_bytes = d_.dims->add(p_.frame_bytes, deepest_);
    return out;
  }

 private:
  std::string type_text(const graph::Type& t) const {
    if (t.kind == graph::TypeKind::batch) return "Batch";
    if (t.kind == graph::TypeKind::sequences) return "Sequences";
    std::string s;
    if (t.index_bound) s = fmt::format("index({})", d_.dims->text(*t.index_bound));
    else if (t.dtype != DType::f32) s = std::string(modelc::name(t.dtype));
    s += "[";
    for (std::size_t i = 0; i < t.shape.size(); ++i) s += (i ? ", " : "") + d_.dims->text(t.shape[i]);
    return s + "]";
  }
  std::string shapes(const graph::Function& f) const {
    std::string s = f.name + "(";
    for (std::size_t i = 0; i < f.inputs.size(); ++i)
      s += fmt::format("{}{}: {}", i ? ", " : "", f.inputs[i].name, type_text(f.values[f.inputs[i].value.index].type));
    s += ")";
    for (std::size_t i = 0; i < f.body.results.size(); ++i) {
      const std::string name = i < f.result_names.size() ? f.result_names[i] : "";
      s += fmt::format("{}{}{}", i ? ", " : " -> ", name.empty() ? "" : name + ": ", type_text(f.values[f.body.results[i].index].type));
    }
    return s;
  }

  plan::Operand operand(ValueIndex v) const {
    const ValueIndex r = d_.root(v);
    const DraftValue& x = d_.values[r];
    switch (x.source) {
      case S::node:
      case S::input: return plan::BufferRef{*p_.buffer_of[r], d_.values[v].type.shape, rows(v)};
      case S::weight: return plan::WeightRef{x.member, view(v, r), rows(v)};
      case S::constant: return plan::ConstRef{x.member, view(v, r), rows(v)};
      case S::batch_field: return plan::BatchField{x.member, view(v, r)};
      case S::step_value: return plan::StepValueRef{x.index, d_.values[v].type.shape};
      default: break;
    }
    assert(false && "settle() put numbers into buffers");
    return plan::Absent{};
  }
  std::optional<std::vector<graph::DimId>> view(ValueIndex v, ValueIndex root) const {
    if (d_.values[v].type.shape == d_.values[root].type.shape && !d_.rows(v)) return std::nullopt;
    return d_.values[v].type.shape;
  }
  std::optional<plan::Rows> rows(ValueIndex v) const {
    const plan::Rows* r = d_.rows(v);
    return r ? std::optional(*r) : std::nullopt;
  }
  plan::Operand operand(std::optional<ValueIndex> v) const { return v ? operand(*v) : plan::Operand(plan::Absent{}); }
  plan::Operand in(const Node& n, std::size_t i) const { return i < n.in.size() ? operand(n.in[i]) : plan::Operand(plan::Absent{}); }

  std::uint32_t pack(const Node& n) {
    plan::Pack p;
    for (std::size_t i = 0; i < n.weights.size(); ++i) {
      p.weights.push_back(d_.values[d_.root(n.weights[i])].member);
      p.biases.push_back(n.biases[i] ? d_.values[d_.root(*n.biases[i])].member : "");
    }
    for (std::uint32_t i = 0; i < class_.packs.size(); ++i)
      if (class_.packs[i].weights == p.weights && class_.packs[i].biases == p.biases) return i;
    p.name = pack_name(p.weights);
    class_.packs.push_back(std::move(p));
    return static_cast<std::uint32_t>(class_.packs.size() - 1);
  }
  // q_proj, k_proj, v_proj → "qkv_proj"; gate_proj, up_proj → "gate_up_proj"; o_proj → "o_proj".
  std::string pack_name(const std::vector<std::string>& weights) const {
    std::vector<std::string> stems;
    std::string tail;
    for (const std::string& w : weights) {
      std::string s = w.substr(0, w.rfind('.'));
      if (s == w && weights.size() == 1) return unique_pack(w);
      std::replace(s.begin(), s.end(), '.', '_');
      const auto cut = s.rfind('_');
      const std::string t = cut == std::string::npos ? "" : s.substr(cut);
      if (stems.empty()) tail = t;
      else if (t != tail) tail.clear();
      stems.push_back(s);
    }
    std::string name;
    for (std::string s : stems) {
      if (!tail.empty()) s = s.substr(0, s.size() - tail.size());
      name += (name.empty() || s.size() == 1 ? "" : "_") + s;
    }
    return unique_pack(name + tail);
  }
  std::string unique_pack(const std::string& base) const {
    std::string name = base;
    const auto taken = [&](const std::string& s) {
      return std::any_of(class_.packs.begin(), class_.packs.end(), [&](const auto& p) { return p.name == s; });
    };
    for (int i = 2; taken(name); ++i) name = fmt::format("{}_{}", base, i);
    return name;
  }

  // One kernel per distinct expression of the whole program.
  plan::KernelId kernel(plan::MapKernel k, const std::string& hint, const std::vector<std::string>& replaces) {
    if (k.inputs.empty())
      for (std::size_t i = 0; i < input_count(k); ++i) k.inputs.push_back("");
    for (std::uint32_t i = 0; i < program_.kernels.size(); ++i)
      if (same(program_.kernels[i], k)) return {i};
    std::set<std::string> names;
    for (std::string& n : k.inputs) {
      std::string base = n.empty() ? "x" : n;
      std::replace(base.begin(), base.end(), '.', '_');
      n = base;
      for (int i = 2; !names.insert(n).second; ++i) n = fmt::format("{}_{}", base, i);
    }
    std::string base = hint.empty() ? "map" : hint;
    std::replace(base.begin(), base.end(), '.', '_');
    k.name = base;
    const auto taken = [&](const std::string& s) {
      return std::any_of(program_.kernels.begin(), program_.kernels.end(), [&](const auto& x) { return x.name == s; });
    };
    for (int i = 2; taken(k.name); ++i) k.name = fmt::format("{}_{}", base, i);
    k.source = fmt::format("{}", fmt::join(replaces, "; "));
    program_.kernels.push_back(std::move(k));
    return {static_cast<std::uint32_t>(program_.kernels.size() - 1)};
  }
  static std::size_t input_count(const plan::MapKernel& k) {
    std::size_t n = 0;
    for (const auto& x : k.nodes)
      if (x.kind == plan::MapNode::Kind::input) n = std::max<std::size_t>(n, x.input + 1);
    return n;
  }
  static bool same(const plan::MapKernel& a, const plan::MapKernel& b) {
    if (a.nodes.size() != b.nodes.size() || a.inputs.size() != b.inputs.size()) return false;
    for (std::size_t i = 0; i < a.nodes.size(); ++i) {
      const auto& x = a.nodes[i];
      const auto& y = b.nodes[i];
      if (x.kind != y.kind || x.operands != y.operands || x.dtype != y.dtype) return false;
      if (x.kind == plan::MapNode::Kind::input     ? x.input != y.input
          : x.kind == plan::MapNode::Kind::literal ? x.literal != y.literal
                                                   : x.op != y.op)
        return false;
    }
    return true;
  }
  // What a kernel's value is called: the user's name, the module's, or its last operation's.
  std::string kernel_hint(const Node& n) const {
    std::string s;
    for (ValueIndex v = 0; v < d_.values.size() && s.empty(); ++v)
      if (d_.root(v) == n.out[0]) s = d_.values[v].name;
    if (s.empty() && !d_.values[n.out[0]].stage.empty()) s = d_.values[n.out[0]].stage;
    if (s.empty() && d_.function->kind == graph::FunctionKind::init) s = d_.function->name;
    if (s.empty() && d_.values[n.out[0]].computed_once) return d_.values[n.out[0]].hint;
    int ops = 0;
    for (const plan::MapNode& k : n.kernel.nodes) {    // "silu_mul"
      const bool counts = k.kind == plan::MapNode::Kind::op && k.dtype != DType::bf16 && k.dtype != DType::f16;
      if (s.empty() || ops > 0)
        if (counts && ops < 3) s += (ops++ ? "_" : "") + std::string(graph::info(k.op).name);
    }
    return s;
  }
  std::string input_name(ValueIndex v) const {
    const DraftValue& x = d_.values[v];
    const DraftValue& r = d_.values[d_.root(v)];
    if (!x.name.empty()) return x.name;
    if (!r.name.empty()) return r.name;
    if (!r.member.empty()) return r.member.substr(r.member.rfind('.') + 1);
    return r.stage;
  }

  // What this function needs for, and does by, a function that it calls.
  void callee(graph::ClassId id, const std::string& name) {
    for (const plan::Function& f : program_.classes[id.index].functions) {
      if (f.name != name) continue;
      deepest_ = upper_of(*d_.dims, deepest_, f.peak_bytes);
      advances_ |= f.advances;
      callee_at_ = f.at;
    }
  }
  graph::ClassId own_id() const { return {static_cast<std::uint32_t>(d_.owner - d_.module->classes.data())}; }
  std::vector<graph::ClassId> elements(const std::string& member) const {
    const auto ref = graph::find_member(*d_.module, own_id(), member);
    const graph::ChildDecl* list = ref ? graph::list_of(*d_.module, *ref) : nullptr;
    return list ? list->elements : std::vector<graph::ClassId>{};
  }
  void look_at_callee(const Node& n) {
    const bool in_loop = n.member.empty() || n.member[0] == '.';
    if (!in_loop) {
      if (const auto ref = graph::find_member(*d_.module, own_id(), n.member)) callee(ref->owner, n.callee);
      return;
    }
    std::set<std::uint32_t> seen;
    for (graph::ClassId e : loop_elements_) {
      if (!seen.insert(e.index).second) continue;
      const auto ref = graph::find_member(*d_.module, e, n.member.empty() ? "" : n.member.substr(1));
      if (ref) callee(n.member.empty() ? e : ref->owner, n.callee);
    }
  }

  std::vector<plan::Step> steps(const std::vector<Node>& nodes) {
    std::vector<plan::Step> result;
    for (const Node& n : nodes) result.push_back(step(n));
    return result;
  }

  plan::Step step(const Node& n) {
    plan::Step s;
    s.replaces = n.replaces;
    s.where = n.where;
    const auto out = [&](std::size_t i) { return operand(n.out[i]); };
    switch (n.kind) {
      case NodeKind::linear: {
        plan::Linear x{pack(n), in(n, 0), {}};
        for (std::size_t i = 0; i < n.out.size(); ++i) x.outs.push_back(out(i));
        s.kind = std::move(x);
        break;
      }
      case NodeKind::linear_add: s.kind = plan::LinearAdd{pack(n), in(n, 0), in(n, 1), out(0), n.inner[0], n.rounded}; break;
      case NodeKind::linear_map:
        s.kind = plan::LinearMap{pack(n), in(n, 0), kernel(n.kernel, kernel_hint(n), n.replaces), out(0), n.inner, n.rounded};
        break;
      case NodeKind::take: s.kind = plan::Take{d_.values[d_.root(*n.in[0])].member, in(n, 1), n.scale, out(0)}; break;
      case NodeKind::take_rows: s.kind = plan::TakeRows{in(n, 0), in(n, 1), out(0)}; break;
      case NodeKind::rms_norm: s.kind = plan::RmsNorm{in(n, 0), in(n, 1), n.eps, n.offset, out(0)}; break;
      case NodeKind::add_rms_norm: s.kind = plan::AddRmsNorm{in(n, 0), in(n, 1), in(n, 2), n.eps, n.offset, out(0), out(1)}; break;
      case NodeKind::layer_norm: s.kind = plan::LayerNorm{in(n, 0), in(n, 1), in(n, 2), n.eps, out(0)}; break;
      case NodeKind::rope: s.kind = plan::Rope{in(n, 0), in(n, 1), in(n, 2), n.halves, out(0)}; break;
      case NodeKind::append: s.kind = plan::Append{n.member, in(n, 0), in(n, 1), plan::BatchRef{}}, advances_ = true; break;
      case NodeKind::cross_set: s.kind = plan::CrossSet{n.member, in(n, 0), in(n, 1), plan::BatchRef{}}; break;
      case NodeKind::attend:
        s.kind = plan::Attend{
            in(n, 0), n.member, in(n, 1), in(n, 2), n.batched ? plan::Operand(plan::BatchRef{}) : plan::Operand(plan::Absent{}),
            in(n, 3), in(n, 4), n.causal, n.scale,  n.softcap,
            n.window, out(0)};
        break;
      case NodeKind::attend_latent:
        s.kind = plan::AttendLatent{in(n, 0), in(n, 1), n.member, plan::BatchRef{}, d_.values[d_.root(n.weights[0])].member,
                                    n.causal, n.scale,  out(0)};
        break;
      case NodeKind::map: {
        plan::MapKernel k = n.kernel;
        for (const auto& v : n.in) k.inputs.push_back(input_name(*v));
        plan::Map m{kernel(std::move(k), kernel_hint(n), n.replaces), {}, out(0)};
        for (std::size_t i = 0; i < n.in.size(); ++i) m.inputs.push_back(in(n, i));
        s.kind = std::move(m);
        break;
      }
      case NodeKind::copy: s.kind = plan::Copy{in(n, 0), out(0)}; break;
      case NodeKind::fill: s.kind = plan::Fill{n.fill, out(0)}; break;
      case NodeKind::rearrange: {
        plan::Rearrange r{n.parts, n.background, out(0)};
        for (std::size_t i = 0; i < r.parts.size(); ++i) r.parts[i].from = in(n, i);
        s.kind = std::move(r);
        break;
      }
      case NodeKind::reduce: s.kind = plan::Reduce{n.reduction, in(n, 0), in(n, 1), n.axis, n.eps, out(0)}; break;
      case NodeKind::route: {
        plan::Route r = n.route;
        r.scores = in(n, 0), r.bias = in(n, 1), r.chosen = out(0), r.weights = out(1);
        s.kind = std::move(r);
        break;
      }
      case NodeKind::experts: {
        const auto matrix = [&](std::size_t i) { return d_.values[d_.root(n.weights[i])].member; };
        s.kind = plan::Experts{in(n, 0),  in(n, 1), in(n, 2), matrix(0), matrix(1),
                               matrix(2), in(n, 3), in(n, 4), in(n, 5),  kernel(n.kernel, kernel_hint(n), n.replaces),
                               out(0)};
        break;
      }
      case NodeKind::conv: {
        plan::Conv c = n.conv;
        c.x = in(n, 0), c.w = in(n, 1), c.b = in(n, 2), c.out = out(0);
        s.kind = std::move(c);
        break;
      }
      case NodeKind::causal_conv1d:
        s.kind = plan::CausalConv1d{in(n, 0), in(n, 1), in(n, 2), n.member, plan::BatchRef{}, out(0)}, advances_ = true;
        break;
      case NodeKind::ssd_scan:
        s.kind = plan::SsdScan{in(n, 0), in(n, 1), in(n, 2), in(n, 3), in(n, 4), in(n, 5), n.member, plan::BatchRef{}, out(0)};
        advances_ = true;
        break;
      case NodeKind::gated_delta:
        s.kind =
            plan::GatedDelta{in(n, 0), in(n, 1), in(n, 2), in(n, 3), in(n, 4), n.member, plan::BatchRef{}, n.scale, n.normalize, out(0)};
        advances_ = true;
        break;
      case NodeKind::call: {
        plan::Call c{n.member, n.callee, {}, {}, {}};
        for (std::size_t i = 0; i < n.in.size(); ++i) c.inputs.push_back(in(n, i));
        for (std::size_t i = 0; i < n.out.size(); ++i) c.outs.push_back(out(i));
        look_at_callee(n);
        if (callee_at_ != plan::TakesAt::none) c.at = plan::BatchRef{};
        s.kind = std::move(c);
        break;
      }
      case NodeKind::custom: {
        plan::Custom c{n.custom->name, {}, n.custom->sizes, n.custom->dispatches, n.custom->host, {}, {}};
        for (std::size_t i = 0; i < n.in.size(); ++i) c.inputs.push_back(in(n, i));
        for (std::size_t i = 0; i < n.out.size(); ++i) c.outs.push_back(out(i));
        c.body = steps(n.body);
        s.kind = std::move(c);
        break;
      }
      case NodeKind::repeat: {
        plan::Repeat r{n.member, n.variable, p_.carried.at(&n), {}};
        loop_elements_ = elements(n.member);
        r.body = steps(n.body);
        s.kind = std::move(r);
        break;
      }
    }
    for (ValueIndex v : n.out)
      if (d_.values[v].rounded != DType::f32) s.roundings.push_back({operand(v), d_.values[v].rounded});
    if (n.kind == NodeKind::call && !n.out.empty() && d_.function->kind != graph::FunctionKind::init) {
      const bool element = n.member.empty() || n.member[0] == '.';
      s.traces.push_back({element && !n.member.empty() ? n.member.substr(1) : n.member, n.callee == "forward" ? "" : n.callee,
                          operand(n.out[0]), element});
    }
    for (ValueIndex o : n.out) trace(o, s);
    return s;
  }

  // Every name under which the node's result, or a view of it, is known. Tables of a step and constants have none.
  void trace(ValueIndex root, plan::Step& s) const {
    if (d_.function->kind == graph::FunctionKind::init) return;
    for (ValueIndex v = 0; v < d_.values.size(); ++v) {
      if (d_.root(v) != root) continue;
      if (!d_.values[v].stage.empty()) s.traces.push_back({"", d_.values[v].stage, operand(v), false});
      if (!d_.values[v].name.empty()) s.traces.push_back({"", d_.values[v].name, operand(v), false});
    }
  }

  const Draft& d_;
  const Placement& p_;
  plan::Class& class_;
  plan::Program& program_;
  graph::DimId deepest_{};
  bool advances_ = false;
  plan::TakesAt callee_at_ = plan::TakesAt::none;            // of the last call looked at
  std::vector<graph::ClassId> loop_elements_;
};

}  // namespace

plan::Function build_steps(const Draft& d, const Placement& p, plan::Class& cls, plan::Program& program) {
  return Builder(d, p, cls, program).run();
}

}  // namespace modelc::lower

// First pass: every operation of the graph becomes a kernel of the plan. Elementwise operations become map kernels of one
// operation each; reshapes and casts between equal types become views; equal elementwise nodes are made once, so that a
// table asked for twice (rope on q and on k) is one value. What has no kernel is reported by name.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <utility>

#include "codegen/lower/select_parts.h"
#include "frontend/graph/members.h"
#include "frontend/graph/types.h"

namespace modelc::lower {

namespace {

using graph::OpKind;

class Selector {
 public:
  Selector(Draft& draft, const graph::FunctionRounding* rounding, std::vector<Unsupported>& unsupported)
      : d_(draft), rounding_(rounding), unsupported_(unsupported) {}

  void run() {
    const graph::Function& f = *d_.function;
    map_.resize(f.values.size());
    for (const graph::Parameter& p : f.inputs) {
      const graph::Value& v = f.values[p.value.index];
      if (v.type.kind != graph::TypeKind::tensor) continue;
      DraftValue in = base(p.value);
      in.source = DraftValue::Source::input;
      in.index = static_cast<std::uint32_t>(d_.inputs.size());
      in.name = p.name;
      d_.inputs.push_back(map_[p.value.index] = d_.add(in));
    }
    block(f.body, d_.nodes);
    for (std::size_t i = 0; i < f.body.results.size(); ++i) {
      ValueIndex v = of(f.body.results[i]);
      const DType to = rounding_ && i < rounding_->results.size() ? rounding_->results[i] : DType::f32;
      if (to != DType::f32 && type_of(v) != to) {
        DraftValue given = d_.values[v];
        given.source = DraftValue::Source::view;
        given.base = v;
        given.rounded = to;
        given.name.clear(), given.stage.clear();
        v = d_.add(std::move(given));
        round_view(d_, v, d_.nodes);
      }
      d_.outputs.push_back(v);
    }
  }

 private:
  DraftValue base(graph::ValueId id) const {
    const graph::Value& v = d_.function->values[id.index];
    DraftValue d;
    d.type = v.type;
    d.name = v.name;
    d.stage = v.stage;
    return d;
  }
  ValueIndex of(graph::ValueId id) const { return map_[id.index]; }
  // What the policy rounds a value to as it is made.
  DType rounded(graph::ValueId id) const {
    return rounding_ && id.index < rounding_->values.size() ? rounding_->values[id.index] : DType::f32;
  }
  // What a value is known to be rounded to by then.
  DType type_of(ValueIndex v) const {
    const auto known = moved_.find(d_.root(v));
    return known == moved_.end() ? d_.values[d_.root(v)].rounded : known->second;
  }
  std::optional<ValueIndex> operand(const graph::Op& op, std::size_t i) const {
    if (i >= op.operands.size() || !op.operands[i]) return std::nullopt;
    return of(*op.operands[i]);
  }
  ValueIndex result(const graph::Op& op, std::size_t i = 0) {
    DraftValue v = base(op.results[i]);
    v.hint = std::string(graph::info(op.kind).name);
    if (op.kind == OpKind::call) v.hint = op.member.substr(op.member.rfind('.') + 1);
    v.rounded = rounded(op.results[i]);
    return map_[op.results[i].index] = d_.add(v);
  }
  void leaf(const graph::Op& op, DraftValue::Source source, const std::string& member) {
    DraftValue v = base(op.results[0]);
    v.source = source;
    v.member = member;
    v.name.clear();
    v.stage.clear();
    map_[op.results[0].index] = once(fmt::format("{}:{}", static_cast<int>(source), member), v);
  }
  // The value made before under this key in this function, if any.
  ValueIndex once(const std::string& key, const DraftValue& v) {
    const auto [it, fresh] = known_.try_emplace(key, 0);
    if (fresh) it->second = d_.add(v);
    return it->second;
  }
  void view(const graph::Op& op, std::vector<Node>& nodes) {
    DraftValue v = base(op.results[0]);
    v.source = DraftValue::Source::view;
    v.base = *operand(op, 0);
    v.rounded = rounded(op.results[0]);
    map_[op.results[0].index] = d_.add(v);
    settle_view(of(op.results[0]), nodes);
  }
  // A view of what is rounded alike needs no rounding of its own.
  void settle_view(ValueIndex v, std::vector<Node>& nodes) {
    if (d_.values[v].source != DraftValue::Source::view || d_.values[v].rounded == DType::f32) return;
    if (type_of(v) == d_.values[v].rounded) d_.values[v].rounded = DType::f32;
    else round_view(d_, v, nodes);
  }
  // What moves numbers that are rounded alike gives such numbers.
  void settle_moved(const graph::Op& op, std::vector<Node>& nodes) {
    for (const graph::ValueId r : op.results) {
      const ValueIndex v = of(r);
      if (d_.values[v].source == DraftValue::Source::view) settle_view(v, nodes);
      const DType to = d_.values[v].rounded;
      if (to == DType::f32 || d_.values[v].source != DraftValue::Source::node) continue;
      bool alike = op.kind != OpKind::one_hot && op.kind != OpKind::pad;       // which put numbers of their own there
      for (std::size_t i = 0; i < op.operands.size(); ++i) alike = alike && operand(op, i) && type_of(*operand(op, i)) == to;
      if (!alike) continue;
      d_.values[v].rounded = DType::f32;
      moved_[v] = to;
    }
  }

  void unsupported(const graph::Op& op, const std::string& why = "") {
    unsupported_.push_back(
        {fmt::format("operation `{}` is not carried out by the C++ backend yet{}", graph::info(op.kind).name, why), op.where});
    for (std::size_t i = 0; i < op.results.size(); ++i) result(op, i);
  }

  void block(const graph::Block& b, std::vector<Node>& nodes) {
    for (const graph::Op& op : b.ops) select(op, nodes);
  }

  // ", with a LatentCache": a state that the runtime has no memory for.
  std::string other_state(const graph::Op& op) const {
    for (const graph::StateDecl& s : d_.owner->states)
      if (s.name == op.member && s.kind != graph::StateKind::kv_cache && s.kind != graph::StateKind::cross_cache &&
          !(op.kind == OpKind::append && s.kind == graph::StateKind::latent_cache))
        return fmt::format(", with a {}", graph::language_name(s.kind));
    return "";
  }

  Node node(const graph::Op& op, NodeKind kind) const {
    Node n;
    n.kind = kind;
    n.where = op.where;
    if (!op.source.empty()) n.replaces.push_back(op.source);
    return n;
  }

  static DType computed_in(DType t) { return t == DType::i32 ? DType::i32 : DType::f32; }

  void elementwise(const graph::Op& op, std::vector<Node>& nodes) {
    Node n = node(op, NodeKind::map);
    plan::MapNode head;
    head.kind = plan::MapNode::Kind::op;
    head.op = op.kind;
    head.dtype = computed_in(base(op.results[0]).type.dtype);
    bool whole = false;                                      // its operands are whole numbers
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const DraftValue& v = d_.values[*operand(op, i)];
      whole |= v.source != DraftValue::Source::literal && v.type.dtype == DType::i32;
    }
    std::string key = fmt::format("map {}", static_cast<int>(op.kind));
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const ValueIndex v = *operand(op, i);
      plan::MapNode leaf;
      if (d_.values[v].source == DraftValue::Source::literal) {
        leaf.kind = plan::MapNode::Kind::literal;
        leaf.literal = d_.values[v].literal;
        if (whole) leaf.dtype = DType::i32;
        key += fmt::format(" {}", leaf.literal);
      } else {
        leaf.input = static_cast<std::uint32_t>(n.in.size());
        leaf.dtype = computed_in(d_.values[v].type.dtype);
        n.in.push_back(v);
        // A view is known by what it shows, as what and in which shape: two alike are one value.
        key += fmt::format(" v{}:{}", d_.root(v), name(leaf.dtype));
        for (graph::DimId dim : d_.values[v].type.shape) key += fmt::format(",{}", dim.index);
      }
      head.operands.push_back(static_cast<std::uint32_t>(n.kernel.nodes.size()));
      n.kernel.nodes.push_back(leaf);
    }
    n.kernel.nodes.push_back(head);
    // Another name makes it a value of its own: hooks see both.
    const DraftValue out = base(op.results[0]);
    key += fmt::format("={}|{}~{}", out.name, out.stage, name(rounded(op.results[0])));
    if (!in_loop_) {
      const auto it = known_.find(key);
      if (it != known_.end() && d_.values[it->second].type == out.type) {
        map_[op.results[0].index] = it->second;
        return;
      }
    }
    n.out.push_back(result(op));
    if (!in_loop_) known_.try_emplace(key, n.out[0]);
    nodes.push_back(std::move(n));
  }

  void linear(const graph::Op& op, std::vector<Node>& nodes) {
    const ValueIndex w = *operand(op, 1);
    const auto b = operand(op, 2);
    if (d_.values[w].source != DraftValue::Source::weight) return unsupported(op, ": its second operand is computed, and not a weight");
    if (b && d_.values[*b].source != DraftValue::Source::weight) return unsupported(op, ": its bias is computed, and not a weight");
    Node n = node(op, NodeKind::linear);
    n.in = {operand(op, 0)};
    n.weights = {w};
    n.biases = {b};
    n.out.push_back(result(op));
    nodes.push_back(std::move(n));
  }

  void attend(const graph::Op& op, std::vector<Node>& nodes) {
    if (const std::string why = other_state(op); !why.empty()) return unsupported(op, why);
    if (operand(op, 6)) return unsupported(op, " with `bias`");
    const bool has_batch = op.operands.size() > 3 && op.operands[3];
    if (has_batch && operand(op, 5)) return unsupported(op, " with `keep` and a Batch");
    Node n = node(op, NodeKind::attend);
    n.member = op.member;
    n.in = {operand(op, 0), operand(op, 1), operand(op, 2), operand(op, 4), operand(op, 5)};
    n.batched = has_batch;
    n.causal = graph::string_attr(op, "mask", "causal") == "causal";
    n.scale = graph::real_attr(op, "scale", 1);
    n.softcap = graph::real_attr(op, "softcap", 0);
    n.window = graph::integer_attr(op, "window", 0);
    n.out.push_back(result(op));
    nodes.push_back(std::move(n));
  }

  void attend_latent(const graph::Op& op, std::vector<Node>& nodes) {
    const ValueIndex up = *operand(op, 3);
    if (d_.values[up].source != DraftValue::Source::weight) return unsupported(op, ": `up` is computed, and not a weight");
    Node n = node(op, NodeKind::attend_latent);
    n.member = op.member;
    n.in = {operand(op, 0), operand(op, 1)};
    n.weights = {up};
    n.causal = graph::string_attr(op, "mask", "causal") == "causal";
    n.scale = graph::real_attr(op, "scale", 1);
    n.out.push_back(result(op));
    nodes.push_back(std::move(n));
  }

  void take(const graph::Op& op, std::vector<Node>& nodes) {
    const ValueIndex x = *operand(op, 0);
    const bool table = d_.values[x].source == DraftValue::Source::weight;
    Node n = node(op, table ? NodeKind::take : NodeKind::take_rows);
    n.in = {x, operand(op, 1)};
    n.out.push_back(result(op));
    nodes.push_back(std::move(n));
  }

  void fill(const graph::Op& op, std::vector<Node>& nodes) {
    Node n = node(op, NodeKind::fill);
    if (op.kind == OpKind::tensor_literal) {
      const auto it = op.attrs.find("values");
      n.fill = std::get<std::vector<double>>(it->second);
      if (n.fill.empty()) return unsupported(op, " without elements");
    } else if (op.kind == OpKind::linspace) {
      const double start = graph::real_attr(op, "start", 0), stop = graph::real_attr(op, "stop", 0);
      const auto count = graph::integer_attr(op, "count", 1);
      const double step = count > 1 ? (stop - start) / static_cast<double>(count - 1) : 0;
      // The second half counts down from stop, as PyTorch does.
      for (std::int64_t i = 0; i < count; ++i)
        n.fill.push_back(i < count / 2 ? start + step * static_cast<double>(i) : stop - step * static_cast<double>(count - 1 - i));
    }
    const DraftValue out = base(op.results[0]);
    std::string key = fmt::format("fill {} {}|{}~{}", fmt::join(n.fill, ","), out.name, out.stage, name(rounded(op.results[0])));
    for (graph::DimId dim : out.type.shape) key += fmt::format(",{}", dim.index);
    const auto known = known_.find(key);
    if (!in_loop_ && known != known_.end()) {
      map_[op.results[0].index] = known->second;
      return;
    }
    n.out.push_back(result(op));
    if (!in_loop_) known_.emplace(key, n.out[0]);
    nodes.push_back(std::move(n));
  }

  // With all operands and results in their order.
  Node whole_node(const graph::Op& op, NodeKind kind) {
    Node n = node(op, kind);
    for (std::size_t i = 0; i < op.operands.size(); ++i) n.in.push_back(operand(op, i));
    for (std::size_t i = 0; i < op.results.size(); ++i) n.out.push_back(result(op, i));
    return n;
  }
  DType dtype(const graph::Op& op, std::size_t i) const { return d_.values[*operand(op, i)].type.dtype; }

  void reduce(const graph::Op& op, std::vector<Node>& nodes) {
    if (dtype(op, 0) != DType::f32 && dtype(op, 0) != DType::i32) return unsupported(op, fmt::format(" on {}", name(dtype(op, 0))));
    Node n = whole_node(op, NodeKind::reduce);
    const std::size_t rank = d_.values[*n.in[0]].type.shape.size();
    n.reduction = op.kind;
    n.axis = static_cast<int>(op.kind == OpKind::l2_normalize ? rank - 1 : graph::axis_attr(op, rank));
    n.eps = op.kind == OpKind::l2_normalize ? graph::real_attr(op, "eps", 1e-12) : 0;
    nodes.push_back(std::move(n));
  }

  void route(const graph::Op& op, std::vector<Node>& nodes) {
    if (dtype(op, 0) != DType::f32) return unsupported(op, fmt::format(" on {}", name(dtype(op, 0))));
    Node n = whole_node(op, NodeKind::route);
    if (op.kind == OpKind::top_k) {                          // the same without bias, groups and scale
      std::swap(n.out[0], n.out[1]);
    } else {
      n.route.groups = graph::integer_attr(op, "groups", 1);
      n.route.keep_groups = graph::integer_attr(op, "keep_groups", n.route.groups);
      n.route.top2_sum = graph::string_attr(op, "group_score", "max") == "top2_sum";
      n.route.renormalize = graph::boolean_attr(op, "renormalize", false);
      n.route.scale = graph::real_attr(op, "scale", 1);
    }
    nodes.push_back(std::move(n));
  }

  void experts(const graph::Op& op, std::vector<Node>& nodes) {
    for (std::size_t i = 3; i < 6; ++i)
      if (d_.values[*operand(op, i)].source != DraftValue::Source::weight)
        return unsupported(op, ": its experts are computed, and not weights");
    std::optional<plan::MapKernel> kernel = op.body ? expert_kernel(*d_.function, *op.body, rounding_) : std::nullopt;
    if (!kernel || dtype(op, 0) != DType::f32) return unsupported(op, " with numbers other than f32");
    Node n = whole_node(op, NodeKind::experts);
    n.kernel = std::move(*kernel);
    n.in.resize(9);
    for (std::size_t i = 3; i < 6; ++i) n.weights.push_back(*n.in[i]);
    n.in.erase(n.in.begin() + 3, n.in.begin() + 6);
    nodes.push_back(std::move(n));
  }

  void conv(const graph::Op& op, std::vector<Node>& nodes) {
    Node n = whole_node(op, NodeKind::conv);
    n.conv.stride = graph::integer_attr(op, "stride", 1);
    n.conv.padding = graph::integer_attr(op, "padding", 0);
    n.conv.dilation = graph::integer_attr(op, "dilation", 1);
    n.conv.groups = graph::integer_attr(op, "groups", 1);
    nodes.push_back(std::move(n));
  }

  // What goes over a state token by token: the operands before its Batch.
  void recurrence(const graph::Op& op, NodeKind kind, std::vector<Node>& nodes) {
    Node n = node(op, kind);
    n.member = op.member;
    for (std::size_t i = 0; i + 1 < graph::info(op.kind).operands.size(); ++i) n.in.push_back(operand(op, i));
    if (kind == NodeKind::gated_delta) {
      n.scale = graph::real_attr(op, "scale", 1);
      n.normalize = graph::real_attr(op, "normalize", 0);
    }
    n.out.push_back(result(op));
    nodes.push_back(std::move(n));
  }

  void repeat(const graph::Op& op, std::vector<Node>& nodes) {
    Node n = node(op, NodeKind::repeat);
    n.member = op.member;
    n.variable = element_name(op.member);
    if (rounding_) n.rounded = rounding_->carried;
    for (std::size_t i = 0; i < op.operands.size(); ++i) n.in.push_back(operand(op, i));
    for (graph::ValueId a : op.body->arguments) {
      DraftValue v = base(a);
      map_[a.index] = d_.add(v);
      n.arguments.push_back(map_[a.index]);
    }
    const bool outer = in_loop_;
    in_loop_ = true;
    block(*op.body, n.body);
    in_loop_ = outer;
    for (graph::ValueId r : op.body->results) n.results.push_back(of(r));
    for (std::size_t i = 0; i < op.results.size(); ++i) n.out.push_back(result(op, i));
    nodes.push_back(std::move(n));
  }

  // Apart, with its reference as a body; in place where a shader could not see an operand as numbers.
  void custom(const graph::Op& op, std::vector<Node>& nodes) {
    const graph::Block& body = *op.body;
    bool apart = true;
    for (std::size_t i = 0; i < body.arguments.size(); ++i) {
      const ValueIndex v = map_[body.arguments[i].index] = *operand(op, i);
      apart = apart && (d_.values[d_.root(v)].source != DraftValue::Source::weight || role_of(d_.root(v)) == graph::WeightRole::vector);
    }
    if (!apart) {
      block(body, nodes);
      for (std::size_t i = 0; i < op.results.size(); ++i) {
        DraftValue v = base(op.results[i]);
        v.source = DraftValue::Source::view;
        v.base = of(body.results[i]);
        map_[op.results[i].index] = d_.add(std::move(v));
      }
      return;
    }
    Node n = node(op, NodeKind::custom);
    n.custom = &*op.custom;
    for (std::size_t i = 0; i < op.operands.size(); ++i) n.in.push_back(operand(op, i));
    const bool outer = std::exchange(in_loop_, true);        // what is made in the body is not known outside
    block(body, n.body);
    in_loop_ = outer;
    for (const graph::ValueId r : body.results) n.results.push_back(of(r));
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      n.out.push_back(result(op, i));
      d_.values[n.out.back()].hint = op.custom->name;
      d_.values[n.out.back()].rounded = rounded(body.results[i]);      // what else computes it knows of no policy
    }
    nodes.push_back(std::move(n));
  }
  graph::WeightRole role_of(ValueIndex weight) const {
    const graph::ClassId own{static_cast<std::uint32_t>(d_.owner - d_.module->classes.data())};
    const auto ref = graph::find_member(*d_.module, own, d_.values[weight].member);
    const graph::WeightDecl* decl = ref ? graph::weight_of(*d_.module, *ref) : nullptr;
    return decl != nullptr ? decl->role : graph::WeightRole::matrix;
  }

  // "layers" → "layer": what a person would call one of them.
  static std::string element_name(const std::string& list) {
    std::string s = list.substr(list.rfind('.') + 1);
    if (s.size() > 1 && s.back() == 's') s.pop_back();
    else s += "_element";
    return s;
  }

  void call(const graph::Op& op, std::vector<Node>& nodes) {
    Node n = node(op, NodeKind::call);
    n.member = op.member;
    n.callee = op.callee;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (!op.operands[i]) continue;
      if (d_.function->values[op.operands[i]->index].type.kind != graph::TypeKind::tensor) continue;   // the Batch
      n.in.push_back(operand(op, i));
    }
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      n.out.push_back(result(op, i));
      d_.values[n.out.back()].stage.clear();                 // the callee reports its own result
    }
    nodes.push_back(std::move(n));
  }

  void select(const graph::Op& op, std::vector<Node>& nodes) {
    using S = DraftValue::Source;
    switch (op.kind) {
      case OpKind::weight: return leaf(op, S::weight, op.member);
      case OpKind::constant_ref: return leaf(op, S::constant, op.member);
      case OpKind::batch_field: return leaf(op, S::batch_field, graph::string_attr(op, "field", ""));
      case OpKind::literal: {
        DraftValue v = base(op.results[0]);
        v.source = S::literal;
        v.literal = graph::real_attr(op, "value", 0);
        map_[op.results[0].index] = d_.add(v);
        return;
      }
      case OpKind::reshape: return view(op, nodes);
      case OpKind::cast: {
        // Map kernels read i32 and bool as f32, so that a cast to f32 is a view of their operand there.
        const DType from = d_.values[*operand(op, 0)].type.dtype, to = d_.function->values[op.results[0].index].type.dtype;
        if (from == to) return view(op, nodes);
        if (to == DType::f32 && (from == DType::i32 || from == DType::boolean)) {
          DraftValue v = base(op.results[0]);
          v.source = S::view;
          v.base = *operand(op, 0);
          map_[op.results[0].index] = d_.add(v);
          return;
        }
        if (from == DType::f32 && (to == DType::i32 || to == DType::boolean)) return elementwise(op, nodes);
        if (from == DType::i32 && to == DType::boolean) return elementwise(op, nodes);
        return unsupported(op, fmt::format(" from {} to {}", name(from), name(to)));
      }
      case OpKind::linear: return linear(op, nodes);
      case OpKind::attend: return attend(op, nodes);
      case OpKind::attend_latent: return attend_latent(op, nodes);
      case OpKind::take: return take(op, nodes);
      case OpKind::arange:
      case OpKind::tensor_literal:
      case OpKind::linspace: return fill(op, nodes);
      case OpKind::repeat: return repeat(op, nodes);
      case OpKind::call: return call(op, nodes);
      case OpKind::custom: return custom(op, nodes);
      case OpKind::sum:
      case OpKind::mean:
      case OpKind::max_reduce:
      case OpKind::min_reduce:
      case OpKind::argmax:
      case OpKind::softmax:
      case OpKind::cumsum:
      case OpKind::l2_normalize: return reduce(op, nodes);
      case OpKind::route:
      case OpKind::top_k: return route(op, nodes);
      case OpKind::moe: return experts(op, nodes);
      case OpKind::conv1d:
      case OpKind::conv2d:
      case OpKind::conv3d: return conv(op, nodes);
      case OpKind::causal_conv1d: return recurrence(op, NodeKind::causal_conv1d, nodes);
      case OpKind::ssd_scan: return recurrence(op, NodeKind::ssd_scan, nodes);
      case OpKind::gated_delta: return recurrence(op, NodeKind::gated_delta, nodes);
      case OpKind::append: {
        if (const std::string why = other_state(op); !why.empty()) return unsupported(op, why);
        Node n = node(op, NodeKind::append);
        n.member = op.member;
        n.in = {operand(op, 0), operand(op, 1)};
        nodes.push_back(std::move(n));
        return;
      }
      case OpKind::cross_set: {
        Node n = node(op, NodeKind::cross_set);
        n.member = op.member;
        n.in = {operand(op, 0), operand(op, 1)};
        nodes.push_back(std::move(n));
        return;
      }
      case OpKind::rope: {
        Node n = node(op, NodeKind::rope);
        n.in = {operand(op, 0), operand(op, 1)};
        n.halves = graph::string_attr(op, "pairs", "halves") == "halves";
        n.magnitude = graph::real_attr(op, "magnitude", 1);
        n.out.push_back(result(op));
        nodes.push_back(std::move(n));
        return;
      }
      case OpKind::rms_norm:
      case OpKind::layer_norm: {
        Node n = node(op, op.kind == OpKind::rms_norm ? NodeKind::rms_norm : NodeKind::layer_norm);
        n.in = {operand(op, 0), operand(op, 1)};
        if (op.kind == OpKind::layer_norm) n.in.push_back(operand(op, 2));
        n.eps = graph::real_attr(op, "eps", 0);
        n.offset = graph::real_attr(op, "offset", 0);
        n.out.push_back(result(op));
        nodes.push_back(std::move(n));
        return;
      }
      default: break;
    }
    if (is_layout(op.kind)) {
      if (const std::string why = layout_refusal(d_, op); !why.empty()) return unsupported(op, why);
      const Node n = whole_node(op, NodeKind::rearrange);
      select_layout(d_, op, n, nodes);
      return settle_moved(op, nodes);
    }
    const graph::OpInfo& info = graph::info(op.kind);
    if (!info.elementwise) return unsupported(op);
    const DType out = d_.function->values[op.results[0].index].type.dtype;
    if (out == DType::i32) {
      switch (op.kind) {
        case OpKind::add:
        case OpKind::sub:
        case OpKind::mul:
        case OpKind::min:
        case OpKind::max:
        case OpKind::neg:
        case OpKind::abs:
        case OpKind::where: break;
        default: return unsupported(op, " on i32");
      }
    } else if (out != DType::f32 && out != DType::boolean) {
      return unsupported(op, fmt::format(" on {}", name(out)));
    }
    elementwise(op, nodes);
  }

  Draft& d_;
  const graph::FunctionRounding* rounding_;      // null: nothing is rounded
  std::map<ValueIndex, DType> moved_;            // values of moved numbers, and what these were rounded to
  std::vector<Unsupported>& unsupported_;
  std::vector<ValueIndex> map_;                  // graph value → draft value
  std::map<std::string, ValueIndex> known_;      // values by what makes them
  bool in_loop_ = false;
};

}  // namespace

Draft select(const graph::Module& module, const graph::Class& owner, const graph::Function& function,
             const graph::FunctionRounding* rounding, graph::DimTable& dims, std::vector<Unsupported>& unsupported) {
  Draft d;
  d.module = &module;
  d.owner = &owner;
  d.function = &function;
  d.dims = &dims;
  Selector(d, rounding, unsupported).run();
  return d;
}

}  // namespace modelc::lower

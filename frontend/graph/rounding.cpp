#include "frontend/graph/rounding.h"

#include <algorithm>
#include <optional>
#include <set>

#include "frontend/graph/members.h"
#include "frontend/graph/ops.h"
#include "runtime/checkpoint/tensor_pattern.h"

namespace modelc::graph {

Precision precision_of(const Module& module) {
  Precision out;
  DType compute = DType::f32;
  std::vector<std::pair<TensorPattern, DType>> modules;
  for (const PolicyRule& r : module.policy) {
    if (r.pattern) modules.emplace_back(TensorPattern(r.target), r.dtype);
    else if (r.target == "compute") compute = r.dtype;
    else if (r.target == "residual") out.residual = r.dtype;
    else if (r.target == "cache") out.cache = r.dtype;
    else out.state = r.dtype;
  }
  if (module.policy.empty()) return out;
  out.compute = [compute, modules = std::move(modules)](const std::string& path) {
    for (auto it = modules.rbegin(); it != modules.rend(); ++it) {
      std::string rest;
      if (it->first.match_prefix(path, rest)) return it->second;
    }
    return compute;
  };
  return out;
}

Flow flow_of_weight(const WeightDecl& decl) { return {false, decl.required_dtype == DType::f32 ? Flow::Kept::cast : Flow::Kept::no}; }

Rounded rounded_result(const Precision& precision, const Op& op, const Value& result, std::span<const Flow> operands, DType own) {
  Rounded out;
  bool kept = false;
  for (const Flow& f : operands) {
    kept = kept || f.kept != Flow::Kept::no;
    if (info(op.kind).elementwise) out.flow.carried = out.flow.carried || f.carried;
  }
  const bool is_f32 = result.type.kind == TypeKind::tensor && result.type.dtype == DType::f32;
  // `as f32` says so by a cast, which is there for nothing else where the value is f32 without a policy.
  if (op.kind == OpKind::cast && is_f32) {
    out.flow.kept = Flow::Kept::cast;
    return out;
  }
  // The result of a module that is expanded in place, which carries its stage, is of the module's type again.
  if (kept && is_f32 && result.stage.empty()) {
    out.flow.kept = Flow::Kept::computed;
    return out;
  }
  if (is_f32) out.to = out.flow.carried && bits(precision.residual) > bits(own) ? precision.residual : own;
  return out;
}

Rounded rounded_call(Flow flow, DType own) {
  if (flow.kept != Flow::Kept::computed) return {flow, DType::f32};
  return {{flow.carried, Flow::Kept::no}, own};
}

Rounded rounded_carry(const Precision& precision) { return {{true, Flow::Kept::no}, precision.residual}; }

namespace {

// Where code runs: an instance, and inside a loop the element at hand.
struct Place {
  ClassId owner;
  std::string path;
  const Place* element = nullptr;
};

class Walk {
 public:
  explicit Walk(const Module& module) : m_(module), precision_(precision_of(module)) {}

  Roundings run() {
    if (!precision_.compute) return std::move(out_);
    const Class& root = m_.of(m_.root);
    for (const Function& f : root.functions) {
      if (f.kind == FunctionKind::init) continue;
      const std::vector<Flow> given = function({m_.root, "", nullptr}, f, std::vector<Flow>(f.inputs.size()));
      std::vector<DType>& results = of(m_.root, f).results;
      for (std::size_t i = 0; i < given.size(); ++i)
        results.push_back(is_f32(f, f.body.results[i]) ? rounded_call(given[i], precision_.compute("")).to : DType::f32);
    }
    return std::move(out_);
  }

 private:
  static bool is_f32(const Function& f, ValueId v) {
    const Type& type = f.values[v.index].type;
    return type.kind == TypeKind::tensor && type.dtype == DType::f32;
  }
  FunctionRounding& of(ClassId owner, const Function& f) {
    const Class& c = m_.of(owner);
    FunctionRounding& known = out_.functions[{owner.index, static_cast<std::uint32_t>(&f - c.functions.data())}];
    known.values.resize(f.values.size(), DType::f32);
    known.carried = rounded_carry(precision_).to;
    return known;
  }

  // Says the type of a value once more: for another instance it may be another.
  void say(const Place& at, const Function& f, ValueId v, DType to) {
    std::vector<DType>& known = of(at.owner, f).values;
    if (said_.insert({&f, v.index}).second) {
      known[v.index] = to;
      return;
    }
    if (known[v.index] == to) return;
    known[v.index] = DType::f32;
    const std::string& definition = m_.of(at.owner).definition;
    if (noted_.insert(definition).second)
      out_.notes.push_back("`policy` gives instances of `" + definition + "` different types (" +
                           (at.path.empty() ? "the model" : at.path) +
                           " is one), and one function is generated for them: where they differ it computes in f32");
  }

  std::vector<Flow> function(const Place& at, const Function& f, const std::vector<Flow>& inputs) {
    std::vector<Flow> values(f.values.size());
    for (std::size_t i = 0; i < f.inputs.size(); ++i) values[f.inputs[i].value.index] = inputs[i];
    block(at, f, f.body, values);
    std::vector<Flow> out;
    for (const ValueId v : f.body.results) out.push_back(values[v.index]);
    return out;
  }

  std::pair<const Place*, std::string_view> start(const Place& at, std::string_view member) const {
    if (!member.empty() && member[0] != '.') return {&at, member};
    return {at.element, member.empty() ? member : member.substr(1)};
  }
  std::optional<std::pair<MemberRef, std::string>> find(const Place& at, std::string_view member) const {
    const auto [from, rest] = start(at, member);
    const auto ref = find_member(m_, from->owner, rest);
    if (!ref) return std::nullopt;
    return std::pair(*ref, join_path(from->path, ref->path));
  }

  void block(const Place& at, const Function& f, const Block& b, std::vector<Flow>& values) {
    for (const Op& op : b.ops) one(at, f, op, values);
  }

  void one(const Place& at, const Function& f, const Op& op, std::vector<Flow>& values) {
    switch (op.kind) {
      case OpKind::weight:
        if (const auto found = find(at, op.member))
          if (const WeightDecl* decl = weight_of(m_, found->first)) values[op.results[0].index] = flow_of_weight(*decl);
        return;
      case OpKind::constant_ref:
      case OpKind::literal:
      case OpKind::batch_field: return;
      case OpKind::call: return call(at, f, op, values);
      case OpKind::repeat: return repeat(at, f, op, values);
      case OpKind::custom: return custom(at, f, op, values);
      default: break;
    }
    if (op.body) block(at, f, *op.body, values);
    std::vector<Flow> operands;
    for (const auto& v : op.operands)
      if (v) operands.push_back(values[v->index]);
    for (const ValueId v : op.results) {
      const Value& value = f.values[v.index];
      std::string path = at.path;
      if (!value.stage.empty()) {
        const auto [from, rest] = start(at, value.stage);
        path = join_path(from->path, rest);
      }
      const Rounded made = rounded_result(precision_, op, value, operands, precision_.compute(path));
      values[v.index] = made.flow;
      say(at, f, v, made.to);
    }
  }

  void call(const Place& at, const Function& f, const Op& op, std::vector<Flow>& values) {
    const auto found = find(at, op.member);
    if (!found) return;
    const Function* callee = find_function(m_.of(found->first.owner), op.callee);
    if (callee == nullptr) return;
    std::vector<Flow> inputs;
    for (const auto& v : op.operands) inputs.push_back(v ? values[v->index] : Flow{});
    const std::vector<Flow> given = function({found->first.owner, found->second, nullptr}, *callee, inputs);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const Rounded made = rounded_call(given[i], precision_.compute(found->second));
      values[op.results[i].index] = made.flow;
      say(at, f, op.results[i], is_f32(f, op.results[i]) ? made.to : DType::f32);
    }
  }

  // As if its body stood in its place.
  void custom(const Place& at, const Function& f, const Op& op, std::vector<Flow>& values) {
    for (std::size_t i = 0; i < op.operands.size(); ++i)
      if (op.operands[i]) values[op.body->arguments[i].index] = values[op.operands[i]->index];
    block(at, f, *op.body, values);
    for (std::size_t i = 0; i < op.results.size(); ++i) values[op.results[i].index] = values[op.body->results[i].index];
  }

  void repeat(const Place& at, const Function& f, const Op& op, std::vector<Flow>& values) {
    const auto found = find(at, op.member);
    const ChildDecl* list = found ? list_of(m_, found->first) : nullptr;
    if (list == nullptr) return;
    const Flow handed = rounded_carry(precision_).flow;
    for (std::size_t e = 0; e < list->elements.size(); ++e) {
      const Place element{list->elements[e], join_path(found->second, std::to_string(e)), nullptr};
      const Place inside{at.owner, at.path, &element};
      for (const ValueId v : op.body->arguments) values[v.index] = handed;
      block(inside, f, *op.body, values);
    }
    for (const ValueId v : op.results) values[v.index] = handed;
  }

  const Module& m_;
  const Precision precision_;
  Roundings out_;
  std::set<std::pair<const Function*, std::uint32_t>> said_;
  std::set<std::string> noted_;
};

}  // namespace

Roundings roundings_of(const Module& module) { return Walk(module).run(); }

}  // namespace modelc::graph

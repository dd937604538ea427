#include "codegen/plan/walk.h"

namespace modelc::plan {

namespace {

struct Walk {
  const OperandVisitor& r;
  const OperandVisitor& w;

  void operator()(const Linear& s) const {
    r(s.x);
    for (const Operand& o : s.outs) w(o);
  }
  void operator()(const LinearAdd& s) const { r(s.x), r(s.residual), w(s.out); }
  void operator()(const LinearMap& s) const { r(s.x), w(s.out); }
  void operator()(const Take& s) const { r(s.rows), w(s.out); }
  void operator()(const TakeRows& s) const { r(s.x), r(s.rows), w(s.out); }
  void operator()(const RmsNorm& s) const { r(s.x), r(s.w), w(s.out); }
  void operator()(const AddRmsNorm& s) const { r(s.x), r(s.y), r(s.w), w(s.sum), w(s.out); }
  void operator()(const LayerNorm& s) const { r(s.x), r(s.w), r(s.b), w(s.out); }
  void operator()(const Rope& s) const { r(s.x), r(s.cos), r(s.sin), w(s.out); }
  void operator()(const Append& s) const { r(s.k), r(s.v), r(s.at); }
  void operator()(const CrossSet& s) const { r(s.k), r(s.v), r(s.at); }
  void operator()(const Attend& s) const { r(s.q), r(s.k), r(s.v), r(s.at), r(s.sinks), r(s.keep), w(s.out); }
  void operator()(const AttendLatent& s) const { r(s.q_nope), r(s.q_rope), r(s.at), w(s.out); }
  void operator()(const Map& s) const {
    for (const Operand& o : s.inputs) r(o);
    w(s.out);
  }
  void operator()(const Copy& s) const { r(s.from), w(s.to); }
  void operator()(const Rearrange& s) const {
    for (const Part& p : s.parts) r(p.from);
    w(s.out);
  }
  void operator()(const Reduce& s) const { r(s.x), r(s.where), w(s.out); }
  void operator()(const Route& s) const { r(s.scores), r(s.bias), w(s.chosen), w(s.weights); }
  void operator()(const Experts& s) const { r(s.x), r(s.chosen), r(s.weights), r(s.gate_bias), r(s.up_bias), r(s.down_bias), w(s.out); }
  void operator()(const Conv& s) const { r(s.x), r(s.w), r(s.b), w(s.out); }
  void operator()(const CausalConv1d& s) const { r(s.x), r(s.w), r(s.b), r(s.at), w(s.out); }
  void operator()(const SsdScan& s) const { r(s.x), r(s.dt), r(s.a), r(s.b), r(s.c), r(s.d), r(s.at), w(s.out); }
  void operator()(const GatedDelta& s) const { r(s.q), r(s.k), r(s.v), r(s.decay), r(s.beta), r(s.at), w(s.out); }
  void operator()(const Fill& s) const { w(s.out); }
  void operator()(const Call& s) const {
    for (const Operand& o : s.inputs) r(o);
    r(s.at);
    for (const Operand& o : s.outs) w(o);
  }
  void operator()(const Custom& s) const {
    for (const Operand& o : s.inputs) r(o);
    for (const Operand& o : s.outs) w(o);
  }
  void operator()(const Repeat&) const {}
};

struct Name {
  const char* operator()(const Linear&) const { return "linear"; }
  const char* operator()(const LinearAdd&) const { return "linear_add"; }
  const char* operator()(const LinearMap&) const { return "linear_map"; }
  const char* operator()(const Take&) const { return "take"; }
  const char* operator()(const TakeRows&) const { return "take_rows"; }
  const char* operator()(const RmsNorm&) const { return "rms_norm"; }
  const char* operator()(const AddRmsNorm&) const { return "add_rms_norm"; }
  const char* operator()(const LayerNorm&) const { return "layer_norm"; }
  const char* operator()(const Rope&) const { return "rope"; }
  const char* operator()(const Append&) const { return "append"; }
  const char* operator()(const CrossSet&) const { return "cross_set"; }
  const char* operator()(const Attend&) const { return "attend"; }
  const char* operator()(const AttendLatent&) const { return "attend_latent"; }
  const char* operator()(const Map&) const { return "map"; }
  const char* operator()(const Copy&) const { return "copy"; }
  const char* operator()(const Rearrange&) const { return "rearrange"; }
  const char* operator()(const Reduce&) const { return "reduce"; }
  const char* operator()(const Route&) const { return "route"; }
  const char* operator()(const Experts&) const { return "experts"; }
  const char* operator()(const Conv&) const { return "conv"; }
  const char* operator()(const CausalConv1d&) const { return "causal_conv1d"; }
  const char* operator()(const SsdScan&) const { return "ssd_scan"; }
  const char* operator()(const GatedDelta&) const { return "gated_delta"; }
  const char* operator()(const Fill&) const { return "fill"; }
  const char* operator()(const Call&) const { return "call"; }
  const char* operator()(const Custom&) const { return "custom"; }
  const char* operator()(const Repeat&) const { return "repeat"; }
};

}  // namespace

void for_each_operand(const StepKind& step, const OperandVisitor& reads, const OperandVisitor& writes) {
  std::visit(Walk{reads, writes}, step);
}

const std::vector<Step>* body_of(const StepKind& step) {
  if (const auto* r = std::get_if<Repeat>(&step)) return &r->body;
  if (const auto* c = std::get_if<Custom>(&step)) return &c->body;
  return nullptr;
}

const char* kind_name(const StepKind& step) { return std::visit(Name{}, step); }

}  // namespace modelc::plan

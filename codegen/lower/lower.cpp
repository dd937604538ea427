#include "codegen/lower/lower.h"

#include <fmt/format.h>

#include "codegen/lower/draft.h"
#include "codegen/lower/sizes.h"
#include "codegen/plan/verifier.h"
#include "frontend/graph/expand_custom.h"
#include "frontend/graph/members.h"
#include "runtime/abi/axes.h"

namespace modelc::lower {

namespace {

// The passes: a table of contents of this folder.
plan::Function lower_function(const graph::Function& f, const graph::Module& module, const graph::Class& owner,
                              const graph::FunctionRounding* rounding, plan::Class& cls, plan::Program& program,
                              std::vector<Unsupported>& unsupported) {
  Draft d = select(module, owner, f, rounding, *program.dims, unsupported);
  if (!unsupported.empty()) return {};
  fold_scalars(d);
  expand_rope_tables(d);
  const bool once = f.kind == graph::FunctionKind::init;     // a constant: computed at load, all of it, traced by nobody
  if (!once) hoist_step_values(d, cls, program);
  fuse_maps(d, !once);
  fuse_gated_products(d);
  pack_products(d);
  fuse_residual_products(d);
  fuse_residual_norm(d);
  remove_unused(d);
  return plan_memory(d, cls, program);
}

// Kernels read vectors as f32 and matrices as stored: an operation that would need a matrix as numbers is named.
class Roles {
 public:
  Roles(const graph::Module& m, graph::ClassId owner, std::vector<Unsupported>& to) : m_(m), owner_(owner), to_(to) {}
  void check(const std::vector<plan::Step>& steps) {
    for (const plan::Step& s : steps) {
      std::visit([&](const auto& k) { check_kind(k, s.where); }, s.kind);
    }
  }

 private:
  void vector_only(const plan::Operand& o, const graph::Where& where) {
    const auto* w = std::get_if<plan::WeightRef>(&o);
    if (!w) return;
    const auto ref = graph::find_member(m_, owner_, w->member);
    const graph::WeightDecl* decl = ref ? graph::weight_of(m_, *ref) : nullptr;
    if (decl && decl->role != graph::WeightRole::vector)
      to_.push_back({fmt::format("weight `{}` is read as numbers here and as a matrix elsewhere: not carried out by the C++ "
                                 "backend yet",
                                 w->member),
                     where});
  }
  void matrix_only(const std::string& member, const char* is, const graph::Where& where) {
    const auto ref = graph::find_member(m_, owner_, member);
    const graph::WeightDecl* decl = ref ? graph::weight_of(m_, *ref) : nullptr;
    if (decl && decl->role == graph::WeightRole::vector)
      to_.push_back(
          {fmt::format("weight `{}` {} here and is read as numbers elsewhere: not carried out by the C++ backend yet", member, is), where});
  }
  void check_kind(const plan::Map& k, const graph::Where& w) {
    for (const auto& i : k.inputs) vector_only(i, w);
  }
  void check_kind(const plan::RmsNorm& k, const graph::Where& w) { vector_only(k.w, w); }
  void check_kind(const plan::AddRmsNorm& k, const graph::Where& w) { vector_only(k.w, w); }
  void check_kind(const plan::LayerNorm& k, const graph::Where& w) { vector_only(k.w, w), vector_only(k.b, w); }
  void check_kind(const plan::Attend& k, const graph::Where& w) { vector_only(k.sinks, w); }
  void check_kind(const plan::Rearrange& k, const graph::Where& w) {
    for (const auto& p : k.parts) vector_only(p.from, w);
  }
  void check_kind(const plan::Reduce& k, const graph::Where& w) { vector_only(k.x, w), vector_only(k.where, w); }
  void check_kind(const plan::Route& k, const graph::Where& w) { vector_only(k.scores, w), vector_only(k.bias, w); }
  void check_kind(const plan::Conv& k, const graph::Where& w) { vector_only(k.x, w), vector_only(k.w, w), vector_only(k.b, w); }
  void check_kind(const plan::CausalConv1d& k, const graph::Where& w) { vector_only(k.x, w), vector_only(k.w, w), vector_only(k.b, w); }
  void check_kind(const plan::SsdScan& k, const graph::Where& w) {
    for (const plan::Operand* o : {&k.x, &k.dt, &k.a, &k.b, &k.c, &k.d}) vector_only(*o, w);
  }
  void check_kind(const plan::GatedDelta& k, const graph::Where& w) {
    for (const plan::Operand* o : {&k.q, &k.k, &k.v, &k.decay, &k.beta}) vector_only(*o, w);
  }
  void check_kind(const plan::Experts& k, const graph::Where& w) {
    for (const plan::Operand* o : {&k.x, &k.gate_bias, &k.up_bias, &k.down_bias}) vector_only(*o, w);
    for (const std::string* m : {&k.gate, &k.up, &k.down}) matrix_only(*m, "holds experts", w);
  }
  void check_kind(const plan::AttendLatent& k, const graph::Where& w) {
    vector_only(k.q_nope, w), vector_only(k.q_rope, w), matrix_only(k.up, "is a matrix", w);
  }
  void check_kind(const plan::Copy& k, const graph::Where& w) { vector_only(k.from, w); }
  void check_kind(const plan::TakeRows& k, const graph::Where& w) { vector_only(k.x, w); }
  void check_kind(const plan::Custom& k, const graph::Where& w) {
    for (const auto& i : k.inputs) vector_only(i, w);
    check(k.body);
  }
  void check_kind(const plan::Repeat& k, const graph::Where&) { check(k.body); }
  template <class T> void check_kind(const T&, const graph::Where&) {}

  const graph::Module& m_;
  graph::ClassId owner_;
  std::vector<Unsupported>& to_;
};

// What the generated code's seams do not carry: said here by name, so that nothing is emitted that would run wrong.
class Seams {
 public:
  Seams(const graph::Module& m, const graph::Class& c, const graph::Function& f, std::vector<Unsupported>& to)
      : m_(m), class_(c), f_(f), to_(to) {}
  void check() {
    const bool entry = &class_ == &m_.of(m_.root) && f_.kind != graph::FunctionKind::init;
    if (entry) {
      for (graph::ValueId r : f_.body.results) {
        const graph::Type& t = f_.values[r.index].type;
        if (t.dtype != DType::f32 && t.dtype != DType::i32 && t.dtype != DType::boolean)
          later(fmt::format("a result of type {} of the model's {}", modelc::name(t.dtype), f_.name), f_.where);
      }
      for (const graph::Parameter& p : f_.inputs) {
        const graph::Type& t = f_.values[p.value.index].type;
        if (t.index_bound && !m_.dims.is_constant(*t.index_bound))
          later(fmt::format("input `{}`, an index below a size of run time,", p.name), f_.where);
      }
    }
    for (const graph::StateDecl& s : class_.states)
      if (s.sizes.size() > 4) later(fmt::format("state `{}` of {} extents", s.name, s.sizes.size()), s.where);
    if (f_.kind == graph::FunctionKind::init) no_weights(f_.body);
    loops(f_.body);
  }

 private:
  void later(const std::string& what, const graph::Where& where) {
    to_.push_back({what + " is not carried out by the C++ backend yet", where});
  }
  void no_weights(const graph::Block& b) {
    for (const graph::Op& op : b.ops)
      if (op.kind == graph::OpKind::weight) later(fmt::format("a const computed from weight `{}`", op.member), op.where);
  }
  // Loops run over a list of this class's own children, and not inside one another.
  void loops(const graph::Block& b, bool inside = false) {
    for (const graph::Op& op : b.ops) {
      if (op.kind != graph::OpKind::repeat) continue;        // the body of another has no loop
      bool own = false;
      for (const graph::ChildDecl& c : class_.children) own |= c.list && c.name == op.member;
      if (inside) later("a loop inside a loop", op.where);
      else if (!own) later(fmt::format("a loop over `{}`, which is no list of this module's own,", op.member), op.where);
      if (op.body) loops(*op.body, true);
    }
  }

  const graph::Module& m_;
  const graph::Class& class_;
  const graph::Function& f_;
  std::vector<Unsupported>& to_;
};

}  // namespace

Lowered lower(std::shared_ptr<const graph::Module> module, const Options& options) {
  Lowered result;
  if (graph::has_custom(*module)) {
    auto expanded = std::make_shared<graph::Module>(*module);
    graph::expand_custom(*expanded, [&](const graph::Custom& c) { return c.host >= 0 || (options.shaders && !c.dispatches.empty()); });
    module = std::move(expanded);
  }
  plan::Program& program = result.program;
  program.graph = module;
  program.dims = std::make_shared<graph::DimTable>(module->dims);
  program.step_value_bytes = program.dims->constant(0);
  if (module->dims.axes().size() > StepSizes::max_axes)
    result.failures.push_back({fmt::format("{} run-time axes: not carried out by the C++ backend yet, which has room for {}",
                                           module->dims.axes().size(), StepSizes::max_axes),
                               {},
                               false});

  graph::Roundings roundings = graph::roundings_of(*module);
  result.notes = std::move(roundings.notes);
  for (const graph::Class& c : module->classes) {
    plan::Class cls;
    cls.source = &c;
    std::vector<Unsupported> unsupported;
    for (const graph::Function& f : c.functions) {
      if (c.leaf && f.kind != graph::FunctionKind::init) continue;          // expanded in its callers
      std::vector<Unsupported> here;
      Seams(*module, c, f, here).check();
      plan::Function lowered;
      const auto rounding = roundings.functions.find(
          {static_cast<std::uint32_t>(&c - module->classes.data()), static_cast<std::uint32_t>(&f - c.functions.data())});
      if (here.empty())
        lowered = lower_function(f, *module, c, rounding == roundings.functions.end() ? nullptr : &rounding->second, cls, program, here);
      if (here.empty()) Roles(*module, {static_cast<std::uint32_t>(&c - module->classes.data())}, here).check(lowered.steps);
      if (here.empty()) cls.functions.push_back(std::move(lowered));
      unsupported.insert(unsupported.end(), here.begin(), here.end());
    }
    for (const plan::StepValue& v : cls.step_values) {
      // Every instance may hold values of its own: bounded by one copy per class here, counted per instance at load.
      program.step_value_bytes = program.dims->add(program.step_value_bytes, padded_bytes(*program.dims, v.shape));
    }
    for (const Unsupported& u : unsupported) result.failures.push_back({u.message, u.where, false});
    program.classes.push_back(std::move(cls));
  }
  if (!result.failures.empty()) return result;

  // A step value may be computed below any function, so its frame comes on top.
  graph::DimId deepest = program.dims->constant(0), once = deepest;
  for (const plan::Class& c : program.classes)
    for (const plan::StepValue& v : c.step_values) once = upper_of(*program.dims, once, v.compute.peak_bytes);
  for (const plan::Function& f : program.classes[module->root.index].functions) deepest = upper_of(*program.dims, deepest, f.peak_bytes);
  program.peak_bytes = program.dims->add(deepest, once);
  for (const std::string& problem : plan::verify(program)) result.failures.push_back({"the plan is not sound: " + problem, {}, true});
  return result;
}

}  // namespace modelc::lower

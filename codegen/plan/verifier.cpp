#include "codegen/plan/verifier.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "codegen/plan/walk.h"
#include "frontend/graph/members.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/types.h"

namespace modelc::plan {

namespace {

// What an operand must be.
enum class Need {
  value,           // numbers: a buffer, a weight, a const, a step value or a field of the batch
  optional_value,  // the same, or nothing
  batch,           // the function's own Batch or Sequences
  optional_batch,
  written,         // a buffer that the step fills
};

class Verifier {
  using enum graph::StateKind;

 public:
  Verifier(const Program& p, std::vector<std::string>& problems) : p_(p), problems_(problems) {}

  void run() {
    if (p_.classes.size() != p_.graph->classes.size()) {
      problems_.push_back("a class of the graph has no plan");
      return;
    }
    for (std::uint32_t i = 0; i < p_.classes.size(); ++i) {
      id_ = {i};
      class_ = &p_.classes[i];
      where_ = class_->source->name;
      packs();
      for (const Function& f : class_->functions) function(f);
      for (const StepValue& v : class_->step_values) step_value(v);
    }
  }

 private:
  void problem(const std::string& text) {
    problems_.push_back(step_.empty() ? fmt::format("{}: {}", where_, text) : fmt::format("{}: {}: {}", where_, step_, text));
  }

  // ---- members ----

  // The members that a path names: of this class, or of each class that the loop's element may be where it begins with a dot.
  std::vector<graph::MemberRef> members(const std::string& path, graph::MemberKind kind, const char* what) {
    std::vector<graph::MemberRef> found;
    const bool of_element = path.empty() || path[0] == '.';
    std::vector<graph::ClassId> from = of_element ? elements_ : std::vector{id_};
    if (from.empty()) problem(fmt::format("{} {} is of an element, and this is no loop", what, path.empty() ? "\"\"" : path));
    for (const graph::ClassId c : from) {
      const auto ref = graph::find_member(*p_.graph, c, of_element && !path.empty() ? path.substr(1) : path);
      if (ref && ref->kind == kind) found.push_back(*ref);
      else problem(fmt::format("no {} {}", what, path));
    }
    return found;
  }
  bool weight(const std::string& path) { return !members(path, graph::MemberKind::weight, "weight").empty(); }

  void packs() {
    for (const Pack& p : class_->packs) {
      // Blocks of one matrix lie in this class or below it, and a loop's element has its own.
      if (p.weights.empty()) problem(fmt::format("product {}: no weight", p.name));
      if (p.weights.size() != p.biases.size()) problem(fmt::format("product {}: a bias or none for every weight", p.name));
      for (const std::string& w : p.weights) weight_of_pack(p, w);
      for (const std::string& b : p.biases)
        if (!b.empty()) weight_of_pack(p, b);
    }
  }
  void weight_of_pack(const Pack& p, const std::string& path) {
    if (path.starts_with('.')) return;  // of an element: only its loop knows the classes
    const auto ref = graph::find_member(*p_.graph, id_, path);
    if (!ref || ref->kind != graph::MemberKind::weight) problem(fmt::format("product {}: no weight {}", p.name, path));
  }

  // ---- functions ----

  void function(const Function& f) {
    where_ = fmt::format("{}.{}", class_->source->name, f.name);
    f_ = &f;
    clock_ = 0;
    elements_.clear();
    written_.assign(f.buffers.size(), false);
    if (f.inputs.size() != f.input_names.size()) problem("a name for every input");
    if (f.outputs.size() != f.output_names.size()) problem("a name, or an empty one, for every result");
    for (BufferId b : f.inputs) {
      if (f.buffers[b.index].kind != BufferKind::input) problem(fmt::format("input {} is of another kind", f.buffers[b.index].name));
      written_[b.index] = true;
    }
    steps(f.steps);
    for (BufferId b : f.outputs) {
      if (f.buffers[b.index].kind != BufferKind::output) problem(fmt::format("result {} is of another kind", f.buffers[b.index].name));
      if (!written_[b.index]) problem(fmt::format("result {} is never written", f.buffers[b.index].name));
    }
    memory(f);
  }

  // A step value is computed in whatever function asks for it first, which has the batch.
  void step_value(const StepValue& v) {
    in_step_value_ = true;
    function(v.compute);
    where_ = fmt::format("{}.{}", class_->source->name, v.name);
    if (v.compute.outputs.size() != 1) problem("a value that is computed once is one");
    else if (count(v.compute.buffers[v.compute.outputs[0].index].type.shape) != count(v.shape)) problem("its result has another count");
    for (const Operand& key : v.keys) {
      if (std::holds_alternative<WeightRef>(key) || std::holds_alternative<ConstRef>(key)) operand(key, Need::value, "keys");
      else problem("a key is a weight or a const");
    }
    in_step_value_ = false;
  }

  // ---- operands ----

  graph::DimId count(std::span<const graph::DimId> shape) const {
    graph::DimId n = p_.dims->constant(1);
    for (graph::DimId d : shape) n = p_.dims->mul(n, d);
    return n;
  }

  // What is named has `whole` elements; it is seen under `shape`, all of it or some rows.
  void view(const std::string& name, graph::DimId whole, const std::optional<Rows>& rows, const std::vector<graph::DimId>& shape) {
    graph::DimId seen = whole;
    if (rows) {
      if (rows->of.empty() || count(rows->of) != whole) return problem(fmt::format("rows of {} under a shape of another count", name));
      seen = p_.dims->mul(p_.dims->sub(rows->stop, rows->start), count(std::span(rows->of).subspan(1)));
    }
    if (count(shape) != seen) problem(fmt::format("a view of {} has another count", name));
  }

  void operand(const Operand& o, Need need, const char* field) {
    const bool batch = need == Need::batch || need == Need::optional_batch;
    if (std::holds_alternative<Absent>(o)) {
      if (need != Need::optional_value && need != Need::optional_batch) problem(fmt::format("`{}` is missing", field));
    } else if (std::holds_alternative<BatchRef>(o) != batch) {
      problem(batch ? fmt::format("`{}` is not the batch", field) : fmt::format("`{}` is the batch, and no numbers", field));
    } else if (need == Need::written && !std::holds_alternative<BufferRef>(o)) {
      problem(fmt::format("`{}` is written, and is no buffer", field));
    } else {
      std::visit([&](const auto& named) { check(named, need == Need::written); }, o);
    }
  }

  void check(const Absent&, bool) {}
  void check(const BufferRef& b, bool write) {
    if (b.buffer.index >= f_->buffers.size()) return problem("a buffer that is not there");
    const Buffer& buffer = f_->buffers[b.buffer.index];
    view(buffer.name, count(buffer.type.shape), b.rows, b.shape);
    if (write && b.rows) problem(fmt::format("rows of {} are written", buffer.name));
    if (write && buffer.kind == BufferKind::input) problem(fmt::format("input {} is written", buffer.name));
    if (write) written_[b.buffer.index] = true;
    else if (!written_[b.buffer.index]) problem(fmt::format("{} is read before it is written", buffer.name));
    lives(buffer);
  }
  void check(const WeightRef& w, bool) {
    for (const graph::MemberRef& ref : members(w.member, graph::MemberKind::weight, "weight"))
      view_of(w.member, graph::weight_of(*p_.graph, ref)->type, w.rows, w.view);
  }
  void check(const ConstRef& c, bool) {
    for (const graph::MemberRef& ref : members(c.member, graph::MemberKind::constant, "const"))
      view_of(c.member, graph::const_of(*p_.graph, ref)->type, c.rows, c.view);
  }
  void view_of(const std::string& name, const graph::Type& type, const std::optional<Rows>& rows,
               const std::optional<std::vector<graph::DimId>>& shape) {
    if (rows && !shape) problem(fmt::format("rows of {} without the shape that they have", name));
    if (shape) view(name, count(type.shape), rows, *shape);
  }
  void check(const StepValueRef& s, bool) {
    if (s.index >= class_->step_values.size()) return problem("a step value that is not there");
    view(class_->step_values[s.index].name, count(class_->step_values[s.index].shape), std::nullopt, s.shape);
  }
  void check(const BatchField& b, bool) {
    if (f_->at != TakesAt::batch && !in_step_value_) problem("a field of a batch that the function does not take");
    const auto type = graph::batch_field_type(b.field, *p_.dims, p_.graph->context);
    if (!type) return problem("a batch has no field " + b.field);
    if (b.view) view("at." + b.field, count(type->shape), std::nullopt, *b.view);
  }
  void check(const BatchRef&, bool) {
    if (f_->at == TakesAt::none) problem("a batch that the function does not take");
  }

  // ---- steps ----

  void value(const Operand& o, const char* field) { operand(o, Need::value, field); }
  void may(const Operand& o, const char* field) { operand(o, Need::optional_value, field); }
  void out(const Operand& o, const char* field) { operand(o, Need::written, field); }

  const Pack* pack(std::uint32_t index) {
    if (index < class_->packs.size()) return &class_->packs[index];
    problem("a product that is not there");
    return nullptr;
  }
  void kernel(KernelId id, std::size_t inputs, bool exact) {
    if (id.index >= p_.kernels.size()) return problem("a kernel that is not there");
    const std::size_t takes = p_.kernels[id.index].inputs.size();
    if (exact ? takes != inputs : takes > inputs)
      problem(fmt::format("the kernel {} takes {} inputs, not {}", p_.kernels[id.index].name, takes, inputs));
  }
  void state(const std::string& path, const Operand& at, std::initializer_list<graph::StateKind> kinds) {
    if (path.empty()) return problem("no state is named");
    std::vector<std::string_view> taken;
    for (const graph::StateKind kind : kinds) taken.push_back(graph::language_name(kind));
    for (const graph::MemberRef& ref : members(path, graph::MemberKind::state, "state"))
      if (const graph::StateDecl* s = graph::state_of(*p_.graph, ref); std::find(kinds.begin(), kinds.end(), s->kind) == kinds.end())
        problem(fmt::format("{} is a {}, and no {}", path, graph::language_name(s->kind), fmt::join(taken, " or ")));
    operand(at, Need::batch, "at");
  }

  void step(const Linear& s) {
    value(s.x, "x");
    if (const Pack* p = pack(s.pack); p && p->weights.size() != s.outs.size()) problem("a product has as many results as blocks");
    for (const Operand& o : s.outs) out(o, "outs");
  }
  void rounding(DType to) {
    if (to != DType::f32 && to != DType::bf16 && to != DType::f16) problem(fmt::format("a value is rounded to {}", name(to)));
  }
  void step(const LinearAdd& s) { rounding(s.rounded), pack(s.pack), value(s.x, "x"), value(s.residual, "residual"), out(s.out, "out"); }
  void step(const LinearMap& s) {
    if (const Pack* p = pack(s.pack)) kernel(s.kernel, p->weights.size(), false);
    rounding(s.rounded);
    value(s.x, "x"), out(s.out, "out");
  }
  void step(const Take& s) { weight(s.table), value(s.rows, "rows"), out(s.out, "out"); }
  void step(const TakeRows& s) { value(s.x, "x"), value(s.rows, "rows"), out(s.out, "out"); }
  void step(const RmsNorm& s) { value(s.x, "x"), may(s.w, "w"), out(s.out, "out"); }
  void step(const AddRmsNorm& s) { value(s.x, "x"), value(s.y, "y"), may(s.w, "w"), out(s.sum, "sum"), out(s.out, "out"); }
  void step(const LayerNorm& s) { value(s.x, "x"), may(s.w, "w"), may(s.b, "b"), out(s.out, "out"); }
  void step(const Rope& s) { value(s.x, "x"), value(s.cos, "cos"), value(s.sin, "sin"), out(s.out, "out"); }
  void step(const Append& s) { value(s.k, "k"), value(s.v, "v"), state(s.state, s.at, {kv_cache, latent_cache}); }
  void step(const CrossSet& s) { value(s.k, "k"), value(s.v, "v"), state(s.state, s.at, {cross_cache}); }
  void step(const Attend& s) {
    value(s.q, "q");
    if (s.state.empty()) value(s.k, "k"), value(s.v, "v"), operand(s.at, Need::optional_batch, "at");
    else state(s.state, s.at, {kv_cache, cross_cache});
    if (!s.state.empty() && !(std::holds_alternative<Absent>(s.k) && std::holds_alternative<Absent>(s.v)))
      problem("keys and values are given, and come from a state");
    if (!std::holds_alternative<Absent>(s.keep) && !std::holds_alternative<Absent>(s.at)) problem("`keep` is of rectangular sequences");
    may(s.sinks, "sinks"), may(s.keep, "keep"), out(s.out, "out");
  }
  void step(const AttendLatent& s) {
    value(s.q_nope, "q_nope"), value(s.q_rope, "q_rope"), state(s.state, s.at, {latent_cache});
    weight(s.up), out(s.out, "out");
  }
  void step(const Map& s) {
    kernel(s.kernel, s.inputs.size(), true);
    for (const Operand& o : s.inputs) value(o, "inputs");
    out(s.out, "out");
  }
  void step(const Copy& s) { value(s.from, "from"), out(s.to, "to"); }
  void step(const Rearrange& s) {
    for (const Part& p : s.parts) value(p.from, "from");
    if (s.parts.empty() && !s.fill) problem("nothing is put into the result");
    out(s.out, "out");
  }
  void step(const Reduce& s) { value(s.x, "x"), may(s.where, "where"), out(s.out, "out"); }
  void step(const Route& s) { value(s.scores, "scores"), may(s.bias, "bias"), out(s.chosen, "chosen"), out(s.weights, "weights"); }
  void step(const Experts& s) {
    value(s.x, "x"), value(s.chosen, "chosen"), value(s.weights, "weights");
    weight(s.gate), weight(s.down);
    if (!s.up.empty()) weight(s.up);
    may(s.gate_bias, "gate_bias"), may(s.up_bias, "up_bias"), may(s.down_bias, "down_bias");
    kernel(s.kernel, s.up.empty() ? 1 : 2, false);
    out(s.out, "out");
  }
  void step(const Conv& s) { value(s.x, "x"), value(s.w, "w"), may(s.b, "b"), out(s.out, "out"); }
  void step(const CausalConv1d& s) { value(s.x, "x"), value(s.w, "w"), may(s.b, "b"), state(s.state, s.at, {ring}), out(s.out, "out"); }
  void step(const SsdScan& s) {
    value(s.x, "x"), value(s.dt, "dt"), value(s.a, "a"), value(s.b, "b"), value(s.c, "c"), value(s.d, "d");
    state(s.state, s.at, {recurrent}), out(s.out, "out");
  }
  void step(const GatedDelta& s) {
    value(s.q, "q"), value(s.k, "k"), value(s.v, "v"), value(s.decay, "decay"), value(s.beta, "beta");
    state(s.state, s.at, {recurrent}), out(s.out, "out");
  }
  void step(const Fill& s) { out(s.out, "out"); }
  void step(const Call& s) {
    for (const Operand& o : s.inputs) value(o, "inputs");
    operand(s.at, Need::optional_batch, "at");
    for (const Operand& o : s.outs) out(o, "outs");
    std::set<std::uint32_t> seen;
    for (const graph::MemberRef& ref : members(s.member, graph::MemberKind::child, "child"))
      if (seen.insert(ref.owner.index).second) called(s, p_.classes[ref.owner.index].functions);
  }
  void called(const Call& s, const std::vector<Function>& functions) {
    const auto f = std::find_if(functions.begin(), functions.end(), [&](const Function& x) { return x.name == s.function; });
    if (f == functions.end()) return problem(fmt::format("{} has no function {}", s.member, s.function));
    if (f->inputs.size() != s.inputs.size() || f->outputs.size() != s.outs.size())
      return problem(fmt::format("{}.{} is called with {} inputs and {} results, not {} and {}", s.member, s.function, s.inputs.size(),
                                 s.outs.size(), f->inputs.size(), f->outputs.size()));
    if (std::holds_alternative<Absent>(s.at) != (f->at == TakesAt::none))
      problem(fmt::format("{}.{} {}", s.member, s.function, f->at == TakesAt::none ? "takes no batch" : "is called without the batch"));
    const auto passed = [&](const Operand& given, BufferId to) {
      const auto* b = std::get_if<BufferRef>(&given);
      if (b && count(b->shape) != count(f->buffers[to.index].type.shape))
        problem(fmt::format("{}.{} takes and gives {} of another count", s.member, s.function, f->buffers[to.index].name));
    };
    for (std::size_t i = 0; i < s.inputs.size(); ++i) passed(s.inputs[i], f->inputs[i]);
    for (std::size_t i = 0; i < s.outs.size(); ++i) passed(s.outs[i], f->outputs[i]);
  }
  void step(const Custom& s) {
    const int begin = clock_ - 1;
    for (const Operand& o : s.inputs) value(o, "inputs");
    if (s.dispatches.empty() && s.host < 0) problem("nothing but its reference computes it");
    if (s.host >= 0 && static_cast<std::size_t>(s.host) >= p_.graph->host_code.size()) problem("host code that is not there");
    for (const graph::Dispatch& d : s.dispatches) {
      if (d.shader < 0 || static_cast<std::size_t>(d.shader) >= p_.graph->shaders.size()) problem("a shader that is not there");
      if (d.groups.empty() || d.groups.size() > 3) problem("a shader runs in one to three axes of groups");
    }
    std::vector<bool> before = written_;
    for (const Operand& o : s.outs)
      if (const auto* b = std::get_if<BufferRef>(&o); b && b->buffer.index < before.size()) written_[b->buffer.index] = false;
    const std::string around_step = std::exchange(step_, "");
    steps(s.body);
    step_ = around_step;
    ++clock_;
    for (const Operand& o : s.outs) {
      const auto* b = std::get_if<BufferRef>(&o);
      if (b && b->buffer.index < written_.size() && !written_[b->buffer.index])
        problem(fmt::format("{} is never written by its reference", f_->buffers[b->buffer.index].name));
      out(o, "outs");
      if (b && b->buffer.index < written_.size()) at_once(f_->buffers[b->buffer.index], begin);
    }
    for (const Operand& o : s.inputs) value(o, "inputs");    // a shader reads them while it writes
  }
  void at_once(const Buffer& b, int begin) {
    if (b.kind == BufferKind::frame && b.first > begin) problem(fmt::format("{} is written before it lives", b.name));
  }
  void step(const Repeat& r) {
    const int begin = clock_ - 1;
    std::vector<graph::ClassId> elements;
    for (const graph::MemberRef& ref : members(r.member, graph::MemberKind::list, "list"))
      for (const graph::ClassId e : graph::list_of(*p_.graph, ref)->elements) elements.push_back(e);
    for (const Carried& c : r.carried) {
      if (c.current.index >= f_->buffers.size() || c.next.index >= f_->buffers.size()) return problem("a buffer that is not there");
      const Buffer& current = f_->buffers[c.current.index];
      const Buffer& next = f_->buffers[c.next.index];
      rounding(c.rounded);
      if (!written_[c.current.index]) problem(fmt::format("{} is carried before it is written", current.name));
      if (c.current == c.next) problem(fmt::format("{} is carried into itself", current.name));
      if (count(current.type.shape) != count(next.type.shape))
        problem(fmt::format("{} and {} are carried, and differ in count", current.name, next.name));
    }
    std::vector<graph::ClassId> around = std::exchange(elements_, std::move(elements));
    const std::string around_step = std::exchange(step_, "");
    steps(r.body);
    step_ = around_step;
    elements_ = std::move(around);
    const int end = clock_++;
    for (const Carried& c : r.carried) {
      if (!written_[c.next.index]) problem(fmt::format("{} is never written in the loop", f_->buffers[c.next.index].name));
      // They change places in every pass, so both live to its end.
      for (const BufferId b : {c.current, c.next}) {
        const Buffer& buffer = f_->buffers[b.index];
        if (buffer.kind == BufferKind::frame && (buffer.first > begin || buffer.last < end))
          problem(fmt::format("{} is carried longer than it lives", buffer.name));
      }
    }
    ends_of_loop(r.body, begin, end);
  }

  // What comes from outside of a loop is needed in every pass.
  void ends_of_loop(const std::vector<Step>& body, int begin, int end) {
    const auto look = [&](const Operand& o) {
      const auto* b = std::get_if<BufferRef>(&o);
      if (b == nullptr || b->buffer.index >= f_->buffers.size()) return;
      const Buffer& buffer = f_->buffers[b->buffer.index];
      if (buffer.kind == BufferKind::frame && buffer.first < begin && buffer.last < end)
        problem(fmt::format("{} is read in every pass of a loop, and does not live so long", buffer.name));
    };
    for (const Step& s : body) {
      for_each_operand(s.kind, look, [](const Operand&) {});
      if (const auto* inner = body_of(s.kind)) ends_of_loop(*inner, begin, end);
    }
  }

  void steps(const std::vector<Step>& list) {
    for (const Step& s : list) {
      ++clock_;
      step_ = kind_name(s.kind);
      std::visit([&](const auto& kind) { step(kind); }, s.kind);
      for (const Rounding& r : s.roundings) {
        value(r.value, "roundings"), out(r.value, "roundings");
        rounding(r.to);
      }
      for (const Trace& t : s.traces) operand(t.value, Need::value, "traces");
      step_.clear();
    }
  }

  // ---- memory ----

  // Steps are numbered in order of execution, one with a body at its beginning and at its end.
  void lives(const Buffer& b) {
    const int at = clock_ - 1;
    if (b.kind != BufferKind::frame) return;
    if (at < b.first || at > b.last) problem(fmt::format("{} is used at step {}, and lives from {} to {}", b.name, at, b.first, b.last));
  }

  void memory(const Function& f) {
    const std::size_t axes = p_.dims->axes().size();
    for (const std::int64_t size : {1, 7, 512}) {
      const std::vector<std::int64_t> sizes(axes, size);
      const auto at = [&](graph::DimId d) { return p_.dims->evaluate(d, sizes).value_or(-1); };
      const std::int64_t frame = at(f.frame_bytes);
      for (std::size_t i = 0; i < f.buffers.size(); ++i) {
        const Buffer& a = f.buffers[i];
        if (a.kind != BufferKind::frame) continue;
        const std::int64_t begin = at(a.offset), end = begin + at(a.bytes);
        if (begin < 0 || end > frame) problem(fmt::format("{} does not lie in the frame", a.name));
        if (begin % 64 != 0) problem(fmt::format("{} is not aligned", a.name));
        constexpr std::int64_t element = 4;      // every value is f32 or i32
        if (at(a.bytes) / element < at(count(a.type.shape))) problem(fmt::format("{} has no room for its elements", a.name));
        for (std::size_t k = i + 1; k < f.buffers.size(); ++k) {
          const Buffer& b = f.buffers[k];
          if (b.kind != BufferKind::frame || a.last < b.first || b.last < a.first) continue;
          if (begin < at(b.offset) + at(b.bytes) && at(b.offset) < end)
            problem(fmt::format("{} and {} live at once in the same place", a.name, b.name));
        }
      }
    }
  }

  const Program& p_;
  std::vector<std::string>& problems_;
  graph::ClassId id_;
  const Class* class_ = nullptr;
  const Function* f_ = nullptr;
  std::vector<bool> written_;
  bool in_step_value_ = false;
  int clock_ = 0;                                // steps begun so far; a loop counts twice once it has ended
  std::vector<graph::ClassId> elements_;         // what the element of the loop around may be
  std::string where_, step_;
};

}  // namespace

std::vector<std::string> verify(const Program& program) {
  std::vector<std::string> problems;
  Verifier(program, problems).run();
  return problems;
}

}  // namespace modelc::plan

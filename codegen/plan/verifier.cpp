#include "codegen/plan/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/plan/walk.h"
#include "frontend/graph/members.h"

namespace modelc::plan {

namespace {

class Verifier {
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
      in_step_value_ = true;
      for (const StepValue& v : class_->step_values) function(v.compute);
      in_step_value_ = false;
    }
  }

 private:
  void problem(const std::string& text) { problems_.push_back(fmt::format("{}: {}", where_, text)); }

  bool member(const std::string& path, graph::MemberKind kind) {
    // Inside a loop a path that begins with a dot is the element's.
    if (path.empty() || path[0] == '.') return true;
    const auto ref = graph::find_member(*p_.graph, id_, path);
    return ref && ref->kind == kind;
  }
  void packs() {
    for (const Pack& p : class_->packs) {
      if (p.weights.size() != p.biases.size()) problem(fmt::format("pack {}: a bias or none for every weight", p.name));
      for (const std::string& w : p.weights)
        if (!member(w, graph::MemberKind::weight)) problem(fmt::format("pack {}: no weight {}", p.name, w));
      for (const std::string& b : p.biases)
        if (!b.empty() && !member(b, graph::MemberKind::weight)) problem(fmt::format("pack {}: no weight {}", p.name, b));
    }
  }

  void function(const Function& f) {
    where_ = fmt::format("{}.{}", class_->source->name, f.name);
    f_ = &f;
    written_.assign(f.buffers.size(), false);
    for (BufferId b : f.inputs) written_[b.index] = true;
    steps(f.steps);
    for (BufferId b : f.outputs)
      if (!written_[b.index]) problem(fmt::format("result {} is never written", f.buffers[b.index].name));
    memory(f);
  }

  graph::DimId count(const std::vector<graph::DimId>& shape) const {
    graph::DimId n = p_.dims->constant(1);
    for (graph::DimId d : shape) n = p_.dims->mul(n, d);
    return n;
  }

  void operand(const Operand& o, bool write) {
    if (const auto* b = std::get_if<BufferRef>(&o)) {
      if (b->buffer.index >= f_->buffers.size()) return problem("a buffer that is not there");
      const Buffer& buffer = f_->buffers[b->buffer.index];
      if (count(b->rows ? b->rows->of : b->shape) != count(buffer.type.shape)) problem(fmt::format("a view of {} has another count", buffer.name));
      if (write && b->rows) problem(fmt::format("rows of {} are written", buffer.name));
      if (write && buffer.kind == BufferKind::input) problem(fmt::format("input {} is written", buffer.name));
      if (write) written_[b->buffer.index] = true;
      else if (!written_[b->buffer.index]) problem(fmt::format("{} is read before it is written", buffer.name));
    } else if (write) {
      problem("a step writes something that is no buffer");
    } else if (const auto* w = std::get_if<WeightRef>(&o)) {
      if (!member(w->member, graph::MemberKind::weight)) problem("no weight " + w->member);
    } else if (const auto* c = std::get_if<ConstRef>(&o)) {
      if (!member(c->member, graph::MemberKind::constant)) problem("no const " + c->member);
    } else if (const auto* s = std::get_if<StepValueRef>(&o)) {
      if (s->index >= class_->step_values.size()) problem("a step value that is not there");
    } else if (std::holds_alternative<BatchField>(o)) {
      // A step value is computed in whatever function asks for it first, which has the batch.
      if (f_->at != TakesAt::batch && !in_step_value_) problem("a field of a batch that the function does not take");
    } else if (std::holds_alternative<BatchRef>(o)) {
      if (f_->at == TakesAt::none) problem("a batch that the function does not take");
    }
  }

  void steps(const std::vector<Step>& list) {
    for (const Step& s : list) {
      for_each_operand(s.kind, [&](const Operand& o) { operand(o, false); }, [&](const Operand& o) { operand(o, true); });
      if (const auto* l = std::get_if<Linear>(&s.kind)) {
        if (l->pack >= class_->packs.size() || class_->packs[l->pack].weights.size() != l->outs.size())
          problem("a product has as many results as blocks");
      } else if (const auto* a = std::get_if<LinearAdd>(&s.kind)) {
        if (a->pack >= class_->packs.size()) problem("a product that is not there");
      } else if (const auto* m = std::get_if<LinearMap>(&s.kind)) {
        if (m->pack >= class_->packs.size()) problem("a product that is not there");
        kernel(m->kernel, std::nullopt);
      } else if (const auto* map = std::get_if<Map>(&s.kind)) {
        kernel(map->kernel, map->inputs.size());
      } else if (const auto* e = std::get_if<Experts>(&s.kind)) {
        kernel(e->kernel, std::nullopt);
        for (const std::string* w : {&e->gate, &e->up, &e->down})
          if (!w->empty() && !member(*w, graph::MemberKind::weight)) problem("no weight " + *w);
      } else if (const auto* t = std::get_if<Take>(&s.kind)) {
        if (!member(t->table, graph::MemberKind::weight)) problem("no weight " + t->table);
      } else if (const auto* to = std::get_if<Call>(&s.kind)) {
        call(*to);
      } else if (const auto* r = std::get_if<Repeat>(&s.kind)) {
        if (!r->member.starts_with('.') && !member(r->member, graph::MemberKind::list)) problem("no list " + r->member);
        for (const Carried& c : r->carried) written_[c.next.index] = true, rounding(c.rounded);
        steps(r->body);
      }
      for (const Rounding& r : s.roundings) {
        operand(r.value, false), operand(r.value, true);
        rounding(r.to);
      }
      for (const Trace& t : s.traces) operand(t.value, false);
    }
  }
  void rounding(DType to) {
    if (to != DType::f32 && to != DType::bf16 && to != DType::f16) problem(fmt::format("a value is rounded to {}", name(to)));
  }

  void kernel(KernelId id, std::optional<std::size_t> inputs) {
    if (id.index >= p_.kernels.size()) problem("a kernel that is not there");
    else if (inputs && p_.kernels[id.index].inputs.size() != *inputs)
      problem(fmt::format("the kernel {} takes {} inputs, not {}", p_.kernels[id.index].name, p_.kernels[id.index].inputs.size(), *inputs));
  }
  // Of a loop's element only what it is called by is known here: elements may be of several classes.
  void call(const Call& to) {
    if (to.member.empty() || to.member[0] == '.') return;
    const auto ref = graph::find_member(*p_.graph, id_, to.member);
    if (!ref || ref->kind != graph::MemberKind::child) return problem("no child " + to.member);
    const auto& functions = p_.classes[ref->owner.index].functions;
    const auto f = std::find_if(functions.begin(), functions.end(), [&](const Function& x) { return x.name == to.function; });
    if (f == functions.end()) return problem(fmt::format("{} has no function {}", to.member, to.function));
    if (f->inputs.size() != to.inputs.size() || f->outputs.size() != to.outs.size())
      problem(fmt::format("{}.{} is called with {} inputs and {} results, not {} and {}", to.member, to.function, to.inputs.size(),
                          to.outs.size(), f->inputs.size(), f->outputs.size()));
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
  std::string where_;
};

}  // namespace

std::vector<std::string> verify(const Program& program) {
  std::vector<std::string> problems;
  Verifier(program, problems).run();
  return problems;
}

}  // namespace modelc::plan

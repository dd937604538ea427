#include "codegen/plan/printer.h"

#include <fmt/format.h>

#include "codegen/plan/walk.h"
#include "frontend/graph/ops.h"

namespace modelc::plan {

namespace {

std::string infix(graph::OpKind op) {
  using K = graph::OpKind;
  switch (op) {
    case K::add: return "+";
    case K::sub: return "-";
    case K::mul: return "*";
    case K::div: return "/";
    case K::less: return "<";
    case K::less_equal: return "<=";
    case K::greater: return ">";
    case K::greater_equal: return ">=";
    case K::equal: return "==";
    case K::not_equal: return "!=";
    default: return "";
  }
}

std::string node_text(const MapKernel& k, std::uint32_t at, bool top) {
  const MapNode& n = k.nodes[at];
  if (n.kind == MapNode::Kind::input) return n.input < k.inputs.size() ? k.inputs[n.input] : fmt::format("in{}", n.input);
  if (n.kind == MapNode::Kind::literal) return fmt::format("{}", n.literal);
  const std::string sign = infix(n.op);
  if (!sign.empty() && n.operands.size() == 2) {
    const std::string s = node_text(k, n.operands[0], false) + " " + sign + " " + node_text(k, n.operands[1], false);
    return top ? s : "(" + s + ")";
  }
  std::string s = std::string(graph::info(n.op).name) + "(";
  for (std::size_t i = 0; i < n.operands.size(); ++i) s += (i ? ", " : "") + node_text(k, n.operands[i], true);
  return s + ")";
}

class Printer {
 public:
  explicit Printer(const Program& p) : p_(p) {}

  std::string run() {
    out_ += fmt::format("plan {}\n", p_.graph->name);
    out_ += fmt::format("arena: {} bytes, and {} for step values\n", dim(p_.peak_bytes), dim(p_.step_value_bytes));
    for (const MapKernel& k : p_.kernels)
      out_ += fmt::format("kernel {}({}) = {}\n", k.name, fmt::join(k.inputs, ", "), expression(k));
    for (const Class& c : p_.classes) cls(c);
    return out_;
  }

 private:
  std::string dim(graph::DimId d) const { return p_.dims->text(d); }
  std::string shape(const std::vector<graph::DimId>& s) const {
    std::string t = "[";
    for (std::size_t i = 0; i < s.size(); ++i) t += (i ? ", " : "") + dim(s[i]);
    return t + "]";
  }

  void cls(const Class& c) {
    if (c.functions.empty() && c.packs.empty()) return;
    class_ = &c;
    out_ += fmt::format("\nclass {}\n", c.source->name);
    for (const Pack& p : c.packs) {
      out_ += fmt::format("  product {} = rows of", p.name);
      for (std::size_t i = 0; i < p.weights.size(); ++i)
        out_ += fmt::format("{} {}{}", i ? "," : "", p.weights[i], p.biases[i].empty() ? "" : " + " + p.biases[i]);
      out_ += "\n";
    }
    for (const StepValue& v : c.step_values) {
      out_ += fmt::format("  once a step {} {}\n", v.name, shape(v.shape));
      function(v.compute);
    }
    for (const Function& f : c.functions) function(f);
  }

  void function(const Function& f) {
    f_ = &f;
    out_ += fmt::format("  function {}\n    frame {} bytes, peak {}\n", f.shapes, dim(f.frame_bytes), dim(f.peak_bytes));
    for (const Buffer& b : f.buffers) {
      const char* kind = b.kind == BufferKind::input ? "input" : b.kind == BufferKind::output ? "output" : "frame";
      out_ += fmt::format("    buffer {} {} {}", b.name, shape(b.type.shape), kind);
      if (b.kind == BufferKind::frame)
        out_ += fmt::format(" at {}, {} bytes, steps {}..{}", dim(b.offset), dim(b.bytes), b.first, b.last);
      out_ += "\n";
    }
    int index = 0;
    steps(f.steps, 4, index);
  }

  std::string operand(const Operand& o) const {
    const auto rows = [&](const std::optional<Rows>& r) {
      return r ? fmt::format(" as {} rows {} .. {}", shape(r->of), dim(r->start), dim(r->stop)) : std::string();
    };
    if (const auto* b = std::get_if<BufferRef>(&o)) {
      const Buffer& buffer = f_->buffers[b->buffer.index];
      return buffer.name + rows(b->rows) + (b->shape == buffer.type.shape ? "" : " as " + shape(b->shape));
    }
    const auto view = [&](const auto& v) { return v ? " as " + shape(*v) : std::string(); };
    if (const auto* w = std::get_if<WeightRef>(&o)) return w->member + rows(w->rows) + view(w->view);
    if (const auto* c = std::get_if<ConstRef>(&o)) return c->member + rows(c->rows) + view(c->view);
    if (const auto* s = std::get_if<StepValueRef>(&o)) return "once " + class_->step_values[s->index].name;
    if (const auto* f = std::get_if<BatchField>(&o)) return "at." + f->field + view(f->view);
    if (std::holds_alternative<BatchRef>(o)) return "at";
    return "none";
  }

  void steps(const std::vector<Step>& list, int indent, int& index) {
    for (const Step& s : list) {
      out_ += fmt::format("{:{}}{}: {}", "", indent, index++, kind_name(s.kind));
      extras(s.kind);
      std::string reads, writes;
      for_each_operand(s.kind, [&](const Operand& o) { reads += (reads.empty() ? " " : ", ") + operand(o); },
                       [&](const Operand& o) { writes += (writes.empty() ? " " : ", ") + operand(o); });
      out_ += reads + (writes.empty() ? "" : " ->" + writes);
      if (!s.replaces.empty()) out_ += fmt::format("   // {}", fmt::join(s.replaces, "; "));
      out_ += "\n";
      if (const auto* r = std::get_if<Repeat>(&s.kind)) {
        steps(r->body, indent + 2, index);
        ++index;
      }
    }
  }

  std::string layout(const char* how, const Layout& l) const {
    switch (l.kind) {
      case Layout::Kind::slice:
        return fmt::format(" ({} at {} .. {} by {} of axis {})", how, dim(l.start), dim(l.stop), l.step, l.axis);
      case Layout::Kind::transpose: return fmt::format(" ({} with axes {} and {} exchanged)", how, l.axis, l.other);
      case Layout::Kind::expand: return fmt::format(" ({} as {})", how, shape(l.shape));
      case Layout::Kind::repeat: return fmt::format(" ({} {} times along axis {})", how, l.step, l.axis);
      case Layout::Kind::whole: break;
    }
    return "";
  }

  void extras(const StepKind& k) {
    if (const auto* s = std::get_if<Linear>(&k)) out_ += " " + class_->packs[s->pack].name;
    if (const auto* s = std::get_if<LinearAdd>(&k)) out_ += " " + class_->packs[s->pack].name;
    if (const auto* s = std::get_if<LinearMap>(&k))
      out_ += fmt::format(" {} by {}", class_->packs[s->pack].name, p_.kernels[s->kernel.index].name);
    if (const auto* s = std::get_if<Take>(&k)) out_ += fmt::format(" {}{}", s->table, s->scale == 1 ? "" : fmt::format(" · {}", s->scale));
    if (const auto* s = std::get_if<Map>(&k)) out_ += " " + p_.kernels[s->kernel.index].name;
    if (const auto* s = std::get_if<Append>(&k)) out_ += " to " + s->state;
    if (const auto* s = std::get_if<Attend>(&k); s && !s->state.empty()) out_ += " over " + s->state;
    if (const auto* s = std::get_if<Call>(&k)) out_ += fmt::format(" {}.{}", s->member.empty() ? "element" : s->member, s->function);
    if (const auto* s = std::get_if<Rearrange>(&k))
      for (const Part& p : s->parts) out_ += layout("read", p.read) + layout("written", p.write);
    if (const auto* s = std::get_if<Reduce>(&k)) out_ += fmt::format(" {} along axis {} of", graph::info(s->op).name, s->axis);
    if (const auto* s = std::get_if<Experts>(&k))
      out_ += fmt::format(" {}, {}, {} by {}", s->gate, s->up, s->down, p_.kernels[s->kernel.index].name);
    if (const auto* s = std::get_if<Fill>(&k)) out_ += s->values.empty() ? " 0, 1, 2, …" : fmt::format(" {}", fmt::join(s->values, ", "));
    if (const auto* s = std::get_if<Repeat>(&k)) {
      out_ += fmt::format(" {} in {}", s->variable, s->member);
      for (const Carried& c : s->carried)
        out_ += fmt::format(", {} and {} change places", f_->buffers[c.current.index].name, f_->buffers[c.next.index].name);
    }
  }

  const Program& p_;
  const Class* class_ = nullptr;
  const Function* f_ = nullptr;
  std::string out_;
};

}  // namespace

std::string expression(const MapKernel& kernel) {
  return kernel.nodes.empty() ? "" : node_text(kernel, static_cast<std::uint32_t>(kernel.nodes.size() - 1), true);
}

std::string print(const Program& program) { return Printer(program).run(); }

}  // namespace modelc::plan

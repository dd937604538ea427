// The source file's functions: one C++ function per module, the user's names, one line a step.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "codegen/emit/cpp/pieces.h"
#include "codegen/plan/walk.h"
#include "frontend/graph/members.h"
#include "frontend/graph/ops.h"

namespace modelc::emit {

namespace {

const AxisNames in_function = {"s."}, in_frame = {""};

bool has_frame(const plan::Function& f) {
  return std::any_of(f.buffers.begin(), f.buffers.end(), [](const auto& b) { return b.kind == plan::BufferKind::frame; });
}

// "LlamaAttentionBuffers"; of a function other than forward with its name.
std::string frame_type(const Names& names, graph::ClassId id, const std::string& function) {
  std::string s = names.classes[id.index].type;
  if (function != "forward") s += "_" + identifier(function);
  return s + "Buffers";
}

std::vector<std::string> buffer_names(const plan::Function& f) {
  Scope scope({"f32", "i32", "at", "tokens", "outputs", "batch", "seq", "axis", "axes", "Step", "Frame", "Tensor"});
  std::vector<std::string> result;
  for (const plan::Buffer& b : f.buffers) result.push_back(b.kind == plan::BufferKind::frame ? scope.unique(b.name) : "");
  return result;
}

// What a step is called in the table of buffers.
std::string step_label(const plan::Program& p, const plan::Class& c, const plan::Step& s) {
  if (const auto* x = std::get_if<plan::Linear>(&s.kind)) return c.packs[x->pack].name;
  if (const auto* x = std::get_if<plan::LinearAdd>(&s.kind)) return c.packs[x->pack].name;
  if (const auto* x = std::get_if<plan::LinearMap>(&s.kind)) return p.kernels[x->kernel.index].name;
  if (const auto* x = std::get_if<plan::Map>(&s.kind)) return p.kernels[x->kernel.index].name;
  if (const auto* x = std::get_if<plan::Call>(&s.kind)) return x->member.empty() ? "layer" : x->member;
  if (const auto* x = std::get_if<plan::Custom>(&s.kind)) return x->name;
  return plan::kind_name(s.kind);
}

void collect_labels(const plan::Program& p, const plan::Class& c, const std::vector<plan::Step>& steps, std::vector<std::string>& labels) {
  for (const plan::Step& s : steps) {
    labels.push_back(step_label(p, c, s));
    if (const auto* body = plan::body_of(s.kind)) {
      collect_labels(p, c, *body, labels);
      labels.push_back(step_label(p, c, s));
    }
  }
}

std::string frame_struct(const Names& names, graph::ClassId id, const plan::Function& f) {
  const plan::Program& p = names.program;
  const graph::DimTable& dims = *p.dims;
  const std::string type = frame_type(names, id, f.name);
  const std::vector<std::string> fields = buffer_names(f);
  std::vector<std::string> labels;
  collect_labels(p, p.classes[id.index], f.steps, labels);
  const auto label = [&](int i) {
    return i < 0 || static_cast<std::size_t>(i) >= labels.size() ? std::string("-") : labels[static_cast<std::size_t>(i)];
  };
  std::vector<std::array<std::string, 4>> rows = {{"name", "bytes", "written by", "last read by"}};
  for (std::size_t i = 0; i < f.buffers.size(); ++i)
    if (f.buffers[i].kind == plan::BufferKind::frame)
      rows.push_back({fields[i], dims.text(f.buffers[i].bytes), label(f.buffers[i].first), label(f.buffers[i].last)});
  std::array<std::size_t, 4> width{};
  for (const auto& r : rows)
    for (std::size_t k = 0; k < 4; ++k) width[k] = std::max(width[k], r[k].size());
  std::string s;
  for (const auto& r : rows) s += fmt::format("// {:<{}}  {:<{}}  {:<{}}  {}\n", r[0], width[0], r[1], width[1], r[2], width[2], r[3]);
  s += fmt::format("struct {} : Step::Frame {{\n  explicit {}(Step& s) : Frame(s, {}) {{}}\n", type, type,
                   dim_expression(dims, f.frame_bytes, in_function));
  for (std::size_t i = 0; i < f.buffers.size(); ++i) {
    const plan::Buffer& b = f.buffers[i];
    if (b.kind != plan::BufferKind::frame) continue;
    s += fmt::format("  Tensor {} = {}({}, {});\n", fields[i], b.type.dtype == DType::i32 ? "i32" : "f32",
                     dim_expression(dims, b.offset, in_frame), shape_expression(dims, b.type.shape, in_frame));
  }
  return s + "};\n";
}

// The text of one function's steps.
class Body {
 public:
  Body(const Names& names, graph::ClassId id, const plan::Function& f, Scope scope)
      : names_(names),
        p_(names.program),
        id_(id),
        class_(p_.classes[id.index]),
        own_(names.classes[id.index]),
        f_(f),
        scope_(std::move(scope)),
        fields_(buffer_names(f)),
        text_(f.buffers.size()) {
    set_frame("b");
  }
  // What the variable with the function's buffers is called.
  void set_frame(const std::string& name) {
    frame_ = name;
    for (std::size_t i = 0; i < f_.buffers.size(); ++i)
      if (f_.buffers[i].kind == plan::BufferKind::frame) text_[i] = frame_ + "." + fields_[i];
  }
  void bind_input(std::size_t i, std::string name) { text_[f_.inputs[i].index] = std::move(name); }
  void bind_output(std::size_t i, std::string name) { text_[f_.outputs[i].index] = std::move(name); }

  std::string run(std::size_t indent, bool traced) {
    pad_ = std::string(indent, ' ');
    traced_ = traced;
    if (has_frame(f_)) out_ += fmt::format("{}const {} {}(s);\n", pad_, frame_type(names_, id_, f_.name), frame_);
    once_values(f_.steps);
    if (!out_.empty() && f_.steps.size() > 1) out_ += "\n";
    steps(f_.steps);
    return out_;
  }

 private:
  std::string shape(const std::vector<graph::DimId>& s) const { return shape_expression(*p_.dims, s, in_function); }

  std::string path(const std::string& member) const {
    if (member.empty()) return element_;
    if (member[0] == '.') {
      const graph::ClassId e = element_class_;
      return element_ + "." + names_.path(e, member.substr(1));
    }
    return names_.path(id_, member);
  }

  std::string text(const plan::Operand& o) const {
    if (const auto* b = std::get_if<plan::BufferRef>(&o)) {
      const std::string& s = text_[b->buffer.index];
      if (b->rows) return rows(s, f_.buffers[b->buffer.index].type.shape, *b->rows, b->shape);
      return b->shape == f_.buffers[b->buffer.index].type.shape ? s : s + ".as(" + shape(b->shape) + ")";
    }
    if (const auto* w = std::get_if<plan::WeightRef>(&o)) return viewed(w->member, w->view, w->rows);
    if (const auto* c = std::get_if<plan::ConstRef>(&o)) return viewed(c->member, c->view, c->rows);
    if (const auto* v = std::get_if<plan::StepValueRef>(&o)) {
      const std::string& s = once_.at(v->index);
      return v->shape == class_.step_values[v->index].shape ? s : s + ".as(" + shape(v->shape) + ")";
    }
    if (const auto* f = std::get_if<plan::BatchField>(&o))
      return (f->field == "outputs" ? "s.output_rows()" : f->field == "last" ? "s.last_rows()" : "s." + f->field + "()") + view(f->view);
    if (std::holds_alternative<plan::BatchRef>(o)) return "at";
    return "{}";
  }
  std::string view(const std::optional<std::vector<graph::DimId>>& v) const { return v ? ".as(" + shape(*v) + ")" : ""; }

  // "s.rows(b.h, 0, 4)": rows of what has the shape `own`, seen as `seen`.
  std::string rows(const std::string& s, const std::vector<graph::DimId>& own, const plan::Rows& r,
                   const std::vector<graph::DimId>& seen) const {
    std::string t = fmt::format("s.rows({}{}, {}, {})", s, own == r.of ? "" : ".as(" + shape(r.of) + ")", dim(r.start), dim(r.stop));
    std::vector<graph::DimId> made = r.of;
    made[0] = p_.dims->sub(r.stop, r.start);
    return made == seen ? t : t + ".as(" + shape(seen) + ")";
  }
  // The tensor of a weight or a constant.
  std::string viewed(const std::string& member, const std::optional<std::vector<graph::DimId>>& seen,
                     const std::optional<plan::Rows>& r) const {
    const std::string s = path(member) + ".tensor";
    if (!r) return s + view(seen);
    std::vector<graph::DimId> own;
    if (const auto ref = graph::find_member(*p_.graph, id_, member)) {
      if (const auto* w = graph::weight_of(*p_.graph, *ref)) own = w->type.shape;
      if (const auto* c = graph::const_of(*p_.graph, *ref)) own = c->type.shape;
    }
    return rows(s, own, *r, *seen);
  }
  std::string dim(graph::DimId d) const { return dim_expression(*p_.dims, d, in_function); }

  void once_values(const std::vector<plan::Step>& list) {
    for (const plan::Step& s : list) {
      plan::for_each_operand(
          s.kind,
          [&](const plan::Operand& o) {
            if (const auto* v = std::get_if<plan::StepValueRef>(&o)) once_value(v->index);
          },
          [](const plan::Operand&) {});
      if (const auto* body = plan::body_of(s.kind)) once_values(*body);
    }
  }
  void once_value(std::uint32_t index) {
    if (once_.count(index) > 0) return;
    const plan::StepValue& v = class_.step_values[index];
    const std::string name = scope_.unique(v.name);
    once_[index] = name;
    out_ +=
        fmt::format("{}const Tensor {} = s.once(once.{}, {}, [&](const Tensor& out) {{\n", pad_, name, own_.once[index], shape(v.shape));
    Scope inner = scope_;
    inner.unique("out");
    Body body(names_, id_, v.compute, inner);
    body.set_frame("once_buffers");                          // it stands inside the function that has b
    body.bind_output(0, "out");
    out_ += body.run(pad_.size() + 2, false) + pad_ + "});\n";
  }

  // One statement; what it replaces stands behind it where there is room, else above.
  void line(const std::string& head, const std::vector<std::string>& items, const std::string& tail, const plan::Step& s) {
    const std::string statement = wrapped(pad_ + head, items, tail);
    std::string comment;
    for (const std::string& r : s.replaces)
      if (comment.find(r) == std::string::npos) comment += (comment.empty() ? "" : "; ") + r;
    comment = comment_text(comment, 110 - pad_.size());
    const bool one_line = statement.find('\n') == std::string::npos;
    if (comment.empty()) out_ += statement + "\n";
    else if (one_line && std::max<std::size_t>(statement.size(), 59) + 4 + comment.size() <= 120)
      out_ += fmt::format("{:<59}// {}\n", statement + (statement.size() >= 59 ? " " : ""), comment);
    else out_ += fmt::format("{}// {}\n{}\n", pad_, comment, statement);
    traces(s);
  }

  static std::string dtype(DType t) { return fmt::format("modelc::DType::{}", modelc::name(t)); }
  // What the policy rounds: nothing in exact arithmetic.
  void round(const std::string& value, DType to) {
    if (to != DType::f32) out_ += fmt::format("{}s.round({}, {});\n", pad_, value, dtype(to));
  }

  void traces(const plan::Step& s) {
    for (const plan::Rounding& r : s.roundings) round(text(r.value), r.to);
    if (!traced_) return;
    for (const plan::Trace& t : s.traces) {
      std::string module = "*this";
      if (t.element) module = t.member.empty() ? element_ : path("." + t.member);
      else if (!t.member.empty()) module = path(t.member);
      out_ += fmt::format("{}s.trace({}, {}, {});\n", pad_, module, string_literal(t.name), text(t.value));
    }
  }

  void steps(const std::vector<plan::Step>& list) {
    for (const plan::Step& s : list) std::visit([&](const auto& k) { step(k, s); }, s.kind);
  }

  std::string product(std::uint32_t pack) const { return "product." + own_.packs[pack]; }
  std::string kernel(plan::KernelId k) const {
    const std::string rounded = rounded_kernel(p_.kernels[k.index], names_.kernels[k.index], names_.kernels);
    const std::string plain = "kernels::" + names_.kernels[k.index];
    return rounded.empty() ? plain : fmt::format("{{{}, kernels::{}}}", plain, rounded);
  }
  static std::string braced(const std::vector<std::string>& items) { return fmt::format("{{{}}}", fmt::join(items, ", ")); }
  std::string inner_values(const std::vector<std::string>& inner, DType rounded) const {
    std::vector<std::string> quoted;
    for (const std::string& n : inner) quoted.push_back(string_literal(n));
    return fmt::format("{{this, {}{}}}", braced(quoted), rounded == DType::f32 ? "" : ", " + dtype(rounded));
  }

  void step(const plan::Linear& k, const plan::Step& s) {
    std::vector<std::string> outs;
    for (const auto& o : k.outs) outs.push_back(text(o));
    line("s.linear(", {text(k.x), product(k.pack), braced(outs)}, ");", s);
  }
  void step(const plan::LinearAdd& k, const plan::Step& s) {
    line("s.linear_add(", {text(k.x), product(k.pack), text(k.residual), text(k.out), inner_values({k.inner}, k.rounded)}, ");", s);
  }
  void step(const plan::LinearMap& k, const plan::Step& s) {
    line("s.linear_map(", {text(k.x), product(k.pack), kernel(k.kernel), text(k.out), inner_values(k.inner, k.rounded)}, ");", s);
  }
  void step(const plan::Take& k, const plan::Step& s) {
    line("s.take(", {path(k.table), text(k.rows), float_literal(k.scale), text(k.out)}, ");", s);
  }
  void step(const plan::TakeRows& k, const plan::Step& s) { line("s.take_rows(", {text(k.x), text(k.rows), text(k.out)}, ");", s); }
  static std::string norm_args(double eps, double offset) {
    return fmt::format("{{.eps = {}{}}}", float_literal(eps), offset == 0 ? "" : fmt::format(", .offset = {}", float_literal(offset)));
  }
  void step(const plan::RmsNorm& k, const plan::Step& s) {
    line("s.rms_norm(", {text(k.x), text(k.w), norm_args(k.eps, k.offset), text(k.out)}, ");", s);
  }
  void step(const plan::AddRmsNorm& k, const plan::Step& s) {
    line("s.add_rms_norm(", {text(k.x), text(k.y), text(k.w), norm_args(k.eps, k.offset), text(k.sum), text(k.out)}, ");", s);
  }
  void step(const plan::LayerNorm& k, const plan::Step& s) {
    line("s.layer_norm(", {text(k.x), text(k.w), text(k.b), norm_args(k.eps, 0), text(k.out)}, ");", s);
  }
  void step(const plan::Rope& k, const plan::Step& s) {
    line("s.rope(", {text(k.x), text(k.cos), text(k.sin), k.halves ? "modelc::Pairs::halves" : "modelc::Pairs::adjacent", text(k.out)},
         ");", s);
  }
  void step(const plan::Append& k, const plan::Step& s) { line("s.append(", {path(k.state), text(k.k), text(k.v), text(k.at)}, ");", s); }
  void step(const plan::CrossSet& k, const plan::Step& s) {
    line("s.cross_set(", {path(k.state), text(k.k), text(k.v), text(k.at)}, ");", s);
  }
  void step(const plan::Attend& k, const plan::Step& s) {
    std::vector<std::string> args = {fmt::format(".mask = modelc::Mask::{}", k.causal ? "causal" : "full"),
                                     fmt::format(".scale = {}", float_literal(k.scale))};
    if (k.window > 0) args.push_back(fmt::format(".window = {}", k.window));
    if (k.softcap > 0) args.push_back(fmt::format(".softcap = {}", float_literal(k.softcap)));
    if (!std::holds_alternative<plan::Absent>(k.sinks)) args.push_back(".sinks = " + text(k.sinks));
    if (!std::holds_alternative<plan::Absent>(k.keep)) args.push_back(".keep = " + text(k.keep));
    std::vector<std::string> items = {text(k.q)};
    if (k.state.empty()) items.push_back(text(k.k)), items.push_back(text(k.v));
    else items.push_back(path(k.state));
    if (!std::holds_alternative<plan::Absent>(k.at)) items.push_back(text(k.at));
    items.push_back(braced(args));
    items.push_back(text(k.out));
    line("s.attend(", items, ");", s);
  }
  void step(const plan::AttendLatent& k, const plan::Step& s) {
    const std::string args = fmt::format("{{.mask = modelc::Mask::{}, .scale = {}}}", k.causal ? "causal" : "full", float_literal(k.scale));
    line("s.attend_latent(", {text(k.q_nope), text(k.q_rope), path(k.state), text(k.at), path(k.up), args, text(k.out)}, ");", s);
  }
  void step(const plan::Map& k, const plan::Step& s) {
    std::vector<std::string> in;
    for (const auto& o : k.inputs) in.push_back(text(o));
    line("s.map(", {kernel(k.kernel), braced(in), text(k.out)}, ");", s);
  }
  void step(const plan::Copy& k, const plan::Step& s) { line("s.copy(", {text(k.from), text(k.to)}, ");", s); }
  // "modelc::Strided(b.x).slice(1, 0, 4)"
  std::string layout(const plan::Operand& o, const plan::Layout& l) const {
    const std::string t = fmt::format("modelc::Strided({})", text(o));
    switch (l.kind) {
      case plan::Layout::Kind::slice:
        return t + fmt::format(".slice({}, {}, {}{})", l.axis, dim(l.start), dim(l.stop), l.step == 1 ? "" : fmt::format(", {}", l.step));
      case plan::Layout::Kind::transpose: return t + fmt::format(".transpose({}, {})", l.axis, l.other);
      case plan::Layout::Kind::expand: return t + fmt::format(".expand({})", shape(l.shape));
      case plan::Layout::Kind::repeat: return t + fmt::format(".repeat({}, {})", l.axis, l.step);
      case plan::Layout::Kind::whole: break;
    }
    return t;
  }
  void step(const plan::Rearrange& k, const plan::Step& s) {
    plan::Step plain = s;                                    // the comment stands at the first line, the traces after the last
    plain.traces.clear();
    plain.roundings.clear();
    if (k.fill) line("s.fill(", {double_literal(*k.fill), text(k.out)}, ");", plain), plain.replaces.clear();
    for (std::size_t i = 0; i < k.parts.size(); ++i) {
      if (i + 1 == k.parts.size()) plain.traces = s.traces, plain.roundings = s.roundings;
      line("s.copy(", {layout(k.parts[i].from, k.parts[i].read), layout(k.out, k.parts[i].write)}, ");", plain);
      plain.replaces.clear();
    }
  }
  void step(const plan::Reduce& k, const plan::Step& s) {
    std::string name(graph::info(k.op).name);
    if (k.op == graph::OpKind::max_reduce) name = "max";
    if (k.op == graph::OpKind::min_reduce) name = "min";
    std::vector<std::string> args = {fmt::format(".axis = {}", k.axis)};
    if (!std::holds_alternative<plan::Absent>(k.where)) args.push_back(".where = " + text(k.where));
    if (k.op == graph::OpKind::l2_normalize) args.push_back(".eps = " + float_literal(k.eps));
    line("s.reduce(", {"modelc::Reduction::" + name, text(k.x), braced(args), text(k.out)}, ");", s);
  }
  void step(const plan::Route& k, const plan::Step& s) {
    std::vector<std::string> args;
    if (k.groups > 1)
      args.push_back(fmt::format(".groups = {}", k.groups)), args.push_back(fmt::format(".keep_groups = {}", k.keep_groups));
    if (k.top2_sum) args.push_back(".top2_sum = true");
    if (k.renormalize) args.push_back(".renormalize = true");
    if (k.scale != 1) args.push_back(".scale = " + float_literal(k.scale));
    line("s.route(", {text(k.scores), text(k.bias), braced(args), text(k.chosen), text(k.weights)}, ");", s);
  }
  void step(const plan::Experts& k, const plan::Step& s) {
    std::vector<std::string> weights = {path(k.gate), path(k.up), path(k.down)};
    const bool biased = !std::holds_alternative<plan::Absent>(k.gate_bias) || !std::holds_alternative<plan::Absent>(k.up_bias) ||
                        !std::holds_alternative<plan::Absent>(k.down_bias);
    if (biased)
      for (const plan::Operand* o : {&k.gate_bias, &k.up_bias, &k.down_bias}) weights.push_back(text(*o));
    line("s.experts(", {text(k.x), text(k.chosen), text(k.weights), braced(weights), kernel(k.kernel), text(k.out)}, ");", s);
  }
  void step(const plan::Conv& k, const plan::Step& s) {
    std::vector<std::string> args;
    if (k.stride != 1) args.push_back(fmt::format(".stride = {}", k.stride));
    if (k.padding != 0) args.push_back(fmt::format(".padding = {}", k.padding));
    if (k.dilation != 1) args.push_back(fmt::format(".dilation = {}", k.dilation));
    if (k.groups != 1) args.push_back(fmt::format(".groups = {}", k.groups));
    line("s.conv(", {text(k.x), text(k.w), text(k.b), braced(args), text(k.out)}, ");", s);
  }
  void step(const plan::CausalConv1d& k, const plan::Step& s) {
    line("s.causal_conv1d(", {text(k.x), text(k.w), text(k.b), path(k.state), text(k.at), text(k.out)}, ");", s);
  }
  void step(const plan::SsdScan& k, const plan::Step& s) {
    const std::string args = fmt::format("{{.x = {}, .dt = {}, .a = {}, .b = {}, .c = {}, .d = {}}}", text(k.x), text(k.dt), text(k.a),
                                         text(k.b), text(k.c), text(k.d));
    line("s.ssd_scan(", {args, path(k.state), text(k.at), text(k.out)}, ");", s);
  }
  void step(const plan::GatedDelta& k, const plan::Step& s) {
    std::string args = fmt::format(".q = {}, .k = {}, .v = {}, .decay = {}, .beta = {}, .scale = {}", text(k.q), text(k.k), text(k.v),
                                   text(k.decay), text(k.beta), float_literal(k.scale));
    if (k.normalize > 0) args += ", .normalize = " + float_literal(k.normalize);
    line("s.gated_delta(", {"{" + args + "}", path(k.state), text(k.at), text(k.out)}, ");", s);
  }
  void step(const plan::Fill& k, const plan::Step& s) {
    if (k.values.empty()) return line("s.arange(", {text(k.out)}, ");", s);
    std::vector<std::string> numbers;
    for (double v : k.values) numbers.push_back(float_literal(v));
    numbers.front().insert(0, "{");
    numbers.back() += "}";
    numbers.push_back(text(k.out));
    line("s.values(", numbers, ");", s);
  }
  void step(const plan::Call& k, const plan::Step& s) {
    graph::ClassId callee = id_;
    if (k.member.empty() || k.member[0] == '.') callee = element_class_;
    if (!k.member.empty()) callee = class_at(k.member[0] == '.' ? element_class_ : id_, k.member[0] == '.' ? k.member.substr(1) : k.member);
    std::vector<std::string> args = {"s"};
    for (const auto& o : k.inputs) args.push_back(text(o));
    if (!std::holds_alternative<plan::Absent>(k.at)) args.push_back(text(k.at));
    for (const auto& o : k.outs) args.push_back(text(o));
    const auto& functions = names_.classes[callee.index].functions;
    const auto name = functions.find(k.function);
    line(fmt::format("{}.{}(", path(k.member), name == functions.end() ? k.function : name->second), args, ");", s);
  }
  graph::ClassId class_at(graph::ClassId from, const std::string& member) const {
    graph::ClassId at = from;
    for (std::size_t begin = 0; begin < member.size();) {
      const std::size_t end = std::min(member.find('.', begin), member.size());
      const std::string part = member.substr(begin, end - begin);
      for (const graph::ChildDecl& m : p_.graph->of(at).children) {
        if (m.name != part || m.elements.empty()) continue;
        std::size_t index = 0;
        if (m.list && end < member.size()) {
          const std::size_t stop = std::min(member.find('.', end + 1), member.size());
          index = std::stoul(member.substr(end + 1, stop - end - 1));
          begin = stop;
        }
        at = m.elements[std::min(index, m.elements.size() - 1)];
        break;
      }
      begin = std::max(begin, end) + 1;
    }
    return at;
  }

  // The shader or the host code where the device runs one, else the reference; without either that alone.
  void step(const plan::Custom& k, const plan::Step& s) {
    plan::Step head = s;
    head.traces.clear(), head.roundings.clear();
    const std::string outer = pad_;
    const bool apart = k.host >= 0 || (names_.vulkan && !k.dispatches.empty());
    if (apart) {
      std::vector<std::string> inputs, outs, sizes, ways;
      for (const plan::Operand& o : k.inputs) inputs.push_back(text(o));
      for (const plan::Operand& o : k.outs) outs.push_back(text(o));
      for (const graph::DimId d : k.sizes) sizes.push_back(dim(d));
      for (const graph::Dispatch& d : k.dispatches) {
        if (!names_.vulkan) break;
        std::string groups;
        for (const graph::DimId g : d.groups) groups += ", " + dim(g);
        ways.push_back(fmt::format("{{shaders::{}, {}{}}}", names_.shaders[static_cast<std::size_t>(d.shader)], d.local_size, groups));
      }
      std::vector<std::string> arguments = {braced(inputs), braced(outs), braced(sizes), braced(ways)};
      if (k.host >= 0) arguments.push_back("&host::" + names_.host[static_cast<std::size_t>(k.host)]);
      line("if (!s.custom(", arguments, ")) {", head);
      pad_ += "  ";
    }
    steps(k.body);
    pad_ = outer;
    if (apart) out_ += pad_ + "}\n";
    traces(s);
  }

  void step(const plan::Repeat& r, const plan::Step& s) {
    const graph::ChildDecl* list = nullptr;
    for (const graph::ChildDecl& m : p_.graph->of(id_).children)
      if (m.name == r.member) list = &m;
    if (!list || list->elements.empty()) return traces(s);
    // The carried values: local names that change places with their spares after each pass.
    for (const plan::Carried& c : r.carried) {
      for (const plan::BufferId b : {c.current, c.next}) {
        if (text_[b.index].rfind(frame_ + ".", 0) != 0) continue;                  // already, by a loop before this one
        const std::string local = scope_.unique(fields_[b.index]);
        out_ += fmt::format("{}Tensor {} = {};\n", pad_, local, text_[b.index]);
        text_[b.index] = local;
      }
    }
    for (const plan::Carried& c : r.carried) round(text_[c.current.index], c.rounded);
    const std::string variable = scope_.unique(r.variable);
    element_ = variable;
    element_class_ = list->elements[0];
    const std::string& type = names_.classes[element_class_.index].type;
    const bool is_mixed =
        std::any_of(list->elements.begin(), list->elements.end(), [&](graph::ClassId e) { return names_.classes[e.index].type != type; });
    const std::string outer = pad_;
    if (is_mixed) {
      out_ += fmt::format("{}for (const auto& one : {}) {{\n{}  std::visit([&](const auto& {}) {{\n", pad_, path(r.member), pad_, variable);
      pad_ += "    ";
    } else {
      out_ += fmt::format("{}for (const {}& {} : {}) {{\n", pad_, type, variable, path(r.member));
      pad_ += "  ";
    }
    steps(r.body);
    for (const plan::Carried& c : r.carried) round(text_[c.next.index], c.rounded);
    pad_ = outer;
    if (is_mixed) out_ += pad_ + "  }, one);\n";
    for (const plan::Carried& c : r.carried)
      out_ += fmt::format("{}  std::swap({}, {});\n", pad_, text_[c.current.index], text_[c.next.index]);
    out_ += pad_ + "}\n";
    element_.clear();
    traces(s);
  }

  const Names& names_;
  const plan::Program& p_;
  graph::ClassId id_;
  const plan::Class& class_;
  const ClassNames& own_;
  const plan::Function& f_;
  Scope scope_;
  std::vector<std::string> fields_, text_;       // of each buffer
  std::map<std::uint32_t, std::string> once_;    // local names of step values
  std::string out_, pad_, element_, frame_;
  graph::ClassId element_class_{};
  bool traced_ = true;
};

// Generated text without its comments and without what stands in its strings.
std::string without_comments(const std::string& text) {
  std::string code;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
      code += '"';
    } else if (!quoted && text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (!quoted) {
      code += text[i];
    }
  }
  return code;
}

// Whether `text` holds `name` as a whole identifier.
bool mentions(const std::string& text, const std::string& name) {
  const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const bool before = at > 0 && (letter(text[at - 1]) || text[at - 1] == '.');
    const bool after = at + name.size() < text.size() && letter(text[at + name.size()]);
    if (!before && !after) return true;
  }
  return false;
}

std::string member_visits(const Names& names, graph::ClassId id) {
  const graph::Class& c = names.program.graph->of(id);
  const ClassNames& own = names.classes[id.index];
  std::string s;
  for (const auto& [kind, index] : c.order) {
    if (kind == 'w') {
      const auto& w = c.weights[index];
      s += fmt::format("  v.weight({}, {});\n", string_literal(w.path), own.members.at(w.name));
    } else if (kind == 's') {
      const auto& st = c.states[index];
      s += fmt::format("  v.state({}, {});\n", string_literal(st.name), own.members.at(st.name));
    } else if (kind == 'm') {
      const auto& m = c.children[index];
      const std::string& name = own.members.at(m.name);
      const std::string path = string_literal(m.path);
      if (!m.list) {
        s += fmt::format("  v.child({}, {});\n", path, name);
      } else if (!m.elements.empty()) {
        bool is_mixed = false;
        for (graph::ClassId e : m.elements) is_mixed |= names.classes[e.index].type != names.classes[m.elements[0].index].type;
        const std::string element = is_mixed ? fmt::format("modelc::module_of({}[i])", name) : fmt::format("{}[i]", name);
        s += fmt::format("  for (std::size_t i = 0; i < {}.size(); ++i) v.element({}, static_cast<std::int64_t>(i), {});\n", name, path,
                         element);
      }
    }
  }
  return s;
}

std::string bind_text(const Names& names, graph::ClassId id) {
  const graph::Class& c = names.program.graph->of(id);
  const plan::Class& p = names.program.classes[id.index];
  const ClassNames& own = names.classes[id.index];
  std::string s;
  for (const graph::ConstDecl& k : c.consts) {
    const plan::Function* init = nullptr;
    for (const plan::Function& f : p.functions)
      if (f.kind == graph::FunctionKind::init && f.name == k.name) init = &f;
    if (!init) continue;
    const std::string key = string_literal(own.type + "." + k.name);
    s += fmt::format("  {} = binder.constant({}, {}, [&](Step& s, const Tensor& result) {{\n", own.members.at(k.name), key,
                     shape_expression(*names.program.dims, k.type.shape, in_function));
    Scope scope = own.scope;
    scope.unique("result");
    Body body(names, id, *init, scope);
    body.bind_output(0, "result");
    s += body.run(4, false) + "  });\n";
  }
  for (std::size_t i = 0; i < p.packs.size(); ++i) {
    std::vector<std::string> weights, biases;
    bool any = false;
    for (const std::string& w : p.packs[i].weights) weights.push_back("&" + names.path(id, w));
    for (const std::string& w : p.packs[i].biases) {
      any |= !w.empty();
      biases.push_back(w.empty() ? "nullptr" : "&" + names.path(id, w));
    }
    weights.front().insert(0, "{");
    weights.back() += "}";
    if (!any) biases = {"{}"};
    else biases.front().insert(0, "{"), biases.back() += "}";
    weights.insert(weights.end(), biases.begin(), biases.end());
    s += wrapped(fmt::format("  product.{} = binder.pack(", own.packs[i]), weights, ");") + "\n";
  }
  for (std::size_t i = 0; i < p.step_values.size(); ++i) {
    std::vector<std::string> keys;
    for (const plan::Operand& o : p.step_values[i].keys) {
      if (const auto* w = std::get_if<plan::WeightRef>(&o)) keys.push_back("&" + names.path(id, w->member) + ".tensor");
      if (const auto* k = std::get_if<plan::ConstRef>(&o)) keys.push_back("&" + names.path(id, k->member) + ".tensor");
    }
    s += fmt::format("  once.{} = binder.step_value({}, {{{}}});\n", own.once[i], string_literal(own.type + "." + own.once[i]),
                     fmt::join(keys, ", "));
  }
  return s;
}

}  // namespace

std::string buffer_structs(const Names& names, graph::ClassId id) {
  std::string s;
  const plan::Class& p = names.program.classes[id.index];
  for (const plan::Function& f : p.functions)
    if (has_frame(f)) s += frame_struct(names, id, f) + "\n";
  for (const plan::StepValue& v : p.step_values)
    if (has_frame(v.compute)) s += frame_struct(names, id, v.compute) + "\n";
  return s;
}

std::string class_source(const Names& names, graph::ClassId id) {
  const plan::Class& p = names.program.classes[id.index];
  const ClassNames& own = names.classes[id.index];
  const std::string rule = "// ---- " + own.type + " ";
  std::string s = rule + std::string(rule.size() < 118 ? 118 - rule.size() : 0, '-') + "\n\n";

  const std::string visits = member_visits(names, id);
  s += fmt::format("void {}::members(modelc::MemberVisitor&{}) {{", own.type, visits.empty() ? "" : " v");
  s += visits.empty() ? "}\n" : "\n" + visits + "}\n";
  const std::string bind = bind_text(names, id);
  if (!bind.empty()) s += fmt::format("\nvoid {}::bind(modelc::Binder& binder) {{\n{}}}\n", own.type, bind);

  for (const plan::Function& f : p.functions) {
    if (f.kind == graph::FunctionKind::init) continue;
    Scope scope = own.scope;
    const std::string place = f.where.line ? fmt::format("{}:{}", f.where.file, f.where.line) : "";
    s += fmt::format("\n// {}  {}\n// {}\n", comment_text(place), comment_text(f.signature, 110), comment_text(f.shapes, 110));
    s += function_head(names, id, f, own.type + "::", false) + " {\n";
    std::vector<std::string> inputs, outputs;
    for (const std::string& in : f.input_names) inputs.push_back(scope.unique(in));
    for (std::size_t i = 0; i < f.outputs.size(); ++i) outputs.push_back(output_name(f, i, scope));
    Body body(names, id, f, scope);
    for (std::size_t i = 0; i < inputs.size(); ++i) body.bind_input(i, inputs[i]);
    for (std::size_t i = 0; i < outputs.size(); ++i) body.bind_output(i, outputs[i]);
    const std::string text = body.run(2, true);
    s += "  const Step::On on(s, *this);\n";
    // What the code never mentions would be warned about.
    const std::string code = without_comments(text);
    for (const std::vector<std::string>& list : {inputs, outputs})
      for (const std::string& name : list)
        if (!mentions(code, name)) s += fmt::format("  static_cast<void>({});\n", name);
    if (f.at != plan::TakesAt::none && !mentions(code, "at")) s += "  static_cast<void>(at);\n";
    s += text + "}\n";
  }
  return s;
}

}  // namespace modelc::emit

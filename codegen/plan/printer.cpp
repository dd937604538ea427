#include "codegen/plan/printer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "codegen/plan/fields.h"
#include "codegen/plan/walk.h"
#include "codegen/plan/words.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/printer.h"

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
  const bool rounds = n.op == graph::OpKind::cast && (n.dtype == DType::bf16 || n.dtype == DType::f16);
  std::string s = std::string(rounds ? name(n.dtype) : graph::info(n.op).name) + "(";
  for (std::size_t i = 0; i < n.operands.size(); ++i) s += (i ? ", " : "") + node_text(k, n.operands[i], true);
  return s + ")";
}

// A double that is read back as the same, and as no integer.
std::string number(double v) {
  std::string s = fmt::format("{}", v);
  return s.find_first_of(".en") == std::string::npos ? s + ".0" : s;
}

std::string quoted(std::string_view text) {
  std::string s = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') s += "\\n";
    else if (c == '"' || c == '\\') (s += '\\') += c;
    else if (byte < 0x20 || byte == 0x7f) s += fmt::format("\\x{:02x}", byte);
    else s += c;
  }
  return s + "\"";
}

// A name as it stands, in quotation marks where it is none.
std::string word(const std::string& name) {
  const auto good = [](char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool plain = !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::all_of(name.begin(), name.end(), good);
  return plain ? name : quoted(name);
}

class Printer {
 public:
  explicit Printer(const Program& p) : p_(p) {}

  std::string run() {
    out_ = "plan 1\n";
    out_ += fmt::format("arena: {} once: {}\n", text(p_.peak_bytes), text(p_.step_value_bytes));
    for (const MapKernel& k : p_.kernels) {
      out_ += fmt::format("// {} = {}\nkernel {}", k.name, expression(k), word(k.name));
      object(k);
      out_ += "\n";
    }
    for (const Class& c : p_.classes) {
      if (c.functions.empty() && c.packs.empty() && c.step_values.empty()) continue;
      class_ = &c;
      out_ += "\nclass " + word(c.source->name);
      object(c);
      out_ += "\n";
    }
    return std::move(out_);
  }

 private:
  // ---- values: text() of one that stands in a line ----
  std::string text(const std::string& s) const { return quoted(s); }
  std::string text(bool b) const { return b ? "true" : "false"; }
  std::string text(double d) const { return number(d); }
  std::string text(int i) const { return std::to_string(i); }
  std::string text(std::int64_t i) const { return std::to_string(i); }
  std::string text(DType t) const { return std::string(name(t)); }
  std::string text(graph::OpKind op) const { return std::string(graph::info(op).name); }
  template <Worded E> std::string text(E e) const { return std::string(Words<E>::list[static_cast<std::size_t>(e)]); }
  std::string text(graph::DimId d) const { return "[" + p_.dims->text(d) + "]"; }
  std::string text(const std::vector<graph::DimId>& s) const {
    std::string t = "[";
    for (std::size_t i = 0; i < s.size(); ++i) t += (i ? ", " : "") + p_.dims->text(s[i]);
    return t + "]";
  }
  std::string text(const graph::Type& t) const {
    return std::string(name(t.dtype)) + (t.index_bound ? "(" + p_.dims->text(*t.index_bound) + ")" : "") + text(t.shape);
  }
  std::string text(const graph::Where& w) const { return w.line == 0 ? "none" : fmt::format("{}:{}:{}", quoted(w.file), w.line, w.column); }
  std::string text(const std::optional<double>& d) const { return d ? number(*d) : "none"; }
  std::string text(BufferId b) const { return "%" + word(f_->buffers[b.index].name); }
  std::string text(KernelId k) const { return word(p_.kernels[k.index].name); }
  std::string text(const MapNode& n) const {
    if (n.kind == MapNode::Kind::input) return fmt::format("input {}", n.input);
    if (n.kind == MapNode::Kind::literal) return "literal " + number(n.literal);
    return fmt::format("{}({}){}", graph::info(n.op).name, fmt::join(n.operands, ", "),
                       n.dtype == DType::f32 ? "" : " as " + std::string(name(n.dtype)));
  }
  std::string text(const Operand& o) const {
    const auto view = [&](const auto& v) { return v ? " as " + text(*v) : std::string(); };
    const auto rows = [&](const std::optional<Rows>& r) {
      return r ? fmt::format(" cut ({}, {}, {})", text(r->of), p_.dims->text(r->start), p_.dims->text(r->stop)) : std::string();
    };
    if (const auto* b = std::get_if<BufferRef>(&o)) {
      const Buffer& buffer = f_->buffers[b->buffer.index];
      return text(b->buffer) + rows(b->rows) + (b->shape == buffer.type.shape ? "" : " as " + text(b->shape));
    }
    if (const auto* w = std::get_if<WeightRef>(&o)) return "weight " + quoted(w->member) + rows(w->rows) + view(w->view);
    if (const auto* c = std::get_if<ConstRef>(&o)) return "const " + quoted(c->member) + rows(c->rows) + view(c->view);
    if (const auto* s = std::get_if<StepValueRef>(&o)) return fmt::format("once {} {}", s->index, text(s->shape));
    if (const auto* f = std::get_if<BatchField>(&o)) return "at." + f->field + view(f->view);
    return std::holds_alternative<BatchRef>(o) ? "at" : "none";
  }
  // Small things are objects in a line.
  template <class T>
    requires As<T, Layout> || As<T, Part> || As<T, Carried> || As<T, graph::Dispatch> || As<T, Rounding> || As<T, Trace>
  std::string text(const T& t) const {
    Printer inner(p_);
    inner.class_ = class_, inner.f_ = f_, inner.flat_ = true;
    inner.object(t);
    return inner.out_.substr(1);
  }
  template <class T> std::string text(const std::vector<T>& list) const {
    std::string s = "[";
    for (std::size_t i = 0; i < list.size(); ++i) s += (i ? ", " : "") + text(list[i]);
    return s + "]";
  }

  // ---- fields: those that are as in a fresh object are left out ----
  template <class T> struct Field {
    Printer& to;
    T fresh{};
    std::vector<std::string> defaults = {};
    std::size_t at = 0;
    bool collect = false;

    void pack(const char* name, std::uint32_t index) {
      if (!collect) to.field(name, word(to.class_->packs[index].name));
    }
    void operator()(const char* name, KernelId kernel) {
      if (!collect) to.field(name, to.text(kernel));
    }
    void operator()(const char* name, BufferId buffer) {
      if (!collect) to.field(name, to.text(buffer));
    }
    void operator()(const char* name, const std::vector<Buffer>& list) { block(name, list); }
    void operator()(const char* name, const std::vector<Pack>& list) { block(name, list); }
    void operator()(const char* name, const std::vector<StepValue>& list) { block(name, list); }
    void operator()(const char* name, const std::vector<Function>& list) { block(name, list); }
    void operator()(const char* name, const std::vector<Step>& list) { block(name, list); }
    void operator()(const char* name, const Function& function) {
      if (collect) return;
      to.line(std::string(name) + ": " + word(function.name));
      to.object(function);
    }
    template <class U> void operator()(const char* name, const U& value) {
      if (collect) return defaults.push_back(to.text(value));
      const std::string text = to.text(value);
      if (text == defaults[at++]) return;
      if constexpr (lines<T>) to.line(std::string(name) + ": " + text);
      else to.field(name, text);
    }
    template <class U> void block(const char* name, const std::vector<U>& list) {
      if (collect || list.empty()) return;
      to.line(std::string(name) + ": {");
      ++to.indent_;
      for (const U& item : list) to.item(item);
      --to.indent_;
      to.line("}");
    }
  };

  template <class T> void object(const T& value) {
    const Function* outer = f_;
    if constexpr (std::is_same_v<T, Function>) f_ = &value;
    out_ += " {";
    ++indent_;
    visit(value);
    --indent_;
    if constexpr (lines<T>) line("}");
    else out_ += " }";
    f_ = outer;
  }
  template <class T> void visit(const T& value) {
    Field<T> field{*this};
    field.collect = true;
    fields(field, std::as_const(field.fresh));
    field.collect = false;
    fields(field, value);
  }
  // What has lines of its own; all else is written in one.
  template <class T> static constexpr bool lines = std::is_same_v<T, Class> || std::is_same_v<T, Function> || std::is_same_v<T, StepValue>;

  void item(const Buffer& b) { line("%" + word(b.name)), object(b); }
  void item(const Pack& p) { line(word(p.name)), object(p); }
  void item(const StepValue& v) { line(word(v.name)), object(v); }
  void item(const Function& f) { line(word(f.name)), object(f); }
  void item(const Step& s) {
    line(kind_name(s.kind));
    out_ += " {";
    ++indent_;
    std::visit([&](const auto& kind) { visit(kind); }, s.kind);
    visit(s);
    --indent_;
    if (body_of(s.kind) != nullptr) line("}");
    else out_ += " }";
  }

  void field(const std::string& name, const std::string& value) {
    out_ += (flat_ || out_.back() == '{' ? " " : "  ") + name + ": " + value;
  }
  void line(const std::string& text) { out_ += "\n" + std::string(static_cast<std::size_t>(indent_) * 2, ' ') + text; }

  const Program& p_;
  const Class* class_ = nullptr;
  const Function* f_ = nullptr;
  int indent_ = 0;
  bool flat_ = false;
  std::string out_;
};

}  // namespace

std::string expression(const MapKernel& kernel) {
  return kernel.nodes.empty() ? "" : node_text(kernel, static_cast<std::uint32_t>(kernel.nodes.size() - 1), true);
}

std::string print(const Program& program, bool whole) {
  return Printer(program).run() + (whole ? "\ngraph\n" + graph::print(*program.graph) : "");
}

}  // namespace modelc::plan

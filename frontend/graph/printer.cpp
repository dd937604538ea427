#include "frontend/graph/printer.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <unordered_map>

#include "frontend/graph/ops.h"
#include "frontend/graph/types.h"

namespace modelc::graph {

namespace {

bool is_name(std::string_view s) {
  if (s.empty() || (s[0] >= '0' && s[0] <= '9')) return false;
  for (char c : s)
    if (!(c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) return false;
  return s != "_";                                                            // `_` alone is an absent operand
}

std::string quote(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += std::string("\\") + c;
    else if (c == '\n') out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else out += c;
  }
  return out + "\"";
}

std::string word(std::string_view s) { return is_name(s) ? std::string(s) : quote(s); }

// A double that reads back as one and not as an integer: "1.0", "1e-05", "inf".
std::string real(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  std::string s = fmt::format("{}", v);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s;
}

template <class T, class F> std::string list(const std::vector<T>& items, F item) {
  std::string s;
  for (const T& i : items) s += (s.empty() ? "" : ", ") + item(i);
  return s;
}

std::string attr(const AttrValue& value) {
  struct {
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return real(v); }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(const std::string& v) const { return quote(v); }
    std::string operator()(const std::vector<std::int64_t>& v) const {
      return "[" + list(v, [](std::int64_t i) { return std::to_string(i); }) + "]";
    }
    std::string operator()(const std::vector<double>& v) const {
      return v.empty() ? "[.]" : "[" + list(v, real) + "]";                   // [.]: no reals, [] is no integers
    }
  } show;
  return std::visit(show, value);
}

// Names of a function's values, given in the order in which the text defines them.
class ValueNames {
 public:
  explicit ValueNames(const Function& f) : f_(f), names_(f.values.size()) {
    for (const Parameter& p : f.inputs) define(p.value);
    block(f.body);
  }

  std::string operator()(ValueId id) const {
    const bool named = id.index < names_.size() && !names_[id.index].empty();
    return named ? names_[id.index] : "%?";
  }

 private:
  void define(ValueId id) {
    if (id.index >= names_.size() || !names_[id.index].empty()) return;       // the verifier's affair
    const std::string& name = f_.values[id.index].name;
    std::string& shown = names_[id.index];
    if (name.empty()) {
      shown = fmt::format("%{}", ++unnamed_);
    } else {
      const int n = ++seen_[name];
      shown = n == 1 ? "%" + word(name) : fmt::format("%{}.{}", word(name), n);
    }
  }
  void block(const Block& b) {
    for (ValueId v : b.arguments) define(v);
    for (const Op& op : b.ops) {
      for (ValueId v : op.results) define(v);
      if (op.body) block(*op.body);
    }
  }

  const Function& f_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, int> seen_;
  int unnamed_ = 0;
};

class Printer {
 public:
  Printer(const Module& m, const PrintOptions& options) : m_(m), options_(options) {}

  std::string module() {
    line(0, "graph 1");
    line(0, "module " + word(m_.name) + (m_.file.empty() ? "" : " from " + quote(m_.file)) + " root " + class_name(m_.root));
    if (m_.context) line(0, fmt::format("context {}", *m_.context));
    for (const Axis& a : m_.dims.axes())
      line(0, fmt::format("axis {}: {}..{}{}", word(a.name), a.lo, a.hi ? std::to_string(*a.hi) : "",
                          a.by == 1 ? "" : fmt::format(" by {}", a.by)));
    for (const ConfigFact& f : m_.config)
      line(0, fmt::format("config {} {} = {}", word(f.name), quote(f.type),
                          std::visit([](const auto& v) { return attr(AttrValue(v)); }, f.value)));
    for (const CheckpointRules& c : m_.checkpoints) checkpoint(c);
    for (const PolicyRule& r : m_.policy) line(0, fmt::format("policy {} {} {}", r.pattern ? "of" : "for", quote(r.target), name(r.dtype)));
    for (const PlaceRule& r : m_.placement) {
      const auto end = [](const std::optional<std::int64_t>& e) { return e ? std::to_string(*e) : ""; };
      line(0, fmt::format("place {}{} on {}{}", quote(r.pattern), r.first || r.end ? " " + end(r.first) + ".." + end(r.end) : "",
                          quote(r.device), place(r.where)));
    }
    for (const Shader& s : m_.shaders)
      line(0, fmt::format("shader {} of {}{}{} text {}", quote(s.file), word(s.op),
                          s.required.empty() ? "" : " needs " + quoted(s.required), place(s.where), quote(s.text)));
    const auto types = [](const std::vector<DType>& all) { return "[" + list(all, [](DType t) { return std::string(name(t)); }) + "]"; };
    for (const HostCode& h : m_.host_code)
      line(0, fmt::format("host {} of {} from {} to {}{} text {}", quote(h.file), word(h.op), types(h.inputs), types(h.results),
                          place(h.where), quote(h.text)));
    for (const Class& c : m_.classes) one_class(c);
    return std::move(out_);
  }

  std::string op_line(const Op& op, const ValueNames& names, const Function& f) const {
    std::string s = list(op.results, [&](ValueId v) { return definition(v, names, f); });
    if (!s.empty()) s += " = ";
    s += static_cast<std::size_t>(op.kind) <= static_cast<std::size_t>(OpKind::custom) ? std::string(info(op.kind).name) : "?";
    const bool structural =
        op.kind == OpKind::weight || op.kind == OpKind::constant_ref || op.kind == OpKind::call || op.kind == OpKind::repeat;
    if (structural || !op.member.empty() || !op.callee.empty()) s += " " + quote(op.member);
    if (op.kind == OpKind::call || !op.callee.empty()) s += "." + word(op.callee);
    if (!op.operands.empty() || !op.attrs.empty() || !structural) {
      s += "(" + list(op.operands, [&](const std::optional<ValueId>& v) { return v ? names(*v) : std::string("_"); });
      bool first = true;
      for (const auto& [name, value] : op.attrs) {
        s += (!first ? ", " : op.operands.empty() ? "" : "; ") + word(name) + ": " + attr(value);
        first = false;
      }
      s += ")";
    }
    if (op.custom) s += custom(*op.custom);
    if (options_.places && !op.source.empty()) s += " source " + quote(op.source);
    s += place(op.where);
    if (const std::string call = place(op.call); !call.empty()) s += " in" + call;
    return s;
  }

 private:
  void line(int depth, std::string_view text) { out_.append(depth * 2, ' ').append(text).append("\n"); }

  std::string place(const Where& w) const {
    if (!options_.places || (w.file.empty() && w.line == 0 && w.column == 0)) return "";
    return fmt::format(" @ {}:{}:{}", quote(w.file), w.line, w.column);
  }
  std::string class_name(ClassId id) const { return id.index < m_.classes.size() ? word(m_.classes[id.index].name) : "\"?\""; }
  std::string type(const Type& t) const { return text(t, m_.dims); }

  std::string definition(ValueId id, const ValueNames& names, const Function& f) const {
    if (id.index >= f.values.size()) return "%?";
    const Value& v = f.values[id.index];
    return names(id) + ": " + type(v.type) + (v.stage.empty() ? "" : " stage " + quote(v.stage));
  }

  std::string dim_list(const std::vector<DimId>& dims) const {
    return "[" + list(dims, [&](DimId d) { return m_.dims.text(d); }) + "]";
  }
  std::string custom(const Custom& c) const {
    std::string s = " of " + word(c.name) + " sizes " + dim_list(c.sizes);
    for (const Dispatch& d : c.dispatches) s += fmt::format(" shader {} local {} groups {}", d.shader, d.local_size, dim_list(d.groups));
    if (c.host >= 0) s += fmt::format(" host {}", c.host);
    return s;
  }

  // "some.model:3:4"
  std::string place(const std::string& where) const {
    const std::size_t column = where.rfind(':'), line = column == std::string::npos ? column : where.rfind(':', column - 1);
    if (!options_.places || line == std::string::npos) return "";
    return " @ " + quote(where.substr(0, line)) + where.substr(line);
  }
  static std::string quoted(const std::vector<std::string>& all) {
    std::string s;
    for (const std::string& text : all) s += (s.empty() ? "" : ", ") + quote(text);
    return s;
  }

  void checkpoint(const CheckpointRules& c) {
    const auto only = [](const std::string& text) { return text.empty() ? "" : " only " + quote(text); };
    line(0, "checkpoint " + quote(c.format) + (c.architecture.empty() ? "" : " of " + quote(c.architecture)) + " {");
    for (const auto& r : c.aliases) {
      const bool off = !r.when.empty() || !r.because.empty();
      line(1, fmt::format("alias {} = {}{}{}", quote(r.weight), quote(r.target),
                          off ? " off " + quote(r.when) + " because " + quote(r.because) : "", place(r.where)));
    }
    for (const auto& r : c.ignores) {
      const std::string made = r.made_of.empty() ? "" : " made of " + quote(r.made_of);
      line(1, "ignore " + quote(r.pattern) + made + only(r.only) + place(r.where));
    }
    for (const auto& s : c.sets) line(1, "set " + quote(s.where) + ": " + quoted(s.alternatives));
    for (const auto& r : c.maps)
      line(1, fmt::format("map {} = {}{}{}{}{}", quoted(r.file), quoted(r.model), r.via.empty() ? "" : " via " + quote(r.via), only(r.only),
                          r.set < 0 ? "" : fmt::format(" set {} {}", r.set, r.alternative), place(r.where)));
    for (const auto& e : c.encodes) {
      line(1, fmt::format("encode {}{} as {} of {} {{", quote(e.pattern), only(e.only), quote(e.name), quote(e.axes)));
      for (const auto& p : e.parts) line(2, fmt::format("part {} {} {} {}", quote(p.name), quote(p.at), quote(p.dtype), quote(p.shape)));
      line(2, "value " + quote(e.value));
      line(1, "}");
    }
    line(0, "}");
  }

  // The members as declared; where `order` does not name each once, by kind instead.
  static std::vector<std::pair<char, std::uint32_t>> order_of(const Class& c) {
    std::vector<std::pair<char, std::uint32_t>> all;
    auto add = [&all](char kind, std::size_t n) {
      for (std::uint32_t i = 0; i < n; ++i) all.emplace_back(kind, i);
    };
    add('w', c.weights.size());
    add('c', c.consts.size());
    add('s', c.states.size());
    add('m', c.children.size());
    using Set = std::set<std::pair<char, std::uint32_t>>;
    const bool whole = c.order.size() == all.size() && Set(c.order.begin(), c.order.end()) == Set(all.begin(), all.end());
    return whole ? c.order : all;
  }

  void one_class(const Class& c) {
    line(0, "");
    line(0, fmt::format("class {}: {}{}{}{} {{", word(c.name), word(c.definition), c.arguments.empty() ? "" : " " + quote(c.arguments),
                        c.leaf ? " leaf" : "", place(c.where)));
    for (const auto& [kind, i] : order_of(c)) {
      if (kind == 'w') weight(c.weights[i]);
      else if (kind == 'c') constant(c, c.consts[i]);
      else if (kind == 's') state(c.states[i]);
      else child(c.children[i]);
    }
    for (const Function& f : c.functions) function(f);
    line(0, "}");
  }

  void weight(const WeightDecl& w) {
    constexpr std::string_view roles[] = {"matrix", "table", "vector"};
    std::string s = "weight " + word(w.name) + (w.path == w.name ? "" : " at " + quote(w.path)) + ": " + type(w.type) + " " +
                    std::string(roles[static_cast<int>(w.role) % 3]);
    if (!w.shape_text.empty()) s += " shape " + quote(w.shape_text);
    if (!w.shape_numbers.empty()) s += " numbers " + quote(w.shape_numbers);
    if (!w.origins.empty()) s += " from " + list(w.origins, [](const std::string& o) { return quote(o); });
    if (w.required_dtype) s += " dtype " + std::string(name(*w.required_dtype));
    if (w.default_value) s += " default " + real(*w.default_value);
    line(1, s + place(w.where));
  }
  void constant(const Class& c, const ConstDecl& d) {
    const std::string init = d.init.index < c.functions.size() ? word(c.functions[d.init.index].name) : "\"?\"";
    line(1, "const " + word(d.name) + ": " + type(d.type) + " = " + init + place(d.where));
  }
  void state(const StateDecl& d) {
    constexpr std::string_view kinds[] = {"kv_cache", "latent_cache", "cross_cache", "ring", "recurrent"};
    line(1, fmt::format("state {}: {}[{}]{}{}", word(d.name), kinds[static_cast<int>(d.kind) % 5],
                        list(d.sizes, [](std::int64_t n) { return std::to_string(n); }),
                        d.window ? fmt::format(" window {}", *d.window) : "", place(d.where)));
  }
  void child(const ChildDecl& d) {
    std::string elements;                                                     // equal neighbours as `Layer * 4`
    for (std::size_t i = 0; i < d.elements.size();) {
      std::size_t n = 1;
      while (i + n < d.elements.size() && d.elements[i + n] == d.elements[i]) ++n;
      elements += (i == 0 ? "" : ", ") + class_name(d.elements[i]) + (n == 1 ? "" : fmt::format(" * {}", n));
      i += n;
    }
    line(1, (d.list ? "children " : "child ") + word(d.name) + (d.path == d.name ? "" : " at " + quote(d.path)) + ": " +
                (d.list ? "[" + elements + "]" : elements) + place(d.where));
  }

  void function(const Function& f) {
    constexpr std::string_view kinds[] = {"forward", "entry", "init"};
    const ValueNames names(f);
    const std::string inputs = list(f.inputs, [&](const Parameter& p) {
      std::string s = definition(p.value, names, f);
      const bool same = p.value.index < f.values.size() && f.values[p.value.index].name == p.name;
      if (!same) s += " name " + quote(p.name);
      if (p.default_value) s += " default " + real(*p.default_value);
      return s;
    });
    line(1, fmt::format("{} {}({}){}{} {{", kinds[static_cast<int>(f.kind) % 3], word(f.name), inputs,
                        f.signature.empty() ? "" : " signature " + quote(f.signature), place(f.where)));
    ops(f.body, names, f, 2);
    std::string results;
    for (std::size_t i = 0; i < f.body.results.size(); ++i) {
      results += (i == 0 ? " " : ", ") + names(f.body.results[i]);
      if (i < f.result_names.size() && !f.result_names[i].empty()) results += " as " + quote(f.result_names[i]);
    }
    line(2, "return" + results);
    line(1, "}");
  }

  void ops(const Block& b, const ValueNames& names, const Function& f, int depth) {
    for (const Op& op : b.ops) {
      line(depth, op_line(op, names, f) + (op.body ? " {" : ""));
      if (!op.body) continue;
      if (!op.body->arguments.empty())
        line(depth + 1, "carry " + list(op.body->arguments, [&](ValueId v) { return definition(v, names, f); }));
      ops(*op.body, names, f, depth + 1);
      line(depth + 1, "next" + (op.body->results.empty() ? "" : " " + list(op.body->results, names)));
      line(depth, "}");
    }
  }

  const Module& m_;
  const PrintOptions& options_;
  std::string out_;
};

}  // namespace

std::string print(const Module& module, const PrintOptions& options) { return Printer(module, options).module(); }

std::string print_op(const Module& module, const Function& function, const Op& op) {
  const PrintOptions options{.places = false};
  return Printer(module, options).op_line(op, ValueNames(function), function);
}

}  // namespace modelc::graph

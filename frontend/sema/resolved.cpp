#include "frontend/sema/resolved.h"

#include <algorithm>
#include <vector>

#include "frontend/graph/types.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace {

std::string place(const graph::Where& where) { return where.line == 0 ? "" : "    // " + where.file + ":" + std::to_string(where.line); }

class Resolved {
 public:
  explicit Resolved(const graph::Module& module) : m_(module) {}

  std::string text() {
    line(0, "model " + m_.name + "    // " + m_.file);
    if (m_.context) line(1, "context " + std::to_string(*m_.context));
    if (!m_.config.empty()) {
      line(1, "config");
      for (const graph::ConfigFact& fact : m_.config) line(2, fact.name + ": " + fact.type + " = " + value(fact.value));
    }
    for (const graph::Class& made : m_.classes) of_class(made);
    for (const graph::CheckpointRules& rules : m_.checkpoints) checkpoint(rules);
    const auto weights = graph::weight_instances(m_);
    std::uint64_t elements = 0;
    for (const auto& weight : weights) {
      std::uint64_t n = 1;
      for (const graph::DimId dim : weight.decl->type.shape) n *= static_cast<std::uint64_t>(m_.dims.value(dim).value_or(0));
      elements += n;
    }
    line(1, "weights: " + counted(weights.size(), "tensor") + ", " + grouped(elements) + " elements");
    for (const auto& weight : weights) line(2, weight.name + ": " + graph::shape_text(weight.decl->type.shape, m_.dims));
    return std::move(out_);
  }

 private:
  void line(int depth, const std::string& text) { out_ += std::string(static_cast<std::size_t>(depth) * 2, ' ') + text + "\n"; }

  static std::string value(const std::variant<std::int64_t, double, bool, std::string>& v) {
    struct {
      std::string operator()(std::int64_t i) const { return std::to_string(i); }
      std::string operator()(double d) const { return shortest(d); }
      std::string operator()(bool b) const { return b ? "true" : "false"; }
      std::string operator()(const std::string& s) const { return modelc::quote(s); }
    } show;
    return std::visit(show, v);
  }

  static std::string at(const std::string& name, const std::string& path) {
    if (path == name) return name;
    return name + " at " + (path.empty() ? "." : path);
  }

  void of_class(const graph::Class& made) {
    std::string head = (made.leaf ? "leaf " : "module ") + made.name;
    if (made.name != made.definition) head += " = " + made.definition;
    line(1, head + "(" + made.arguments + ")" + place(made.where));
    for (const auto& [kind, index] : made.order) {
      switch (kind) {
        case 'w': weight(made.weights[index]); break;
        case 'c':
          line(2,
               "const " + made.consts[index].name + ": " + graph::text(made.consts[index].type, m_.dims) + place(made.consts[index].where));
          break;
        case 's': state(made.states[index]); break;
        case 'm': child(made.children[index]); break;
        default: break;
      }
    }
    for (const graph::Function& function : made.functions) {
      if (function.kind != graph::FunctionKind::init) signature(function);
    }
  }

  void weight(const graph::WeightDecl& w) {
    constexpr std::string_view roles[] = {"matrix", "table", "vector"};
    std::string text = "param " + at(w.name, w.path) + ": " + (w.required_dtype ? std::string(name(*w.required_dtype)) : "") + w.shape_text;
    const std::string sizes = graph::shape_text(w.type.shape, m_.dims);
    if (!w.shape_numbers.empty()) text += " = " + w.shape_numbers;
    if (sizes != w.shape_text && sizes != w.shape_numbers) text += " = " + sizes;
    text += " " + std::string(roles[static_cast<int>(w.role)]);
    if (w.default_value) text += ", " + shortest(*w.default_value) + " where the checkpoint has none";
    line(2, text + place(w.where));
  }

  void state(const graph::StateDecl& s) {
    constexpr std::string_view kinds[] = {"KVCache", "LatentCache", "CrossCache", "Ring", "Recurrent"};
    std::string sizes;
    for (const std::int64_t size : s.sizes) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    line(2, "state " + s.name + ": " + std::string(kinds[static_cast<int>(s.kind)]) + "(" + sizes + ")" +
                (s.window ? " window " + std::to_string(*s.window) : "") + place(s.where));
  }

  // "layers: [Layer × 30, Layer_2 × 6]"
  void child(const graph::ChildDecl& c) {
    std::string text = at(c.name, c.path) + ": ";
    if (!c.list) {
      line(2, text + m_.of(c.elements[0]).name + place(c.where));
      return;
    }
    text += "[";
    for (std::size_t i = 0; i < c.elements.size();) {
      std::size_t end = i;
      while (end < c.elements.size() && c.elements[end] == c.elements[i]) ++end;
      text += (i == 0 ? "" : ", ") + m_.of(c.elements[i]).name + (end - i == 1 ? "" : " × " + std::to_string(end - i));
      i = end;
    }
    line(2, text + "]" + place(c.where));
  }

  void signature(const graph::Function& f) {
    std::string text = (f.kind == graph::FunctionKind::forward ? "" : "entry ") + f.name + "(";
    for (std::size_t i = 0; i < f.inputs.size(); ++i) {
      text += (i == 0 ? "" : ", ") + f.inputs[i].name + ": " + graph::text(f.values[f.inputs[i].value.index].type, m_.dims);
    }
    text += ")";
    for (std::size_t i = 0; i < f.body.results.size(); ++i) {
      const std::string& result = i < f.result_names.size() ? f.result_names[i] : "";
      text +=
          (i == 0 ? " -> " : ", ") + (result.empty() ? "" : result + ": ") + graph::text(f.values[f.body.results[i].index].type, m_.dims);
    }
    line(2, text + place(f.where));
  }

  void checkpoint(const graph::CheckpointRules& rules) {
    const auto place = [](const std::string& where) { return where.empty() ? "" : "    // " + where; };
    const auto only = [](const std::string& text) { return text.empty() ? "" : " only " + text; };
    line(1, "checkpoint " + rules.format + (rules.architecture.empty() ? "" : " \"" + rules.architecture + "\""));
    for (const auto& r : rules.maps) {
      const auto side = [](const std::vector<std::string>& all) { return all.size() == 1 ? all.front() : "[" + join(all, ", ") + "]"; };
      std::string text = r.file.empty() ? side(r.model) : side(r.file) + " = " + side(r.model);
      if (!r.via.empty()) text += " via " + r.via;
      if (r.set >= 0)
        text = "one_of " + rules.sets[static_cast<std::size_t>(r.set)].alternatives[static_cast<std::size_t>(r.alternative)] + ": " + text;
      line(2, text + only(r.only) + place(r.where));
    }
    for (const auto& r : rules.aliases)
      line(2, "alias " + r.weight + " = " + r.target + (r.when.empty() ? "" : " off: " + r.when) + place(r.where));
    for (const auto& r : rules.ignores)
      line(2, (r.made_of.empty() ? "ignore " + r.pattern : r.pattern + " = " + r.made_of) + only(r.only) + place(r.where));
    for (const auto& r : rules.encodes) line(2, "encode " + r.pattern + " as " + r.name + only(r.only));
  }

  const graph::Module& m_;
  std::string out_;
};

}  // namespace

std::string resolved_text(const graph::Module& module) { return Resolved(module).text(); }

}  // namespace modelc::sema

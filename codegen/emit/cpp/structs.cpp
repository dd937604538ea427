// The structs of the header: members as declared, what a checkpoint must hold for them, and the functions' heads.
#include <fmt/format.h>

#include "codegen/emit/cpp/pieces.h"

namespace modelc::emit {

namespace {

std::string quoted_lines(const std::vector<std::string>& lines, const std::string& pad) {
  std::string s;
  for (std::size_t i = 0; i < lines.size(); ++i) s += (i ? "\n" + pad : "") + string_literal(lines[i] + (i + 1 < lines.size() ? "\n" : ""));
  return s;
}

std::string where_text(const graph::Where& w, bool column) {
  if (w.line == 0) return "";
  return column ? fmt::format("{}:{}:{}", w.file, w.line, w.column) : fmt::format("{}:{}", w.file, w.line);
}

// Elements of a list that are not all of one struct.
bool mixed(const Names& names, const graph::ChildDecl& m) {
  for (graph::ClassId e : m.elements)
    if (names.classes[e.index].type != names.classes[m.elements[0].index].type) return true;
  return false;
}

class Members {
 public:
  Members(const Names& names, graph::ClassId id)
      : names_(names), id_(id), class_(names.program.graph->of(id)), own_(names.classes[id.index]) {}

  std::string run() {
    for (const auto& [kind, index] : class_.order) {
      if (kind == 'w') weight(class_.weights[index]);
      else if (kind == 'c') constant(class_.consts[index]);
      else if (kind == 's') state(class_.states[index]);
      else if (kind == 'm') child(class_.children[index]);
    }
    return out_;
  }

 private:
  void weight(const graph::WeightDecl& w) {
    const std::string head = fmt::format("  modelc::Weight {}{{", own_.members.at(w.name));
    out_ += head + weight_spec(names_.program, w, w.where, head.size()) + "};\n";
  }
  void constant(const graph::ConstDecl& c) {
    out_ += fmt::format("  modelc::Const {};  // {}\n", own_.members.at(c.name), shape_expression(*names_.program.dims, c.type.shape, {}));
  }
  void state(const graph::StateDecl& s) {
    static constexpr std::pair<const char*, const char*> kinds[] = {{"kv_cache", "heads, dim, value_dim"},
                                                                    {"latent_cache", "rank, rope"},
                                                                    {"cross_cache", "n, heads, dim"},
                                                                    {"ring", "n, a row's extents"},
                                                                    {"recurrent", "extents"}};
    const auto& [kind, sizes] = kinds[static_cast<int>(s.kind)];
    std::string kept;                                      // in fast mode; f16 unless the policy says otherwise
    if (s.kind != graph::StateKind::ring && s.kind != graph::StateKind::recurrent)
      for (const graph::PolicyRule& r : names_.program.graph->policy)
        if (!r.pattern && r.target == "cache")
          kept = r.dtype == DType::f16 ? "" : fmt::format(", .kept = modelc::DType::{}", name(r.dtype));
    const std::string declaration =
        fmt::format("  modelc::StateSlot {}{{.kind = modelc::StateSlot::Kind::{}, .sizes = {{{}}}{}{}}};", own_.members.at(s.name), kind,
                    fmt::join(s.sizes, ", "), s.window ? fmt::format(", .window = {}", *s.window) : "", kept);
    out_ += fmt::format("{}  // {}\n", declaration, sizes);
  }
  // What stands in the braces that make an instance of a struct shared by leaves: one specification a weight.
  std::string initializer(graph::ClassId id, const graph::Where& use, std::size_t indent) const {
    if (!names_.classes[id.index].plain_leaf) return "";
    std::string s;
    for (const graph::WeightDecl& w : names_.program.graph->of(id).weights)
      s += (s.empty() ? "" : ",\n" + std::string(indent, ' ')) + weight_spec(names_.program, w, use.line ? use : w.where, indent);
    return s;
  }
  void child(const graph::ChildDecl& m) {
    const std::string& name = own_.members.at(m.name);
    if (!m.list) {
      const std::string head = fmt::format("  {} {}", names_.classes[m.elements[0].index].type, name);
      const std::string init = initializer(m.elements[0], m.where, head.size() + 1);
      out_ += head + (init.empty() ? "" : "{" + init + "}") + ";\n";
    } else if (m.elements.empty()) {
      out_ += fmt::format("  // {}: an empty list\n", name);
    } else if (mixed(names_, m)) {
      std::vector<std::string> types, kinds;
      std::map<std::string, std::size_t> index;
      for (graph::ClassId e : m.elements) {
        const auto [it, fresh] = index.try_emplace(names_.classes[e.index].type, types.size());
        if (fresh) types.push_back(it->first);
        kinds.push_back(std::to_string(it->second));
      }
      const std::string list = fmt::format("{}", fmt::join(types, ", "));
      out_ += fmt::format("  std::vector<std::variant<{}>> {} =\n", list, name);
      out_ += wrapped(fmt::format("      modelc::mixed<{}>({{", list), kinds, "});\n");
    } else {
      const std::string& type = names_.classes[m.elements[0].index].type;
      const std::string head = fmt::format("  std::vector<{}> {} = std::vector<{}>({}, {}", type, name, type, m.elements.size(), type);
      const std::string init = initializer(m.elements[0], m.where, head.size() + 1);
      if (init.empty()) out_ += fmt::format("  std::array<{}, {}> {};\n", type, m.elements.size(), name);
      else out_ += head + "{" + init + "});\n";
    }
  }

  const Names& names_;
  graph::ClassId id_;
  const graph::Class& class_;
  const ClassNames& own_;
  std::string out_;
};

std::string inner_struct(const std::string& head, const std::string& member, const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string s = head + "  struct {\n";
  for (const auto& [declaration, comment] : rows) s += fmt::format("    {:<54} // {}\n", declaration + ";", comment_text(comment, 90));
  return s + "  } " + member + ";\n";
}

}  // namespace

std::string weight_spec(const plan::Program& program, const graph::WeightDecl& w, const graph::Where& use, std::size_t indent) {
  const std::string pad(indent + 1, ' ');
  std::vector<std::string> parts = {".shape = " + shape_expression(*program.dims, w.type.shape, {}),
                                    ".formula = " + string_literal(w.shape_text)};
  if (!w.shape_numbers.empty()) parts.push_back(".numbers = " + string_literal(w.shape_numbers));
  if (use.line != 0) parts.push_back(".where = " + string_literal(where_text(use, true)));
  if (w.role == graph::WeightRole::matrix) parts.push_back(".role = modelc::WeightRole::matrix");
  if (w.role == graph::WeightRole::table) parts.push_back(".role = modelc::WeightRole::table");
  if (w.required_dtype) {
    const auto t = *w.required_dtype;
    parts.push_back(fmt::format(".dtype = modelc::DType::{}", t == DType::boolean ? "boolean" : modelc::name(t)));
  }
  if (w.default_value) parts.push_back(".default_value = " + double_literal(*w.default_value));
  if (!w.origins.empty()) parts.push_back(".origins = " + quoted_lines(w.origins, pad + "           "));
  std::string s = "{";
  for (std::size_t i = 0; i < parts.size(); ++i) s += (i ? ",\n" + pad : "") + parts[i];
  return s + "}";
}

std::string member_declarations(const Names& names, graph::ClassId id) {
  std::string s = Members(names, id).run();
  const plan::Class& c = names.program.classes[id.index];
  const ClassNames& own = names.classes[id.index];
  std::vector<std::pair<std::string, std::string>> rows;
  for (std::size_t i = 0; i < c.packs.size(); ++i) {
    std::string from;
    for (const std::string& w : c.packs[i].weights) from += (from.empty() ? "" : ", ") + w;
    rows.emplace_back("modelc::Matrix " + own.packs[i], "rows of " + from);
  }
  if (!rows.empty()) s += inner_struct("\n  // Products by their weights: those on one input are one.\n", "product", rows);
  rows.clear();
  for (std::size_t i = 0; i < c.step_values.size(); ++i) {
    std::string shape = "[";
    for (std::size_t k = 0; k < c.step_values[i].shape.size(); ++k)
      shape += (k ? ", " : "") + names.program.dims->text(c.step_values[i].shape[k]);
    rows.emplace_back("modelc::StepValue " + own.once[i], shape + "]");
  }
  if (!rows.empty()) s += inner_struct("  // Values that depend on the batch alone, computed once a step.\n", "once", rows);
  return s;
}

std::string output_name(const plan::Function& f, std::size_t i, Scope& scope) {
  const std::string& name = f.output_names[i];
  return scope.unique(name.empty() ? (f.outputs.size() == 1 ? "result" : fmt::format("result_{}", i + 1)) : name);
}

std::string function_head(const Names& names, graph::ClassId id, const plan::Function& f, const std::string& scope_text, bool qualified) {
  const std::string space = qualified ? "modelc::" : "";
  Scope scope = names.classes[id.index].scope;
  std::vector<std::string> parameters = {space + "Step& s"};
  for (const std::string& in : f.input_names) parameters.push_back(fmt::format("const {}Tensor& {}", space, scope.unique(in)));
  if (f.at != plan::TakesAt::none)
    parameters.push_back(fmt::format("const {}{}& at", space, f.at == plan::TakesAt::batch ? "Batch" : "Sequences"));
  for (std::size_t i = 0; i < f.outputs.size(); ++i)
    parameters.push_back(fmt::format("const {}Tensor& {}", space, output_name(f, i, scope)));
  const std::string& name = names.classes[id.index].functions.at(f.name);
  return wrapped(fmt::format("{}void {}{}(", qualified ? "  " : "", scope_text, name), parameters, ") const");
}

std::string struct_text(const Names& names, graph::ClassId id) {
  const graph::Class& c = names.program.graph->of(id);
  const plan::Class& p = names.program.classes[id.index];
  const ClassNames& own = names.classes[id.index];
  std::string s;
  if (c.where.line != 0) s += fmt::format("// {}\n", comment_text(where_text(c.where, false)));
  s += fmt::format("struct {} : modelc::Module {{\n", own.type);
  if (own.plain_leaf) {
    std::vector<std::string> parameters, initializers;
    for (const graph::WeightDecl& w : c.weights) {
      const std::string& m = own.members.at(w.name);
      s += fmt::format("  modelc::Weight {};\n", m);
      parameters.push_back(fmt::format("const modelc::WeightSpec& {}_spec", m));
      initializers.push_back(fmt::format("{}{{{}_spec}}", m, m));
    }
    if (!c.weights.empty())
      s += wrapped(fmt::format("\n  {}{}(", c.weights.size() == 1 ? "explicit " : "", own.type), parameters, ")") +
           "\n      : " + fmt::format("{}", fmt::join(initializers, ", ")) + " {}\n";
  } else {
    s += member_declarations(names, id);
  }
  s += fmt::format("\n  const char* type_name() const override {{ return {}; }}\n", string_literal(c.definition));
  s += "  void members(modelc::MemberVisitor& v) override;\n";
  if (!p.packs.empty() || !p.step_values.empty() || !c.consts.empty()) s += "  void bind(modelc::Binder& binder) override;\n";
  for (const plan::Function& f : p.functions)
    if (f.kind != graph::FunctionKind::init) s += function_head(names, id, f, "", true) + ";\n";
  return s + "};\n";
}

}  // namespace modelc::emit

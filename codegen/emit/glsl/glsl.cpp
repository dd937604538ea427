// Map kernels as compute shaders: the same expressions as cpp/kernels.cpp writes, for a GPU.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "codegen/emit/cpp/namer.h"
#include "codegen/emit/cpp/names.h"
#include "codegen/emit/cpp/text.h"
#include "codegen/emit/emit.h"
#include "codegen/emit/operators.h"
#include "codegen/plan/printer.h"
#include "codegen/plan/walk.h"
#include "frontend/graph/ops.h"

namespace modelc::emit {
namespace {

using graph::OpKind;
using plan::MapNode;

std::string number(double value, DType type) {
  if (type == DType::i32) return fmt::format("{}", static_cast<std::int64_t>(value));
  const auto f = static_cast<float>(value);
  if (std::isnan(f)) return "uintBitsToFloat(0x7FC00000u)";
  if (std::isinf(f)) return f > 0 ? "math_inf" : "-math_inf";
  std::string s = fmt::format("{}", f);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s;
}

class Expression {
 public:
  explicit Expression(const plan::MapKernel& k) : k_(k), uses_(k.nodes.size(), 0), local_(k.nodes.size()), whole_(k.inputs.size(), false) {
    for (const MapNode& n : k.nodes)
      for (const std::uint32_t o : n.operands) ++uses_[o];
    for (const MapNode& n : k.nodes)
      if (n.kind == MapNode::Kind::input && n.dtype == DType::i32) whole_[n.input] = true;
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < k.nodes.size(); ++i) {
      if (k.nodes[i].kind != MapNode::Kind::op || uses_[i] < 2) continue;
      const std::string value = text(i, true);
      local_[i] = fmt::format("t{}", ++count);
      locals_ += fmt::format("  {} {} = {};\n", k.nodes[i].dtype == DType::i32 ? "const int" : "precise float", local_[i], value);
    }
  }
  bool whole(std::size_t input) const { return whole_[input]; }
  bool is_whole() const { return k_.nodes.back().dtype == DType::i32; }
  const std::string& locals() const { return locals_; }
  std::string result() const { return text(static_cast<std::uint32_t>(k_.nodes.size() - 1), true); }

 private:
  std::string text(std::uint32_t at, bool top) const {
    const MapNode& n = k_.nodes[at];
    if (n.kind == MapNode::Kind::input) return fmt::format("x{}", n.input);
    if (n.kind == MapNode::Kind::literal) {
      const std::string s = number(n.literal, n.dtype);
      return s[0] == '-' && !top ? "(" + s + ")" : s;
    }
    if (!local_[at].empty()) return local_[at];
    const auto arg = [&](std::size_t i, bool alone) { return text(n.operands[i], alone); };
    if (n.op == OpKind::cast && (n.dtype == DType::bf16 || n.dtype == DType::f16)) return arg(0, top);   // there is no mode but exact
    std::string s;
    if (const char* sign = infix(n.op)) s = fmt::format("{} {} {}", arg(0, false), sign, arg(1, false));
    else if (const char* c = comparison(n.op)) s = fmt::format("{} {} {} ? 1.0 : 0.0", arg(0, false), c, arg(1, false));
    else if (n.op == OpKind::logical_and) s = fmt::format("{} != 0.0 && {} != 0.0 ? 1.0 : 0.0", arg(0, false), arg(1, false));
    else if (n.op == OpKind::logical_or) s = fmt::format("{} != 0.0 || {} != 0.0 ? 1.0 : 0.0", arg(0, false), arg(1, false));
    else if (n.op == OpKind::logical_not) s = fmt::format("{} == 0.0 ? 1.0 : 0.0", arg(0, false));
    else if (n.op == OpKind::cast && n.dtype == DType::i32) return fmt::format("int({})", arg(0, true));
    else if (n.op == OpKind::cast) s = fmt::format("{} != 0.0 ? 1.0 : 0.0", arg(0, false));  // to bool
    else if (n.op == OpKind::neg) s = fmt::format("-{}", arg(0, false));
    else {
      s = fmt::format("math_{}(", graph::info(n.op).name);
      for (std::size_t i = 0; i < n.operands.size(); ++i) s += (i ? ", " : "") + arg(i, true);
      s += ")";
      return n.dtype == DType::i32 ? "int(" + s + ")" : s;
    }
    return top ? s : "(" + s + ")";
  }

  const plan::MapKernel& k_;
  std::vector<int> uses_;
  std::vector<std::string> local_;
  std::vector<bool> whole_;
  std::string locals_;
};

std::string shader_text(const plan::Program& p, const plan::MapKernel& k, const Options& o) {
  const Expression e(k);
  const std::size_t n = k.inputs.size();
  std::string s = fmt::format("// {}: {}. Written by modelc {}; change that file, not this one.\n// {}\n", comment_text(k.name),
                              comment_text(p.graph->file), o.version, comment_text(plan::expression(k)));
  s += fmt::format("#version 450\n#define INPUTS {}\n#include \"map.glsl\"\n\n", n);
  for (std::size_t i = 0; i < n; ++i)
    s += fmt::format(
        "layout(constant_id = {}) const uint type_{} = 0;\n"
        "layout(binding = {}) readonly buffer Input{} {{ uint v[]; }} input_{};     // {}\n",
        4 + i, i, i + 1, i, i, comment_text(k.inputs[i]));
  s += "\nvoid main() {\n  const uint e = invocation_number();\n  if (e >= map_argument(0u)) return;\n";
  for (std::size_t i = 0; i < n; ++i)
    s += fmt::format(
        "  const uint e{0} = map_place({0}u, e);\n"
        "  const {1} x{0} = map_{1}({0}u, type_{0}, e{0}, input_{0}.v[map_word({0}u, type_{0}, e{0})]);\n",
        i, e.whole(i) ? "int" : "float");
  // precise: operation by operation, as on the CPU, and nothing fused.
  return s + e.locals() +
         fmt::format("  {} result_value = {};\n  map_store(e, result_value);\n}}\n", e.is_whole() ? "int" : "precise float", e.result());
}

}  // namespace

namespace {

// What the steps of a program say of its shaders.
struct Uses {
  std::vector<graph::Where> kernels;             // the line that a kernel is first made for
  std::vector<ShaderContract> shaders;           // what calls give the shaders of custom operations

  explicit Uses(const plan::Program& p) : kernels(p.kernels.size()), shaders(p.graph->shaders.size()) {
    for (const plan::Class& c : p.classes) {
      for (const plan::Function& f : c.functions) note(f.steps);
      for (const plan::StepValue& v : c.step_values) note(v.compute.steps);
    }
  }

 private:
  void note(const std::vector<plan::Step>& steps) {
    for (const plan::Step& s : steps) {
      const auto kernel = [&](plan::KernelId k) {
        if (kernels[k.index].line == 0) kernels[k.index] = s.where;
      };
      if (const auto* map = std::get_if<plan::Map>(&s.kind)) kernel(map->kernel);
      if (const auto* product = std::get_if<plan::LinearMap>(&s.kind)) kernel(product->kernel);
      if (const auto* experts = std::get_if<plan::Experts>(&s.kind)) kernel(experts->kernel);
      if (const auto* k = std::get_if<plan::Custom>(&s.kind))
        for (const graph::Dispatch& d : k->dispatches) {
          ShaderContract& c = shaders[static_cast<std::size_t>(d.shader)];
          const auto local = static_cast<std::uint32_t>(d.local_size);
          c.local_size = c.tensors == 0 || c.local_size == local ? local : 0;
          c.tensors = static_cast<std::uint32_t>(k->inputs.size() + k->outs.size());
          c.sizes = static_cast<std::uint32_t>(k->sizes.size());
        }
      if (const auto* body = plan::body_of(s.kind)) note(*body);
    }
  }
};

}  // namespace

std::vector<ShaderFile> glsl(const plan::Program& p, const Options& o) {
  const Names names(p, o);
  const Uses uses(p);
  std::vector<ShaderFile> files;
  const auto named = [&](const std::string& kernel) { return "shaders/" + o.file + "_" + kernel + ".comp"; };
  for (std::size_t i = 0; i < p.kernels.size(); ++i)
    files.push_back({names.kernels[i],
                     {named(names.kernels[i]), shader_text(p, p.kernels[i], o)},
                     {},
                     plan::expression(p.kernels[i]),
                     uses.kernels[i]});
  // As its author wrote it; T is the type of the tensors' elements, R that of its arithmetic.
  for (std::size_t i = 0; i < p.graph->shaders.size(); ++i) {
    const graph::Shader& s = p.graph->shaders[i];
    files.push_back({names.shaders[i],
                     {named(names.shaders[i]), s.text},
                     {{"T", "float"}, {"R", "float"}, {"OP_F32", "1"}},
                     "the operation `" + s.op + "`",
                     s.where,
                     &s,
                     uses.shaders[i]});
    files.back().contract.features = s.required;
  }
  return files;
}

File shader_header(const plan::Program& p, const Options& o, const std::vector<ShaderBinary>& binaries) {
  std::string s = fmt::format("// {}: {}, the shaders of its expressions. Written by modelc {}; change that file, not this one.\n",
                              comment_text(o.class_name), comment_text(p.graph->file), o.version);
  s += "#pragma once\n\n#include \"runtime/modelc.h\"\n\n";
  if (!o.name_space.empty()) s += fmt::format("namespace {} {{\n", o.name_space);
  s += "namespace shaders {\n\n";
  for (const ShaderBinary& b : binaries) {
    if (b.custom == nullptr) {
      s += fmt::format("// {}\ninline constexpr modelc::MapShader {} = {{\n{}, {}}};\n\n", b.file, b.kernel, b.literal, b.bytes);
      continue;
    }
    s += fmt::format("// {}, which is {}\ninline constexpr modelc::CustomShader {} = {{\"{}\",\n{}, {}, {}}};\n\n", b.file,
                     comment_text(b.custom->file), b.kernel, b.custom->op, b.literal, b.bytes,
                     string_literal(fmt::format("{}", fmt::join(b.custom->required, ","))));
  }
  s += "}  // namespace shaders\n";
  if (!o.name_space.empty()) s += fmt::format("}}  // namespace {}\n", o.name_space);
  return {o.file + "_shaders.h", s};
}

}  // namespace modelc::emit

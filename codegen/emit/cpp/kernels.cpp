// Map kernels as lambdas that the host compiler turns into vector code.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/emit/cpp/pieces.h"
#include "codegen/emit/operators.h"
#include "codegen/plan/printer.h"
#include "frontend/graph/ops.h"

namespace modelc::emit {

namespace {

using graph::OpKind;
using plan::MapNode;

bool rounds(const MapNode& n) {
  return n.kind == MapNode::Kind::op && n.op == OpKind::cast && (n.dtype == DType::bf16 || n.dtype == DType::f16);
}

class Expression {
 public:
  // by_policy: rounding where the kernel says so; else those places are passed over.
  Expression(const plan::MapKernel& k, const std::vector<std::string>& all_kernels, bool by_policy)
      : k_(k), by_policy_(by_policy), uses_(k.nodes.size(), 0), local_(k.nodes.size()) {
    for (const MapNode& n : k.nodes)
      for (std::uint32_t o : n.operands) ++uses_[o];
    Scope scope({"a", "begin", "end", "math"});
    for (const std::string& kernel : all_kernels) scope.unique(kernel);
    for (const std::string& in : k.inputs) inputs_.push_back(scope.unique(in));
    types_.assign(k.inputs.size(), "float");
    for (const MapNode& n : k.nodes)
      if (n.kind == MapNode::Kind::input && n.dtype == DType::i32) types_[n.input] = "std::int32_t";
    // What is used twice gets a name, so that the text does not grow with sharing.
    for (std::uint32_t i = 0; i < k.nodes.size(); ++i) {
      if (k.nodes[i].kind != MapNode::Kind::op || uses_[i] < 2) continue;
      const std::string value = text(i, true);
      local_[i] = scope.unique("t");
      locals_ += fmt::format("const {} {} = {};\n", k.nodes[i].dtype == DType::i32 ? "std::int32_t" : "float", local_[i], value);
    }
  }
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::vector<std::string>& types() const { return types_; }
  // Whole numbers are read or made: the loop has types.
  bool typed() const {
    for (const MapNode& n : k_.nodes)
      if (n.dtype == DType::i32) return true;
    return false;
  }
  const std::string& locals() const { return locals_; }
  std::string result() const { return text(static_cast<std::uint32_t>(k_.nodes.size() - 1), true); }

 private:
  std::string text(std::uint32_t at, bool top) const {
    const MapNode& n = k_.nodes[at];
    if (n.kind == MapNode::Kind::input) return inputs_[n.input];
    if (n.kind == MapNode::Kind::literal) {
      const std::string s = n.dtype == DType::i32 ? fmt::format("{}", static_cast<std::int64_t>(n.literal)) : float_literal(n.literal);
      return s[0] == '-' && !top ? "(" + s + ")" : s;
    }
    if (!local_[at].empty()) return local_[at];
    const auto arg = [&](std::size_t i, bool alone) { return text(n.operands[i], alone); };
    if (rounds(n)) return by_policy_ ? fmt::format("math::{}({})", name(n.dtype), arg(0, true)) : arg(0, top);
    std::string s;
    if (const char* sign = infix(n.op)) s = fmt::format("{} {} {}", arg(0, false), sign, arg(1, false));
    else if (const char* c = comparison(n.op)) s = fmt::format("{} {} {} ? 1.0F : 0.0F", arg(0, false), c, arg(1, false));
    else if (n.op == OpKind::logical_and) s = fmt::format("{} != 0 && {} != 0 ? 1.0F : 0.0F", arg(0, false), arg(1, false));
    else if (n.op == OpKind::logical_or) s = fmt::format("{} != 0 || {} != 0 ? 1.0F : 0.0F", arg(0, false), arg(1, false));
    else if (n.op == OpKind::logical_not) s = fmt::format("{} == 0 ? 1.0F : 0.0F", arg(0, false));
    else if (n.op == OpKind::cast && n.dtype == DType::i32) return fmt::format("static_cast<std::int32_t>({})", arg(0, true));
    else if (n.op == OpKind::cast) s = fmt::format("{} != 0 ? 1.0F : 0.0F", arg(0, false));      // to bool
    else if (n.op == OpKind::neg) s = fmt::format("-{}", arg(0, false));
    else {
      s = fmt::format("math::{}(", graph::info(n.op).name);
      for (std::size_t i = 0; i < n.operands.size(); ++i) s += (i ? ", " : "") + arg(i, true);
      return s + ")";
    }
    return top ? s : "(" + s + ")";
  }

  const plan::MapKernel& k_;
  const bool by_policy_;
  std::vector<int> uses_;
  std::vector<std::string> local_, inputs_, types_;
  std::string locals_;
};

}  // namespace

namespace {

// The kernel as a constant.
std::string kernel_constant(const plan::MapKernel& kernel, const std::string& name, const std::vector<std::string>& all_kernels,
                            bool shader, bool by_policy) {
  const Expression e(kernel, all_kernels, by_policy);
  std::vector<std::string> parameters;
  for (std::size_t i = 0; i < e.inputs().size(); ++i) parameters.push_back(e.types()[i] + " " + e.inputs()[i]);
  std::string s = fmt::format("constexpr MapKernel {} = {{{}, [](const MapArgs& a, std::int64_t begin, std::int64_t end) {{\n", name,
                              string_literal(name));
  const std::string head = e.typed() ? fmt::format("  modelc::map_typed<{}>(a, begin, end, [](", fmt::join(e.types(), ", "))
                                     : fmt::format("  modelc::map_rows<{}>(a, begin, end, [](", e.inputs().size());
  const std::string body = e.locals().empty() ? fmt::format("{{ return {}; }});", e.result()) : "{";
  const std::string line = fmt::format("{}{}) {}", head, fmt::join(parameters, ", "), body);
  if (line.size() <= 120) s += line + "\n";
  else s += wrapped(head, parameters, ")") + " {\n";
  if (!e.locals().empty() || line.size() > 120) {
    std::string locals = e.locals();
    for (std::size_t at = 0; at < locals.size(); at = locals.find('\n', at) + 1) locals.insert(at, "    "), at += 4;
    s += locals + fmt::format("    return {};\n  }});\n", e.result());
  }
  return s + (shader ? fmt::format("}}, shaders::{}}};\n", name) : "}};\n");
}

}  // namespace

std::string rounded_kernel(const plan::MapKernel& kernel, const std::string& name, const std::vector<std::string>& all_kernels) {
  if (std::none_of(kernel.nodes.begin(), kernel.nodes.end(), rounds)) return "";
  Scope scope;
  for (const std::string& other : all_kernels) scope.unique(other);
  return scope.unique(name + "_rounded");
}

std::string kernel_text(const plan::MapKernel& kernel, const std::string& name, const std::vector<std::string>& all_kernels, bool shader) {
  const std::string comment = fmt::format("// {}\n", comment_text(plan::expression(kernel)));
  const std::string rounded = rounded_kernel(kernel, name, all_kernels);
  std::string s = comment + kernel_constant(kernel, name, all_kernels, shader, false);
  if (!rounded.empty()) s += kernel_constant(kernel, rounded, all_kernels, false, true);
  return s;
}

}  // namespace modelc::emit

// What stands between the products of an expert, a block of elementwise operations on two rows, as one map kernel.
#include <map>

#include "codegen/lower/select_parts.h"

namespace modelc::lower {

std::optional<plan::MapKernel> expert_kernel(const graph::Function& f, const graph::Block& body, const graph::FunctionRounding* rounding) {
  plan::MapKernel k;
  k.inputs = {"gate", "up"};
  std::map<std::uint32_t, std::uint32_t> nodes;            // graph value → node
  for (std::uint32_t i = 0; i < body.arguments.size(); ++i) {
    plan::MapNode in;
    in.input = i;
    nodes[body.arguments[i].index] = i;
    k.nodes.push_back(in);
  }
  for (const graph::Op& op : body.ops) {
    const DType out = f.values[op.results[0].index].type.dtype;
    if (out != DType::f32 && out != DType::boolean) return std::nullopt;
    plan::MapNode n;
    if (op.kind == graph::OpKind::literal) {
      n.kind = plan::MapNode::Kind::literal;
      n.literal = graph::real_attr(op, "value", 0);
    } else {
      n.kind = plan::MapNode::Kind::op;
      n.op = op.kind;
      for (const auto& v : op.operands) {
        const auto it = v ? nodes.find(v->index) : nodes.end();
        if (it == nodes.end()) return std::nullopt;
        n.operands.push_back(it->second);
      }
      if (op.kind == graph::OpKind::cast) {
        if (out != DType::f32) return std::nullopt;
        nodes[op.results[0].index] = n.operands[0];
        continue;
      }
      if (!graph::info(op.kind).elementwise) return std::nullopt;
    }
    k.nodes.push_back(std::move(n));
    if (rounding && op.kind != graph::OpKind::literal) round_result(k, rounding->values[op.results[0].index]);
    nodes[op.results[0].index] = static_cast<std::uint32_t>(k.nodes.size() - 1);
  }
  const auto result = nodes.find(body.results[0].index);
  // The last node is the result: a body that gives one of its arguments, or a node before the last, adds 0 to it.
  if (result == nodes.end()) return std::nullopt;
  if (result->second + 1 != k.nodes.size()) {
    plan::MapNode zero, sum;
    zero.kind = plan::MapNode::Kind::literal;
    sum.kind = plan::MapNode::Kind::op;
    sum.op = graph::OpKind::add;
    sum.operands = {result->second, static_cast<std::uint32_t>(k.nodes.size())};
    k.nodes.push_back(zero);
    k.nodes.push_back(sum);
  }
  return k;
}

}  // namespace modelc::lower

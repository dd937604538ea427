// The selections that have files of their own. `n` comes with its place and source text, its operands and its results;
// what is made of it is added to `nodes`. Private to codegen/lower.
#pragma once

#include "codegen/lower/draft.h"

namespace modelc::lower {

// ---- select_layout.cpp: slice, concat, stack, split, transpose, repeat_axis, expand, pad, one_hot
bool is_layout(graph::OpKind kind);
// Why this backend does not carry it out (" on bf16"), or "".
std::string layout_refusal(const Draft& d, const graph::Op& op);
void select_layout(Draft& d, const graph::Op& op, const Node& n, std::vector<Node>& nodes);

// ---- select_experts.cpp: the kernel of what stands between an expert's products; none where it is no such
std::optional<plan::MapKernel> expert_kernel(const graph::Function& f, const graph::Block& body, const graph::FunctionRounding* rounding);

}  // namespace modelc::lower

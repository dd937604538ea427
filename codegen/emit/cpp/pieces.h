// The pieces of a generated file, each a text; cpp.cpp lays them out. Private to codegen/emit/cpp.
#pragma once

#include <string>

#include "codegen/emit/cpp/names.h"
#include "codegen/emit/cpp/text.h"

namespace modelc::emit {

// The lambda of a kernel's expression: "[](float gate, float up) { return math::silu(gate) * up; }", and the kernel.
// With `shader`, the one of the same name in namespace shaders goes with it.
// One that rounds by the policy is two: plain, and `rounded_kernel`.
std::string kernel_text(const plan::MapKernel& kernel, const std::string& name, const std::vector<std::string>& all_kernels, bool shader);
// The name of the kernel that rounds; "" where there is nothing to round.
std::string rounded_kernel(const plan::MapKernel& kernel, const std::string& name, const std::vector<std::string>& all_kernels);

// `{.shape = {…}, .formula = …}`, continued lines indented by `indent`.
// `use` is where the module that holds the weight is asked for, when that says more than the declaration.
std::string weight_spec(const plan::Program& program, const graph::WeightDecl& decl, const graph::Where& use, std::size_t indent);

// A struct of the header (not of the root).
std::string struct_text(const Names& names, graph::ClassId id);
// The members of any class, as they stand in its body.
std::string member_declarations(const Names& names, graph::ClassId id);

// "void forward(modelc::Step& s, const modelc::Tensor& x, const modelc::Batch& at, const modelc::Tensor& result) const",
// without the namespace in the source file; `scope` says "LlamaAttention::" there.
std::string function_head(const Names& names, graph::ClassId id, const plan::Function& f, const std::string& scope, bool qualified);

// For the source file: buffers of each function; members(), bind() and the functions.
std::string buffer_structs(const Names& names, graph::ClassId id);
std::string class_source(const Names& names, graph::ClassId id);

// The result parameter of output i: its name, or "result".
std::string output_name(const plan::Function& f, std::size_t i, Scope& scope);

}  // namespace modelc::emit

// Types of tensors as signatures declare them, what a call binds in them, and how shapes are told in messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/graph/graph.h"
#include "frontend/sema/evaluator.h"
#include "frontend/sema/module_def.h"
#include "frontend/sema/value.h"

namespace modelc::sema {

// One axis of a declared type. The formula is as written where the module is used: parameters give way to arguments.
struct AxisPattern {
  bool ellipsis = false;               // any axes, the same throughout a signature
  graph::DimId dim;
  FormulaPtr formula;                  // null: a literal or a run-time axis, which explain themselves
  source::Span span;
};

// f32[tokens, n], index(n)[...], Batch
struct TypePattern {
  graph::TypeKind kind = graph::TypeKind::tensor;
  DType dtype = DType::f32;            // the compute dtype where none is written
  bool typed = false;                  // a dtype is written
  bool is_index = false;
  std::optional<graph::DimId> bound;   // of index(bound)
  FormulaPtr bound_formula;
  std::vector<AxisPattern> axes;
  source::Span span;

  bool has_ellipsis() const;
};

struct SignaturePattern {
  struct Input {
    std::string name;
    TypePattern type;
    std::optional<double> default_value;
    source::Span span;                 // of the name
  };
  struct Result {
    std::string name;                  // "" when unnamed
    TypePattern type;
  };
  std::vector<Input> inputs;
  std::optional<std::vector<Result>> results;   // none: they follow from the body
  source::Span span;
  bool has_ellipsis() const;           // of the inputs
};

// What `...` stands for in one call; none until an argument says so.
using Ellipsis = std::optional<std::vector<graph::DimId>>;

// Parameters of `module` (any of its levels from `level` down to the module itself) give way to the formulas of their
// arguments: [out_dim, in_dim] of Linear becomes [heads * d, hidden_size].
FormulaPtr with_arguments(const FormulaPtr& formula, const ModuleDef& module, std::size_t level);

// A tensor's type as written in a module at `level`, or nothing (reported). `what` names the place: "the param `w`".
std::optional<TypePattern> type_pattern(Evaluator& evaluator, const ast::Type& type, const Environment& env, const ModuleDef* module,
                                        std::size_t level, std::string_view what);
// A whole signature; of an interface, `module` is null.
std::optional<SignaturePattern> signature_pattern(Evaluator& evaluator, const ast::Signature& signature, const Environment& env,
                                                  const ModuleDef* module, std::size_t level, std::string_view owner);

// Whether an actual type fits a declared one, binding `...`. Else what is wrong, as a clause: "its last axis is 40".
std::optional<std::string> mismatch(const TypePattern& declared, const graph::Type& actual, graph::DimTable& dims, Ellipsis& ellipsis);
// The declared type, `...` replaced.
graph::Type concrete(const TypePattern& declared, const Ellipsis& ellipsis);

// ---- shapes in messages ---------------------------------------------------------------------------------------------

// An axis with the formula that led to it, if one is known.
struct AxisText {
  graph::DimId dim;
  FormulaPtr formula;
  bool ellipsis = false;
};
std::vector<AxisText> axis_texts(const TypePattern& type);

// "[tokens, heads * d]"
std::string shape_formulas(const std::vector<AxisText>& axes, const graph::DimTable& dims);
// "[tokens, heads * d] = [tokens, 4 * 16] = [tokens, 64]"; what would only repeat is left out.
std::string shape_with_values(const std::vector<AxisText>& axes, const graph::DimTable& dims);
// "[4 * 16, 40]" of [heads * d, hidden_size]
std::string shape_numbers(const std::vector<AxisText>& axes, const graph::DimTable& dims);
// "heads = num_attention_heads = 4 from config.json:5" for each factor, each once.
std::vector<std::string> shape_origins(const std::vector<AxisText>& axes);

// Whitespace collapsed to single blanks, line comments left out: how texts stand in comments of generated code.
std::string collapsed(std::string_view text);

}  // namespace modelc::sema

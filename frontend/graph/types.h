// Types as text, and the few questions about dtypes that shape rules, verifier and evaluator share.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frontend/graph/graph.h"

namespace modelc::graph {

// "f32[tokens, 40]", "index(64)[tokens]", "bool[]", "Batch", "Sequences"; the reader reads it back.
std::string text(const Type& type, const DimTable& dims);
// "[tokens, 40]"
std::string shape_text(const std::vector<DimId>& shape, const DimTable& dims);

// As the language writes it: "KVCache".
std::string_view language_name(StateKind kind);

inline Type tensor(DType dtype, std::vector<DimId> shape) { return Type{TypeKind::tensor, dtype, std::move(shape), {}}; }
inline Type index_tensor(DimId bound, std::vector<DimId> shape) { return Type{TypeKind::tensor, DType::i32, std::move(shape), bound}; }

inline bool is_integer(DType t) { return !is_float(t) && t != DType::boolean; }
// Dtypes that a value may have. Others (f64, f8, u64) are how a file holds numbers, and are decoded at load.
bool is_value_dtype(DType t);

// The dtype of an elementwise operation on two operands: equal ones stay; a float wins over an integer; of two floats
// the wider, of bf16 and f16 f32. An operand of rank 0 does not widen one with axes of the same kind, so that
// x * 0.5 keeps x's dtype. None where there is no such dtype: bool with a number, two different integers.
std::optional<DType> promoted(const Type& a, const Type& b);

}  // namespace modelc::graph

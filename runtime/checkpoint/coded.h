// Tensors that a file stores in parts (codes and scales): which shapes the parts have, and what they mean. The compiler
// writes an encoding's formulas as lists, "(* (f32 codes) (repeat scales 128 -2))"; the few operations that such formulas
// are made of are here, so that a load needs no compiled code for them and the check, the load and the evaluator read one
// meaning.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/abi/checkpoint_rules.h"
#include "runtime/base/result.h"
#include "runtime/checkpoint/transform.h"

namespace modelc {

// The name of a part of the tensor `name`.
std::string part_name(const MappingRules::Encode::Part& part, const std::string& name);
// Shapes of the parts of a tensor of this shape, in order.
Result<std::vector<TensorShape>> part_shapes(const MappingRules::Encode& encode, const TensorShape& shape);
// The tensor as f32 of this shape.
Result<HostArray> decode(const MappingRules::Encode& encode, const TensorShape& shape, std::span<const HostArray> parts);

}  // namespace modelc

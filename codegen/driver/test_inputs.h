// The numbers of `input name = …` in a test, and the files in which they go to whatever computes with them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/driver/pipeline.h"
#include "frontend/graph/eval/evaluator.h"
#include "frontend/syntax/ast.h"
#include "runtime/base/result.h"

namespace modelc::driver {

using Numbers = std::vector<std::pair<std::string, graph::eval::Array>>;       // by name, in the order of the text

// The items' values in f32; none when one is wrong (in the sink).
std::optional<Numbers> numbers_of(Session& s, const sema::ConfigInput* config, const std::vector<const ast::InputTestItem*>& items);

// The numbers as the functions of the module's root take them, by name: whole numbers within their bound for an index,
// 0 and 1 for a bool, of the rank and the sizes that are declared; `[tokens, …]` is given as [seq, …] or [batch, seq, …].
// Errors: a name that no function takes, with the nearest; numbers that do not fit.
Result<Numbers> fitted(const Numbers& given, const graph::Module& module);

// A .safetensors at `path` with these tensors and, where `with` names a file, those of that too; a name that both have is
// an error.
Status write_numbers(const std::string& path, const Numbers& numbers, const std::string& with = "");

}  // namespace modelc::driver

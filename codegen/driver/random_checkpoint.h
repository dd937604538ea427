// A checkpoint of random weights for a model: for `checkpoint random SEED` in tests and `bench --checkpoint random`.
#pragma once

#include <cstdint>
#include <string>

#include "frontend/graph/graph.h"
#include "runtime/base/result.h"

namespace modelc::driver {

// Writes FOLDER/model.safetensors, f32: matrices and tables normal with deviation 1/sqrt(columns), vectors 1 ± 0.3. A weight that
// is the alias of another is left out, as are those with a default.
Status write_random_checkpoint(const graph::Module& module, std::uint64_t seed, const std::string& folder);

}  // namespace modelc::driver

// A checkpoint of random weights for a model: for `checkpoint random SEED` in tests, `bench --checkpoint random` and
// `convert FILE.model random OUT`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "frontend/graph/graph.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/checkpoint/index.h"

namespace modelc::driver {

// Writes FOLDER/model.safetensors, f32: matrices and tables normal with deviation 1/sqrt(columns), vectors 1 ± 0.3. A weight that
// is the alias of another is left out, as are those with a default. The same seed gives the same values on every machine with the
// same log and cos. `stopped` is asked between tensors: true ends it with an error of the kind "interrupted".
Status write_random_checkpoint(const graph::Module& module, std::uint64_t seed, const std::string& folder,
                               const std::function<bool()>& stopped = {});

// The same with `config` as FOLDER/config.json beside them, opened.
Result<std::shared_ptr<const CheckpointIndex>> make_random_checkpoint(const graph::Module& module, const Json& config, std::uint64_t seed,
                                                                      const std::string& folder, const std::function<bool()>& stopped = {});

}  // namespace modelc::driver

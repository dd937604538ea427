// A line of a model's `quantize` block, for whoever writes a checkpoint.
#pragma once

#include <string>

#include "runtime/abi/encoding.h"

namespace modelc {

// The encoding of the weights that match (or lie below a module that does). Later lines win.
struct QuantizeRule {
  std::string pattern;                                     // of tensor_pattern.h
  Encoding encoding = Encoding::f32;
  bool never_below = false;                                // no encoding with fewer bits an element than this one
  bool or_file = false;                                    // a weight that the file keeps packed stays as it is
  std::string where = {};                                  // "llama.model:135:5"
};

}  // namespace modelc

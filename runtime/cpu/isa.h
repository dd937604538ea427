// Which instruction sets this machine and this build have, and the kernels for one of them.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cpu/kernels.h"

namespace modelc::cpu {

// The kernels that run here, the plainest first; at least "portable".
std::vector<const Kernels*> available_kernels();
// Those called `isa`, the best for "". Errors: a name that nobody knows ("isa-unknown"), one that this machine or this
// build lacks ("isa-missing"); both say what there is.
Result<const Kernels*> choose_kernels(const std::string& isa);

}  // namespace modelc::cpu

// Which instruction sets this machine and this build have, and the kernels for one of them.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cpu/kernels.h"

namespace modelc::cpu {

// The kernels that run here, the plainest first; at least "portable".
std::vector<const Kernels*> available_kernels();
// What the processor and the system have beyond those sets. AMX: the system has allowed this process its tiles, which asking does.
struct Extensions {
  bool avx512vnni = false, avx512fp16 = false, amx_bf16 = false, amx_int8 = false;
};
const Extensions& extensions();

// Those called `isa`, the best for "". Errors: a name that nobody knows ("isa-unknown"), one that this machine or this
// build lacks ("isa-missing"); both say what there is.
Result<const Kernels*> choose_kernels(const std::string& isa);

}  // namespace modelc::cpu

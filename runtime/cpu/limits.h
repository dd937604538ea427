// The loops that measure what this machine can do at most. The same rules as for kernels (kernels.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace modelc::cpu {

// Compiled once for each instruction set, like Kernels; what a call gives keeps the compiler from leaving the work out.
struct LimitKernels {
  const char* isa;
  float (*read)(const std::byte* data, std::int64_t size, int streams);      // 1 or 4 streams
  float (*multiply_adds)(std::int64_t rounds);
  std::int64_t operations_of_a_round;
};
extern const LimitKernels limit_kernels_portable;
#if defined(__x86_64__)
extern const LimitKernels limit_kernels_avx2;
extern const LimitKernels limit_kernels_avx512;
extern const LimitKernels limit_kernels_avx512vnni;        // in f32 as avx512: measured once
#endif

}  // namespace modelc::cpu

// The loops that measure what this machine can do at most. The same rules as for kernels (kernels.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/cpu/isa.h"

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

// Arithmetic of narrow numbers, which some processors have; `needs` says which.
struct NarrowLimitKernel {
  const char* what;                                        // "int8 multiply-adds, avx512vnni"
  bool Extensions::*needs;
  float (*multiply_adds)(std::int64_t rounds);
  std::int64_t operations_of_a_round;
};
std::span<const NarrowLimitKernel> narrow_limit_kernels();

}  // namespace modelc::cpu

// What a machine can do at most, measured: the yardstick that `bench` lays beside a model's figures.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace modelc {

struct CpuOptions;                                         // runtime/device/device.h

// What so many threads reach together.
struct LimitsOfThreads {
  int threads = 0;
  double read_bytes_per_second = 0;                        // a streaming read of the given memory, all of it once
  // Multiplications and additions a second in registers, f32, by instruction set: {"avx512", 3.4e11}.
  std::vector<std::pair<std::string, double>> flops;
  // The same of narrower numbers, where the processor has instructions for them: {"int8 multiply-adds, amx", 5.2e12}.
  std::vector<std::pair<std::string, double>> narrow;
};

struct DeviceLimits {
  std::string isa;                                         // that the device computes with
  std::int64_t bytes_read = 0;                             // of the streaming read, in one pass
  std::vector<LimitsOfThreads> by_threads;                 // ascending; the last is the device's own number
};

// Of the CPU, by the threads and the instruction set that a device of these options has: reads `data`, tensors in host
// memory, for 1, 2, 4, … threads and all of them; some tenths of a second for each. Nothing where the options are wrong.
DeviceLimits measure_cpu_limits(std::span<const Tensor> data, const CpuOptions& options);   // runtime/cpu

}  // namespace modelc

// What comes with a model's custom operations: shaders and how one is run, and C++ for the CPU. Where a device runs neither, generated
// code computes the operation's reference formula by the other kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/tensor/tensor.h"

namespace modelc {

struct CustomShader {
  const char* op;                                          // the operation: "xielu"
  const char* code;                                        // SPIR-V, little endian; aligned to nothing
  std::size_t bytes;
  const char* needs;                                       // features of a device, "float16,storage16"; "" for none
};

// One way to run an operation: workgroups of local_size invocations along one to three axes.
struct CustomDispatch {
  const CustomShader& shader;
  std::int64_t local_size;
  std::int64_t x, y = 1, z = 1;
};

// A tensor as C++ of an operation sees it: contiguous, the last axis innermost.
template <class T> struct View {
  T* data;
  Shape shape;
  std::int64_t count() const { return shape.count(); }
  T& operator[](std::int64_t i) const { return data[i]; }
};
struct OpTensor {
  void* data;
  Shape shape;
  template <class T> View<T> as() const { return {static_cast<T*>(data), shape}; }
};

// Rows [begin, end) of the first result, a row being its last axis, are to be computed by this call; other threads compute others.
struct OpContext {
  std::int64_t begin, end;
};
// The function of an operation: inputs, then results.
struct HostKernel {
  const char* op;
  void (*run)(OpContext& at, std::span<const OpTensor> tensors);
};

}  // namespace modelc

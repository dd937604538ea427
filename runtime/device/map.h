// Map kernels: one fused elementwise expression, written by the compiler into the generated code (and, for a GPU, into
// a shader of its own). The runtime supplies the loop, the broadcasting and the split over threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/tensor/tensor.h"

namespace modelc {

struct MapArgs {
  static constexpr int max_inputs = 12;
  struct Input {
    const void* data = nullptr;
    DType dtype = DType::f32;                              // f32, i32 or bool; seen as the lambda's parameter is
    std::array<std::int64_t, Shape::max_rank> strides{};   // in elements, one per axis of `shape`; 0 = broadcast
  };
  Shape shape;                                             // of the result; leading axes first
  void* out = nullptr;                                     // contiguous
  DType out_dtype = DType::f32;                            // f32, i32 or bool
  int inputs = 0;
  std::array<Input, max_inputs> input{};
};

// SPIR-V of a compute shader, little endian; none where the model was built for the CPU alone.
struct MapShader {
  const char* code = nullptr;                              // aligned to nothing
  std::size_t bytes = 0;
};

// Computes rows [begin, end) of the result, a row being the last axis (a result of rank 0 is one row of one element).
struct MapKernel {
  const char* name;                                        // unique in a model: "rope_cos"
  void (*cpu)(const MapArgs& args, std::int64_t begin, std::int64_t end);
  MapShader shader = {};                                   // the same for a GPU
};

namespace detail {
template <class T = float> T load(const MapArgs::Input& in, std::int64_t at) {
  switch (in.dtype) {
    case DType::i32: return static_cast<T>(static_cast<const std::int32_t*>(in.data)[at]);
    case DType::boolean: return static_cast<T>(static_cast<const std::uint8_t*>(in.data)[at] ? 1 : 0);
    default: return static_cast<T>(static_cast<const float*>(in.data)[at]);
  }
}
}  // namespace detail

// The loop of map kernels: f(in0, in1, …) → float, inlined per kernel by the host compiler, which turns the loop over a
// block of elements into vector code where f has no branches and no calls (runtime/device/math.h). Whole numbers and
// bools are seen as floats; a bool result is whether f is not 0.
template <int N, class F> void map_rows(const MapArgs& a, std::int64_t begin, std::int64_t end, F f);
// The same where whole numbers must stay exact: parameters of the types In, each float or std::int32_t, and a result of
// one of them.
template <class... In, class F> void map_typed(const MapArgs& a, std::int64_t begin, std::int64_t end, F f);

}  // namespace modelc

#include "runtime/device/map_rows.h"                       // the definition

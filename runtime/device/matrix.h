// The weight side of a product, as it lies in the checkpoint: blocks of rows, each with an encoding of its own. A
// packed product (q, k and v on one input) is one Matrix of three blocks; nothing is copied to pack it.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/abi/dtype.h"
#include "runtime/tensor/tensor.h"

namespace modelc {

struct RowBlock {
  DType encoding = DType::f32;                             // f32, f16 or bf16; block encodings join this
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;                              // distance between rows
  Tensor data;                                             // [rows, columns] as stored; may be unaligned on the host
  Tensor bias;                                             // [rows] f32, or absent
};

struct Matrix {
  std::int64_t columns = 0;                                // k: the length of a row
  std::vector<RowBlock> blocks;                            // in the order of the product's results
};

}  // namespace modelc

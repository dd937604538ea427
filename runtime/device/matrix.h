// The weight side of a product, as it lies in the checkpoint: blocks of rows, each with an encoding of its own. A
// packed product (q, k and v on one input) is one Matrix of three results; nothing is copied to pack it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/abi/encoding.h"
#include "runtime/tensor/tensor.h"

namespace modelc {

struct RowBlock {
  Encoding encoding = Encoding::f32;
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;                              // distance between rows
  Tensor data;                                             // u8, the rows as stored; may be unaligned on the host
  Tensor bias = {};                                        // [rows] f32, or absent
  // Where its rows stand: in which of the product's results, from which column on. A weight that a file keeps in several
  // tensors is several blocks of one result.
  int result = 0;
  std::int64_t first = 0;
};

// What a device made of a matrix for itself when it was bound (Device::prepare): a layout of its own.
class Prepared {
 public:
  virtual ~Prepared() = default;
};

// exact: activations, sums and caches in f32, whatever a policy says. fast: a product with quantised weights takes its
// activations rounded to 13 bits, once for all that read them, and keys and values are kept in f16,
// or in what the model's policy says of caches.
enum class Mode : std::uint8_t { exact, fast };

// What a matrix is used for.
enum class MatrixUse : std::uint8_t { product, rows };

struct Matrix {
  std::int64_t columns = 0;                                // k: the length of a row
  std::vector<RowBlock> blocks;                            // result after result, in order of their columns
  std::shared_ptr<const Prepared> prepared = {};           // or none: `blocks` are used as they are
  Mode mode = Mode::exact;                                 // of products

  int results() const { return blocks.empty() ? 0 : blocks.back().result + 1; }
  std::int64_t rows() const {
    std::int64_t n = 0;
    for (const RowBlock& b : blocks) n += b.rows;
    return n;
  }
};

}  // namespace modelc

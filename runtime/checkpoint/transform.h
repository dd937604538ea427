// How the tensors of a file become a model's weights, and weights the tensors of a file: a closed list of moves, each
// with an inverse. One plan serves the check (shapes), the load (file → model) and the writer (model → file).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/encoding.h"
#include "runtime/base/result.h"

namespace modelc {

enum class TransformKind : std::uint8_t {
  transpose,               // (a, b): two axes change places
  reshape,                 // ([file shape]): the same elements in the same order
  stack,                   // (index): several become one with a new axis 0
  split,                   // (axis): one becomes several, by their sizes
  concat,                  // (axis, [sizes]): several become one
  unzip,                   // (axis): one becomes several; element j goes to target j mod count
  deinterleave_rope_rows,  // (heads[, rows]): in the first `rows` rows of each head, row (j, i), j < 2, was row (i, j)
  offset,                  // (v): v is added, in f32
  log_negated,             // (): log(−x), in f32; every x is below 0
  cast,                    // (dtype)
};
std::string_view name(TransformKind kind);
// Whether it computes other numbers, where the rest moves those that are there.
inline bool computes(TransformKind kind) { return kind == TransformKind::offset || kind == TransformKind::log_negated; }

struct Transform {
  TransformKind kind = TransformKind::transpose;
  std::int64_t a = 0, b = 0;                               // axes; heads and rows (0: all of a head's)
  std::vector<std::int64_t> sizes = {};                    // of reshape and concat
  std::string index = {};                                  // of stack
  double value = 0;                                        // of offset
  DType dtype = DType::f32;                                // of cast
};
// "transpose(1, 2), unzip(1)": the text that rules hold.
Result<std::vector<Transform>> parse_transforms(std::string_view text);
std::string text(const Transform& t);

using TensorShape = std::vector<std::int64_t>;

// Transforms with the shapes between them: shapes[k] goes into step k, shapes.back() are the model's.
struct TransformPlan {
  std::vector<Transform> steps;
  std::vector<std::vector<TensorShape>> shapes;
  const std::vector<TensorShape>& file() const { return shapes.front(); }
  const std::vector<TensorShape>& model() const { return shapes.back(); }
};
// From the weights' shapes backwards to the tensors' that they must come from. An Error says which step does not fit.
Result<TransformPlan> plan_transforms(std::vector<Transform> steps, std::vector<TensorShape> model);

// A tensor in memory, in row order.
struct HostArray {
  Encoding encoding = Encoding::f32;
  TensorShape shape;
  std::vector<std::byte> bytes;
};
// Tensors with plan.file()'s shapes to the weights, and back. Blocks of a packed encoding move as wholes. All but
// `offset` and `log_negated` (which give f32) and a narrowing `cast` are exact.
Result<std::vector<HostArray>> to_model(const TransformPlan& plan, std::vector<HostArray> file);
Result<std::vector<HostArray>> to_file(const TransformPlan& plan, std::vector<HostArray> model);
// The encoding that the results of a plan (null: none) have, of arrays that have this one.
Encoding encoding_after(const TransformPlan* plan, Encoding of);
// The same elements in another plain float type, rounded to nearest even.
Result<HostArray> cast(const HostArray& from, DType to);

}  // namespace modelc

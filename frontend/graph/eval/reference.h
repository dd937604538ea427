// What each operation means: one plain function an operation, in reference/. They are the oracle for every kernel, so
// they are written to be read: loops over indices, f32 values, sums and the inside of one operation in f64, every
// result rounded once to its dtype.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "frontend/graph/eval/array.h"
#include "frontend/graph/eval/batch.h"
#include "frontend/graph/ops.h"
#include "runtime/base/result.h"

namespace modelc::graph::eval {

// What a state remembers of every sequence, by slot. For each position so far a KVCache has k [heads, dim] and
// v [heads, value_dim], a LatentCache k [rank] and v [rope]. A
// CrossCache has its n rows of both once they are set. A Ring has in k its last n rows, the oldest first, and a
// Recurrent its shape; both are zeros where a sequence begins, and go on only where they stopped.
struct State {
  StateKind kind = StateKind::kv_cache;
  std::vector<std::size_t> sizes;                // as declared
  struct Slot {
    std::vector<float> k, v;
    std::int64_t seen = 0;                       // ring, recurrent: tokens of the sequence
  };
  std::map<std::int64_t, Slot> slots;

  // Of caches: elements of one position.
  std::size_t k_row() const {
    if (kind == StateKind::cross_cache) return sizes[1] * sizes[2];
    return kind == StateKind::latent_cache ? sizes[0] : sizes[0] * sizes[1];
  }
  std::size_t v_row() const {
    if (kind == StateKind::cross_cache) return sizes[1] * sizes[2];
    return kind == StateKind::latent_cache ? sizes[1] : sizes[0] * sizes[2];
  }
};

// One operation to be carried out. Shapes and dtypes have been checked by the shape rules; only data may be wrong.
struct Call {
  const Op& op;
  std::vector<const Array*> operands;            // null where absent, and for a Batch
  std::vector<Array> results;                    // zeros of the right dtype and shape, to be filled
  const Batch* batch = nullptr;                  // the operand that is one
  const Sequences* sequences = nullptr;          // likewise
  State* state = nullptr;                        // of state operations
  // Op::body on these arguments, which are of its types: the one result.
  std::function<Result<Array>(std::vector<Array>)> body = {};
  DimTable& dims;
  const std::vector<std::int64_t>& axis_sizes;   // for attributes that are dims

  bool has(std::size_t i) const { return i < operands.size() && operands[i] != nullptr; }
  const Array& in(std::size_t i) const { return *operands[i]; }
  Array& out(std::size_t i = 0) { return results[i]; }
  // A `dim` attribute with this call's sizes; `absent` where it is not given, none where its size is not known.
  std::optional<std::int64_t> dim(std::string_view attr, std::int64_t absent) const;
};

using Reference = Status (*)(Call& call);
// Null for structure, and for what is not carried out.
Reference reference_of(OpKind kind);

namespace reference {
// elementwise.cpp
Status unary(Call& c);
Status binary(Call& c);
Status where(Call& c);
// The number that an elementwise operation of one or two operands gives; comparisons and logic give 0 or 1.
double apply(OpKind kind, double a, double b);
// product.cpp
Status linear(Call& c);
Status matmul(Call& c);
Status outer(Call& c);
Status einsum(Call& c);
// index.cpp
Status take(Call& c);
Status put(Call& c);
Status one_hot(Call& c);
Status top_k(Call& c);
Status take_along(Call& c);
// attention.cpp
Status attend(Call& c);
Status append(Call& c);
Status attend_latent(Call& c);
Status cross_set(Call& c);
Status rope(Call& c);
// recurrence.cpp
Status causal_conv1d(Call& c);
Status ssd_scan(Call& c);
Status gated_delta(Call& c);
// norm.cpp
Status rms_norm(Call& c);
Status layer_norm(Call& c);
Status l2_normalize(Call& c);
// reduce.cpp
Status softmax(Call& c);
Status reduce(Call& c);                          // sum, mean, max, min
Status argmax(Call& c);
Status cumsum(Call& c);
// layout.cpp
Status reshape(Call& c);
Status cast(Call& c);
Status slice(Call& c);
Status concat(Call& c);
Status stack(Call& c);
Status split(Call& c);
Status transpose(Call& c);
Status repeat_axis(Call& c);
Status expand(Call& c);
Status pad(Call& c);
// conv.cpp
Status conv(Call& c);                            // conv1d, conv2d, conv3d
Status conv_transpose1d(Call& c);
// make.cpp
Status arange(Call& c);
Status linspace(Call& c);
Status tensor_literal(Call& c);
// packed.cpp
Status nibbles(Call& c);
Status e2m1(Call& c);
// experts.cpp
Status route(Call& c);
Status moe(Call& c);
}  // namespace reference

}  // namespace modelc::graph::eval

// How a device holds a model's weights once they are loaded: what a load does (Loader), and what can be counted before there is one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/checkpoint/mapping.h"
#include "runtime/device/device.h"
#include "runtime/device/module.h"

namespace modelc {

// Of a matrix or a table.
constexpr MatrixUse use_of(WeightRole role) { return role == WeightRole::table ? MatrixUse::rows : MatrixUse::product; }

// Whether its tensors lie on the device as they lie in the file, and the weight is rows of them: the device reads their encodings.
// Weights of the same tensors then share them. A vector never is.
bool stays_as_stored(const CheckpointIndex& index, const WeightSource& source, WeightRole role, const Device& device);
// The encoding in which a weight is made that does not stay: as it is read where the device reads that, else f32.
Encoding made_as(const CheckpointIndex& index, const WeightSource& source, WeightRole role, const Device& device);

// A piece of a device's memory, and the weights that are in it.
struct HeldPiece {
  std::int64_t bytes = 0;
  std::vector<std::size_t> weights;                        // indices, ascending
};
// All weights on one device. `mapping` is of these weights and without problems; `roles` are theirs.
std::vector<HeldPiece> held_pieces(const CheckpointIndex& index, const Mapping& mapping, std::span<const MappingWeight> weights,
                                   std::span<const WeightRole> roles, const Device& device);

}  // namespace modelc

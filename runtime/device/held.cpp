#include "runtime/device/held.h"

#include <algorithm>
#include <cassert>
#include <unordered_map>

#include "runtime/checkpoint/weight_data.h"

namespace modelc {

bool stays_as_stored(const CheckpointIndex& index, const WeightSource& source, WeightRole role, const Device& device) {
  if (role == WeightRole::vector || source.kind == WeightSource::Kind::default_value || !source.as_stored()) return false;
  return std::all_of(source.parts.begin(), source.parts.end(),
                     [&](const WeightPart& p) { return device.reads(index.tensors()[p.tensor].encoding, use_of(role)); });
}

Encoding made_as(const CheckpointIndex& index, const WeightSource& source, WeightRole role, const Device& device) {
  if (role == WeightRole::vector) return Encoding::f32;
  const Encoding read = read_encoding(index, source);
  return device.reads(read, use_of(role)) ? read : Encoding::f32;
}

std::vector<HeldPiece> held_pieces(const CheckpointIndex& index, const Mapping& mapping, std::span<const MappingWeight> weights,
                                   std::span<const WeightRole> roles, const Device& device) {
  assert(mapping.problems.empty() && mapping.sources.size() == weights.size() && roles.size() == weights.size());
  std::vector<HeldPiece> pieces;
  std::unordered_map<std::size_t, std::size_t> placed;     // the piece of a tensor
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const WeightSource& source = mapping.sources[i];
    if (!stays_as_stored(index, source, roles[i], device)) {
      pieces.push_back({stored_bytes(made_as(index, source, roles[i], device), weights[i].shape).value_or(0), {i}});
      continue;
    }
    for (const WeightPart& p : source.parts) {
      const auto [known, fresh] = placed.emplace(p.tensor, pieces.size());
      if (fresh) pieces.push_back({static_cast<std::int64_t>(index.tensors()[p.tensor].size), {}});
      std::vector<std::size_t>& of = pieces[known->second].weights;
      if (of.empty() || of.back() != i) of.push_back(i);
    }
  }
  return pieces;
}

}  // namespace modelc

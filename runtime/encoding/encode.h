// f32 to stored elements: rounding to the nearest for plain types, quantisers for packed blocks.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/abi/encoding.h"

namespace modelc {

// One block of `block_elements(encoding)` elements into `block_bytes(encoding)` bytes.
using BlockEncoder = void (*)(const float* from, std::byte* block);
// Null for what cannot be written: integers, and the IQ types but IQ4_NL and IQ4_XS, whose quantisers need a record of activations.
BlockEncoder block_encoder(Encoding encoding);

// Whole blocks: `from.size()` is a multiple of block_elements(encoding). Elements must be finite where the encoding is
// packed. False, and nothing is written, where block_encoder gives null.
bool encode(Encoding encoding, std::span<const float> from, std::byte* to);

}  // namespace modelc

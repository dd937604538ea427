// Stored elements of any floating encoding to f32: the definition of what each block means. Kernels that compute on
// blocks are tested against it.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/abi/encoding.h"

namespace modelc {

// One block of `block_elements(encoding)` elements, at any address.
using BlockDecoder = void (*)(const std::byte* block, float* to);
// Null for integers, bool and c64. Plain floats are blocks of one.
BlockDecoder block_decoder(Encoding encoding);

// Whole blocks: `to.size()` is a multiple of block_elements(encoding) and `from` holds as many. False, and nothing is
// written, where block_decoder gives null.
bool decode(Encoding encoding, const std::byte* from, std::span<float> to);

// Whether an encoding stands for real numbers that decode() gives.
inline bool is_float(Encoding encoding) { return block_decoder(encoding) != nullptr; }

}  // namespace modelc

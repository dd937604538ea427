// The format's numbers of tensor types.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/abi/encoding.h"

namespace modelc {

// Nothing for a number that the format does not have, or has no more.
std::optional<Encoding> encoding_from_gguf(std::uint32_t type);
// The number; nothing for what the format does not hold.
std::optional<std::uint32_t> gguf_type(Encoding encoding);
// A type that was taken out of the format ("Q4_2"); empty for all others.
std::string_view removed_gguf_type(std::uint32_t type);
// A type that the format has and nothing here decodes ("Q1_0"); empty for all others.
std::string_view undecoded_gguf_type(std::uint32_t type);
// general.file_type of a file whose matrices are mostly of this encoding.
std::optional<std::uint32_t> gguf_file_type(Encoding encoding);

}  // namespace modelc

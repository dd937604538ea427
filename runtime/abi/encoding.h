// How the elements of a stored tensor are encoded: one of the plain element types, or a type that only files hold
// (packed blocks with their scales, 8-bit exponents). The header readers name a tensor's encoding by it; no kernel is
// implied.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/abi/dtype.h"

namespace modelc {

enum class Encoding : std::uint8_t {
  // The plain ones, in the order of DType.
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
  // Whole elements that no DType computes in: a power of two (a scale), a pair of f32.
  f8_e8m0,
  c64,
  // Packed: `block_elements` elements take `block_bytes` bytes. First those of safetensors, then GGUF's block types.
  f4_e2m1,
  f6_e2m3,
  f6_e3m2,
  mxfp4,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q8_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  q8_k,
  iq1_s,
  iq1_m,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  iq4_nl,
  iq4_xs,
  tq1_0,
  tq2_0,
  nvfp4,
};

namespace detail {
struct EncodingRow {
  std::string_view name;
  std::uint16_t block_elements;
  std::uint16_t block_bytes;
};
inline constexpr EncodingRow encoding_rows[] = {
    {"f64", 1, 8},
    {"f32", 1, 4},
    {"f16", 1, 2},
    {"bf16", 1, 2},
    {"f8_e4m3", 1, 1},
    {"f8_e5m2", 1, 1},
    {"i64", 1, 8},
    {"i32", 1, 4},
    {"i16", 1, 2},
    {"i8", 1, 1},
    {"u64", 1, 8},
    {"u32", 1, 4},
    {"u16", 1, 2},
    {"u8", 1, 1},
    {"bool", 1, 1},
    {"f8_e8m0", 1, 1},
    {"c64", 1, 8},
    {"f4_e2m1", 2, 1},
    {"f6_e2m3", 4, 3},
    {"f6_e3m2", 4, 3},
    {"mxfp4", 32, 17},   // 16 bytes of nibbles, one e8m0 scale
    {"q4_0", 32, 18},    // f16 scale, nibbles
    {"q4_1", 32, 20},    // f16 scale and minimum, nibbles
    {"q5_0", 32, 22},    // f16 scale, 32 high bits, nibbles
    {"q5_1", 32, 24},    // f16 scale and minimum, 32 high bits, nibbles
    {"q8_0", 32, 34},    // f16 scale, bytes
    {"q8_1", 32, 36},    // f16 scale and sum, bytes
    {"q2_k", 256, 84},   // 16 scales and minima of 4 bits, 2-bit values, two f16
    {"q3_k", 256, 110},  // 32 bytes of high bits, 2-bit values, 12 bytes of scales, f16
    {"q4_k", 256, 144},  // two f16, 12 bytes of scales and minima, nibbles
    {"q5_k", 256, 176},  // as q4_k, and 32 bytes of high bits
    {"q6_k", 256, 210},  // nibbles, 2-bit high parts, 16 scales of 8 bits, f16
    {"q8_k", 256, 292},  // f32 scale, bytes, 16 sums
    // The next seven hold indices into tables of directions, signs apart.
    {"iq1_s", 256, 50},
    {"iq1_m", 256, 56},
    {"iq2_xxs", 256, 66},
    {"iq2_xs", 256, 74},
    {"iq2_s", 256, 82},
    {"iq3_xxs", 256, 98},
    {"iq3_s", 256, 110},
    {"iq4_nl", 32, 18},   // f16 scale, nibbles that index a table of 16
    {"iq4_xs", 256, 136},  // the same with 8 scales of 6 bits
    {"tq1_0", 256, 54},   // f16 scale, five ternary digits a byte
    {"tq2_0", 256, 66},   // f16 scale, four ternary digits a byte
    {"nvfp4", 64, 36},    // 4 scales of 8 bits (e4m3 without sign), nibbles as mxfp4
};
}  // namespace detail

inline constexpr int encoding_count = static_cast<int>(std::size(detail::encoding_rows));
static_assert(encoding_count == static_cast<int>(Encoding::nvfp4) + 1);

// The language's spelling: "bf16", "q8_0".
constexpr std::string_view name(Encoding e) { return detail::encoding_rows[static_cast<int>(e)].name; }
// Elements that one block holds; 1 for a plain type.
constexpr int block_elements(Encoding e) { return detail::encoding_rows[static_cast<int>(e)].block_elements; }
// Bytes of one block.
constexpr int block_bytes(Encoding e) { return detail::encoding_rows[static_cast<int>(e)].block_bytes; }

constexpr std::optional<Encoding> encoding_from_name(std::string_view s) {
  for (int i = 0; i < encoding_count; ++i)
    if (detail::encoding_rows[i].name == s) return static_cast<Encoding>(i);
  return std::nullopt;
}
constexpr Encoding encoding_of(DType t) { return static_cast<Encoding>(t); }
// The element type, or nothing for what only files hold.
constexpr std::optional<DType> dtype_of(Encoding e) {
  if (e > Encoding::boolean) return std::nullopt;
  return static_cast<DType>(e);
}

// Product of the extents, or nothing where one is negative or the product of those that are not 0 passes 2^63 - 1 (so
// that strides can be computed of an empty tensor, too). Rank 0 has one element.
constexpr std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) {
  std::int64_t n = 1;
  bool empty = false;
  for (std::int64_t d : shape) {
    if (d < 0) return std::nullopt;
    if (d == 0) {
      empty = true;
      continue;
    }
    if (n > std::numeric_limits<std::int64_t>::max() / d) return std::nullopt;
    n *= d;
  }
  return empty ? 0 : n;
}

// Elements smaller than a byte that are packed from the first to the last without regard to rows, as safetensors does;
// blocks of all other encodings lie along the last dimension.
constexpr bool packs_across_rows(Encoding e) { return e == Encoding::f4_e2m1 || e == Encoding::f6_e2m3 || e == Encoding::f6_e3m2; }

// Bytes that a tensor of this shape takes, or nothing where the product passes 2^63 - 1 or its rows (where elements are
// packed across rows, all of it) are not whole blocks.
constexpr std::optional<std::int64_t> stored_bytes(Encoding e, std::span<const std::int64_t> shape) {
  std::optional<std::int64_t> n = element_count(shape);
  if (!n) return std::nullopt;
  const std::int64_t per = block_elements(e);
  const std::int64_t row = packs_across_rows(e) ? *n : shape.empty() ? 1 : shape.back();
  if (row % per != 0) return std::nullopt;
  const std::int64_t blocks = *n / per;
  if (blocks > std::numeric_limits<std::int64_t>::max() / block_bytes(e)) return std::nullopt;
  return blocks * block_bytes(e);
}

}  // namespace modelc

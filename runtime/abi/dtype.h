// The element types that compiler and runtime share, with the spelling of each world.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace modelc {

enum class DType : std::uint8_t {
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
};

// Bits of one element; all of these are whole bytes.
constexpr int bits(DType t) {
  switch (t) {
    case DType::f64:
    case DType::i64:
    case DType::u64: return 64;
    case DType::f32:
    case DType::i32:
    case DType::u32: return 32;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16: return 16;
    default: return 8;
  }
}
constexpr int bytes(DType t) { return bits(t) / 8; }
constexpr bool is_float(DType t) { return t <= DType::f8_e5m2; }

// The language's spelling: "f32", "bf16", "bool".
constexpr std::string_view name(DType t) {
  constexpr std::string_view names[] = {"f64", "f32", "f16", "bf16", "f8_e4m3", "f8_e5m2", "i64", "i32",
                                        "i16", "i8",  "u64", "u32",  "u16",     "u8",      "bool"};
  return names[static_cast<int>(t)];
}
constexpr std::optional<DType> dtype_from_name(std::string_view s) {
  for (int i = 0; i <= static_cast<int>(DType::boolean); ++i)
    if (name(static_cast<DType>(i)) == s) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace modelc

#include "runtime/encoding/convert.h"

namespace modelc {
namespace {

// Compilers make one load of these on a little-endian machine.
template <class T> T load(const std::byte* p) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value = static_cast<T>(value | static_cast<T>(std::to_integer<T>(p[i]) << 8 * i));
  return value;
}

}  // namespace

std::uint16_t load_u16(const std::byte* p) { return load<std::uint16_t>(p); }
std::uint32_t load_u32(const std::byte* p) { return load<std::uint32_t>(p); }
std::uint64_t load_u64(const std::byte* p) { return load<std::uint64_t>(p); }

std::uint16_t f16_from_f32(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const auto with_sign = [&](std::uint32_t m) { return static_cast<std::uint16_t>(sign | m); };
  if (magnitude > 0x7f800000u) return with_sign(0x7e00u | (magnitude >> 13 & 0x3ffu));  // NaN, made quiet
  if (magnitude >= 0x477ff000u) return with_sign(0x7c00u);  // from 65520 on the nearest is infinity
  if (magnitude >= 0x38800000u) {                           // 2^-14 and above: normal
    const std::uint32_t m = magnitude - (112u << 23);
    return with_sign((m + 0xfffu + (m >> 13 & 1u)) >> 13);
  }
  // Subnormal: the fraction in units of 2^-24. Below half a unit, and at the tie of half a unit, it is zero.
  if (magnitude <= 0x33000000u) return with_sign(0);
  const std::uint32_t exponent = magnitude >> 23;
  const std::uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u;
  const std::uint32_t shift = 126 - exponent;  // 14 … 24
  const std::uint32_t half = 1u << (shift - 1);
  const std::uint32_t kept = fraction >> shift;
  const std::uint32_t rest = fraction & ((1u << shift) - 1);
  return with_sign(kept + (rest > half || (rest == half && (kept & 1u))));
}

bool convert_to_f32(DType from_type, const std::byte* from, std::span<float> to) {
  switch (from_type) {
    case DType::f64:
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(std::bit_cast<double>(load<std::uint64_t>(from + 8 * i)));
      return true;
    case DType::f32:
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::bit_cast<float>(load<std::uint32_t>(from + 4 * i));
      return true;
    case DType::f16:
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = f32_from_f16(load<std::uint16_t>(from + 2 * i));
      return true;
    case DType::bf16:
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = f32_from_bf16(load<std::uint16_t>(from + 2 * i));
      return true;
    default: return false;
  }
}

}  // namespace modelc

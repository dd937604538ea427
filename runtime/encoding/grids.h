// The directions that the IQ1, IQ2 and IQ3 types index: short vectors of magnitudes, signs apart.
#pragma once

#include <array>
#include <cstdint>

namespace modelc {

// Eight magnitudes (of -1, 0 and 1 for IQ1), or four, by index.
struct IqGrids {
  std::array<std::array<std::int8_t, 8>, 256> iq2_xxs;
  std::array<std::array<std::int8_t, 8>, 512> iq2_xs;
  std::array<std::array<std::int8_t, 8>, 1024> iq2_s;
  std::array<std::array<std::int8_t, 8>, 2048> iq1;
  std::array<std::array<std::int8_t, 4>, 256> iq3_xxs;
  std::array<std::array<std::int8_t, 4>, 512> iq3_s;
};
// Made at the first call.
const IqGrids& iq_grids();

// Eight signs from seven bits, a set bit for minus: the eighth makes their number even.
constexpr std::uint8_t even_signs(std::uint32_t seven) {
  seven &= 127u;
  std::uint32_t parity = seven ^ seven >> 4;
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return static_cast<std::uint8_t>(seven | (parity & 1u) << 7);
}

// The sixteen values of IQ4_NL and IQ4_XS, in units of the scale.
inline constexpr std::int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

}  // namespace modelc

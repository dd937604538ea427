// e^x that gives the same bits everywhere: the C library's differs between machines in the last bit, and one bit can
// change a drawn token. Only additions and multiplications; the folder is compiled without contraction to fused ones.
#pragma once

#include <bit>
#include <cstdint>

namespace modelc {

// For x <= 0; within 2 units in the last place; 0 below -708, where the result would leave the normal range. Without
// branches, so that a loop over many is done with vectors.
inline double exp_nonpositive(double exponent) {
  constexpr double least = -708;
  const double x = exponent < least ? least : exponent;
  // x = k ln 2 + r with |r| <= ln 2 / 2. The upper part of ln 2 has 21 trailing zero bits, so k times it is exact.
  constexpr double log2_e = 0x1.71547652b82fep+0, ln2_upper = 0x1.62e42fee00000p-1, ln2_lower = 0x1.a39ef35793c76p-33;
  const int k = static_cast<int>(x * log2_e - 0.5);
  const double r = (x - k * ln2_upper) - k * ln2_lower;
  // Taylor to the 13th power: the rest is below 0.3466^14 / 14! = 4e-18.
  constexpr double inverse_factorials[] = {
      1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
      1.0 / 720,        1.0 / 120,       1.0 / 24,       1.0 / 6,       0.5,          1.0};
  double sum = 0;
  for (const double c : inverse_factorials) sum = (sum + c) * r;
  const double scale = std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);  // 2^k, k >= -1022
  return exponent < least ? 0.0 : (1 + sum) * scale;
}

}  // namespace modelc

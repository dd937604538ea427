// Numbers packed into bytes, taken apart.
#include "frontend/graph/eval/reference.h"

namespace modelc::graph::eval::reference {

// [..., n] -> [..., 2n]: byte i is elements 2i (its low half) and 2i + 1.
Status nibbles(Call& c) {
  const std::vector<std::int64_t>& x = c.in(0).integers;
  for (std::size_t i = 0; i < x.size(); ++i) {
    c.out().integers[2 * i] = x[i] & 15;
    c.out().integers[2 * i + 1] = x[i] >> 4 & 15;
  }
  return {};
}

// A sign, two bits of exponent with bias 1, one of fraction: below exponent 1 the fraction is halves.
Status e2m1(Call& c) {
  for (std::size_t i = 0; i < c.out().reals.size(); ++i) {
    const std::int64_t code = c.in(0).integers[i], exponent = code >> 1 & 3, fraction = code & 1;
    const float size = exponent == 0 ? 0.5F * static_cast<float>(fraction)
                                     : (1 + 0.5F * static_cast<float>(fraction)) * static_cast<float>(1 << (exponent - 1));
    c.out().reals[i] = (code & 8) != 0 ? -size : size;
  }
  return {};
}

}  // namespace modelc::graph::eval::reference

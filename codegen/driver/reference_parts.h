// What the files of Reference share. Private to them.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "frontend/graph/eval/array.h"
#include "runtime/base/result.h"

namespace modelc::driver {

inline Error problem(const std::string& message) { return Error{"test", message, {}, {}}; }

inline double largest(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - b[i]);
    if (std::isnan(d) && !(std::isnan(a[i]) && std::isnan(b[i]))) return INFINITY;
    if (!std::isnan(d)) most = std::max(most, d);
  }
  return most;
}

inline std::vector<float> reals(const graph::eval::Array& a) {
  if (is_float(a.dtype)) return a.reals;
  return {a.integers.begin(), a.integers.end()};
}

// Rows of a padded file that count.
inline std::vector<float> kept_rows(const std::vector<float>& all, std::size_t rows, const std::vector<std::size_t>& kept) {
  const std::size_t width = rows > 0 ? all.size() / rows : 0;
  std::vector<float> out;
  for (std::size_t r : kept)
    out.insert(out.end(), all.begin() + static_cast<std::ptrdiff_t>(r * width), all.begin() + static_cast<std::ptrdiff_t>((r + 1) * width));
  return out;
}

}  // namespace modelc::driver

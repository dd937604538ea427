// Lines of `place` over the names of modules and weights: which line decides. The compiler counts with it what a load does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/place_rule.h"
#include "runtime/checkpoint/tensor_pattern.h"

namespace modelc {

// The line's pattern with its range, as it is written: "model.layers[0..16]".
std::string text_of(const PlaceRule& rule);

class PlaceLines {
 public:
  explicit PlaceLines(std::span<const PlaceRule> rules);

  // The first line that matches the name, or a module above it. The whole model's ("") is decided by a line of `**` alone.
  std::optional<std::size_t> decides(std::string_view name) const;
  // Of a line with a range: the element of its list that the name is, or lies below, whether the range holds it or not.
  std::optional<std::uint64_t> element(std::size_t line, std::string_view name) const;

 private:
  struct Line {
    TensorPattern pattern;
    bool range;
    std::int64_t first, end;
  };
  std::vector<Line> lines_;
};

}  // namespace modelc

// Which encoding a converted tensor gets.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/checkpoint/convert.h"
#include "runtime/checkpoint/tensor_pattern.h"

namespace modelc {

class EncodingChoice {
 public:
  explicit EncodingChoice(const ConvertOptions& options);
  struct Chosen {
    Encoding encoding = Encoding::f32;
    std::string because = {};                              // where it is not what was asked for: why
  };
  // Of a tensor of this shape that holds these weights, stored as `natural`.
  Chosen choose(Encoding natural, const TensorShape& shape, std::span<const MappingWeight* const> weights) const;

 private:
  struct Asked {
    std::optional<Encoding> encoding, floor;
    bool or_file = false;
    std::string floor_at;
  };
  Asked asked(const std::string& weight) const;
  bool holds(Encoding e) const;

  struct Line {
    TensorPattern pattern;
    const QuantizeRule* rule;
  };
  const ConvertOptions& options_;
  std::vector<Line> lines_;
};

}  // namespace modelc

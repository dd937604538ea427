// Sizes of ports as they stand in generated code: "[outputs, 64]", "[batch, 2 * frames, div(frames + 1, 2)]". Parsed once,
// when a model is loaded; evaluated, and solved for an axis, at each call. Used here, and by what feeds inputs of any size
// (generate/runs.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/abi/axes.h"

namespace modelc {

// An expression over the axes, in postfix order.
class PortDim {
 public:
  // `sum: ['-'] product (('+' | '-') product)*; product: factor ('*' factor)*; factor: number | axis | div(sum, number)`.
  // "axis" for a name that is no axis, or text that is none of this.
  static Result<PortDim> parse(std::string_view text, std::span<const AxisDesc> axes);

  std::optional<std::int64_t> number() const;              // known without axes
  std::optional<int> axis() const;                         // an axis alone
  // None on overflow.
  std::optional<std::int64_t> value(const StepSizes& sizes) const;
  std::uint32_t axes() const { return axes_; }             // bit i: axis i takes part
  const std::string& text() const { return text_; }

 private:
  friend class PortDimParser;
  struct Term {
    enum class Kind : std::uint8_t { number, axis, add, sub, mul, div } kind;
    std::int64_t n = 0;
  };
  std::vector<Term> terms_;
  std::uint32_t axes_ = 0;
  std::string text_;
};

// The size of `axis` for which `dim` is `wanted`, the other axes being bound. None when there is none in the axis's
// range, or more than one.
std::optional<std::int64_t> solve(const PortDim& dim, std::int64_t wanted, int axis, const AxisDesc& desc, StepSizes sizes);

// "[outputs, 64]"
Result<std::vector<PortDim>> parse_port_shape(std::string_view shape, std::span<const AxisDesc> axes);

}  // namespace modelc

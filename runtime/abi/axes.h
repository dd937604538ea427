// The run-time axes of a model: which there are, and how long each is in one call. Every model has the first four; its
// own follow in declared order.
#pragma once

#include <array>
#include <cstdint>

namespace modelc {

struct AxisDesc {
  const char* name;                                        // "frames"
  std::int64_t lo = 1;                                     // smallest size
  std::int64_t hi = 0;                                     // largest size; 0: memory decides
  std::int64_t by = 1;                                     // the size is a multiple of it
};

inline constexpr int tokens_axis = 0, outputs_axis = 1, batch_axis = 2, seq_axis = 3;
inline constexpr std::array<AxisDesc, 4> prelude_axes = {{{"tokens"}, {"outputs", 0}, {"batch"}, {"seq"}}};

struct StepSizes {
  static constexpr int max_axes = 32;
  std::array<std::int64_t, max_axes> size{};               // 0: not bound

  StepSizes() = default;
  StepSizes(std::int64_t tokens, std::int64_t outputs, std::int64_t batch) : size{tokens, outputs, batch} {}
  std::int64_t tokens() const { return size[tokens_axis]; }
  std::int64_t outputs() const { return size[outputs_axis]; }
  std::int64_t batch() const { return size[batch_axis]; }
  std::int64_t seq() const { return size[seq_axis]; }
  std::int64_t axis(int i) const { return size[static_cast<std::size_t>(i)]; }
};

}  // namespace modelc

// The shaders that were compiled into the runtime (shaders/, written by modelc_embed).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace modelc::vulkan {

// Features of a device that a variant cannot do without.
enum Needs : std::uint32_t {
  needs_subgroup = 1,                                      // sums over a subgroup, in compute shaders, all lanes there
  needs_int8 = 2,
  needs_int16 = 4,
  needs_float16 = 8,
  needs_storage16 = 16,
  needs_storage8 = 32,
  needs_float64 = 64,
  needs_int64 = 128,
  needs_lane_sums = 256,                                   // sums over whatever lanes a subgroup has; the next: shuffles
  needs_lane_shuffles = 512,
  needs_broadcast = 1024,                                  // needs_subgroup, and a lane tells all others its value; eight lanes or more
};

struct EmbeddedShader {
  const char* name;                                        // "matvec_q4_0_subgroup"
  std::size_t bytes;                                       // of SPIR-V
  std::uint32_t needs;
  const char* code;
};

std::span<const EmbeddedShader> embedded_shaders();        // sorted by family, not by name

}  // namespace modelc::vulkan

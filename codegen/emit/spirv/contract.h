// What a shader that comes with an operation is given when it runs, and whether its SPIR-V keeps to it: a driver that is handed
// another one reads what is not there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace modelc::emit {

struct ShaderContract {
  std::uint32_t tensors = 0;                     // storage buffers at bindings 0, 1, … of set 0: inputs, then results
  std::uint32_t sizes = 0;                       // of axes, 32 bits each: push constants, or one more buffer where these do not hold them
  std::uint32_t local_size = 0;                  // invocations of a workgroup; 0: not the same in each call
  std::vector<std::string> features;             // of a device, which it says it needs
  static constexpr std::uint32_t pushed = 32;    // sizes that push constants hold: 128 bytes, what every device has
};

// What a shader does beside its contract, a line each with the line of its text where one is known; none: it keeps to it.
// `words` are valid, with names.
std::vector<std::string> contract_faults(const std::vector<std::uint32_t>& words, const std::string& name, const std::string& text,
                                         const ShaderContract& contract);

}  // namespace modelc::emit

// The memory of this machine, as far as the process may use it.
#pragma once

#include <cstdint>
#include <string>

namespace modelc {

struct HostMemory {
  std::uint64_t total = 0;                                 // bytes of the machine, or what a control group leaves of them
  std::uint64_t available = 0;                             // of these, what nobody uses or what is given back when asked for
};

// What /proc/meminfo says, bounded by the process' control groups, its own and those above it (version 2, and the memory controller
// of version 1). Zeros where nothing is said. `root` stands before all paths: for tests.
HostMemory host_memory(const std::string& root = "");

}  // namespace modelc

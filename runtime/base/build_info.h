// What this runtime is: its version, and what it was compiled with.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace modelc {

extern const char* const runtime_version;                  // "0.1.0"

// Names and versions for people: {"compiler", "g++ 12.2.0"}, {"simdjson", "3.0.1"}, ….
std::vector<std::pair<std::string, std::string>> runtime_built_with();

}  // namespace modelc

#include "runtime/base/host_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include "runtime/base/strings.h"

namespace modelc {
namespace {

// The number behind `key` in a text of lines "key number" or "key: number kB".
std::optional<std::uint64_t> number_of(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key) || line.size() == key.size()) continue;
    std::string_view rest = std::string_view(line).substr(key.size());
    if (rest[0] != ' ' && rest[0] != ':') continue;        // a longer word
    rest = trim(rest.substr(1));
    const bool kilo = rest.ends_with(" kB");
    const auto n = parse_uint(kilo ? trim(rest.substr(0, rest.size() - 3)) : rest);
    if (n && (!kilo || *n <= UINT64_MAX / 1024)) return kilo ? *n * 1024 : *n;
  }
  return std::nullopt;
}

// The one number that a file holds; none where it says "max", or is not there.
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return parse_uint(trim(line));
}

// How a version of control groups names what is read here.
struct Names {
  const char *folder, *limit, *usage, *cached;
};
constexpr Names version_1 = {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"};
constexpr Names version_2 = {"/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"};

// The group at `path` and all above it. Within a container the path may be the host's, and only the uppermost is seen.
void bound(HostMemory& memory, const std::string& root, const Names& names, std::string path) {
  while (true) {
    while (path.ends_with('/')) path.pop_back();
    const std::string folder = root + names.folder + path;
    if (const auto limit = number_in(folder + names.limit)) {
      const std::uint64_t used = number_in(folder + names.usage).value_or(0);
      const std::uint64_t cached = std::min(used, number_of(folder + "/memory.stat", names.cached).value_or(0));
      memory.total = std::min(memory.total, *limit);
      memory.available = std::min(memory.available, *limit - std::min(*limit, used - cached));
    }
    if (path.empty()) return;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

}  // namespace

HostMemory host_memory(const std::string& root) {
  const std::string all = root + "/proc/meminfo";
  HostMemory memory;
  memory.total = number_of(all, "MemTotal").value_or(0);
  memory.available = number_of(all, "MemAvailable").value_or(0);
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {     // "0::/user.slice", "4:cpu,memory:/docker/1f"
    const auto parts = split(line, ':', 3);
    if (parts.size() < 3) continue;
    const auto controllers = split(parts[1], ',');
    if (parts[1].empty()) bound(memory, root, version_2, std::string(parts[2]));
    else if (std::find(controllers.begin(), controllers.end(), "memory") != controllers.end())
      bound(memory, root, version_1, std::string(parts[2]));
  }
  return memory;
}

}  // namespace modelc

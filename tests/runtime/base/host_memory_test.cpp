#include "runtime/base/host_memory.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/runtime/base/temporary_folder.h"

using namespace modelc;
using namespace modelc::test;

namespace {

void put(const TemporaryFolder& root, const std::string& path, const std::string& text) {
  const std::filesystem::path file(root / path);
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

// 16 GiB, of which 12 are available.
void put_machine(const TemporaryFolder& root) {
  put(root, "proc/meminfo",
      "MemTotal:       16777216 kB\nMemFree:         1000000 kB\nMemAvailableNot: 5 kB\nMemAvailable:   12582912 kB\nCached: 7 kB\n");
}

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

}  // namespace

TEST_CASE("a machine without control groups: what meminfo says") {
  const TemporaryFolder root;
  CHECK(host_memory(root.path()).total == 0);              // nothing there
  put_machine(root);
  const HostMemory m = host_memory(root.path());
  CHECK(m.total == 16 * gib);
  CHECK(m.available == 12 * gib);
}

TEST_CASE("control groups bound it: the group's own limit, those above it, and caches of files count as available") {
  const TemporaryFolder root;
  put_machine(root);
  put(root, "proc/self/cgroup", "0::/work.slice/job\n");
  put(root, "sys/fs/cgroup/work.slice/job/memory.max", "max\n");
  CHECK(host_memory(root.path()).total == 16 * gib);
  put(root, "sys/fs/cgroup/work.slice/memory.max", std::to_string(8 * gib) + "\n");
  put(root, "sys/fs/cgroup/work.slice/memory.current", std::to_string(3 * gib) + "\n");
  put(root, "sys/fs/cgroup/work.slice/memory.stat", "anon 5\ninactive_file " + std::to_string(gib) + "\nactive_file 7\n");
  CHECK(host_memory(root.path()).total == 8 * gib);
  CHECK(host_memory(root.path()).available == 6 * gib);
  put(root, "sys/fs/cgroup/work.slice/job/memory.max", std::to_string(2 * gib) + "\n");
  put(root, "sys/fs/cgroup/work.slice/job/memory.current", std::to_string(3 * gib) + "\n");      // above its limit for a moment
  CHECK(host_memory(root.path()).total == 2 * gib);
  CHECK(host_memory(root.path()).available == 0);
}

TEST_CASE("within a container: the path is the host's, and its own group is the uppermost that is seen") {
  const TemporaryFolder root;
  put_machine(root);
  put(root, "proc/self/cgroup", "0::/docker/1f00\n");
  put(root, "sys/fs/cgroup/memory.max", std::to_string(4 * gib));
  put(root, "sys/fs/cgroup/memory.current", std::to_string(gib));
  CHECK(host_memory(root.path()).total == 4 * gib);
  CHECK(host_memory(root.path()).available == 3 * gib);
}

TEST_CASE("the memory controller of version 1") {
  const TemporaryFolder root;
  put_machine(root);
  put(root, "proc/self/cgroup", "7:cpu,cpuacct:/other\n4:memory:/box\n0::/\n");
  put(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put(root, "sys/fs/cgroup/memory/box/memory.limit_in_bytes", std::to_string(4 * gib) + "\n");
  put(root, "sys/fs/cgroup/memory/box/memory.usage_in_bytes", std::to_string(2 * gib) + "\n");
  put(root, "sys/fs/cgroup/memory/box/memory.stat", "inactive_file 5\ntotal_inactive_file " + std::to_string(gib) + "\n");
  put(root, "sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1\n");
  CHECK(host_memory(root.path()).total == 4 * gib);
  CHECK(host_memory(root.path()).available == 3 * gib);
}

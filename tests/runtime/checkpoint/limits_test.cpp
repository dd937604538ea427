// What a refusal costs: the memory of a child process that opens one file.
#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/open.h"
#include "tests/runtime/base/temporary_folder.h"
#include "tests/runtime/checkpoint/safetensors_text.h"

using namespace modelc;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t mb = 1u << 20;

struct Opened {
  bool ok = false, ended = false;
  std::uint64_t peak = 0;
};

// Opens the path in a child and gives its verdict, and how far the peak of its memory rose.
Opened open_in_child(const std::string& path) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    Opened r;
    {
      const auto index = open_checkpoint(path);
      r.ok = index.ok();
    }
    getrusage(RUSAGE_SELF, &after);
    r.ended = true;
    r.peak = static_cast<std::uint64_t>(after.ru_maxrss - before.ru_maxrss) * 1024;
    const bool told = write(ends[1], &r, sizeof r) == sizeof r;
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  Opened r;
  if (read(ends[0], &r, sizeof r) != sizeof r) r = {};
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  r.ended = r.ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return r;
}

void check_refused(const std::string& path, std::uint64_t header) {
  CAPTURE(path);
  const Opened r = open_in_child(path);
  CHECK(r.ended);
  CHECK_FALSE(r.ok);
  CHECK(r.peak <= 64 * mb + 3 * header);
}

}  // namespace

TEST_CASE("a refused file costs at most 64 MB and three times its header") {
  const std::string cases = std::string(MODELC_SOURCE_DIR) + "/tests/runtime/checkpoint/cases/";
  std::size_t bad = 0;
  for (const auto& entry : fs::recursive_directory_iterator(cases)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("bad_") || !(name.ends_with(".safetensors") || name.ends_with(".gguf"))) continue;
    ++bad;
    check_refused(entry.path().string(), entry.file_size());
  }
  CHECK(bad > 60);
}

TEST_CASE("long headers that are refused at their end") {
  const test::TemporaryFolder folder;
  const auto padded = [&](const std::string& name, const std::string& unit, std::size_t bytes, const std::string& last) {
    std::string header = "{";
    header.reserve(bytes + 100);
    while (header.size() < bytes) header += unit;
    header += last;
    const std::string file = test::safetensors(header);
    check_refused(folder.write(name, file), header.size());
  };
  // Texts, numbers, brackets, and entries: what a header may be made of.
  padded("text.safetensors", "", 0, "\"__metadata__\":{\"x\":\"" + std::string(20'000'000, 'y') + "\"},\"a\":3}");
  padded("spaces.safetensors", std::string(1000, ' '), 20'000'000, "\"a\":3}");
  padded(
      "numbers.safetensors", "", 0, "\"a\":[" + [] {
        std::string s;
        for (int i = 0; i < 5'000'000; ++i) s += "1,";
        return s + "1]}";
      }());
  padded(
      "brackets.safetensors", "", 0, "\"a\":[" + [] {
        std::string s;
        for (int i = 0; i < 4'000'000; ++i) s += "[],";
        return s + "[]]}";
      }());
  std::string entries = "{";
  for (int i = 0; i < 100'000; ++i) entries += test::entry("t" + std::to_string(i), "F32", "[0]", 0, 0) + ",";
  entries += "\"last\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}";
  check_refused(folder.write("entries.safetensors", test::safetensors(entries, 8)), entries.size());
}

TEST_CASE("a GGUF that promises what it does not have costs nothing") {
  const test::TemporaryFolder folder;
  const auto number = [](std::uint64_t v, int bytes) {
    std::string s;
    for (int i = 0; i < bytes; ++i) s += static_cast<char>(v >> (8 * i) & 0xff);
    return s;
  };
  const std::string fixed = "GGUF" + number(3, 4);
  // Counts as large as a sparse file of 1 TB allows.
  for (const auto& [tensors, entries] :
       {std::pair{std::uint64_t{1} << 34, std::uint64_t{0}}, std::pair{std::uint64_t{0}, std::uint64_t{1} << 34}}) {
    const std::string path = folder.write("sparse.gguf", fixed + number(tensors, 8) + number(entries, 8));
    fs::resize_file(path, std::uint64_t{1} << 40);
    check_refused(path, 0);
  }
}

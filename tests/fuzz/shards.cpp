// Any bytes as model.safetensors.index.json of a folder with two files of weights; behind an n the lines are the names in a folder
// without one. (Both of each input hid the one from the other: the fault planted in the index was not found for all the names.)
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/safetensors/shards.h"
#include "tests/fuzz/json_strings.h"
#include "tests/fuzz/read_tensors.h"
#include "tests/runtime/checkpoint/safetensors_text.h"

namespace {

// A folder of this process, in memory where the system has such a place; gone with the process.
struct Folder {
  std::string path = make();
  ~Folder() { std::filesystem::remove_all(std::filesystem::path(path).parent_path()); }
  static std::string make() {
    namespace fs = std::filesystem;
    const fs::path base = fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    const fs::path inside = base / ("modelc-fuzz-shards-" + std::to_string(::getpid())) / "model";
    fs::create_directories(inside / "sub");
    const auto write = [](const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; };
    write(inside / "a.safetensors", modelc::test::safetensors_of(std::vector<std::string>{"x", "y"}));
    write(inside / "sub" / "b.safetensors", modelc::test::safetensors_of(std::vector<std::string>{"z", "model.layers.0.w"}));
    write(inside.parent_path() / "a.safetensors", modelc::test::safetensors_of(std::vector<std::string>{"x", "y"}));
    return inside.string();
  }
};
const std::string& folder() {
  static const Folder made;
  return made.path;
}

}  // namespace

// What is taken of a folder's names is some of them, one of each number up to the count.
static void read_names(std::string_view bytes) {
  using namespace modelc;
  std::vector<std::string> names;
  for (const std::string_view line : split(bytes, '\n')) names.emplace_back(line);
  const auto taken = numbered_shards(names);
  if (!taken) return fuzz::check_error(taken.error());
  std::set<std::uint64_t> numbers;
  for (const std::string& name : *taken) {
    const auto number = shard_number(name);
    fuzz::require(std::find(names.begin(), names.end(), name) != names.end() && number, "a name that is not there", name);
    fuzz::require(numbers.insert(number->number).second && number->of == taken->size(), "a set that is not whole", name);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace modelc;
  if (size > 0 && data[0] == 'n') {
    read_names({reinterpret_cast<const char*>(data) + 1, size - 1});
    return 0;
  }
  const std::string name = "model.safetensors.index.json";
  std::ofstream(folder() + "/" + name, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const auto map = read_shard_map(folder(), name);
  if (!map) {
    fuzz::check_error(map.error());
  } else {
    for (const std::string& file : map->files) {
      std::error_code code;
      const auto real = std::filesystem::weakly_canonical(folder() + "/" + file, code).string();
      fuzz::require(!code && real.starts_with(std::filesystem::canonical(folder()).string() + "/"), "an entry leaves the folder", file);
    }
  }
  auto index = open_checkpoint(folder());
  if (!index) {
    fuzz::check_error(index.error());
    return 0;
  }
  fuzz::require(map.ok(), "a folder opens whose index is refused");
  fuzz::read_tensors(std::move(*index));
  return 0;
}

// Any bytes as the adapter_config.json of a folder whose tensors are those of tests/runtime/checkpoint/adapters/plain.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "runtime/checkpoint/adapter.h"
#include "tests/fuzz/memory_file.h"

namespace {

// A folder of this process, in memory where the system has such a place; gone with the process.
struct Folder {
  std::string path = make();
  ~Folder() { std::filesystem::remove_all(std::filesystem::path(path)); }
  static std::string make() {
    namespace fs = std::filesystem;
    const fs::path base = fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    const fs::path at = base / ("modelc-fuzz-adapter-" + std::to_string(::getpid()));
    fs::create_directories(at);
    fs::copy_file(MODELC_SOURCE_DIR "/tests/runtime/checkpoint/adapters/plain/adapter_model.safetensors", at / "adapter_model.safetensors",
                  fs::copy_options::overwrite_existing);
    return at.string();
  }
};
const std::string& folder() {
  static const Folder made;
  return made.path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace modelc;
  const auto root = parse_json({reinterpret_cast<const char*>(data), size}, {.name = "adapter_config.json"});
  if (!root) {
    fuzz::check_error(root.error());
    return 0;
  }
  const auto config = read_adapter_config(*root, "adapter_config.json");
  if (!config) {
    fuzz::check_error(config.error());
    return 0;
  }
  for (const char* module : {"q_proj", "model.layers.0.self_attn.q_proj", ""})
    fuzz::require(std::isfinite(config->scale_of(module)) && config->rank_of(module) > 0, "a scale that is no number");
  std::ofstream(folder() + "/adapter_config.json", std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const auto adapter = Adapter::open(folder());
  if (!adapter) {
    fuzz::check_error(adapter.error());
    return 0;
  }
  for (const Adapter::Change& change : adapter->changes())
    if (const auto values = adapter->values(change); values)
      fuzz::require(static_cast<std::int64_t>(values->size()) == *element_count(change.shape), "a change of another shape");
  return 0;
}

// Packs: a load from one gives the same bits as the checkpoint, and one that is not of this checkpoint, model, version or
// layout, or is damaged, is noticed, said and not used.
#include "runtime/checkpoint/pack.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/checkpoint/open.h"
#include "tests/runtime/device/llama_support.h"

using namespace modelc;
using namespace modelc::test;
namespace fs = std::filesystem;

namespace {

const LoadOptions packing = {.pack = PackUse::write};
constexpr const char* pack_name = "llama.cpu-rows.pack";

std::vector<float> logits_of(handwritten::Llama& llama) { return logits_in_pieces(llama, random_tokens(12), {7, 5}); }

// Loads twice: without a pack, and as it stands, which must say `expected` ("": the pack is used) and give the same.
void check_load(const TemporaryFolder& folder, const std::string& expected, const LoadOptions& options = {}) {
  LoadOptions without = options;
  without.pack = PackUse::none;
  const auto a = load_llama(folder.path(), without), b = load_llama(folder.path(), options);
  CHECK(a->load_report().pack.empty());
  CHECK(b->load_report().pack == (expected.empty() ? folder / pack_name : ""));
  std::string notes;
  for (const std::string& n : b->load_report().notes) notes += n + "\n";
  CAPTURE(notes);
  if (expected.empty()) {
    CHECK(notes.empty());
  } else {
    CHECK(contains(notes, expected));
    CHECK(contains(notes, pack_name));
  }
  CHECK(logits_of(*a) == logits_of(*b));
  CHECK(a->load_report().bytes == b->load_report().bytes);
  CHECK(a->load_report().parameters == b->load_report().parameters);
  for (std::size_t i = 0; i < a->parameters().size(); ++i) CHECK(a->parameters()[i].weight->source == b->parameters()[i].weight->source);
}

void overwrite(const std::string& path, std::size_t at, char xored) {
  std::fstream f(path, std::ios::binary | std::ios::in | std::ios::out);
  f.seekg(static_cast<std::streamoff>(at));
  const char c = static_cast<char>(f.get() ^ xored);
  f.seekp(static_cast<std::streamoff>(at));
  f.put(c);
}

void touch(const std::string& path) { fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(5)); }

struct Packed {
  TemporaryFolder folder;
  std::string pack = folder / pack_name, weights = folder / "model.safetensors";
  explicit Packed(const LoadOptions& options = packing) {
    write_checkpoint(folder, random_weights());
    const auto llama = load_llama(folder.path(), options);
    REQUIRE(llama->load_report().pack == pack);
    REQUIRE(llama->load_report().pack_written);
    REQUIRE(llama->load_report().notes.empty());
  }
};

Error not_opened(const std::string& path, const PackKey& key, const CheckpointIndex& index) {
  auto pack = Pack::open(path, key, index);
  REQUIRE_FALSE(pack.ok());
  return pack.error();
}

}  // namespace

TEST_CASE("a pack gives the same bits; packing again leaves it") {
  const Packed p;
  check_load(p.folder, "");
  check_load(p.folder, "", {.no_mmap = true});
  const auto time = fs::last_write_time(p.pack);
  const auto again = load_llama(p.folder.path(), packing);
  CHECK_FALSE(again->load_report().pack_written);
  CHECK(again->load_report().pack == p.pack);
  CHECK(fs::last_write_time(p.pack) == time);
  CHECK(p.folder.count() == 2);
  CHECK(fs::file_size(p.pack) < fs::file_size(p.weights) / 2);     // what is used as stored is not copied
}

TEST_CASE("changed files make a pack stale, which is said, and written again when asked") {
  const Packed p;
  SUBCASE("a time") {
    touch(p.weights);
    check_load(p.folder, "was written to, or copied, since");
  }
  SUBCASE("a size") {
    write_checkpoint(p.folder, random_weights(), [](auto& w) { w.push_back({"extra.bias", {3}, {1, 2, 3}}); });
    check_load(p.folder, "bytes, and now has", {.strict = false});
    return;
  }
  SUBCASE("a header") {
    const auto time = fs::last_write_time(p.weights);
    const std::size_t at = slurp(p.weights).find(",\"") + 2;       // two tensors of one shape change their names
    REQUIRE(at > 2);
    write_checkpoint(p.folder, random_weights(), [](auto& w) {
      std::swap(weight_called(w, "model.layers.0.mlp.up_proj.weight").name, weight_called(w, "model.layers.0.mlp.gate_proj.weight").name);
    });
    fs::last_write_time(p.weights, time);
    check_load(p.folder, "the header of \"model.safetensors\" has changed");
  }
  const auto again = load_llama(p.folder.path(), packing);
  CHECK(again->load_report().pack_written);
  REQUIRE(again->load_report().notes.size() == 1);
  CHECK(contains(again->load_report().notes[0], "it is written again"));
  check_load(p.folder, "");
}

TEST_CASE("hashes of every byte: a copy's pack is good, other bytes are found") {
  const LoadOptions full = {.pack = PackUse::write, .pack_hash = true};
  const Packed p(full);
  touch(p.weights);
  check_load(p.folder, "");
  CHECK_FALSE(load_llama(p.folder.path(), full)->load_report().pack_written);
  const auto time = fs::last_write_time(p.weights);
  overwrite(p.weights, fs::file_size(p.weights) - 5, 1);
  fs::last_write_time(p.weights, time);
  check_load(p.folder, "bytes of \"model.safetensors\" have changed");
  CHECK(load_llama(p.folder.path(), full)->load_report().pack_written);
  check_load(p.folder, "");
  overwrite(p.pack, 64 + 9, 1);                            // of the pack's own data
  CHECK(contains(load_llama(p.folder.path(), full)->load_report().notes.at(0), "its data is damaged; it is written again"));
  check_load(p.folder, "");
  load_llama(p.folder.path(), packing);
  fs::remove(p.pack);
  load_llama(p.folder.path(), packing);                    // without hashes
  CHECK(contains(load_llama(p.folder.path(), full)->load_report().notes.at(0), "it holds no hash of every byte"));
}

TEST_CASE("a damaged pack is noticed wherever it is damaged") {
  const Packed p;
  const std::string whole = slurp(p.pack);
  for (std::size_t n : {std::size_t{0}, std::size_t{7}, std::size_t{64}, std::size_t{100}, whole.size() / 2, whole.size() - 1}) {
    p.folder.write(pack_name, std::string_view(whole).substr(0, n));
    CAPTURE(n);
    check_load(p.folder, "is not used: it ");
  }
  p.folder.write(pack_name, whole);
  check_load(p.folder, "");
  const std::size_t directory = whole.find("{\"key\"");
  REQUIRE(directory != std::string::npos);
  auto index = good(open_checkpoint(p.folder.path()));
  const PackKey key{};
  for (std::size_t at = 0; at < whole.size(); ++at) {
    if (at >= 12 && at < directory) continue;              // the head's zeros, and the data: found by hashes of all alone
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    p.folder.write(pack_name, changed);
    const Error e = not_opened(p.pack, key, index);
    CAPTURE(at);
    CAPTURE(e.message);
    CHECK((at >= 8 && at < 12 ? contains(e.message, "its form is of version") : e.kind == "pack-format"));
  }
}

TEST_CASE("packs of another model, version, layout or plan") {
  const TemporaryFolder folder;
  write_checkpoint(folder, random_weights());
  auto index = good(open_checkpoint(folder.path()));
  const std::string path = folder / "x.pack";
  const CheckpointFile& file = index.files()[0];
  const PackKey key{"Llama", "cpu-rows", "plan", "1/2", {{"model.safetensors", file.size, file.modified, "header"}}};
  const auto write = [&](const PackKey& k) {
    auto writer = good(PackWriter::create(path));
    writer.begin("w");
    REQUIRE(writer.add({Encoding::f32, 1, 4, {}, 0}, std::as_bytes(std::span("abc", 4))).ok());
    REQUIRE(writer.commit(k, {"a note"}).ok());
  };
  write(key);
  const Pack pack = good(Pack::open(path, key, index));
  REQUIRE(pack.weights().size() == 1);
  CHECK(pack.weights()[0].blocks[0].offset == 64);
  CHECK(pack.notes() == std::vector<std::string>{"a note"});
  const auto refused = [&](const std::function<void(PackKey&)>& change, const char* kind, const char* text) {
    PackKey other = key;
    change(other);
    const Error e = not_opened(path, other, index);
    CAPTURE(e.message);
    CHECK(e.kind == kind);
    CHECK(contains(e.message, text));
    CHECK(contains(e.help, "modelc pack"));
  };
  refused([](PackKey& k) { k.model = "Qwen"; }, "pack-foreign", "it is of the model \"Llama\", not of \"Qwen\"");
  refused([](PackKey& k) { k.program = "2/2"; }, "pack-foreign", "it is of version 1/2, and this program of 2/2");
  refused([](PackKey& k) { k.layout = "gpu"; }, "pack-foreign", "its layout is \"cpu-rows\", and this device's is \"gpu\"");
  refused([](PackKey& k) { k.plan = "p"; }, "pack-stale", "in another way");
  refused([](PackKey& k) { k.sources.clear(); }, "pack-stale", "it was made of 1 file, and the checkpoint has 0");
  refused([](PackKey& k) { k.sources[0].file = "a"; }, "pack-stale", "it was made of \"model.safetensors\", not of \"a\"");
  refused([](PackKey& k) { k.sources[0].header = "h"; }, "pack-stale", "the header of");
  // Blocks that lie nowhere.
  for (const PackBlock& b : {PackBlock{Encoding::f32, 1, 4, 0, file.size - 3}, PackBlock{Encoding::f32, 1, 4, 1, 0},
                             PackBlock{Encoding::f32, INT64_MAX, 4, 0, 0}, PackBlock{Encoding::f32, 1, 4, {}, 0},
                             PackBlock{Encoding::f32, 1, 4, {}, 1U << 20}, PackBlock{Encoding::f32, 1, 4, 0, UINT64_MAX}}) {
    auto writer = good(PackWriter::create(path));
    writer.begin("w");
    writer.refer(b);
    REQUIRE(writer.commit(key, {}).ok());
    const Error e = not_opened(path, key, index);
    CHECK(e.kind == "pack-format");
    CHECK(contains(e.message, "does not lie in its file"));
  }
}

TEST_CASE("given weights and adapters leave a pack aside, and are not packed") {
  const Packed p;
  LoadOptions options;
  options.weights.emplace("model.norm.weight", good(WeightValue::of(std::span<const float>(std::vector<float>(32, 2.0F)), {32})));
  check_load(p.folder, "is not used: weights are given", options);
  options.pack = PackUse::write;
  auto refused = handwritten::Llama::load(p.folder.path(), options);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == "pack-changed");
}

TEST_CASE("a folder that cannot be written to is said") {
  if (geteuid() == 0) return;                              // whom nothing stops
  const TemporaryFolder folder;
  write_checkpoint(folder, random_weights());
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  auto refused = handwritten::Llama::load(folder.path(), packing);
  fs::permissions(folder.path(), fs::perms::owner_all);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == "cannot-write");
}

TEST_CASE("processes that pack at once end with a pack that is whole") {
  const TemporaryFolder folder;
  write_checkpoint(folder, random_weights());
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (int k = 0; k < 5; ++k) {
        LoadOptions options = packing;
        options.cpu.threads = 1;
        options.pack_hash = k % 2 == 0;                    // now and then the other's is not good enough
        if (!handwritten::Llama::load(folder.path(), options)) _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  CHECK(folder.count() == 2);                              // nothing temporary is left
  check_load(folder, "");
}

TEST_CASE("progress: after each weight, up to all of them; the same bits with one thread and with many") {
  const Packed p;
  for (const PackUse use : {PackUse::none, PackUse::use}) {
    std::vector<LoadProgress> seen;
    LoadOptions options;
    options.pack = use;
    options.progress = [&](const LoadProgress& at) { seen.push_back(at); };
    const auto llama = load_llama(p.folder.path(), options);
    REQUIRE_FALSE(seen.empty());
    CHECK(seen.back().weights == llama->load_report().weights);
    CHECK(seen.back().of_weights == llama->load_report().weights);
    CHECK(seen.back().bytes == llama->load_report().bytes);
    for (std::size_t i = 1; i < seen.size(); ++i) CHECK(seen[i].weights > seen[i - 1].weights);
  }
}

// What is counted before a load is what a load takes: bytes of weights, by device and encoding.
#include "runtime/device/held.h"

#include <fstream>
#include <map>
#include <set>

#include "runtime/device/module_tree.h"
#include "tests/runtime/cpu/kernel_support.h"
#include "tests/runtime/device/llama_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

// Weights of every role; the head is an alias of the table, two matrices are halves of one tensor, a norm has a default.
struct One : Module {
  Weight weight;
  explicit One(const WeightSpec& spec) : weight{spec} {}
  const char* type_name() const override { return "One"; }
  void members(MemberVisitor& v) override { v.weight("weight", weight); }
};
class Small final : public Model {
 public:
  One embed{{.shape = {64, 32}, .role = WeightRole::table}};
  One up{{.shape = {48, 32}, .role = WeightRole::matrix}};
  One half{{.shape = {16, 64}, .role = WeightRole::matrix}}, other{{.shape = {16, 64}, .role = WeightRole::matrix}};
  One norm{{.shape = {32}}}, scale{{.shape = {32}, .default_value = 1.0}};
  One head{{.shape = {64, 32}, .role = WeightRole::matrix}};

  Status load(const CheckpointIndex& index, const std::shared_ptr<Device>& device);
  const char* type_name() const override { return "Small"; }
  std::span<const EntryDesc> entries() const override { return {}; }
  std::int64_t context() const override { return 8; }
  std::int64_t arena_bytes(const StepSizes&) const override { return 0; }
  void members(MemberVisitor& v) override {
    for (const auto& [name, m] : std::initializer_list<std::pair<const char*, One*>>{
             {"embed", &embed}, {"up", &up}, {"half", &half}, {"other", &other}, {"norm", &norm}, {"scale", &scale}, {"head", &head}})
      v.child(name, *m);
  }

 private:
  void run(int, Step&, std::span<const Tensor>, std::span<const Tensor>) const override {}
};
const CheckpointRulesData rules = {.aliases = {{.weight = "head.weight", .target = "embed.weight"}},
                                   .maps = {{.file = {"both"}, .model = {"half.weight", "other.weight"}, .via = "split(0)"}}};

Status Small::load(const CheckpointIndex& index, const std::shared_ptr<Device>& device) {
  return load_weights(index, rules, {.device = device});
}

// Its checkpoint, each tensor as `encoding` says, by the name.
CheckpointIndex write(const TemporaryFolder& folder, const std::map<std::string, Encoding>& encodings) {
  Random random(3);
  std::vector<TensorInfo> tensors;
  std::string bytes;
  const std::pair<const char*, std::vector<std::int64_t>> all[] = {
      {"embed.weight", {64, 32}}, {"up.weight", {48, 32}}, {"both", {32, 64}}, {"norm.weight", {32}}};
  for (const auto& [name, shape] : all) {
    TensorInfo t;
    t.name = name;
    t.shape = shape;
    if (const auto e = encodings.find(name); e != encodings.end()) t.encoding = e->second;
    const StoredRows rows = random_row(t.encoding, t.elements(), random);
    t.offset = bytes.size();
    t.size = rows.bytes.size();
    bytes.append(reinterpret_cast<const char*>(rows.bytes.data()), rows.bytes.size());
    tensors.push_back(t);
  }
  std::ofstream(folder / "weights.bin", std::ios::binary) << bytes;
  CheckpointFile file;
  file.path = folder / "weights.bin";
  file.label = "weights.bin";
  file.size = bytes.size();
  CheckpointIndex index;
  const Status s = index.add(file, tensors);
  if (!s) FAIL(s.error().text());
  return index;
}

// The bytes of all buffers that a loaded model's weights are in.
std::int64_t loaded_bytes(Model& model) {
  std::map<const Buffer*, std::int64_t> buffers;
  for (const NamedParameter& p : model.parameters()) {
    if (p.weight->tensor) buffers[p.weight->tensor.buffer] = p.weight->tensor.buffer->size;
    for (const RowBlock& b : p.weight->matrix.blocks) buffers[b.data.buffer] = b.data.buffer->size;
  }
  std::int64_t bytes = 0;
  for (const auto& [buffer, size] : buffers) bytes += size;
  return bytes;
}

struct Counted {
  std::int64_t bytes = 0;
  std::set<std::size_t> weights;
  std::size_t shared = 0;                                  // pieces that several weights are in
};
Counted count(const CheckpointIndex& index, const Device& device) {
  Small small;
  std::vector<MappingWeight> weights;
  std::vector<WeightRole> roles;
  const ModuleTree tree(small);
  for (const NamedParameter& p : tree.weights()) {
    MappingWeight w;
    w.name = p.name;
    w.shape.assign(p.weight->spec.shape.axes().begin(), p.weight->spec.shape.axes().end());
    w.has_default = p.weight->spec.default_value.has_value();
    weights.push_back(std::move(w));
    roles.push_back(p.weight->spec.role);
  }
  const Mapping mapping = map_weights(weights, rules, index, {});
  if (!mapping.problems.empty()) FAIL(as_error(mapping).text());
  Counted c;
  for (const HeldPiece& p : held_pieces(index, mapping, weights, roles, device)) {
    c.bytes += p.bytes;
    c.weights.insert(p.weights.begin(), p.weights.end());
    c.shared += p.weights.size() > 1 ? 1 : 0;
  }
  return c;
}

}  // namespace

TEST_CASE("the bytes that a load takes are counted without one, on every device") {
  std::vector<std::shared_ptr<Device>> devices = vulkan_test_devices(16 * 1024);
  devices.push_back(std::shared_ptr<Device>(std::move(*open_cpu({.threads = 2}))));
  // Plain; halves, of which a vector becomes f32; blocks that kernels read; and blocks that none does.
  const std::map<std::string, Encoding> kinds[] = {
      {},
      {{"embed.weight", Encoding::bf16}, {"up.weight", Encoding::f16}, {"both", Encoding::bf16}, {"norm.weight", Encoding::bf16}},
      {{"embed.weight", Encoding::q8_0}, {"up.weight", Encoding::q4_0}, {"both", Encoding::q5_1}},
      {{"embed.weight", Encoding::iq4_nl}, {"up.weight", Encoding::q4_1}, {"both", Encoding::iq4_nl}}};
  for (const auto& device : devices) {
    const std::string description = device->description();
    CAPTURE(description);
    for (std::size_t k = 0; k < std::size(kinds); ++k) {
      CAPTURE(k);
      const TemporaryFolder folder;
      const CheckpointIndex index = write(folder, kinds[k]);
      Small model;
      const Status loaded = model.load(index, device);
      if (!loaded) FAIL(loaded.error().text());
      const Counted c = count(index, *device);
      CHECK(c.bytes == loaded_bytes(model));
      CHECK(c.weights.size() == 7);
      // Table and head, unless they are decoded; and the halves, unless they are blocks, which are cut when they are read.
      CHECK(c.shared == (k < 2 ? 2 : k == 2 ? 1 : 0));
    }
  }
}

TEST_CASE("the figures of a mixed checkpoint on the CPU") {
  const TemporaryFolder folder;
  auto cpu = *open_cpu({.threads = 1});
  const CheckpointIndex index =
      write(folder, {{"embed.weight", Encoding::q8_0}, {"up.weight", Encoding::iq4_nl}, {"norm.weight", Encoding::bf16}});
  // 34 bytes for 32 of the table, once; f32 all else: decoded, both halves, two vectors.
  CHECK(count(index, *cpu).bytes == 64 * 34 + 48 * 32 * 4 + 2 * 16 * 64 * 4 + 2 * 32 * 4);
}

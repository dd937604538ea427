// What the kernel tests share: every device that there is (the CPU with each instruction set, Vulkan where a driver is),
// tensors on it, references in double.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/encoding/convert.h"
#include "runtime/cpu/isa.h"
#include "runtime/device/device.h"
#include "runtime/device/device_set.h"
#include "runtime/device/map.h"
#include "runtime/encoding/decode.h"
#ifdef MODELC_VULKAN
#include "codegen/emit/spirv/compile.h"
#endif

namespace modelc::test {

// Runs the check with every instruction set and with 1 and 2 threads.
inline void on_every_cpu(const std::function<void(Device&)>& check) {
  for (const cpu::Kernels* k : cpu::available_kernels())
    for (const int threads : {1, 2}) {
      auto device = open_cpu({threads, k->isa});
      REQUIRE(device.ok());
      const std::string description = (*device)->description();
      CAPTURE(description);
      check(**device);
    }
}

// Several devices as one (device_set.h): two CPUs; and Vulkan with a CPU, where there is Vulkan. Tensors of a test are on one and the
// other in turn.
inline void on_every_set(const std::function<void(Device&)>& check, bool vulkan) {
  const auto one = [] { return std::shared_ptr<Device>(std::move(*open_cpu({.threads = 1}))); };
  std::vector<DeviceSet::Member> members = {{"first", one()}, {"second", one()}};
  if (vulkan) {
    static const std::shared_ptr<Device> device = [] {
      auto d = open_vulkan({});
      return d ? std::shared_ptr<Device>(std::move(*d)) : nullptr;
    }();
    if (device == nullptr) return;
    members[0].device = device;
  }
  DeviceSet set(std::move(members));
  const std::string description = set.description();
  CAPTURE(description);
  check(set);
  const Status done = set.finish();
  if (!done) FAIL_CHECK(done.error().text());
}

// The first Vulkan device: as it is, without optional features, and with limits so small that what fits one binding of
// `binding_bytes`, or one axis of workgroups, elsewhere is cut here. Each opened once.
inline std::vector<std::shared_ptr<Device>> vulkan_test_devices(std::uint64_t binding_bytes) {
  VulkanOptions bare, small;
  bare.masked = {"subgroup", "float16", "int8", "int16", "storage16", "storage8"};
  small.masked = {"broadcast"};                            // products as a GPU computes them, on a software driver too
  small.binding_bytes = binding_bytes;
  small.max_groups = 31;
  const auto open = [](const VulkanOptions& o) -> std::shared_ptr<Device> {
    auto d = open_vulkan(o);
    if (d) return std::move(*d);
    std::printf("SKIPPED on Vulkan: %s\n", d.error().message.c_str());
    return nullptr;
  };
  // By what a binding shows. Made with the first in it: what is loaded for that must be there when these go.
  static std::map<std::uint64_t, std::shared_ptr<Device>> opened = {{0, open({})}};
  if (opened.at(0) == nullptr) return {};
  std::vector<std::shared_ptr<Device>> devices = {opened.at(0)};
  for (const auto& [key, options] : {std::pair{std::uint64_t{1}, bare}, std::pair{binding_bytes, small}}) {
    if (opened.count(key) == 0) opened[key] = open(options);
    if (opened[key] != nullptr) devices.push_back(opened[key]);
  }
  return devices;
}

// Runs the check on every device: the CPU as above, then Vulkan, where what was recorded must not have failed. The least
// that a binding of the last one shows is what one row of a check's tensors needs.
inline void on_every_device(const std::function<void(Device&)>& check, std::uint64_t binding_bytes = 16 * 1024) {
  const char* only = std::getenv("MODELC_TEST_DEVICES");   // "cpu" or "vulkan"; both unless set
  const std::string wanted = only != nullptr ? only : "";
  if (wanted != "vulkan") {
    on_every_cpu(check);
    on_every_set(check, false);
  }
  if (wanted == "cpu") return;
  int number = 0;
  for (const auto& device : vulkan_test_devices(binding_bytes)) {
    const std::string description = device->description() + ", with options " + std::to_string(number++);
    CAPTURE(description);
    check(*device);
    const Status done = device->finish();
    if (!done) FAIL_CHECK(done.error().text());
  }
  on_every_set(check, true);
}

// Those that carry out Mode::fast.
inline void on_every_fast_device(const std::function<void(Device&)>& check) {
  on_every_device([&](Device& device) {
    if (device.has_fast_mode()) check(device);
  });
}

// A map kernel that runs on every device: the same expression in GLSL, over x0, x1, …, for inputs that are whole ("i") or
// real ("f"), one letter each.
inline MapKernel with_shader(MapKernel kernel, const std::string& inputs, const std::string& expression) {
#ifdef MODELC_VULKAN
  std::string text = "#version 450\n#define INPUTS " + std::to_string(inputs.size()) + "\n#include \"map.glsl\"\n", loads;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string n = std::to_string(i), type = inputs[i] == 'i' ? "int" : "float";
    text += "layout(constant_id = " + std::to_string(4 + i) + ") const uint type_" + n +
            " = 0;\nlayout(binding = " + std::to_string(i + 1) + ") readonly buffer Input" + n + " { uint v[]; } input_" + n + ";\n";
    loads += "  const uint e" + n + " = map_place(" + n + "u, e);\n  const " + type + " x" + n + " = map_" + type + "(" + n + "u, type_" +
             n + ", e" + n + ", input_" + n + ".v[map_word(" + n + "u, type_" + n + ", e" + n + ")]);\n";
  }
  text += "void main() {\n  const uint e = invocation_number();\n  if (e >= map_argument(0u)) return;\n" + loads +
          "  precise float r = " + expression + ";\n  map_store(e, r);\n}\n";
  if (inputs == "i") text.replace(text.find("precise float"), 13, "int");
  const auto words = emit::compile_shader({std::string(kernel.name) + ".comp", text, {}, MODELC_SOURCE_DIR "/shaders/include"});
  if (!words) FAIL(words.error().text());
  // Kept for good, where a sanitizer sees it: a kernel names its code by the address.
  static auto& all = *new std::vector<std::unique_ptr<const std::vector<std::uint32_t>>>;
  const auto* kept = all.emplace_back(std::make_unique<const std::vector<std::uint32_t>>(*words)).get();
  kernel.shader = {reinterpret_cast<const char*>(kept->data()), kept->size() * 4};
#else
  (void)inputs, (void)expression;
#endif
  return kernel;
}

// A tensor's elements, wherever they lie.
template <class T> std::vector<T> elements_of(const Tensor& t) {
  std::vector<T> v(static_cast<std::size_t>(t.count()));
  REQUIRE(static_cast<std::size_t>(t.size()) == v.size() * sizeof(T));
  const Status s = const_cast<Device*>(t.buffer->owner)->read(t, std::as_writable_bytes(std::span(v)));
  if (!s) FAIL_CHECK(s.error().text());
  return v;
}
inline std::vector<float> values_of(const Tensor& t) { return elements_of<float>(t); }

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  float number() { return normal_(engine_); }
  std::vector<float> numbers(std::int64_t n) {
    std::vector<float> v(static_cast<std::size_t>(n));
    for (float& x : v) x = number();
    return v;
  }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n)); }

 private:
  std::mt19937 engine_;
  std::normal_distribution<float> normal_;
};

// Tensors of one test, freed with it. Bytes behind each one are watched.
class Tensors {
 public:
  explicit Tensors(Device& device) : device_(device) {}
  Tensors(const Tensors&) = delete;
  ~Tensors() {
    // The last bytes side by side, so that a GPU is waited for once.
    const auto n = static_cast<std::int64_t>(buffers_.size());
    const auto ends = device_.allocate(n + 1);
    CHECK(ends.ok());
    if (!ends) return;
    for (std::int64_t i = 0; i < n; ++i) {
      const Buffer* b = buffers_[static_cast<std::size_t>(i)];
      device_.copy({b, b->size - 1, DType::u8, {1}}, {*ends, i, DType::u8, {1}});
    }
    if (n > 0) CHECK(elements_of<std::uint8_t>({*ends, 0, DType::u8, {n}}) == std::vector<std::uint8_t>(buffers_.size(), 0x5A));
    for (const Buffer* b : buffers_) device_.free(b);
    device_.free(*ends);
  }
  // The CPU reads weights at any address; a GPU at whole words, or (`halves`) at even ones.
  std::int64_t placed(std::int64_t bytes, bool halves = true) const {
    return !on_host() ? bytes / (halves ? 2 : 4) * (halves ? 2 : 4) : bytes;
  }
  bool on_host() const { return device_.description().starts_with("CPU"); }
  // `shift` bytes away from alignment.
  Tensor bytes_of(DType dtype, Shape shape, std::span<const std::byte> bytes, std::int64_t shift = 0) {
    shift = placed(shift);
    Tensor t{nullptr, shift, dtype, shape};
    device_.enter(static_cast<int>(buffers_.size()) % device_.members());
    auto b = device_.allocate(shift + t.size() + 1);
    REQUIRE(b.ok());
    t.buffer = *b;
    buffers_.push_back(*b);
    std::vector<std::byte> all(static_cast<std::size_t>((*b)->size), std::byte{0x5A});
    REQUIRE(static_cast<std::int64_t>(bytes.size()) <= t.size());
    std::copy(bytes.begin(), bytes.end(), all.begin() + shift);
    device_.write(all, {*b, 0, DType::u8, {(*b)->size}});
    return t;
  }
  Tensor f32(Shape shape, std::span<const float> values) { return bytes_of(DType::f32, shape, std::as_bytes(values)); }
  Tensor i32(std::span<const std::int32_t> values) {
    return bytes_of(DType::i32, {static_cast<std::int64_t>(values.size())}, std::as_bytes(values));
  }
  Tensor empty(Shape shape) { return bytes_of(DType::f32, shape, {}); }

 private:
  Device& device_;
  std::vector<const Buffer*> buffers_;
};

// What a cache has never been given may be anything.
inline void fill_with_nonsense(const Buffer* b) {
  const std::vector<std::byte> bytes(static_cast<std::size_t>(b->size), std::byte{0xFF});
  const_cast<Device*>(b->owner)->write(bytes, {b, 0, DType::u8, {b->size}});
}
// One more sequence in a batch: `tokens` behind `before` of its slot, all of them outputs.
inline void add_sequence(Batch& at, int slot, std::int64_t before, std::int64_t tokens) {
  if (at.starts.empty()) at.starts.push_back(0);
  for (std::int64_t t = 0; t < tokens; ++t) {
    at.positions.push_back(static_cast<std::int32_t>(before + t));
    at.lengths.push_back(static_cast<std::int32_t>(before + tokens));
    at.sequence.push_back(static_cast<std::int32_t>(at.slots.size()));
    at.outputs.push_back(at.starts.back() + static_cast<std::int32_t>(t));
  }
  at.slots.push_back(slot);
  at.starts.push_back(at.starts.back() + static_cast<std::int32_t>(tokens));
  at.last.push_back(at.starts.back() - 1);
}
// A step of this batch begins, with its fields on the device.
inline void begin_step(Device& device, Tensors& tensors, const Batch& at) {
  const auto field = [&](const std::vector<std::int32_t>& v) { return tensors.i32(v); };
  const BatchTensors fields{field(at.positions), field(at.lengths), field(at.sequence), field(at.outputs),
                            field(at.last),      field(at.slots),   field(at.starts)};
  REQUIRE(device.begin({}, &at, fields).ok());
}

// Rows of numbers as stored in an encoding, and what they are then.
struct StoredRows {
  std::vector<std::byte> bytes;
  std::vector<float> values;
};
inline StoredRows store_as(Encoding encoding, std::span<const float> numbers) {
  StoredRows s;
  for (const float x : numbers) {
    if (encoding == Encoding::f32) {
      const auto b = std::as_bytes(std::span(&x, 1));
      s.bytes.insert(s.bytes.end(), b.begin(), b.end());
      s.values.push_back(x);
    } else {
      const std::uint16_t h = encoding == Encoding::bf16 ? bf16_from_f32(x) : f16_from_f32(x);
      const auto b = std::as_bytes(std::span(&h, 1));
      s.bytes.insert(s.bytes.end(), b.begin(), b.end());
      s.values.push_back(encoding == Encoding::bf16 ? f32_from_bf16(h) : f32_from_f16(h));
    }
  }
  return s;
}

// Rows of random blocks, with scales that make their values about as large as a weight's, and what they decode to.
inline StoredRows random_blocks(Encoding encoding, std::int64_t elements, Random& random) {
  // Where a block's f16 scales stand, and how large they are.
  struct Scales {
    std::vector<std::size_t> at;
    float size;
  };
  const Scales scales = encoding == Encoding::q4_1 || encoding == Encoding::q5_1   ? Scales{{0, 2}, 0.05F}
                        : encoding == Encoding::q4_k || encoding == Encoding::q5_k ? Scales{{0, 2}, 0.002F}
                        : encoding == Encoding::q6_k                               ? Scales{{208}, 0.0003F}
                        : encoding == Encoding::q8_0                               ? Scales{{0}, 0.01F}
                                                                                   : Scales{{0}, 0.1F};
  StoredRows s;
  const std::int64_t blocks = elements / block_elements(encoding);
  REQUIRE(blocks * block_elements(encoding) == elements);
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::size_t begin = s.bytes.size();
    for (int i = 0; i < block_bytes(encoding); ++i) s.bytes.push_back(static_cast<std::byte>(random.below(256)));
    for (const std::size_t at : scales.at) {
      // Now and then none at all, or a subnormal one.
      const std::int64_t kind = random.below(10);
      const std::uint16_t h = kind == 0 ? 0 : kind == 1 ? 3 : f16_from_f32(random.number() * scales.size);
      std::memcpy(s.bytes.data() + begin + at, &h, 2);
    }
  }
  s.values.resize(static_cast<std::size_t>(elements));
  REQUIRE(decode(encoding, s.bytes.data(), s.values));
  return s;
}
// Of any encoding that kernels read: k elements of one row.
inline StoredRows random_row(Encoding encoding, std::int64_t k, Random& random) {
  if (block_elements(encoding) > 1) return random_blocks(encoding, k, random);
  return store_as(encoding, random.numbers(k));
}

// |got - expected| stays below `within` · (1 + |expected|), everywhere.
inline void check_near(std::span<const float> got, std::span<const double> expected, double within) {
  REQUIRE(got.size() == expected.size());
  double worst = 0;
  std::size_t where = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double d = std::fabs(static_cast<double>(got[i]) - expected[i]) / (1 + std::fabs(expected[i]));
    if (!(d <= worst)) worst = d, where = i;
  }
  CAPTURE(where);
  CHECK(worst <= within);
}

}  // namespace modelc::test

// What the kernel tests share: a device of every instruction set that runs here, tensors, references in double.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/encoding/convert.h"
#include "runtime/cpu/isa.h"
#include "runtime/device/device.h"
#include "runtime/encoding/decode.h"

namespace modelc::test {

// Runs the check with every instruction set and with 1 and 2 threads.
inline void on_every_device(const std::function<void(Device&)>& check) {
  for (const cpu::Kernels* k : cpu::available_kernels())
    for (const int threads : {1, 2}) {
      auto device = open_cpu({threads, k->isa});
      REQUIRE(device.ok());
      const std::string description = (*device)->description();
      CAPTURE(description);
      check(**device);
    }
}

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
    for (const Buffer* b : buffers_) {
      CHECK(std::to_integer<int>(b->host[b->size - 1]) == 0x5A);
      device_.free(b);
    }
  }
  // `shift` bytes away from alignment.
  Tensor bytes_of(DType dtype, Shape shape, std::span<const std::byte> bytes, std::int64_t shift = 0) {
    Tensor t{nullptr, shift, dtype, shape};
    auto b = device_.allocate(shift + t.size() + 1);
    REQUIRE(b.ok());
    std::memset((*b)->host, 0x5A, static_cast<std::size_t>((*b)->size));
    t.buffer = *b;
    buffers_.push_back(*b);
    REQUIRE(static_cast<std::int64_t>(bytes.size()) <= t.size());
    if (!bytes.empty()) std::memcpy((*b)->host + shift, bytes.data(), bytes.size());
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

inline std::vector<float> values_of(const Tensor& t) { return {t.host<float>(), t.host<float>() + t.count()}; }

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
  struct Scales { std::vector<std::size_t> at; float size; };
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

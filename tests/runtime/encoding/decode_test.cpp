// Blocks to f32, equal to the bit with the packages that cases/make_cases.py names.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "runtime/encoding/decode.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/runtime/encoding/encoding_cases.h"

using namespace modelc;

namespace {

constexpr std::uint64_t odd = 0x9e3779b97f4a7c15u;

// The bytes that cases/make_cases.py calls splitmix(seed, n).
std::vector<std::byte> random_bytes(std::uint64_t seed, std::size_t n) {
  std::vector<std::byte> out((n + 7) / 8 * 8);
  for (std::size_t i = 0; i < out.size() / 8; ++i) {
    std::uint64_t k = (i + 1) * odd + seed;
    k = (k ^ k >> 30) * 0xbf58476d1ce4e5b9u;
    k = (k ^ k >> 27) * 0x94d049bb133111ebu;
    k ^= k >> 31;
    std::memcpy(out.data() + 8 * i, &k, 8);
  }
  out.resize(n);
  return out;
}

std::uint64_t digest(const std::vector<float>& values) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    sum += (std::isnan(values[i]) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(values[i])) * ((2 * i + 1) * odd);
  return sum;
}

std::vector<float> decoded(Encoding e, const std::byte* from, std::size_t blocks) {
  std::vector<float> out(blocks * static_cast<std::size_t>(block_elements(e)));
  REQUIRE(decode(e, from, out));
  return out;
}

}  // namespace

TEST_CASE("every block type, to the bit") {
  test::EncodingCases cases("decode");
  int types = 0;
  for (int i = 0; i < encoding_count; ++i) {
    const auto e = static_cast<Encoding>(i);
    const std::string type(name(e));
    if (!cases.has(type + ".blocks")) continue;
    ++types;
    CAPTURE(type);
    const auto size = static_cast<std::size_t>(block_bytes(e));
    const std::vector<std::byte> blocks = cases.bytes(type + ".blocks");
    const std::vector<std::uint64_t> digests = cases.numbers<std::uint64_t>(type + ".digests");
    REQUIRE(blocks.size() == digests.size() * size);
    const std::vector<float> last = decoded(e, blocks.data() + blocks.size() - size, 1);
    const std::vector<float> expected = cases.numbers<float>(type + ".values");
    REQUIRE(last.size() == expected.size());
    for (std::size_t k = 0; k < last.size(); ++k) {
      CAPTURE(k);
      if (std::isnan(expected[k])) REQUIRE(std::isnan(last[k]));
      else REQUIRE(std::bit_cast<std::uint32_t>(last[k]) == std::bit_cast<std::uint32_t>(expected[k]));
    }
    for (std::size_t b = 0; b < digests.size(); ++b) {
      CAPTURE(b);
      CHECK(digest(decoded(e, blocks.data() + b * size, 1)) == digests[b]);
    }
    CHECK(digest(decoded(e, random_bytes(7, 2000 * size).data(), 2000)) == cases.numbers<std::uint64_t>(type + ".digest_of_2000")[0]);
  }
  CHECK(types == 25);
}

TEST_CASE("8-bit floats, every value") {
  test::EncodingCases cases("decode");
  for (Encoding e : {Encoding::f8_e4m3, Encoding::f8_e5m2, Encoding::f8_e8m0}) {
    CAPTURE(name(e));
    const std::vector<float> expected = cases.numbers<float>(std::string(name(e)) + ".all");
    REQUIRE(expected.size() == 256);
    for (unsigned b = 0; b < 256; ++b) {
      CAPTURE(b);
      const auto byte = static_cast<std::byte>(b);
      const float v = decoded(e, &byte, 1)[0];
      if (std::isnan(expected[b])) CHECK(std::isnan(v));
      else CHECK(std::bit_cast<std::uint32_t>(v) == std::bit_cast<std::uint32_t>(expected[b]));
    }
  }
}

TEST_CASE("4- and 6-bit floats, by their definition") {
  const std::byte fours[] = {std::byte{0x10}, std::byte{0x32}, std::byte{0x54}, std::byte{0x76},
                             std::byte{0x98}, std::byte{0xba}, std::byte{0xdc}, std::byte{0xfe}};
  const std::vector<float> f = decoded(Encoding::f4_e2m1, fours, 8);
  const float expected[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(f[i] == expected[i]);
    CHECK(f[8 + i] == -expected[i]);
    CHECK(std::signbit(f[8 + i]));
  }
  const auto sixes = [](Encoding e, unsigned exponent_bits, unsigned fraction_bits, int bias) {
    for (unsigned v = 0; v < 64; ++v) {
      // The value in each of the four places of a block.
      for (unsigned place = 0; place < 4; ++place) {
        const std::uint32_t bits = v << 6 * place;
        const std::byte block[] = {static_cast<std::byte>(bits), static_cast<std::byte>(bits >> 8), static_cast<std::byte>(bits >> 16)};
        const unsigned exponent = v >> fraction_bits & ((1u << exponent_bits) - 1), fraction = v & ((1u << fraction_bits) - 1);
        double want = exponent ? std::ldexp(1 + std::ldexp(fraction, -static_cast<int>(fraction_bits)), static_cast<int>(exponent) - bias)
                               : std::ldexp(fraction, 1 - bias - static_cast<int>(fraction_bits));
        if (v & 32u) want = -want;
        CHECK(double{decoded(e, block, 1)[place]} == want);
      }
    }
  };
  sixes(Encoding::f6_e2m3, 2, 3, 1);
  sixes(Encoding::f6_e3m2, 3, 2, 3);
}

TEST_CASE("what is no float is not decoded") {
  float to = 5;
  const std::byte from[8] = {};
  for (Encoding e : {Encoding::i8, Encoding::i64, Encoding::u16, Encoding::boolean, Encoding::c64}) {
    CHECK_FALSE(decode(e, from, {&to, 1}));
    CHECK_FALSE(is_float(e));
  }
  CHECK(to == 5);
  for (int i = 0; i < encoding_count; ++i) {
    const auto e = static_cast<Encoding>(i);
    const auto type = dtype_of(e);
    CHECK(is_float(e) == (type ? is_float(*type) : e != Encoding::c64));
  }
}

// f32 to blocks: equal to the bit with the package `gguf` where it has the type (cases/make_cases.py), and small errors
// where it does not.
#include "runtime/encoding/encode.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "runtime/encoding/convert.h"
#include "runtime/encoding/decode.h"
#include "tests/runtime/encoding/encoding_cases.h"

using namespace modelc;

namespace {

std::vector<std::byte> encoded(Encoding e, const std::vector<float>& x) {
  std::vector<std::byte> out(x.size() / static_cast<std::size_t>(block_elements(e)) * static_cast<std::size_t>(block_bytes(e)));
  REQUIRE(encode(e, x, out.data()));
  return out;
}
std::vector<float> there_and_back(Encoding e, const std::vector<float>& x) {
  std::vector<float> out(x.size());
  REQUIRE(decode(e, encoded(e, x).data(), out));
  return out;
}
// Root of the mean squared error, in units of the root of the mean square.
double relative_error(Encoding e, const std::vector<float>& x) {
  const std::vector<float> y = there_and_back(e, x);
  double error = 0, all = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
    all += double{x[i]} * x[i];
  }
  return std::sqrt(error / all);
}

constexpr Encoding k_types[] = {Encoding::q2_k, Encoding::q3_k, Encoding::q4_k, Encoding::q5_k, Encoding::q6_k};

}  // namespace

TEST_CASE("types that the package quantises, to the bit") {
  test::EncodingCases cases("encode");
  const std::vector<float> x = cases.numbers<float>("input");
  constexpr std::size_t row = 256;
  for (Encoding e : {Encoding::q4_0, Encoding::q4_1, Encoding::q5_0, Encoding::q5_1, Encoding::q8_0, Encoding::tq1_0, Encoding::tq2_0,
                     Encoding::mxfp4, Encoding::bf16, Encoding::f16}) {
    CAPTURE(name(e));
    const std::vector<std::byte> expected = cases.bytes(std::string(name(e)));
    const std::vector<std::byte> mine = encoded(e, x);
    REQUIRE(mine.size() == expected.size());
    const std::size_t bytes = mine.size() / (x.size() / row);
    for (std::size_t r = 0; r < x.size() / row; ++r) {
      // MXFP4 has no exponent for elements this small; the package lets it wrap around.
      const float largest = std::abs(*std::max_element(x.begin() + static_cast<std::ptrdiff_t>(r * row),
                                                       x.begin() + static_cast<std::ptrdiff_t>((r + 1) * row),
                                                       [](float a, float b) { return std::abs(a) < std::abs(b); }));
      if (e == Encoding::mxfp4 && largest < 1e-37f) continue;
      CAPTURE(r);
      for (std::size_t i = 0; i < bytes; ++i) {
        CAPTURE(i);
        REQUIRE(std::to_integer<int>(mine[r * bytes + i]) == std::to_integer<int>(expected[r * bytes + i]));
      }
    }
  }
}

TEST_CASE("K types: errors on normal numbers") {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> x(64 * 256);
  for (float& v : x) v = normal(random) * 0.02f;
  double last = 1;
  for (Encoding e : k_types) {
    const double error = relative_error(e, x);
    MESSAGE(name(e) << ": " << error);
    CHECK(error < last * 0.62);  // each further bit halves it, less what the scales cost
    last = error;
  }
  // Against blocks of 32 with one scale, which have as many bits for a value and more for scales.
  CHECK(relative_error(Encoding::q4_k, x) < relative_error(Encoding::q4_0, x) * 0.85);
  CHECK(relative_error(Encoding::q5_k, x) < relative_error(Encoding::q5_0, x) * 0.85);
}

TEST_CASE("IQ4: errors on normal numbers, and what can be stored exactly") {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> x(64 * 256);
  for (float& v : x) v = normal(random) * 0.02f;
  // Levels that lie closer near zero: of as many bits as Q4_0 has, IQ4_NL loses less; IQ4_XS saves a quarter bit and loses little more.
  const double straight = relative_error(Encoding::q4_0, x), nl = relative_error(Encoding::iq4_nl, x),
               xs = relative_error(Encoding::iq4_xs, x);
  MESSAGE("q4_0 " << straight << ", iq4_nl " << nl << ", iq4_xs " << xs);
  CHECK(nl < straight * 0.87);
  CHECK(xs < nl * 1.03);
  for (Encoding e : {Encoding::iq4_nl, Encoding::iq4_xs}) {
    CAPTURE(name(e));
    const std::vector<float> zeros(256, 0.0f);
    CHECK(there_and_back(e, zeros) == zeros);
    // What the format holds comes back as it was: every level, at scales of either sign (in a block of 256 one sign has one step more).
    std::vector<float> exact(256);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const std::byte block[18] = {std::byte{0}, std::byte{0x3C}, static_cast<std::byte>(i % 16)}; // scale 1
      float out[32];
      REQUIRE(decode(Encoding::iq4_nl, block, out));
      exact[i] = out[0] * (i < 128 || e == Encoding::iq4_xs ? 0.5f : -0.5f);
    }
    CHECK(there_and_back(e, exact) == exact);
    std::vector<float> tiny(256, 1e-30f); // below every scale that 16 bits have
    for (float v : there_and_back(e, tiny)) CHECK(v == 0);
  }
}

TEST_CASE("K types: what can be stored exactly is") {
  std::vector<float> zeros(256, 0.0f);
  for (Encoding e : k_types) {
    CAPTURE(name(e));
    CHECK(there_and_back(e, zeros) == zeros);
    // Errors do not grow with outliers elsewhere, with shifts or with signs.
    std::vector<float> x(256);
    for (std::size_t i = 0; i < 256; ++i) x[i] = static_cast<float>(i % 16) * 0.25f - 2.0f;
    x[0] = 60.0f;
    const std::vector<float> y = there_and_back(e, x);
    CHECK(std::abs(y[0] - 60.0f) < 3.0f);
    std::vector<float> negative(256);
    for (std::size_t i = 0; i < 256; ++i) negative[i] = -std::abs(x[i]) - 1.0f;
    CHECK(relative_error(e, negative) < 0.3);
  }
}

TEST_CASE("what has no quantiser is refused") {
  const std::vector<float> x(256, 1.0f);
  std::byte to[1024];
  for (Encoding e : {Encoding::iq2_xs, Encoding::iq1_s, Encoding::i8, Encoding::boolean, Encoding::f8_e4m3, Encoding::q8_1})
    CHECK_FALSE(encode(e, x, to));
}

namespace {

// cases/FILE.safetensors: rows of seven distributions, and the blocks that llama.cpp makes of them.
void compare_with_llama_cpp(const std::string& file, std::span<const Encoding> encodings) {
  test::EncodingCases cases(file);
  for (const char* rows : {"normal", "laplace", "student", "uniform", "outliers", "scaled", "shifted"}) {
    std::vector<float> x;
    for (const std::uint16_t bits : cases.numbers<std::uint16_t>(std::string(rows) + ".input")) x.push_back(f32_from_bf16(bits));
    REQUIRE(x.size() == 4096);
    for (Encoding e : encodings) {
      const std::vector<std::byte> theirs = cases.bytes(std::string(rows) + "." + std::string(name(e)));
      std::vector<float> y(x.size());
      REQUIRE(theirs.size() == x.size() / static_cast<std::size_t>(block_elements(e)) * static_cast<std::size_t>(block_bytes(e)));
      REQUIRE(decode(e, theirs.data(), y));
      const std::vector<float> own = there_and_back(e, x);
      double mine = 0, other = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        mine += (double{x[i]} - own[i]) * (double{x[i]} - own[i]);
        other += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
      }
      CAPTURE(rows);
      CAPTURE(name(e));
      const double ratio = std::sqrt(mine / other);
      MESSAGE(rows, " ", name(e), ": ", ratio);
      CHECK(other > 0);
      CHECK(ratio <= 1.02);
    }
  }
}

} // namespace

TEST_CASE("the K types and IQ4 lose no more than llama.cpp's quantiser, on rows of several distributions") {
  compare_with_llama_cpp("k", k_types);
  compare_with_llama_cpp("iq4", std::array{Encoding::iq4_nl, Encoding::iq4_xs});
}

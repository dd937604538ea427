// The elementwise functions against the C library's in double, in units in the last place.
#include "runtime/device/math.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include "runtime/device/round.h"
#include "runtime/encoding/convert.h"

namespace math = modelc::math;

namespace {

double ulps(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : INFINITY;
  const auto nearest = static_cast<float>(exact);
  if (std::isinf(nearest)) return got == nearest ? 0 : INFINITY;
  const float a = std::fabs(nearest);
  const float unit = std::max(std::nextafterf(a, INFINITY) - a, std::numeric_limits<float>::min());
  return std::fabs(static_cast<double>(got) - exact) / unit;
}

// Worst error over many magnitudes and both signs.
double worst(float (*f)(float), double (*exact)(double), float largest) {
  double w = 0;
  for (float x = 1e-9F; x < largest; x *= 1.0007F)
    for (const float s : {x, -x}) w = std::max(w, ulps(f(s), exact(static_cast<double>(s))));
  return std::max(w, ulps(f(0), exact(0)));
}

}  // namespace

TEST_CASE("exp and its family") {
  CHECK(worst(
            math::exp, [](double x) { return std::exp(x); }, 87.0F) < 2);
  CHECK(worst(
            math::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 80.0F) < 3);
  CHECK(worst(
            math::silu, [](double x) { return x / (1 + std::exp(-x)); }, 80.0F) < 3);
  CHECK(worst(
            math::tanh, [](double x) { return std::tanh(x); }, 80.0F) < 4);
  CHECK(std::isinf(math::exp(89.0F)));
  CHECK(math::exp(-INFINITY) == 0);
  CHECK(math::exp(-90.0F) == 0);
  CHECK(math::exp(INFINITY) == INFINITY);
  CHECK(math::silu(-1e30F) == 0);
  CHECK(math::silu(1e30F) == 1e30F);
  CHECK(math::tanh(-1e30F) == -1);
  for (auto* f : {math::exp, math::silu, math::sigmoid, math::tanh, math::gelu_tanh, math::relu, math::gelu}) CHECK(std::isnan(f(NAN)));
}

TEST_CASE("the gelus") {
  const auto near = [](float (*f)(float), double (*exact)(double)) {
    double w = 0;
    for (float x = -12; x < 12; x += 0.001F) w = std::max(w, std::fabs(f(x) - exact(x)) / std::max(1.0, std::fabs(static_cast<double>(x))));
    return w;
  };
  CHECK(near(math::gelu, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }) < 1e-6);
  CHECK(near(math::quick_gelu, [](double x) { return x / (1 + std::exp(-1.702 * x)); }) < 1e-6);
  CHECK(near(math::gelu_tanh, [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }) < 1e-6);
}

TEST_CASE("signs, zeros and NaN of the rest") {
  CHECK(math::mod(5, 3) == 2);
  CHECK(math::mod(-5, 3) == 1);
  CHECK(math::mod(5, -3) == -1);
  CHECK(math::relu(-2) == 0);
  CHECK(math::abs(-2) == 2);
  CHECK_FALSE(std::signbit(math::abs(-0.0F)));
  CHECK(std::isnan(math::min(NAN, 1.0F)));
  CHECK(std::isnan(math::min(1.0F, NAN)));
  CHECK(std::isnan(math::max(NAN, 1.0F)));
  CHECK(std::isnan(math::max(1.0F, NAN)));
  CHECK(math::clamp(5, 0, 1) == 1);
  CHECK(math::clamp(-5, 0, 1) == 0);
  CHECK(math::where(1, 2, 3) == 2);
  CHECK(math::where(0, 2, 3) == 3);
  CHECK(std::fabs(math::softplus(0.0F) - 0.693147F) < 1e-6F);
  CHECK(math::softplus(50.0F) == 50.0F);
  CHECK(math::rsqrt(4.0F) == 0.5F);
}

TEST_CASE("rounding to bf16 and f16 is that of the conversions, bit for bit") {
  const auto same = [](float got, float wanted) {
    return std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(wanted) || (std::isnan(got) && std::isnan(wanted));
  };
  std::size_t wrong = 0;
  const auto one = [&](std::uint32_t bits) {
    const auto x = std::bit_cast<float>(bits);
    wrong += same(math::bf16(x), modelc::f32_from_bf16(modelc::bf16_from_f32(x))) ? 0 : 1;
    wrong += same(math::f16(x), modelc::f32_from_f16(modelc::f16_from_f32(x))) ? 0 : 1;
  };
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 977) one(static_cast<std::uint32_t>(bits));
  // Around every number of either type and every point between two: ties and their neighbours.
  for (std::uint32_t high = 0; high < (1U << 19); ++high)
    for (const std::uint32_t low : {0U, 1U, 0xFFFU, 0x1000U, 0x1001U, 0x1FFFU}) one(high << 13 | low);
  CHECK(wrong == 0);
}

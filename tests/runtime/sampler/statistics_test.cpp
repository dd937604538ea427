// Draws against the definition of each option: chi-square tests with fixed seeds, so that they pass or fail for good.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/sampler/sampler.h"

using namespace modelc;

namespace {

// Probabilities by the definition, each step written out plainly on the whole vocabulary.
std::vector<double> defined(const SamplerOptions& o, const std::vector<float>& logits, const std::vector<std::int32_t>& history) {
  const std::size_t n = logits.size();
  std::vector<double> x(logits.begin(), logits.end());
  for (const auto& [id, bias] : o.logit_bias) x[static_cast<std::size_t>(id)] += static_cast<double>(bias);
  for (std::size_t i = 0; i < n; ++i)
    if (std::find(history.begin(), history.end(), static_cast<std::int32_t>(i)) != history.end())
      x[i] = x[i] > 0 ? x[i] / static_cast<double>(o.repetition_penalty) : x[i] * static_cast<double>(o.repetition_penalty);
  for (const std::int32_t id : history) x[static_cast<std::size_t>(id)] -= static_cast<double>(o.frequency_penalty);
  for (std::size_t i = 0; i < n; ++i)
    if (std::find(history.begin(), history.end(), static_cast<std::int32_t>(i)) != history.end())
      x[i] -= static_cast<double>(o.presence_penalty);
  for (double& v : x) v /= static_cast<double>(o.temperature);
  std::vector<bool> in(n, true);
  const auto probabilities = [&] {
    std::vector<double> p(n, 0.0);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (in[i]) sum += p[i] = std::exp(x[i]);
    for (double& v : p) v /= sum;
    return p;
  };
  if (o.top_k > 0) {
    for (std::size_t i = 0; i < n; ++i) in[i] = std::count_if(x.begin(), x.end(), [&](double other) { return other > x[i]; }) < o.top_k;
  }
  if (o.top_p < 1) {
    const std::vector<double> p = probabilities();
    const std::vector<bool> before = in;
    for (std::size_t i = 0; i < n; ++i) {
      double more = 0;  // the probability of all that come before it
      bool first = true;
      for (std::size_t j = 0; j < n; ++j)
        if (before[j] && (p[j] > p[i] || (p[j] == p[i] && j < i))) more += p[j], first = false;
      in[i] = before[i] && (first || more < static_cast<double>(o.top_p));
    }
  }
  if (o.min_p > 0) {
    const std::vector<double> p = probabilities();
    const double largest = *std::max_element(p.begin(), p.end());
    for (std::size_t i = 0; i < n; ++i) in[i] = in[i] && p[i] >= static_cast<double>(o.min_p) * largest;
  }
  if (o.typical_p < 1) {
    const std::vector<double> p = probabilities();
    double entropy = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (in[i]) entropy -= p[i] * std::log(p[i]);
    const auto shift = [&](std::size_t i) { return std::abs(-std::log(p[i]) - entropy); };
    const std::vector<bool> before = in;
    for (std::size_t i = 0; i < n; ++i) {
      double nearer = 0;  // the probability of all that are more typical
      bool first = true;
      for (std::size_t j = 0; before[i] && j < n; ++j)
        if (before[j] && shift(j) < shift(i) - 1e-12) nearer += p[j], first = false;
      in[i] = before[i] && (first || nearer < static_cast<double>(o.typical_p));
    }
  }
  return probabilities();
}

// The value that chi-square exceeds once in 10,000 times (Wilson and Hilferty's approximation).
double limit(int degrees) {
  const double d = degrees, z = 3.719;
  const double t = 1 - 2 / (9 * d) + z * std::sqrt(2 / (9 * d));
  return d * t * t * t;
}

void compare(SamplerOptions options, const std::vector<float>& logits, const std::vector<std::int32_t>& history = {}) {
  constexpr int draws = 100000;
  const std::vector<double> p = defined(options, logits, history);
  Result<Sampler> sampler = Sampler::create(options);
  REQUIRE(sampler);
  std::vector<int> seen(logits.size(), 0);
  for (int i = 0; i < draws; ++i) {
    const auto id = sampler->sample(logits, history);
    if (!id) FAIL(id.error().text());
    ++seen[static_cast<std::size_t>(*id)];
  }
  double chi_square = 0, rare = 0;
  int cells = 0, rare_seen = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double expected = p[i] * draws;
    if (p[i] == 0) {
      CHECK(seen[i] == 0);
    } else if (expected < 8) {  // too few for the approximation: all such together
      rare += expected, rare_seen += seen[i];
    } else {
      chi_square += (seen[i] - expected) * (seen[i] - expected) / expected;
      ++cells;
    }
  }
  if (rare >= 8) chi_square += (rare_seen - rare) * (rare_seen - rare) / rare, ++cells;
  CAPTURE(chi_square);
  CAPTURE(cells);
  if (cells > 1) CHECK(chi_square < limit(cells - 1));
  // And exactly, without drawing.
  const auto left = sampler->distribution(logits, history);
  REQUIRE(left);
  std::vector<double> exact(p.size(), 0.0);
  for (const TokenProbability& t : *left) exact[static_cast<std::size_t>(t.id)] = t.probability;
  for (std::size_t i = 0; i < p.size(); ++i) CHECK(exact[i] == doctest::Approx(p[i]).epsilon(1e-9));
}

std::vector<float> spread_logits(std::size_t n, float scale, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> logits(n);
  for (float& x : logits) x = static_cast<float>(random.uniform() + random.uniform() + random.uniform() - 1.5) * scale;
  return logits;
}

SamplerOptions options(float temperature, std::uint64_t seed) {
  SamplerOptions o;
  o.temperature = temperature;
  o.seed = seed;
  return o;
}

}  // namespace

TEST_CASE("temperature") {
  const std::vector<float> logits = spread_logits(30, 4, 1);
  compare(options(1, 1), logits);
  compare(options(0.5f, 2), logits);
  compare(options(2, 3), logits);
  compare(options(0.05f, 4), logits);
}

TEST_CASE("top-k") {
  const std::vector<float> logits = spread_logits(30, 4, 2);
  for (const int k : {1, 2, 5, 29, 30, 300}) {
    SamplerOptions o = options(1.3f, 10 + static_cast<std::uint64_t>(k));
    o.top_k = k;
    compare(o, logits);
  }
}

TEST_CASE("top-p") {
  const std::vector<float> logits = spread_logits(30, 4, 3);
  for (const float p : {0.0f, 0.1f, 0.5f, 0.9f, 0.999f}) {
    SamplerOptions o = options(1, 20);
    o.top_p = p;
    compare(o, logits);
  }
}

TEST_CASE("min-p") {
  const std::vector<float> logits = spread_logits(30, 4, 4);
  for (const float p : {0.01f, 0.1f, 0.5f, 1.0f}) {
    SamplerOptions o = options(1.5f, 30);
    o.min_p = p;
    compare(o, logits);
  }
}

TEST_CASE("repetition penalty and bias") {
  const std::vector<float> logits = spread_logits(20, 3, 5);
  SamplerOptions o = options(1, 40);
  o.repetition_penalty = 1.7f;
  o.logit_bias = {{3, 2.0f}, {4, -1.0f}};
  compare(o, logits, {1, 3, 3, 7, 19, 0});
}

TEST_CASE("all together, in their order") {
  for (std::uint64_t i = 0; i < 6; ++i) {
    SamplerOptions o = options(0.6f + 0.3f * static_cast<float>(i), 50 + i);
    o.top_k = 6 + static_cast<int>(i) * 3;
    o.top_p = 0.95f - 0.05f * static_cast<float>(i);
    o.min_p = 0.02f * static_cast<float>(i);
    o.repetition_penalty = 1.2f;
    compare(o, spread_logits(40, 5, 60 + i), {2, 5, 8});
  }
}

TEST_CASE("ties") {
  SamplerOptions o = options(1, 70);
  o.top_k = 3;
  o.top_p = 0.6f;
  compare(o, {1, 2, 2, 2, 2, 0, 1});
}

TEST_CASE("typical, by itself and after the others") {
  for (const float p : {0.05f, 0.3f, 0.7f, 0.95f}) {
    SamplerOptions o = options(1, 40);
    o.typical_p = p;
    compare(o, spread_logits(40, 6, 41));
    compare(o, spread_logits(40, 0.5f, 42));
    o.temperature = 1.7f;
    o.top_k = 20;
    o.top_p = 0.9f;
    o.min_p = 0.02f;
    compare(o, spread_logits(40, 5, 43));
  }
}

TEST_CASE("frequency and presence penalties, beside the repetition penalty") {
  const std::vector<std::int32_t> history = {1, 2, 2, 3, 3, 3, 3, 9, 1};
  SamplerOptions o = options(0.9f, 50);
  o.frequency_penalty = 0.4f;
  compare(o, spread_logits(20, 4, 51), history);
  o.presence_penalty = 0.7f;
  compare(o, spread_logits(20, 4, 52), history);
  o.repetition_penalty = 1.3f;
  o.logit_bias = {{3, 2.5f}, {4, -1.0f}};
  compare(o, spread_logits(20, 4, 53), history);
  o.frequency_penalty = -0.5f;  // more of the same
  o.presence_penalty = -0.25f;
  compare(o, spread_logits(20, 4, 54), history);
  // Greedy takes them into account too.
  SamplerOptions greedy;
  greedy.frequency_penalty = 1;
  const std::vector<float> logits = {1, 2.5f, 2};
  const std::vector<std::int32_t> once = {1};
  auto sampler = Sampler::create(greedy);
  REQUIRE(sampler);
  CHECK(*sampler->sample(logits) == 1);
  CHECK(*sampler->sample(logits, once) == 2);
}

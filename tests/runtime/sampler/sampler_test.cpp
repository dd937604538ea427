#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "runtime/sampler/sampler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "runtime/base/json.h"
#include "runtime/sampler/exp.h"

using namespace modelc;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

Sampler sampler(const SamplerOptions& options) {
  Result<Sampler> made = Sampler::create(options);
  REQUIRE(made);
  return std::move(*made);
}

std::vector<std::int32_t> ids_left(const SamplerOptions& options, const std::vector<float>& logits) {
  const auto left = sampler(options).distribution(logits);
  REQUIRE(left);
  std::vector<std::int32_t> ids;
  for (const TokenProbability& p : *left) ids.push_back(p.id);
  return ids;
}

std::string problem(const SamplerOptions& options) {
  const Result<Sampler> made = Sampler::create(options);
  if (made) return "";
  CHECK(made.error().kind == "sampler-option");
  return made.error().message;
}

}  // namespace

TEST_CASE("xoshiro256** gives the published numbers") {
  // From the state 1, 2, 3, 4, as worked out by hand from the definition for the first, and in the authors' C for all.
  Random random(std::array<std::uint64_t, 4>{1, 2, 3, 4});
  for (const std::uint64_t expected : {11520ull, 0ull, 1509978240ull, 1215971899390074240ull, 1216172134540287360ull, 607988272756665600ull,
                                       16172922978634559625ull, 8476171486693032832ull, 10595114339597558777ull, 2904607092377533576ull})
    CHECK(random.next() == expected);
}

TEST_CASE("SplitMix64 fills the state from the seed") {
  // The first numbers of SplitMix64 from seed 1234567.
  Random seeded(1234567);
  Random same(std::array<std::uint64_t, 4>{6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u});
  for (int i = 0; i < 100; ++i) CHECK(seeded.next() == same.next());
}

TEST_CASE("uniform numbers lie in [0, 1) and fill it evenly") {
  Random random(3);
  std::vector<int> buckets(64, 0);
  for (int i = 0; i < 64000; ++i) {
    const double u = random.uniform();
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    ++buckets[static_cast<std::size_t>(u * 64)];
  }
  double chi_square = 0;
  for (const int n : buckets) chi_square += (n - 1000.0) * (n - 1000.0) / 1000;
  CHECK(chi_square < 103.4);  // 63 degrees of freedom, one in a thousand
}

TEST_CASE("the exponential function is within two units in the last place") {
  double worst = 0;
  for (double x = 0; x > -708; x -= 0.0137) {
    const double expected = std::exp(x);
    worst = std::max(worst, std::fabs(exp_nonpositive(x) - expected) / expected);
  }
  CHECK(worst < 4.5e-16);
  CHECK(exp_nonpositive(0) == 1);
  CHECK(exp_nonpositive(-1e-300) == 1);
  CHECK(exp_nonpositive(-709) == 0);
  CHECK(exp_nonpositive(-std::numeric_limits<double>::infinity()) == 0);
}

TEST_CASE("greedy takes the largest logit, the lowest id among equals") {
  Sampler greedy = sampler({});
  CHECK(*greedy.sample(std::vector<float>{0, 3, 1}) == 1);
  CHECK(*greedy.sample(std::vector<float>{2, -1, 2, 2}) == 0);
  CHECK(*greedy.sample(std::vector<float>{-5}) == 0);
  CHECK(*greedy.sample(std::vector<float>{-0.0f, 0.0f}) == 0);
  const auto left = greedy.distribution(std::vector<float>{0, 3, 1});
  REQUIRE(left->size() == 1);
  CHECK(left->front().id == 1);
  CHECK(left->front().probability == 1);
}

TEST_CASE("greedy follows the bias and the repetition penalty, and nothing else") {
  SamplerOptions options;
  options.logit_bias = {{0, 5.0f}};
  CHECK(*sampler(options).sample(std::vector<float>{0, 3, 1}) == 0);
  options.logit_bias = {{1, -infinity}};
  CHECK(*sampler(options).sample(std::vector<float>{0, 3, 1}) == 2);
  options = {};
  options.repetition_penalty = 2;
  CHECK(*sampler(options).sample(std::vector<float>{2, 3, 1}, std::vector<std::int32_t>{1, 1, 1}) == 0);
  CHECK(*sampler(options).sample(std::vector<float>{-2, -3, -1}, std::vector<std::int32_t>{2}) == 0);
  options = {};
  options.top_k = 1, options.top_p = 0, options.min_p = 1;
  CHECK(*sampler(options).sample(std::vector<float>{0, 3, 1}) == 1);
}

TEST_CASE("the repetition penalty counts a token once, and the scratch of one call does not reach the next") {
  SamplerOptions options;
  options.temperature = 1;
  options.repetition_penalty = 2;
  Sampler s = sampler(options);
  const std::vector<float> logits{2, -2, 0};
  const auto twice = s.distribution(logits, std::vector<std::int32_t>{0, 0, 1, 1, 0});
  const double sum = std::exp(1.0) + std::exp(-4.0) + 1;
  CHECK((*twice)[0].probability == doctest::Approx(std::exp(1.0) / sum).epsilon(1e-12));
  CHECK((*twice)[1].probability == doctest::Approx(std::exp(-4.0) / sum).epsilon(1e-12));
  const auto without = s.distribution(logits);
  CHECK((*without)[0].probability == doctest::Approx(std::exp(2.0) / (std::exp(2.0) + std::exp(-2.0) + 1)).epsilon(1e-12));
  // A row of another size.
  CHECK(s.distribution(std::vector<float>{1, 1, 1, 1, 1}, std::vector<std::int32_t>{4})->size() == 5);
  CHECK(s.distribution(std::vector<float>{1}, std::vector<std::int32_t>{0})->size() == 1);
}

TEST_CASE("top-k keeps k, what equals the k-th, and all where k is beyond the vocabulary") {
  SamplerOptions options;
  options.temperature = 1;
  options.top_k = 2;
  CHECK(ids_left(options, {1, 4, 2, 3}) == std::vector<std::int32_t>{1, 3});
  CHECK(ids_left(options, {1, 4, 3, 3}) == std::vector<std::int32_t>{1, 2, 3});
  CHECK(ids_left(options, {3, 3, 3, 3}).size() == 4);
  options.top_k = 4;
  CHECK(ids_left(options, {1, 4, 2, 3}).size() == 4);
  options.top_k = 1000000;
  CHECK(ids_left(options, {1, 4, 2, 3}).size() == 4);
  options.top_k = 3;
  options.logit_bias = {{0, -infinity}, {1, -infinity}};
  CHECK(ids_left(options, {1, 4, 2, 3}) == std::vector<std::int32_t>{2, 3});
}

TEST_CASE("top-k of a large vocabulary") {
  SamplerOptions options;
  options.temperature = 1;
  Random random(11);
  std::vector<float> logits(50000);
  for (float& x : logits) x = static_cast<float>(random.next() % 20000) / 1000;  // with ties
  for (const int k : {1, 2, 40, 600, 5000, 49999}) {
    options.top_k = k;
    std::vector<float> sorted = logits;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    const float least = sorted[static_cast<std::size_t>(k - 1)];
    std::vector<std::int32_t> expected;
    for (std::size_t i = 0; i < logits.size(); ++i)
      if (logits[i] >= least) expected.push_back(static_cast<std::int32_t>(i));
    CHECK(ids_left(options, logits) == expected);
  }
  std::sort(logits.begin(), logits.end());  // ascending, the worst order for a buffer of the largest
  options.top_k = 40;
  CHECK(ids_left(options, logits).back() == 49999);
  CHECK(ids_left(options, logits).size() >= 40);
}

TEST_CASE("top-p from 0 to 1") {
  SamplerOptions options;
  options.temperature = 1;
  // Probabilities 0.5, 0.25, 0.125, 0.125.
  const std::vector<float> logits{std::log(2.0f), std::log(8.0f), std::log(2.0f), std::log(4.0f)};
  const auto left = [&](float p) {
    options.top_p = p;
    return ids_left(options, logits);
  };
  CHECK(left(0) == std::vector<std::int32_t>{1});
  CHECK(left(0.49f) == std::vector<std::int32_t>{1});
  CHECK(left(0.51f) == std::vector<std::int32_t>{1, 3});
  CHECK(left(0.74f) == std::vector<std::int32_t>{1, 3});
  CHECK(left(0.8f) == std::vector<std::int32_t>{0, 1, 3});  // of the two equals the lower id
  CHECK(left(0.9f).size() == 4);
  CHECK(left(1).size() == 4);
  const auto renewed = sampler([&] {
                         options.top_p = 0.7f;
                         return options;
                       }())
                           .distribution(logits);
  CHECK((*renewed)[0].probability == doctest::Approx(2.0 / 3).epsilon(1e-6));
}

TEST_CASE("top-p of a flat and of a peaked large vocabulary") {
  SamplerOptions options;
  options.temperature = 1;
  options.top_p = 0.5f;
  CHECK(ids_left(options, std::vector<float>(100000, 1.0f)).size() == 50000);
  CHECK(ids_left(options, std::vector<float>(100000, 1.0f)).back() == 49999);
  std::vector<float> peaked(100000, 0.0f);
  peaked[77777] = 30;
  CHECK(ids_left(options, peaked) == std::vector<std::int32_t>{77777});
}

TEST_CASE("min-p") {
  SamplerOptions options;
  options.temperature = 1;
  const std::vector<float> logits{std::log(1.0f), std::log(8.0f), std::log(4.0f), std::log(2.0f)};
  options.min_p = 0.3f;
  CHECK(ids_left(options, logits) == std::vector<std::int32_t>{1, 2});
  options.min_p = 0.2f;
  CHECK(ids_left(options, logits) == std::vector<std::int32_t>{1, 2, 3});
  options.min_p = 1;
  CHECK(ids_left(options, logits) == std::vector<std::int32_t>{1});
  CHECK(ids_left(options, {2, 2, 1}) == std::vector<std::int32_t>{0, 1});
  options.temperature = 100;  // min-p looks at probabilities after the temperature
  options.min_p = 0.9f;
  CHECK(ids_left(options, logits).size() == 4);
}

TEST_CASE("the filters work in their order") {
  SamplerOptions options;
  options.temperature = 1;
  const std::vector<float> logits{std::log(4.0f), std::log(3.0f), std::log(2.0f), std::log(1.0f)};
  // top-p is of what top-k left: 4 + 3 of 9 reach 0.75, of 10 they would not.
  options.top_k = 3, options.top_p = 0.75f;
  CHECK(ids_left(options, logits) == std::vector<std::int32_t>{0, 1});
  options.top_k = 0;
  CHECK(ids_left(options, logits) == std::vector<std::int32_t>{0, 1, 2});
  // The temperature comes before top-p: at 0.5 the shares are 16 : 9 : 4 : 1.
  options.temperature = 0.5f;
  CHECK(ids_left(options, logits) == std::vector<std::int32_t>{0, 1});
  // The penalty comes before the temperature and top-k.
  options = {};
  options.temperature = 1, options.top_k = 1, options.repetition_penalty = 10;
  CHECK(*sampler(options).sample(logits, std::vector<std::int32_t>{0}) == 1);
}

TEST_CASE("extreme temperatures") {
  SamplerOptions options;
  options.temperature = std::numeric_limits<float>::denorm_min();
  const float large = std::numeric_limits<float>::max();
  CHECK(ids_left(options, {1, 1.0000001f, 0}) == std::vector<std::int32_t>{1});
  CHECK(ids_left(options, {-large, large, 0}) == std::vector<std::int32_t>{1});
  CHECK(ids_left(options, {5, 5, 0}) == std::vector<std::int32_t>{0, 1});
  options.temperature = large;
  const auto flat = sampler(options).distribution(std::vector<float>{-1000, 1000, 0});
  for (const TokenProbability& p : *flat) CHECK(p.probability == doctest::Approx(1.0 / 3).epsilon(1e-9));
  options.temperature = 1, options.repetition_penalty = 1e30f;
  CHECK(sampler(options).distribution(std::vector<float>{-large, large, 0}, std::vector<std::int32_t>{0, 1, 2}));
}

TEST_CASE("options out of range are named") {
  CHECK(problem({}).empty());
  SamplerOptions o;
  const auto with = [&](const auto& set) {
    o = {};
    set();
    return problem(o);
  };
  const float nan = std::nanf("");
  CHECK(with([&] { o.temperature = -1; }) == "sampler option `temperature` is -1: expected 0 (greedy) or a positive number");
  CHECK(with([&] { o.temperature = nan; }).find("`temperature`") != std::string::npos);
  CHECK(with([&] { o.temperature = infinity; }).find("`temperature`") != std::string::npos);
  CHECK(with([&] { o.top_k = -3; }) == "sampler option `top_k` is -3: expected 0 (all) or a positive number");
  CHECK(with([&] { o.top_p = 1.5f; }) == "sampler option `top_p` is 1.5: expected a number from 0 to 1 (all)");
  CHECK(with([&] { o.top_p = nan; }).find("`top_p`") != std::string::npos);
  CHECK(with([&] { o.min_p = -0.5f; }) == "sampler option `min_p` is -0.5: expected a number from 0 (all) to 1");
  CHECK(with([&] { o.repetition_penalty = 0; }) == "sampler option `repetition_penalty` is 0: expected a positive number (1 is off)");
  CHECK(with([&] { o.repetition_penalty = infinity; }).find("`repetition_penalty`") != std::string::npos);
  CHECK(with([&] { o.logit_bias = {{-2, 1.0f}}; }).find("`logit_bias[-2]`") != std::string::npos);
  CHECK(with([&] {
          o.logit_bias = {{7, infinity}};
        }) == "sampler option `logit_bias[7]` is inf: expected a number, or -infinity to forbid the token");
  CHECK(with([&] {
          o.logit_bias = {{7, 1.0f}, {3, 1.0f}, {7, 2.0f}};
        }) == "sampler option `logit_bias[7]` is given twice: expected each token at most once");
  CHECK(with([&] { o.logit_bias = {{7, -infinity}}; }).empty());
}

TEST_CASE("logits that are no numbers, and ids outside the vocabulary") {
  SamplerOptions options;
  for (const float temperature : {0.0f, 1.0f}) {
    options.temperature = temperature;
    for (const float bad : {infinity, -infinity, std::nanf("")}) {
      const auto result = sampler(options).sample(std::vector<float>{0, bad, 1});
      REQUIRE(!result);
      CHECK(result.error().kind == "sampler-logits");
      CHECK(result.error().message.find("the logit of token 1 is ") == 0);
    }
  }
  CHECK(sampler(options).sample({}).error().message == "there are no logits to sample from");
  options.logit_bias = {{3, 1.0f}};
  CHECK(sampler(options).sample(std::vector<float>{0, 1, 1}).error().message ==
        "sampler option `logit_bias` names token 3, but the logits are of 3 tokens");
  options.logit_bias = {{0, -infinity}, {1, -infinity}};
  CHECK(sampler(options).sample(std::vector<float>{0, 1}).error().message == "sampler option `logit_bias` forbids every token");
  options = {};
  options.repetition_penalty = 1.1f;
  for (const std::int32_t id : {-1, 2})
    CHECK(sampler(options).sample(std::vector<float>{0, 1}, std::vector<std::int32_t>{id}).error().kind == "sampler-token");
}

TEST_CASE("the same seed gives the same tokens, on every machine") {
  SamplerOptions options;
  options.temperature = 0.8f;
  options.top_k = 20;
  options.top_p = 0.95f;
  options.seed = 42;
  std::vector<float> logits(100);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>((i * 37) % 100) * 0.05f;
  Sampler a = sampler(options), b = sampler(options);
  std::vector<std::int32_t> first, second;
  for (int i = 0; i < 12; ++i) {
    first.push_back(*a.sample(logits));
    second.push_back(*b.sample(logits));
  }
  CHECK(first == second);
  // Written down once: a change of these numbers changes everybody's texts.
  CHECK(first == std::vector<std::int32_t>{8, 35, 62, 89, 97, 78, 70, 81, 78, 54, 62, 27});
  a.reseed(42);
  CHECK(*a.sample(logits) == first[0]);
  // distribution() and greedy draw nothing.
  a.reseed(42);
  CHECK(a.distribution(logits));
  CHECK(*a.sample(logits) == first[0]);
  options.seed = 43;
  Sampler other = sampler(options);
  std::vector<std::int32_t> third;
  for (int i = 0; i < 12; ++i) third.push_back(*other.sample(logits));
  CHECK(third != first);
}

TEST_CASE("what is left equals what the processors of transformers leave") {
  const Result<JsonFile> file = read_json_file(MODELC_SOURCE_DIR "/tests/runtime/sampler/cases/cases.json");
  REQUIRE(file);
  const JsonArray* cases = file->root.find("cases")->as_array();
  REQUIRE(cases->size() >= 150);
  const auto number = [](const Json& value) { return static_cast<float>(*value.as_double()); };
  for (const Json& c : *cases) {
    const Json& o = *c.find("options");
    SamplerOptions options;
    options.temperature = number(*o.find("temperature"));
    options.top_k = static_cast<std::int32_t>(*o.find("top_k")->as_int());
    options.top_p = number(*o.find("top_p"));
    options.min_p = number(*o.find("min_p"));
    options.repetition_penalty = number(*o.find("repetition_penalty"));
    for (const Json& pair : *o.find("logit_bias")->as_array())
      options.logit_bias.emplace_back(static_cast<std::int32_t>(*(*pair.as_array())[0].as_int()), number((*pair.as_array())[1]));
    std::vector<float> logits;
    for (const Json& x : *c.find("logits")->as_array()) logits.push_back(number(x));
    std::vector<std::int32_t> history;
    for (const Json& x : *c.find("history")->as_array()) history.push_back(static_cast<std::int32_t>(*x.as_int()));
    const auto left = sampler(options).distribution(logits, history);
    REQUIRE(left);
    const JsonArray* expected = c.find("probabilities")->as_array();
    CAPTURE(c.line());
    REQUIRE(left->size() == expected->size());
    for (std::size_t i = 0; i < left->size(); ++i) {
      const JsonArray& pair = *(*expected)[i].as_array();
      CHECK((*left)[i].id == *pair[0].as_int());
      CHECK(std::fabs((*left)[i].probability - *pair[1].as_double()) < 2e-6);  // they count in f32
    }
  }
}

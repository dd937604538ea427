#include "runtime/sampler/sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "runtime/base/strings.h"
#include "runtime/sampler/exp.h"

namespace modelc {

namespace {

constexpr double forbidden = -std::numeric_limits<double>::infinity();

Error option_error(const std::string& name, const std::string& value, const std::string& expected) {
  return {"sampler-option", "sampler option `" + name + "` is " + value + ": expected " + expected, {}, {}};
}

Error token_error(const std::string& what, std::int32_t id, std::size_t vocabulary) {
  return {"sampler-token",
          what + " names token " + std::to_string(id) + ", but the logits are of " + counted(vocabulary, "token"),
          {},
          "are these ids of the same vocabulary?"};
}

// The most probable first; equals by id, so that the order is whole.
bool before(double logit_a, std::int32_t id_a, double logit_b, std::int32_t id_b) {
  return logit_a != logit_b ? logit_a > logit_b : id_a < id_b;
}

}  // namespace

Status validate(const SamplerOptions& o) {
  const float infinity = std::numeric_limits<float>::infinity();
  if (!(o.temperature >= 0 && o.temperature < infinity))
    return option_error("temperature", shortest(o.temperature), "0 (greedy) or a positive number");
  if (o.top_k < 0) return option_error("top_k", std::to_string(o.top_k), "0 (all) or a positive number");
  if (!(o.top_p >= 0 && o.top_p <= 1)) return option_error("top_p", shortest(o.top_p), "a number from 0 to 1 (all)");
  if (!(o.min_p >= 0 && o.min_p <= 1)) return option_error("min_p", shortest(o.min_p), "a number from 0 (all) to 1");
  if (!(o.typical_p > 0 && o.typical_p <= 1)) return option_error("typical_p", shortest(o.typical_p), "a number above 0, to 1 (all)");
  for (const auto& [name, value] : {std::pair{"frequency_penalty", o.frequency_penalty}, std::pair{"presence_penalty", o.presence_penalty}})
    if (!(std::abs(value) < infinity)) return option_error(name, shortest(value), "a finite number (0 is off)");
  if (!(o.repetition_penalty > 0 && o.repetition_penalty < infinity))
    return option_error("repetition_penalty", shortest(o.repetition_penalty), "a positive number (1 is off)");
  std::vector<std::int32_t> ids;
  for (const auto& [id, bias] : o.logit_bias) {
    const std::string name = "logit_bias[" + std::to_string(id) + "]";
    if (id < 0) return option_error(name, shortest(bias), "the id of a token, 0 or more");
    if (!(bias < infinity)) return option_error(name, shortest(bias), "a number, or -infinity to forbid the token");
    ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  if (const auto twice = std::adjacent_find(ids.begin(), ids.end()); twice != ids.end())
    return option_error("logit_bias[" + std::to_string(*twice) + "]", "given twice", "each token at most once");
  return {};
}

Result<Sampler> Sampler::create(SamplerOptions options) {
  if (Status status = validate(options); !status) return status.error();
  return Sampler(std::move(options));
}

Sampler::Sampler(SamplerOptions options) : options_(std::move(options)), random_(options_.seed) {}

void Sampler::reseed(std::uint64_t seed) {
  options_.seed = seed;
  random_ = Random(seed);
}

Result<std::int32_t> Sampler::sample(std::span<const float> logits, std::span<const std::int32_t> history) {
  if (Status status = adjust(logits, history); !status) return status.error();
  if (options_.temperature == 0) return greedy();
  filter();
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  const double drawn = random_.uniform() * total;
  double sum = 0;
  for (const Candidate& c : candidates_) {
    sum += c.weight;
    if (sum > drawn) return c.id;
  }
  return candidates_.back().id;  // only where uniform() * total was rounded up to total
}

Result<std::vector<TokenProbability>> Sampler::distribution(std::span<const float> logits, std::span<const std::int32_t> history) {
  if (Status status = adjust(logits, history); !status) return status.error();
  std::vector<TokenProbability> result;
  if (options_.temperature == 0) {
    result.push_back({greedy(), 1});
    return result;
  }
  filter();
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  result.reserve(candidates_.size());
  for (const Candidate& c : candidates_) result.push_back({c.id, c.weight / total});
  return result;
}

// Bias and repetition penalty: steps 1 and 2, into logits_.
Status Sampler::adjust(std::span<const float> logits, std::span<const std::int32_t> history) {
  if (logits.empty()) return Error{"sampler-logits", "there are no logits to sample from", {}, {}};
  if (logits.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    return Error{"sampler-logits", "more logits than a token id can number: " + std::to_string(logits.size()), {}, {}};
  logits_.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!std::isfinite(logits[i]))
      return Error{"sampler-logits",
                   "the logit of token " + std::to_string(i) + " is " + shortest(logits[i]),
                   {},
                   "weights or activations overflowed or are not initialised; `verify` shows the first stage that does"};
    logits_[i] = logits[i];
  }
  for (const auto& [id, bias] : options_.logit_bias) {
    if (static_cast<std::size_t>(id) >= logits.size()) return token_error("sampler option `logit_bias`", id, logits.size());
    logits_[static_cast<std::size_t>(id)] += bias;
  }
  if (options_.repetition_penalty != 1 || options_.frequency_penalty != 0 || options_.presence_penalty != 0)
    if (Status status = penalise(history); !status) return status;
  if (!options_.logit_bias.empty() && *std::max_element(logits_.begin(), logits_.end()) == forbidden)
    return Error{"sampler-logits", "sampler option `logit_bias` forbids every token", {}, {}};
  return {};
}

Status Sampler::penalise(std::span<const std::int32_t> history) {
  counts_.resize(logits_.size(), 0);
  distinct_.clear();
  Status status;
  for (const std::int32_t id : history) {
    if (id < 0 || static_cast<std::size_t>(id) >= logits_.size()) {
      status = token_error("the history", id, logits_.size());
      break;
    }
    if (counts_[static_cast<std::size_t>(id)]++ == 0) distinct_.push_back(id);
  }
  for (const std::int32_t id : distinct_) {
    double& logit = logits_[static_cast<std::size_t>(id)];
    std::uint32_t& count = counts_[static_cast<std::size_t>(id)];
    if (options_.repetition_penalty != 1) logit = logit > 0 ? logit / options_.repetition_penalty : logit * options_.repetition_penalty;
    logit -= static_cast<double>(count) * options_.frequency_penalty + options_.presence_penalty;
    count = 0;
  }
  return status;
}

std::int32_t Sampler::greedy() const {
  return static_cast<std::int32_t>(std::max_element(logits_.begin(), logits_.end()) - logits_.begin());  // the first
}

void Sampler::filter() {
  const double largest = *std::max_element(logits_.begin(), logits_.end());
  const auto k = static_cast<std::size_t>(options_.top_k);
  const double least = k > 0 && k < logits_.size() ? kth_largest(k) : forbidden;
  candidates_.clear();
  for (std::size_t i = 0; i < logits_.size(); ++i)
    if (logits_[i] >= least && logits_[i] != forbidden) candidates_.push_back({static_cast<std::int32_t>(i), logits_[i], 0});
  weights_.resize(candidates_.size());
  const double temperature = options_.temperature;
  for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] = (candidates_[i].logit - largest) / temperature;
  for (double& w : weights_) w = exp_nonpositive(w);
  for (std::size_t i = 0; i < weights_.size(); ++i) candidates_[i].weight = weights_[i];
  // What the exponential function cannot tell from 0 is never drawn.
  std::erase_if(candidates_, [](const Candidate& c) { return c.weight == 0; });
  if (options_.top_p < 1) keep_top_p();
  // The largest weight is 1, and neither of the above removes it.
  if (options_.min_p > 0) std::erase_if(candidates_, [&](const Candidate& c) { return c.weight < static_cast<double>(options_.min_p); });
  if (options_.typical_p < 1) keep_typical(largest);
}

// With x = (logit - largest) / temperature, -log p is log(sum of weights) - x, and the entropy is its mean: the logarithm
// falls out of their difference.
void Sampler::keep_typical(double largest) {
  const double temperature = options_.temperature;
  double total = 0, mean = 0;
  for (const Candidate& c : candidates_) {
    total += c.weight;
    mean += c.weight * ((c.logit - largest) / temperature);
  }
  mean /= total;
  const auto shift = [&](const Candidate& c) { return std::abs((c.logit - largest) / temperature - mean); };
  sorted_ = candidates_;
  std::sort(sorted_.begin(), sorted_.end(), [&](const Candidate& a, const Candidate& b) {
    const double x = shift(a), y = shift(b);
    return x != y ? x < y : a.id < b.id;
  });
  const double wanted = static_cast<double>(options_.typical_p) * total;
  double sum = 0;
  std::size_t kept = 0;
  while (kept < sorted_.size() && (kept == 0 || sum < wanted)) sum += sorted_[kept++].weight;
  const double last = shift(sorted_[kept - 1]);
  std::erase_if(candidates_, [&](const Candidate& c) { return shift(c) > last; });
}

// One pass: a buffer of twice k (at least) is cut to its k largest whenever it is full, and from then on nothing below
// their least enters it.
double Sampler::kth_largest(std::size_t k) {
  const std::size_t capacity = std::max<std::size_t>(2 * k, 1024);
  double least = forbidden;
  top_.clear();
  const auto cut = [&] {
    std::nth_element(top_.begin(), top_.begin() + static_cast<std::ptrdiff_t>(k - 1), top_.end(), std::greater<>());
    top_.resize(k);
    least = top_[k - 1];
  };
  for (const double logit : logits_) {
    if (logit <= least) continue;
    top_.push_back(logit);
    if (top_.size() == capacity) cut();
  }
  if (top_.size() > k) cut();
  return top_.size() < k ? forbidden : *std::min_element(top_.begin(), top_.end());
}

void Sampler::keep_top_p() {
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  const double wanted = static_cast<double>(options_.top_p) * total;
  // What lies below the n-th part of the rest cannot be needed: all such together are less than the rest. Halved, so
  // that rounding does not matter; of a peaked distribution this leaves few to sort.
  const double small = 0.5 * (total - wanted) / static_cast<double>(candidates_.size());
  sorted_.clear();
  for (const Candidate& c : candidates_)
    if (c.weight >= small) sorted_.push_back(c);

  const auto order = [](const Candidate& a, const Candidate& b) { return before(a.logit, a.id, b.logit, b.id); };
  double sum = 0;
  std::size_t kept = 0;
  // Sorted block by block, each twice as large, as most distributions need only the first.
  for (std::size_t end = 0; kept == end && end < sorted_.size();) {
    const std::size_t begin = end;
    end = std::min(sorted_.size(), std::max<std::size_t>(256, 2 * end));
    const auto first = sorted_.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = sorted_.begin() + static_cast<std::ptrdiff_t>(end);
    if (last != sorted_.end()) std::nth_element(first, last, sorted_.end(), order);
    std::sort(first, last, order);
    while (kept < end && (kept == 0 || sum < wanted)) sum += sorted_[kept++].weight;
  }
  const Candidate& least = sorted_[kept - 1];
  std::erase_if(candidates_, [&](const Candidate& c) { return before(least.logit, least.id, c.logit, c.id); });
}

}  // namespace modelc

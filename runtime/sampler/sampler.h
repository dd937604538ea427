// Chooses the next token from the logits of one position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/sampler/random.h"

namespace modelc {

struct SamplerOptions {
  float temperature = 0;         // 0: greedy, the largest logit; else logits are divided by it
  std::int32_t top_k = 0;        // keep the k largest; 0: all
  float top_p = 1;               // keep the smallest set of the most probable that reaches this probability; 1: all
  float min_p = 0;               // keep what has at least this share of the largest probability; 0: all
  float typical_p = 1;           // keep the smallest set of the most typical that reaches this probability; 1: all
  float repetition_penalty = 1;  // > 1 makes tokens of the history less likely; 1: off
  float frequency_penalty = 0;   // taken from the logit of a token for each time that it stands in the history; 0: off
  float presence_penalty = 0;    // taken once from the logit of each token that stands there; 0: off
  std::uint64_t seed = 0;
  // Added to the logits of these tokens before all else; -infinity forbids a token. A token at most once.
  std::vector<std::pair<std::int32_t, float>> logit_bias = {};
};

// The first option that is out of range, by name ("sampler-option").
Status validate(const SamplerOptions& options);

struct TokenProbability {
  std::int32_t id;
  double probability;
};

// The order is that of transformers' generate():
//   1. logit bias
//   2. repetition penalty, once for each token of the history: logit / penalty where positive, logit * penalty else
//   3. frequency and presence penalty (which transformers does not have): logit - count * frequency - presence
//   4. temperature 0: the largest logit, the lowest id among equals, and nothing of the below; else logit / temperature
//   5. top-k: everything below the k-th largest goes (what equals it stays, so that more than k may)
//   6. top-p, of the probabilities renewed after 5: the most probable in turn until their sum reaches top_p, always at
//      least one; among equals the lower id comes first
//   7. min-p: everything below min_p times the largest probability goes
//   8. typical, of the probabilities renewed after 7: those whose surprise -log p is nearest to its mean (the entropy)
//      in turn until their sum reaches typical_p, always at least one; what is as near as the last stays too
//   9. one draw from what is left, renewed to a sum of 1
// The same options, logits and history give the same tokens on every machine: the generator, the exponential function
// and the order of every sum are fixed here.
class Sampler {
 public:
  static Result<Sampler> create(SamplerOptions options);

  // The next token. `logits` is one row of the vocabulary; `history` the tokens so far, prompt included (read only for
  // the penalties). Greedy draws nothing from the generator, else one number is drawn. Kinds of errors:
  // "sampler-logits" (none; NaN or infinite, with the token's id; all forbidden), "sampler-token" (a token of the
  // history or of logit_bias outside the vocabulary).
  Result<std::int32_t> sample(std::span<const float> logits, std::span<const std::int32_t> history = {});

  // What sample() would draw from: the tokens that are left, by id ascending, with a sum of 1.
  Result<std::vector<TokenProbability>> distribution(std::span<const float> logits, std::span<const std::int32_t> history = {});

  const SamplerOptions& options() const { return options_; }
  // Begins the sequence of random numbers anew.
  void reseed(std::uint64_t seed);

 private:
  struct Candidate {
    std::int32_t id;
    double logit;   // as adjusted, not divided by the temperature
    double weight;  // exp((logit - largest) / temperature), so in (0, 1] and not yet divided by a sum
  };

  explicit Sampler(SamplerOptions options);
  Status adjust(std::span<const float> logits, std::span<const std::int32_t> history);
  Status penalise(std::span<const std::int32_t> history);
  std::int32_t greedy() const;
  // Fills candidates_ from logits_: what is left after top-k, top-p, min-p and typical.
  void filter();
  double kth_largest(std::size_t k);
  void keep_top_p();
  void keep_typical(double largest);

  SamplerOptions options_;
  Random random_;
  // Scratch, kept so that a call allocates nothing.
  std::vector<double> logits_;         // [vocabulary] after bias and penalties; in double nothing overflows
  std::vector<std::uint32_t> counts_;  // [vocabulary] how often the history has the token; 0 between calls
  std::vector<std::int32_t> distinct_;  // the tokens of the history
  std::vector<double> top_, weights_;
  std::vector<Candidate> candidates_;  // by id ascending
  std::vector<Candidate> sorted_;
};

}  // namespace modelc

// Tokens from a model, one after another: chunked prefill, then a token a step.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/checkpoint/index.h"
#include "runtime/device/model.h"
#include "runtime/kv_cache/kv_cache.h"
#include "runtime/sampler/sampler.h"

namespace modelc {

struct GenerateOptions {
  std::int64_t max_tokens = 128;                           // new tokens at most
  std::int64_t chunk = 512;                                // tokens of the prompt in one call
  SamplerOptions sampler = {};
  std::vector<std::int32_t> stop_tokens = {};              // generation ends with one of these; it is not given out
  const std::atomic<bool>* cancel = nullptr;               // looked at before each step
};

enum class Finish : std::uint8_t { length, stop_token, stop_string, context, cancelled, callback };
struct GenerateResult {
  std::vector<std::int32_t> tokens = {};                   // new ones, without the stop token
  Finish finish = Finish::length;
  std::int64_t prompt_tokens = 0;
  double prefill_seconds = 0;                              // all of the prompt
  double first_token_seconds = 0;                          // from the call until the first token is chosen
  double decode_seconds = 0;                               // the steps after the first token
  std::int64_t decode_steps = 0;
};

// Appends `prompt` to `sequence` of `state` and generates from there. `on_token` is called with each new token; false ends
// it. Errors: an empty prompt, a prompt that does not fit the context (both numbers are said), a token outside the
// vocabulary, sampler options out of range. Reaching the context ends generation with Finish::context.
Result<GenerateResult> generate(Model& model, State& state, int sequence, std::span<const std::int32_t> prompt,
                                const GenerateOptions& options, const std::function<bool(std::int32_t)>& on_token = {});

// One of several sequences that are generated at once.
struct Prompt {
  int sequence = 0;                                        // slot in the State; each named once
  std::vector<std::int32_t> tokens = {};
  std::uint64_t seed = 0;                                  // of its own sampler, in the place of options.sampler.seed
};
// The same for several sequences: each prompt by itself, then a step for all that are not at their end. A sequence gives
// the tokens that it would give alone. `on_token` gets the number of the prompt in `prompts`; false ends that sequence. An
// interrupt ends all. The results are in the order of the prompts; times are those of the whole call.
Result<std::vector<GenerateResult>> generate_batch(Model& model, State& state, std::span<const Prompt> prompts,
                                                   const GenerateOptions& options,
                                                   const std::function<bool(std::size_t, std::int32_t)>& on_token = {});

// Ids of eos_token_id from generation_config.json beside the checkpoint, else of a GGUF's ends of text, turn and message,
// else from config.json; a number or a list.
Result<std::vector<std::int32_t>> stop_tokens_of(const CheckpointIndex& checkpoint);

}  // namespace modelc

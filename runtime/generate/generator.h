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
  SamplerOptions sampler;
  std::vector<std::int32_t> stop_tokens;                   // generation ends with one of these; it is not given out
  const std::atomic<bool>* cancel = nullptr;               // looked at before each step
};

enum class Finish : std::uint8_t { length, stop_token, context, cancelled, callback };
struct GenerateResult {
  std::vector<std::int32_t> tokens;                        // new ones, without the stop token
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

// Ids of eos_token_id from generation_config.json beside the checkpoint, else from config.json; a number or a list.
Result<std::vector<std::int32_t>> stop_tokens_of(const CheckpointIndex& checkpoint);

}  // namespace modelc

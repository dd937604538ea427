// A program of a user's names the options that it sets and no others: that must compile without a warning (this file is
// compiled with -Wall -Wextra -Werror).
#include <doctest/doctest.h>

#include "runtime/chat/chat.h"
#include "runtime/checkpoint/inspect.h"
#include "runtime/checkpoint/mapping.h"
#include "runtime/generate/compare.h"
#include "runtime/generate/text.h"
#include "runtime/modelc.h"

using namespace modelc;

TEST_CASE("options of which one member is named") {
  CHECK(SamplerOptions{.temperature = 0.5f}.logit_bias.empty());
  CHECK(SamplerOptions{.seed = 3}.top_p == 1.0f);
  CHECK(GenerateOptions{.max_tokens = 3}.stop_tokens.empty());
  CHECK(GenerateOptions{.sampler = {.top_k = 4}}.cancel == nullptr);
  CHECK(TextOptions{.stop = {"x"}}.count == 1);
  CHECK(TextOptions{.tokens = {.max_tokens = 1}}.stop.empty());
  CHECK(Prompt{.tokens = {1}}.seed == 0);
  CHECK(VerifyOptions{.within = 1}.chunk == 0);
  CHECK(ChatOptions{.add_generation_prompt = false}.tools.empty());
  CHECK(RenderOptions{.max_steps = 1}.max_depth > 0);
  CHECK(LoadOptions{.strict = false}.cpu.threads == 0);
  CHECK(CpuOptions{.threads = 1}.isa.empty());
  CHECK(StateOptions{.sequences = 2}.capacity == 0);
  CHECK(PrintHookOptions{.filter = {"**"}}.out == nullptr);
  CHECK(OpenOptions{.need_config = true}.allow_trailing == false);
  CHECK(JsonOptions{.max_depth = 3}.name == "JSON");
  CHECK(MappingOptions{.strict = false}.auto_cast == false);
  CHECK(InspectOptions{.every_tensor = true}.metadata_limit > 0);
}

// Text from a model: tokens become text as they come, and a stop string ends it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/generate/generator.h"
#include "runtime/tokenizer/tokenizer.h"

namespace modelc {

// Looks for stop strings in text that comes in pieces, and holds back what may begin one.
class StopFinder {
 public:
  // Empty strings are left out.
  explicit StopFinder(std::vector<std::string> stop);

  // What of the text so far can be given out: up to the first stop string, or to where one may begin. Of several that
  // begin at the same place the longest possible is not waited for: the first that is whole ends the text.
  std::string push(std::string_view piece);
  // What was held back, as no more comes.
  std::string finish();
  // Whether a stop string has come. After that nothing is given out any more.
  bool found() const { return found_; }

 private:
  std::vector<std::string> stop_;
  std::string waiting_;  // shorter than the longest stop string
  bool found_ = false;
};

struct TextOptions {
  GenerateOptions tokens;
  std::vector<std::string> stop;       // the text ends before the first of these; it is not given out
  int count = 1;                       // answers to the same prompt: sequences 0 .. count - 1 of the state, with the seeds
                                       // options.tokens.sampler.seed and the ones after it
  bool skip_special_tokens = true;
};

struct TextResult {
  std::string text;
  GenerateResult tokens;
  Finish finish() const { return tokens.finish; }
};

// Generates from `prompt` and calls `on_text` with each piece of text, of which none ends within a character nor holds the
// beginning of a stop string; false ends that answer. Errors: those of generate(), a state with too few sequences.
Result<std::vector<TextResult>> generate_text(Model& model, State& state, const Tokenizer& tokenizer,
                                              std::span<const std::int32_t> prompt, const TextOptions& options,
                                              const std::function<bool(int answer, std::string_view piece)>& on_text = {});

}  // namespace modelc

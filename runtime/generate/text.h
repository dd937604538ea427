// Text from a model: tokens become text as they come, and a stop string ends it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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

// The text of one sequence's tokens as they come: decoded, up to a stop string; and which of the tokens that text is.
class TextStream {
 public:
  // Without a tokenizer there is no text, and every token counts. The tokenizer must outlive it.
  TextStream(const Tokenizer* tokenizer, std::vector<std::string> stop, bool skip_special_tokens = true);

  // What can be given out after this token.
  std::string push(std::int32_t id);
  // What was held back, as no more tokens come. A stop string may still be found in it.
  std::string finish();
  bool stopped() const { return finder_.found(); }
  // How many tokens, from the first, have been given out whole; those that reach into a stop string never are.
  std::size_t tokens() const { return given_tokens_; }

 private:
  std::string give(const std::string& piece);

  std::optional<StreamingDecoder> decoder_;
  StopFinder finder_;
  bool holds_;                         // there are stop strings, so tokens may have to wait
  std::size_t pushed_ = 0, given_tokens_ = 0;
  std::size_t decoded_ = 0, given_ = 0;                    // bytes of text
  std::vector<std::size_t> ends_;      // where the text of each token ends, as far as that is known
};

struct TextOptions {
  GenerateOptions tokens = {};
  std::vector<std::string> stop = {};  // the text ends before the first of these; it is not given out
  int count = 1;                       // answers to the same prompt: sequences 0 .. count - 1 of the state, with the seeds
                                       // options.tokens.sampler.seed and the ones after it
  bool skip_special_tokens = true;
};

struct TextResult {
  std::string text;
  GenerateResult tokens;               // the tokens of that text: none that reaches into a stop string
  Finish finish() const { return tokens.finish; }
};

// Generates from `prompt` and calls `on_text` with each piece of text, of which none ends within a character nor holds the
// beginning of a stop string; false ends that answer. Errors: those of generate(), a state with too few sequences.
Result<std::vector<TextResult>> generate_text(Model& model, State& state, const Tokenizer& tokenizer, std::span<const std::int32_t> prompt,
                                              const TextOptions& options,
                                              const std::function<bool(int answer, std::string_view piece)>& on_text = {});

}  // namespace modelc

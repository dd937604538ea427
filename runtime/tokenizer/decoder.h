// The stage that turns tokens into text, written as a chain of steps through which tokens flow, so that decoding all at
// once and token by token is the same code.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/tokenizer/reader.h"

namespace modelc {

// One step at work. Tokens come in parts; `ends` says that the token ends with this part.
class DecodeStep {
 public:
  virtual ~DecodeStep() = default;
  virtual void push(std::string_view part, bool ends) = 0;
  // No more tokens come. Gives on what it held back and finishes the step after it.
  virtual void finish() = 0;
};

// How tokens are decoded, as the file says.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // A step that gives its tokens to `next`. `streaming`: give text on as soon as it is a whole character, even where
  // later tokens could change what it should have been.
  virtual std::unique_ptr<DecodeStep> begin(DecodeStep& next, bool streaming) const = 0;
};

// From the file's "decoder", Sequences laid flat, in order. Where the file has none, `without_decoder`: tokens with
// spaces between them.
std::vector<std::unique_ptr<Decoder>> read_decoders(const Reader& reader);
std::vector<std::unique_ptr<Decoder>> without_decoder();

// The steps of all decoders and the text that comes out at their end.
struct DecodeChain {
  DecodeChain(const std::vector<std::unique_ptr<Decoder>>& decoders, bool streaming);
  void push(std::string_view token) { first->push(token, true); }
  void finish() { first->finish(); }
  // What has come out since the last call.
  std::string take() { return std::exchange(text, {}); }

  std::string text;
  std::vector<std::unique_ptr<DecodeStep>> steps;  // from the last to the first
  DecodeStep* first = nullptr;
};

}  // namespace modelc

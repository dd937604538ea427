// The stage after the model: puts special tokens around the ids of a text.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/tokenizer/reader.h"

namespace modelc {

// One text, or two that belong together, as ids. A processor of the first may have put tokens into it already.
using IdRows = std::vector<std::vector<std::int32_t>>;

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  // `rows` are one or two; what comes out is read one after another. `add_special_tokens` false: only what is not about
  // special tokens.
  virtual void apply(IdRows& rows, bool add_special_tokens) const = 0;
};

// From the file's "post_processor"; null, after reader.fail(), for what is wrong or not carried out.
std::unique_ptr<PostProcessor> read_post_processor(const Reader& reader);

}  // namespace modelc

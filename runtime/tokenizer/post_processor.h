// The stage after the model: puts special tokens around the ids of a text.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/tokenizer/reader.h"

namespace modelc {

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  // `add_special_tokens` false: only what is not about special tokens.
  virtual void apply(std::vector<std::int32_t>& ids, bool add_special_tokens) const = 0;
};

// From the file's "post_processor"; null, after reader.fail(), for what is wrong or not carried out.
std::unique_ptr<PostProcessor> read_post_processor(const Reader& reader);

}  // namespace modelc

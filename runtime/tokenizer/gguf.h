// A tokenizer as the metadata of a GGUF holds it (tokenizer.ggml.*), brought into the form of tokenizer.json.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/metadata.h"
#include "runtime/base/result.h"
#include "runtime/tokenizer/model.h"

namespace modelc {

struct GgufTokenizer {
  Json stages;                   // tokenizer.json without what `model` holds
  std::unique_ptr<Model> model;  // null: stages has it
  std::vector<std::string> warnings;
};

// "tokenizer-field" where a key is missing or of another type, "tokenizer-unsupported" for a model or a way of cutting
// words that is not carried out, "tokenizer-vocabulary".
//   tokenizer.ggml.model  gpt2: byte-level BPE, cut as tokenizer.ggml.pre says · llama: BPE by the tokens' scores, with
//                         bytes for what is unknown · t5: unigram · bert: words in parts
Result<GgufTokenizer> read_gguf_tokenizer(const Metadata& metadata, const std::string& name);

}  // namespace modelc

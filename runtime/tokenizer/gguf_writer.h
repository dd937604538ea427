// A folder's tokenizer as the metadata of a GGUF holds it (tokenizer.ggml.*, tokenizer.chat_template), and the way back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/metadata.h"
#include "runtime/base/result.h"

namespace modelc {

// What lies in a folder beside the weights and concerns text. Null: the file is not there.
struct TokenizerFiles {
  Json tokenizer;                            // tokenizer.json
  Json tokenizer_config;                     // tokenizer_config.json
  Json generation_config;                    // generation_config.json
  Json config;                               // config.json, for the ids that nothing else says
  std::optional<std::string> chat_template;  // chat_template.jinja
};

// Whether metadata hold a tokenizer: a vocabulary that has places without texts ("no_vocab") is none.
bool has_gguf_tokenizer(const Metadata& metadata);

// Adds the keys. `vocabulary`: rows of the model's embedding; tokens that the tokenizer lacks become "[PAD7]", unused. What a
// GGUF has no place for, and changes nothing in the ids of a text, goes to `lost`, a line each. What would change them is
// refused ("tokenizer-unsupported"): a tokenizer whose steps are not those that a value of tokenizer.ggml.model and .pre
// stands for. The result is read back, and must give the same ids for every token's text and for texts in many scripts.
// Other kinds: "tokenizer-vocabulary", those of reading a tokenizer.
Status add_gguf_tokenizer(const TokenizerFiles& files, std::int64_t vocabulary, MetadataBuilder& to, std::vector<std::string>& lost);

// The same for the way back. Members that the metadata say nothing of stay null.
Result<TokenizerFiles> folder_tokenizer(const Metadata& metadata, const std::string& name);

}  // namespace modelc

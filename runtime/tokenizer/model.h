// The stage that turns words into ids.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/tokenizer/pieces.h"
#include "runtime/tokenizer/reader.h"
#include "runtime/tokenizer/vocabulary.h"

namespace modelc {

class Model {
 public:
  virtual ~Model() = default;
  // Appends the ids of all pieces in order; of those that have one, that one. Safe to call from several threads. Fails
  // ("tokenizer-text") where the vocabulary has nothing for a part of the text, not even an unknown token.
  virtual Status encode(const Pieces& pieces, std::vector<std::int32_t>& ids) const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
};

// The member "vocab", an object from tokens to ids; reader.fail() where it is wrong.
void read_vocabulary(const Reader& reader, Vocabulary& vocabulary);
// The ids of <0x00> .. <0xFF>, -1 where missing.
std::vector<std::int32_t> byte_tokens_of(const Vocabulary& vocabulary);

// From the file's "model"; null, after reader.fail(), for what is wrong or not carried out.
std::unique_ptr<Model> read_model(const Reader& reader);

}  // namespace modelc

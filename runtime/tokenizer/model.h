// The stage that turns words into ids.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/tokenizer/pieces.h"
#include "runtime/tokenizer/reader.h"
#include "runtime/tokenizer/vocabulary.h"

namespace modelc {

class Model {
 public:
  virtual ~Model() = default;
  // Appends the ids of all pieces in order; of those that have one, that one. Safe to call from several threads.
  virtual void encode(const Pieces& pieces, std::vector<std::int32_t>& ids) const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
};

// From the file's "model"; null, after reader.fail(), for what is wrong or not carried out.
std::unique_ptr<Model> read_model(const Reader& reader);

}  // namespace modelc

// The stage that turns a word into ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/reader.h"
#include "runtime/tokenizer/vocabulary.h"

namespace modelc {

class Model {
 public:
  virtual ~Model() = default;
  // Appends the ids of one piece of text, not empty. Safe to call from several threads.
  virtual void encode(std::string_view piece, std::vector<std::int32_t>& ids) const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
};

// From the file's "model"; null, after reader.fail(), for what is wrong or not carried out.
std::unique_ptr<Model> read_model(const Reader& reader);

}  // namespace modelc

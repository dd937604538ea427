// The stage before the text is split: it rewrites the text as a whole.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/tokenizer/reader.h"

namespace modelc {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Rewrites well-formed UTF-8 in place. Sets `front_gone` where nothing is left of the first character, so that what
  // comes out no longer begins where the text did: in the reference's eyes it is then no beginning (Piece::begins_text).
  virtual Status apply(std::string& text, bool& front_gone) const = 0;
};

// From the file's "normalizer"; null, after reader.fail(), for what is wrong or not carried out.
std::unique_ptr<Normalizer> read_normalizer(const Reader& reader);

}  // namespace modelc

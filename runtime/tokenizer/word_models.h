// Models that look words up: whole (WordLevel), or from the left in the longest parts that are tokens (WordPiece).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/model.h"
#include "runtime/tokenizer/piece_trie.h"

namespace modelc {

// A word that is no token becomes the unknown token.
class WordLevel : public Model {
 public:
  static std::unique_ptr<WordLevel> read(const Reader& reader);

  Status encode(const Pieces& pieces, std::vector<std::int32_t>& ids) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  Vocabulary vocabulary_;
  std::int32_t unknown_ = -1;
};

// Tokens are looked for that begin a word, and with `prefix` before them ("##") those that continue it. A word of which
// a part is no token becomes the unknown token as a whole, as does one of more than `longest` characters.
class WordPiece : public Model {
 public:
  struct Options {
    std::int32_t unknown = -1;
    std::string prefix = "##";
    std::int32_t longest = 100;
  };
  static std::unique_ptr<WordPiece> read(const Reader& reader);
  WordPiece(Vocabulary vocabulary, Options options);

  Status encode(const Pieces& pieces, std::vector<std::int32_t>& ids) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  Vocabulary vocabulary_;
  Options options_;
  PieceTrie trie_;
  std::uint32_t continued_ = PieceTrie::root;  // the node after `prefix`
};

}  // namespace modelc

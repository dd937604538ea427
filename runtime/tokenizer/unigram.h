// The unigram language model: of all ways to cut a word into tokens, the one whose scores (logarithms of probabilities)
// have the largest sum.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/model.h"
#include "runtime/tokenizer/piece_trie.h"
#include "runtime/tokenizer/word_cache.h"

namespace modelc {

class Unigram : public Model {
 public:
  struct Options {
    std::int32_t unknown = -1;   // id of the token for characters that no token covers; -1: they are an error
    bool byte_fallback = false;  // the tokens <0x00> .. <0xFF> for such characters, where all that are needed exist
  };
  // Null, after reader.fail(), for what is wrong or not carried out.
  static std::unique_ptr<Unigram> read(const Reader& reader);
  // `scores` by id; those of ids that the vocabulary does not have are not looked at.
  Unigram(Vocabulary vocabulary, std::vector<double> scores, Options options);

  Status encode(const Pieces& pieces, std::vector<std::int32_t>& ids) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  // The best way to reach a place in the word: the token that ends there and where it begins.
  struct Best {
    double score = 0;
    std::size_t begin = unreached;
    std::int32_t id = -1;
  };
  static constexpr std::size_t unreached = static_cast<std::size_t>(-1);
  Status encode_word(std::string_view word, std::vector<Best>& best, std::vector<std::int32_t>& ids) const;

  Vocabulary vocabulary_;
  std::vector<double> scores_;
  Options options_;
  PieceTrie trie_;
  std::vector<std::int32_t> byte_tokens_;  // by byte, -1 where missing; empty without byte_fallback
  double unknown_score_ = 0;
  mutable WordCache cache_;
};

}  // namespace modelc

// Byte-pair encoding: a word begins as its characters, and of all pairs of neighbours the one whose merge has the
// lowest rank is merged, the leftmost first, until no pair has a merge.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/model.h"
#include "runtime/tokenizer/word_cache.h"

namespace modelc {

// From pairs of ids to the rank of their merge and what they become.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank;  // `none` where the pair has no merge
    std::int32_t id;
  };
  static constexpr std::uint32_t none = 0xFFFFFFFF;

  void reserve(std::size_t merges);
  void set(std::int32_t left, std::int32_t right, Merge merge);  // replaces one that is there
  // Begins to bring into the cache what set() and find() will look at.
  void prefetch(std::int32_t left, std::int32_t right) const { __builtin_prefetch(&slots_[slot(pack(left, right))]); }
  Merge find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key = pack(left, right);
    for (std::size_t at = slot(key);; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return slots_[at].merge;
      if (slots_[at].key == empty) return {none, -1};
    }
  }

 private:
  static constexpr std::uint64_t empty = ~std::uint64_t{0};  // no pair: ids are not negative
  struct Slot {
    std::uint64_t key = empty;
    Merge merge{none, -1};
  };
  static std::uint64_t pack(std::int32_t left, std::int32_t right) {
    return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32) | static_cast<std::uint32_t>(right);
  }
  std::size_t slot(std::uint64_t key) const { return ((key * 0x9E3779B97F4A7C15u) >> 20) & mask_; }

  std::vector<Slot> slots_ = std::vector<Slot>(2);
  std::size_t mask_ = 1, used_ = 0;
};

// Merges `symbols` in place. Two ways to the same result: `short_word` looks through all pairs for each merge,
// `long_word` keeps them in a priority queue and takes time n log n.
void merge_short_word(const MergeTable& merges, std::vector<std::int32_t>& symbols);
void merge_long_word(const MergeTable& merges, std::vector<std::int32_t>& symbols);

class Bpe : public Model {
 public:
  // Null, after reader.fail(), for what is wrong or not carried out.
  static std::unique_ptr<Bpe> read(const Reader& reader);

  // As sentencepiece has it: of two neighbours whose union is a token the best score is merged first. `merged` says which
  // tokens may come of that; bytes for what is unknown, then `unknown` (-1: left out). `scores` and `merged` by id.
  // A token of more than 256 bytes comes of no merge.
  static std::unique_ptr<Bpe> by_score(Vocabulary vocabulary, const std::vector<double>& scores, const std::vector<bool>& merged,
                                       std::int32_t unknown);

  Status encode(const Pieces& pieces, std::vector<std::int32_t>& ids) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  void read_merges(const Reader& reader);
  std::int32_t find_merged(std::string_view left, std::string_view right, std::int32_t guess) const;
  void index_characters();
  std::int32_t character_id(std::string_view character) const;
  void encode_word(std::string_view word, WordCache::Use& cache, std::vector<std::int32_t>& symbols, std::vector<std::int32_t>& ids) const;
  // The ids of the characters of `word`, before any merge.
  void symbols_of(std::string_view word, std::vector<std::int32_t>& symbols) const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  std::vector<std::int32_t> characters_;   // id by code below 0x800, -1 where there is none
  std::vector<std::int32_t> byte_tokens_;  // id of <0x00> .. <0xFF>, -1 where missing; empty without byte_fallback
  std::int32_t unknown_ = -1;              // id of unk_token; -1: unknown characters are left out
  bool fuse_unknown_ = false;              // one unk_token for a run of unknown characters
  std::string prefix_;                     // mark before every character but the first of a word
  std::string suffix_;                     // mark after the last one
  bool ignore_merges_ = false;             // a word that is a token becomes that token, whatever the merges say
  mutable WordCache cache_;
};

}  // namespace modelc

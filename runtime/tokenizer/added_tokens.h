// Tokens that are found in the text itself, before anything else happens to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/tokenizer/normalizer.h"
#include "runtime/tokenizer/pieces.h"
#include "runtime/tokenizer/reader.h"
#include "runtime/tokenizer/vocabulary.h"

namespace modelc {

struct AddedToken {
  std::string content;
  std::string spelling;  // what text is searched for it: the content, or its normal form if `normalized`
  std::int32_t id = 0;
  bool single_word = false;  // only where no letter or digit touches it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and after it
  bool normalized = false;   // searched for in the normalised text, else in the raw one
  bool special = false;      // left out when decoding, if asked for
};

// A set of strings that finds the longest one beginning at a place.
class Trie {
 public:
  void add(std::string_view key, std::size_t value);  // of equals the first stays
  bool empty() const { return nodes_.size() == 1; }
  struct Found {
    std::size_t begin, end, value;
  };
  // The first place from `at` on where a key begins, with the longest there.
  std::optional<Found> find(std::string_view text, std::size_t at) const;

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  struct Node {
    std::vector<std::pair<unsigned char, std::uint32_t>> next;  // by byte
    std::size_t value = none;
  };
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::array<std::uint32_t, 256> first_{};  // the root's next, 0 where there is none
};

class AddedTokens {
 public:
  // From the file's "added_tokens" (`list`). A token that the model's vocabulary has keeps its id there, the others are
  // numbered on from it, as the reference does; ids in the file that disagree give a warning.
  static AddedTokens read(const std::vector<Reader>& list, const Vocabulary& vocabulary, const Normalizer* normalizer,
                          std::vector<std::string>& warnings);

  // The text (well-formed) in pieces: added tokens, and between them what `normalizer` (or null) makes of the rest.
  Result<Pieces> extract(std::string_view text, const Normalizer* normalizer) const;

  const AddedToken* find(std::int32_t id) const;
  const AddedToken* find(std::string_view content) const;
  const std::vector<AddedToken>& all() const { return tokens_; }

 private:
  // Calls found(token, {}) for each added token in `text`, and found(null, part) for what is between them, in order.
  template <class F> Status scan(const Trie& trie, std::string_view text, const F& found) const;

  std::vector<AddedToken> tokens_;
  Trie raw_, normalized_;  // values are positions in tokens_
  std::unordered_map<std::int32_t, std::size_t> by_id_;
  std::unordered_map<std::string, std::size_t> by_content_;
};

}  // namespace modelc

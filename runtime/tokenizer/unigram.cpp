#include "runtime/tokenizer/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "runtime/base/strings.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc {

namespace {

// How much worse than the worst token an unknown character is: kUnkPenalty of sentencepiece.
constexpr double unknown_penalty = 10;

std::size_t bytes_of(const Vocabulary& vocabulary) {
  std::size_t bytes = 0;
  for (std::int32_t id = 0; id < vocabulary.end(); ++id)
    if (vocabulary.has(id)) bytes += vocabulary.token(id).size();
  return bytes;
}

}  // namespace

Unigram::Unigram(Vocabulary vocabulary, std::vector<double> scores, Options options)
    : vocabulary_(std::move(vocabulary)), scores_(std::move(scores)), options_(options), trie_(bytes_of(vocabulary_)) {
  double least = std::numeric_limits<double>::infinity();
  for (std::int32_t id = 0; id < vocabulary_.end(); ++id) {
    if (!vocabulary_.has(id)) continue;
    trie_.add(vocabulary_.token(id), id);
    least = std::min(least, scores_[static_cast<std::size_t>(id)]);
  }
  unknown_score_ = least - unknown_penalty;
  if (options_.byte_fallback) byte_tokens_ = byte_tokens_of(vocabulary_);
}

Status Unigram::encode(const Pieces& pieces, std::vector<std::int32_t>& ids) const {
  WordCache::Use cache(cache_);
  std::vector<Best> best;
  std::vector<std::int32_t> word_ids;
  for (const Piece& p : pieces.pieces) {
    if (!p.is_text()) {
      ids.push_back(p.id);
      continue;
    }
    const std::string_view word = pieces.view(p);
    const std::uint64_t hash = hash_bytes(word);
    if (const std::vector<std::int32_t>* found = cache.find(word, hash)) {
      ids.insert(ids.end(), found->begin(), found->end());
      continue;
    }
    word_ids.clear();
    if (Status status = encode_word(word, best, word_ids); !status) return status;
    ids.insert(ids.end(), word_ids.begin(), word_ids.end());
    cache.keep(word, hash, word_ids);
  }
  return {};
}

// Forward from the left: best[i] is the best way to cut what is before byte i. Time: the length of the word times that
// of the longest token.
Status Unigram::encode_word(std::string_view word, std::vector<Best>& best, std::vector<std::int32_t>& ids) const {
  best.assign(word.size() + 1, {});
  const auto reach = [&](std::size_t begin, std::size_t end, std::int32_t id, double score) {
    Best& b = best[end];
    if (b.begin != unreached && score <= b.score) return;
    b = {score, begin, id};
  };
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t character = utf8::next(word, at).size;
    const double so_far = best[at].score;
    bool covered = false;  // by a token that is this one character
    std::uint32_t node = PieceTrie::root;
    for (std::size_t end = at; end < word.size();) {
      node = trie_.next(node, word[end++]);
      if (node == PieceTrie::none) break;
      const std::int32_t id = trie_.id(node);
      if (id < 0) continue;
      reach(at, end, id, so_far + scores_[static_cast<std::size_t>(id)]);
      if (end == at + character) covered = true;
    }
    if (!covered) {
      if (options_.unknown < 0)
        return Error{"tokenizer-text",
                     "no token covers " + quote(word.substr(at, character)) + ", and the file names no unk_id",
                     {},
                     "the vocabulary is not made for this text"};
      reach(at, at + character, options_.unknown, so_far + unknown_score_);
    }
    at += character;
  }
  // Back from the end; neighbouring unknown characters are one.
  const std::size_t first = ids.size();
  for (std::size_t end = word.size(); end > 0;) {
    const std::int32_t id = best[end].id;
    std::size_t begin = best[end].begin;
    if (id != options_.unknown) {
      ids.push_back(id);
      end = begin;
      continue;
    }
    while (begin > 0 && best[begin].id == id) begin = best[begin].begin;
    const std::string_view part = word.substr(begin, end - begin);
    const auto byte_token = [&](char b) { return byte_tokens_[static_cast<unsigned char>(b)]; };
    // Put together they may be a token, as the reference looks them up.
    if (const std::int32_t whole = vocabulary_.find(part); whole >= 0) {
      ids.push_back(whole);
    } else if (!byte_tokens_.empty() && std::all_of(part.begin(), part.end(), [&](char b) { return byte_token(b) >= 0; })) {
      for (auto b = part.rbegin(); b != part.rend(); ++b) ids.push_back(byte_token(*b));
    } else {
      ids.push_back(id);
    }
    end = begin;
  }
  std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
  return {};
}

std::unique_ptr<Unigram> Unigram::read(const Reader& reader) {
  reader.only({"type", "unk_id", "vocab", "byte_fallback"});
  const Reader vocab = reader.member("vocab");
  const JsonArray* list = vocab.json().as_array();
  if (!list || list->empty()) {
    vocab.fail("tokenizer-field", "expected an array of tokens with their scores, [\"a\", -2.5]");
    return nullptr;
  }
  Vocabulary vocabulary;
  std::size_t bytes = 0;
  for (const Json& entry : *list)
    if (const JsonArray* pair = entry.as_array(); pair && !pair->empty())
      if (const std::string* token = (*pair)[0].as_string()) bytes += token->size();
  vocabulary.reserve(list->size(), bytes);
  std::vector<double> scores;
  scores.reserve(list->size());
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Json& entry = (*list)[i];
    const auto at = [&] { return Reader(entry, "model.vocab[" + std::to_string(i) + "]", reader.state()); };
    const JsonArray* pair = entry.as_array();
    const std::string* token = pair && pair->size() == 2 ? (*pair)[0].as_string() : nullptr;
    const std::optional<double> score = token ? (*pair)[1].as_double() : std::nullopt;
    if (!score || !std::isfinite(*score)) {
      at().fail("tokenizer-vocabulary", "expected a token with its score, [\"a\", -2.5]");
      return nullptr;
    }
    if (vocabulary.add(*token, static_cast<std::int32_t>(i)) != Vocabulary::Added::yes) {
      at().fail("tokenizer-vocabulary", "the token " + quote(*token) + " stands in the vocabulary before");
      return nullptr;
    }
    scores.push_back(*score);
  }
  Options options;
  options.byte_fallback = reader.boolean("byte_fallback", false);
  if (reader.has("unk_id")) {
    options.unknown = reader.whole("unk_id");
    if (reader.ok() && !vocabulary.has(options.unknown))
      reader.member("unk_id").fail("tokenizer-vocabulary", "the vocabulary has no id " + std::to_string(options.unknown) +
                                                               ", its largest is " + std::to_string(vocabulary.end() - 1));
  }
  if (!reader.ok()) return nullptr;
  return std::make_unique<Unigram>(std::move(vocabulary), std::move(scores), options);
}

}  // namespace modelc

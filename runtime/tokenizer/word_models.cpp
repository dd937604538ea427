#include "runtime/tokenizer/word_models.h"

#include <utility>

#include "runtime/base/strings.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc {

namespace {

// The id of the member "unk_token"; a file without the token cannot encode every text.
std::int32_t read_unknown(const Reader& reader, const Vocabulary& vocabulary) {
  const std::string token = reader.string("unk_token");
  const std::int32_t id = vocabulary.find(token);
  if (id < 0 && reader.ok())
    reader.member("unk_token").fail("tokenizer-vocabulary", "the token " + quote(token) + " is not in the vocabulary");
  return id;
}

}  // namespace

std::unique_ptr<WordLevel> WordLevel::read(const Reader& reader) {
  reader.only({"type", "vocab", "unk_token"});
  auto model = std::make_unique<WordLevel>();
  read_vocabulary(reader, model->vocabulary_);
  if (!reader.ok()) return nullptr;
  model->unknown_ = read_unknown(reader, model->vocabulary_);
  if (!reader.ok()) return nullptr;
  return model;
}

Status WordLevel::encode(const Pieces& pieces, std::vector<std::int32_t>& ids) const {
  for (const Piece& p : pieces.pieces) {
    std::int32_t id = p.id;
    if (p.is_text()) id = vocabulary_.find(pieces.view(p));
    ids.push_back(id >= 0 ? id : unknown_);
  }
  return {};
}

WordPiece::WordPiece(Vocabulary vocabulary, Options options) : vocabulary_(std::move(vocabulary)), options_(std::move(options)) {
  for (std::int32_t id = 0; id < vocabulary_.end(); ++id)
    if (vocabulary_.has(id)) trie_.add(vocabulary_.token(id), id);
  for (const char c : options_.prefix)
    if (continued_ != PieceTrie::none) continued_ = trie_.next(continued_, c);
}

Status WordPiece::encode(const Pieces& pieces, std::vector<std::int32_t>& ids) const {
  for (const Piece& p : pieces.pieces) {
    if (!p.is_text()) {
      ids.push_back(p.id);
      continue;
    }
    const std::string_view word = pieces.view(p);
    const std::size_t first = ids.size();
    std::size_t at = 0;
    const bool short_enough = utf8::count(word) <= static_cast<std::size_t>(options_.longest);
    while (short_enough && at < word.size()) {
      std::uint32_t node = at == 0 ? PieceTrie::root : continued_;
      std::size_t end = at, longest = at;
      std::int32_t id = -1;
      while (end < word.size() && node != PieceTrie::none) {
        node = trie_.next(node, word[end++]);
        if (node == PieceTrie::none || trie_.id(node) < 0) continue;
        longest = end;
        id = trie_.id(node);
      }
      if (id < 0) break;
      ids.push_back(id);
      at = longest;
    }
    if (short_enough && at == word.size()) continue;
    ids.resize(first);
    ids.push_back(options_.unknown);
  }
  return {};
}

std::unique_ptr<WordPiece> WordPiece::read(const Reader& reader) {
  reader.only({"type", "vocab", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word"});
  Vocabulary vocabulary;
  read_vocabulary(reader, vocabulary);
  if (!reader.ok()) return nullptr;
  Options options;
  options.unknown = read_unknown(reader, vocabulary);
  options.prefix = reader.string("continuing_subword_prefix");
  options.longest = reader.whole("max_input_chars_per_word");
  if (!reader.ok()) return nullptr;
  return std::make_unique<WordPiece>(std::move(vocabulary), std::move(options));
}

}  // namespace modelc

#include "runtime/tokenizer/word_cache.h"

namespace modelc {

const std::vector<std::int32_t>* WordCache::Use::find(std::string_view word, std::uint64_t hash) const {
  if (!lock_.owns_lock() || !cache_.entries_) return nullptr;
  const Entry& e = cache_.entries_[hash % slots];
  return e.hash == hash && e.word == word ? &e.ids : nullptr;
}

void WordCache::Use::keep(std::string_view word, std::uint64_t hash, const std::vector<std::int32_t>& ids) {
  if (!lock_.owns_lock() || word.size() > longest) return;
  if (!cache_.entries_) cache_.entries_ = std::make_unique<Entry[]>(slots);
  Entry& e = cache_.entries_[hash % slots];
  e.hash = hash;
  e.word.assign(word);
  e.ids = ids;
}

}  // namespace modelc

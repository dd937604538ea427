#include "runtime/tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <queue>

#include "runtime/base/strings.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc {

namespace {

// The two parts of an entry of "merges", "a b" or ["a", "b"]; both empty, without data, for a line "#version..". Gives
// what is wrong, if anything.
std::string merge_parts(const Json& entry, std::string_view& left, std::string_view& right) {
  left = right = {};
  if (const std::string* text = entry.as_string()) {
    if (text->starts_with("#version")) return {};
    const std::size_t space = text->find(' ');
    if (space == std::string::npos || text->find(' ', space + 1) != std::string::npos)
      return "expected two tokens with one space between them, found " + quote(*text);
    left = std::string_view(*text).substr(0, space);
    right = std::string_view(*text).substr(space + 1);
    return {};
  }
  const JsonArray* pair = entry.as_array();
  const std::string* a = pair && pair->size() == 2 ? (*pair)[0].as_string() : nullptr;
  const std::string* b = pair && pair->size() == 2 ? (*pair)[1].as_string() : nullptr;
  if (!a || !b) return "expected \"a b\" or [\"a\", \"b\"]";
  left = *a, right = *b;
  return {};
}

// Up to here looking through the pairs is faster than a queue.
constexpr std::size_t short_word = 24;

}  // namespace

void MergeTable::reserve(std::size_t merges) {
  std::vector<Slot> old(std::bit_ceil(std::max<std::size_t>(merges + merges / 2, 2)));
  old.swap(slots_);
  mask_ = slots_.size() - 1;
  used_ = 0;
  for (const Slot& s : old)
    if (s.key != empty) set(static_cast<std::int32_t>(s.key >> 32), static_cast<std::int32_t>(s.key), s.merge);
}

void MergeTable::set(std::int32_t left, std::int32_t right, Merge merge) {
  if (4 * (used_ + 1) > 3 * slots_.size()) reserve(2 * slots_.size());
  const std::uint64_t key = pack(left, right);
  std::size_t at = slot(key);
  while (slots_[at].key != empty && slots_[at].key != key) at = (at + 1) & mask_;
  if (slots_[at].key == empty) ++used_;
  slots_[at] = {key, merge};
}

void merge_short_word(const MergeTable& merges, std::vector<std::int32_t>& symbols) {
  if (symbols.size() < 2) return;
  // pairs[i]: the merge of symbols i and i + 1.
  std::vector<MergeTable::Merge> pairs(symbols.size() - 1);
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = merges.find(symbols[i], symbols[i + 1]);
  while (!pairs.empty()) {
    const auto best = std::min_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    if (best->rank == MergeTable::none) return;
    const std::size_t i = static_cast<std::size_t>(best - pairs.begin());
    symbols[i] = best->id;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    pairs.erase(best);
    if (i > 0) pairs[i - 1] = merges.find(symbols[i - 1], symbols[i]);
    if (i < pairs.size()) pairs[i] = merges.find(symbols[i], symbols[i + 1]);
  }
}

void merge_long_word(const MergeTable& merges, std::vector<std::int32_t>& symbols) {
  if (symbols.size() < 2) return;
  constexpr std::uint32_t end = 0xFFFFFFFF;
  // A list of symbols linked both ways; one that was merged into its left neighbour has no pair and is not linked to.
  struct Link {
    std::int32_t id;
    std::uint32_t previous, next;
    MergeTable::Merge pair;  // with the next
  };
  const std::size_t n = symbols.size();
  std::vector<Link> links(n);
  // Rank above position: the queue's order, and all that an entry needs. It is stale where its pair has another rank
  // now.
  using Entry = std::uint64_t;
  std::vector<Entry> entries;
  entries.reserve(n);
  const auto entry = [&](std::size_t i) { return (Entry{links[i].pair.rank} << 32) | i; };
  for (std::size_t i = 0; i < n; ++i) {
    links[i] = {symbols[i], static_cast<std::uint32_t>(i - 1), i + 1 < n ? static_cast<std::uint32_t>(i + 1) : end,
                i + 1 < n ? merges.find(symbols[i], symbols[i + 1]) : MergeTable::Merge{MergeTable::none, -1}};
    if (links[i].pair.rank != MergeTable::none) entries.push_back(entry(i));
  }
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue(std::greater<>(), std::move(entries));
  const auto pair_again = [&](std::uint32_t i) {
    Link& l = links[i];
    l.pair = l.next == end ? MergeTable::Merge{MergeTable::none, -1} : merges.find(l.id, links[l.next].id);
    if (l.pair.rank != MergeTable::none) queue.push(entry(i));
  };
  while (!queue.empty()) {
    const Entry top = queue.top();
    queue.pop();
    const auto i = static_cast<std::uint32_t>(top);
    Link& left = links[i];
    if (left.pair.rank != static_cast<std::uint32_t>(top >> 32)) continue;
    Link& right = links[left.next];
    left.id = left.pair.id;
    right.pair.rank = MergeTable::none;
    left.next = right.next;
    if (left.next != end) links[left.next].previous = i;
    pair_again(i);
    if (i != 0) pair_again(left.previous);
  }
  symbols.clear();
  for (std::uint32_t i = 0; i != end; i = links[i].next) symbols.push_back(links[i].id);
}

std::int32_t Bpe::character_id(std::string_view character) const {
  const utf8::Character c = utf8::next(character, 0);
  return c.code < characters_.size() ? characters_[c.code] : vocabulary_.find(character);
}

void Bpe::symbols_of(std::string_view word, std::vector<std::int32_t>& symbols) const {
  // An unknown character waits for the next one, which may belong to the same run. One whose bytes are all tokens does
  // not end the run, so the run's unk_token comes after it: odd, but so the reference has it.
  bool waiting = false;
  const bool marked = !prefix_.empty() || !suffix_.empty();
  std::string with_marks;
  for (std::size_t at = 0; at < word.size();) {
    std::string_view character = word.substr(at, utf8::next(word, at).size);
    const bool first = at == 0, last = at + character.size() == word.size();
    at += character.size();
    if (marked) {
      with_marks.assign(first ? std::string_view() : prefix_).append(character).append(last ? suffix_ : "");
      character = with_marks;
    }
    if (const std::int32_t id = marked ? vocabulary_.find(character) : character_id(character); id >= 0) {
      if (waiting) symbols.push_back(unknown_);
      waiting = false;
      symbols.push_back(id);
      continue;
    }
    if (!byte_tokens_.empty()) {
      const auto token = [&](char b) { return byte_tokens_[static_cast<unsigned char>(b)]; };
      if (std::all_of(character.begin(), character.end(), [&](char b) { return token(b) >= 0; })) {
        for (const char b : character) symbols.push_back(token(b));
        continue;
      }
    }
    if (unknown_ < 0) continue;
    if (waiting && !fuse_unknown_) symbols.push_back(unknown_);
    waiting = true;
  }
  if (waiting) symbols.push_back(unknown_);
}

Status Bpe::encode(const Pieces& pieces, std::vector<std::int32_t>& ids) const {
  WordCache::Use cache(cache_);
  std::vector<std::int32_t> symbols;
  for (const Piece& p : pieces.pieces) {
    if (p.is_text()) encode_word(pieces.view(p), cache, symbols, ids);
    else ids.push_back(p.id);
  }
  return {};
}

void Bpe::encode_word(std::string_view word, WordCache::Use& cache, std::vector<std::int32_t>& symbols,
                      std::vector<std::int32_t>& ids) const {
  const std::uint64_t hash = hash_bytes(word);
  if (const std::vector<std::int32_t>* found = cache.find(word, hash)) {
    ids.insert(ids.end(), found->begin(), found->end());
    return;
  }
  symbols.clear();
  const std::int32_t whole = ignore_merges_ ? vocabulary_.find(word, hash) : -1;
  if (whole >= 0) {
    symbols.push_back(whole);
  } else {
    symbols_of(word, symbols);
    if (symbols.size() <= short_word) merge_short_word(merges_, symbols);
    else merge_long_word(merges_, symbols);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.end());
  cache.keep(word, hash, symbols);
}

// The id of left + right. Merges stand in the order of the tokens that they make, so that `guess`, the id of the merge
// before, or the one after it is nearly always right.
std::int32_t Bpe::find_merged(std::string_view left, std::string_view right, std::int32_t guess) const {
  for (const std::int32_t id : {guess, guess + 1}) {
    if (!vocabulary_.has(id)) continue;
    const std::string_view token = vocabulary_.token(id);
    if (token.size() == left.size() + right.size() && token.starts_with(left) && token.ends_with(right)) return id;
  }
  return vocabulary_.find(std::string(left).append(right));
}

void Bpe::read_merges(const Reader& reader) {
  const Reader merges = reader.member("merges");
  const JsonArray* list = merges.json().as_array();
  if (!list) return merges.fail("tokenizer-field", "expected an array of merges");
  merges_.reserve(list->size());
  struct Parts {
    std::string_view left, right;
    std::uint64_t left_hash, right_hash;
  };
  // Looking up is mostly waiting for memory, so a few merges are under way at a time.
  constexpr std::size_t ahead = 16;
  Parts waiting[ahead];
  std::size_t begun = 0;
  struct Found {
    std::int32_t left = -1, right = -1;
    MergeTable::Merge merge{};
  };
  Found found[ahead];  // to be set
  const auto set = [&](Found& f) {
    if (f.left >= 0) merges_.set(f.left, f.right, f.merge);
    f.left = -1;
  };
  std::int32_t guess = 0;
  std::uint32_t rank = 0;
  const auto fail = [&](std::size_t i, const std::string& what) {
    Reader((*list)[i], "model.merges[" + std::to_string(i) + "]", reader.state()).fail("tokenizer-vocabulary", what);
  };
  for (std::size_t i = 0; i < list->size(); ++i) {
    for (; begun < list->size() && begun < i + ahead; ++begun) {
      Parts& p = waiting[begun % ahead];
      if (const std::string problem = merge_parts((*list)[begun], p.left, p.right); !problem.empty()) return fail(begun, problem);
      vocabulary_.prefetch(p.left_hash = hash_bytes(p.left));
      vocabulary_.prefetch(p.right_hash = hash_bytes(p.right));
    }
    const Parts& p = waiting[i % ahead];
    Found& place = found[i % ahead];
    set(place);
    if (p.left.data() == nullptr) continue;  // "#version"
    const std::int32_t left = vocabulary_.find(p.left, p.left_hash), right = vocabulary_.find(p.right, p.right_hash);
    // The right part goes on with the word, so that its mark is not part of what the two become.
    const std::string_view joined = p.right.substr(std::min(prefix_.size(), p.right.size()));
    const std::int32_t merged = find_merged(p.left, joined, guess);
    if (left < 0 || right < 0 || merged < 0)
      return fail(i, "the token " +
                         quote(left < 0    ? p.left
                               : right < 0 ? p.right
                                           : std::string(p.left).append(joined)) +
                         " is not in the vocabulary");
    merges_.prefetch(left, right);
    place = {left, right, {rank++, merged}};
    guess = merged;
  }
  for (std::size_t i = 0; i < ahead; ++i) set(found[(list->size() + i) % ahead]);
}

void Bpe::index_characters() {
  characters_.assign(0x800, -1);
  std::string character;
  for (char32_t c = 0; c < characters_.size(); ++c) {
    character.clear();
    utf8::append(character, c);
    characters_[c] = vocabulary_.find(character);
  }
}

std::unique_ptr<Bpe> Bpe::read(const Reader& reader) {
  reader.only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback",
               "ignore_merges", "vocab", "merges"});
  if (reader.has("dropout") && reader.member("dropout").json().as_double().value_or(1) != 0)
    reader.member("dropout").fail("tokenizer-unsupported", "merging with dropout, at random, is not carried out",
                                  "it is meant for training: set it to null");
  auto bpe = std::make_unique<Bpe>();
  bpe->fuse_unknown_ = reader.boolean("fuse_unk", false);
  bpe->ignore_merges_ = reader.boolean("ignore_merges", false);
  if (reader.has("continuing_subword_prefix")) bpe->prefix_ = reader.string("continuing_subword_prefix");
  if (reader.has("end_of_word_suffix")) bpe->suffix_ = reader.string("end_of_word_suffix");
  read_vocabulary(reader, bpe->vocabulary_);
  if (!reader.ok()) return nullptr;
  bpe->read_merges(reader);
  bpe->index_characters();
  if (reader.has("unk_token")) {
    const std::string token = reader.string("unk_token");
    bpe->unknown_ = bpe->vocabulary_.find(token);
    if (bpe->unknown_ < 0)
      reader.member("unk_token").fail("tokenizer-vocabulary", "the token " + quote(token) + " is not in the vocabulary");
  }
  if (reader.boolean("byte_fallback", false)) bpe->byte_tokens_ = byte_tokens_of(bpe->vocabulary_);
  if (!reader.ok()) return nullptr;
  return bpe;
}

std::unique_ptr<Bpe> Bpe::by_score(Vocabulary vocabulary, const std::vector<double>& scores, const std::vector<bool>& merged,
                                   std::int32_t unknown) {
  auto bpe = std::make_unique<Bpe>();
  bpe->vocabulary_ = std::move(vocabulary);
  const Vocabulary& tokens = bpe->vocabulary_;
  std::vector<std::int32_t> order;
  for (std::int32_t id = 0; id < tokens.end(); ++id)
    if (tokens.has(id) && merged[static_cast<std::size_t>(id)]) order.push_back(id);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  // All pairs of a token have its rank, and those of equal scores the same one: of equals the leftmost is merged.
  std::uint32_t rank = 0;
  constexpr std::size_t longest = 256;  // bytes of a token whose parts are looked for
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int32_t id = order[i];
    if (i > 0 && scores[static_cast<std::size_t>(id)] != scores[static_cast<std::size_t>(order[i - 1])]) ++rank;
    const std::string_view token = tokens.token(id);
    if (token.size() > longest) continue;
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      if ((static_cast<unsigned char>(token[cut]) & 0xC0) == 0x80) continue;  // within a character
      const std::int32_t left = tokens.find(token.substr(0, cut)), right = tokens.find(token.substr(cut));
      if (left >= 0 && right >= 0) bpe->merges_.set(left, right, {rank, id});
    }
  }
  bpe->index_characters();
  bpe->unknown_ = unknown;
  bpe->fuse_unknown_ = true;
  bpe->byte_tokens_ = byte_tokens_of(tokens);
  return bpe;
}

}  // namespace modelc

#include "runtime/tokenizer/added_tokens.h"

#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/tokenizer/unicode.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc {

void Trie::add(std::string_view key, std::size_t value) {
  if (key.empty()) return;
  std::uint32_t at = 0;
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    auto& next = nodes_[at].next;
    const auto found = std::lower_bound(next.begin(), next.end(), byte, [](const auto& n, auto b) { return n.first < b; });
    if (found != next.end() && found->first == byte) {
      at = found->second;
      continue;
    }
    const auto made = static_cast<std::uint32_t>(nodes_.size());
    next.insert(found, {byte, made});
    if (at == 0) first_[byte] = made;
    nodes_.emplace_back();  // `next` and `found` are no longer valid
    at = made;
  }
  if (nodes_[at].value == none) nodes_[at].value = value;
}

std::optional<Trie::Found> Trie::find(std::string_view text, std::size_t at) const {
  for (; at < text.size(); ++at) {
    std::uint32_t node = first_[static_cast<unsigned char>(text[at])];
    std::optional<Found> longest;
    for (std::size_t i = at + 1; node != 0; ++i) {
      if (nodes_[node].value != none) longest = Found{at, i, nodes_[node].value};
      if (i == text.size()) break;
      const auto& next = nodes_[node].next;
      const auto byte = static_cast<unsigned char>(text[i]);
      const auto found = std::lower_bound(next.begin(), next.end(), byte, [](const auto& n, auto b) { return n.first < b; });
      node = found != next.end() && found->first == byte ? found->second : 0;
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

AddedTokens AddedTokens::read(const std::vector<Reader>& list, const Vocabulary& vocabulary, const Normalizer* normalizer,
                              std::vector<std::string>& warnings) {
  AddedTokens added;
  // The reference counts from the size of the vocabulary, which is its largest id + 1 unless the numbering has holes.
  auto next_id = static_cast<std::int32_t>(vocabulary.size());
  for (const Reader& r : list) {
    r.only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    AddedToken token;
    token.content = r.string("content");
    const std::int32_t written = r.whole("id");
    token.single_word = r.boolean("single_word");
    token.lstrip = r.boolean("lstrip");
    token.rstrip = r.boolean("rstrip");
    token.normalized = r.boolean("normalized");
    token.special = r.boolean("special");
    if (!r.ok()) return added;
    if (token.content.empty()) continue;
    const auto same = added.by_content_.find(token.content);
    const std::int32_t known = vocabulary.find(token.content);
    token.id = same != added.by_content_.end() ? added.tokens_[same->second].id : known >= 0 ? known : next_id++;
    if (token.id != written)
      warnings.push_back("the added token " + quote(token.content) + " says id " + std::to_string(written) + ", but " +
                         (known >= 0 ? "the vocabulary has it as " : "it is numbered on from the vocabulary as ") +
                         std::to_string(token.id));
    token.spelling = token.content;
    if (token.normalized && normalizer) {
      bool front_gone = false;
      if (Status status = normalizer->apply(token.spelling, front_gone); !status) {
        r.fail(status.error());
        return added;
      }
    }
    if (same != added.by_content_.end()) {  // said again: the last word counts
      added.tokens_[same->second] = std::move(token);
      continue;
    }
    added.by_content_.emplace(token.content, added.tokens_.size());
    added.by_id_.insert_or_assign(token.id, added.tokens_.size());
    added.tokens_.push_back(std::move(token));
  }
  for (std::size_t i = 0; i < added.tokens_.size(); ++i) {
    const AddedToken& token = added.tokens_[i];
    (token.normalized ? added.normalized_ : added.raw_).add(token.spelling, i);
  }
  return added;
}

const AddedToken* AddedTokens::find(std::int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found = by_content_.find(std::string(content));
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

template <class F> Status AddedTokens::scan(const Trie& trie, std::string_view text, const F& found) const {
  std::size_t done = 0;  // up to here the text is given out
  std::size_t at = 0;
  while (!trie.empty()) {
    const std::optional<Trie::Found> match = trie.find(text, at);
    if (!match) break;
    at = match->end;
    const AddedToken& token = tokens_[match->value];
    std::size_t begin = match->begin, end = match->end;
    if (token.single_word && ((begin > 0 && unicode::is_word(utf8::previous(text, begin).code)) ||
                              (end < text.size() && unicode::is_word(utf8::next(text, end).code))))
      continue;
    if (token.lstrip) {
      while (begin > done) {
        const utf8::Character before = utf8::previous(text, begin);
        if (!unicode::is_space(before.code)) break;
        begin -= before.size;
      }
      begin = std::max(begin, done);
    }
    if (token.rstrip) {
      while (end < text.size()) {
        const utf8::Character after = utf8::next(text, end);
        if (!unicode::is_space(after.code)) break;
        end += after.size;
      }
    }
    // A token of white space may begin within what the one before took along: it counts, as in the reference.
    if (done < begin)
      if (Status status = found(nullptr, text.substr(done, begin - done)); !status) return status;
    if (Status status = found(&token, {}); !status) return status;
    done = end;
  }
  if (done < text.size()) return found(nullptr, text.substr(done));
  return {};
}

Result<Pieces> AddedTokens::extract(std::string_view text, const Normalizer* normalizer) const {
  Pieces pieces;
  pieces.text.reserve(text.size());
  const auto add_token = [&](const AddedToken& token) { pieces.pieces.push_back({0, 0, token.id}); };
  const Status status = scan(raw_, text, [&](const AddedToken* token, std::string_view part) -> Status {
    if (token) {
      add_token(*token);
      return {};
    }
    std::string rewritten;
    bool front_gone = false;
    if (normalizer) {
      rewritten = part;
      if (Status normal = normalizer->apply(rewritten, front_gone); !normal) return normal;
      part = rewritten;
    }
    return scan(normalized_, part, [&](const AddedToken* inner, std::string_view rest) -> Status {
      if (inner) add_token(*inner);
      else pieces.add_text(rest, !front_gone && pieces.pieces.empty());
      return {};
    });
  });
  if (!status) return status.error();
  return pieces;
}

}  // namespace modelc

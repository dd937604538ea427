#include "runtime/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/base/strings.h"
#include "runtime/tokenizer/byte_alphabet.h"
#include "runtime/tokenizer/pattern.h"
#include "runtime/tokenizer/unicode.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc {

namespace {

// Puts what `parts_of(text, parts)` makes of each piece of text in its place.
template <class F>
Status split_pieces(Pieces& pieces, const F& parts_of) {
  std::vector<Piece> result;
  result.reserve(pieces.pieces.size());
  std::vector<Match> parts;
  for (const Piece& p : pieces.pieces) {
    if (!p.is_text()) {
      result.push_back(p);
      continue;
    }
    parts.clear();
    if (Status status = parts_of(pieces.view(p), parts); !status) return status;
    for (const Match& m : parts) result.push_back({p.begin + m.begin, p.begin + m.end, -1});
  }
  pieces.pieces.swap(result);
  return {};
}

class Split : public PreTokenizer {
 public:
  Split(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  Status apply(Pieces& pieces) const override {
    std::vector<Match> matches;
    return split_pieces(pieces, [&](std::string_view text, std::vector<Match>& parts) {
      matches.clear();
      if (Status status = pattern_.find_all(text, matches); !status) return status;
      split_at(matches, text.size(), behavior_, invert_, parts);
      return Status();
    });
  }

 private:
  Pattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

// Runs of characters that are numeric apart from the others; or each such character by itself.
class Digits : public PreTokenizer {
 public:
  explicit Digits(bool individual) : individual_(individual) {}

  Status apply(Pieces& pieces) const override {
    std::vector<Match> matches;
    return split_pieces(pieces, [&](std::string_view text, std::vector<Match>& parts) {
      matches.clear();
      for (std::size_t at = 0; at < text.size();) {
        const utf8::Character c = utf8::next(text, at);
        if (unicode::is_numeric(c.code)) matches.push_back({at, at + c.size});
        at += c.size;
      }
      split_at(matches, text.size(), individual_ ? SplitBehavior::isolated : SplitBehavior::contiguous, false, parts);
      return Status();
    });
  }

 private:
  bool individual_;
};

// \w+|[^\w\s]+ : words and runs of other signs; what is between them goes.
class Whitespace : public PreTokenizer {
 public:
  Status apply(Pieces& pieces) const override {
    return split_pieces(pieces, [&](std::string_view text, std::vector<Match>& parts) {
      enum class Kind : std::uint8_t { space, word, other };
      Kind last = Kind::space;
      for (std::size_t at = 0; at < text.size();) {
        const utf8::Character c = utf8::next(text, at);
        const Kind kind = unicode::is_word(c.code) ? Kind::word : unicode::is_space(c.code) ? Kind::space : Kind::other;
        if (kind != Kind::space) {
          if (kind == last)
            parts.back().end = at + c.size;
          else
            parts.push_back({at, at + c.size});
        }
        last = kind;
        at += c.size;
      }
      return Status();
    });
  }
};

// Writes each byte as a character of the byte alphabet, after cutting by the pattern of GPT-2 if asked to.
class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, std::optional<Regex> regex)
      : add_prefix_space_(add_prefix_space), regex_(std::move(regex)) {}

  Status apply(Pieces& pieces) const override {
    Pieces result;
    result.text.reserve(pieces.text.size() + pieces.text.size() / 4 + 16);
    result.pieces.reserve(pieces.pieces.size());
    std::vector<Match> matches, parts;
    std::string prefixed;
    for (const Piece& p : pieces.pieces) {
      if (!p.is_text()) {
        result.pieces.push_back(p);
        continue;
      }
      std::string_view text = pieces.view(p);
      if (add_prefix_space_ && text[0] != ' ') {
        prefixed.assign(1, ' ').append(text);
        text = prefixed;
      }
      matches.clear();
      parts.clear();
      if (regex_) {
        if (Status status = regex_->find_all(text, matches); !status) return status;
      }
      split_at(matches, text.size(), SplitBehavior::isolated, false, parts);
      for (const Match& m : parts) {
        const std::size_t begin = result.text.size();
        byte_alphabet.append(result.text, text.substr(m.begin, m.end - m.begin));
        result.pieces.push_back({begin, result.text.size(), -1});
      }
    }
    pieces = std::move(result);
    return {};
  }

  static constexpr std::string_view byte_level_pattern =
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

 private:
  bool add_prefix_space_;
  std::optional<Regex> regex_;
};

class Sequence : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> stages) : stages_(std::move(stages)) {}
  Status apply(Pieces& pieces) const override {
    for (const auto& stage : stages_)
      if (Status status = stage->apply(pieces); !status) return status;
    return {};
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> stages_;
};

SplitBehavior read_behavior(const Reader& reader) {
  constexpr std::pair<std::string_view, SplitBehavior> behaviors[] = {
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
      {"Contiguous", SplitBehavior::contiguous}};
  const std::string name = reader.string("behavior");
  for (const auto& [known, behavior] : behaviors)
    if (name == known) return behavior;
  if (reader.ok())
    reader.member("behavior").fail("tokenizer-unsupported", "the behavior " + quote(name) + " is not known");
  return SplitBehavior::isolated;
}

}  // namespace

void split_at(const std::vector<Match>& matches, std::size_t size, SplitBehavior behavior, bool invert,
              std::vector<Match>& parts) {
  if (behavior == SplitBehavior::isolated) {  // by far the most frequent: straight into the result
    std::size_t begin = 0;
    for (const Match& m : matches) {
      if (m.begin > begin) parts.push_back({begin, m.begin});
      if (m.end > m.begin) parts.push_back(m);
      begin = m.end;
    }
    if (begin < size) parts.push_back({begin, size});
    return;
  }
  // Every stretch of the text in order: a match, or what lies between two. Matches may be empty, and count all the same
  // for what comes before or after them.
  struct Stretch {
    std::size_t begin, end;
    bool delimiter;
  };
  std::vector<Stretch> stretches;
  stretches.reserve(2 * matches.size() + 1);
  std::size_t at = 0;
  for (const Match& m : matches) {
    if (m.begin > at) stretches.push_back({at, m.begin, invert});
    stretches.push_back({m.begin, m.end, !invert});
    at = m.end;
  }
  if (at < size) stretches.push_back({at, size, invert});

  std::vector<Match> joined;
  joined.reserve(stretches.size());
  bool last_delimiter = false;  // whether the stretch before, in the direction of travel, was a delimiter
  switch (behavior) {
    case SplitBehavior::removed:
      for (const Stretch& s : stretches)
        if (!s.delimiter) joined.push_back({s.begin, s.end});
      break;
    case SplitBehavior::isolated: break;
    case SplitBehavior::contiguous:
      for (const Stretch& s : stretches) {
        if (s.delimiter == last_delimiter && !joined.empty())
          joined.back().end = s.end;
        else
          joined.push_back({s.begin, s.end});
        last_delimiter = s.delimiter;
      }
      break;
    case SplitBehavior::merged_with_previous:
      for (const Stretch& s : stretches) {
        if (s.delimiter && !last_delimiter && !joined.empty())
          joined.back().end = s.end;
        else
          joined.push_back({s.begin, s.end});
        last_delimiter = s.delimiter;
      }
      break;
    case SplitBehavior::merged_with_next:
      for (auto s = stretches.rbegin(); s != stretches.rend(); ++s) {
        if (s->delimiter && !last_delimiter && !joined.empty())
          joined.back().begin = s->begin;
        else
          joined.push_back({s->begin, s->end});
        last_delimiter = s->delimiter;
      }
      std::reverse(joined.begin(), joined.end());
      break;
  }
  for (const Match& m : joined)
    if (m.end > m.begin) parts.push_back(m);
}

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const Reader& reader) {
  const std::string type = reader.type();
  if (!reader.ok()) return nullptr;
  if (type == "ByteLevel") {
    reader.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    std::optional<Regex> regex;
    if (reader.boolean("use_regex", true)) {
      Result<Regex> compiled = Regex::compile(ByteLevel::byte_level_pattern);
      if (!compiled) {
        reader.fail(compiled.error());
        return nullptr;
      }
      regex = std::move(*compiled);
    }
    return std::make_unique<ByteLevel>(reader.boolean("add_prefix_space"), std::move(regex));
  }
  if (type == "Split") {
    reader.only({"type", "pattern", "behavior", "invert"});
    return std::make_unique<Split>(Pattern::read(reader), read_behavior(reader), reader.boolean("invert"));
  }
  if (type == "Digits") {
    reader.only({"type", "individual_digits"});
    return std::make_unique<Digits>(reader.boolean("individual_digits"));
  }
  if (type == "Whitespace") {
    reader.only({"type"});
    return std::make_unique<Whitespace>();
  }
  if (type == "Sequence") {
    reader.only({"type", "pretokenizers"});
    std::vector<std::unique_ptr<PreTokenizer>> stages;
    for (const Reader& r : reader.list("pretokenizers")) stages.push_back(read_pre_tokenizer(r));
    return std::make_unique<Sequence>(std::move(stages));
  }
  reader.refuse_type(type, {"ByteLevel", "Split", "Digits", "Whitespace", "Sequence"});
  return nullptr;
}

}  // namespace modelc

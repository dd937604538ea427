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
template <class F> Status split_pieces(Pieces& pieces, const F& parts_of) {
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
    for (const Match& m : parts) result.push_back({p.begin + m.begin, p.begin + m.end, -1, p.begins_text && m.begin == 0});
  }
  pieces.pieces.swap(result);
  return {};
}

class Split : public PreTokenizer {
 public:
  Split(Pattern pattern, SplitBehavior behavior, bool invert) : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

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

// Cuts at the characters of a class.
class Characters : public PreTokenizer {
 public:
  using Class = bool (*)(char32_t c);
  Characters(Class is_delimiter, SplitBehavior behavior) : is_delimiter_(is_delimiter), behavior_(behavior) {}

  Status apply(Pieces& pieces) const override {
    std::vector<Match> matches;
    return split_pieces(pieces, [&](std::string_view text, std::vector<Match>& parts) {
      matches.clear();
      for (std::size_t at = 0; at < text.size();) {
        const utf8::Character c = utf8::next(text, at);
        if (is_delimiter_(c.code)) matches.push_back({at, at + c.size});
        at += c.size;
      }
      split_at(matches, text.size(), behavior_, false, parts);
      return Status();
    });
  }

 private:
  Class is_delimiter_;
  SplitBehavior behavior_;
};

// Writes spaces as another character, puts one before the text if there is none, and cuts before each.
class Metaspace : public PreTokenizer {
 public:
  Metaspace(std::string replacement, PrependScheme scheme, bool split)
      : replacement_(std::move(replacement)), scheme_(scheme), split_(split) {}

  Status apply(Pieces& pieces) const override {
    Pieces result;
    result.text.reserve(pieces.text.size() + pieces.text.size() / 2 + 16);
    std::vector<Match> matches, parts;
    std::string text;
    for (const Piece& p : pieces.pieces) {
      if (!p.is_text()) {
        result.pieces.push_back(p);
        continue;
      }
      text.clear();
      for (const char c : pieces.view(p)) {
        if (c == ' ') text.append(replacement_);
        else text += c;
      }
      const bool prepend = scheme_ == PrependScheme::always || (scheme_ == PrependScheme::first && p.begins_text);
      if (prepend && !text.starts_with(replacement_)) text.insert(0, replacement_);
      matches.clear();
      parts.clear();
      if (split_)
        for (std::size_t at = 0; (at = text.find(replacement_, at)) != std::string::npos; at += replacement_.size())
          matches.push_back({at, at + replacement_.size()});
      split_at(matches, text.size(), SplitBehavior::merged_with_next, false, parts);
      for (const Match& m : parts) {
        const std::size_t begin = result.text.size();
        result.text.append(text, m.begin, m.end - m.begin);
        result.pieces.push_back({begin, result.text.size(), -1, p.begins_text && m.begin == 0});
      }
    }
    pieces = std::move(result);
    return {};
  }

 private:
  std::string replacement_;
  PrependScheme scheme_;
  bool split_;
};

// Cuts where the script changes; a space belongs to every script. Text of no script at all goes, as in the reference.
class Scripts : public PreTokenizer {
 public:
  Status apply(Pieces& pieces) const override {
    return split_pieces(pieces, [](std::string_view text, std::vector<Match>& parts) {
      int last = -1;
      for (std::size_t at = 0; at < text.size();) {
        const utf8::Character c = utf8::next(text, at);
        const int script = unicode::script(c.code);
        if (script >= 0 && script != last) {
          if (!parts.empty()) parts.back().end = at;
          parts.push_back({at, text.size()});
          last = script;
        }
        at += c.size;
      }
      return Status();
    });
  }
};

// Cuts after every so many characters.
class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(std::size_t length) : length_(length) {}
  Status apply(Pieces& pieces) const override {
    return split_pieces(pieces, [&](std::string_view text, std::vector<Match>& parts) {
      std::size_t count = 0;
      for (std::size_t at = 0; at < text.size();) {
        if (count++ % length_ == 0) parts.push_back({at, at});
        at += utf8::next(text, at).size;
        parts.back().end = at;
      }
      return Status();
    });
  }

 private:
  std::size_t length_;
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
          if (kind == last) parts.back().end = at + c.size;
          else parts.push_back({at, at + c.size});
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
  ByteLevel(bool add_prefix_space, std::optional<Regex> regex) : add_prefix_space_(add_prefix_space), regex_(std::move(regex)) {}

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
        result.pieces.push_back({begin, result.text.size(), -1, p.begins_text && m.begin == 0});
      }
    }
    pieces = std::move(result);
    return {};
  }

  static constexpr std::string_view byte_level_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

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

SplitBehavior read_behavior(const Reader& reader, std::string_view otherwise = {}) {
  constexpr std::pair<std::string_view, SplitBehavior> behaviors[] = {{"Removed", SplitBehavior::removed},
                                                                      {"Isolated", SplitBehavior::isolated},
                                                                      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
                                                                      {"MergedWithNext", SplitBehavior::merged_with_next},
                                                                      {"Contiguous", SplitBehavior::contiguous}};
  const bool absent = !otherwise.empty() && !reader.has("behavior");
  const std::string name = absent ? std::string(otherwise) : reader.string("behavior");
  for (const auto& [known, behavior] : behaviors)
    if (name == known) return behavior;
  if (reader.ok()) reader.member("behavior").fail("tokenizer-unsupported", "the behavior " + quote(name) + " is not known");
  return SplitBehavior::isolated;
}

}  // namespace

std::string read_character(const Reader& reader, std::string_view key) {
  std::string text = reader.string(key);
  if (reader.ok() && (text.empty() || utf8::next(text, 0).size != text.size()))
    reader.member(key).fail("tokenizer-field", "expected one character, found " + quote(text));
  return text;
}

// Files of old say `add_prefix_space` instead; where both are given they must agree.
PrependScheme read_prepend_scheme(const Reader& reader) {
  const std::string name = reader.has("prepend_scheme") ? reader.string("prepend_scheme") : "always";
  const bool prefix = reader.boolean("add_prefix_space", true);
  constexpr std::pair<std::string_view, PrependScheme> schemes[] = {
      {"always", PrependScheme::always}, {"first", PrependScheme::first}, {"never", PrependScheme::never}};
  for (const auto& [known, scheme] : schemes) {
    if (name != known) continue;
    if (!prefix && scheme != PrependScheme::never)
      reader.member("add_prefix_space")
          .fail("tokenizer-field", "is false, but prepend_scheme is " + quote(name) + " (\"always\" unless given)");
    return scheme;
  }
  if (reader.ok()) reader.member("prepend_scheme").fail("tokenizer-unsupported", "the scheme " + quote(name) + " is not known");
  return PrependScheme::never;
}

void split_at(const std::vector<Match>& matches, std::size_t size, SplitBehavior behavior, bool invert, std::vector<Match>& parts) {
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
        if (s.delimiter == last_delimiter && !joined.empty()) joined.back().end = s.end;
        else joined.push_back({s.begin, s.end});
        last_delimiter = s.delimiter;
      }
      break;
    case SplitBehavior::merged_with_previous:
      for (const Stretch& s : stretches) {
        if (s.delimiter && !last_delimiter && !joined.empty()) joined.back().end = s.end;
        else joined.push_back({s.begin, s.end});
        last_delimiter = s.delimiter;
      }
      break;
    case SplitBehavior::merged_with_next:
      for (auto s = stretches.rbegin(); s != stretches.rend(); ++s) {
        if (s->delimiter && !last_delimiter && !joined.empty()) joined.back().begin = s->begin;
        else joined.push_back({s->begin, s->end});
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
    return std::make_unique<Characters>(unicode::is_numeric,
                                        reader.boolean("individual_digits") ? SplitBehavior::isolated : SplitBehavior::contiguous);
  }
  if (type == "Punctuation") {
    reader.only({"type", "behavior"});
    return std::make_unique<Characters>(unicode::is_punctuation, read_behavior(reader, "Isolated"));
  }
  if (type == "WhitespaceSplit") {
    reader.only({"type"});
    return std::make_unique<Characters>(unicode::is_space, SplitBehavior::removed);
  }
  if (type == "BertPreTokenizer") {  // by white space, which goes, and punctuation, which stays
    reader.only({"type"});
    std::vector<std::unique_ptr<PreTokenizer>> stages;
    stages.push_back(std::make_unique<Characters>(unicode::is_space, SplitBehavior::removed));
    stages.push_back(std::make_unique<Characters>(unicode::is_punctuation, SplitBehavior::isolated));
    return std::make_unique<Sequence>(std::move(stages));
  }
  if (type == "CharDelimiterSplit") {
    reader.only({"type", "delimiter"});
    std::string delimiter = read_character(reader, "delimiter");
    if (!reader.ok()) return nullptr;
    return std::make_unique<Split>(Pattern(std::move(delimiter)), SplitBehavior::removed, false);
  }
  if (type == "UnicodeScripts") {
    reader.only({"type"});
    return std::make_unique<Scripts>();
  }
  if (type == "FixedLength") {
    reader.only({"type", "length"});
    const std::int32_t length = reader.whole("length");
    if (reader.ok() && length == 0) reader.member("length").fail("tokenizer-field", "expected a length of 1 or more");
    if (!reader.ok()) return nullptr;
    return std::make_unique<FixedLength>(static_cast<std::size_t>(length));
  }
  if (type == "Metaspace") {
    reader.only({"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
    const PrependScheme scheme = read_prepend_scheme(reader);
    std::string replacement = read_character(reader, "replacement");
    const bool split = reader.boolean("split", true);
    if (!reader.ok()) return nullptr;
    return std::make_unique<Metaspace>(std::move(replacement), scheme, split);
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
  reader.refuse_type(type, {"ByteLevel", "Split", "Digits", "Whitespace", "WhitespaceSplit", "Punctuation", "BertPreTokenizer",
                            "CharDelimiterSplit", "UnicodeScripts", "FixedLength", "Metaspace", "Sequence"});
  return nullptr;
}

}  // namespace modelc

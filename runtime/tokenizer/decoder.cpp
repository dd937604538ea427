#include "runtime/tokenizer/decoder.h"

#include <utility>

#include "runtime/base/strings.h"
#include "runtime/tokenizer/byte_alphabet.h"
#include "runtime/tokenizer/pattern.h"
#include "runtime/tokenizer/pre_tokenizer.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc {

namespace {

// Many steps look at whole tokens: this one puts the parts together.
class WholeTokens : public DecodeStep {
 public:
  explicit WholeTokens(DecodeStep& next) : next_(next) {}
  void push(std::string_view part, bool ends) final {
    if (ends && waiting_.empty()) return token(part);
    waiting_.append(part);
    if (!ends) return;
    token(waiting_);
    waiting_.clear();
  }
  void finish() final {
    end();
    next_.finish();
  }

 protected:
  virtual void token(std::string_view token) = 0;
  virtual void end() {}
  DecodeStep& next_;

 private:
  std::string waiting_;
};

// Characters of the byte alphabet back to bytes, and these to text: one token, all in all. A token with a character
// outside the alphabet is taken as it stands.
class ByteLevel : public Decoder {
  class Step : public WholeTokens {
   public:
    using WholeTokens::WholeTokens;
    void token(std::string_view token) override {
      bytes_.clear();
      for (std::size_t at = 0; at < token.size();) {
        const utf8::Character c = utf8::next(token, at);
        const int byte = c.code < byte_alphabet.byte.size() ? byte_alphabet.byte[c.code] : -1;
        if (byte < 0) {
          bytes_ = token;
          break;
        }
        bytes_ += static_cast<char>(byte);
        at += c.size;
      }
      std::string text;
      stream_.push(bytes_, text);
      next_.push(text, false);
    }
    void end() override {
      std::string text;
      stream_.finish(text);
      next_.push(text, true);
    }

   private:
    std::string bytes_;
    utf8::Stream stream_;
  };

 public:
  std::unique_ptr<DecodeStep> begin(DecodeStep& next, bool) const override { return std::make_unique<Step>(next); }
};

// <0x61> back to the byte; a row of such tokens to text. A row that is no UTF-8 becomes U+FFFD for each of its bytes.
class ByteFallback : public Decoder {
  class Step : public WholeTokens {
   public:
    Step(DecodeStep& next, bool streaming) : WholeTokens(next), streaming_(streaming) {}
    void token(std::string_view token) override {
      const int byte = byte_of(token);
      if (byte < 0) {
        end();
        next_.push(token, true);
        return;
      }
      row_ += static_cast<char>(byte);
      // A whole character, or several: give it on.
      if (streaming_ && utf8::valid_prefix(row_) == row_.size()) end();
    }
    void end() override {
      if (row_.empty()) return;
      if (utf8::valid_prefix(row_) == row_.size()) next_.push(row_, true);
      else
        for (std::size_t i = 0; i < row_.size(); ++i) next_.push(utf8::replacement, true);
      row_.clear();
    }

   private:
    static int byte_of(std::string_view token) {
      if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
      int byte = 0;
      for (const char c : token.substr(3, 2)) {
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return -1;
        byte = byte * 16 + digit;
      }
      return byte;
    }
    bool streaming_;
    std::string row_;
  };

 public:
  std::unique_ptr<DecodeStep> begin(DecodeStep& next, bool streaming) const override { return std::make_unique<Step>(next, streaming); }
};

// All tokens become one.
class Fuse : public Decoder {
  class Step : public DecodeStep {
   public:
    explicit Step(DecodeStep& next) : next_(next) {}
    void push(std::string_view part, bool) override { next_.push(part, false); }
    void finish() override {
      next_.push({}, true);
      next_.finish();
    }

   private:
    DecodeStep& next_;
  };

 public:
  std::unique_ptr<DecodeStep> begin(DecodeStep& next, bool) const override { return std::make_unique<Step>(next); }
};

class Replace : public Decoder {
  class Step : public WholeTokens {
   public:
    Step(DecodeStep& next, const Replace& replace) : WholeTokens(next), replace_(replace) {}
    void token(std::string_view token) override {
      matches_.clear();
      // A literal, which never fails.
      static_cast<void>(replace_.pattern_.find_all(token, matches_));
      if (matches_.empty()) next_.push(token, true);
      else next_.push(replace_matches(token, matches_, replace_.content_), true);
    }

   private:
    const Replace& replace_;
    std::vector<Match> matches_;
  };

 public:
  Replace(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  std::unique_ptr<DecodeStep> begin(DecodeStep& next, bool) const override { return std::make_unique<Step>(next, *this); }

 private:
  Pattern pattern_;
  std::string content_;
};

// Takes up to `start` of the character away at the beginning of each token, and up to `stop` at its end.
class Strip : public Decoder {
  class Step : public DecodeStep {
   public:
    Step(DecodeStep& next, const Strip& strip) : next_(next), strip_(strip) {}
    void push(std::string_view part, bool ends) override {
      const std::string& c = strip_.character_;
      if (at_start_) {
        while (taken_ < strip_.start_ && part.starts_with(c)) {
          part.remove_prefix(c.size());
          ++taken_;
        }
        if (taken_ == strip_.start_ || !part.empty()) at_start_ = false;
      }
      // The characters at the end wait, up to `stop` of them, until it is known whether the token ends with them.
      std::size_t trailing = 0;
      std::string_view rest = part;
      while (trailing < strip_.stop_ && rest.ends_with(c)) {
        rest.remove_suffix(c.size());
        ++trailing;
      }
      if (rest.empty()) {  // nothing but the character
        waiting_ += trailing;
        if (waiting_ > strip_.stop_) give(waiting_ - strip_.stop_, {});
      } else {
        give(waiting_, rest);
        waiting_ = trailing;
      }
      if (!ends) return;
      next_.push({}, true);
      waiting_ = taken_ = 0;
      at_start_ = true;
    }
    void finish() override { next_.finish(); }

   private:
    // So many of the waiting characters, then `text`.
    void give(std::size_t count, std::string_view text) {
      for (std::size_t i = 0; i < count; ++i) next_.push(strip_.character_, false);
      waiting_ -= count;
      next_.push(text, false);
    }
    DecodeStep& next_;
    const Strip& strip_;
    bool at_start_ = true;
    std::size_t taken_ = 0, waiting_ = 0;
  };

 public:
  Strip(std::string character, std::size_t start, std::size_t stop) : character_(std::move(character)), start_(start), stop_(stop) {}
  std::unique_ptr<DecodeStep> begin(DecodeStep& next, bool) const override { return std::make_unique<Step>(next, *this); }

 private:
  std::string character_;
  std::size_t start_, stop_;
};

// Spaces between tokens: what a file without a decoder means.
class Spaces : public Decoder {
  class Step : public DecodeStep {
   public:
    explicit Step(DecodeStep& next) : next_(next) {}
    void push(std::string_view part, bool ends) override {
      if (begins_ && !first_) next_.push(" ", true);
      first_ = false;
      begins_ = ends;
      next_.push(part, ends);
    }
    void finish() override {
      first_ = true;
      next_.finish();
    }

   private:
    DecodeStep& next_;
    bool first_ = true, begins_ = true;
  };

 public:
  std::unique_ptr<DecodeStep> begin(DecodeStep& next, bool) const override { return std::make_unique<Step>(next); }
};

// Removes every `replacement` of the first token, or writes it as a space there too; in other tokens a space.
class Metaspace : public Decoder {
  class Step : public WholeTokens {
   public:
    Step(DecodeStep& next, const Metaspace& metaspace) : WholeTokens(next), metaspace_(metaspace) {}
    void token(std::string_view token) override {
      const bool removed = first_ && metaspace_.removed_first_;
      first_ = false;
      next_.push(replace_all(token, metaspace_.replacement_, removed ? "" : " "), true);
    }
    void end() override { first_ = true; }

   private:
    const Metaspace& metaspace_;
    bool first_ = true;
  };

 public:
  Metaspace(std::string replacement, bool removed_first) : replacement_(std::move(replacement)), removed_first_(removed_first) {}
  std::unique_ptr<DecodeStep> begin(DecodeStep& next, bool) const override { return std::make_unique<Step>(next, *this); }

 private:
  std::string replacement_;
  bool removed_first_;
};

// English as it is written: the spaces that cutting into words has put in, taken out again.
std::string cleaned(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> replacements[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : replacements) text = replace_all(text, from, to);
  return text;
}

// A space before each token but the first, unless it begins with `prefix`, which goes.
class WordPiece : public Decoder {
  class Step : public WholeTokens {
   public:
    Step(DecodeStep& next, const WordPiece& words) : WholeTokens(next), words_(words) {}
    void token(std::string_view token) override {
      std::string text(token);
      if (!first_) {
        if (token.starts_with(words_.prefix_)) text.erase(0, words_.prefix_.size());
        else text.insert(0, 1, ' ');
      }
      first_ = false;
      next_.push(words_.cleanup_ ? cleaned(std::move(text)) : text, true);
    }
    void end() override { first_ = true; }

   private:
    const WordPiece& words_;
    bool first_ = true;
  };

 public:
  WordPiece(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  std::unique_ptr<DecodeStep> begin(DecodeStep& next, bool) const override { return std::make_unique<Step>(next, *this); }

 private:
  std::string prefix_;
  bool cleanup_;
};

// `suffix`, the mark of a word's end, becomes a space, and nothing in the last token: what follows the first mark of a
// token waits for the next.
class WordEnds : public Decoder {
  class Step : public WholeTokens {
   public:
    Step(DecodeStep& next, const std::string& suffix) : WholeTokens(next), suffix_(suffix) {}
    void token(std::string_view token) override {
      give(" ");
      const std::size_t mark = suffix_.empty() ? std::string_view::npos : token.find(suffix_);
      next_.push(token.substr(0, mark), false);
      if (mark != std::string_view::npos) waiting_ = token.substr(mark);
      open_ = true;
    }
    void end() override { give(""); }

   private:
    void give(std::string_view space) {
      if (open_) next_.push(replace_all(waiting_, suffix_, space), true);
      waiting_.clear();
      open_ = false;
    }
    const std::string& suffix_;
    std::string waiting_;
    bool open_ = false;
  };

 public:
  explicit WordEnds(std::string suffix) : suffix_(std::move(suffix)) {}
  std::unique_ptr<DecodeStep> begin(DecodeStep& next, bool) const override { return std::make_unique<Step>(next, suffix_); }

 private:
  std::string suffix_;
};

// Connectionist temporal classification: a token said again is not said, `pad_token` is silence.
class Ctc : public Decoder {
  class Step : public WholeTokens {
   public:
    Step(DecodeStep& next, const Ctc& ctc) : WholeTokens(next), ctc_(ctc) {}
    void token(std::string_view token) override {
      if (any_ && token == last_) return;
      any_ = true;
      last_ = token;
      std::string text = replace_all(token, ctc_.pad_, "");
      if (ctc_.cleanup_) text = replace_all(cleaned(std::move(text)), ctc_.delimiter_, " ");
      if (!text.empty()) next_.push(text, true);
    }
    void end() override { any_ = false; }

   private:
    const Ctc& ctc_;
    std::string last_;
    bool any_ = false;
  };

 public:
  Ctc(std::string pad, std::string delimiter, bool cleanup) : pad_(std::move(pad)), delimiter_(std::move(delimiter)), cleanup_(cleanup) {}
  std::unique_ptr<DecodeStep> begin(DecodeStep& next, bool) const override { return std::make_unique<Step>(next, *this); }

 private:
  std::string pad_, delimiter_;
  bool cleanup_;
};

// The end of the chain.
class Collect : public DecodeStep {
 public:
  explicit Collect(std::string& text) : text_(text) {}
  void push(std::string_view part, bool) override { text_.append(part); }
  void finish() override {}

 private:
  std::string& text_;
};

void read_into(const Reader& reader, std::vector<std::unique_ptr<Decoder>>& decoders) {
  const std::string type = reader.type();
  if (!reader.ok()) return;
  if (type == "ByteLevel") {
    reader.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    decoders.push_back(std::make_unique<ByteLevel>());
  } else if (type == "ByteFallback") {
    reader.only({"type"});
    decoders.push_back(std::make_unique<ByteFallback>());
  } else if (type == "Fuse") {
    reader.only({"type"});
    decoders.push_back(std::make_unique<Fuse>());
  } else if (type == "Replace") {
    reader.only({"type", "pattern", "content"});
    Pattern pattern = Pattern::read(reader);
    if (reader.ok() && !pattern.is_literal()) reader.fail("tokenizer-unsupported", "a regular expression in a decoder is not carried out");
    decoders.push_back(std::make_unique<Replace>(std::move(pattern), reader.string("content")));
  } else if (type == "Strip") {
    reader.only({"type", "content", "start", "stop"});
    std::string content = read_character(reader, "content");
    const std::int32_t start = reader.whole("start"), stop = reader.whole("stop");
    decoders.push_back(std::make_unique<Strip>(std::move(content), static_cast<std::size_t>(start), static_cast<std::size_t>(stop)));
  } else if (type == "Metaspace") {
    reader.only({"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
    const bool removed_first = read_prepend_scheme(reader) != PrependScheme::never;
    decoders.push_back(std::make_unique<Metaspace>(read_character(reader, "replacement"), removed_first));
  } else if (type == "WordPiece") {
    reader.only({"type", "prefix", "cleanup"});
    decoders.push_back(std::make_unique<WordPiece>(reader.string("prefix"), reader.boolean("cleanup")));
  } else if (type == "BPEDecoder") {
    reader.only({"type", "suffix"});
    decoders.push_back(std::make_unique<WordEnds>(reader.string("suffix")));
  } else if (type == "CTC") {
    reader.only({"type", "pad_token", "word_delimiter_token", "cleanup"});
    std::string pad = reader.string("pad_token"), delimiter = reader.string("word_delimiter_token");
    for (const char* key : {"pad_token", "word_delimiter_token"})
      if (reader.ok() && reader.string(key).empty()) reader.member(key).fail("tokenizer-field", "is empty");
    decoders.push_back(std::make_unique<Ctc>(std::move(pad), std::move(delimiter), reader.boolean("cleanup")));
  } else if (type == "Sequence") {
    reader.only({"type", "decoders"});
    for (const Reader& r : reader.list("decoders")) read_into(r, decoders);
  } else {
    reader.refuse_type(
        type, {"ByteLevel", "ByteFallback", "Fuse", "Replace", "Strip", "Metaspace", "WordPiece", "BPEDecoder", "CTC", "Sequence"});
  }
}

}  // namespace

std::vector<std::unique_ptr<Decoder>> read_decoders(const Reader& reader) {
  std::vector<std::unique_ptr<Decoder>> decoders;
  read_into(reader, decoders);
  return decoders;
}

std::vector<std::unique_ptr<Decoder>> without_decoder() {
  std::vector<std::unique_ptr<Decoder>> decoders;
  decoders.push_back(std::make_unique<Spaces>());
  return decoders;
}

DecodeChain::DecodeChain(const std::vector<std::unique_ptr<Decoder>>& decoders, bool streaming) {
  steps.push_back(std::make_unique<Collect>(text));
  for (auto d = decoders.rbegin(); d != decoders.rend(); ++d) steps.push_back((*d)->begin(*steps.back(), streaming));
  first = steps.back().get();
}

}  // namespace modelc

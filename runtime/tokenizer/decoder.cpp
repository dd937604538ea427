#include "runtime/tokenizer/decoder.h"

#include <utility>

#include "runtime/tokenizer/byte_alphabet.h"
#include "runtime/tokenizer/pattern.h"
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
      if (utf8::valid_prefix(row_) == row_.size())
        next_.push(row_, true);
      else
        for (std::size_t i = 0; i < row_.size(); ++i) next_.push(utf8::replacement, true);
      row_.clear();
    }

   private:
    static int byte_of(std::string_view token) {
      if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
      int byte = 0;
      for (const char c : token.substr(3, 2)) {
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return -1;
        byte = byte * 16 + digit;
      }
      return byte;
    }
    bool streaming_;
    std::string row_;
  };

 public:
  std::unique_ptr<DecodeStep> begin(DecodeStep& next, bool streaming) const override {
    return std::make_unique<Step>(next, streaming);
  }
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
      if (matches_.empty())
        next_.push(token, true);
      else
        next_.push(replace_matches(token, matches_, replace_.content_), true);
    }

   private:
    const Replace& replace_;
    std::vector<Match> matches_;
  };

 public:
  Replace(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  std::unique_ptr<DecodeStep> begin(DecodeStep& next, bool) const override {
    return std::make_unique<Step>(next, *this);
  }

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
  Strip(std::string character, std::size_t start, std::size_t stop)
      : character_(std::move(character)), start_(start), stop_(stop) {}
  std::unique_ptr<DecodeStep> begin(DecodeStep& next, bool) const override {
    return std::make_unique<Step>(next, *this);
  }

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
    if (reader.ok() && !pattern.is_literal())
      reader.fail("tokenizer-unsupported", "a regular expression in a decoder is not carried out");
    decoders.push_back(std::make_unique<Replace>(std::move(pattern), reader.string("content")));
  } else if (type == "Strip") {
    reader.only({"type", "content", "start", "stop"});
    std::string content = reader.string("content");
    if (reader.ok() && (content.empty() || utf8::next(content, 0).size != content.size()))
      reader.member("content").fail("tokenizer-field", "expected one character");
    const std::int32_t start = reader.whole("start"), stop = reader.whole("stop");
    decoders.push_back(
        std::make_unique<Strip>(std::move(content), static_cast<std::size_t>(start), static_cast<std::size_t>(stop)));
  } else if (type == "Sequence") {
    reader.only({"type", "decoders"});
    for (const Reader& r : reader.list("decoders")) read_into(r, decoders);
  } else {
    reader.refuse_type(type, {"ByteLevel", "ByteFallback", "Fuse", "Replace", "Strip", "Sequence"});
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

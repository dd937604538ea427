// Text to token ids and back, as a Hugging Face tokenizer.json describes it.
//
//   text -> added tokens -> normalizer -> pre-tokenizer -> model -> post-processor -> ids -> decoder -> text
//
// Each stage is a small class that was read from the file (see README.md); what the file asks for and is not carried
// out is refused when it is loaded, with its name and line.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/metadata.h"
#include "runtime/base/result.h"

namespace modelc {

struct TokenizerStages;
struct DecodeChain;

// Immutable once loaded, but for a word cache that encode() keeps: any number of threads may use one tokenizer.
class Tokenizer {
 public:
  // Reads a tokenizer.json, or the one in the folder `path`. Kinds of errors: those of reading JSON,
  // "tokenizer-unsupported" (a stage or option that is not carried out), "tokenizer-field" (missing, of the wrong kind,
  // out of range), "tokenizer-vocabulary" (tokens, ids and merges that do not fit together), "tokenizer-regex", "tokenizer-charsmap".
  static Result<Tokenizer> load(const std::string& path);
  // The same from text; `name` is what messages call it.
  static Result<Tokenizer> parse(std::string_view json, const std::string& name = "tokenizer.json");

  // As a GGUF holds it (tokenizer.ggml.*); see gguf.h for what is carried out.
  static Result<Tokenizer> from_metadata(const Metadata& metadata, const std::string& name = "metadata");

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // The ids of `text`. Added tokens (special ones too) inside the text become their ids; `add_special_tokens` is about
  // those that the post-processor puts around it. What is not UTF-8 in `text` is read as Python's
  // bytes.decode("utf-8", errors="replace") reads it: U+FFFD for each longest run of bytes that begins a character and
  // is cut short, and for each other stray byte. Fails only where a pattern of the file exceeds the limits of regular
  // expressions on this text ("tokenizer-regex"), or where the vocabulary has nothing for a part of it and no unknown
  // token ("tokenizer-text").
  Result<std::vector<std::int32_t>> encode(std::string_view text, bool add_special_tokens = true) const;

  // Two texts that belong together (a question and its passage), as the post-processor joins them.
  Result<std::vector<std::int32_t>> encode_pair(std::string_view first, std::string_view second, bool add_special_tokens = true) const;

  // The text of `ids`. Ids outside the vocabulary are left out, as are special tokens if asked for; bytes that are no
  // UTF-8 become U+FFFD. See StreamingDecoder for one id at a time.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = true) const;

  // How many tokens there are, the added ones included, and one more than the largest id (the two differ where the
  // numbering has holes).
  std::int32_t vocab_size() const;
  std::int32_t id_end() const;

  // The token as the vocabulary spells it ("Ġthe" for " the" in a byte-level one); nothing where there is none.
  std::optional<std::string_view> token(std::int32_t id) const;
  std::optional<std::int32_t> id(std::string_view token) const;

  // The ids that the file marks as special, ascending. Which of them begins or ends a text is said by the model's
  // configuration, not by this file.
  const std::vector<std::int32_t>& special_ids() const;
  bool is_special(std::int32_t id) const;

  // What the file says and this reader does not follow, one sentence each: truncation and padding (lengths are the
  // caller's business), ids of added tokens that disagree with the numbering.
  const std::vector<std::string>& warnings() const;

 private:
  friend class StreamingDecoder;
  explicit Tokenizer(std::unique_ptr<const TokenizerStages> stages);
  std::unique_ptr<const TokenizerStages> stages_;
};

// Decodes ids as they come. The pieces, put together, are what decode() gives for all ids at once; no piece ends within
// a character. (One difference: where byte-fallback tokens <0x..> in a row are no UTF-8, decode() replaces the whole
// row, but here its whole characters have been given out already.) The tokenizer must outlive it.
class StreamingDecoder {
 public:
  explicit StreamingDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = true);
  StreamingDecoder(StreamingDecoder&&) noexcept;
  StreamingDecoder& operator=(StreamingDecoder&&) noexcept;
  ~StreamingDecoder();

  // The text that `id` completes; may be empty.
  std::string push(std::int32_t id);
  // What was held back; U+FFFD for a character cut short. The decoder then begins anew.
  std::string finish();

 private:
  const TokenizerStages* stages_;
  std::unique_ptr<DecodeChain> chain_;
  bool skip_special_tokens_;
};

}  // namespace modelc

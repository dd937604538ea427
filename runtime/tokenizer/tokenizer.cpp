#include "runtime/tokenizer/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "runtime/base/json.h"
#include "runtime/base/strings.h"
#include "runtime/tokenizer/added_tokens.h"
#include "runtime/tokenizer/decoder.h"
#include "runtime/tokenizer/gguf.h"
#include "runtime/tokenizer/model.h"
#include "runtime/tokenizer/normalizer.h"
#include "runtime/tokenizer/post_processor.h"
#include "runtime/tokenizer/pre_tokenizer.h"
#include "runtime/tokenizer/reader.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc {

struct TokenizerStages {
  AddedTokens added;
  std::unique_ptr<Normalizer> normalizer;  // may be null, as the next
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  std::unique_ptr<Model> model;
  std::unique_ptr<PostProcessor> post_processor;  // may be null
  std::vector<std::unique_ptr<Decoder>> decoders;
  std::vector<std::int32_t> special;  // ascending
  std::vector<std::string> warnings;
  std::int32_t size = 0, end = 0;

  // What decoding makes of an id: the token as it is searched for in text, so that the decoder can undo the normal
  // form.
  std::optional<std::string_view> decoded(std::int32_t id, bool skip_special) const {
    if (const AddedToken* token = added.find(id)) {
      if (skip_special && token->special) return std::nullopt;
      return token->spelling;
    }
    const Vocabulary& vocabulary = model->vocabulary();
    if (!vocabulary.has(id)) return std::nullopt;
    return vocabulary.token(id);
  }
};

namespace {

// Texts beyond this would not leave room for positions of 32 bits once bytes are spelled out.
constexpr std::size_t longest_text = std::size_t{1} << 30;

std::unique_ptr<TokenizerStages> read_stages(const Json& root, ReadState& state, std::unique_ptr<Model> model = nullptr) {
  const Reader file(root, "", state);
  auto stages = std::make_unique<TokenizerStages>();
  if (!root.is_object()) {
    file.fail("tokenizer-field", "expected an object, found " + std::string(kind_name(root.kind())));
    return nullptr;
  }
  if (file.has("version") && file.string("version") != "1.0")
    file.member("version").fail("tokenizer-unsupported",
                                "version " + quote(file.string("version")) + " of the format is not carried out, only \"1.0\"");
  for (const char* key : {"truncation", "padding"})
    if (file.has(key)) stages->warnings.push_back("the file asks for " + std::string(key) + ", which is left to the caller");
  if (file.has("normalizer")) stages->normalizer = read_normalizer(file.member("normalizer"));
  if (file.has("pre_tokenizer")) stages->pre_tokenizer = read_pre_tokenizer(file.member("pre_tokenizer"));
  if (file.has("post_processor")) stages->post_processor = read_post_processor(file.member("post_processor"));
  stages->decoders = file.has("decoder") ? read_decoders(file.member("decoder")) : without_decoder();
  if (!state.error) stages->model = model ? std::move(model) : read_model(file.member("model"));
  if (state.error || !stages->model) return nullptr;
  const Vocabulary& vocabulary = stages->model->vocabulary();
  if (file.has("added_tokens"))
    stages->added = AddedTokens::read(file.list("added_tokens"), vocabulary, stages->normalizer.get(), stages->warnings);
  if (state.error) return nullptr;
  stages->size = static_cast<std::int32_t>(vocabulary.size());
  stages->end = vocabulary.end();
  for (const AddedToken& token : stages->added.all()) {
    if (vocabulary.find(token.content) < 0) ++stages->size;
    stages->end = std::max(stages->end, token.id + 1);
    if (token.special) stages->special.push_back(token.id);
  }
  std::sort(stages->special.begin(), stages->special.end());
  return stages;
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerStages> stages) : stages_(std::move(stages)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::load(const std::string& path) {
  std::error_code ignored;
  const std::string file = std::filesystem::is_directory(path, ignored) ? (std::filesystem::path(path) / "tokenizer.json").string() : path;
  Result<JsonFile> read = read_json_file(file);
  if (!read) return read.error();
  ReadState state{file, {}};
  std::unique_ptr<TokenizerStages> stages = read_stages(read->root, state);
  if (!stages) return *state.error;
  return Tokenizer(std::move(stages));
}

Result<Tokenizer> Tokenizer::parse(std::string_view json, const std::string& name) {
  JsonOptions options;
  options.name = name;
  Result<Json> root = parse_json(json, options);
  if (!root) return root.error();
  ReadState state{name, {}};
  std::unique_ptr<TokenizerStages> stages = read_stages(*root, state);
  if (!stages) return *state.error;
  return Tokenizer(std::move(stages));
}

Result<Tokenizer> Tokenizer::from_metadata(const Metadata& metadata, const std::string& name) {
  Result<GgufTokenizer> read = read_gguf_tokenizer(metadata, name);
  if (!read) return std::move(read.error());
  ReadState state{name, {}};
  std::unique_ptr<TokenizerStages> stages = read_stages(read->stages, state, std::move(read->model));
  if (!stages) return *state.error;
  stages->warnings.insert(stages->warnings.end(), read->warnings.begin(), read->warnings.end());
  return Tokenizer(std::move(stages));
}

namespace {

// The ids of one text, before the post-processor.
Status encode_one(const TokenizerStages& stages, std::string_view text, std::vector<std::int32_t>& ids) {
  if (text.size() > longest_text)
    return Error{"tokenizer-text",
                 "the text has " + human_bytes(text.size()) + ", more than the 1 GiB that can be encoded at once",
                 {},
                 "encode it in parts"};
  std::string repaired;
  if (utf8::valid_prefix(text) != text.size()) {
    repaired = utf8::replace_invalid(text);
    text = repaired;
  }
  Result<Pieces> pieces = stages.added.extract(text, stages.normalizer.get());
  if (!pieces) return pieces.error();
  if (stages.pre_tokenizer)
    if (Status status = stages.pre_tokenizer->apply(*pieces); !status) return status;
  ids.reserve(pieces->text.size() / 4 + 8);
  return stages.model->encode(*pieces, ids);
}

std::vector<std::int32_t> joined(IdRows rows) {
  if (rows.size() == 1) return std::move(rows[0]);
  std::vector<std::int32_t> ids;
  for (const auto& row : rows) ids.insert(ids.end(), row.begin(), row.end());
  return ids;
}

}  // namespace

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  IdRows rows(1);
  if (Status status = encode_one(*stages_, text, rows[0]); !status) return status.error();
  if (stages_->post_processor) stages_->post_processor->apply(rows, add_special_tokens);
  return joined(std::move(rows));
}

Result<std::vector<std::int32_t>> Tokenizer::encode_pair(std::string_view first, std::string_view second, bool add_special_tokens) const {
  IdRows rows(2);
  if (Status status = encode_one(*stages_, first, rows[0]); !status) return status.error();
  if (Status status = encode_one(*stages_, second, rows[1]); !status) return status.error();
  if (stages_->post_processor) stages_->post_processor->apply(rows, add_special_tokens);
  return joined(std::move(rows));
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  DecodeChain chain(stages_->decoders, false);
  for (const std::int32_t id : ids)
    if (const auto token = stages_->decoded(id, skip_special_tokens)) chain.push(*token);
  chain.finish();
  return chain.take();
}

std::int32_t Tokenizer::vocab_size() const { return stages_->size; }
std::int32_t Tokenizer::id_end() const { return stages_->end; }

std::optional<std::string_view> Tokenizer::token(std::int32_t id) const {
  if (const AddedToken* token = stages_->added.find(id)) return token->content;
  const Vocabulary& vocabulary = stages_->model->vocabulary();
  if (!vocabulary.has(id)) return std::nullopt;
  return vocabulary.token(id);
}

std::optional<std::int32_t> Tokenizer::id(std::string_view token) const {
  if (const AddedToken* added = stages_->added.find(token)) return added->id;
  const std::int32_t id = stages_->model->vocabulary().find(token);
  if (id < 0) return std::nullopt;
  return id;
}

const std::vector<std::int32_t>& Tokenizer::special_ids() const { return stages_->special; }

bool Tokenizer::is_special(std::int32_t id) const { return std::binary_search(stages_->special.begin(), stages_->special.end(), id); }

const std::vector<std::string>& Tokenizer::warnings() const { return stages_->warnings; }

StreamingDecoder::StreamingDecoder(const Tokenizer& tokenizer, bool skip_special_tokens)
    : stages_(tokenizer.stages_.get()),
      chain_(std::make_unique<DecodeChain>(stages_->decoders, true)),
      skip_special_tokens_(skip_special_tokens) {}
StreamingDecoder::StreamingDecoder(StreamingDecoder&&) noexcept = default;
StreamingDecoder& StreamingDecoder::operator=(StreamingDecoder&&) noexcept = default;
StreamingDecoder::~StreamingDecoder() = default;

std::string StreamingDecoder::push(std::int32_t id) {
  if (const auto token = stages_->decoded(id, skip_special_tokens_)) chain_->push(*token);
  return chain_->take();
}

std::string StreamingDecoder::finish() {
  chain_->finish();
  return chain_->take();
}

}  // namespace modelc

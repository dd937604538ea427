#include "runtime/tokenizer/model.h"

#include <algorithm>
#include <string>

#include "runtime/base/strings.h"
#include "runtime/tokenizer/bpe.h"
#include "runtime/tokenizer/unigram.h"
#include "runtime/tokenizer/word_models.h"

namespace modelc {

void read_vocabulary(const Reader& reader, Vocabulary& vocabulary) {
  const Reader vocab = reader.member("vocab");
  const JsonObject* object = vocab.json().as_object();
  if (!object) return vocab.fail("tokenizer-field", "expected an object from tokens to ids");
  std::size_t bytes = 0;
  for (const JsonMember& m : *object) bytes += m.key.size();
  vocabulary.reserve(object->size(), bytes);
  // Ids number the rows of a table, so a few large ones must not make it huge.
  const std::size_t limit = std::max<std::size_t>(1u << 20, 4 * object->size());
  for (const JsonMember& m : *object) {
    const auto at = [&] { return Reader(m.value, "model.vocab[" + quote(m.key) + "]", reader.state()); };
    const std::optional<std::uint64_t> id = m.value.as_uint();
    if (!id || *id >= limit) return at().fail("tokenizer-vocabulary", "expected an id from 0 to " + std::to_string(limit - 1));
    if (vocabulary.add(m.key, static_cast<std::int32_t>(*id)) == Vocabulary::Added::id_twice)
      return at().fail("tokenizer-vocabulary", "the id " + std::to_string(*id) + " is that of another token too, " +
                                                   quote(vocabulary.token(static_cast<std::int32_t>(*id))));
  }
}

std::vector<std::int32_t> byte_tokens_of(const Vocabulary& vocabulary) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::vector<std::int32_t> tokens;
  for (unsigned b = 0; b < 256; ++b) tokens.push_back(vocabulary.find(std::string("<0x") + digits[b >> 4] + digits[b & 15] + ">"));
  return tokens;
}

std::unique_ptr<Model> read_model(const Reader& reader) {
  // Files of old have no type here: the members say what they are.
  std::string type = "BPE";
  if (reader.has("type") || !(reader.has("merges") || reader.has("unk_id"))) type = reader.type();
  else if (!reader.has("merges")) type = "Unigram";
  if (!reader.ok()) return nullptr;
  if (type == "BPE") return Bpe::read(reader);
  if (type == "Unigram") return Unigram::read(reader);
  if (type == "WordPiece") return WordPiece::read(reader);
  if (type == "WordLevel") return WordLevel::read(reader);
  reader.refuse_type(type, {"BPE", "Unigram", "WordPiece", "WordLevel"});
  return nullptr;
}

}  // namespace modelc

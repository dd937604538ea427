// Any bytes as the metadata of a GGUF: its tokenizer, and a text encoded and decoded with it; and its chat template.
#include <string_view>

#include "runtime/checkpoint/gguf/reader.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace modelc;
  static const fuzz::MemoryFile file;
  file.set(data, size);
  const auto header = read_gguf_header(file.path(), {.label = "x.gguf", .allow_trailing = true});
  if (!header) return 0;
  const auto tokenizer = Tokenizer::from_metadata(header->metadata, "x.gguf");
  if (!tokenizer) {
    fuzz::check_error(tokenizer.error());
    return 0;
  }
  constexpr std::string_view text = "The 12 \xF0\x9F\x98\x80 <s> a\xFF ab\n";
  const auto ids = tokenizer->encode(text);
  if (!ids) {
    fuzz::check_error(ids.error());
    return 0;
  }
  static_cast<void>(tokenizer->decode(*ids));
  StreamingDecoder stream(*tokenizer);
  for (const std::int32_t id : *ids) static_cast<void>(stream.push(id));
  static_cast<void>(stream.finish());
  return 0;
}

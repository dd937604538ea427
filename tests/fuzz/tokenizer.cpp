// Any bytes as a tokenizer.json, a line of %%%, and a text to encode and decode with it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = all.find("\n%%%\n");
  const std::string_view text = cut == std::string_view::npos ? std::string_view("The 12 \xF0\x9F\x98\x80 a\xFF") : all.substr(cut + 5);
  const auto tokenizer = modelc::Tokenizer::parse(all.substr(0, cut));
  if (!tokenizer) return 0;
  const auto ids = tokenizer->encode(text);
  static_cast<void>(tokenizer->encode_pair(text, "b"));
  if (!ids) return 0;
  static_cast<void>(tokenizer->decode(*ids));
  modelc::StreamingDecoder stream(*tokenizer);
  for (const std::int32_t id : *ids) static_cast<void>(stream.push(id));
  static_cast<void>(stream.finish());
  return 0;
}

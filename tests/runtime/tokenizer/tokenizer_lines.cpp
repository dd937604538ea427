// Encodes and decodes for scripts that compare with another implementation:
//   tokenizer_lines TOKENIZER.json|FILE.gguf < lines
// Each line is a JSON string; or a JSON list of ids. Out comes, for a string, a line of JSON {"ids": [..], "special":
// [..], "decoded": "..", "streamed": ".."}, decoded and streamed from the latter ids without skipping; for ids the two
// texts.
#include <iostream>
#include <string>

#include "runtime/base/json.h"
#include "runtime/checkpoint/open.h"
#include "runtime/tokenizer/tokenizer.h"

using namespace modelc;

namespace {

Json list(const std::vector<std::int32_t>& ids) {
  JsonArray array;
  for (const std::int32_t id : ids) array.emplace_back(static_cast<std::int64_t>(id));
  return array;
}

void decode(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids, JsonObject& out) {
  out.set("decoded", tokenizer.decode(ids, false));
  StreamingDecoder stream(tokenizer, false);
  std::string text;
  for (const std::int32_t id : ids) text += stream.push(id);
  text += stream.finish();
  out.set("streamed", text);
}

Result<Tokenizer> read(const std::string& path) {
  if (!path.ends_with(".gguf")) return Tokenizer::load(path);
  auto checkpoint = open_checkpoint(path);
  if (!checkpoint) return std::move(checkpoint.error());
  return Tokenizer::from_metadata(*checkpoint->metadata, path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const Result<Tokenizer> tokenizer = read(argv[1]);
  if (!tokenizer) {
    std::cerr << tokenizer.error().text() << "\n";
    return 1;
  }
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    const Result<Json> value = parse_json(line);
    if (!value) {
      std::cerr << value.error().text() << "\n";
      return 1;
    }
    JsonObject out;
    if (const std::string* text = value->as_string()) {
      const auto ids = tokenizer->encode(*text, false), special = tokenizer->encode(*text, true);
      if (!ids || !special) {
        out.set("error", (ids ? special : ids).error().text());
      } else {
        out.set("ids", list(*ids));
        out.set("special", list(*special));
        decode(*tokenizer, *special, out);
      }
    } else if (const JsonArray* array = value->as_array()) {
      std::vector<std::int32_t> ids;
      for (const Json& id : *array) ids.push_back(static_cast<std::int32_t>(id.as_int().value_or(-1)));
      decode(*tokenizer, ids, out);
    }
    std::cout << dump(out) << "\n";
  }
  return 0;
}

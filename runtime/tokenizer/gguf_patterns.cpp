#include "runtime/tokenizer/gguf_patterns.h"

#include <algorithm>

namespace modelc {

namespace {

constexpr std::string_view digits_by_three =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view digits_by_one =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Words by case: capitals begin one.
constexpr std::string_view words_by_case =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view words_by_case_one_digit =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// After digits by three and runs of Chinese and Japanese: a sign goes with the letters after it, signs with their spaces.
constexpr std::string_view letters_and_signs =
    R"x([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)x"
    R"x(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)x";

bool among(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::optional<GgufPattern> gguf_pattern(std::string_view pre) {
  GgufPattern p;
  if (among(pre, {"gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jina-v1-en", "roberta-bpe"})) {
    p.byte_level_regex = true;
  } else if (among(pre, {"smollm", "starcoder", "refact", "command-r", "codeshell"})) {
    p.byte_level_regex = p.single_digits = true;
  } else if (among(pre, {"llama-bpe", "llama3", "llama-v3", "falcon3"})) {
    p.splits = {digits_by_three};
    p.ignore_merges = true;
  } else if (among(pre, {"dbrx", "smaug-bpe"})) {
    p.splits = {digits_by_three};
  } else if (among(pre, {"qwen2", "deepseek-r1-qwen", "megrez"})) {
    p.splits = {digits_by_one};
    p.nfc = true;
  } else if (pre == "stablelm2") {
    p.splits = {digits_by_one};
  } else if (among(pre, {"gpt-4o", "llama4"})) {
    p.splits = {words_by_case};
  } else if (pre == "tekken") {
    p.splits = {words_by_case_one_digit};
    p.ignore_merges = true;
  } else if (pre == "deepseek-v3") {
    p.splits = {R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+", letters_and_signs};
  } else {
    return std::nullopt;
  }
  return p;
}

std::vector<std::string_view> gguf_pattern_names() {
  return {"gpt-2", "smollm", "llama-bpe", "dbrx", "qwen2", "stablelm2", "gpt-4o", "tekken", "deepseek-v3"};
}

}  // namespace modelc

#include "runtime/tokenizer/gguf_patterns.h"

#include <algorithm>

namespace modelc {

namespace {

constexpr std::string_view digits_by_three =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view digits_by_one =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// The letters' marks go with them.
constexpr std::string_view digits_by_one_marks =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Signs without what ends their line.
constexpr std::string_view signs_on_their_line =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
// What the byte alphabet's own pattern is, without its last part.
constexpr std::string_view words = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
// Words up to a sign that ends a sentence, of several scripts.
constexpr std::string_view sentences = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
// Words by case: capitals begin one.
constexpr std::string_view words_by_case =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view words_by_case_one_digit = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
                                                     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
                                                     R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// After digits by three and runs of Chinese and Japanese: a sign goes with the letters after it, signs with their spaces.
constexpr std::string_view letters_and_signs = R"x([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)x"
                                               R"x(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)x";

struct Entry {
  std::vector<std::string_view> names;                     // the first is what a writer takes
  GgufPattern pattern;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
      {{"gpt-2",   "gpt2",    "phi-2",       "mpt",      "olmo",    "jais",   "jina-v1-en",  "jina-v2-es", "jina-v2-de", "jina-v2-code",
        "jina-es", "jina-de", "roberta-bpe", "gigachat", "a.x-4.0", "mellum", "modern-bert", "exaone4",    "trillion",   "granite-docling"},
       {.byte_level_regex = true}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"},
       {.byte_level_regex = true, .single_digits = true}},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano", "glm4", "glm5"},
       {.splits = {digits_by_three}, .ignore_merges = true}},
      {{"dbrx", "smaug-bpe", "chatglm-bpe"}, {.splits = {digits_by_three}}},
      {{"qwen2", "deepseek-r1-qwen", "megrez", "kormo", "f2llmv2"}, {.splits = {digits_by_one}, .nfc = true}},
      {{"stablelm2", "hunyuan", "solar-open", "grok-2", "bailingmoe", "bailingmoe2", "llada-moe"}, {.splits = {digits_by_one}}},
      {{"qwen35"}, {.splits = {digits_by_one_marks}, .nfc = true}},
      {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, {.splits = {words_by_case}}},
      {{"tekken"}, {.splits = {words_by_case_one_digit}, .ignore_merges = true}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
       {.splits = {R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+", letters_and_signs}}},
      {{"deepseek-coder"}, {.splits = {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[一-龥ࠀ-一가-\xED\x9F\xBF]+", R"(\p{N})"}}},
      {{"falcon"}, {.splits = {R"([\p{P}$+<=>^~|`]+)", words, "[0-9][0-9][0-9]"}}},
      {{"seed-coder"}, {.splits = {signs_on_their_line}}},
      {{"bloom", "poro-chat", "gpt3-finnish"}, {.splits = {sentences}}},
      {{"viking"}, {.splits = {sentences, R"(\p{N})"}}},
      // For files that do not say how theirs are cut.
      {{"default"}, {.splits = {R"([\p{P}$+<=>^~|]+)", words, R"(\p{N}+)", "[0-9][0-9][0-9]"}}},
  };
  return all;
}

}  // namespace

std::optional<GgufPattern> gguf_pattern(std::string_view pre) {
  for (const Entry& e : entries())
    if (std::find(e.names.begin(), e.names.end(), pre) != e.names.end()) return e.pattern;
  return std::nullopt;
}

std::vector<std::string_view> gguf_pattern_names() {
  std::vector<std::string_view> names;
  for (const Entry& e : entries()) names.push_back(e.names.front());
  return names;
}

}  // namespace modelc

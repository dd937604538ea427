// Texts changed at random: whatever is written, it comes out as a right graph or as messages, and nothing falls over.
#include <doctest/doctest.h>

#include <cctype>
#include <random>
#include <string>
#include <vector>

#include "modules_support.h"

using namespace modelc::sema::test;

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Words and what stands between them, in turns.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (!parts.back().empty() && is_word(parts.back().back()) != is_word(c)) parts.emplace_back();
    parts.back() += c;
  }
  return parts;
}

void mutate(const std::string& path, const std::string& config, unsigned seed, int count) {
  const std::string text = text_of_file(path);
  const std::vector<std::string> parts = parts_of(text.substr(text.find("language 1") + 10));
  std::vector<std::size_t> words;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (is_word(parts[i][0])) words.push_back(i);
  }
  std::mt19937 random(seed);
  int graphs = 0, refused = 0;
  for (int k = 0; k < count; ++k) {
    std::vector<std::string> changed = parts;
    const std::size_t at = words[random() % words.size()], other = words[random() % words.size()];
    switch (random() % 3) {
      case 0: changed[at] = parts[other]; break;
      case 1: std::swap(changed[at], changed[other]); break;
      default: changed[at] = std::to_string(random() % 4); break;
    }
    std::string mutant;
    for (const std::string& part : changed) mutant += part;
    CAPTURE(k);
    Model m(mutant);
    m.config(config);
    const bool graph = m.program().has_value();  // the verifier has found nothing in it
    CHECK(graph != m.sink.has_errors());
    CHECK_FALSE((!graph && m.messages().empty()));
    (graph ? graphs : refused) += 1;
  }
  // Of both there are enough for the test to mean something.
  CHECK(graphs > count / 50);
  CHECK(refused > count / 4);
}

}  // namespace

TEST_CASE("changed at random: Llama") {
  mutate(MODELC_SOURCE_DIR "/examples/llama/llama.model", text_of_file(MODELC_SOURCE_DIR "/examples/llama/fixtures/llama-tiny/config.json"),
         1, 250);
}

TEST_CASE("changed at random: much of the language at once") {
  mutate(MODELC_SOURCE_DIR "/tests/frontend/sema/mixed.model",
         R"({"vocab": 50, "size": 16, "inner": 24, "heads": 2, "layers": 5, "longest_text": 32, "theta": 100.0,
             "eps": 1e-5, "act": "gelu", "sizes": [8, 8, 9, 8, 8]})",
         2, 250);
}

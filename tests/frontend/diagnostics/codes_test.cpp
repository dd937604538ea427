#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "frontend/diagnostics/codes.h"

#include <doctest/doctest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

using namespace modelc;

namespace {

// All the text that tests hold: sources, cases and what is expected of them.
std::string text_of_tests() {
  std::ostringstream all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(MODELC_SOURCE_DIR "/tests")) {
    static const std::set<std::string> kinds = {".cpp", ".h", ".test", ".model", ".py", ".sh", ".txt", ".json"};
    if (!entry.is_regular_file() || kinds.count(entry.path().extension().string()) == 0) continue;
    if (entry.path().filename() == "codes_test.cpp") continue;
    all << std::ifstream(entry.path()).rdbuf() << '\n';
  }
  return all.str();
}

bool holds_word(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool ends = end == text.size() || (!std::isalnum(static_cast<unsigned char>(text[end])) && text[end] != '_');
    const bool begins = at == 0 || (!std::isalnum(static_cast<unsigned char>(text[at - 1])) && text[at - 1] != '_');
    if (begins && ends) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("codes are well formed and used once") {
  std::set<std::string_view> texts, ids;
  REQUIRE_FALSE(diag::all_codes().empty());
  for (const diag::Code& c : diag::all_codes()) {
    CAPTURE(c.text);
    CAPTURE(c.id);
    REQUIRE(c.text.size() == 5);
    CHECK((c.text[0] == 'E' || c.text[0] == 'W' || c.text[0] == 'N'));
    for (const char digit : c.text.substr(1)) CHECK(std::isdigit(static_cast<unsigned char>(digit)));
    CHECK(texts.insert(c.text).second);
    CHECK(ids.insert(c.id).second);
  }
}

TEST_CASE("each code has a title and an explanation") {
  for (const diag::Code& c : diag::all_codes()) {
    CAPTURE(c.text);
    CHECK_FALSE(c.title.empty());
    CHECK(c.title.back() != '.');
    CHECK(c.title.find('\n') == std::string_view::npos);
    CHECK(c.explanation.size() > 40);
  }
}

TEST_CASE("each code stands in a test: a message without one does not exist") {
  const std::string text = text_of_tests();
  for (const diag::Code& c : diag::all_codes()) {
    CAPTURE(c.text);
    CAPTURE(c.id);
    const bool found = holds_word(text, std::string(c.text)) || holds_word(text, "code::" + std::string(c.id));
    CHECK_MESSAGE(found, "no test under tests/ names ", std::string(c.text), " or code::", std::string(c.id));
  }
}

TEST_CASE("codes are found in either case and explained") {
  const diag::Code* code = diag::find_code("e0110");
  REQUIRE(code != nullptr);
  CHECK(code->id == "unexpected_token");
  CHECK(diag::find_code("E9999") == nullptr);
  CHECK(diag::find_code("") == nullptr);
  const std::string text = diag::explain(*code);
  CHECK(text.rfind("E0110: the text is not a sentence of the language\n\n", 0) == 0);
  CHECK(text.back() == '\n');
  CHECK(text.find("\n\n\n") == std::string::npos);
}

TEST_CASE("a code's letter is its severity") {
  CHECK(diag::Code{"E0001", "", "", ""}.severity() == diag::Severity::error);
  CHECK(diag::Code{"W0001", "", "", ""}.severity() == diag::Severity::warning);
  CHECK(diag::Code{"N0001", "", "", ""}.severity() == diag::Severity::note);
}

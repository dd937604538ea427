// Patterns against what Oniguruma makes of them, and what is refused.
#include <doctest/doctest.h>

#include "runtime/base/json.h"
#include "runtime/tokenizer/pre_tokenizer.h"
#include "runtime/tokenizer/regex.h"

using namespace modelc;

namespace {

std::string refused(const std::string& pattern) {
  const Result<Regex> regex = Regex::compile(pattern);
  REQUIRE(!regex);
  CHECK(regex.error().kind == "tokenizer-regex");
  return regex.error().message;
}

}  // namespace

TEST_CASE("patterns cut a text where the reference cuts it") {
  const Result<JsonFile> file = read_json_file(MODELC_SOURCE_DIR "/tests/runtime/tokenizer/cases/patterns.json");
  REQUIRE(file);
  const std::string& text = *file->root.find("text")->as_string();
  const JsonArray& patterns = *file->root.find("patterns")->as_array();
  REQUIRE(patterns.size() > 80);
  for (const Json& row : patterns) {
    const std::string& pattern = *row.find("pattern")->as_string();
    CAPTURE(pattern);
    const Result<Regex> regex = Regex::compile(pattern);
    REQUIRE_MESSAGE(regex, regex.error().text());
    std::vector<Match> matches, parts;
    REQUIRE(regex->find_all(text, matches));
    split_at(matches, text.size(), SplitBehavior::isolated, false, parts);
    std::vector<std::int64_t> ends, expected;
    for (const Match& m : parts) ends.push_back(static_cast<std::int64_t>(m.end));
    for (const Json& end : *row.find("ends")->as_array()) expected.push_back(*end.as_int());
    CHECK(ends == expected);
  }
}

TEST_CASE("what is not carried out in a pattern is refused with its place") {
  CHECK(refused("a\\Kb") == "regular expression \"a\\\\Kb\" has the escape \\K, which is not carried out, at byte 1");
  CHECK(refused("(a)\\1").find("the escape \\1") != std::string::npos);
  CHECK(refused("(?x) a").find("an option other than i and m") != std::string::npos);
  CHECK(refused("(?s:.)").find("an option other than i and m") != std::string::npos);
  CHECK(refused("(?~ab)").find("a group of another kind") != std::string::npos);
  CHECK(refused("a(?i)b").find("options (?..) that do not begin a group") != std::string::npos);
  CHECK(refused("a**").find("a quantifier on a quantifier") != std::string::npos);
  CHECK(refused("a{2}{3}").find("a quantifier on a quantifier") != std::string::npos);
  CHECK(refused("\\p{Klingon}").find("the property \"Klingon\"") != std::string::npos);
  CHECK(refused("\\pL").find("a \\p without {..}") != std::string::npos);
  CHECK(refused("[[:graph:]]").find("the class [:graph:]") != std::string::npos);
  CHECK(refused("\\xff").find("a byte beyond ASCII") != std::string::npos);
  CHECK(refused("\\X").find("the escape \\X") != std::string::npos);
  CHECK(refused("(?i)[\\p{Lu}a]").find("a property of one case or script between brackets") != std::string::npos);
  CHECK(refused("(?i:[a[^b]])").find("a complement within a class where case is ignored") != std::string::npos);
  CHECK(Regex::compile("(?i:a)[\\p{Lu}a](?i:b(?-i:[[^c]]))"));
  CHECK(refused("[\\d-x]").find("a range that begins with a class") != std::string::npos);
}

TEST_CASE("patterns that are wrong") {
  CHECK(refused("(a") == "regular expression \"(a\" has a group without an end at byte 2");
  CHECK(refused("a)").find("an unmatched )") != std::string::npos);
  CHECK(refused("[a").find("a [ without its ]") != std::string::npos);
  CHECK(refused("*a").find("a quantifier that follows nothing") != std::string::npos);
  CHECK(refused("a|*").find("a quantifier that follows nothing") != std::string::npos);
  CHECK(refused("a\\").find("a backslash at its end") != std::string::npos);
  CHECK(refused("[z-a]").find("a range that is empty") != std::string::npos);
  CHECK(refused("\\x{110000}").find("a number that is no character") != std::string::npos);
  CHECK(refused("\\u12").find("too few hexadecimal digits") != std::string::npos);
  CHECK(refused("(?#").find("a comment without an end") != std::string::npos);
  CHECK(refused("\xFF").find("is not UTF-8") != std::string::npos);
  CHECK(refused(std::string(200, '(') + std::string(200, ')')).find("nested more than 100 deep") != std::string::npos);
  // Left to PCRE2, whose words then stand in the message.
  CHECK(refused("(?<=a+)b").find("lookbehind") != std::string::npos);
}

TEST_CASE("the additions of Unicode are there whatever the library knows") {
  for (const bool additions : {false, true}) {
    const Result<std::string> translated = translate_pattern("\\p{N}", additions);
    REQUIRE(translated);
    CHECK((translated->find("1E4F0") != std::string::npos) == additions);
  }
  const Result<Regex> letters = Regex::compile("\\p{L}+");
  std::vector<Match> matches;
  CHECK(letters->find_all("\U00031350\U0002EBF0 \U0001E4F0", matches));
  REQUIRE(matches.size() == 1);
  CHECK(matches[0].end == 8);
}

TEST_CASE("a deep match gets the memory that it needs; a hopeless one is given up") {
  const Result<Regex> deep = Regex::compile("(?:a|b)+c");
  REQUIRE(deep);
  std::vector<Match> matches;
  const std::string text = std::string(400000, 'a') + "c";
  CHECK(deep->find_all(text, matches));
  REQUIRE(matches.size() == 1);
  CHECK(matches[0].end == text.size());

  const Result<Regex> hopeless = Regex::compile("(?:a|a?)+d");
  REQUIRE(hopeless);
  const Status status = hopeless->find_all(std::string(60, 'a') + " d", matches);
  REQUIRE(!status);
  CHECK(status.error().kind == "tokenizer-regex");
  CHECK(status.error().message.find("failed at byte 0 of a text of 62 bytes") != std::string::npos);
}

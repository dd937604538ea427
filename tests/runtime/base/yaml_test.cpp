#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <limits>
#include <random>

#include "runtime/base/yaml.h"
#include "tests/runtime/base/temporary_folder.h"

using namespace modelc;

namespace {

Json parsed(std::string_view text) {
  Result<Json> r = parse_yaml(text);
  if (!r) FAIL(r.error().text());
  return *std::move(r);
}

std::string refused(std::string_view text, const JsonOptions& options = {}) {
  CAPTURE(text);
  Result<Json> r = parse_yaml(text, options);
  REQUIRE_FALSE(r.ok());
  return r.error().kind;
}

}  // namespace

TEST_CASE("scalars follow the core schema") {
  const Json v = parsed(R"(
int: 12
negative: -3
plus: +4
hex: 0x1F
octal: 0o17
large: 18446744073709551615
float: 1.5
exponent: 1e-5
inf: -.inf
yes: true
no: False
nothing: null
tilde: ~
empty:
word: yes
quoted: "12"
single: 'true'
text: a b:c
tagged: !!str 5
asfloat: !!float 5
zero: 007
version: 1.2.3
)");
  const auto at = [&](const char* key) -> const Json& { return *v.find(key); };
  CHECK(at("int") == Json(12));
  CHECK(at("negative") == Json(-3));
  CHECK(at("plus") == Json(4));
  CHECK(at("hex") == Json(31));
  CHECK(at("octal") == Json(15));
  CHECK(at("large").as_uint() == std::numeric_limits<std::uint64_t>::max());
  CHECK(at("float") == Json(1.5));
  CHECK(at("exponent") == Json(1e-5));
  CHECK(at("inf") == Json(-std::numeric_limits<double>::infinity()));
  CHECK(at("yes") == Json(true));
  CHECK(at("no") == Json(false));
  for (const char* key : {"nothing", "tilde", "empty"}) CHECK(at(key).is_null());
  CHECK(at("word") == Json("yes"));
  CHECK(at("quoted") == Json("12"));
  CHECK(at("single") == Json("true"));
  CHECK(at("text") == Json("a b:c"));
  CHECK(at("tagged") == Json("5"));
  CHECK(at("asfloat") == Json(5.0));
  CHECK(at("zero") == Json(7));
  CHECK(at("version") == Json("1.2.3"));
}

TEST_CASE("YAML and JSON give the same tree") {
  const Json json = *parse_json(R"({"a": [1, 2.5, {"b": "x"}], "n": null, "e": [], "o": {}, "t": [true, false]})");
  CHECK(parsed("a:\n  - 1\n  - 2.5\n  - b: x\nn:\ne: []\no: {}\nt: [true, false]\n") == json);
  CHECK(parsed(dump(json, 2)) == json);
}

TEST_CASE("places") {
  const Json v = parsed("# comment\na: 1\nb:\n  c:\n    - 5\n    - 6\n");
  CHECK(v.find("a")->line() == 2);
  CHECK((*v.as_object())[1].line == 3);
  CHECK((*v.find_path("b.c")->as_array())[1].line() == 6);
}

TEST_CASE("aliases are expanded within bounds") {
  const Json v = parsed("base: &b {x: [1, 2]}\none: *b\ntwo: [*b, *b]\nword: &w abc\n*w : 1\n");
  CHECK(*v.find("one") == *v.find("base"));
  CHECK((*v.find("two")->as_array())[1] == *v.find("base"));
  CHECK(v.find("abc")->as_int() == 1);
  // Ten to the tenth values from ten lines.
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 1; k < 10; ++k) bomb += ", " + before;
    bomb += "]\n";
  }
  JsonOptions options;
  options.max_values = 100'000;
  CHECK(refused(bomb, options) == "yaml-size");
  CHECK(refused("a: &a [*a]\n") == "yaml-syntax");
  CHECK(refused("a: *none\n") == "yaml-syntax");
}

TEST_CASE("what is refused") {
  CHECK(refused("a: 1\nb: 2\na: 3\n") == "yaml-duplicate-key");
  CHECK(parse_yaml("a: 1\nb: 2\na: 3\n").error().message == "JSON:3:1: duplicate key \"a\", first at line 1");
  CHECK(refused("x: {a: 1, a: 2}") == "yaml-duplicate-key");
  CHECK(refused("a: .nan") == "yaml-syntax");
  CHECK(refused("a: 1\n---\nb: 2\n") == "yaml-syntax");
  CHECK(refused("") == "yaml-syntax");
  CHECK(refused("a: [1, 2") == "yaml-syntax");
  CHECK(refused("a: 'x") == "yaml-syntax");
  CHECK(refused("a: !python/object x") == "yaml-syntax");
  CHECK(refused("a: !!int x") == "yaml-syntax");
  CHECK(refused("a: !!map [1]") == "yaml-syntax");
  CHECK(refused("base: &b {x: 1}\nc: {<<: *b}\n") == "yaml-syntax");
  CHECK(refused("{[1]: 2}") == "yaml-syntax");
  CHECK(refused("? {a: 1}\n: 2\n") == "yaml-syntax");
  CHECK(refused("a: \xff\n") == "yaml-syntax");
  CHECK(refused("\ta: 1\n") == "yaml-syntax");
  CHECK(refused(std::string(65, '[') + std::string(65, ']')) == "yaml-depth");
  CHECK(parse_yaml(std::string(64, '[') + std::string(64, ']')).ok());
  CHECK_FALSE(parse_yaml(std::string(100'000, '[')).ok());
  (void)parse_yaml(std::string(100'000, '-')).ok();   // any answer will do
  (void)parse_yaml(std::string(100'000, '?')).ok();
}

TEST_CASE("files by their ending") {
  test::TemporaryFolder folder;
  CHECK(read_config_file(folder.write("c.yaml", "a: 1\n"))->root == *parse_json("{\"a\": 1}"));
  CHECK(read_config_file(folder.write("c.YML", "a: 1\n")).ok());
  CHECK(read_config_file(folder.write("c.json", "{\"a\": 1}")).ok());
  CHECK(read_config_file(folder.write("d.json", "a: 1\n")).error().kind == "json-syntax");
  CHECK(read_config_file(folder / "none.yaml").error().kind == "no-such-file");
}

TEST_CASE("damaged texts are refused or read, never worse") {
  const std::string good = "a: &x [1, 2.5, {b: \"x\\n\"}]\nn: ~\nt:\n  - true\n  - *x\ns: |\n  text\n  more\n";
  REQUIRE(parse_yaml(good).ok());
  std::mt19937 random(3);
  constexpr std::string_view alphabet = "{}[]\",:&*!|>-?~#%@ \n\t0a\x80";
  for (int round = 0; round < 5'000; ++round) {
    std::string text = good;
    for (unsigned k = 0, edits = 1 + random() % 4; k < edits; ++k) {
      const std::size_t at = random() % text.size();
      const char c = alphabet[random() % alphabet.size()];
      if (random() % 2) text[at] = c;
      else text.insert(at, 1, c);
    }
    (void)parse_yaml(text).ok();
  }
}

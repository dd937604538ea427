#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "runtime/base/json.h"
#include "tests/runtime/base/temporary_folder.h"

using namespace modelc;

namespace {

Json parsed(std::string_view text) {
  Result<Json> r = parse_json(text);
  if (!r) FAIL(r.error().text());
  return *std::move(r);
}

Error refused(std::string_view text, const JsonOptions& options = {}) {
  Result<Json> r = parse_json(text, options);
  REQUIRE_FALSE(r.ok());
  return r.error();
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("kinds of numbers stay apart") {
  const Json v = parsed(R"([0, -1, 9223372036854775807, 9223372036854775808, 18446744073709551615, 1.0, 1e-05, -0.0,
                            -9223372036854775808, 1000000000000000019884624838656, Infinity, -Infinity])");
  const JsonArray& a = *v.as_array();
  CHECK(a[0].as_int() == 0);
  CHECK(a[1].as_int() == -1);
  CHECK(a[2].kind() == Json::Kind::int64);
  CHECK(a[3].kind() == Json::Kind::uint64);
  CHECK(a[3].as_uint() == 9223372036854775808u);
  CHECK_FALSE(a[3].as_int());
  CHECK(a[4].as_uint() == std::numeric_limits<std::uint64_t>::max());
  CHECK(a[5].kind() == Json::Kind::number);
  CHECK_FALSE(a[5].as_int());
  CHECK(a[6].as_double() == 1e-05);
  CHECK(std::signbit(*a[7].as_double()));
  CHECK(a[8].as_int() == std::numeric_limits<std::int64_t>::min());
  CHECK(a[9].as_double() == 1e30);
  CHECK(a[10].as_double() == std::numeric_limits<double>::infinity());
  CHECK(a[11].as_double() == -std::numeric_limits<double>::infinity());
  CHECK(a[0].as_double() == 0.0);
  CHECK(a[0].as_uint() == 0u);
  CHECK_FALSE(a[1].as_uint());
}

TEST_CASE("values know their place") {
  const Json v = parsed("{\n  \"a\": 1,\n  \"b\": {\"c\":\n [true,\n null]}\n}\n");
  CHECK(v.line() == 1);
  CHECK(v.find("a")->line() == 2);
  CHECK(v.find("a")->offset() == 9);
  const JsonMember& b = (*v.as_object())[1];
  CHECK(b.line == 3);
  CHECK(b.key == "b");
  const Json& c = *v.find_path("b.c");
  CHECK(c.line() == 4);
  CHECK((*c.as_array())[0].line() == 4);
  CHECK((*c.as_array())[1].line() == 5);
  CHECK((*c.as_array())[1].is_null());
  CHECK(v.find_path("b.x") == nullptr);
  CHECK(v.find_path("a.x") == nullptr);
  // A byte order mark counts as bytes of the text.
  CHECK(parsed("\xef\xbb\xbf{\"a\": 1}").find("a")->offset() == 9);
}

TEST_CASE("strings are decoded") {
  CHECK(*parsed(R"("a\"\\\/\b\f\n\r\t\u00fc\ud83d\ude00")").as_string() == "a\"\\/\b\f\n\r\tü😀");
  CHECK(*parsed("\"ü😀\"").as_string() == "ü😀");
  CHECK(parsed(R"({"\u0061": 1})").find("a") != nullptr);
  CHECK(parsed("\"a\\u0000b\"").as_string()->size() == 3);
}

TEST_CASE("scalars alone are values") {
  CHECK(parsed(" 12 ").as_int() == 12);
  CHECK(parsed("true").as_bool() == true);
  CHECK(parsed("null\n").is_null());
  CHECK(*parsed(" \"x\" ").as_string() == "x");
  CHECK(parsed("[]").as_array()->empty());
  CHECK(parsed("{}").as_object()->empty());
}

TEST_CASE("what is not JSON is refused") {
  for (std::string_view text : {"",
                                " \n",
                                "{",
                                "}",
                                "[",
                                "]",
                                "[1",
                                "[1,",
                                "[1,]",
                                "[,1]",
                                "[1 2]",
                                "[1,,2]",
                                "{\"a\"}",
                                "{\"a\":}",
                                "{\"a\":1,}",
                                "{,}",
                                "{a:1}",
                                "{'a':1}",
                                "{\"a\":1 \"b\":2}",
                                "{\"a\" 1}",
                                "{1:2}",
                                "[1}",
                                "{\"a\":1]",
                                "[01]",
                                "[1.]",
                                "[.5]",
                                "[+1]",
                                "[1e]",
                                "[1e+]",
                                "[--1]",
                                "[0x10]",
                                "[truely]",
                                "[True]",
                                "[nul]",
                                "[NaN]",
                                "[-NaN]",
                                "[infinity]",
                                "[+Infinity]",
                                "[Infinityx]",
                                "[\"a]",
                                "\"",
                                "\"a",
                                "[\"\\x\"]",
                                "[\"\\ud800\"]",
                                "[\"\\u12\"]",
                                "[\"a\nb\"]",
                                "[\"\x01\"]",
                                "[\"\xff\"]",
                                "\xff",
                                "1 2",
                                "[1] 2",
                                "[1] [2]",
                                "{} {}",
                                "{} x",
                                "\"a\" \"b\"",
                                "[1]]",
                                "nullx",
                                "// a\n1",
                                "[1] // a",
                                "[1e400]",
                                "[1\"a\"]",
                                "[\"a\"1]",
                                "[[1],[2]",
                                "[1]\"",
                                "{\"a\":[}",
                                "{\"a\":{]}",
                                "[\"a\":1]",
                                "[:]",
                                "{\"a\"::1}",
                                "[1:2]",
                                "tru",
                                "-",
                                "1.5.5"}) {
    CAPTURE(text);
    const Result<Json> r = parse_json(text);
    CHECK_FALSE(r.ok());
    if (!r) CHECK(r.error().kind == "json-syntax");
  }
  CHECK_FALSE(parse_json(std::string_view("[1,\0]", 5)).ok());
  CHECK_FALSE(parse_json(std::string_view("[1]\0", 4)).ok());
}

TEST_CASE("messages name the place") {
  JsonOptions options;
  options.name = "config.json";
  CHECK(contains(refused("{\n \"a\": 1,\n \"b\": tru\n}", options).message, "config.json:3:7: "));
  CHECK(contains(refused("{\n \"a\": NaN}", options).message, "config.json:2:7: NaN"));
  const Error twice = refused("{\n \"a\": 1,\n \"b\": {\"a\": 1},\n \"a\": 2}", options);
  CHECK(twice.kind == "json-duplicate-key");
  CHECK(twice.message == "config.json:4:2: duplicate key \"a\", first at line 2");
  CHECK(refused("{\"x\": {\"a\": 1, \"\\u0061\": 2}}").kind == "json-duplicate-key");
  options.places_are_bytes = true;
  options.byte_base = 8;
  options.root_duplicate_kind = "duplicate-name";
  const Error bytes = refused("{\"a\": 1, \"a\": 2}", options);
  CHECK(bytes.kind == "duplicate-name");
  CHECK(bytes.message == "config.json: byte 17: duplicate key \"a\", first at byte 9");
  CHECK(refused("{\"x\": {\"a\": 1, \"a\": 2}}", options).kind == "json-duplicate-key");
}

TEST_CASE("a fault of grammar is named where it is, with the way out") {
  struct Case {
    std::string_view text, place, message, help;
  };
  const Case cases[] = {
      {"{\n \"a\": 1,\n}", "2:8", "a comma stands before the closing `}`", "remove it"},
      {"[1,\n 2,\n]", "2:3", "a comma stands before the closing `]`", "remove it"},
      {"{\"a\": 1,,\n \"b\": 2}", "1:9", "a second comma follows a comma", "remove it, or write the key that is missing"},
      {"[1,, 2]", "1:4", "a second comma follows a comma", "remove it, or write the value that is missing"},
      {"[, 1]", "1:2", "a comma stands before the first value", "remove it"},
      {"{, \"a\": 1}", "1:2", "a comma stands before the first key", "remove it"},
      {"{\n // size\n \"a\": 1}", "2:2", "a comment stands here, and JSON has none", "remove it"},
      {"{\"a\": 1 /* of it */}", "1:9", "a comment stands here", "remove it"},
      {"{\"a\": 1, # of it\n \"b\": 2}", "1:10", "a comment stands here", "remove it"},
      {"[1] // a", "1:5", "a comment stands here", "remove it"},
      {"{\"a\": 1\n \"b\": 2}", "2:2", "expected `,` or `}`, found \"b\"", "a comma is missing before it"},
      {"[1 2]", "1:4", "expected `,` or `]`, found `2`", "a comma is missing before it"},
      {"{\"a\": 1; \"b\": 2}", "1:8", "expected `,` or `}`, found `;`", "write `,`"},
      {"{\"a\" 1}", "1:6", "expected `:` after the key \"a\", found `1`", ""},
      {"{\"a\" = 1}", "1:6", "expected `:` after the key \"a\", found `=`", "write `:`"},
      {"{\"a\": , \"b\": 2}", "1:7", "the value of the key \"a\" is missing: found `,`", ""},
      {"{\"a\":}", "1:6", "the value of the key \"a\" is missing: found `}`", ""},
      {"{a: 1}", "1:2", "expected a key in double quotes, found `a`", "write `\"a\"`"},
      {"{'a': 1}", "1:2", "expected a key in double quotes, found `'a'`", "write `\"a\"`"},
      {"{\"a\": 1, 2: 3}", "1:10", "expected a key in double quotes, found `2`", "write `\"2\"`"},
      {"{\"a\": True}", "1:7", "expected a value, found `True`", "JSON writes `true`"},
      {"{\"a\": None}", "1:7", "expected a value, found `None`", "JSON writes `null`"},
      {"{\"a\": silu}", "1:7", "expected a value, found `silu`", "a text stands in double quotes"},
      {"{\"a\": 'silu'}", "1:7", "expected a value, found `'silu'`", "strings stand in double quotes"},
      {"[.5]", "1:2", "expected a value, found `.5`", "a number begins with a digit: `0.5`"},
      {"[1.]", "1:2", "expected a value, found `1.`", "digits follow the point: `1.0`"},
      {"[0x10]", "1:2", "expected a value, found `0x10`", "numbers are decimal"},
      {"[1_000]", "1:2", "expected a value, found `1_000`", "leave the `_` out"},
      {"[007]", "1:2", "expected a value, found `007`", "no zeros before it"},
      {"{\n \"a\": [1, 2\n}", "3:1", "`}` does not close the `[` of line 2", ""},
      {"{\n \"a\": [1, 2,\n}", "3:1", "`}` does not close the `[` of line 2", ""},
      {"{\n \"a\": {\"b\": 1}\n", "1:1", "this `{` is not closed: the text ends before its partner", ""},
      {"{\n \"a\": [1,\n", "2:7", "this `[` is not closed", ""},
      {"[\"a\": 1]", "1:5", "expected `,` or `]`, found `:`", "keys and values stand in braces"},
      {"{\n \"a\": \"x,\n \"b\": 2}", "2:7", "this string has no closing `\"` on its line", "is written `\\n`"},
      {"[\"a\tb\"]", "1:4", "a string holds the control character `\\t`", "by its escape"},
      {"{\"a\": 1}}", "1:9", "there is more text after the end of the value", ""},
  };
  JsonOptions options;
  options.name = "config.json";
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const Error e = refused(c.text, options);
    CHECK(e.kind == "json-syntax");
    CHECK_MESSAGE(e.message.starts_with("config.json:" + std::string(c.place) + ": " + std::string(c.message)), e.message);
    CHECK_MESSAGE((c.help.empty() ? e.help.empty() : contains(e.help, c.help)), e.help);
  }
  // The first fault is the one said, and a byte order mark is no part of the line.
  CHECK(contains(refused("\xef\xbb\xbf{\"a\": 1,}", options).message, "config.json:1:8: a comma"));
  CHECK(contains(refused("[1,,\n True,\n]", options).message, "config.json:1:4: "));
}

TEST_CASE("duplicates are found among many keys") {
  std::string text = "{";
  for (int i = 0; i < 5000; ++i) text += "\"key." + std::to_string(i) + "\": " + std::to_string(i) + ",";
  const Json good = parsed(text + "\"last\": 0}");
  for (int i = 0; i < 5000; ++i) REQUIRE(good.find("key." + std::to_string(i))->as_int() == i);
  CHECK(good.find("key.5000") == nullptr);
  CHECK(refused(text + "\"key.1234\": 0}").kind == "json-duplicate-key");
}

TEST_CASE("limits hold") {
  const auto nested = [](int n) { return std::string(static_cast<std::size_t>(n), '[') + std::string(static_cast<std::size_t>(n), ']'); };
  CHECK(parse_json(nested(64)).ok());
  CHECK(refused(nested(65)).kind == "json-depth");
  CHECK(refused(nested(200'000)).kind == "json-depth");
  CHECK_FALSE(parse_json(std::string(200'000, '[')).ok());
  std::string objects;
  for (int i = 0; i < 100; ++i) objects += "{\"a\":";
  CHECK(refused(objects + "1" + std::string(100, '}')).kind == "json-depth");
  JsonOptions small;
  small.max_bytes = 10;
  CHECK(parse_json("[1,2,3,4]", small).ok());
  CHECK(refused("[1,2,3,45,6]", small).kind == "json-size");
  JsonOptions few;
  few.max_values = 3;
  CHECK(parse_json("[1,2,3]", few).ok());
  CHECK(refused("[1,2,3,4]", few).kind == "json-size");
}

TEST_CASE("what is written is read back equal") {
  Json v = parsed(R"({"z": [1, -2.5, 1e-05, 0.1, 1e300, 5e-324, 18446744073709551615, Infinity, 1.0, -0.0], "a": {"b": null,
                      "é\n\"\\": "\u0001\u007f😀", "e": [], "o": {}}, "t": true})");
  for (int indent : {-1, 0, 2}) CHECK(parsed(dump(v, indent)) == v);
  CHECK(dump(v).starts_with(R"({"z":[1,-2.5,1e-05,0.1,1e+300,5e-324,18446744073709551615,Infinity,1.0,-0.0],"a":{)"));
  CHECK(dump(parsed("{\"a\": [1, {}]}"), 2) == "{\n  \"a\": [\n    1,\n    {}\n  ]\n}");
  CHECK(dump(Json("\xff"
                  "a")) ==
        "\"\xef\xbf\xbd"
        "a\"");
  CHECK(json_quote("\t\x7f") == "\"\\t\\u007f\"");
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    double d = 0;
    do { d = std::bit_cast<double>(random()); } while (!std::isfinite(d));
    REQUIRE(std::bit_cast<std::uint64_t>(*parsed(dump(Json(d))).as_double()) == std::bit_cast<std::uint64_t>(d));
  }
}

TEST_CASE("an object is changed by hand") {
  JsonObject o;
  for (int i = 0; i < 40; ++i) o.set("k" + std::to_string(i), i);
  o.set("k3", "three");
  CHECK(o.size() == 40);
  CHECK(*o.find("k3")->as_string() == "three");
  CHECK(o.erase("k0"));
  CHECK_FALSE(o.erase("k0"));
  CHECK(o.find("k39")->as_int() == 39);
  CHECK(o[0].key == "k1");
  CHECK_FALSE(o.append(JsonMember{"k1", Json(0)}));
  JsonObject copy = o;
  copy.set("k1", 5);
  CHECK(o.find("k1")->as_int() == 1);
  CHECK_FALSE(Json(copy) == Json(o));
  CHECK_FALSE(Json(1) == Json(1.0));
}

TEST_CASE("files") {
  test::TemporaryFolder folder;
  const std::string path = folder.write("config.json", "{\"a\": 1}\n");
  const Result<JsonFile> file = read_json_file(path);
  REQUIRE(file.ok());
  CHECK(file->text == "{\"a\": 1}\n");
  CHECK(file->root.find("a")->as_int() == 1);
  const Result<JsonFile> absent = read_json_file(folder / "none.json");
  REQUIRE_FALSE(absent.ok());
  CHECK(absent.error().kind == "no-such-file");
  CHECK(contains(absent.error().message, "none.json"));
}

TEST_CASE("damaged texts are refused or read, never worse") {
  const std::string good = R"({"model_type": "llama", "a": [1, 2.5, {"b": "x\u00fcy"}], "n": null, "t": [true, false], "e": 1e-5})";
  REQUIRE(parse_json(good).ok());
  std::mt19937 random(7);
  for (std::size_t n = 0; n < good.size(); ++n) CHECK_FALSE(parse_json(std::string_view(good).substr(0, n)).ok());
  constexpr std::string_view alphabet = "{}[]\",:\\0123456789eE+-.tfnuI \n\x80\xff\x01";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (unsigned k = 0, edits = 1 + random() % 4; k < edits; ++k) {
      const std::size_t at = random() % text.size();
      const char c = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
        case 0: text[at] = c; break;
        case 1: text.insert(at, 1, c); break;
        default: text.erase(at, 1 + random() % 5); break;
      }
      if (text.empty()) text = "x";
    }
    const Result<Json> r = parse_json(text);
    // What is accepted must survive a round trip.
    if (r) REQUIRE(parsed(dump(*r)) == *r);
  }
}

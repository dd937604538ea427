// Binding a config to a config.json: types, alternatives, defaults, ranges, requirements.
#include <doctest/doctest.h>

#include "tests/frontend/sema/values_support.h"

using namespace modelc;
using namespace modelc::sema;
using namespace modelc::sema::test;

namespace {

// The messages of binding `C { fields }` to a JSON text; each problem is one.
std::string errors(std::string_view fields, std::string_view json, std::vector<ConfigInput::Override> overrides = {}) {
  Session s("config C { " + std::string(fields) + " }");
  return s.bind_errors("C", json, std::move(overrides));
}

// The value of field `f` of `C { fields }`, or the codes of what is wrong.
std::string field_of(std::string_view fields, std::string_view json) {
  Session s("config C { " + std::string(fields) + " }");
  const Value v = s.bind("C", json);
  return v.is_error() ? s.codes() : field_text(v, "f");
}

}  // namespace

TEST_CASE("scalars and their types") {
  CHECK(field_of("f: int", R"({"f": -3})") == "-3");
  CHECK(field_of("f: dim", R"({"f": 1})") == "1");
  CHECK(field_of("f: float", R"({"f": 2.5})") == "2.5");
  CHECK(field_of("f: float", R"({"f": 2})") == "2.0");
  CHECK(field_of("f: float", R"({"f": 1e-05})") == "1e-05");
  CHECK(field_of("f: float", R"({"f": Infinity})") == "inf");
  CHECK(field_of("f: float", R"({"f": {"__float__": "Infinity"}})") == "inf");
  CHECK(field_of("f: list[float]", R"({"f": [0, {"__float__": "-Infinity"}]})") == "[0.0, -inf]");
  CHECK(field_of("f: float", R"({"f": {"__float__": "NaN"}})") == "E0203");
  CHECK(field_of("f: float", R"({"f": {"__float__": "Infinity", "g": 1}})") == "E0203");
  CHECK(field_of("f: bool", R"({"f": true})") == "true");
  CHECK(field_of("f: string", R"({"f": "x"})") == "\"x\"");
  CHECK(field_of("f: \"a\" | \"b\"", R"({"f": "b"})") == "\"b\"");
  CHECK(field_of("f: 1", R"({"f": 1})") == "1");
  CHECK(field_of("f: false", R"({"f": false})") == "false");
  CHECK(field_of("f: 0.5", R"({"f": 0.5})") == "0.5");
  CHECK(field_of("f: list[int]", R"({"f": [1, 2]})") == "[1, 2]");
  CHECK(field_of("f: list[float]", R"({"f": [1, 2.5]})") == "[1.0, 2.5]");
  CHECK(field_of("f: list[int?]", R"({"f": [1, null]})") == "[1, none]");
  CHECK(field_of("n: int f: list[string, n]", R"({"n": 2, "f": ["a", "b"]})") == "[\"a\", \"b\"]");
  CHECK(field_of("f: list[\"a\" | \"b\"]", R"({"f": ["a", "b"]})") == "[\"a\", \"b\"]");
  CHECK(field_of("f: map[string]", R"({"f": {"x": "y"}})") == "{\"x\": \"y\"}");
  CHECK(field_of("f: int?", R"({"f": 3})") == "3");
  CHECK(field_of("f: int?", "{}") == "none");
  CHECK(field_of("f: int?", R"({"f": null})") == "none");
  CHECK(field_of("f: int = 4", R"({"f": null})") == "4");
  CHECK(field_of("f: float = 4", "{}") == "4.0");
}

TEST_CASE("a value of the wrong type says what it is, where it stands and what was expected") {
  const std::string message = errors("hidden_size: dim", "{\n\"hidden_size\": \"64\"}");
  CHECK(holds(message, "E0203"));
  CHECK(holds(message, "`hidden_size` is \"64\", a string: expected `dim`"));
  CHECK(holds(message, "config.json:2"));
  CHECK(holds(message, "`hidden_size` is declared here"));
  CHECK(holds(errors("f: int", R"({"f": 1.5})"), "1.5, a float: expected `int`"));
  CHECK(holds(errors("f: int", R"({"f": 64.0})"), "write it as a whole number"));
  CHECK(holds(errors("f: bool", R"({"f": 1})"), "1, an int: expected `bool`"));
  CHECK(holds(errors("f: float", R"({"f": "1"})"), "expected `float`"));
  CHECK(holds(errors("f: string", R"({"f": 1})"), "expected `string`"));
  CHECK(holds(errors("f: list[int]", R"({"f": 1})"), "expected `list[int]`"));
  CHECK(holds(errors("f: list[int]", R"({"f": [1, "a", "b"]})"), "`f[1]` is \"a\", a string: expected `int`"));
  CHECK(holds(errors("f: map[int]", R"({"f": {"k": "v"}})"), "`f.k` is \"v\""));
  CHECK(holds(errors("f: map[int]", R"({"f": [1]})"), "[1], a list: expected `map[int]`"));
  CHECK(holds(errors("f: dim", R"({"f": 0})"), "`f` is 0: a dim is at least 1"));
  CHECK(holds(errors("f: int", R"({"f": 18446744073709551615})"), "E0205"));
}

TEST_CASE("a literal type refuses every other value") {
  const std::string message = errors(R"(model_type: "llama")", R"({"model_type": "qwen2"})");
  CHECK(holds(message, "E0408"));
  CHECK(holds(message, "`model_type` is \"qwen2\": C takes \"llama\" only"));
  CHECK(holds(errors("f: false = false", R"({"f": true})"), "E0210"));
  CHECK(holds(errors("f: \"a\" | \"b\"", R"({"f": "c"})"), "takes only \"a\" and \"b\""));
  CHECK(holds(errors("f: 1", R"({"f": "1"})"), "E0210"));
}

TEST_CASE("what is missing is an error that names the places looked in") {
  const std::string one = errors("hidden_size: dim", "{}");
  CHECK(holds(one, "E0204"));
  CHECK(holds(one, "`hidden_size` is missing in config.json"));
  CHECK(holds(one, "--set hidden_size=…"));
  const std::string two = errors("rope_theta: float from rope_parameters.rope_theta | rope_theta", "{}");
  CHECK(holds(two, "E0204"));
  CHECK(holds(two, "rope_theta"));
  CHECK(holds(two, "it has none of `rope_parameters.rope_theta` and `rope_theta`"));
  const std::string null = errors("a: int", "{\n\"a\":\nnull}");
  CHECK(holds(null, "config.json:3 says null, which counts as absent"));
  const std::string near = errors("hidden_size: dim ignore hiden_size", R"({"hiden_size": 64})");
  CHECK(holds(near, "is it `hiden_size`"));
}

TEST_CASE("all problems are said in one run, each once") {
  Session s(R"(config C {
      a, b: dim
      c: float
      d: "x"
      ok: int
  })");
  s.bind("C", R"({"a": 0, "c": "no", "d": "y", "ok": 1, "stray": 2})");
  CHECK(s.codes() == "E0205 E0204 E0203 E0210 E0201");
}

TEST_CASE("ranges include both ends") {
  CHECK(field_of("f: int in 1..1024", R"({"f": 1024})") == "1024");
  CHECK(field_of("f: int in 1..1024", R"({"f": 1})") == "1");
  CHECK(field_of("f: int in 2..", R"({"f": 5})") == "5");
  CHECK(field_of("f: float in 0..1", R"({"f": 0.5})") == "0.5");
  CHECK(field_of("n: int f: int in 1..n", R"({"n": 3, "f": 4})") == "E0205");
  CHECK(field_of("f: int? in 1..4", "{}") == "none");
  const std::string message = errors("num_hidden_layers: int in 1..1024", "{\n\"num_hidden_layers\": 2000000000}");
  CHECK(holds(message, "`num_hidden_layers` is 2000000000: expected 1..1024"));
  CHECK(holds(message, "config.json:2"));
  CHECK(holds(errors("f: int in 2..", R"({"f": 1})"), "expected 2.."));
  CHECK(holds(errors("f: int in 1..4 = 9", "{}"), "`f` is 9: expected 1..4"));
}

TEST_CASE("a huge number is refused where it would make a list") {
  const std::string message = errors("n: int  kinds: list[string] = [\"a\" for i in 0..n]", R"({"n": 2000000000})");
  CHECK(holds(message, "E0320"));
  CHECK(holds(message, "n = 2000000000 from config.json:1"));
}

TEST_CASE("defaults are expressions on other fields") {
  CHECK(field_of("a: dim f: dim = a", R"({"a": 7})") == "7");
  CHECK(field_of("a: dim f: dim = a", R"({"a": 7, "f": 8})") == "8");
  CHECK(field_of("a, b: dim f: dim = a / b", R"({"a": 64, "b": 4})") == "16");
  CHECK(field_of("f: list[string] = [\"x\" if i == 1 else \"y\" for i in 0..n] n: int", R"({"n": 3})") == "[\"y\", \"x\", \"y\"]");
  CHECK(field_of("let k = 3 f: int = k + 1", "{}") == "4");
  CHECK(field_of("fn twice(x) = 2 * x f: int = twice(4)", "{}") == "8");
}

TEST_CASE("a default that does not work out prints the division with the origins") {
  const std::string message = errors("hidden_size, num_attention_heads: dim head_dim: dim = hidden_size / num_attention_heads",
                                     "{\n\"hidden_size\": 30,\n\"num_attention_heads\": 4}");
  CHECK(holds(message, "E0308"));
  CHECK(holds(message, "`hidden_size / num_attention_heads` = 30 / 4 does not come out even"));
  CHECK(holds(message, "hidden_size = 30 from config.json:2"));
  CHECK(holds(message, "num_attention_heads = 4 from config.json:3"));
  CHECK(holds(message, "for the default of `head_dim`, which config.json does not give"));
  // With the key there, nothing is divided.
  CHECK(errors("d, h: dim head_dim: dim = d / h", R"({"d": 30, "h": 4, "head_dim": 16})") == "");
  CHECK(holds(errors("f: dim = 0", "{}"), "the default of `f` is `dim`: found an int, 0"));
  CHECK(holds(errors("f: int = 1.5", "{}"), "E0314"));
}

TEST_CASE("values that depend on each other in a circle") {
  CHECK(holds(errors("a: int = b b: int = a", "{}"), "E0215"));
  CHECK(holds(errors("a: int = b b: int = a", "{}"), "`a` needs `b` needs `a`"));
  CHECK(errors("a: int = b b: int = a", R"({"a": 1})") == "");
  CHECK(holds(errors("a: int = k let k = a", "{}"), "E0215"));
  CHECK(holds(errors("a: int = a", "{}"), "E0215"));
}

TEST_CASE("spellings that are both there must agree") {
  constexpr std::string_view theta = "theta: float from rope_parameters.rope_theta | rope_theta";
  CHECK(errors(theta, R"({"rope_theta": 500000})") == "");
  CHECK(errors(theta, R"({"rope_parameters": {"rope_theta": 5e5}})") == "");
  CHECK(errors(theta, R"({"rope_theta": 500000, "rope_parameters": {"rope_theta": 5e5}})") == "");
  CHECK(errors(theta, R"({"rope_theta": 500000, "rope_parameters": null})") == "");
  CHECK(errors(theta, R"({"rope_theta": 500000, "rope_parameters": {"rope_theta": null}})") == "");
  const std::string message = errors(theta, "{\n\"rope_theta\": 10000,\n\"rope_parameters\": {\"rope_theta\": 5e5}}");
  CHECK(holds(message, "E0206"));
  CHECK(holds(message, "`rope_parameters.rope_theta` is 500000.0 in config.json:3, `rope_theta` is 10000 in config.json:2"));
  // The command line decides.
  CHECK(errors(theta, R"({"rope_theta": 10000, "rope_parameters": {"rope_theta": 5e5}})", {{"rope_theta", 20000}}) == "");
}

TEST_CASE("requirements show the condition with its values") {
  const std::string message = errors(
      "num_attention_heads, num_key_value_heads: dim "
      "require num_attention_heads % num_key_value_heads == 0",
      "{\"num_attention_heads\": 9,\n\"num_key_value_heads\": 2}");
  CHECK(holds(message, "E0207"));
  CHECK(holds(message, "C requires `num_attention_heads % num_key_value_heads == 0`"));
  CHECK(holds(message, "9 % 2 == 0 is false"));
  CHECK(holds(message, "num_key_value_heads = 2 from config.json:2"));
  CHECK(holds(errors("a: int require a > 1, \"a is too small\"", R"({"a": 1})"), "a is too small"));
  CHECK(errors("a: int require a > 1", R"({"a": 2})") == "");
  CHECK(holds(errors("a: int require a", R"({"a": 2})"), "`require` takes a bool, not an int"));
  // A requirement on a value that is wrong is not said a second time.
  Session s("config C { a: int require a > 1 }");
  s.bind("C", "{}");
  CHECK(s.codes() == "E0204");
}

TEST_CASE("lists have the length that they are declared with") {
  const std::string message =
      errors("num_hidden_layers: int kinds: list[string, num_hidden_layers]", "{\"num_hidden_layers\": 3,\n\"kinds\": [\"a\"]}");
  CHECK(holds(message, "E0211"));
  CHECK(holds(message, "`kinds` has 1 element: expected num_hidden_layers = 3"));
  CHECK(holds(message, "num_hidden_layers = 3 from config.json:1"));
  CHECK(holds(errors("n: int kinds: list[string, n + 1] = [\"a\"]", R"({"n": 3})"), "has 1 element, expected n + 1 = 3 + 1 = 4"));
}

TEST_CASE("fields, lets and fns are members of the value, with their origins") {
  Session s(R"(config C {
      hidden_size, heads: dim
      head_dim: dim = hidden_size / heads
      id2label: map[string]
      let labels = len(id2label)
      fn sparse(i) = i % heads == 0
  })");
  const Value c = s.bind("C", "{\"hidden_size\": 64,\n\"heads\": 4, \"id2label\": {\"0\": \"a\", \"1\": \"b\"}}");
  CHECK(s.codes() == "");
  Environment env = s.environment();
  env.define("c", c, {});
  const auto eval = [&](std::string_view text) { return s.evaluator->eval(s.expression(text), env); };
  CHECK(eval("c.labels").as_int() == 2);
  CHECK(show(eval("[c.sparse(i) for i in 3..5]")) == "[false, true]");
  CHECK(formula_text(eval("c.heads * c.head_dim").formula()) == "heads * head_dim");
  CHECK(formula_origins(eval("c.heads * c.head_dim").formula()) ==
        std::vector<std::string>{"heads = 4 from config.json:2", "head_dim = hidden_size / heads = 16 by default",
                                 "hidden_size = 64 from config.json:1"});
}

TEST_CASE("a configuration that is no object") {
  CHECK(holds(errors("a: int", "[1]"), "E0217"));
  CHECK(holds(errors("a: int", "[1]"), "config.json holds a list"));
}

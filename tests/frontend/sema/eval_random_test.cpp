// Random expressions and random configurations: nothing crashes, and a value is an error exactly when something was
// said.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "tests/frontend/sema/values_support.h"

using namespace modelc;
using namespace modelc::sema;
using namespace modelc::sema::test;

namespace {

class Text {
 public:
  explicit Text(unsigned seed) : random_(seed) {}

  std::string expr(int depth) {
    if (depth <= 0) return leaf();
    const auto sub = [&] { return expr(depth - 1 - pick(2)); };
    switch (pick(14)) {
      case 0: return "(" + sub() + " " + one({"+", "-", "*", "/", "%", "^"}) + " " + sub() + ")";
      case 1: return "(" + sub() + " " + one({"<", "<=", "==", "!=", ">", ">="}) + " " + sub() + ")";
      case 2: return "(" + sub() + " " + one({"and", "or", "??", "in"}) + " " + sub() + ")";
      case 3: return "(" + one({"-", "not "}) + sub() + ")";
      case 4: return "(" + sub() + " if " + sub() + " else " + sub() + ")";
      case 5: return "[" + sub() + ", " + sub() + "]";
      case 6: return "[" + sub() + " for i in " + one({"0..3", "0..2000000000", "c.n..c.m", "l", "(" + sub() + ")"}) + "]";
      case 7: return sub() + "[" + sub() + one({"", ".." + sub()}) + "]";
      case 8: return "(" + sub() + " is " + one({"", "not "}) + one({"none", "\"a\"", "\"zz\"", "1", "true"}) + ")";
      case 9: return "match " + sub() + " { none => " + sub() + " \"a\" as a => a.x _ => " + sub() + " }";
      case 10:
        return one({"sqrt", "int", "len", "div", "max", "log", "arange", "f", "M", "c.g"}) + "(" + sub() +
               one({"", ", " + sub(), ", n: 1"}) + ")";
      case 11: return sub() + "." + one({"n", "v", "x", "missing", "g"});
      case 12: return "(fn(q) = " + sub() + ")(" + sub() + ")";
      default: return "(" + sub() + " as f32[" + sub() + "])";
    }
  }

  std::string json(int depth) {
    switch (pick(depth <= 0 ? 5 : 7)) {
      case 0: return one({"0", "1", "-5", "64", "2000000000", "9223372036854775807", "18446744073709551615"});
      case 1: return one({"0.5", "1e300", "64.0", "Infinity"});
      case 2: return one({"true", "false"});
      case 3: return one({"\"llama\"", "\"silu\"", "\"linear\"", "\"\"", "\"\\u0000\""});
      case 4: return "null";
      case 5: return "[" + json(depth - 1) + ", " + json(depth - 1) + "]";
      default: return "{\"rope_type\": " + json(depth - 1) + ", \"factor\": " + json(depth - 1) + ", \"x\": " + json(depth - 1) + "}";
    }
  }

  std::string one(std::vector<std::string> choices) { return choices[static_cast<std::size_t>(pick(static_cast<int>(choices.size())))]; }
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

 private:
  std::string leaf() {
    return one({"0",    "1",     "2",    "-3",      "7",      "0.5", "1e308",   "9223372036854775807",
                "true", "false", "none", "\"a\"",   "\"b\"",  "c",   "c.n",     "c.m",
                "c.v",  "c.o",   "c.s",  "l",       "tokens", "seq", "f",       "M",
                "M(3)", "pi",    "i",    "nothing", "plain",  "C",   "KVCache", "silu"});
  }
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("random expressions") {
  int errors = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Session s(R"(fn f(x) = x + 1
                 module M(n: dim, k: float = 1) { }
                 variant V by t { "a" { x: int } "b" { } }
                 config C { n: int m: int v: V? o: V? s: string fn g(x) = x * n })",
              {64, 1000, 20000});
    Environment env = s.environment();
    env.define("c", s.bind("C", R"({"n": 2, "m": 5, "v": {"t": "a", "x": 3}, "s": "a"})"), {});
    env.define("l", s.eval("[1, 2.5, \"a\", none]"), {});
    REQUIRE(s.codes() == "");
    Text text(seed);
    const std::string expr = text.expr(4);
    CAPTURE(expr);
    const Value v = s.evaluator->eval(s.expression(expr), env);
    INFO(s.messages());
    // An argument that nothing reads may be wrong and said so, while the value is good; never the other way round.
    if (v.is_error()) CHECK(s.sink.has_errors());
    // Whatever it is, it can be shown, keyed and touched.
    CHECK_FALSE(show(v).empty());
    CHECK(canonical(v) == canonical(v));
    show_formula(v);
    s.evaluator->touch(s.expression(expr), env);
    if (v.is_error()) ++errors;
  }
  CHECK(errors > 500);
  CHECK(errors < 2990);
}

TEST_CASE("random values in a configuration") {
  int good = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Session s("import llama");
    s.import_path(MODELC_SOURCE_DIR "/stdlib").import_path(MODELC_SOURCE_DIR "/examples/llama");
    Text text(seed);
    std::vector<std::pair<std::string, std::string>> fields = {
        {"model_type", "\"llama\""},       {"vocab_size", "64"},         {"hidden_size", "32"},
        {"intermediate_size", "48"},       {"num_attention_heads", "4"}, {"num_hidden_layers", "2"},
        {"max_position_embeddings", "64"}, {"rms_norm_eps", "1e-5"},     {"rope_theta", "1e4"},
        {"hidden_act", "\"silu\""},        {"rope_scaling", "null"},     {"head_dim", "null"},
        {"rope_parameters", "null"},       {"use_cache", "true"},        {"quantization_config", "null"}};
    for (int i = text.pick(4); i > 0; --i) fields[static_cast<std::size_t>(text.pick(15))].second = text.json(2);
    std::string json = "{";
    for (const auto& [key, value] : fields) json += (json.size() > 1 ? ", \"" : "\"") + key + "\": " + value;
    json += "}";
    CAPTURE(json);
    std::vector<ConfigInput::Override> overrides;
    if (text.pick(3) == 0) {
      auto value = parse_json(text.json(1));
      REQUIRE(value);
      overrides.push_back(
          {text.one({"hidden_size", "rope_scaling.factor", "rope_parameters.rope_theta", "a.b.c", "."}), std::move(*value)});
    }
    const Value v = s.bind("LlamaConfig", json, std::move(overrides));
    INFO(s.messages());
    // An argument that nothing reads may be wrong and said so, while the value is good; never the other way round.
    if (v.is_error()) CHECK(s.sink.has_errors());
    if (!v.is_error()) ++good;
  }
  CHECK(good > 100);
  CHECK(good < 900);
}

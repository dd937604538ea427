// Members of instances: conditions, choices, lists, paths, states, weights; and what is refused of them.
#include <doctest/doctest.h>

#include "modules_support.h"

using namespace modelc::sema::test;

namespace {

// A module A(n: dim, flag: bool) with these members, made once in M with d = 4.
Model made(std::string_view members, std::string_view flag = "true", std::string_view before = "") {
  Model m(around("d: dim", "a: A(c.d, " + std::string(flag) + ")  forward(x: [tokens, c.d]) { return a(x) }",
                 std::string(before) + "\nmodule A(n: dim, flag: bool) { " + std::string(members) + " }"));
  m.config(R"({"d": 4})");
  return m;
}

}  // namespace

TEST_CASE("an absent param stands where an operation takes an optional") {
  const char* members = "param w: [n, n]  param b: [n] if flag  forward(x: [tokens, n]) { return linear(x, w, b) }";
  Model with = made(members), without = made(members, "false");
  CHECK(has(with.part("A"), "weight b: f32[4]"));
  CHECK(has(with.part("M.forward"), "linear(%x, %1, %2)"));
  CHECK_FALSE(has(without.part("A"), "weight b"));
  CHECK(has(without.part("M.forward"), "linear(%x, %1, _)"));
}

TEST_CASE("E0317: every other use of an absent member that an instance reaches") {
  Model m = made("param b: [n] if flag  forward(x: [tokens, n]) { return x + b }", "false");
  CHECK(m.codes() == "E0317");
  CHECK(has(m.messages(), "`b` is absent here: its condition `flag` is false"));
  CHECK(made("p: Linear(n, n) if flag  forward(x: [tokens, n]) { return p(x) }", "false").codes() == "E0317");
  CHECK(made("p: none  forward(x: [tokens, n]) { return p(x) }").codes() == "E0317");
  CHECK(made("p: Linear(n, n) if flag  forward(x: [tokens, n]) { return p(x) if flag else x }", "false").codes().empty());
}

TEST_CASE("children by choice, by list, and none") {
  Model m = made(
      "p: Linear(n, n) if flag else Identity()  q: none  layers: [Linear(n, n), Identity()]\n"
      "forward(x: [tokens, n]) { return q(x) if flag else layers[1](layers[0](p(x))) }",
      "false");
  const std::string text = m.part("A");
  CHECK(has(text, "child p: Identity"));
  CHECK_FALSE(has(text, "child q"));
  CHECK(has(text, "children layers: [Linear, Identity]"));
  CHECK(has(text, "weight \"layers.0.weight\""));
  CHECK(has(text, "stage \"layers.0\""));
}

TEST_CASE("a module as an argument: two children, two sets of weights") {
  Model m(around("d: dim", "a: A(c.d, norm: RMSNorm(c.d, eps: 1e-5))  forward(x: [tokens, c.d]) { return a(x) }",
                 "module A(n: dim, norm: module) { first: norm  second: norm  forward(x: [tokens, n]) { return "
                 "second(first(x)) } }"));
  m.config(R"({"d": 4})");
  const std::string text = m.part("A");
  CHECK(has(text, "child first: RMSNorm"));
  CHECK(has(text, "child second: RMSNorm"));
  CHECK(has(m.good().resolved, "a.first.weight"));
  CHECK(has(m.good().resolved, "a.second.weight"));
}

TEST_CASE("paths: `at` gives another, `at .` none") {
  Model m = made(
      "param w at odd.name: [n]  p at x.0.y: Linear(n, n)  inner at .: Linear(n, n, has_bias: true)\n"
      "forward(x: [tokens, n]) { return inner(p(x * w)) }");
  const std::string& text = m.good().resolved;
  for (const char* name : {"a.odd.name: [4]", "a.x.0.y.weight: [4, 4]", "a.weight: [4, 4]", "a.bias: [4]"}) CHECK(has(text, name));
  CHECK(has(m.part("A"), "stage \"x.0.y\""));
}

TEST_CASE("E0344: a path that names no single place") {
  CHECK(made("param w at .: [n]  forward(x: [tokens, n]) { return x * w }").codes() == "E0344");
  CHECK(made("param w at a.*: [n]  forward(x: [tokens, n]) { return x * w }").codes() == "E0344");
  CHECK(made("p at {i}.w: Linear(n, n)  forward(x: [tokens, n]) { return p(x) }").codes() == "E0344");
}

TEST_CASE("E0345: a collision names both places") {
  Model m = made("p: Linear(n, n)  q at p: Linear(n, n)  forward(x: [tokens, n]) { return p(q(x)) }");
  CHECK(m.codes() == "E0345");
  CHECK(has(m.messages(), "two weights have the path `a.p.weight`"));
  CHECK(has(m.messages(), "the other is asked for here"));
  CHECK(has(m.messages(), "main.model:7:49"));
  CHECK(has(m.messages(), "- the other"));
  CHECK(made("param w: [n]  param v at w: [n]  forward(x: [tokens, n]) { return x * w * v }").codes() == "E0345");
}

TEST_CASE("weights: shape as written, origins, defaults, declared dtypes, roles") {
  Model m(around("width: dim  heads: dim", "a: A(c.width, c.heads)  forward(x: index(7)[tokens]) { return a(x) }",
                 "module A(n: dim, h: dim) {\n let d = n / h\n"
                 " param table: [7, n]  param w: [h * d, n]  param s: f32[n] = 1.0  param b: bf16[h * d]\n"
                 " forward(x: index(7)[tokens]) { return linear(take(table, x) * s, w, b) } }"));
  m.config("{\n \"width\": 6,\n \"heads\": 3 }");
  const std::string text = m.part("A");
  CHECK(has(text, "weight table: f32[7, 6] table shape \"[7, width]\""));
  CHECK(has(text, "weight w: f32[6, 6] matrix shape \"[heads * d, width]\""));
  CHECK(has(text, "from \"heads = 3 from config.json:3\", \"d = width / heads = 2\", \"width = 6 from config.json:2\""));
  const modelc::graph::Class& made = m.good().graph.classes[0];
  REQUIRE(made.weights.size() == 4);
  CHECK(made.weights[1].shape_numbers == "[3 * 2, 6]");
  CHECK(made.weights[2].shape_numbers.empty());
  CHECK(made.weights[1].where.file == "main.model");
  CHECK(made.weights[1].where.line == 8);
  CHECK(has(text, "weight s: f32[6] vector shape \"[width]\" from \"width = 6 from config.json:2\" dtype f32 default 1.0"));
  CHECK(has(text, "weight b: f32[6] vector"));
  CHECK(has(text, "dtype bf16"));
}

TEST_CASE("a weight used by rows and in a product is a table; one used elsewhere too is no matrix") {
  Model m = made(
      "param t: [n, n]  param w: [n, n]  forward(x: [tokens, n]) { return linear(linear(x, t), w) + take(t, argmax(x)) "
      "+ w[0] }");
  CHECK(has(m.part("A"), "weight t: f32[4, 4] table"));
  CHECK(has(m.part("A"), "weight w: f32[4, 4] vector"));
}

TEST_CASE("E0329, E0324, E0314: types that weights cannot have") {
  CHECK(made("param w: index(n)[n]  forward(x: [tokens, n]) { return x }").codes() == "E0329");
  CHECK(made("param w: Batch  forward(x: [tokens, n]) { return x * w }").codes() == "E0329");
  CHECK(made("param w: [tokens]  forward(x: [tokens, n]) { return x * w }").codes() == "E0324");
  CHECK(made("param w: [...]  forward(x: [tokens, n]) { return x * w }").codes() == "E0324");
  CHECK(made("param w: [n] = \"a\"  forward(x: [tokens, n]) { return x * w }").codes() == "E0314");
  CHECK(made("param w: f32  forward(x: [tokens, n]) { return x * w }").codes() == "E0329");
}

TEST_CASE("states") {
  Model m = made(
      "state cache: KVCache(2, dim: n)  state other: KVCache(2, n, value_dim: 3) if flag\n"
      "forward(x: [tokens, n]) { return x }  entry go(x: [tokens, 2, n], at: Batch) { cache.append(x, x, at)  "
      "other.append(x, x[..., 0..3], at) }");
  CHECK(has(m.part("A"), "state cache: kv_cache[2, 4, 4]"));
  CHECK(has(m.part("A"), "state other: kv_cache[2, 4, 3]"));
}

TEST_CASE("a cache keeps what the widest window needs") {
  const char* members =
      "state cache: KVCache(1, n)  forward(x: [tokens, n]) { return x }\n"
      "entry go(x: [tokens, 1, n], at: Batch) { cache.append(x, x, at)\n"
      " let a = attend(x, cache, at, mask: \"causal\", scale: 1.0, window: 4)\n";
  CHECK(has(made(std::string(members) + " return a + attend(x, cache, at, mask: \"causal\", scale: 1.0, window: 7) }").part("A"),
            "kv_cache[1, 4, 4] window 7"));
  CHECK_FALSE(has(made(std::string(members) + " return a + attend(x, cache, at, mask: \"causal\", scale: 1.0) }").part("A"), "] window"));
}

TEST_CASE("E0343: a state that is none") {
  const auto one = [](std::string_view value) {
    return made("state s: " + std::string(value) +
                "  forward(x: [tokens, n]) { return x }  entry e(x: [tokens, 1, n], at: Batch) { s.append(x, x, at) }")
        .messages();
  };
  CHECK(has(one("KVCahce(1, n)"), "E0301"));
  CHECK(has(one("KVCahce(1, n)"), "did you mean `KVCache`?"));
  CHECK(has(one("KVCache(1)"), "`dim` of KVCache is missing"));
  CHECK(has(one("KVCache(1, n, n, n)"), "this is one more"));
  CHECK(has(one("KVCache(1, dmi: n)"), "has no argument `dmi`"));
  CHECK(has(one("KVCache(1, n, dim: n)"), "`dim` is given twice"));
  CHECK(has(one("KVCache(0, n)"), "`heads` of KVCache is a whole number of at least 1, not 0"));
  CHECK(has(one("KVCache(1, tokens)"), "whole number"));
  CHECK(has(one("Ring(1, n)"), "the shape of Ring is a list of sizes"));
  CHECK(has(one("n"), "`n` is no kind of state"));
}

TEST_CASE("E0342: a child that is no module") {
  CHECK(made("p: n  forward(x: [tokens, n]) { return p(x) }").codes() == "E0342");
  CHECK(made("p: Linear  forward(x: [tokens, n]) { return p(x) }").codes() == "E0342");
  CHECK(has(made("p: Linear  forward(x: [tokens, n]) { return p(x) }").messages(), "needs its arguments"));
  CHECK(made("p: [[Linear(n, n)]]  forward(x: [tokens, n]) { return x }").codes() == "E0342");
  CHECK(made("fn f() = Linear(n, n)  p: f  forward(x: [tokens, n]) { return p(x) }").codes() == "E0342");
}

TEST_CASE("E0313: recipes with the wrong arguments, with the nearest name") {
  CHECK(made("p: Linear(n)  forward(x: [tokens, n]) { return p(x) }").codes() == "E0313");
  const std::string said = made("p: Linear(n, n, has_bais: true)  forward(x: [tokens, n]) { return p(x) }").messages();
  CHECK(has(said, "did you mean `has_bias`?"));
  CHECK(made("p: Linear(n, 1.5)  forward(x: [tokens, n]) { return p(x) }").codes() == "E0314");
}

TEST_CASE("E0207: requirements of a module say where it is used") {
  Model m = made("require n % 3 == 0  forward(x: [tokens, n]) { return x }");
  CHECK(m.codes() == "E0207");
  CHECK(has(m.messages(), "the module `A` requires `n % 3 == 0`"));
  CHECK(has(m.messages(), "main.model:7"));
  CHECK(has(made("require flag, \"flags fly\"  forward(x: [tokens, n]) { return x }", "false").messages(), "flags fly"));
}

TEST_CASE("lets use what is declared after them; E0355 in a circle") {
  Model m = made("let a = b + 1  let b = n  p: Linear(n, a)  forward(x: [tokens, n]) { return p(x) }");
  CHECK(has(m.part("Linear"), "f32[5, 4]"));
  CHECK(made("let a = b + 1  let b = a  p: Linear(n, a)  forward(x: [tokens, n]) { return p(x) }").codes() == "E0355");
  auto circle = made("let a = b + 1  let b = d + 1  let d = a  p: Linear(n, a)  forward(x: [tokens, n]) { return p(x) }");
  CHECK(circle.messages().find("the value of `a` depends on itself: `a` needs `b` needs `d` needs `a`") != std::string::npos);
}

TEST_CASE("consts become functions that run at load") {
  Model m = made(
      "const up: f32[n] = arange(n) * 2.0  const ones: [n, 2] = 1.0  const both: [n] = up + 1\n"
      "forward(x: [tokens, n]) { return x * both + ones[.., 0] }");
  const std::string text = m.part("A");
  CHECK(has(text, "const up: f32[4] = up"));
  CHECK(has(text, "arange(count: 4)"));
  CHECK(has(text, "expand("));
  CHECK(has(text, "constant_ref \"up\""));
  CHECK(has(m.part("M.forward"), "constant_ref \"a.both\""));
}

TEST_CASE("consts that cannot be") {
  CHECK(made("const a: [n] = b  const b: [n] = arange(n)  forward(x: [tokens, n]) { return x * a }").codes() == "E0355");
  CHECK(made("const a: [n] = a  forward(x: [tokens, n]) { return x * a }").codes() == "E0355");
  CHECK(made("const a: [n] = arange(n + 1)  forward(x: [tokens, n]) { return x * a }").codes() == "E0350");
  CHECK(made("const a: [tokens] = arange(n)  forward(x: [tokens, n]) { return x * a }").codes() == "E0324");
  CHECK(made("const a: index(n)[n] = arange(n)  forward(x: [tokens, n]) { return x * a }").codes() == "E0329");
  CHECK(made("p: Linear(n, n)  const a: [n] = p(arange(n))  forward(x: [tokens, n]) { return p(x) * a }").codes() == "E0323");
  CHECK(made("state s: KVCache(1, n)  const a: [n] = s.append(1, 1, 1)  forward(x: [tokens, n]) { return x * a }").codes() == "E0323");
}

TEST_CASE("E0346: a module that contains itself, or never ends") {
  Model self(around("d: dim", "a: A(c.d)  forward(x: [tokens, c.d]) { return a(x) }",
                    "module A(n: dim) { a: A(n)  forward(x: [tokens, n]) { return a(x) } }"));
  CHECK(self.config(R"({"d": 4})").codes() == "E0346");
  CHECK(has(self.messages(), "M → A → A"));
  Model root(around("d: dim", "a: A(c)  forward(x: [tokens, c.d]) { return a(x) }",
                    "module A(c: C) { m: M(c)  forward(x: [tokens, 4]) { return m(x) } }"));
  CHECK(root.config(R"({"d": 4})").codes() == "E0346");
  Model deep(around("d: dim", "a: A(c.d)  forward(x: [tokens, c.d]) { return a(x) }",
                    "module A(n: dim) { a: A(n + 1)  forward(x: [tokens, 4]) { return a(x) } }"));
  CHECK(deep.config(R"({"d": 4})").codes() == "E0346");
  Model ends(around("d: dim", "a: A(c.d)  forward(x: [tokens, 4]) { return a(x) }",
                    "module A(n: dim) { a: A(n - 1) if n > 1  forward(x: [tokens, 4]) { return a(x) if n > 1 else x } }"));
  ends.config(R"({"d": 9})").good();
}

TEST_CASE("E0346: modules that make ever new ones of themselves") {
  Model m(around("d: dim", "a: A(c.d, 40)  forward(x: [tokens, 4]) { return a(x) }",
                 "module A(n: dim, k: int) { a: A(2 * n, k - 1) if k > 0  b: A(2 * n + 1, k - 1) if k > 0\n"
                 " forward(x: [tokens, 4]) -> [tokens, 4] { return a(b(x)) + n if k > 0 else x * n } }"));
  CHECK(m.config(R"({"d": 4})").codes() == "E0346");
}

TEST_CASE("E0346: more modules than any model has") {
  Model m(around("d: dim",
                 "a: [A(c.d) for i in 0..600]  forward(x: [tokens, c.d]) { return x }  entry e(x: [tokens, c.d]) { "
                 "return a[0](x) }",
                 "module A(n: dim) { b: [Linear(n, n) for i in 0..600]  forward(x: [tokens, n]) { return b[0](x) } }"));
  CHECK(m.config(R"({"d": 4})").codes() == "E0346");
}

TEST_CASE("E0323: members where values are static") {
  CHECK(made("param w: [n]  p: Linear(n, w)  forward(x: [tokens, n]) { return p(x) * w }").codes() == "E0323");
  CHECK(made("p: Linear(n, n)  q: p  forward(x: [tokens, n]) { return q(p(x)) }").codes() == "E0323");
  Model m(around("d: dim", "a: A(c.d)  forward(x: [tokens, c.d]) { return a(x) }",
                 "module B(f: fn) { forward(x: [...]) { return f(x) } }\n"
                 "module A(n: dim) { param w: [n]  b: B(fn(x) = x * w)  forward(x: [tokens, n]) { return b(x) + w } }"));
  CHECK(has(m.config(R"({"d": 4})").codes(), "E0323"));
}

TEST_CASE("E0348: a module that does not fit the interface") {
  const auto fits = [](std::string_view module) {
    return Model(around("d: dim", "a: Mlp(c.d, ff: F(c.d))  forward(x: [tokens, c.d]) { return a(x) }",
                        "import nn.interfaces\nmodule Mlp(n: dim, ff: FeedForward(n)) { ff_in: ff  forward(x: [tokens, "
                        "n]) { return ff_in(x) } }\n"
                        "module F(n: dim) { " +
                            std::string(module) + " }"))
        .config(R"({"d": 4})")
        .messages();
  };
  CHECK(fits("forward(x: [..., n]) -> [..., n] { return x }").empty());
  CHECK(fits("forward(x: [tokens, n], scale: f32[] = 1.0) -> [tokens, n] { return x * scale }").empty());
  CHECK(fits("forward(x: [tokens, n]) { return x }").empty());
  CHECK(has(fits("forward(x: [tokens, n + 1]) -> [tokens, n + 1] { return x }"), "its last axis is 4, not 5"));
  CHECK(has(fits("forward(x: [tokens, n], at: Batch) -> [tokens, n] { return x }"), "needs `at` too"));
  CHECK(has(fits("forward() -> [n] { return arange(n) }"), "takes 0 arguments"));
  CHECK(has(fits("entry go(x: [tokens, n]) -> [tokens, n] { return x }"), "it has no `forward`"));
  CHECK(has(fits("forward(x: [tokens, n]) -> [tokens, n, 1] { return x as [tokens, n, 1] }"), "its result differs"));
  CHECK(has(fits("forward(x: [tokens, n]) -> ([tokens, n], [tokens, n]) { return x, x }"), "it gives 2 results"));
  CHECK(has(fits("forward(x: index(n)[tokens, n]) -> [tokens, n] { return x as f32 }"), "E0348"));
  CHECK(has(fits("forward(x: [tokens, n + 1]) -> [tokens, n + 1] { return x }"), "asked: forward(x: [tokens, size]) -> [tokens, size]"));
}

TEST_CASE("W0340: members that nothing uses") {
  CHECK(made("param w: [n]  forward(x: [tokens, n]) { return x }").codes() == "W0340");
  CHECK(made("p: Linear(n, n)  forward(x: [tokens, n]) { return x }").codes() == "W0340");
  CHECK(made("state s: KVCache(1, n)  forward(x: [tokens, n]) { return x }").codes() == "W0340");
  // A checkpoint that the const is written into uses it; a rule says nothing of a param, which every checkpoint has.
  CHECK(made("const k: f32[n] = linspace(0, 1, n)  forward(x: [tokens, n]) { return x }  checkpoint gguf { a = k }").codes() == "");
  CHECK(made("param w: [n]  forward(x: [tokens, n]) { return x }  checkpoint gguf { a = w }").codes() == "W0340");
  CHECK(has(made("param w: [n]  forward(x: [tokens, n]) { return x }").messages(), "nothing uses the param `w` of `A`"));
  // Used by a fn, or by another module.
  CHECK(made("param w: [n]  fn f(x) = x * w  forward(x: [tokens, n]) { return f(x) }").codes().empty());
  CHECK(made("b: B(n)  forward(x: [tokens, n]) { return x * b.w }", "true",
             "module B(n: dim) { param w: [n]  forward(x: [tokens, n]) { return x } }")
            .codes()
            .empty());
  // Declared for the modules that extend this one.
  CHECK(made("b: B(n)  forward(x: [tokens, n]) { return b(x) }", "true",
             "module Low(n: dim) { param w: [n]  forward(x: [tokens, n]) { return x } }\n"
             "module B(n: dim) extends Low(n) { override forward(x: [tokens, n]) { return x * w } }")
            .codes()
            .empty());
}

TEST_CASE("E0356: what speaks of a whole model, in a module") {
  for (const char* member : {"context 4", "policy { compute: f32 }", "place { }", "shard { }", "quantize { }"}) {
    CAPTURE(std::string(member));
    CHECK(made(std::string(member) + "  forward(x: [tokens, n]) { return x }").codes() == "E0356");
  }
}

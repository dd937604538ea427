// Nothing parses and then does nothing: of every construct a text with it and the same without, and what comes out (the
// graph, or the messages) differs. The construct stands between « and »; behind ¦ stands what takes its place without it.
#include <doctest/doctest.h>

#include <span>
#include <string>
#include <string_view>

#include "constructs_support.h"
#include "frontend/graph/printer.h"
#include "modules_support.h"

using namespace modelc;
using namespace modelc::sema::test;

namespace {

void check(std::span<const Case> cases) {
  check_constructs(cases, [](const std::string& text, const std::string& config) -> Outcome {
    Model m(text);
    m.config(config);
    if (!m.program().has_value()) return {false, m.messages()};
    const std::string said = m.messages();       // notes and warnings count too
    return {true, said + "\n" + graph::print(m.program()->graph, {.places = false})};
  });
}

// A model whose forward multiplies by `value`, so that the value shows in the graph.
std::string value(std::string_view fields, std::string_view expression, std::string_view before = "", std::string_view members = "") {
  return around(fields, std::string(members) + " forward(x: [tokens, 4]) { return x * float(" + std::string(expression) + ") }", before);
}
// A model with a body over x: [tokens, 4, c.d].
std::string body(std::string_view text, std::string_view before = "", std::string_view members = "") {
  return around("d: dim = 6", std::string(members) + " forward(x: [tokens, 4, c.d]) { " + std::string(text) + " }", before);
}

}  // namespace

TEST_CASE("constructs of a configuration") {
  const Case cases[] = {
      {"a default", value("d: dim «= 4»", "c.d"), "{}"},
      {"from a path", value("d: dim «from sub.width»", "c.d"), R"({"sub": {"width": 8}})"},
      {"a second spelling", value("d: dim from a «| b»", "c.d"), R"({"b": 4})"},
      {"a range", value("d: dim «in 1..4»", "c.d"), R"({"d": 9})"},
      {"a literal type", value("t: «\"x\"¦string»", "1 if c.t == \"x\" else 2"), R"({"t": "y"})"},
      {"a choice of literals", value("t: \"x\" «| \"y\"»", "1 if c.t == \"x\" else 2"), R"({"t": "y"})"},
      {"an optional type", value("d: int«?»", "c.d ?? 7"), "{}"},
      {"the kind of a number", value("d: «dim¦int»", "c.d"), R"({"d": 0})"},
      {"the length of a list", value("s: list[int«, 2»]", "len(c.s)"), R"({"s": [1, 2, 3]})"},
      {"a list's element type", value("s: list[«int¦string»]", "len(c.s)"), R"({"s": [1, 2, 3]})"},
      {"a map", value("m: «map[int]¦int»", "1", "", "let used = c.m"), R"({"m": {"a": 1}})"},
      {"several names in one field", value("a«, b»: int", "c.a + (c.b)"), R"({"a": 1, "b": 2})"},
      {"let", value("a: int «let b = 2 * a»", "c.b"), R"({"a": 1})"},
      {"fn", value("a: int «fn b(x) = x * a»", "c.b(3)"), R"({"a": 1})"},
      {"require", value("a: int «require a % 2 == 0»", "c.a"), R"({"a": 3})"},
      {"the text of a require", value("a: int require a % «2¦1» == 0, \"even only\"", "c.a"), R"({"a": 3})"},
      {"ignore", value("a: int «ignore window»", "c.a"), R"({"a": 3, "window": 5})"},
      {"ignore of a pattern", value("a: int ignore «\"*_id\"¦other»", "c.a"), R"({"a": 3, "eos_id": 5})"},
      {"refuse against ignore", value("a: int «refuse¦ignore» window", "c.a"), R"({"a": 3, "window": 5})"},
      {"extends",
       "config B { a: int } config C «extends B» { b: int } "
       "model M(c: C) { forward(x: [tokens, 4]) { return x * c.a * c.b } }",
       R"({"a": 2, "b": 3})"},
      {"override of a field",
       "config B { a: int = 1 } config C extends B { «override a: int = 2» } "
       "model M(c: C) { forward(x: [tokens, 4]) { return x * c.a } }",
       "{}"},
      {"the word override",
       "config B { a: int = 1 } config C extends B { «override» a: int = 2 } "
       "model M(c: C) { forward(x: [tokens, 4]) { return x * c.a } }",
       "{}"},
      {"remove of a field",
       "config B { a: int  b: int } config C extends B { «remove b» } "
       "model M(c: C) { forward(x: [tokens, 4]) { return x * c.a } }",
       R"({"a": 1})"},
      {"the tag of a variant",
       value("v: V", "match c.v { \"a\" => 1  \"b\" as s => s.f }", "variant V by kind «| type» { \"a\" {} \"b\" { f: int } }"),
       R"({"v": {"type": "b", "f": 3}})"},
      {"a second name of a case", value("v: V", "match c.v { \"a\" => 1  _ => 2 }", "variant V by kind { \"a\" {} \"b\" «| \"c\"» {} }"),
       R"({"v": {"kind": "c"}})"},
      {"a field of a case", value("v: V", "match c.v { \"a\" => 1  \"b\" as s => 2 }", "variant V by kind { \"a\" {} \"b\" { «f: 3» } }"),
       R"({"v": {"kind": "b", "f": 3}})"},
      {"an arm", value("v: V", "match c.v { «\"a\" => 1»  _ => 2 }", "variant V by kind { \"a\" {} \"b\" {} }"), R"({"v": {"kind": "a"}})"},
      {"an arm's second literal", value("v: V", "match c.v { \"b\" «| \"a\"» => 1  _ => 2 }", "variant V by kind { \"a\" {} \"b\" {} }"),
       R"({"v": {"kind": "a"}})"},
      {"the name of an arm", value("v: V", "match c.v { \"a\" «as s» => s.f  _ => 2 }", "variant V by kind { \"a\" { f: int } \"b\" {} }"),
       R"({"v": {"kind": "a", "f": 4}})"},
      {"the last arm", value("t: string", "match c.t { \"a\" => 1  «_ => 2» }"), R"({"t": "b"})"},
      {"every case of a variant", value("v: V", "match c.v { \"a\" => 1  «\"b\" => 2» }", "variant V by kind { \"a\" {} \"b\" {} }"),
       R"({"v": {"kind": "a"}})"},
      {"is", value("v: V", "1 if c.v is «\"a\"¦\"b\"» else 2", "variant V by kind { \"a\" {} \"b\" {} }"), R"({"v": {"kind": "a"}})"},
      {"is not", value("v: V", "1 if c.v is «not» \"a\" else 2", "variant V by kind { \"a\" {} \"b\" {} }"), R"({"v": {"kind": "a"}})"},
  };
  check(cases);
}

TEST_CASE("constructs of a module") {
  const std::string leaf = "module L(n: dim) { param w: [n] forward(x: [..., n]) { return x * w } } ";
  const Case cases[] = {
      {"a weight", body("return x * w", "", "param w: «[c.d]¦[1]»"), "{}"},
      {"a weight's dtype", body("return x * w", "", "param w: «f32»[c.d]"), "{}"},
      {"a weight's path", body("return x * w", "", "param w «at other.place»: [c.d]"), "{}"},
      {"a weight's default", body("return x * w", "", "param w: [c.d] «= 0.5»"), "{}"},
      {"a weight's condition", body("return x * w if c.d > 9 else x", "", "param w: [c.d] «if c.d > 9»"), "{}"},
      {"a const", body("return x * k", "", "const k: f32[c.d] = arange(c.d) «* 2»"), "{}"},
      {"a const's dtype", body("return x * (k as f32)", "", "const k: «f32¦index»[c.d] = arange(c.d)"), "{}"},
      {"a state",
       around("d: dim = 4",
              "«state cache: KVCache(2, c.d)» forward(q: [tokens, 2, c.d], at: Batch) { "
              "cache.append(q, q, at) return attend(q, cache, at, mask: \"causal\", scale: 1.0) }"),
       "{}"},
      {"what a state holds",
       around("d: dim = 4",
              "state cache: KVCache(2, c.d«, value_dim: c.d») forward(q: [tokens, 2, c.d], "
              "v: [tokens, 2, «c.d¦2 * c.d»], at: Batch) { "
              "cache.append(q, v, at) return attend(q, cache, at, mask: \"causal\", scale: 1.0) }"),
       "{}"},
      {"a state's condition",
       around("d: dim = 4",
              "state cache: KVCache(2, c.d) «if c.d > 9» forward(q: [tokens, 2, c.d], at: Batch) { "
              "return q }"),
       "{}"},
      {"a call for its effect",
       around("d: dim = 4",
              "state cache: KVCache(2, c.d) forward(q: [tokens, 2, c.d], at: Batch) { "
              "«cache.append(q, q, at)» return attend(q, cache, at, mask: \"causal\", scale: 1.0) }"),
       "{}"},
      {"a child's path", body("return a(x)", leaf, "a «at b.c»: L(c.d)"), "{}"},
      {"a child without a path", body("return a(x)", leaf, "a «at .»: L(c.d)"), "{}"},
      {"a child's condition", body("return a(x) if c.d > 9 else x", leaf, "a: L(c.d) «if c.d > 9»"), "{}"},
      {"a choice of children", body("return a(x)", leaf, "a: L(c.d) «if c.d > 9 else L(2 * c.d - 6)»"), "{}"},
      {"children in a list", body("let h = x for a in as_ { h = a(h) } return h", leaf, "as_: [L(c.d) for i in 0..«3¦2»]"), "{}"},
      {"a filter of children", body("let h = x for a in as_ { h = a(h) } return h", leaf, "as_: [L(c.d) for i in 0..3 «if i != 1»]"), "{}"},
      {"a range's begin", body("let h = x for a in as_ { h = a(h) } return h", leaf, "as_: [L(c.d) for i in «1¦0»..3]"), "{}"},
      {"the fold", body("let h = x «for a in as_ { h = a(h) }» return h", leaf, "as_: [L(c.d) for i in 0..3]"), "{}"},
      {"the map", body("let hs = [a(x) for a in as_] return hs[«1¦0»]", leaf, "as_: [L(c.d) for i in 0..3]"), "{}"},
      {"let in a module", body("return x * k", "", "«let k = 2.0»"), "{}"},
      {"fn in a module", body("return k(x)", "", "«fn k(y) = y * 2»"), "{}"},
      {"fn with a block", body("return k(x)", "", "fn k(y) { let z = y * 2 return z «+ y» }"), "{}"},
      {"require in a module", body("return x", "", "«require c.d == 7, \"seven\"»"), "{}"},
      {"context", around("", "«context 32» forward(i: index(99)[tokens], at: Batch) { return at.positions as f32 }"), "{}"},
      {"a parameter's default",
       body("return a(x)", "module A(n: dim, k: float «= 2.0») { forward(x: [..., n]) { return x * k } } ", "a: A(c.d)"), "{}"},
      {"a parameter's type", body("return a(x)", "module A(n: «dim¦string») { forward(x: [...]) { return x } } ", "a: A(c.d)"), "{}"},
      {"a named argument",
       body("return a(x)", "module A(n: dim, k: float = 2.0, l: float = 3.0) { forward(x: [..., n]) { return x * k + l } } ",
            "a: A(c.d, «l:» 5.0)"),
       "{}"},
      {"a module as an argument",
       body("return a(x)", leaf + "module A(m: module) { m_: m forward(x: [...]) { return m_(x) } } ",
            "a: A(L(c.d«¦ + 0 * 1»))  b: A(L(«c.d¦3»))"),
       "{}"},
      {"an interface",
       body("return a(x)",
            leaf + "interface I(n: dim) { forward(x: [tokens, n]) -> [tokens, n] } "
                   "module A(m: «I(6)¦module») { m_: m forward(x: [...]) { return x } } ",
            "a: A(L(3))"),
       "{}"},
      {"a function as an argument",
       body("return a(x)", "module A(f: fn = silu) { forward(x: [...]) { return f(x) } } ", "a: A(«f: fn(y) = y * 2»)"), "{}"},
      {"extends of a module",
       body("return a(x)", leaf + "module A(n: dim) extends L(n) { «override forward(x: [..., n]) { return x + w }» } ", "a: A(c.d)"),
       "{}"},
      {"the word override in a module",
       body("return a(x)", leaf + "module A(n: dim) extends L(n) { «override» forward(x: [..., n]) { return x + w } } ", "a: A(c.d)"),
       "{}"},
      {"arguments of a base", body("return a(x)", leaf + "module A(n: dim) extends L(«n¦2 * n») {} ", "a: A(c.d)"), "{}"},
      {"remove in a module",
       body("return a(x)",
            "module B(n: dim) { param w: [n] param v: [n] forward(x: [..., n]) { return x * w } } "
            "module A(n: dim) extends B(n) { «remove v» } ",
            "a: A(c.d)"),
       "{}"},
      {"an entry", body("return x", "", "«entry twice(x: [tokens, 4]) { return x * 2 }»"), "{}"},
      {"the name of a result", around("d: dim = 4", "forward(x: [tokens, c.d]) -> «y:» [tokens, c.d] { return x }"), "{}"},
      {"a declared result", around("d: dim = 4", "forward(x: [tokens, c.d]) «-> [tokens, 7]» { return x }"), "{}"},
      {"the dtype of a result", around("d: dim = 4", "forward(x: [tokens, c.d]) -> «f32»[tokens, c.d] { return x }"), "{}"},
      {"several results",
       around("d: dim = 4", "forward(x: [tokens, c.d]) -> ([tokens, c.d], [tokens, c.d]) { let a = x * 2 return «a, x¦x, a» }"), "{}"},
      {"names for several results", body("let («a, b¦b, a») = split(x, [2, 2], axis: 1) return a - b"), "{}"},
      {"a default of an input", around("", "forward(x: [batch, seq], keep: bool[batch, seq] «= true») { return where(keep, x, 0.0) }"),
       "{}"},
      {"the bound of an index", around("d: dim = 4", "param w: [9, c.d] forward(i: index(«9¦10»)[tokens]) { return take(w, i) }"), "{}"},
      {"any axes",
       around("d: dim = 4", "a: A(c.d) forward(x: [tokens, c.d]) { return a(x) }",
              "module A(n: dim) { forward(x: [«..., n¦n»]) { return x } }"),
       "{}"},
  };
  check(cases);
}

TEST_CASE("constructs of a file") {
  const Case cases[] = {
      {"an import",
       "«import nn.linear» config C { d: dim = 4 } model M(c: C) { l: Linear(c.d, c.d) forward(x: [tokens, c.d]) { return l(x) } }", "{}"},
      {"a name of an import",
       "import nn.linear «as lin» config C { d: dim = 4 } model M(c: C) { l: lin.Linear(c.d, c.d) "
       "forward(x: [tokens, c.d]) { return l(x) } }",
       "{}"},
      {"an axis", "«axis frames: 2..30» config C { d: dim = 4 } model M(c: C) { forward(x: [frames, c.d]) { return x } }", "{}"},
      {"an axis' range", "axis frames: «2¦1»..30 config C { d: dim = 4 } model M(c: C) { forward(x: [frames, c.d]) { return x } }", "{}"},
      {"an axis' end", "axis frames: 2..«30» config C { d: dim = 4 } model M(c: C) { forward(x: [frames, c.d]) { return x } }", "{}"},
      {"an axis' step", "axis frames: 2..30 «by 2» config C { d: dim = 4 } model M(c: C) { forward(x: [frames, c.d]) { return x } }", "{}"},
      {"fn in a file", "«fn f(y) = y * 2» config C { d: dim = 4 } model M(c: C) { forward(x: [tokens, c.d]) { return f(x) } }", "{}"},
  };
  check(cases);
}

TEST_CASE("expressions") {
  const Case cases[] = {
      {"^", value("a: int = 3", "c.a «^ 2»"), "{}"},
      {"^ binds to the right", value("a: int = 3", "«2 ^ 3 ^ c.a¦(2 ^ 3) ^ c.a»"), "{}"},
      {"-", value("a: int = 3", "«-»c.a"), "{}"},
      {"- below ^", value("a: int = 3", "«-c.a ^ 2¦(-c.a) ^ 2»"), "{}"},
      {"*", value("a: int = 3", "c.a «* 2»"), "{}"},
      {"/", value("a: int = 4", "c.a «/ 2»"), "{}"},
      {"/ of integers is exact", value("a: int = 5", "c.a / «2¦5»"), "{}"},
      {"%", value("a: int = 5", "c.a «% 2»"), "{}"},
      {"+", value("a: int = 5", "c.a «+ 2»"), "{}"},
      {"==", value("a: int = 5", "1 if c.a «==¦!=» 5 else 2"), "{}"},
      {"<", value("a: int = 5", "1 if c.a «<¦<=» 5 else 2"), "{}"},
      {">", value("a: int = 5", "1 if c.a «>¦>=» 5 else 2"), "{}"},
      {"in", value("a: int = 5", "1 if c.a in [1, 2«, 5»] else 2"), "{}"},
      {"not", value("a: bool = true", "1 if «not» c.a else 2"), "{}"},
      {"and", value("a: bool = true", "1 if c.a «and not c.a» else 2"), "{}"},
      {"or", value("a: bool = false", "1 if c.a «or not c.a» else 2"), "{}"},
      {"??", value("a: int? = none", "c.a «?? 2»"), "{}"},
      {"if else", value("a: int = 5", "c.a «if c.a > 9 else 2»"), "{}"},
      {"parentheses", value("a: int = 5", "«(c.a + 1)¦c.a + 1» * 2"), "{}"},
      {"a list's element", value("a: int = 5", "[c.a, 2][«0¦1»]"), "{}"},
      {"a comprehension", value("a: int = 5", "len([i for i in 0..c.a «if i > 1»])"), "{}"},
      {"a function", value("a: int = 5", "(fn(y) = y «+ 1»)(c.a)"), "{}"},
      {"as a dtype", body("return x «as f16»"), "{}"},
      {"as a shape", body("return x as «[tokens, 4 * c.d]¦[tokens, 2, 2 * c.d]»"), "{}"},
      {"as an index", around("d: dim = 4", "param w: [5, c.d] forward(i: index(10)[tokens]) { return take(w, (i % 5) «as index(5)») }"),
       "{}"},
      {"a slice", body("return x[«..., 0..3¦..., 0..4»]"), "{}"},
      {"a slice's step", body("return x[..., 0..6 «by 2»]"), "{}"},
      {"an index", body("return x[.., «0¦1»]"), "{}"},
      {"a whole axis", body("return x[.., «..,» 0]"), "{}"},
      {"nibbles", around("d: dim = 4", "param w: u8[c.d, c.d] forward(x: [tokens, 8]) { return linear(x, e2m1(«nibbles(w)¦w»)) }"), "{}"},
      {"e2m1",
       around("d: dim = 4", "param w: u8[c.d, c.d] forward(x: [tokens, 8]) { return linear(x, «e2m1(nibbles(w))¦nibbles(w) as f32») }"),
       "{}"},
      {"elementwise operators", body("return x «* x»"), "{}"},
      {"comparison of tensors", body("return where(x «>¦<» 0.0, x, x * 2)"), "{}"},
      {"let in a body", body("«let y = x * 2¦let y = x» return y"), "{}"},
      {"a named argument of an operation", body("return softmax(x, «axis: 1»)"), "{}"},
      {"true and false", value("a: int = 5", "1 if «true¦false» else c.a"), "{}"},
      {"none", value("a: int? = «none¦3»", "c.a ?? 9"), "{}"},
  };
  check(cases);
}

TEST_CASE("E0352: nested loops have elements of their own") {
  const auto text = [](const char* loops) {
    return around("d: dim = 4",
                  std::string("as_: [L(c.d) for i in 0..2] bs: [L(c.d) for i in 0..3] "
                              "forward(x: [tokens, c.d]) { let h = x ") +
                      loops + " return h }",
                  "module L(n: dim) { param w: [n, n] forward(x: [..., n]) { return linear(x, w) } }");
  };
  // Each reads its own weight, though both are `.w` of an element.
  Model own(text("for a in as_ { h = a(h) for b in bs { h = b(h) } h = a(h) }"));
  const std::string graph = own.config("{}").part("M");
  std::size_t weights = 0;
  for (std::size_t at = graph.find("= weight"); at != std::string::npos; at = graph.find("= weight", at + 1)) ++weights;
  CHECK(weights == 2);
  // The outer element inside the inner loop would be taken for the inner one.
  Model outer(text("for a in as_ { for b in bs { h = a(h) } }"));
  CHECK(outer.config("{}").codes() == "E0352");
}

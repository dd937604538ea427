// What is refused in bodies: shapes, types, calls, folds, what is not carried out.
#include <doctest/doctest.h>

#include "modules_support.h"

using namespace modelc::sema::test;

namespace {

Model forward(std::string_view inputs, std::string_view body, std::string_view members = "", std::string_view before = "") {
  Model m(around("d: dim  h: dim = 2",
                 "let read = c.d + c.h  " + std::string(members) + "  forward(" + std::string(inputs) + ") { " + std::string(body) + " }",
                 before));
  m.config("{\n \"d\": 4 }");
  return m;
}
std::string said(std::string_view inputs, std::string_view body, std::string_view members = "") {
  return forward(inputs, body, members).messages();
}
std::string codes(std::string_view inputs, std::string_view body, std::string_view members = "") {
  return forward(inputs, body, members).codes();
}

}  // namespace

TEST_CASE("E0349: shapes that do not go together, with formulas, values and origins") {
  Model m(around("width, heads: dim",
                 "let d = c.width / c.heads  param w: [c.heads * d, c.width]\n forward(x: [tokens, 2 * c.heads]) { "
                 "return linear(x, w) }"));
  m.config("{\n \"width\": 12,\n \"heads\": 3 }");
  CHECK(m.codes() == "E0349");
  const std::string text = m.messages();
  CHECK(has(text, "linear: the last axis of x is 6, of w 12"));
  CHECK(has(text, "x is [tokens, 2 * heads] = [tokens, 2 * 3] = [tokens, 6]"));
  CHECK(has(text, "w is [heads * d, width] = [3 * 4, 12] = [12, 12]"));
  CHECK(has(text, "heads = 3 from config.json:3"));
  CHECK(has(text, "d = width / heads = 4"));
  CHECK(has(text, "width = 12 from config.json:2"));
  CHECK(has(text, "the weight is declared here"));
}

TEST_CASE("E0349: broadcasting, casts, views, slices") {
  CHECK(codes("x: [tokens, c.d], y: [tokens, c.h]", "return x + y") == "E0349");
  CHECK(has(said("x: [tokens, c.d]", "return x as [tokens, c.h, 3]"), "the axes do not multiply out: 4 * tokens elements as 6 * tokens"));
  CHECK(has(said("x: [tokens, c.d]", "return x as [tokens, c.h, 3]"), "wanted [tokens, h, 3] = [tokens, 2, 3]"));
  CHECK(has(said("x: [tokens, c.d]", "return x as [tokens, c.h, 3]"), "h = 2"));
  CHECK(codes("x: [tokens, c.d]", "return unflatten(x, 5, [2, 2])") == "E0349");
  CHECK(codes("x: [tokens, c.d]", "return flatten(x, 1, 0)") == "E0349");
  CHECK(codes("x: [tokens, c.d]", "return x[0, 0, 0]") == "E0349");
  CHECK(codes("x: [tokens, c.d]", "return x[..., ...]") == "E0349");
  CHECK(codes("x: [tokens, c.d]", "return x[.., 0..9]") == "E0349");
  CHECK(codes("x: [tokens, c.d]", "return split(x, [1, 2])") == "E0349");
  CHECK(codes("x: [tokens, c.d]", "return x as [..., 4]") == "E0349");
  CHECK(codes("x: bool[tokens, c.d]", "return x + 1") == "E0349");
  CHECK(codes("x: index(3)[tokens]", "return x / 2 + take(x, x)") == "E0349");
}

TEST_CASE("E0349 inside a fn and a leaf names the calls that led there") {
  const std::string text = said("x: [tokens, c.d]", "return f(x)", "fn f(y) = y + arange(c.h + 1)");
  CHECK(has(text, "in this call of `f`"));
  const std::string leaf =
      forward("x: [tokens, c.d]", "return a(x)", "a: A()", "module A() { forward(x: [...]) { return x + arange(3) } }").messages();
  CHECK(has(leaf, "in this call of `a`"));
}

TEST_CASE("E0350: arguments and results that are not what the signature says") {
  const std::string text = said("x: [tokens, c.h]", "return p(x)", "p: Linear(c.d, c.h)");
  CHECK(has(text, "error[E0350]: the argument `x` of `p` does not fit: its last axis is 2, not 4"));
  CHECK(has(text, "expected [..., d] = [..., 4]"));
  CHECK(has(text, "found [tokens, h] = [tokens, 2]"));
  CHECK(has(text, "`x` is declared here"));
  CHECK(has(text, "d = 4 from config.json:2"));
  CHECK(has(said("x: [tokens, c.d]", "return e(x)", "e: Embedding(9, c.h)"), "it is f32, not an index"));
  CHECK(has(said("x: index(12)[tokens]", "return e(x)", "e: Embedding(9, c.h)"), "its values reach up to 12"));
  CHECK(has(said("at: Batch", "return e(at.positions)", "e: Embedding(9, c.h)"), "nothing bounds its values"));
  CHECK(has(said("at: Batch", "return e(at.positions)", "e: Embedding(9, c.h)"), "`context n`"));
  CHECK(has(said("x: index(3)[tokens]", "return p(x)", "p: Linear(c.d, c.d)"), "it is an index, not f32"));
  CHECK(has(said("at: Batch", "return p(at)", "p: Linear(c.d, c.d)"), "it is a Batch, not a tensor"));
  Model result(around("d: dim", "forward(x: [tokens, c.d]) -> [tokens, 2 * c.d] { return x }"));
  CHECK(result.config(R"({"d": 4})").codes() == "E0350");
  CHECK(has(result.messages(), "declared as [tokens, 2 * d] = [tokens, 2 * 4] = [tokens, 8]"));
  Model count(around("d: dim", "forward(x: [tokens, c.d]) -> [tokens, c.d] { return x, x }"));
  CHECK(has(count.config(R"({"d": 4})").messages(), "returns 2 results, and declares 1"));
  Model dots(around("d: dim", "a: A()  forward(x: [tokens, c.d], y: [seq, c.d]) { return a(x, y) }",
                    "module A() { forward(x: [..., 4], y: [..., 4]) { return x } }"));
  CHECK(has(dots.config(R"({"d": 4})").messages(), "`...` is [seq] in it and [tokens] in an argument before it"));
}

TEST_CASE("E0313: calls with the wrong arguments") {
  CHECK(codes("x: [tokens, c.d]", "return p(x, x)", "p: Linear(c.d, c.d)") == "E0313");
  CHECK(codes("x: [tokens, c.d]", "return p()", "p: Linear(c.d, c.d)") == "E0313");
  CHECK(has(said("x: [tokens, c.d]", "return rms_norm(x, esp: 1e-5)"), "the operation `rms_norm` has no parameter `esp`"));
  CHECK(has(said("x: [tokens, c.d]", "return rms_norm(x, esp: 1e-5)"), "did you mean `eps`?"));
  CHECK(codes("x: [tokens, c.d]", "return rms_norm(x)") == "E0313");
  CHECK(codes("x: [tokens, c.d]", "return silu(x, x)") == "E0313");
  CHECK(codes("x: [tokens, c.d]", "return max(x, x, axis: 1)") == "E0313");
}

TEST_CASE("E0314, E0316: what an operation is told") {
  CHECK(has(said("x: [tokens, c.d]", "return softmax(x, axis: 1.5)"), "`axis` of `softmax` is a whole number"));
  CHECK(codes("x: [tokens, c.d]", "return rms_norm(x, eps: \"a\")") == "E0314");
  CHECK(codes("x: [tokens, c.d]", "return rms_norm(x, eps: none)") == "E0316");
  CHECK(has(said("x: [tokens, c.d]", "return activate(x, \"slu\")"), "did you mean `silu`?"));
  CHECK(codes("x: [tokens, c.d]", "return softcap(x, -1)") == "E0314");
  CHECK(codes("x: [tokens, c.d]", "return split(x, 2)") == "E0314");
  CHECK(codes("x: [tokens, c.d]", "return concat(x)") == "E0314");
  CHECK(codes("x: [tokens, c.d]", "return tensor([[1], [2, 3]])") == "E0314");
  CHECK(codes("x: [tokens, c.d]", "return expand(x, 4)") == "E0314");
}

TEST_CASE("E0307, E0324: operands that are none") {
  CHECK(codes("x: [tokens, c.d]", "return x + p", "p: Linear(c.d, c.d)") == "E0307");
  CHECK(codes("x: [tokens, c.d]", "return x * tokens") == "E0324");
  CHECK(codes("x: [tokens, c.d]", "return x + \"a\"") == "E0307");
  CHECK(codes("x: [tokens, c.d]", "return x[.., x]") == "E0307");
  CHECK(codes("x: [tokens, c.d]", "return attend(x, p, x)", "p: Linear(c.d, c.d)") == "E0307");
}

TEST_CASE("E0315: fields and members that are not there, with the nearest") {
  CHECK(has(said("at: Batch", "return at.position"), "did you mean `positions`?"));
  CHECK(has(said("at: Sequences", "return at.positions"), "has no field `positions`"));
  CHECK(has(said("x: [tokens, c.d]", "return p.wieght", "p: Linear(c.d, c.d)"), "did you mean `weight`?"));
  CHECK(codes("x: [tokens, c.d]", "return ps.weight", "ps: [Linear(c.d, c.d)]") == "E0315");
  CHECK(codes("x: [tokens, c.d]", "return x.shape") == "E0315");
  Model state(around("d: dim", "a: A(c.d)  forward(x: [tokens, c.d], at: Batch) { return a.s }",
                     "module A(n: dim) { state s: KVCache(1, n)  forward(x: [tokens, n], at: Batch) { s.append(x as "
                     "[tokens, 1, n], x as [tokens, 1, n], at)  return x } }"));
  CHECK(state.config(R"({"d": 4})").codes() == "E0315");
  CHECK(codes("x: [tokens, 1, c.d], at: Batch", "s.put(x, x, at)  return x", "state s: KVCache(1, c.d)") == "E0315");
  CHECK(codes("x: [tokens, c.d]", "return a.f(x)", "a: Ok(c.d)").find("E0301") != std::string::npos);
}

TEST_CASE("E0354: calls of functions that a module does not have") {
  Model none(around("d: dim", "a: A(c.d)  forward(x: [tokens, c.d]) { return a(x) }", "module A(n: dim) { p: Linear(n, n) }"));
  CHECK(none.config(R"({"d": 4})").codes() == "E0354");
  CHECK(has(said("x: [tokens, c.d]", "return p.forwrd(x)", "p: Linear(c.d, c.d)"), "E0354"));
  Model model(around("d: dim", "p: Linear(c.d, c.d)"));
  CHECK(model.config(R"({"d": 4})").codes() == "E0354");
}

TEST_CASE("E0311: lists and states are not called") {
  CHECK(codes("x: [tokens, c.d]", "return ps(x)", "ps: [Linear(c.d, c.d)]") == "E0311");
  CHECK(codes("x: [tokens, c.d]", "return s(x)", "state s: KVCache(1, c.d)") == "E0311");
}

TEST_CASE("E0352: loops that are no folds") {
  CHECK(has(said("x: [tokens, c.d]", "let h = x  for p in ps { h = p(h) }  return h", "ps: [Linear(c.d, c.h)]"), "it must keep its shape"));
  CHECK(has(said("x: [tokens, c.d]", "let h = x  for p in ps { h = p(h) }  return h", "ps: [Linear(c.d, c.h)]"),
            "before the loop it is [tokens, d] = [tokens, 4]"));
  CHECK(codes("x: [tokens, c.d]", "let n = 0  for p in ps { n = n + 1 }  return p0(x) * n",
              "p0: Linear(c.d, c.d)  ps: [Linear(c.d, c.d)]") == "E0352");
  CHECK(codes("x: [tokens, c.d]", "let h = x  for p in q { h = h }  return q(h)", "q: Linear(c.d, c.d)") == "E0352");
}

TEST_CASE("E0351: what is not carried out says so, by name") {
  CHECK(codes("x: [tokens, c.d]", "return go(x)", "").find("E0301") == 0);
  CHECK(codes("x: [tokens, c.d], at: Batch", "return attend(x, s, at, mask: \"full\", scale: 1)", "state s: Ring(3, [c.d])") == "E0349");
}

TEST_CASE("sizes that nothing could compute, ranges that end before they begin, names of axes: once, with the values") {
  Model m(around("d: dim", "forward(x: [tokens, c.d]) { return x + sum(arange(1000000000000)) }"));
  CHECK(m.config(R"({"d": 4})").codes() == "E0349");
  CHECK(m.messages().find("arange: gives f32[1000000000000]") != std::string::npos);
  Model range(around("d: dim", "let few = [i for i in 0..(c.d - 10)]  forward(x: [tokens, c.d]) { return x * float(len(few)) }"));
  CHECK(range.config(R"({"d": 4})").codes() == "E0307");
  CHECK(range.messages().find("the range `0..(c.d - 10)` = 0..-6 ends before it begins") != std::string::npos);
  Model empty(around("d: dim", "let few = [i for i in 0..(c.d - 4)]  forward(x: [tokens, c.d]) { return x * float(len(few)) }"));
  CHECK(empty.config(R"({"d": 4})").codes() == "");                   // 0..0 is empty, and no mistake
  Model axis(around("d: dim", "tokens: Linear(c.d, c.d)  forward(x: [tokens, c.d]) { return tokens(x) }",
                    "module Linear(n: dim, m: dim) { param w: [m, n]  forward(x: [tokens, n]) { return linear(x, w) } }"));
  CHECK(axis.config(R"({"d": 4})").codes() == "E0303");
}

TEST_CASE("several mistakes in one run, each once, and none for what follows from another") {
  Model m(around("d: dim  n: int",
                 "layers: [Layer(c.d) for i in 0..c.n]  p: Linear(c.d, 3)\n"
                 "forward(x: [tokens, c.d]) { let h = x  for l in layers { h = l(h) }\n  let a = h + arange(3)  let b "
                 "= a * 2  let e = misspelt(h)\n  return p(b) + e }",
                 "module Layer(n: dim) { p: Linear(n, n)  q: Linear(n, n + 1)\n forward(x: [tokens, n]) -> [tokens, n] "
                 "{ return p(x) + q(x) } }"));
  m.config(R"({"d": 4, "n": 40})");
  CHECK(m.codes() == "E0301 E0349 E0349");
}

TEST_CASE("a mistake in a leaf's text is said once, however often it is called") {
  Model m(around("d: dim", "a: A(c.d)  b: A(2 * c.d)  forward(x: [tokens, c.d], y: [tokens, 2 * c.d]) { return a(a(x)), b(y) }",
                 "module A(n: dim) { forward(x: [tokens, n]) { return x + arange(3) } }"));
  CHECK(m.config(R"({"d": 4})").codes() == "E0349");
}

// Bodies of forward and entries as graphs.
#include <doctest/doctest.h>

#include "modules_support.h"

using namespace modelc::sema::test;

namespace {

// The graph text of `forward(inputs) { body }` of a model M over c: C { d, h: dim }, d = 4, h = 2.
std::string forward(std::string_view inputs, std::string_view body, std::string_view members = "") {
  Model m(around("d: dim  h: dim = 2",
                 "let read = c.d + c.h  " + std::string(members) + "  forward(" + std::string(inputs) + ") { " + std::string(body) + " }"));
  m.config(R"({"d": 4})");
  return m.part("M.forward");
}

}  // namespace

TEST_CASE("named values keep their names, results theirs") {
  Model m(around("d: dim",
                 "forward(x: [tokens, c.d]) -> (first: [tokens, c.d], second: [tokens, c.d]) { let y = x + x  return "
                 "y, silu(y) }"));
  const std::string text = m.config(R"({"d": 4})").part("M");
  CHECK(has(text, "%y: f32[tokens, 4] = add(%x, %x)"));
  CHECK(has(text, "return %y as \"first\", %1 as \"second\""));
  CHECK(has(text, "signature \"forward(x: [tokens, c.d]) -> (first: [tokens, c.d], second: [tokens, c.d])\""));
}

TEST_CASE("operations say their text and place") {
  Model m(around("d: dim", "forward(x: [tokens, c.d]) { return x +\n   // a comment\n   silu(x) }"));
  const auto& op = m.config(R"({"d": 4})").good().graph.classes.back().functions[0].body.ops.back();
  CHECK(op.source == "x + silu(x)");
  CHECK(op.where.file == "main.model");
  CHECK(op.where.line == 8);
}

TEST_CASE("operators and functions become operations, numbers literals") {
  const std::string text =
      forward("x: [tokens, c.d]", "return where(x > 0 and not (x == 1), -x ^ 2 / 3, min(x, 1, x)) % 2 - max(x) as [tokens, 1]");
  for (const char* op :
       {"greater(", "equal(", "logical_not(", "logical_and(", "neg(", "pow(", "div(", "min(", "mod(", "max_reduce(", "sub(", "where("}) {
    CAPTURE(std::string(op));
    CHECK(has(text, op));
  }
  CHECK(has(text, "literal(value: 3.0)"));
}

TEST_CASE("a factor of 1 is no product") {
  CHECK_FALSE(has(forward("x: [tokens, c.d]", "return x * 1.0 / 1 * 1 ^ 1"), " mul("));
  CHECK(has(forward("x: [tokens, c.d]", "return x * 1.5"), " mul("));
}

TEST_CASE("numbers beside integers stay integers") {
  CHECK(has(forward("x: index(9)[tokens]", "return x + 1"), "cast(%1; dtype: \"i32\")"));
  CHECK(has(forward("x: index(9)[tokens]", "return x + 1"), ": i32[tokens] = add"));
  CHECK(has(forward("x: index(9)[tokens]", "return x * 0.5"), ": f32[tokens] = mul"));
}

TEST_CASE("as: dtype, shape, index, both; equal types are left as they are") {
  const std::string text = forward("x: [tokens, c.d], i: index(9)[tokens]",
                                   "let a = x as [tokens, c.h, 2]  let b = i as f32[tokens, 1]  let e = x as f32\n"
                                   "let f = i as index(12)  let g = x as bf16  return a, b, e, f, g");
  CHECK(has(text, "%a: f32[tokens, 2, 2] = reshape(%x)"));
  CHECK(has(text, "%b: f32[tokens, 1] = reshape(%1)"));
  CHECK(has(text, "%f: index(12)[tokens] = cast(%i; dtype: \"i32\")"));
  CHECK(has(text, "bf16[tokens, 4] = cast(%x; dtype: \"bf16\")"));
  CHECK(has(text, "return %a, %b, %x, %f, %g"));
}

TEST_CASE("slices") {
  const std::string text = forward("x: [batch, seq, c.d]", "return x[.., 0], x[..., 1..3], x[0, .., 0..4 by 2], x[.., 0..seq]");
  CHECK(has(text, "f32[batch, 4] = slice(%x; axis: 1, drop: true, start: 0)"));
  CHECK(has(text, "f32[batch, seq, 2] = slice(%x; axis: 2, start: 1, stop: 3)"));
  CHECK(has(text, "f32[seq, 2] = slice("));
  CHECK(has(text, "step: 2"));
  CHECK(has(text, "stop: \"seq\""));
}

TEST_CASE("views by name") {
  const std::string text = forward("x: [tokens, c.d]",
                                   "let a = unflatten(x, -1, [c.h, 2])  let b = flatten(a, -2, -1)  let (p, q) = split(x, [1, 3])\n"
                                   "let e = concat([p, q])  let s = stack([x, e], axis: 1)  let r = repeat(x, 2, axis: 0)\n"
                                   "let t = transpose(s, 0, 1)  let z = expand(p, [tokens, c.d])  let o = pad(x, 1, 0)\n"
                                   "return a, b, e, s, r, t, z, o");
  CHECK(has(text, "%a: f32[tokens, 2, 2] = reshape"));
  CHECK(has(text, "%b: f32[tokens, 4] = reshape"));
  CHECK(has(text, "%p: f32[tokens, 1], %q: f32[tokens, 3] = split(%x; sizes: [1, 3])"));
  CHECK(has(text, "%e: f32[tokens, 4] = concat(%p, %q)"));
  CHECK(has(text, "%s: f32[tokens, 2, 4] = stack(%x, %e; axis: 1)"));
  CHECK(has(text, "repeat_axis(%x; axis: 0, times: 2)"));
  CHECK(has(text, "%z: f32[tokens, 4] = expand(%p)"));
  CHECK(has(text, "f32[tokens, 5] = pad("));
}

TEST_CASE("operations that stand for several, and makers") {
  const std::string text =
      forward("x: [tokens, c.d]",
              "let a = clamp(x, -1, 1)  let b = softcap(x, 30.0)  let e = softcap(x, none)  let f = activate(x, \"relu2\")\n"
              "let g = activate(x, \"gelu_pytorch_tanh\")  let t = tensor([1, 2, 3, 4])  let m = tensor([[1, 2], [3, 4]])\n"
              "let n = arange(c.d) + linspace(0, 1, 4)  let k = activate(x, \"linear\")\n"
              "return a + b, e, f, g, t, m, n, k, one_hot(argmax(x), 4), sum(x, axis: 0), x * count(x[0]), outer(t, t)");
  for (const char* op :
       {"%a: f32[tokens, 4] = min(", "tanh(", "relu(", "gelu_tanh(", "tensor_literal(values: [1.0, 2.0, 3.0, 4.0])", "shape: [2, 2]",
        "arange(count: 4)", "linspace(", "one_hot(", "argmax(", "sum(", "outer(", "literal(value: 4.0)"}) {
    CAPTURE(std::string(op));
    CHECK(has(text, op));
  }
  CHECK(has(text, "return %"));
}

TEST_CASE("the fields of a Batch, each read once") {
  const std::string text = forward("at: Batch", "return at.positions + at.positions, at.lengths, at.sequence, at.outputs, at.last");
  CHECK(text.find("field: \"positions\"") == text.rfind("field: \"positions\""));
  CHECK(has(text, "i32[tokens] = batch_field(%at; field: \"positions\")"));
  CHECK(has(text, "index(batch)[tokens] = batch_field"));
  CHECK(has(text, "index(tokens)[outputs] = batch_field"));
  CHECK(has(text, "index(tokens)[batch] = batch_field"));
  CHECK(has(forward("at: Batch", "return at.positions", "context 16"), "index(16)[tokens] = batch_field"));
}

TEST_CASE("a leaf is expanded where it is called, and its value is the child's stage") {
  const std::string text = forward("x: [tokens, c.d]", "return p(x)", "p at deep.p: Linear(c.d, c.d, has_bias: true)");
  CHECK(has(text, "weight \"p.weight\""));
  CHECK(has(text, "weight \"p.bias\""));
  CHECK(has(text, "%3: f32[tokens, 4] stage \"deep.p\" = linear(%x, %1, %2)"));
  CHECK_FALSE(has(text, "call"));
}

TEST_CASE("the operation that gives a leaf's result stands for the call") {
  Model m(around("d: dim", "p: Linear(c.d, c.d)\nforward(x: [tokens, c.d]) { return p(x + x) }"));
  const auto& ops = m.config(R"({"d": 4})").good().graph.classes.back().functions[0].body.ops;
  CHECK(ops.back().source == "p(x + x)");
  CHECK(ops.back().where.file == "main.model");
}

TEST_CASE("children with children are called; weights of a child are read by name") {
  const std::string text =
      forward("x: [tokens, c.d]", "return m(x) + p.weight[0] + m.up_proj.weight[0][0..c.d]", "m: GatedMLP(c.d, 8)  p: Linear(c.d, c.d)");
  CHECK(has(text, "= call \"m\".forward(%x)"));
  CHECK(has(text, "weight \"p.weight\""));
  CHECK(has(text, "weight \"m.up_proj.weight\""));
}

TEST_CASE("a signature with `...` makes a function for each meaning") {
  Model m(around("d: dim",
                 "m: GatedMLP(c.d, 8)  forward(x: [tokens, c.d]) { return m(x) + m(x) }\n"
                 "entry other(x: [batch, seq, c.d]) { return m(x) }"));
  const std::string text = m.config(R"({"d": 4})").part("GatedMLP");
  CHECK(has(text, "forward forward(%x: f32[tokens, 4])"));
  CHECK(has(text, "forward forward_2(%x: f32[batch, seq, 4])"));
  CHECK(has(m.part("M.other"), "call \"m\".forward_2(%x)"));
}

TEST_CASE("`...` in a cast is what it is in the signature") {
  Model m(around("d: dim", "a: A(c.d)  forward(x: [batch, seq, c.d]) { return a(x) }",
                 "module A(n: dim) { forward(x: [..., n]) -> [..., 2, 2] { return x as [..., 2, 2] } }"));
  CHECK(has(m.config(R"({"d": 4})").part("M"), "f32[batch, seq, 2, 2] stage \"a\" = reshape"));
}

TEST_CASE("a fold is one repeat, its element called by name of function") {
  const std::string text = forward("x: [tokens, c.d]", "let h = x  for layer in layers { let n = layer(h)  h = n + x }  return h",
                                   "layers: [GatedMLP(c.d, 8) for i in 0..5]");
  CHECK(has(text,
            "%h: f32[tokens, 4] = repeat \"layers\"(%x) {\n      carry %h.2: f32[tokens, 4]\n      %n: f32[tokens, 4] "
            "= call \"\".forward(%h.2)"));
  CHECK(has(text, "next %h.3"));
}

TEST_CASE("a fold over leaves, over unlike modules with one signature, over nothing") {
  CHECK(has(forward("x: [tokens, c.d]", "let h = x  for p in ps { h = p(h) }  return h", "ps: [Linear(c.d, c.d) for i in 0..3]"),
            "weight \".weight\""));
  const std::string mixed =
      forward("x: [tokens, c.d]", "let h = x  for m in ms { h = m(h) }  return h", "ms: [GatedMLP(c.d, 8 if i == 1 else 6) for i in 0..3]");
  CHECK(has(mixed, "repeat \"ms\""));
  CHECK_FALSE(
      has(forward("x: [tokens, c.d]", "let h = x  for p in ps { h = p(h) }  return h", "ps: [Linear(c.d, c.d) for i in 0..0]"), "repeat"));
}

TEST_CASE("inside a fold an element's members are reached through it") {
  const std::string text =
      forward("x: [tokens, c.d]", "let h = x  for m in ms { h = h + m.down_proj(m.up_proj(h)) * m.gate_proj.weight[0, 0] }  return h",
              "ms: [GatedMLP(c.d, 8) for i in 0..3]");
  CHECK(has(text, "weight \".up_proj.weight\""));
  CHECK(has(text, "stage \".up_proj\""));
  CHECK(has(text, "weight \".gate_proj.weight\""));
}

TEST_CASE("the map is a comprehension") {
  const std::string text = forward("x: [tokens, c.d]", "return concat([m(x) for m in ms])", "ms: [GatedMLP(c.d, 8) for i in 0..3]");
  for (const char* call : {"call \"ms.0\".forward", "call \"ms.1\".forward", "call \"ms.2\".forward", "concat("}) CHECK(has(text, call));
}

TEST_CASE("fns are expanded, and what the case at hand does not need is left out") {
  const std::string text = forward("x: [tokens, c.d]", "return f(x, \"a\") + f(x, \"b\")",
                                   "fn f(x, which) { let unused = exp(x)  let e = log(x)  return match which { \"a\" => e  _ => x } }");
  CHECK_FALSE(has(text, "exp("));
  CHECK(text.find("log(") == text.rfind("log("));
  CHECK_FALSE(has(text, "%e"));
  // A name of the function itself stays: it can be looked at.
  CHECK(has(forward("x: [tokens, c.d]", "let kept = exp(x)  return x"), "%kept: f32[tokens, 4] = exp(%x)"));
}

TEST_CASE("entries are functions, and call entries of children") {
  Model m(around("d: dim",
                 "a: A(c.d)  forward(x: [tokens, c.d], at: Batch) { return a(x, at) }\n"
                 "entry fill(x: [tokens, 1, c.d], at: Batch) { a.fill(x, at) }",
                 "module A(n: dim) { state s: KVCache(1, n)\n forward(x: [tokens, n], at: Batch) -> [tokens, n] {\n"
                 " return attend(x as [tokens, 1, n], s, at, mask: \"full\", scale: 1) as [tokens, n] }\n"
                 " entry fill(x: [tokens, 1, n], at: Batch) { s.append(x, x, at) } }"));
  m.config(R"({"d": 4})");
  CHECK(has(m.part("A.fill"), "append \"s\"(%x, %x, %at)"));
  CHECK(has(m.part("M.fill"), "call \"a\".fill(%x, %at)"));
  CHECK(has(m.part("A.forward"), "attend \"s\"(%1, _, _, %at, _, _, _; mask: \"full\", scale: 1.0)"));
}

TEST_CASE("attend without state") {
  const std::string text =
      forward("q: [batch, seq, 2, 2], keep: bool[batch, seq]", "return attend(q, q, q, mask: \"full\", scale: 0.5, keep: keep)");
  CHECK(has(text, "attend(%q, %q, %q, _, _, %keep, _; mask: \"full\", scale: 0.5)"));
}

TEST_CASE("an input with a default may be left out") {
  Model m(around("d: dim", "a: A(c.d)  forward(x: [tokens, c.d], s: f32[] = 2.0) { return a(x) * s }",
                 "module A(n: dim) { p: Linear(n, n)  q: B(n)  forward(x: [tokens, n], w: [tokens, n] = 1) { return q(p(x)) * w } "
                 "}\n"
                 "module B(n: dim) { forward(x: [tokens, n], keep: bool[tokens, n] = true) { return where(keep, x, 0) } }"));
  m.config(R"({"d": 4})");
  CHECK(has(m.part("M"), "forward forward(%x: f32[tokens, 4], %s: f32[] default 2.0)"));
  CHECK(has(m.part("M"), "call \"a\".forward(%x, _)"));
  CHECK(has(m.part("A"), "= expand("));
}

TEST_CASE("an index is passed where one with a higher bound is asked, checked where it runs") {
  Model m(around("d: dim", "o: O(c.d)  forward(i: index(5)[tokens]) { return o(i) }",
                 "module O(n: dim) { e: Embedding(9, n)  forward(i: index(9)[tokens]) -> [tokens, n] { return e(i) } }"));
  m.config(R"({"d": 4})");
  CHECK(has(m.part("M"), "index(9)[tokens] = cast(%i; dtype: \"i32\")"));
}

TEST_CASE("rope: a const of frequencies, angles as ordinary operations") {
  Model m(
      "import nn.rope\nconfig C { d: dim }\nmodel M(c: C) { context 32\n"
      " r: RotaryEmbedding(c.d, theta: 100.0, pairs: \"halves\", max_positions: 32)\n"
      " forward(x: [tokens, 2, c.d], at: Batch) { return r(x, at) } }");
  m.config(R"({"d": 4})");
  CHECK(has(m.part("RotaryEmbedding"), "weight factors: f32[2] vector shape \"[d / 2]\""));
  CHECK(has(m.part("RotaryEmbedding.freqs"), "pow("));
  const std::string text = m.part("M.forward");
  CHECK(has(text, "constant_ref \"r.freqs\""));
  CHECK(has(text, "stage \"r\" = rope(%x,"));
  CHECK_FALSE(has(text, "lengths"));
}

// Entries, calls of a module's own functions, run-time axes, unlike leaves in one loop: what the graph computes.
#include <doctest/doctest.h>

#include <cmath>

#include "frontend/graph/eval/evaluator.h"
#include "modules_support.h"

using namespace modelc;
using namespace modelc::sema::test;
using graph::eval::array;
using graph::eval::Array;
using graph::eval::Evaluator;
using graph::eval::Input;
using graph::eval::Outputs;

namespace {

// Numbers that depend on the name and the place alone.
std::vector<float> numbers(std::size_t n, const std::string& seed) {
  std::size_t h = 7;
  for (const char c : seed) h = h * 31 + static_cast<unsigned char>(c);
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<float>(std::sin(static_cast<double>(h % 1000) + 1.7 * i));
  return out;
}

// A text's model, and an evaluator of it on made-up weights.
struct Running {
  Model model;
  Evaluator evaluator;
  explicit Running(std::string_view text, std::string_view config = R"({"d": 4})")
      : model(text), evaluator((model.config(config), model.good().graph), [this](const std::string& name, const graph::WeightDecl& w) {
          std::size_t n = 1;
          for (const graph::DimId d : w.type.shape) n *= static_cast<std::size_t>(*model.good().graph.dims.value(d));
          return std::optional(numbers(n, name));
        }) {}
  std::vector<float> operator()(const std::string& function, const std::map<std::string, Input>& inputs) {
    auto out = evaluator.run(function, inputs);
    if (!out) FAIL(out.error().text());
    return out->at(0).value.reals;
  }
  std::string error(const std::string& function, const std::map<std::string, Input>& inputs) {
    auto out = evaluator.run(function, inputs);
    REQUIRE_FALSE(out.ok());
    return out.error().message;
  }
};

const Array x = array({3, 4}, numbers(12, "x"));

std::string one(std::string_view members, std::string_view before = "") { return around("d: dim", members, before); }

}  // namespace

TEST_CASE("a module calls its own functions") {
  Running r(
      one("p: Linear(c.d, c.d)  g: GatedMLP(c.d, 6)\n"
          "forward(x: [tokens, c.d]) -> [tokens, c.d] { return twice(twice(x)) + g(x) }\n"
          "entry twice(x: [tokens, c.d], k: [c.d] = 2) -> [tokens, c.d] { let h = p(x) * k  return h + x }\n"
          "entry other(x: [tokens, c.d]) -> [tokens, c.d] { return forward(x) }\n"
          "entry plain(x: [tokens, c.d]) -> [tokens, c.d] {\n"
          "  let h = p(x) * 2 + x  let i = p(h) * 2 + h  return i + g(x) }"));
  CHECK(r("forward", {{"x", x}}) == r("plain", {{"x", x}}));
  CHECK(r("other", {{"x", x}}) == r("plain", {{"x", x}}));
  CHECK(r("twice", {{"x", x}, {"k", array({4}, {1, 1, 1, 1})}}) != r("twice", {{"x", x}}));
}

TEST_CASE("a leaf, and an element of a loop, call their own functions; so does a state's owner") {
  Running r(
      one("ls: [Low(c.d) for i in 0..3]  m: Mid(c.d)\n"
          "forward(x: [tokens, c.d]) -> [tokens, c.d] {\n"
          "  let h = x  for l in ls { h = l(h) + l.half(h) }  return m(h) }\n"
          "entry plain(x: [tokens, c.d]) -> [tokens, c.d] {\n"
          "  let h = x  for l in ls { h = l.half(h) * l.w + l.half(h) }  return m.p(m.p(h)) }",
          "module Low(n: dim) { param w: [n]  forward(x: [tokens, n]) -> [tokens, n] { return half(x) * w }\n"
          "  entry half(x: [tokens, n]) -> [tokens, n] { return x / 2 } }\n"
          "module Mid(n: dim) { p: Linear(n, n)  forward(x: [tokens, n]) -> [tokens, n] { return go(go(x)) }\n"
          "  entry go(x: [tokens, n]) -> [tokens, n] { return p(x) } }"));
  CHECK(r("forward", {{"x", x}}) == r("plain", {{"x", x}}));
}

TEST_CASE("own functions that call themselves, lack arguments, are not called") {
  const auto codes = [](std::string_view members) { return Model(one(members)).config(R"({"d": 4})").codes(); };
  const std::string again = codes("forward(x: [tokens, c.d]) -> [tokens, c.d] { return forward(x) }");
  CHECK(again == "E0355");
  CHECK(codes("forward(x: [tokens, c.d]) -> [tokens, c.d] { return a(x) }\n"
              "entry a(x: [tokens, c.d]) -> [tokens, c.d] { return forward(x) }")
            .find(again) == 0);
  CHECK(codes("forward(x: [tokens, c.d]) { return e() }  entry e(x: [tokens, c.d]) { return x }") == "E0313");
  CHECK(codes("forward(x: [tokens, c.d]) { return e(x, x) }  entry e(x: [tokens, c.d]) { return x }") == "E0313");
  CHECK(codes("forward(x: [tokens, c.d]) { return e(x[.., 0]) }  entry e(x: [tokens, c.d]) { return x }") == "E0350");
  CHECK(codes("forward(x: [tokens, c.d]) { return e + x }  entry e(x: [tokens, c.d]) { return x }") == "E0307");
  CHECK(codes("m: M(c.d)  forward(x: [tokens, c.d]) { return m.e + m(x) }").find("E0") == 0);
}

TEST_CASE("unlike leaves in one loop are functions, and the loop chooses") {
  const std::string text =
      one("ps: [Linear(c.d, c.d), RMSNorm(c.d, eps: 1e-5), Linear(c.d, c.d, has_bias: true)]  q: Linear(c.d, c.d)\n"
          "forward(x: [tokens, c.d]) -> [tokens, c.d] { let h = q(x)  for p in ps { h = p(h) + h }  return q(h) }\n"
          "entry plain(x: [tokens, c.d]) -> [tokens, c.d] {\n"
          "  let a = q(x)  let b = ps[0](a) + a  let d = ps[1](b) + b  return q(ps[2](d) + d) }");
  Running r(text);
  CHECK(r("forward", {{"x", x}}) == r("plain", {{"x", x}}));
  CHECK(has(r.model.part("M.forward"), "call \"\".forward"));
  // Called at two ranks, too.
  Running two(
      one("ps: [Linear(c.d, c.d), RMSNorm(c.d, eps: 1e-5)]\n"
          "forward(x: [tokens, c.d]) -> [tokens, c.d] { let h = x  let g = ps[1](x[0, ..])\n"
          "  for p in ps { h = p(h)  g = p(g) }  return h + g }\n"
          "entry plain(x: [tokens, c.d]) -> [tokens, c.d] {\n"
          "  let g = ps[1](x[0, ..])  return ps[1](ps[0](x)) + ps[1](ps[0](g)) }"));
  // Modules with functions, one of which was called at another rank before.
  Running functions(
      one("ps: [GatedMLP(c.d, 6), GatedMLP(c.d, 8)]\n"
          "forward(x: [tokens, c.d]) -> [tokens, c.d] { let g = ps[1](x[0, ..])  let h = x\n"
          "  for p in ps { h = p(h) }  return h + g }\n"
          "entry plain(x: [tokens, c.d]) -> [tokens, c.d] { return ps[1](ps[0](x)) + ps[1](x[0, ..]) }"));
  CHECK(functions("forward", {{"x", x}}) == functions("plain", {{"x", x}}));
  const Array square = array({4, 4}, numbers(16, "square"));
  CHECK(two("forward", {{"x", square}}) == two("plain", {{"x", square}}));
}

TEST_CASE("a loop whose text reads or chooses by the element is written out") {
  Running r(
      one("ls: [L(c.d, i) for i in 0..5]  a: Linear(c.d, c.d)  b: Linear(c.d, c.d)\n"
          "forward(x: [tokens, c.d]) -> [tokens, c.d] {\n"
          "  let h = x  let n = x\n"
          "  for l in ls { h = l.p(h) * (b(n) if l.odd else a(n)) * l.k\n    n = n + l.w[0] }\n"
          "  return h + n }\n"
          "entry plain(x: [tokens, c.d]) -> [tokens, c.d] {\n"
          "  let h1 = ls[0].p(x) * a(x) * 0  let n1 = x + ls[0].w[0]\n"
          "  let h2 = ls[1].p(h1) * b(n1) * 3  let n2 = n1 + ls[1].w[0]\n"
          "  let h3 = ls[2].p(h2) * a(n2) * 6  let n3 = n2 + ls[2].w[0]\n"
          "  let h4 = ls[3].p(h3) * b(n3) * 9  let n4 = n3 + ls[3].w[0]\n"
          "  let h5 = ls[4].p(h4) * a(n4) * 12  let n5 = n4 + ls[4].w[0]  return h5 + n5 }",
          "module L(n: dim, i: int) { let odd = i % 2 == 1  let k = 3 * i  p: Linear(n, n)  param w: [i + 1, n]\n"
          "  forward(x: [tokens, n]) -> [tokens, n] { return p(x) * k + w[0] if odd else p(x) - w[0] } }"));
  CHECK(r("forward", {{"x", x}}) == r("plain", {{"x", x}}));
  CHECK_FALSE(has(r.model.part("M.forward"), "repeat"));
  // A let that nothing but others read makes a class of its own.
  Running lets(
      one("a: Q(c.d, 2)  b: Q(c.d, 5)  ls: [Q(c.d, i) for i in 0..3]\n"
          "forward(x: [tokens, c.d]) -> [tokens, c.d] {\n"
          "  let h = a(x) * a.k + b(x) * b.k  for l in ls { h = h + l.k }  return h }\n"
          "entry plain(x: [tokens, c.d]) -> [tokens, c.d] { return a(x) * 4 + b(x) * 10 + 0 + 2 + 4 }",
          "module Q(n: dim, i: int) { let k = 2 * i  p: Linear(n, n)\n"
          "  forward(x: [tokens, n]) -> [tokens, n] { return p(x) } }"));
  CHECK(lets("forward", {{"x", x}}) == lets("plain", {{"x", x}}));
  // Still a fold: what it carries keeps its type in each of them.
  Model wrong(one("ls: [A(c.d), B(c.d)]  forward(x: [tokens, c.d]) { let h = x  for l in ls { h = l.w * h }  return h }",
                  "module A(n: dim) { param w: [n]  forward(x: [n]) { return x } }\n"
                  "module B(n: dim) { param w: [n, 1, n]  forward(x: [n]) { return x } }"));
  CHECK(wrong.config(R"({"d": 4})").codes() == "E0352");
}

TEST_CASE("unlike children of a loop's elements") {
  Running r(
      one("ls: [A(c.d), B(c.d)]\n"
          "forward(x: [tokens, c.d]) -> [tokens, c.d] { let h = x  for l in ls { h = l.f(l(h)) }  return h }\n"
          "entry plain(x: [tokens, c.d]) -> [tokens, c.d] {\n"
          "  let a = ls[0](x)  let b = ls[0].f(a)  let e = ls[1](b)  return ls[1].f(e) }",
          "module A(n: dim) { f: Linear(n, n)  forward(x: [tokens, n]) -> [tokens, n] { return f(x) } }\n"
          "module B(n: dim) { f: LayerNorm(n, eps: 1e-5)\n"
          "  forward(x: [tokens, n]) -> [tokens, n] { return x - f(x) } }"));
  CHECK(r("forward", {{"x", x}}) == r("plain", {{"x", x}}));
}

TEST_CASE("declared axes, and sizes derived from them") {
  Running r(
      one("w: Conv1d(c.d, 6, kernel: 3, stride: 2, padding: 1)\n"
          "forward(x: [batch, c.d, frames]) { return transpose(w(x), 1, 2)[.., 0] }",
          "import nn.conv\naxis frames: 2..10 by 2"));
  CHECK(has(r.model.part("M.forward"), "f32[batch, 6, div(frames + 1, 2)]"));
  for (const std::int64_t n : {2, 6, 10}) CHECK(r("forward", {{"x", array({1, 4, n}, numbers(4 * n, "f"))}}).size() == 6);
  for (const std::int64_t n : {0, 5, 12})
    CHECK(r.error("forward", {{"x", array({1, 4, n}, numbers(4 * n, "f"))}}) ==
          "x makes frames " + std::to_string(n) + ", wanted 2..10 by 2");
}

TEST_CASE("entries with several named results, and one that shares the states of another") {
  Running r(
      one("s: Store(c.d)\n"
          "forward(x: [tokens, c.d], at: Batch) -> [outputs, c.d] { return take(s(x, at), at.outputs) }\n"
          "entry tell(source: [batch, 2, c.d], at: Sequences) -> (sum: [batch, c.d], source: [batch, 2, c.d]) {\n"
          "  s.remember(source, at)  return sum(source, axis: 1), source }",
          "module Store(n: dim) { state m: CrossCache(2, 1, n)\n"
          "  entry remember(y: [batch, 2, n], at: Sequences) {\n"
          "    m.set(y as [batch, 2, 1, n], y as [batch, 2, 1, n], at) }\n"
          "  forward(x: [tokens, n], at: Batch) -> [tokens, n] {\n"
          "    return attend(x as [tokens, 1, n], m, at, mask: \"full\", scale: 1) as [tokens, n] } }"));
  const Array source = array({2, 2, 4}, numbers(16, "s"));
  const auto told = r.evaluator.run("tell", {{"source", source}, {"at", r.evaluator.sequences({5, 2})}});
  REQUIRE(told.ok());
  REQUIRE(told->size() == 2);
  CHECK((*told)[0].name == "sum");
  CHECK((*told)[1].name == "source");
  CHECK((*told)[1].value.reals == numbers(16, "s"));
  const auto batch = r.evaluator.batch({{2, 1}, {5, 2}}, Outputs::last);
  const auto both = r("forward", {{"x", x}, {"at", *batch}});
  CHECK(both.size() == 8);
  // Each sequence sees its own memory: set the other way round, both results differ.
  r.evaluator.reset(5);
  r.evaluator.reset(2);
  REQUIRE(r.evaluator.run("tell", {{"source", source}, {"at", r.evaluator.sequences({2, 5})}}).ok());
  const auto swapped = r("forward", {{"x", x}, {"at", *r.evaluator.batch({{2, 1}, {5, 2}}, Outputs::last)}});
  for (const std::size_t row : {0, 4})
    CHECK(std::vector<float>(both.begin() + row, both.begin() + row + 4) !=
          std::vector<float>(swapped.begin() + row, swapped.begin() + row + 4));
  CHECK(r.error("tell", {{"source", source}}) == "the input at is missing");
  CHECK(r.error("tell", {{"source", source}, {"at", *batch}}) == "at must be a Sequences, not a Batch");
  CHECK(r.error("nothing", {}) == "M has no function nothing");
}

TEST_CASE("what a CrossCache is given is checked in its own words") {
  const auto said = [](std::string_view body, std::string_view inputs) {
    Model m(one("state m: CrossCache(2, 1, c.d)  entry e(" + std::string(inputs) + ") { " + std::string(body) +
                " }  forward(x: [tokens, c.d]) { return x }"));
    return m.config(R"({"d": 4})").messages();
  };
  const char* inputs = "y: [batch, 2, 1, c.d], z: [batch, 3, 1, c.d], x: [tokens, 1, c.d], at: Sequences, all: Batch";
  CHECK(said("m.set(y, y, at)", inputs).empty());
  CHECK(has(said("m.set(y, z, at)", inputs), "set: axis 1 of v is 3, the cache's rows are 2"));
  CHECK(has(said("m.set(y, y, all)", inputs), "set: at is Batch, not a Sequences"));
  CHECK(has(said("m.set(y, y)", inputs), "`m.set` lacks `at` here"));
  CHECK(has(said("m.append(y, y, at)", inputs), "a CrossCache has no function `append`"));
  CHECK(has(said("m.append(y, y, at)", inputs), "it is written by `m.set(…)`"));
  CHECK(has(said("let y2 = attend(x, m, all, mask: \"causal\", scale: 1)", inputs), "mask must be \"full\""));
  CHECK(has(said("let p = at.positions", inputs), "a Sequences says only which sequences"));
}

TEST_CASE("a ragged batch for an encoder without state: attention within each sequence") {
  Running r(
      one("p: Linear(c.d, c.d)\n"
          "forward(x: [tokens, c.d], at: Batch) -> [batch, c.d] {\n"
          "  let h = p(x) as [tokens, 1, c.d]\n"
          "  return take(attend(h, h, h, at, mask: \"full\", scale: 0.5) as [tokens, c.d], at.last) }"));
  const auto rows = [](std::size_t from, std::size_t to) {
    return array({static_cast<std::int64_t>(to - from), 4},
                 {x.reals.begin() + static_cast<std::ptrdiff_t>(4 * from), x.reals.begin() + static_cast<std::ptrdiff_t>(4 * to)});
  };
  std::vector<float> alone = r("forward", {{"x", rows(0, 2)}, {"at", *r.evaluator.batch({{0, 2}}, Outputs::all)}});
  const auto second = r("forward", {{"x", rows(2, 3)}, {"at", *r.evaluator.batch({{0, 1}}, Outputs::all)}});
  alone.insert(alone.end(), second.begin(), second.end());
  CHECK(r("forward", {{"x", x}, {"at", *r.evaluator.batch({{3, 2}, {1, 1}}, Outputs::all)}}) == alone);
}

TEST_CASE("a window is of causal attention") {
  for (const char* mask : {"full", "causal"}) {
    const std::string text =
        std::string("return attend(x as [tokens, 1, c.d], s, at, mask: \"") + mask + "\", scale: 1, window: 2) as [tokens, c.d]";
    Model m(
        one("state s: KVCache(1, c.d)  forward(x: [tokens, c.d], at: Batch) -> [tokens, c.d] {\n"
            "s.append(x as [tokens, 1, c.d], x as [tokens, 1, c.d], at)  " +
            text + " }"));
    m.config(R"({"d": 4})");
    if (mask == std::string("causal")) CHECK(m.codes().empty());
    else CHECK(has(m.messages(), "a window needs mask \"causal\""));
  }
}

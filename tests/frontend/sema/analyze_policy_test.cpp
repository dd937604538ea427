// `policy` in the reference evaluator: values are rounded to its types, by module, where it is asked to follow it.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "frontend/graph/eval/evaluator.h"
#include "frontend/graph/printer.h"
#include "frontend/graph/reader.h"
#include "modules_support.h"

using namespace modelc;
using namespace modelc::sema::test;
namespace eval = modelc::graph::eval;

namespace {

// Whether every value is a bf16 (its low 16 bits are 0).
bool is_bf16(const std::vector<float>& v) {
  for (float x : v)
    if ((std::bit_cast<std::uint32_t>(x) & 0xffffu) != 0) return false;
  return true;
}

std::map<std::string, std::vector<float>> values(std::string_view policy, bool follow = true) {
  Model m(around(
      "d: dim",
      "layers: [Block(c.d) for i in 0..2]  last: Linear(c.d, c.d)\n"
      "forward(x: [tokens, c.d], at: Batch) -> out: [tokens, c.d] { let h = x  for l in layers { h = l(h, at) }  return last(h) }\n" +
          std::string(policy),
      "module Block(n: dim) { norm: RMSNorm(n, eps: 1e-5)  p: Linear(n, n)  state cache: KVCache(1, n)\n"
      "forward(x: [tokens, n], at: Batch) -> [tokens, n] { let q = p(norm(x))  let k = q as [tokens, 1, n]  cache.append(k, k, at)\n"
      "let y = attend(k, cache, at, mask: \"causal\", scale: 1.0) as [tokens, n]  let sum = x + q + y  return sum } }"));
  m.config(R"({"d": 4})");
  const auto& program = m.program();
  INFO(m.messages());
  REQUIRE(program.has_value());
  eval::Evaluator e(program->graph, [](const std::string& name, const graph::WeightDecl& decl) -> std::optional<std::vector<float>> {
    std::vector<float> v(decl.type.shape.size() == 1 ? 4 : 16);
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = 0.3F * std::sin(static_cast<float>(i * 7 + name.size()));
    return v;
  });
  if (follow) e.set_precision(graph::precision_of(program->graph));
  std::map<std::string, std::vector<float>> seen;
  e.set_trace([&](const std::string& path, const eval::Array& a) { seen[path] = a.reals; });
  auto batch = e.batch({{.slot = 0, .tokens = 3}}, eval::Outputs::all);
  REQUIRE(batch.ok());
  std::vector<float> x(12);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<float>(i)) / 3;
  auto out = e.run("forward", {{"x", eval::array({3, 4}, x)}, {"at", *batch}});
  if (!out) FAIL(out.error().text());
  seen["out"] = out->front().value.reals;
  return seen;
}

}  // namespace

TEST_CASE("compute rounds activations; without being asked all is f32") {
  const auto none = values("");
  const auto exact = values("policy { compute: bf16 }", false);
  CHECK(exact.at("out") == none.at("out"));
  CHECK_FALSE(is_bf16(none.at("layers.0.q")));
  const auto bf16 = values("policy { compute: bf16 }");
  CHECK(is_bf16(bf16.at("layers.0.q")));
  CHECK(is_bf16(bf16.at("layers.1.norm")));
  CHECK(is_bf16(bf16.at("out")));
  CHECK(bf16.at("out") != none.at("out"));
}

TEST_CASE("a module by path has its own type; the last line that matches counts") {
  const auto mixed = values("policy { compute: bf16  **.norm: f32 }");
  CHECK_FALSE(is_bf16(mixed.at("layers.0.norm")));
  CHECK(is_bf16(mixed.at("layers.0.q")));
  const auto again = values("policy { compute: bf16  **.norm: f32  layers.1.norm: bf16 }");
  CHECK_FALSE(is_bf16(again.at("layers.0.norm")));
  CHECK(is_bf16(again.at("layers.1.norm")));
}

TEST_CASE("residual: what a loop carries, and what is added to it, keeps its own type") {
  const auto wide = values("policy { compute: bf16  residual: f32 }");
  CHECK_FALSE(is_bf16(wide.at("layers.1.sum")));
  CHECK(is_bf16(wide.at("layers.1.q")));
  const auto narrow = values("policy { compute: bf16  residual: bf16 }");
  CHECK(is_bf16(narrow.at("layers.1.sum")));
}

TEST_CASE("cache: what is appended is rounded, and read so") {
  const auto none = values(""), cached = values("policy { cache: f16 }");
  CHECK(cached.at("layers.0.q") == none.at("layers.0.q"));
  CHECK(cached.at("layers.0.y") != none.at("layers.0.y"));
}

namespace {

// What `text` makes of x under compute: bf16.
std::vector<float> under_bf16(const std::string& text, const std::string& declared = "[tokens, 4]") {
  Model m(around("d: dim",
                 "outer: Outer(c.d)  leaf: Leaf(c.d)  wide: Wide(c.d)\nforward(x: [tokens, 4], at: Batch) -> out: " + declared + " { " +
                     text + " }\npolicy { compute: bf16 }",
                 "module Outer(n: dim) { i: Inner(n)  forward(x: [..., n]) -> [..., n] { return i(x) * 1.1 } }\n"
                 "module Inner(n: dim) { k: Leaf(n)  forward(x: [..., n]) -> [..., n] { return k(x) } }\n"
                 "module Leaf(n: dim) { forward(x: [..., n]) -> [..., n] { let u = x as f32  return u * 1.1 } }\n"
                 "module Wide(n: dim) { k: Leaf(n)  forward(x: [..., n]) -> f32[..., n] { return k(x) as f32 * 1.1 } }\n"
                 "op plain(x: [..., n]) -> [..., n] { reference { let y = x * 1.1  return y * 1.1 } }\n"
                 "op kept(x: f32[..., n]) -> [..., n] { reference { let y = x * 1.1  return y * 1.1 } }\n"
                 "op gives(x: [..., n]) -> f32[..., n] { reference { return x * 1.1 } }"));
  m.config(R"({"d": 4})");
  INFO(m.messages());
  const auto& program = m.program();
  REQUIRE(program.has_value());
  const auto read = graph::read(graph::print(program->graph));         // the graph's text keeps it
  REQUIRE(read);
  eval::Evaluator e(*read, [](const std::string&, const graph::WeightDecl&) { return std::nullopt; });
  e.set_precision(graph::precision_of(*read));
  auto batch = e.batch({{.slot = 0, .tokens = 1}}, eval::Outputs::all);
  REQUIRE(batch.ok());
  auto out = e.run("forward", {{"x", eval::array({1, 4}, {0.5F, 0.25F, 3.0F, 7.0F})}, {"at", *batch}});
  if (!out) FAIL(out.error().text());
  return out->front().value.reals;
}

}  // namespace

TEST_CASE("an input and a param that declare f32 are kept, and what is computed from them") {
  const auto by_weight = [](const std::string& param, const std::string& input, const std::string& text) {
    const std::string forward = "forward(x: " + input + "[tokens, 4], at: Batch) -> out: f32[tokens, 4] { " + text + " }";
    Model m(around("d: dim", "k: Leaf(c.d)\n" + forward + "\npolicy { compute: bf16 }",
                   "module Leaf(n: dim) { param w: " + param + "[n] = 1.1  forward(x: [..., n]) -> f32[..., n] { return x * w } }"));
    m.config(R"({"d": 4})");
    INFO(m.messages());
    const auto& program = m.program();
    REQUIRE(program.has_value());
    eval::Evaluator e(program->graph, [](const std::string&, const graph::WeightDecl&) { return std::nullopt; });
    e.set_precision(graph::precision_of(program->graph));
    auto batch = e.batch({{.slot = 0, .tokens = 1}}, eval::Outputs::all);
    REQUIRE(batch.ok());
    auto out = e.run("forward", {{"x", eval::array({1, 4}, {0.5F, 0.25F, 3.0F, 7.0F})}, {"at", *batch}});
    if (!out) FAIL(out.error().text());
    return is_bf16(out->front().value.reals);
  };
  CHECK(by_weight("", "", "return k(x)"));
  CHECK_FALSE(by_weight("f32", "", "return k(x)"));
  CHECK(by_weight("", "", "return x * 1.1"));
  CHECK_FALSE(by_weight("", "f32", "return x * 1.1"));
  CHECK_FALSE(by_weight("", "f32", "return k(x)"));
}

TEST_CASE("`as f32` is kept under a policy, up to the end of its module or a cast back") {
  const auto times = [](float by, bool round) {
    std::vector<float> out = {0.5F, 0.25F, 3.0F, 7.0F};
    for (float& v : out) v = round ? eval::round_to(DType::bf16, v * by) : v * by;
    return out;
  };
  const auto exact = times(1.1F, false), narrow = times(1.1F, true);
  REQUIRE(exact != narrow);
  const std::string others = "let a = outer(x)  let b = leaf(x)  let w = wide(x) ";
  CHECK(under_bf16(others + "return x * 1.1") == narrow);
  // What is computed from it goes on in f32; the function's result is of its declared type.
  CHECK(under_bf16(others + "return x as f32 * 1.1") == narrow);
  CHECK(under_bf16(others + "return x as f32 * 1.1", "f32[tokens, 4]") == exact);
  CHECK(under_bf16(others + "let y = x * 1.1  return y as f32", "f32[tokens, 4]") == narrow);   // rounded before
  CHECK(under_bf16(others + "return (x as f32 * 1.1) as bf16 as f32", "f32[tokens, 4]") == narrow);
  // A module's result is rounded where it declares no type, whether it is expanded in place or called.
  CHECK(under_bf16(others + "return b", "f32[tokens, 4]") == narrow);
  CHECK(under_bf16(others + "return a") == under_bf16(others + "return b * 1.1"));
  // One that declares f32 keeps it: 1.1 times what the leaf rounded.
  std::vector<float> wide = narrow;
  for (float& v : wide) v *= 1.1F;
  CHECK(under_bf16(others + "return w", "f32[tokens, 4]") == wide);
  // An operation's text is the module's own, but for what it declares: its input, or its result once that is made.
  std::vector<float> rounded_twice = narrow, never_rounded = exact;
  for (float& v : rounded_twice) v = eval::round_to(DType::bf16, v * 1.1F);
  for (float& v : never_rounded) v *= 1.1F;
  CHECK(under_bf16(others + "return plain(x)", "f32[tokens, 4]") == rounded_twice);
  CHECK(under_bf16(others + "return kept(x)", "f32[tokens, 4]") == never_rounded);
  CHECK(under_bf16(others + "return kept(x)") != never_rounded);
  CHECK(under_bf16(others + "return gives(x) * 1.1", "f32[tokens, 4]") == wide);
}

// `policy` in the reference evaluator: values are rounded to its types, by module, where it is asked to follow it.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "frontend/graph/eval/evaluator.h"
#include "frontend/sema/sections.h"
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
  Model m(around("d: dim",
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
  if (follow) e.set_precision(sema::precision_of(program->graph));
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

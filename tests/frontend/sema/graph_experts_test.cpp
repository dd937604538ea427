// Mixture of experts in the language: route, moe and the fn between its products, the library's modules.
#include <doctest/doctest.h>

#include "modules_support.h"

using namespace modelc::sema::test;

namespace {

constexpr std::string_view inputs = "x: [tokens, 6], e: index(3)[tokens, 2], p: f32[tokens, 2]";
constexpr std::string_view weights = "param g: [3, 4, 6]  param d: [3, 6, 4]  ";

// moe with this fn, in a model that has a number and a weight around it.
Model with(const std::string& gated) {
  Model m(around("limit: float",
                 std::string(weights) + "param w: [4]  let read = c.limit  forward(" + std::string(inputs) +
                     ") { let used = w  return moe(x, e, p, g, g, d, gated: " + gated + ") + sum(used) }",
                 "fn swiglu(a, b) = silu(a) * b"));
  m.config(R"({"limit": 7.0})");
  return m;
}

}  // namespace

TEST_CASE("route: k stands second; what is chosen is an index below the number of scores") {
  Model m(around("k: dim",
                 "param b: [8]  forward(s: f32[tokens, 8]) { let (i, w) = route(s, c.k, bias: b, groups: 4, keep_groups: 2, "
                 "group_score: \"top2_sum\", renormalize: true, scale: 2.5)  return w * take(b, i) }"));
  m.config(R"({"k": 2})");
  CHECK(has(m.part("M"),
            "%i: index(8)[tokens, 2], %w: f32[tokens, 2] = route(%s, %1; group_score: \"top2_sum\", groups: 4, "
            "k: 2, keep_groups: 2, renormalize: true, scale: 2.5)"));
  const auto codes = [](std::string_view call) {
    return Model(around("k: dim", "forward(s: f32[tokens, 8]) { let (i, w) = " + std::string(call) + "  return w }"))
        .config(R"({"k": 2})")
        .codes();
  };
  CHECK(codes("route(s, c.k, renormalize: false)") == "");
  CHECK(codes("route(s, c.k)") == "E0313");                                     // renormalize is never guessed
  CHECK(codes("route(s, 9 * c.k, renormalize: false)") == "E0349");
  CHECK(codes("route(s, 2.5 * c.k, renormalize: false)") == "E0314");
}

TEST_CASE("moe: the fn becomes a body, numbers of the configuration in it") {
  Model m = with("fn(a, b) = min(a, c.limit) * sigmoid(b)");
  const std::string text = m.part("M");
  CHECK(has(text, "= moe(%x, %e, %p, "));
  CHECK(has(text, "carry %"));
  CHECK(has(text, "literal(value: 7.0)"));
  CHECK(has(text, "= sigmoid("));
  Model library = with("swiglu");
  CHECK(has(library.part("M"), "= silu("));
}

TEST_CASE("moe: a fn that does more than stand between the products is refused") {
  CHECK(with("fn(a, b) = a * softmax(b)").codes() == "E0307");
  CHECK(with("fn(a, b) = a * b * w").codes() == "E0307");
  CHECK(with("fn(a, b) = w").codes() == "E0349");
  CHECK(with("fn(a, b) = 1").codes() == "E0349");
  CHECK(with("fn(a) = a").codes() == "E0313");
  CHECK(with("3").codes() == "E0314");
  Model m = with("fn(a, b) = a * softmax(b)");
  CHECK(has(m.messages(), "no `softmax`"));
}

TEST_CASE("the library's routers: each chooses and weighs as its twin does") {
  const auto graph = [](const std::string& router) {
    Model m("import nn.moe\nconfig C { d: dim }\nmodel M(c: C) { r: " + router +
            "  forward(x: [tokens, c.d]) -> (i: index(8)[tokens, 2], w: f32[tokens, 2]) { return r(x) } }");
    m.config(R"({"d": 6})");
    return m.part("M");
  };
  std::string text = graph("SoftmaxRouter(c.d, 8, 2, renormalize: true)");
  CHECK(has(text, "= softmax("));
  CHECK(has(text, "k: 2, renormalize: true"));
  text = graph("TopKRouter(c.d, 8, 2, has_bias: true)");
  CHECK(text.find("= route(") < text.find("= softmax("));
  text = graph("GroupRouter(c.d, 8, 2, groups: 4, keep_groups: 2, renormalize: true, scale: 2.5)");
  CHECK(has(text, "= sigmoid("));
  CHECK(has(text, "group_score: \"top2_sum\""));
}

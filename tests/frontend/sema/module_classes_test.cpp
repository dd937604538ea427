// Which instances share a class.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "modules_support.h"

using namespace modelc;
using namespace modelc::sema::test;

namespace {

std::string llama(int layers) {
  return R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48,
             "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
             "rope_theta": 10000.0, "hidden_act": "silu", "num_hidden_layers": )" +
         std::to_string(layers) + "}";
}

std::string llama_text() {
  const std::string text = text_of_file(MODELC_SOURCE_DIR "/examples/llama/llama.model");
  return text.substr(text.find("language 1") + 10);
}

std::size_t ops(const graph::Module& module) {
  std::size_t n = 0;
  for (const graph::Class& c : module.classes) {
    for (const graph::Function& f : c.functions) {
      n += f.body.ops.size();
      for (const graph::Op& op : f.body.ops) n += op.body ? op.body->ops.size() : 0;
    }
  }
  return n;
}

}  // namespace

TEST_CASE("2 layers and 126 give the same classes and operations") {
  Model two(llama_text()), many(llama_text());
  const auto& a = two.config(llama(2)).good().graph;
  const auto& b = many.config(llama(126)).good().graph;
  CHECK(a.classes.size() == b.classes.size());
  CHECK(ops(a) == ops(b));
  CHECK(graph::weight_instances(b).size() - graph::weight_instances(a).size() == 124 * 10);
}

TEST_CASE("a stack of 1,024 layers takes a moment, not the time of 1,024 bodies") {
  Model m(llama_text());
  m.config(llama(1024));
  const auto start = std::chrono::steady_clock::now();
  m.good();
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(3));
}

TEST_CASE("a position alone makes no class; what depends on it does") {
  const std::string before =
      "module Layer(c: C, i: int) { let wide = i % 3 == 0\n p: Linear(c.d, 2 * c.d if wide else c.d)\n"
      " forward(x: [tokens, c.d]) -> [tokens, c.d] { return p(x)[.., 0..c.d] } }\n"
      "module Scaled(c: C, i: int) { p: Linear(c.d, c.d)  forward(x: [tokens, c.d]) -> [tokens, c.d] { return p(x) * "
      "float(i + 2) } }\n";
  Model layers(around("d: dim",
                      "layers: [Layer(c, i) for i in 0..7]  forward(x: [tokens, c.d]) { let h = x  for l in layers { h "
                      "= l(h) }  return h }",
                      before));
  CHECK(has(layers.config(R"({"d": 4})").part("M"), "children layers: [Layer, Layer_2 * 2, Layer, Layer_2 * 2, Layer]"));
  Model scaled(around("d: dim",
                      "layers: [Scaled(c, i) for i in 0..3]  forward(x: [tokens, c.d]) { let h = x  for l in layers { "
                      "h = l(h) }  return h }",
                      before));
  CHECK(has(scaled.config(R"({"d": 4})").part("M"), "children layers: [Scaled, Scaled_2, Scaled_3]"));
}

TEST_CASE("classes are named by their definition and a number, and stand before those that contain them") {
  Model m(around("d: dim",
                 "a: Linear(c.d, c.d)  b: Linear(c.d, 2 * c.d)  Linear_2: Linear(2 * c.d, c.d)\n"
                 "forward(x: [tokens, c.d]) { return Linear_2(b(a(x))) }"));
  const auto& graph = m.config(R"({"d": 4})").good().graph;
  REQUIRE(graph.classes.size() == 4);
  CHECK(graph.classes[0].name == "Linear");
  CHECK(graph.classes[1].name == "Linear_2");
  CHECK(graph.classes[2].name == "Linear_3");
  CHECK(graph.classes[3].name == "M");
  CHECK(graph.root.index == 3);
  CHECK(graph.classes[0].leaf);
  CHECK_FALSE(graph.classes[3].leaf);
  CHECK(graph.classes[1].arguments == "in_dim: 4, out_dim: 8, has_bias: false");
}

TEST_CASE("weights of equal sizes and other formulas keep their own formula") {
  Model m(around("d: dim  vocab: dim", "a: Linear(c.d, c.vocab)  b: Linear(c.vocab, c.d)\nforward(x: [tokens, c.d]) { return b(a(x)) }"));
  m.config(R"({"d": 4, "vocab": 4})");
  CHECK(has(m.part("Linear"), "shape \"[vocab, d]\""));
  CHECK(has(m.part("Linear_2"), "shape \"[d, vocab]\""));
}

TEST_CASE("sizes from a list of the configuration make one class for each size") {
  Model m(around("d: dim  sizes: list[dim]",
                 "layers: [A(c.d, c.sizes[i]) for i in 0..len(c.sizes)]\n"
                 "forward(x: [tokens, c.d]) { let h = x  for l in layers { h = l(h) }  return h }",
                 "module A(n: dim, inner: dim) { up: Linear(n, inner)  down: Linear(inner, n)  forward(x: [tokens, n]) "
                 "-> [tokens, n] { return down(up(x)) } }"));
  m.config(R"({"d": 4, "sizes": [8, 8, 6, 8]})");
  CHECK(has(m.part("M"), "[A * 2, A_2, A]"));
}

// What the passes do to a real layer, and what the plan's verifier finds.
#include <doctest/doctest.h>

#include "codegen/lower/lower.h"
#include "codegen/plan/printer.h"
#include "codegen/plan/verifier.h"
#include "codegen/plan/walk.h"
#include "tests/codegen/support.h"

using namespace modelc;

namespace {

const plan::Class& class_named(const plan::Program& p, const std::string& name) {
  for (const plan::Class& c : p.classes)
    if (c.source->name == name) return c;
  FAIL("no class " << name);
  return p.classes[0];
}

const plan::Function& forward_of(const plan::Class& c) {
  for (const plan::Function& f : c.functions)
    if (f.name == "forward") return f;
  FAIL("no forward");
  return c.functions[0];
}

std::string kinds(const std::vector<plan::Step>& steps) {
  std::string s;
  for (const plan::Step& x : steps) s += (s.empty() ? "" : " ") + std::string(plan::kind_name(x.kind));
  return s;
}

plan::Program lowered(const std::string& changes = "{}") {
  lower::Lowered l = lower::lower(test::llama_graph(changes));
  for (const lower::Failure& f : l.failures) FAIL_CHECK(f.message);
  return std::move(l.program);
}

}  // namespace

TEST_CASE("q, k and v are one product, gate and up one with its elementwise, residual and norm one kernel") {
  const plan::Program p = lowered();
  const plan::Class& attention = class_named(p, "LlamaAttention");
  CHECK(kinds(forward_of(attention).steps) == "linear rope rope append attend linear");
  REQUIRE(attention.packs.size() == 2);
  CHECK(attention.packs[0].weights == std::vector<std::string>{"q_proj.weight", "k_proj.weight", "v_proj.weight"});
  CHECK(attention.packs[0].name == "qkv_proj");
  CHECK(kinds(forward_of(class_named(p, "GatedMLP")).steps) == "linear_map linear");
  CHECK(kinds(forward_of(class_named(p, "LlamaLayer")).steps) == "rms_norm call add_rms_norm call map");
  CHECK(kinds(forward_of(class_named(p, "LlamaBackbone")).steps) == "take repeat rms_norm");
}

TEST_CASE("the tables of rope are computed once a step, and once for q and k") {
  const plan::Program p = lowered();
  const plan::Class& attention = class_named(p, "LlamaAttention");
  REQUIRE(attention.step_values.size() == 2);
  CHECK(attention.step_values[0].name == "rope_cos");
  CHECK(attention.step_values[1].name == "rope_sin");
}

TEST_CASE("the plan has the same steps for 2 and for 126 layers") {
  const plan::Program few = lowered(R"({"num_hidden_layers": 2})"), many = lowered(R"({"num_hidden_layers": 126})");
  CHECK(plan::print(few) == plan::print(many));
}

TEST_CASE("biases go with their products") {
  const plan::Program p = lowered(R"({"attention_bias": true})");
  const plan::Class& attention = class_named(p, "LlamaAttention");
  CHECK(attention.packs[0].biases == std::vector<std::string>{"q_proj.bias", "k_proj.bias", "v_proj.bias"});
}

TEST_CASE("an operation without a kernel is named, with its place") {
  const auto module = test::graph_of(
      "language 1\nimport nn.linear\nconfig C { vocab_size, size: dim }\n"
      "model M(c: C) {\n  embed: Linear(c.size, c.size)\n  param table: [c.vocab_size, c.size]\n"
      "  forward(ids: index(c.vocab_size)[tokens], at: Batch) -> logits: f32[outputs, c.size] {\n"
      "    return einsum(\"ij,ij->ij\", embed(take(take(table, ids), at.outputs)), take(take(table, ids), at.outputs))\n  }\n}\n",
      R"({"vocab_size": 8, "size": 4})");
  const lower::Lowered l = lower::lower(module);
  REQUIRE(l.failures.size() == 1);
  CHECK(l.failures[0].message.find("`einsum`") != std::string::npos);
  CHECK(l.failures[0].where.line == 8);
}

TEST_CASE("the memory plan reuses what is dead, and the verifier finds what lives in one place at once") {
  plan::Program p = lowered();
  CHECK(plan::verify(p).empty());
  const plan::Function& layer = forward_of(class_named(p, "LlamaLayer"));
  graph::DimId sum = p.dims->constant(0);
  for (const plan::Buffer& b : layer.buffers)
    if (b.kind == plan::BufferKind::frame) sum = p.dims->add(sum, b.bytes);
  std::vector<std::int64_t> sizes(p.dims->axes().size(), 100);
  CHECK(*p.dims->evaluate(layer.frame_bytes, sizes) < *p.dims->evaluate(sum, sizes));

  // Each fault, planted and found.
  for (plan::Class& c : p.classes)
    for (plan::Function& f : c.functions) {
      if (c.source->name != "LlamaLayer") continue;
      const plan::Function good = f;
      for (plan::Buffer& b : f.buffers) b.offset = p.dims->constant(0);
      CHECK_FALSE(plan::verify(p).empty());
      f = good;
      f.frame_bytes = p.dims->constant(64);
      CHECK_FALSE(plan::verify(p).empty());
      f = good;
      f.steps.erase(f.steps.begin());
      CHECK_FALSE(plan::verify(p).empty());
      f = good;
      CHECK(plan::verify(p).empty());
    }
  p.classes.back().packs[0].weights[0] = "nothing.weight";
  CHECK_FALSE(plan::verify(p).empty());
}

TEST_CASE("a peak that does not depend on the number of layers") {
  const plan::Program few = lowered(R"({"num_hidden_layers": 1})"), many = lowered(R"({"num_hidden_layers": 80})");
  CHECK(few.dims->text(few.peak_bytes) == many.dims->text(many.peak_bytes));
}

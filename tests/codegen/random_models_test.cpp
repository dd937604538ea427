// Models composed at random from the standard library: built, compiled and run, they equal the reference evaluator.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>

#include "codegen/driver/host_compiler.h"
#include "codegen/driver/random_checkpoint.h"
#include "codegen/emit/emit.h"
#include "frontend/graph/eval/evaluator.h"
#include "frontend/graph/verifier.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/safetensors/writer.h"
#include "runtime/checkpoint/tensor_data.h"
#include "runtime/sampler/random.h"
#include "tests/codegen/support.h"

using namespace modelc;

namespace {

class Composer {
 public:
  explicit Composer(std::uint64_t seed) : random_(seed) {}

  std::string text() {
    const int head_dim = 2 * pick({3, 4, 8}), kv = pick({1, 2, 3}), group = pick({1, 2, 3}), size = pick({20, 24, 33});
    const int ff = pick({17, 32, 45});
    std::string s =
        "language 1\nimport nn.attention\nimport nn.embedding\nimport nn.linear\nimport nn.mlp\nimport nn.norm\nimport nn.rope\n"
        "import nn.transformer\n\nconfig RandomConfig { vocab_size: dim    layers: int in 1..100 }\n\n"
        "model Composed(c: RandomConfig) {\n    context 64\n";
    for (int kind = 0; kind < 2; ++kind) {
      s += fmt::format(
          "    fn layer{}() = DecoderLayer({}, norm: {},\n        mixer: Attention({}, {}, {}, {}, rotary: {}{}),\n"
          "        ff: GatedMLP({}, {}, act: \"{}\", has_bias: {}))\n",
          kind, size, norm(size), size, kv * group, kv, head_dim, rotary(head_dim), attention_options(head_dim), size, ff,
          word({"silu", "gelu", "gelu_pytorch_tanh", "relu"}), flag());
    }
    s += fmt::format("    model: Decoder(c.vocab_size, {}, blocks: [{} for i in 0..c.layers], final_norm: {}, scale: {})\n", size,
                     flip() ? "layer0() if i % 2 == 0 else layer1()" : "layer0()", norm(size), word({"1.0", "2.5"}));
    s += fmt::format(
        "    lm_head: Linear({}, c.vocab_size, has_bias: {})\n\n"
        "    forward(input_ids: index(c.vocab_size)[tokens], at: Batch) -> logits: f32[outputs, c.vocab_size] {{\n"
        "        let h = take(model(input_ids, at), at.outputs)\n        return {}\n    }}\n}}\n",
        size, flag(), flip() ? "softcap(lm_head(h), 3.0)" : "lm_head(h)");
    return s;
  }

 private:
  int pick(std::initializer_list<int> of) { return *(of.begin() + static_cast<std::ptrdiff_t>(random_.next() % of.size())); }
  std::string word(std::initializer_list<const char*> of) {
    return *(of.begin() + static_cast<std::ptrdiff_t>(random_.next() % of.size()));
  }
  bool flip() { return random_.next() % 2 == 0; }
  std::string flag() { return flip() ? "true" : "false"; }
  std::string norm(int size) {
    switch (random_.next() % 4) {
      case 0: return fmt::format("RMSNorm({}, eps: 1e-5)", size);
      case 1: return fmt::format("RMSNorm({}, eps: 1e-3, offset: 1.0, multiply: \"before_cast\")", size);
      case 2: return fmt::format("LayerNorm({}, eps: 1e-5, has_bias: {})", size, flag());
      default: return fmt::format("RMSNorm({}, eps: 1e-5, has_weight: false)", size);
    }
  }
  std::string rotary(int d) {
    if (random_.next() % 4 == 0) return "NoRope()";
    return fmt::format("RotaryEmbedding({}, theta: {}, pairs: \"{}\", max_positions: 64)", d, word({"10000.0", "500.0"}),
                       word({"halves", "adjacent"}));
  }
  std::string attention_options(int d) {
    std::string s;
    if (flip()) s += fmt::format(", window: {}", pick({1, 3, 7}));
    if (flip()) s += ", softcap: 1.5";
    if (flip()) s += ", has_sinks: true";
    if (flip()) s += fmt::format(", head_norm: RMSNorm({}, eps: 1e-5)", d);
    if (flip()) s += ", qkv_bias: true";
    if (flip()) s += ", out_bias: true";
    return s;
  }

  Random random_;
};

std::string run(std::vector<std::string> command) {
  std::string output;
  const auto status = driver::run_program(command, &output);
  REQUIRE(status.ok());
  return *status == 0 ? "" : fmt::format("status {}\n{}", *status, output);
}

void check(std::uint64_t seed, const std::string& text) {
  INFO("seed ", seed, "\n", text);
  const auto module = test::graph_of(text, fmt::format(R"({{"vocab_size": {}, "layers": {}}})", 29 + seed % 7, 2 + seed % 3));
  for (const std::string& fault : graph::verify(*module)) FAIL_CHECK(fault);

  auto folder = driver::TemporaryFolder::create(driver::temporary_parent(), "modelc-test-");
  REQUIRE(folder.ok());
  REQUIRE(driver::write_random_checkpoint(*module, seed, folder->path()).ok());
  auto opened = open_checkpoint(folder->path());
  REQUIRE(opened.ok());
  const auto index = std::make_shared<const CheckpointIndex>(std::move(*opened));
  CheckpointData data(index);

  // The reference, with every stage that has a name.
  graph::eval::Evaluator evaluator(*module, [&](const std::string& name, const graph::WeightDecl&) -> std::optional<std::vector<float>> {
    const TensorInfo* t = index->find(name);
    if (!t) return std::nullopt;
    auto values = data.read_f32(*t);
    REQUIRE(values.ok());
    return std::move(*values);
  });
  const std::int64_t vocabulary = 29 + static_cast<std::int64_t>(seed % 7), tokens = 13;
  SafetensorsWriter expected;
  std::map<std::string, std::vector<float>> stages;
  evaluator.set_trace([&](const std::string& path, const graph::eval::Array& value) {
    const bool module_result = path.ends_with(".self_attn") || path.ends_with(".mlp") || path == "model" || path.ends_with(".y");
    if (module_result && value.shape.size() >= 1 && value.shape[0] == tokens) stages[path] = value.reals;
  });
  std::vector<std::int64_t> ids;
  std::vector<std::int32_t> ids32;
  Random random(seed + 100);
  for (std::int64_t i = 0; i < tokens; ++i)
    ids.push_back(static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(vocabulary)));
  for (std::int64_t id : ids) ids32.push_back(static_cast<std::int32_t>(id));
  auto batch = evaluator.batch({{.slot = 0, .tokens = tokens}}, graph::eval::Outputs::all);
  REQUIRE(batch.ok());
  auto out = evaluator.run("forward", {{"input_ids", graph::eval::index_array({tokens}, ids)}, {"at", *batch}});
  if (!out) FAIL(out.error().text());
  REQUIRE(expected.add_i32("input_ids", {1, tokens}, ids32).ok());
  REQUIRE(expected.add_f32("logits", {1, tokens, vocabulary}, out->at(0).value.reals).ok());
  CHECK(stages.size() >= 4);
  for (const auto& [name, values] : stages)
    REQUIRE(expected.add_f32(name, {1, tokens, static_cast<std::int64_t>(values.size()) / tokens}, values).ok());
  const std::string reference = folder->path() + "/reference";
  REQUIRE(std::system(("mkdir -p " + reference).c_str()) == 0);
  REQUIRE(expected.write(reference + "/expected.safetensors").ok());

  const lower::Lowered lowered = lower::lower(module);
  for (const lower::Failure& f : lowered.failures) FAIL(f.message);
  const emit::Options options{.file = "composed", .class_name = "Composed", .name_space = "composed", .version = "test"};
  auto files = emit::cpp(lowered.program, options);
  files.push_back(emit::stock_main(lowered.program, options));
  auto program = driver::compile_program(files);
  if (!program) FAIL(program.error().text());
  CHECK(run({*program, "verify", "--checkpoint", folder->path(), "--expected", reference + "/expected.safetensors", "--within", "2e-5"}) ==
        "");
  CHECK(run({*program, "same", "--checkpoint", folder->path(), "--within", "1e-5", "prefill(13)", "prefill(6)+decode(7)"}) == "");
  CHECK(run({*program, "same", "--checkpoint", folder->path(), "--within", "1e-5", "batch(5,9,1)", "alone(5,9,1)"}) == "");
}

}  // namespace

// MODELC_RANDOM_MODELS=N tries N of them, from MODELC_RANDOM_SEED on.
TEST_CASE("random models equal the evaluator") {
  const char* count = std::getenv("MODELC_RANDOM_MODELS");
  const char* first = std::getenv("MODELC_RANDOM_SEED");
  const std::uint64_t n = count ? std::strtoull(count, nullptr, 10) : 5, seed = first ? std::strtoull(first, nullptr, 10) : 1;
  for (std::uint64_t i = 0; i < n; ++i) check(seed + i, Composer(seed + i).text());
}

// A module that calls its own functions, one loop over unlike leaves, one whose text depends on the element.
TEST_CASE("what the front end expands and writes out equals the evaluator") {
  check(1, R"(language 1
import nn.attention
import nn.embedding
import nn.linear
import nn.mlp
import nn.norm
import nn.rope
import nn.transformer

config RandomConfig { vocab_size: dim    layers: int in 1..100 }

module Low(n: dim, i: int) {
    let odd = i % 2 == 1
    p: Linear(n, n)
    forward(x: [tokens, n]) -> [tokens, n] { return half(p(x)) }
    entry half(x: [tokens, n]) -> [tokens, n] { return x / 2 }
}

model Composed(c: RandomConfig) {
    context 64
    fn layer() = DecoderLayer(24, norm: RMSNorm(24, eps: 1e-5),
        mixer: Attention(24, 4, 2, 6, rotary: RotaryEmbedding(6, theta: 100.0, pairs: "halves", max_positions: 64)),
        ff: GatedMLP(24, 32, act: "silu"))
    model:   Decoder(c.vocab_size, 24, blocks: [layer() for i in 0..c.layers], final_norm: RMSNorm(24, eps: 1e-5))
    tail:    [Linear(24, 24), RMSNorm(24, eps: 1e-3), Linear(24, 24, has_bias: true)]
    lows:    [Low(24, i) for i in 0..3]
    a:       Linear(24, 24)
    b:       GatedMLP(24, 20, act: "gelu")
    last:    RMSNorm(24, eps: 1e-5)
    lm_head: Linear(24, c.vocab_size)

    forward(input_ids: index(c.vocab_size)[tokens], at: Batch) -> logits: f32[outputs, c.vocab_size] {
        return lm_head(take(finish(model(input_ids, at), at), at.outputs))
    }
    entry finish(x: [tokens, 24], at: Batch) -> y: [tokens, 24] {
        let h = x
        for t in tail { h = t(h) + h }
        for low in lows { h = low(h) + (a(h) if low.odd else b(h)) }
        return last(h)
    }
}
)");
}

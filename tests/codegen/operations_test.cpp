// Operations that move, reduce and choose, on sizes that are no multiple of anything: generated code equals the evaluator, on the CPU and,
// where a driver is, on Vulkan.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>

#include "codegen/driver/host_compiler.h"
#include "codegen/driver/pipeline.h"
#include "codegen/driver/random_checkpoint.h"
#include "frontend/diagnostics/render.h"
#include "frontend/graph/eval/evaluator.h"
#include "frontend/graph/verifier.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/safetensors/writer.h"
#include "runtime/checkpoint/tensor_data.h"
#include "runtime/device/device.h"
#include "runtime/sampler/random.h"
#include "tests/codegen/support.h"

using namespace modelc;
using graph::eval::Array;

namespace {

std::string run(std::vector<std::string> command) {
  std::string output;
  const auto status = driver::run_program(command, &output);
  REQUIRE(status.ok());
  return *status == 0 ? "" : fmt::format("status {}\n{}", *status, output);
}

std::vector<float> numbers(Random& random, std::size_t n) {
  std::vector<float> v(n);
  for (float& x : v) x = static_cast<float>(static_cast<double>(random.next() % 20001) / 10000 - 1);
  return v;
}

Status add(SafetensorsWriter& to, const std::string& name, const Array& a) {
  if (is_float(a.dtype)) return to.add_f32(name, a.shape, a.reals);
  std::vector<std::int32_t> values;
  for (const std::int64_t v : a.integers) values.push_back(static_cast<std::int32_t>(v));
  return to.add_i32(name, a.shape, values);
}

// forward of the text, which takes these inputs and no Batch.
void check(const std::string& text, const std::string& config, const std::map<std::string, Array>& inputs) {
  const auto module = test::graph_of(text, config);
  for (const std::string& fault : graph::verify(*module)) FAIL_CHECK(fault);
  auto folder = driver::TemporaryFolder::create(driver::temporary_parent(), "modelc-test-");
  REQUIRE(folder.ok());
  REQUIRE(driver::write_random_checkpoint(*module, 3, folder->path()).ok());
  auto opened = open_checkpoint(folder->path());
  REQUIRE(opened.ok());
  const auto index = std::make_shared<const CheckpointIndex>(std::move(*opened));
  CheckpointData data(index);
  graph::eval::Evaluator evaluator(*module, [&](const std::string& name, const graph::WeightDecl&) -> std::optional<std::vector<float>> {
    const TensorInfo* t = index->find(name);
    if (!t) return std::nullopt;
    auto values = data.read_f32(*t);
    REQUIRE(values.ok());
    return std::move(*values);
  });
  std::map<std::string, graph::eval::Input> in(inputs.begin(), inputs.end());
  auto out = evaluator.run("forward", in);
  if (!out) FAIL(out.error().text());
  SafetensorsWriter expected;
  for (const auto& [name, value] : inputs) REQUIRE(add(expected, name, value).ok());
  for (const auto& o : *out) REQUIRE(add(expected, o.name, o.value).ok());
  const std::string reference = folder->path() + "/reference";
  REQUIRE(std::system(("mkdir -p " + reference).c_str()) == 0);
  REQUIRE(expected.write(reference + "/expected.safetensors").ok());

  driver::Options options;
  driver::Session session(options);
  session.file_base = "moved";
  const auto device = open_vulkan({});
  session.vulkan = device.ok();
  if (!device) std::printf("SKIPPED on Vulkan: %s\n", device.error().message.c_str());
  const lower::Lowered lowered = lower::lower(module, {.shaders = session.vulkan});
  for (const lower::Failure& f : lowered.failures) FAIL(f.message);
  const auto files = driver::emit_model(session, lowered.program, "Moved", "moved", true, false);
  if (!files) FAIL(diag::render(session.sink, session.sources));
  auto program = driver::compile_program(*files);
  if (!program) FAIL(program.error().text());
  const auto verified = [&](const std::vector<std::string>& how) {
    std::vector<std::string> command = {
        *program, "verify", "--checkpoint", folder->path(), "--expected", reference + "/expected.safetensors", "--within", "2e-5"};
    command.insert(command.end(), how.begin(), how.end());
    return run(command);
  };
  for (const char* threads : {"1", "2"}) CHECK(verified({"--threads", threads}) == "");
  if (session.vulkan) CHECK(verified({"--device", "vulkan:0"}) == "");
}

}  // namespace

TEST_CASE("slices, joins, transposes and reductions equal the evaluator") {
  Random random(5);
  std::map<std::string, Array> inputs;
  inputs["x"] = graph::eval::array({3, 5, 2, 7}, numbers(random, 210));
  inputs["keep"] = graph::eval::bool_array({3, 5}, {1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0});
  inputs["ids"] = graph::eval::index_array({3, 5}, {0, 10, 3, 7, 7, 1, 2, 4, 10, 9, 5, 6, 8, 0, 1});
  check(R"(language 1
import nn.linear

config C { size: dim }

model Moved(c: C) {
    context 16
    param table: [11, c.size - 1, 7]
    param one:   [1, 4, 7]

    forward(x: f32[batch, seq, 2, 7], keep: bool[batch, seq], ids: index(11)[batch, seq])
        -> (part: f32[batch, seq, 2, 2], first: f32[batch, 2, 7], rows: f32[seq, 2, 7], tail: f32[3, 7], joined: f32[batch, seq, 2, 12],
            stacked: f32[batch, seq, 2, 3, 7], turned: f32[batch, 7, 2, seq], wide: f32[batch, 4, 7],
            twice: f32[batch, seq, 6, 7], padded: f32[batch, seq, 2, 12], kept: f32[batch, 1], chosen: f32[batch, seq, 11],
            total: f32[batch, seq, 7], middle: f32[batch, 2, 7], most: f32[batch, seq, 2], least: f32[batch, 2, 7],
            best: f32[batch, seq, 2], weights: f32[batch, seq, 2, 7], across: f32[batch, seq, 2, 7], running: f32[batch, seq, 2, 7],
            unit: f32[batch, seq, 2, 7], large: f32[batch, seq, 2, 3], places: f32[batch, seq, 2, 3], next: f32[seq, 2, 7]) {
        let (a, b, d) = split(x, [2, 4, 1])
        let (v, i) = top_k(x, 3)
        let h = table[0..seq] * 2.0 + table[1..seq + 1]
        return x[..., 1..6 by 3], x[.., 0, .., ..] + 0.5, table[2..seq + 2] + 0.0, one[0, 1..4], concat([b, x[..., 1..3], a, d, x[..., 4..7]]),
            stack([x, x * 2.0, h + x], axis: -2), transpose(x, 1, 3), expand(one, [batch, 4, 7]),
            repeat(x, 3, axis: 2), pad(x, 2, 3, value: 1.5), sum(keep as f32, axis: 1) as [batch, 1], one_hot(ids, 11),
            sum(x, axis: 2), mean(x, axis: 1, where: keep), max(x), min(x, axis: 1, where: keep),
            argmax(x) as f32, softmax(x), softmax(x, axis: 1, where: keep), cumsum(x, axis: 1, where: keep),
            l2_normalize(x), v, i as f32, h
    }
}
)",
        R"({"size": 3})", inputs);
}

TEST_CASE("routers, experts and convolutions equal the evaluator") {
  Random random(6);
  std::map<std::string, Array> inputs;
  inputs["x"] = graph::eval::array({7, 9}, numbers(random, 63));
  inputs["image"] = graph::eval::array({7, 4, 9, 5}, numbers(random, 1260));
  inputs["sound"] = graph::eval::array({7, 3, 11}, numbers(random, 231));
  inputs["film"] = graph::eval::array({7, 2, 3, 5, 4}, numbers(random, 840));
  check(R"(language 1
import nn.mlp

config C { size: dim }
axis frames: 2..64

model Moved(c: C) {
    param router:  [6, c.size]
    param shift:   f32[6]
    param gate:    [6, 13, c.size]
    param up:      [6, 13, c.size]
    param down:    [6, c.size, 13]
    param up_bias: [6, 13]
    param down_bias: [6, c.size]
    param w2:      [6, 2, 3, 2]
    param b2:      [6]
    param w1:      [5, 3, 3]
    param w3:      [3, 2, 3, 3, 3]
    param b3:      [3]

    forward(x: f32[batch, c.size], image: f32[batch, 4, 9, 5], sound: f32[batch, 3, frames], film: f32[batch, 2, 3, 5, 4])
        -> (plain: f32[batch, c.size], grouped: f32[batch, c.size], places: f32[batch, 3], seen: f32[batch, 6, 5, 3],
            heard: f32[batch, 5, div(frames - 1, 2) + 1], shown: f32[batch, 3, 3, 5, 4]) {
        let scores = linear(x, router)
        let (chosen, weights) = route(softmax(scores), 2, renormalize: true)
        let (best, shares) = route(sigmoid(scores), 3, bias: shift, groups: 3, keep_groups: 2, group_score: "top2_sum",
                                   renormalize: false, scale: 2.5)
        return moe(x, chosen, weights, gate, up, down, gated: fn(g, u) = silu(g) * u),
            moe(x, best, shares, gate, up, down, none, up_bias, down_bias, gated: fn(g, u) = min(g, 0.5) * (u + 1.0)),
            best as f32, conv2d(image, w2, b2, stride: 2, padding: 1, groups: 2), conv1d(sound, w1, stride: 2, padding: 1),
            conv3d(film, w3, b3, padding: 1)
    }
}
)",
        R"({"size": 9})", inputs);
}

TEST_CASE("elementwise operations equal the evaluator") {
  Random random(7);
  std::map<std::string, Array> inputs;
  inputs["x"] = graph::eval::array({5, 7, 19}, numbers(random, 665));
  inputs["y"] = graph::eval::array({5, 7, 19}, numbers(random, 665));
  inputs["n"] = graph::eval::index_array(
      {5, 7}, {0, 10, 3, 7, 7, 1, 2, 4, 10, 9, 5, 6, 8, 0, 1, 2, 2, 3, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 10, 9, 8, 1, 0, 4, 6});
  check(R"(language 1
config C { size: dim }

model Moved(c: C) {
    context 16
    param w: [c.size]

    forward(x: f32[batch, seq, c.size], y: f32[batch, seq, c.size], n: index(11)[batch, seq])
        -> (smooth: f32[batch, seq, c.size], gates: f32[batch, seq, c.size], powers: f32[batch, seq, c.size], waves: f32[batch, seq, c.size],
            roots: f32[batch, seq, c.size], steps: f32[batch, seq, c.size], chosen: f32[batch, seq, c.size], flags: f32[batch, seq, c.size],
            whole: f32[batch, seq], many: f32[batch, seq, c.size], made: f32[batch, seq, c.size]) {
        let both = x < y and not (x == 0.0) or y >= 0.5
        let a = n + 3
        return silu(x * 3.0) + gelu(y * 3.0) + gelu_tanh(x - y) + quick_gelu(x) + relu(y), sigmoid(x * 5.0) * tanh(y * 2.0) + softplus(x * 4.0),
            x ^ 3 + abs(y) ^ 0.37 + exp(-x * x) + exp2(y) + expm1(x * 0.01), sin(x * 20.0) + cos(y * 300.0) + erf(x),
            sqrt(abs(x)) + rsqrt(abs(y) + 0.1) + log(abs(x) + 0.01), floor(x * 5.0) - ceil(y * 5.0),
            where(both, x, y) + min(x, y) - max(x, w) + clamp(x, -0.5, 0.25) + softcap(y, 0.3), (x <= y) as f32 + (x > y) as f32 * 2.0 + (x != y) as f32 / 4.0,
            (a - 2 * n) as f32 / (n as f32 + 1.0), x * y + w * x - y / (abs(w) + 1.0) + (x - w) * (y + w) + x % 0.7,
            x + linspace(0, 1, c.size) + arange(c.size) as f32
    }
}
)",
        R"({"size": 19})", inputs);
}

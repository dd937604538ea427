// `policy` in generated code: compiled and run in mode fast, a model equals the reference evaluator that follows the policy, in
// every value that has a name; each line of a policy has its effect there; in mode exact all is f32.
//
// Both sides round at the same places. What comes before a rounding may differ in the last place of f32 (the order of a sum), so
// that now and then a value rounds the other way, by one unit of its type. Among as few numbers as here none does in bf16, and
// one or two do in f16, whose units are smaller: 2e-4 bounds what becomes of that. Without rounding f32 itself is compared.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>

#include "codegen/driver/host_compiler.h"
#include "codegen/driver/random_checkpoint.h"
#include "codegen/driver/reference.h"
#include "codegen/emit/emit.h"
#include "codegen/plan/printer.h"
#include "codegen/plan/reader.h"
#include "frontend/graph/eval/evaluator.h"
#include "frontend/graph/verifier.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/safetensors/writer.h"
#include "runtime/checkpoint/tensor_data.h"
#include "tests/codegen/support.h"

using namespace modelc;

namespace {

// Products that are added to a residual and that meet in an expression, a norm of a sum, views, a cache, experts, a tied scale:
// what lowering joins.
constexpr const char* model_text = R"(language 1
import nn.linear
import nn.mlp
import nn.norm

config C { v, d: dim  layers: int in 1..4 }

module Mixer(n: dim) {
    qk: Linear(n, 2 * n)
    o:  Linear(n, n)
    state cache: KVCache(2, n / 2)
    forward(x: [tokens, n], at: Batch) -> [tokens, n] {
        let (q, k) = split(qk(x), [n, n])
        let keys = k as [tokens, 2, n / 2]
        cache.append(keys, keys, at)
        let y = attend(q as [tokens, 2, n / 2], cache, at, mask: "causal", scale: 0.5)
        return o(y as [tokens, n])
    }
}

module Experts(n: dim) {
    router: Linear(n, 3)
    param gate: [3, n, n]
    param up:   [3, n, n]
    param down: [3, n, n]
    forward(x: [tokens, n]) -> [tokens, n] {
        let (chosen, weights) = route(softmax(router(x) as f32), 2, renormalize: true)
        return moe(x, chosen, weights, gate, up, down, gated: fn(g, u) = silu(g) * u)
    }
}

module Block(n: dim) {
    norm:    RMSNorm(n, eps: 1e-5)
    ff_norm: RMSNorm(n, eps: 1e-5)
    mixer:   Mixer(n)
    ff:      GatedMLP(n, 2 * n, act: "silu")
    experts: Experts(n)
    p:       Linear(n, n)
    forward(x: [tokens, n], at: Batch) -> [tokens, n] {
        let h = x + mixer(norm(x), at)
        let g = h + p(h)
        let f = g + ff(ff_norm(g))
        return f + experts(f) * 0.3
    }
}

// Of two operations one declares that its input stays in f32, and so does what comes of it.
op narrow(x: [..., n]) -> [..., n] { reference { let y = x * 1.3  return y * y } }
op kept(x: f32[..., n]) -> [..., n] { reference { let y = x * 1.3  return y * y } }

// Declares what stays in f32.
module Wide(n: dim) {
    param gain:  f32[n]
    param shift: [n]
    forward(x: [outputs, n], scale: f32[outputs, n]) -> f32[outputs, n] {
        let a = x * gain
        let b = scale * 1.1
        let c = x * shift
        return a + b + c
    }
}

model Rounded(c: C) {
    context 16
    param table: [c.v, c.d]
    layers: [Block(c.d) for i in 0..c.layers]
    last:   RMSNorm(c.d, eps: 1e-5)
    wide:   Wide(c.d)
    forward(ids: index(c.v)[tokens], at: Batch) -> logits: f32[outputs, c.v] {
        let h = take(table, ids) * 1.7
        for layer in layers { h = layer(h, at) }
        let s = take(last(h), at.outputs)
        let w = wide(s, s as f32 * 0.7) + narrow(s) + kept(s)
        return linear(s, table) + sum(w, axis: -1) as [outputs, 1]
    }
    «POLICY»
}
)";

std::string with(const std::string& policy) {
  std::string text = model_text;
  const std::string mark = "«POLICY»";
  return text.replace(text.find(mark), mark.size(), policy.empty() ? "" : "policy { " + policy + " }");
}

class Compiled {
 public:
  explicit Compiled(const std::string& policy) : module_(test::graph_of(with(policy), R"({"v": 11, "d": 8, "layers": 2})")) {
    for (const std::string& fault : graph::verify(*module_)) FAIL_CHECK(fault);
    auto folder = driver::TemporaryFolder::create(driver::temporary_parent(), "modelc-test-");
    REQUIRE(folder.ok());
    folder_ = std::make_unique<driver::TemporaryFolder>(std::move(*folder));
    REQUIRE(driver::write_random_checkpoint(*module_, 5, folder_->path()).ok());
    const lower::Lowered lowered = lower::lower(module_);
    for (const lower::Failure& f : lowered.failures) FAIL(f.message);
    notes = lowered.notes;
    plan_text = plan::print(lowered.program, true);
    const auto read = plan::read(plan_text);               // the plan's text holds the roundings
    if (!read) FAIL(read.error().text());
    CHECK(plan::print(*read, true) == plan_text);
    const emit::Options options{.file = "rounded", .class_name = "Rounded", .name_space = "rounded", .version = "test"};
    auto files = emit::cpp(lowered.program, options);
    std::string again;
    for (const emit::File& f : files) source += f.text;
    for (const emit::File& f : emit::cpp(*read, options)) again += f.text;
    CHECK(source == again);
    files.push_back(emit::stock_main(lowered.program, options));
    auto program = driver::compile_program(files);
    if (!program) FAIL(program.error().text());
    program_ = *program;
  }

  // "" when the program in this mode gives what the evaluator of `as` gives with that precision.
  std::string differs(const std::string& mode, const graph::Module& as, const graph::Precision& precision, double within,
                      const std::string& isa = "") const {
    auto opened = open_checkpoint(folder_->path());
    REQUIRE(opened.ok());
    const auto index = std::make_shared<const CheckpointIndex>(std::move(*opened));
    CheckpointData data(index);
    graph::eval::Evaluator evaluator(as, [&](const std::string& name, const graph::WeightDecl&) -> std::optional<std::vector<float>> {
      const TensorInfo* t = index->find(name);
      if (!t) return std::nullopt;
      auto values = data.read_f32(*t);
      REQUIRE(values.ok());
      return std::move(*values);
    });
    evaluator.set_precision(precision);
    const std::vector<std::int64_t> ids = {3, 0, 10, 7, 7};
    const auto tokens = static_cast<std::int64_t>(ids.size());
    std::map<std::string, std::vector<float>> stages;
    evaluator.set_trace([&](const std::string& path, const graph::eval::Array& value) {
      if (value.dtype == DType::f32 && !value.shape.empty() && value.shape[0] == tokens) stages[path] = value.reals;
    });
    auto batch = evaluator.batch({{.slot = 0, .tokens = tokens}}, graph::eval::Outputs::all);
    REQUIRE(batch.ok());
    auto out = evaluator.run("forward", {{"ids", graph::eval::index_array({tokens}, ids)}, {"at", *batch}});
    if (!out) FAIL(out.error().text());
    SafetensorsWriter expected;
    REQUIRE(expected.add_i32("ids", {1, tokens}, std::vector<std::int32_t>(ids.begin(), ids.end())).ok());
    REQUIRE(expected.add_f32("logits", {1, tokens, 11}, out->at(0).value.reals).ok());
    CHECK(stages.size() > 20);
    for (const auto& [name, values] : stages)
      REQUIRE(expected.add_f32(name, {1, tokens, static_cast<std::int64_t>(values.size()) / tokens}, values).ok());
    const std::string reference = folder_->path() + "/reference";
    REQUIRE(std::system(("mkdir -p " + reference).c_str()) == 0);
    REQUIRE(expected.write(reference + "/expected.safetensors").ok());
    std::vector<std::string> command = {program_,       "verify",
                                        "--checkpoint", folder_->path(),
                                        "--mode",       mode,
                                        "--expected",   reference + "/expected.safetensors",
                                        "--within",     fmt::format("{}", within)};
    if (!isa.empty()) command.insert(command.end(), {"--isa", isa});
    std::string output;
    const auto status = driver::run_program(command, &output);
    REQUIRE(status.ok());
    return *status == 0 ? "" : fmt::format("status {}\n{}", *status, output);
  }
  const graph::Module& module() const { return *module_; }

  std::vector<std::string> notes;
  std::string plan_text, source;

 private:
  std::shared_ptr<const graph::Module> module_;
  std::unique_ptr<driver::TemporaryFolder> folder_;
  std::string program_;
};

std::shared_ptr<const graph::Module> other(const std::string& policy) {
  return test::graph_of(with(policy), R"({"v": 11, "d": 8, "layers": 2})");
}

}  // namespace

TEST_CASE("a policy has its effect in generated code, line by line") {
  struct Line {
    const char *policy, *without;
  };
  for (const auto& [policy, without] : {
           Line{"compute: bf16", ""},
           Line{"compute: f16", "compute: bf16"},
           Line{"compute: bf16  residual: bf16", "compute: bf16"},
           Line{"cache: bf16", ""},
           Line{"compute: bf16  residual: f32  cache: bf16  **.norm: f32", "compute: bf16  residual: f32  cache: bf16"},
           Line{"compute: bf16  residual: f32  layers.*.experts.router: f32", "compute: bf16  residual: f32"},
           Line{"layers.*.ff: bf16", ""},
       }) {
    CAPTURE(std::string(policy));
    const double within = std::string_view(policy).find(": bf16") != std::string_view::npos ? 2e-5 : 2e-4;
    const Compiled model(policy);
    CHECK(model.notes.empty());
    CHECK(model.differs("fast", model.module(), driver::fast_precision(model.module()), within) == "");
    const auto less = other(without);
    CHECK(model.differs("fast", *less, driver::fast_precision(*less), within) != "");
    CHECK(model.differs("exact", model.module(), {}, 2e-5) == "");
  }
}

TEST_CASE("where all is f32 nothing is rounded, and nothing in the text speaks of it") {
  const Compiled model("compute: f32  residual: f32  cache: f32");
  CHECK(model.source.find("s.round(") == std::string::npos);
  CHECK(model.source.find("_rounded") == std::string::npos);
  CHECK(model.plan_text.find("roundings") == std::string::npos);
  CHECK(model.differs("fast", model.module(), driver::fast_precision(model.module()), 2e-5) == "");
}

TEST_CASE("instances of one function that a policy tells apart are said, and computed in the wider type") {
  const Compiled model("compute: bf16  layers.1.norm: f32");
  REQUIRE(model.notes.size() == 1);
  CHECK(model.notes[0].find("`Block`") != std::string::npos);
  // As if all of them were wide.
  const auto all = other("compute: bf16  layers.*.norm: f32");
  CHECK(model.differs("fast", *all, driver::fast_precision(*all), 2e-5) == "");
}

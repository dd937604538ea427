// The plan's verifier, operand by operand: plans of real models as text, one field changed, and what is said of it.
#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "codegen/plan/printer.h"
#include "codegen/plan/reader.h"
#include "codegen/plan/verifier.h"
#include "codegen/plan/walk.h"
#include "frontend/graph/reader.h"
#include "runtime/base/json.h"
#include "tests/codegen/support.h"

using namespace modelc;

namespace {

std::string plan_of(std::shared_ptr<const graph::Module> module) {
  const lower::Lowered l = lower::lower(std::move(module));
  for (const lower::Failure& f : l.failures) FAIL(f.message);
  return plan::print(l.program, true);
}

std::string example(const std::string& name, const std::string& fixture) {
  const std::string folder = MODELC_SOURCE_DIR "/examples/" + name + "/";
  std::stringstream text;
  text << std::ifstream(folder + name + ".model").rdbuf();
  auto config = read_json_file(folder + "fixtures/" + fixture + "/config.json");
  REQUIRE(config.ok());
  return plan_of(test::graph_of(text.str(), dump(config->root)));
}

// The steps that no example's plan has beside these.
constexpr const char* rest = R"(language 1
config C { n: dim }
model M(c: C) {
    context 16
    param table: [8, c.n]
    param filter: [c.n, c.n, 3]
    param bias: [c.n]
    forward(ids: index(8)[batch, seq]) -> y: [batch, seq, c.n] {
        let h = take(table, ids)
        let normal = layer_norm(h, bias, bias, eps: 1e-5)
        let turned = transpose(normal, 1, 2)
        let wide = transpose(conv1d(turned, filter, bias, padding: 1), 1, 2)
        let low = mean(wide, axis: -1) as [batch, seq, 1]
        return wide + low * (arange(c.n) + 1)
    }
    entry same(x: [batch, seq, c.n]) -> [batch, seq, c.n] { return x }
}
)";

// A custom operation that brings a shader, beside its reference.
constexpr const char* custom = R"(graph 1
module T root T
axis tokens: 1..
axis outputs: 1..
axis batch: 1..
axis seq: 1..
shader "f.comp" of f text "void main() {}"
class T: T {
  forward forward(%x: f32[tokens, 6], %g: f32[6]) {
    %h: f32[tokens, 6] = silu(%x)
    %y: f32[tokens, 6] = custom(%h, %g) of f sizes [tokens, 6] shader 0 local 32 groups [tokens] {
      carry %a: f32[tokens, 6], %b: f32[6]
      %m: f32[tokens, 6] = mul(%a, %b)
      next %m
    }
    return %y
  }
}
)";
std::string custom_plan() {
  auto module = graph::read(custom);
  REQUIRE(module.ok());
  const lower::Lowered l = lower::lower(std::make_shared<const graph::Module>(std::move(*module)), {.shaders = true});
  for (const lower::Failure& f : l.failures) FAIL(f.message);
  return plan::print(l.program, true);
}

const std::vector<std::string>& plans() {
  static const std::vector<std::string> all = {plan_of(test::llama_graph()),
                                               example("qwen3_moe", "qwen3-moe-each"),
                                               example("vit", "vit-tiny"),
                                               example("mamba2", "mamba2-tiny"),
                                               example("qwen3_next", "qwen3-next-dense"),
                                               example("deepseek_v3", "deepseek-v3-dense"),
                                               example("whisper", "whisper-tiny-random"),
                                               plan_of(test::graph_of(rest, R"({"n": 4})")),
                                               custom_plan()};
  return all;
}

// Where the field's value stands in the first step of the kind that has the field; nothing where none has.
bool field_of(const std::string& text, const std::string& kind, const std::string& field, std::size_t& begin, std::size_t& end) {
  const std::size_t graph = text.find("\ngraph\n");
  for (std::size_t at = 0; (at = text.find(" " + kind + " {", at)) < graph; ++at) {
    if (text.find_last_not_of(' ', at) != text.rfind('\n', at)) continue;     // not at the beginning of its line
    const std::size_t line = text.find('\n', at);
    std::size_t found = text.find(" " + field + ": ", at);
    if (kind == "repeat") found = text.find(" " + field + ": ", at);
    else if (found > line) continue;
    begin = found + field.size() + 3;
    // Fields of one line are two blanks apart; small objects within have one.
    const std::size_t two = text.find("  ", begin), close = text.find(" }\n", begin), next = text.find('\n', begin);
    end = std::min({two, close, next});
    if (text[begin] == '[' && text[begin + 1] == '{') end = text.find("}]", begin) + 2;
    return true;
  }
  return false;
}

struct Damage {
  std::string kind, field, value, said;
};

}  // namespace

TEST_CASE("every operand of every kind of step is checked") {
  const Damage damages[] = {
      {"linear", "x", "none", "`x` is missing"},
      {"linear", "x", "at", "`x` is the batch, and no numbers"},
      {"linear", "outs", "[none]", "`outs` is missing"},
      {"linear", "outs", "[at.positions]", "`outs` is written, and is no buffer"},
      {"linear_add", "residual", "none", "`residual` is missing"},
      {"linear_add", "out", "none", "`out` is missing"},
      {"linear_map", "x", "none", "`x` is missing"},
      {"linear_map", "out", "none", "`out` is missing"},
      {"take", "table", "\"nothing\"", "no weight nothing"},
      {"take", "rows", "none", "`rows` is missing"},
      {"take", "rows", "at.colours", "a batch has no field colours"},
      {"take", "out", "none", "`out` is missing"},
      {"take_rows", "x", "none", "`x` is missing"},
      {"take_rows", "rows", "none", "`rows` is missing"},
      {"take_rows", "rows", "at.outputs as [7]", "a view of at.outputs has another count"},
      {"rms_norm", "x", "none", "`x` is missing"},
      {"rms_norm", "w", "weight \"nothing\"", "no weight nothing"},
      {"rms_norm", "out", "none", "`out` is missing"},
      {"add_rms_norm", "x", "none", "`x` is missing"},
      {"add_rms_norm", "y", "none", "`y` is missing"},
      {"add_rms_norm", "sum", "none", "`sum` is missing"},
      {"add_rms_norm", "out", "at", "`out` is the batch, and no numbers"},
      {"layer_norm", "x", "none", "`x` is missing"},
      {"layer_norm", "b", "const \"nothing\"", "no const nothing"},
      {"rope", "x", "none", "`x` is missing"},
      {"rope", "cos", "none", "`cos` is missing"},
      {"rope", "sin", "once 99 [1]", "a step value that is not there"},
      {"rope", "sin", "once 0 [1]", "a view of rope_cos has another count"},
      {"append", "state", "\"nothing\"", "no state nothing"},
      {"append", "k", "none", "`k` is missing"},
      {"append", "v", "none", "`v` is missing"},
      {"append", "at", "none", "`at` is missing"},
      {"append", "at", "at.positions", "`at` is not the batch"},
      {"attend", "q", "none", "`q` is missing"},
      {"attend", "state", "\"nothing\"", "no state nothing"},
      {"attend", "state", "\"\"", "`k` is missing"},
      {"attend", "at", "none", "`at` is missing"},
      {"attend", "out", "none", "`out` is missing"},
      {"attend_latent", "q_nope", "none", "`q_nope` is missing"},
      {"attend_latent", "q_rope", "at", "`q_rope` is the batch, and no numbers"},
      {"attend_latent", "state", "\"nothing\"", "no state nothing"},
      {"attend_latent", "state", "\"\"", "no state is named"},
      {"attend_latent", "at", "none", "`at` is missing"},
      {"attend_latent", "up", "\"nothing\"", "no weight nothing"},
      {"attend_latent", "out", "none", "`out` is missing"},
      {"map", "inputs", "[none, none]", "`inputs` is missing"},
      {"map", "inputs", "[]", "inputs, not 0"},
      {"map", "out", "none", "`out` is missing"},
      {"copy", "from", "none", "`from` is missing"},
      {"copy", "to", "none", "`to` is missing"},
      {"rearrange", "parts", "[]", "nothing is put into the result"},
      {"rearrange", "out", "none", "`out` is missing"},
      {"reduce", "x", "none", "`x` is missing"},
      {"reduce", "out", "none", "`out` is missing"},
      {"route", "scores", "none", "`scores` is missing"},
      {"route", "chosen", "none", "`chosen` is missing"},
      {"route", "weights", "none", "`weights` is missing"},
      {"experts", "x", "none", "`x` is missing"},
      {"experts", "chosen", "none", "`chosen` is missing"},
      {"experts", "weights", "none", "`weights` is missing"},
      {"experts", "gate", "\"nothing\"", "no weight nothing"},
      {"experts", "up", "\"nothing\"", "no weight nothing"},
      {"experts", "down", "\"nothing\"", "no weight nothing"},
      {"experts", "out", "none", "`out` is missing"},
      {"conv", "x", "none", "`x` is missing"},
      {"conv", "w", "none", "`w` is missing"},
      {"conv", "b", "weight \"nothing\"", "no weight nothing"},
      {"conv", "out", "none", "`out` is missing"},
      {"causal_conv1d", "x", "none", "`x` is missing"},
      {"causal_conv1d", "w", "none", "`w` is missing"},
      {"causal_conv1d", "b", "weight \"nothing\"", "no weight nothing"},
      {"causal_conv1d", "state", "\"nothing\"", "no state nothing"},
      {"causal_conv1d", "at", "none", "`at` is missing"},
      {"causal_conv1d", "out", "none", "`out` is missing"},
      {"ssd_scan", "x", "none", "`x` is missing"},
      {"ssd_scan", "dt", "none", "`dt` is missing"},
      {"ssd_scan", "a", "none", "`a` is missing"},
      {"ssd_scan", "b", "none", "`b` is missing"},
      {"ssd_scan", "c", "none", "`c` is missing"},
      {"ssd_scan", "d", "none", "`d` is missing"},
      {"ssd_scan", "state", "\"conv1d.ring\"", "conv1d.ring is a Ring, and no Recurrent"},
      {"ssd_scan", "at", "at.positions", "`at` is not the batch"},
      {"ssd_scan", "out", "none", "`out` is missing"},
      {"gated_delta", "q", "none", "`q` is missing"},
      {"gated_delta", "k", "none", "`k` is missing"},
      {"gated_delta", "v", "none", "`v` is missing"},
      {"gated_delta", "decay", "none", "`decay` is missing"},
      {"gated_delta", "beta", "none", "`beta` is missing"},
      {"gated_delta", "state", "\"nothing\"", "no state nothing"},
      {"gated_delta", "at", "none", "`at` is missing"},
      {"gated_delta", "out", "none", "`out` is missing"},
      {"cross_set", "k", "none", "`k` is missing"},
      {"cross_set", "v", "none", "`v` is missing"},
      {"cross_set", "state", "\"nothing\"", "no state nothing"},
      {"cross_set", "at", "none", "`at` is missing"},
      {"fill", "out", "none", "`out` is missing"},
      {"call", "member", "\"nothing\"", "no child nothing"},
      {"call", "function", "\"nothing\"", "has no function nothing"},
      {"call", "inputs", "[none]", "`inputs` is missing"},
      {"call", "inputs", "[]", "is called with 0 inputs"},
      {"call", "at", "none", "is called without the batch"},
      {"call", "outs", "[none]", "`outs` is missing"},
      {"call", "traces", "[{ member: \"\" name: \"x\" value: none }]", "`traces` is missing"},
      {"repeat", "member", "\"nothing\"", "no list nothing"},
      {"custom", "inputs", "[none]", "`inputs` is missing"},
      {"custom", "outs", "[none]", "`outs` is missing"},
      {"custom", "dispatches", "[]", "nothing but its reference computes it"},
      {"custom", "dispatches", "[{ shader: 7 groups: [tokens] }]", "a shader that is not there"},
      {"custom", "dispatches", "[{ groups: [] }]", "one to three axes"},
  };
  std::set<std::string> kinds;
  for (const Damage& d : damages) {
    CAPTURE(d.kind);
    CAPTURE(d.field);
    CAPTURE(d.value);
    bool found = false;
    for (const std::string& text : plans()) {
      std::size_t begin = 0, end = 0;
      if (found || !field_of(text, d.kind, d.field, begin, end)) continue;
      found = true;
      std::string bad = text;
      bad.replace(begin, end - begin, d.value);
      const auto program = plan::read(bad);
      if (!program) FAIL_CHECK(program.error().text());
      if (!program) continue;
      std::string all;
      for (const std::string& problem : plan::verify(*program)) all += problem + "\n";
      CHECK_MESSAGE(all.find(": " + d.kind + ": ") != std::string::npos, all);
      CHECK_MESSAGE(all.find(d.said) != std::string::npos, all);
    }
    CHECK_MESSAGE(found, "no plan has such a step");
    kinds.insert(d.kind);
  }
  // None is forgotten.
  for (std::size_t i = 0; i < std::variant_size_v<plan::StepKind>; ++i) {
    std::string name;
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      ((k == i ? void(name = plan::kind_name(plan::StepKind{std::in_place_index<k>})) : void()), ...);
    }(std::make_index_sequence<std::variant_size_v<plan::StepKind>>{});
    CHECK_MESSAGE(kinds.contains(name), name);
  }
  for (const std::string& text : plans()) {
    const auto program = plan::read(text);
    REQUIRE(program.ok());
    CHECK(plan::verify(*program).empty());
  }
}

TEST_CASE("a state of another kind than the step's is found") {
  const auto said = [](const std::string& text, const auto& damage) {
    auto program = plan::read(text);
    REQUIRE(program.ok());
    for (plan::Class& c : program->classes)
      for (plan::Function& f : c.functions)
        for (plan::Step& s : f.steps) damage(s);
    std::string all;
    for (const std::string& problem : plan::verify(*program)) all += problem + "\n";
    return all;
  };
  const std::string over_keys = said(plan_of(test::llama_graph()), [](plan::Step& s) {
    if (const auto* a = std::get_if<plan::Attend>(&s.kind))
      s.kind = plan::AttendLatent{a->q, a->q, a->state, a->at, "q_proj.weight", true, 1, a->out};
  });
  CHECK_MESSAGE(over_keys.find("attend_latent: cache is a KVCache, and no LatentCache") != std::string::npos, over_keys);
  const std::string over_latents = said(example("deepseek_v3", "deepseek-v3-dense"), [](plan::Step& s) {
    if (const auto* a = std::get_if<plan::AttendLatent>(&s.kind)) {
      plan::Attend other;
      other.q = a->q_nope, other.state = a->state, other.at = a->at, other.out = a->out;
      s.kind = other;
    }
  });
  CHECK_MESSAGE(over_latents.find("attend: cache is a LatentCache, and no KVCache") != std::string::npos, over_latents);
}

TEST_CASE("a custom operation: its reference writes its results, and a shader reads what it is given to the end") {
  const auto problems = [](const std::function<void(plan::Function&, plan::Custom&)>& damage) {
    auto program = plan::read(custom_plan());
    REQUIRE(program.ok());
    plan::Function& f = program->classes.front().functions.front();
    for (plan::Step& s : f.steps)
      if (auto* c = std::get_if<plan::Custom>(&s.kind)) damage(f, *c);
    std::string all;
    for (const std::string& problem : plan::verify(*program)) all += problem + "\n";
    return all;
  };
  CHECK(problems([](plan::Function&, plan::Custom&) {}).empty());
  const std::string unwritten = problems([](plan::Function&, plan::Custom& c) { c.body.clear(); });
  CHECK_MESSAGE(unwritten.find("is never written by its reference") != std::string::npos, unwritten);
  const std::string host = problems([](plan::Function&, plan::Custom& c) { c.host = 3; });
  CHECK_MESSAGE(host.find("host code that is not there") != std::string::npos, host);
  // The value lives up to where the step begins, and no further.
  const std::string read = problems([](plan::Function& f, plan::Custom& c) {
    plan::Buffer& b = f.buffers[std::get<plan::BufferRef>(c.inputs.front()).buffer.index];
    REQUIRE(b.kind == plan::BufferKind::frame);
    --b.last;
  });
  CHECK_MESSAGE(read.find("custom: ") != std::string::npos, read);
  CHECK_MESSAGE(read.find("and lives from") != std::string::npos, read);
}

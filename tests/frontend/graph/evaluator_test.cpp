// Whole graphs: sequences and their states, batches, inputs, traces, and what is refused.
#include "frontend/graph/eval/evaluator.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/frontend/graph/support.h"

namespace modelc::graph::test {

using eval::Array;
using eval::array;
using eval::Evaluator;
using eval::index_array;
using eval::Outputs;

namespace {

struct Decoder {
  Module module = parsed(tiny_decoder_text());
  Evaluator evaluator{module, [this](const std::string& name, const WeightDecl& decl) -> std::optional<std::vector<float>> {
                        if (decl.default_value) return std::nullopt;
                        return made_up_weights(name, decl, module.dims);
                      }};

  // New tokens for slots; the logits of all rows or the last ones.
  std::vector<float> step(const std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>>& tokens, Outputs outputs = Outputs::all) {
    std::vector<Evaluator::Next> next;
    std::vector<std::int64_t> ids;
    for (const auto& [slot, t] : tokens) {
      next.push_back({slot, static_cast<std::int64_t>(t.size())});
      ids.insert(ids.end(), t.begin(), t.end());
    }
    Result<eval::Batch> batch = evaluator.batch(next, outputs);
    REQUIRE(batch.ok());
    auto out = evaluator.run("forward", {{"input_ids", index_array({static_cast<std::int64_t>(ids.size())}, ids)}, {"at", *batch}});
    if (!out) FAIL(out.error().text());
    REQUIRE(out->size() == 1);
    CHECK((*out)[0].name == "logits");
    return (*out)[0].value.reals;
  }
};

const std::vector<std::int64_t> prompt = {3, 1, 4, 1, 5, 9, 2, 6, 10, 0};

std::vector<float> rows(const std::vector<float>& logits, std::size_t from, std::size_t to) {
  return {logits.begin() + static_cast<std::ptrdiff_t>(from * 11), logits.begin() + static_cast<std::ptrdiff_t>(to * 11)};
}

}  // namespace

TEST_CASE("prefill is the same as prefill and decode") {
  Decoder whole;
  const std::vector<float> all = whole.step({{0, prompt}});
  REQUIRE(all.size() == prompt.size() * 11);
  for (float v : all) REQUIRE(std::isfinite(v));
  CHECK(whole.evaluator.length(0) == 10);

  Decoder parts;
  std::vector<float> got = parts.step({{0, {prompt.begin(), prompt.begin() + 4}}});
  for (std::size_t i = 4; i < prompt.size(); ++i) {
    const std::vector<float> one = parts.step({{0, {prompt[i]}}}, Outputs::last);
    got.insert(got.end(), one.begin(), one.end());
  }
  CHECK(got == all);
  // The window of layer 2 is 3, so that the prompt is longer; and later tokens do depend on the first.
  Decoder other;
  std::vector<std::int64_t> changed = prompt;
  changed[0] = 7;
  CHECK(distance(rows(other.step({{0, changed}}), 9, 10), rows(all, 9, 10)) > 1e-4);
}

TEST_CASE("a ragged batch is each sequence alone") {
  const std::vector<std::int64_t> a = {1, 2, 3, 4, 5}, b = {9, 8, 7}, c = {6};
  Decoder together;
  const std::vector<float> first = together.step({{5, a}, {2, b}, {9, c}});
  const std::vector<float> second = together.step({{9, {10}}, {5, {0, 1}}});
  std::vector<float> alone;
  auto add = [&alone](const std::vector<float>& v) { alone.insert(alone.end(), v.begin(), v.end()); };
  Decoder da, db, dc;
  add(da.step({{0, a}}));
  add(db.step({{0, b}}));
  add(dc.step({{0, c}}));
  CHECK(first == alone);
  alone.clear();
  add(dc.step({{0, {10}}}));
  add(da.step({{0, {0, 1}}}));
  CHECK(second == alone);
  CHECK(together.evaluator.length(5) == 7);
  CHECK(together.evaluator.length(2) == 3);
  CHECK(together.evaluator.length(1) == 0);
}

TEST_CASE("the last rows are rows of all") {
  Decoder x, y;
  const std::vector<float> all = x.step({{0, {1, 2, 3}}, {1, {4, 5}}});
  const std::vector<float> last = y.step({{0, {1, 2, 3}}, {1, {4, 5}}}, Outputs::last);
  REQUIRE(last.size() == 2 * 11);
  CHECK(rows(last, 0, 1) == rows(all, 2, 3));
  CHECK(rows(last, 1, 2) == rows(all, 4, 5));
}

TEST_CASE("a slot begins anew after reset, and a failed call leaves no trace") {
  Decoder d;
  const std::vector<float> first = d.step({{0, prompt}});
  d.evaluator.reset(0);
  CHECK(d.evaluator.length(0) == 0);
  CHECK(d.step({{0, prompt}}) == first);

  Decoder fails;
  bool broken = false;
  fails.evaluator = Evaluator(fails.module, [&](const std::string& name, const WeightDecl& decl) -> std::optional<std::vector<float>> {
    if (decl.default_value || (broken && name == "lm_head.weight")) return std::nullopt;
    return made_up_weights(name, decl, fails.module.dims);
  });
  broken = true;
  const Result<eval::Batch> batch = fails.evaluator.batch({{0, 3}}, Outputs::all);
  auto out = fails.evaluator.run("forward", {{"input_ids", index_array({3}, {7, 7, 7})}, {"at", *batch}});
  REQUIRE_FALSE(out.ok());
  CHECK(out.error().kind == "missing-weight");
  CHECK(out.error().message == "there is no data for lm_head.weight");
  CHECK(fails.evaluator.length(0) == 0);
  broken = false;
  CHECK(fails.step({{0, prompt}}) == first);                         // the three rows that were appended are gone
}

TEST_CASE("traces name values as a hook would") {
  Decoder d;
  std::vector<std::string> paths;
  std::map<std::string, Array> last;
  d.evaluator.set_trace([&](const std::string& path, const Array& value) {
    paths.push_back(path);
    last[path] = value;
  });
  const std::vector<float> logits = d.step({{0, prompt}});
  for (const char* path :
       {"model.embed_tokens", "model.h", "model.layers.0", "model.layers.0.input_layernorm", "model.layers.1.self_attn",
        "model.layers.2.self_attn.q_proj", "model.layers.2.self_attn.q", "model.layers.2.self_attn.rope", "model.layers.0.self_attn.y",
        "model.layers.1.h", "model.layers.1.mlp", "model.layers.1.mlp.up_proj", "model.norm", "model", "lm_head"}) {
    CAPTURE(path);
    CHECK(last.contains(path));
  }
  CHECK(last["lm_head"].reals == logits);
  CHECK(last["model"].reals == last["model.norm"].reals);
  CHECK(last["model.layers.2.self_attn.q"].shape == eval::Shape{10, 4, 4});
  CHECK(last["model.h"].reals == last["model.layers.2"].reals);
  for (const std::string& p : paths) CHECK(p.find("freqs") == std::string::npos);      // consts are no stages
  CHECK(paths.front() == "model.embed_tokens");
}

TEST_CASE("consts are computed in f32, step by step") {
  Decoder d;
  const Result<Array> freqs = d.evaluator.constant("model.layers.1.self_attn.rope.freqs");
  REQUIRE(freqs.ok());
  const float theta = 10000.0f;
  CHECK(freqs->reals == std::vector<float>{1.0f, 1.0f / std::pow(theta, 1.0f * 2.0f / 4.0f)});
  CHECK_FALSE(d.evaluator.constant("model.layers.1.self_attn.rope.factors").ok());
}

TEST_CASE("the decoder against its formula, layer 0 written out") {
  Decoder d;
  std::map<std::string, Array> at;
  d.evaluator.set_trace([&](const std::string& path, const Array& value) { at[path] = value; });
  d.step({{0, prompt}});
  const std::string l = "model.layers.0.";
  auto weight = [&](const std::string& name) {
    for (const WeightInstance& w : weight_instances(d.module))
      if (w.name == name) return *made_up_weights(name, *w.decl, d.module.dims);
    return std::vector<float>{};
  };
  // q of token 5, head 3: linear, then rope by position 5 on (0, 2) and (1, 3).
  const std::vector<float> w = weight(l + "self_attn.q_proj.weight"), b = weight(l + "self_attn.q_proj.bias");
  REQUIRE(w.size() == 128);
  const Array& x = at[l + "input_layernorm"];
  double q[4];
  for (std::size_t i = 0; i < 4; ++i) {
    q[i] = b[12 + i];
    for (std::size_t j = 0; j < 8; ++j) q[i] += double{x.reals[5 * 8 + j]} * w[(12 + i) * 8 + j];
  }
  const double angle[2] = {5.0, 0.05};
  const Array& turned = at[l + "self_attn.q"];
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(turned.reals[(5 * 4 + 3) * 4 + i] == doctest::Approx(q[i] * std::cos(angle[i]) - q[i + 2] * std::sin(angle[i])).epsilon(1e-5));
    CHECK(turned.reals[(5 * 4 + 3) * 4 + i + 2] ==
          doctest::Approx(q[i + 2] * std::cos(angle[i]) + q[i] * std::sin(angle[i])).epsilon(1e-5));
  }
  // The residual.
  const Array &embedded = at["model.embed_tokens"], &mixed = at[l + "self_attn"], &h = at[l + "h"], &mlp = at[l + "mlp"],
              &out = at["model.layers.0"];
  for (std::size_t i = 0; i < h.reals.size(); ++i) {
    CHECK(h.reals[i] == embedded.reals[i] + mixed.reals[i]);
    CHECK(out.reals[i] == h.reals[i] + mlp.reals[i]);
  }
}

TEST_CASE("inputs are checked against their types") {
  Decoder d;
  const Result<eval::Batch> batch = d.evaluator.batch({{0, 3}}, Outputs::all);
  REQUIRE(batch.ok());
  auto error = [&](const std::map<std::string, eval::Input>& in) {
    auto out = d.evaluator.run("forward", in);
    REQUIRE_FALSE(out.ok());
    return out.error();
  };
  const Error range = error({{"input_ids", index_array({3}, {1, 11, 2})}, {"at", *batch}});
  CHECK(range.kind == "index-range");
  CHECK(range.message == "input_ids is index(11)[tokens], and has 11 at 1, not in 0..11");
  CHECK(error({{"input_ids", index_array({3}, {1, -1, 2})}, {"at", *batch}}).kind == "index-range");
  CHECK(error({{"input_ids", index_array({4}, {1, 2, 3, 4})}, {"at", *batch}}).message ==
        "input_ids is [4], wanted index(11)[tokens]: axis 0 is 3");
  CHECK(error({{"input_ids", array({3}, {1, 2, 3})}, {"at", *batch}}).message == "input_ids is f32[3], wanted index(11)[tokens]");
  CHECK(error({{"input_ids", index_array({3, 1}, {1, 2, 3})}, {"at", *batch}}).kind == "input");
  CHECK(error({{"at", *batch}}).message == "the input input_ids is missing");
  CHECK(error({{"input_ids", *batch}, {"at", *batch}}).message == "input_ids must be a tensor, not a Batch");
  CHECK(error({{"input_ids", index_array({3}, {1, 2, 3})}, {"at", *batch}, {"mask", *batch}}).message == "forward has no input mask");
  auto nothing = d.evaluator.run("encode", {});
  REQUIRE_FALSE(nothing.ok());
  CHECK(nothing.error().message == "Tiny has no function encode");
}

TEST_CASE("batches are checked") {
  Decoder d;
  auto error = [&](std::initializer_list<Evaluator::Next> next) {
    const Result<eval::Batch> b = d.evaluator.batch(next, Outputs::all);
    return b ? std::string("made") : b.error().message;
  };
  CHECK(error({{0, 65}}) == "slot 0 would have 65 tokens, the context is 64");
  CHECK(error({{0, 1}, {0, 1}}) == "slot 0 is there twice");
  CHECK(error({{0, 0}}) == "slot 0 has no new token");
  CHECK(error({}) == "a batch needs at least one sequence");
  CHECK(error({{0, INT64_MAX}}) != "made");
  CHECK(error({{0, 64}}) == "made");

  eval::Batch b = *d.evaluator.batch({{0, 2}, {1, 1}}, Outputs::last);
  CHECK(b.positions == std::vector<std::int64_t>{0, 1, 0});
  CHECK(b.lengths == std::vector<std::int64_t>{2, 2, 1});
  CHECK(b.sequence == std::vector<std::int64_t>{0, 0, 1});
  CHECK(b.outputs == std::vector<std::int64_t>{1, 2});
  CHECK(b.last == std::vector<std::int64_t>{1, 2});
  auto run = [&](const eval::Batch& batch) {
    auto out = d.evaluator.run("forward", {{"input_ids", index_array({3}, {1, 2, 3})}, {"at", batch}});
    return out ? std::string("ran") : out.error().message;
  };
  eval::Batch bad = b;
  bad.positions[0] = 1;
  CHECK(run(bad) == "the batch's positions do not agree with its segments");
  bad = b;
  bad.outputs = {3};
  CHECK(run(bad) == "outputs has row 3, there are 3");
  bad = b;
  bad.outputs = {};
  CHECK(run(bad) == "ran");                                          // outputs may be none
  CHECK(run(b) == "slot 0 has 2 tokens, the batch goes on at 0");
}

TEST_CASE("weights are checked") {
  const Module m = parsed(tiny_decoder_text());
  Evaluator e(m, [](const std::string&, const WeightDecl&) { return std::vector<float>{1, 2}; });
  const Result<eval::Batch> batch = e.batch({{0, 1}}, Outputs::all);
  auto out = e.run("forward", {{"input_ids", index_array({1}, {1})}, {"at", *batch}});
  REQUIRE_FALSE(out.ok());
  CHECK(out.error().message == "model.embed_tokens.weight is f32[11, 8], and its data has 2 elements");
}

TEST_CASE("a graph with faults is not run") {
  Module m = parsed(tiny_decoder_text());
  m.classes.back().functions[0].body.ops.pop_back();
  Evaluator e(m, no_weights);
  auto out = e.run("forward", {});
  REQUIRE_FALSE(out.ok());
  CHECK(out.error().kind == "graph");
  CHECK(out.error().notes.size() >= 1);
}

TEST_CASE("inputs with a default, axes from shapes, several results") {
  const std::string text = module_text("%x: f32[batch, seq], %keep: bool[batch, seq] default 1.0, %scale: f32[] default 2.0",
                                       "%m: f32[batch] = mean(%x, %keep)\n%y: f32[batch] = mul(%m, %scale)\nreturn %m as \"mean\", %y");
  const auto both = outputs_of(text, {{"x", array({2, 2}, {1, 3, 5, 7})}});
  CHECK(both[0].reals == std::vector<float>{2, 6});
  CHECK(both[1].reals == std::vector<float>{4, 12});
  const auto given =
      outputs_of(text, {{"x", array({2, 2}, {1, 3, 5, 7})}, {"keep", eval::bool_array({2, 2}, {1, 0, 0, 1})}, {"scale", array({}, {3})}});
  CHECK(given[1].reals == std::vector<float>{3, 21});
  CHECK(run_error(text, {{"x", array({2, 2}, {1, 3, 5, 7})}, {"keep", eval::bool_array({2, 3}, {1, 0, 0, 1, 1, 1})}}).kind == "input");
  CHECK(run_error(text, {{"x", array({0, 2}, {})}}).message == "x makes batch 0, wanted 1..");
}

TEST_CASE("ranges of axes are kept") {
  std::string text = module_text("%x: f32[frames]", "return %x");
  text.insert(text.find("class"), "axis frames: 2..6 by 2\n");
  CHECK(outputs_of(text, {{"x", array({4}, {1, 2, 3, 4})}})[0].reals.size() == 4);
  CHECK(run_error(text, {{"x", array({3}, {1, 2, 3})}}).message == "x makes frames 3, wanted 2..6 by 2");
  CHECK(run_error(text, {{"x", array({8}, std::vector<float>(8))}}).kind == "input");
}

TEST_CASE("sizes are bounded") {
  const std::string text = module_text("%x: f32[seq]", "%y: f32[1000000000] = arange(count: 1000000000)\nreturn %y");
  CHECK(run_error(text, {{"x", array({1}, {1})}}).kind == "size");
  const std::string unbound = module_text("%x: f32[seq]", "%y: f32[batch] = arange(count: \"batch\")\nreturn %y");
  CHECK(run_error(unbound, {{"x", array({1}, {1})}}).message == "arange is f32[batch], and the size of batch is not known in this call");
}

TEST_CASE("a model without state starts at 0 each time") {
  const std::string text = module_text("%at: Batch",
                                       "%p: i32[tokens] = batch_field(%at; field: \"positions\")\n"
                                       "%l: i32[tokens] = batch_field(%at; field: \"lengths\")\n"
                                       "%s: index(batch)[tokens] = batch_field(%at; field: \"sequence\")\n"
                                       "%n: index(tokens)[batch] = batch_field(%at; field: \"last\")\n"
                                       "return %p, %l, %s, %n");
  const Module m = parsed(text);
  Evaluator e(m, no_weights);
  for (int i = 0; i < 2; ++i) {
    auto out = e.run("forward", {{"at", *e.batch({{0, 2}, {7, 1}}, Outputs::all)}});
    REQUIRE(out.ok());
    CHECK((*out)[0].value.integers == std::vector<std::int64_t>{0, 1, 0});
    CHECK((*out)[1].value.integers == std::vector<std::int64_t>{2, 2, 1});
    CHECK((*out)[2].value.integers == std::vector<std::int64_t>{0, 0, 1});
    CHECK((*out)[3].value.integers == std::vector<std::int64_t>{1, 2});
  }
}

TEST_CASE("loops over leaves, loops within loops, entries of grandchildren") {
  const std::string text = R"(graph 1
module T root T
axis tokens: 1..
class Scale: Scale leaf {
  weight weight: f32[] vector
}
class Block: Block {
  children parts: [Scale * 2]
  entry twice(%x: f32[tokens]) {
    %y: f32[tokens], %z: f32[tokens] = call "".both(%x)
    return %y
  }
  forward forward(%x: f32[tokens]) {
    %y: f32[tokens] = repeat "parts"(%x) {
      carry %h: f32[tokens]
      %w: f32[] = weight ".weight"
      %m: f32[tokens] stage "." = mul(%h, %w)
      next %m
    }
    return %y
  }
}
class T: T {
  children blocks at "b": [Block * 2]
  forward forward(%x: f32[tokens]) {
    %y: f32[tokens] = repeat "blocks"(%x) {
      carry %h: f32[tokens]
      %a: f32[tokens] = call "".forward(%h)
      %b: f32[tokens] = repeat ".parts"(%a) {
        carry %c: f32[tokens]
        %w: f32[] = weight ".weight"
        %d: f32[tokens] = add(%c, %w)
        next %d
      }
      next %b
    }
    return %y
  }
}
)";
  std::string good = text;
  good.erase(good.find("  entry twice"), good.find("  forward forward") - good.find("  entry twice"));
  CHECK(faults_of(text).find("there is no loop") != std::string::npos);
  const Module m = parsed(good);
  const std::map<std::string, float> weights = {
      {"b.0.parts.0.weight", 2.0f}, {"b.0.parts.1.weight", 3.0f}, {"b.1.parts.0.weight", 5.0f}, {"b.1.parts.1.weight", 7.0f}};
  Evaluator e(m, [&](const std::string& name, const WeightDecl&) { return std::vector<float>{weights.at(name)}; });
  std::vector<std::string> paths;
  e.set_trace([&](const std::string& path, const Array&) { paths.push_back(path); });
  auto out = e.run("forward", {{"x", array({1}, {1})}});
  REQUIRE(out.ok());
  CHECK((*out)[0].value.reals[0] == (1 * 2 * 3 + 2 + 3) * 5 * 7 + 5 + 7);
  CHECK(std::find(paths.begin(), paths.end(), "b.1.parts.0") != paths.end());
  CHECK(std::find(paths.begin(), paths.end(), "b.0") != paths.end());
}

}  // namespace modelc::graph::test

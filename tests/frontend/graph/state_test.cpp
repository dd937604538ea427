// States that go token by token, over several calls: what begins, what goes on, what is refused. What they compute is
// compared with other implementations in op_cases.json.
#include <doctest/doctest.h>

#include "frontend/graph/eval/evaluator.h"
#include "tests/frontend/graph/support.h"

namespace modelc::graph::test {

using namespace eval;

namespace {

// y[t] = x[t] + 10 x[t - 1] + 100 x[t - 2], and the index that i must be afterwards.
const std::string sums = R"(graph 1
module T root T
axis tokens: 1..
axis outputs: 0..
axis batch: 1..
class T: T {
  state ring: ring[2, 1]
  forward forward(%x: f32[tokens, 1], %i: f32[tokens], %at: Batch) {
    %w: f32[1, 3] = tensor_literal(values: [100.0, 10.0, 1.0], shape: [1, 3])
    %y: f32[tokens, 1] = causal_conv1d "ring"(%x, %w, _, %at)
    %k: index(2)[tokens] = cast(%i; dtype: "i32")
    return %y, %k
  }
  entry other(%at: Batch) {
    %p: i32[tokens] = batch_field(%at; field: "lengths")
    return %p
  }
}
)";

class Sums {
 public:
  Sums() : module_(parsed(sums)), evaluator_(module_, no_weights) {}
  Result<std::vector<Output>> step(std::initializer_list<Evaluator::Next> next, std::vector<float> x, float index = 0) {
    const auto n = static_cast<std::int64_t>(x.size());
    auto batch = evaluator_.batch(next, Outputs::all);
    REQUIRE(batch.ok());
    return evaluator_.run(
        "forward",
        {{"x", array({n, 1}, std::move(x))}, {"i", array({n}, std::vector<float>(static_cast<std::size_t>(n), index))}, {"at", *batch}});
  }
  std::vector<float> values(std::initializer_list<Evaluator::Next> next, std::vector<float> x) {
    auto out = step(next, std::move(x));
    if (!out) FAIL(out.error().text());
    return (*out)[0].value.reals;
  }
  Evaluator& evaluator() { return evaluator_; }

 private:
  Module module_;
  Evaluator evaluator_;
};

using Floats = std::vector<float>;

}  // namespace

TEST_CASE("a ring goes on where each sequence stopped, however the calls are cut") {
  Sums s;
  CHECK(s.values({{0, 3}, {4, 1}}, {1, 2, 3, 7}) == Floats{1, 12, 123, 7});
  CHECK(s.values({{4, 2}, {0, 1}}, {8, 9, 4}) == Floats{78, 789, 234});
  CHECK(s.values({{0, 1}}, {5}) == Floats{345});
}

TEST_CASE("a sequence that is started anew begins with zeros, and no other does") {
  Sums s;
  CHECK(s.values({{0, 2}, {1, 2}}, {1, 2, 3, 4}) == Floats{1, 12, 3, 34});
  s.evaluator().reset(0);
  CHECK(s.values({{0, 1}, {1, 1}}, {5, 6}) == Floats{5, 346});
}

TEST_CASE("a call that fails leaves the states as they were") {
  Sums s;
  CHECK(s.values({{0, 2}}, {1, 2}) == Floats{1, 12});
  const auto failed = s.step({{0, 1}, {1, 1}}, {9, 9}, 5);                     // 5 is no index below 2, after the ring
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().kind == "integer-range");
  CHECK(s.evaluator().length(0) == 2);
  CHECK(s.values({{0, 1}, {1, 1}}, {3, 4}) == Floats{123, 4});
}

TEST_CASE("a state that has not seen what came before does not go on") {
  Sums s;
  REQUIRE(s.evaluator().run("other", {{"at", *s.evaluator().batch({{0, 2}}, Outputs::all)}}).ok());
  const auto failed = s.step({{0, 1}}, {9});
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().message == "causal_conv1d: slot 0 goes on at position 2, but the state ring has seen 0 tokens of it");
}

TEST_CASE("a state goes over the tokens of a call once") {
  const auto faults = [](const std::string& body) {
    std::string text = module_text("%x: f32[tokens, 3], %w: f32[3, 4], %at: Batch", body + "return %x",
                                   "state ring: ring[3, 3]\nchildren parts: [Part * 2]");
    text.insert(text.find("class T"), "class Part: Part leaf {\n}\n");
    return faults_of(text);
  };
  const std::string once = "%a: f32[tokens, 3] = causal_conv1d \"ring\"(%x, %w, _, %at)\n";
  const std::string again = "%b: f32[tokens, 3] = causal_conv1d \"ring\"(%a, %w, _, %at)\n";
  CHECK(faults(once).empty());
  CHECK(faults(once + again).find("the state \"ring\" goes over the same tokens twice") != std::string::npos);
  const std::string in_loop = "%l: f32[tokens, 3] = repeat \"parts\"(%x) {\ncarry %h: f32[tokens, 3]\n" + once + "next %a\n}\n";
  CHECK(faults(in_loop).find("the state \"ring\" goes over the same tokens twice") != std::string::npos);
}

TEST_CASE("a cache is given the rows of a call's tokens once: in a text, through a child, in a loop") {
  const auto text = [](const std::string& body) {
    std::string t = module_text("%x: f32[tokens, 1, 3], %at: Batch", body + "return %x",
                                "state cache: kv_cache[1, 3, 3]\nchild part: Part\nchildren parts: [Part * 2]");
    t.insert(t.find("class T"),
             "class Part: Part {\n  state own: kv_cache[1, 3, 3]\n  forward forward(%x: f32[tokens, 1, 3], "
             "%at: Batch) {\n    append \"own\"(%x, %x, %at)\n    return %x\n  }\n}\n");
    return t;
  };
  const auto faults = [&](const std::string& body) { return faults_of(text(body)); };
  const auto twice = [](const std::string& state) { return "the state \"" + state + "\" goes over the same tokens twice"; };
  const std::string append = "append \"cache\"(%x, %x, %at)\n";
  const auto call = [](const std::string& name, const std::string& member) {
    return "%" + name + ": f32[tokens, 1, 3] = call \"" + member + "\".forward(%x, %at)\n";
  };
  const auto loop = [&](const std::string& name, const std::string& body, const std::string& next) {
    return "%" + name + ": f32[tokens, 1, 3] = repeat \"parts\"(%x) {\ncarry %h" + name + ": f32[tokens, 1, 3]\n" + body + "next %" + next +
           "\n}\n";
  };
  CHECK(faults(append + call("a", "part") + call("b", "parts.0") + call("c", "parts.1")).empty());
  CHECK(faults(append + append).find(twice("cache")) != std::string::npos);
  CHECK(faults(call("a", "part") + call("b", "part")).find(twice("part.own")) != std::string::npos);
  CHECK(faults(loop("l", append, "hl")).find(twice("cache")) != std::string::npos);
  CHECK(faults(loop("l", call("a", ""), "a")).empty());
  CHECK(faults(loop("l", call("a", "part"), "a")).find(twice("part.own")) != std::string::npos);
  CHECK(faults(loop("l", call("a", ""), "a") + loop("m", call("b", ""), "b")).find(twice("parts.0.own")) != std::string::npos);
  CHECK(faults(loop("l", call("a", ""), "a") + call("b", "parts.1")).find(twice("parts.1.own")) != std::string::npos);

  // The evaluator runs no graph with a fault.
  const Module m = parsed(text(append + append));
  Evaluator e(m, no_weights);
  const auto out = e.run("forward", {{"x", array({1, 1, 3}, {1, 2, 3})}, {"at", *e.batch({{0, 1}}, Outputs::all)}});
  REQUIRE_FALSE(out.ok());
  CHECK(out.error().text().find(twice("cache")) != std::string::npos);
}

TEST_CASE("states are bounded, and have a shape") {
  const auto faults = [](const std::string& state) {
    return faults_of(module_text("%x: f32[tokens, 3], %at: Batch", "return %x", "state s: " + state));
  };
  CHECK(faults("ring[3, 3]").empty());
  CHECK(faults("recurrent[3]").empty());
  CHECK(faults("ring[3]").find("has 1 sizes, wanted 2 to 8") != std::string::npos);
  CHECK(faults("recurrent[]").find("has 0 sizes, wanted 1 to 8") != std::string::npos);
  CHECK(faults("latent_cache[3]").find("has 1 sizes, wanted 2") != std::string::npos);
  CHECK(faults("recurrent[2000000, 2000000]").find("has more than 2^40 elements for one sequence") != std::string::npos);

  // What the graph allows may still be more than the evaluator holds.
  const std::string large = module_text("%q: f32[tokens, 1, 30000], %g: f32[tokens, 1], %at: Batch",
                                        "%y: f32[tokens, 1, 30000] = gated_delta \"s\"(%q, %q, %q, %g, %g, %at; scale: 1.0)\nreturn %y",
                                        "state s: recurrent[1, 30000, 30000]");
  const Module m = parsed(large);
  Evaluator e(m, no_weights);
  const auto out =
      e.run("forward",
            {{"q", array({1, 1, 30000}, std::vector<float>(30000))}, {"g", array({1, 1}, {0})}, {"at", *e.batch({{0, 1}}, Outputs::all)}});
  REQUIRE_FALSE(out.ok());
  CHECK(out.error().message == "the state s is too large");
}

}  // namespace modelc::graph::test

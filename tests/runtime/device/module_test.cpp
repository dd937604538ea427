#include "tests/runtime/device/llama_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

std::vector<std::string> names_of(const std::vector<NamedModule>& modules) {
  std::vector<std::string> names;
  for (const NamedModule& m : modules) names.push_back(m.name);
  return names;
}
std::vector<std::string> names_of(const std::vector<NamedParameter>& parameters) {
  std::vector<std::string> names;
  for (const NamedParameter& p : parameters) names.push_back(p.name);
  return names;
}

struct Leaf : Module {
  Weight weight;
  explicit Leaf(const WeightSpec& spec) : weight{spec} {}
  const char* type_name() const override { return "Leaf"; }
  void members(MemberVisitor& v) override { v.weight("weight", weight); }
};
// Members under other paths, as `at` gives them.
struct Renamed : Module {
  Leaf plain{WeightSpec{}}, dotted{WeightSpec{}}, flat{WeightSpec{}};
  Weight own;
  StateSlot cache;
  const char* type_name() const override { return "Renamed"; }
  void members(MemberVisitor& v) override {
    v.child("plain", plain);
    v.child("a.b", dotted);
    v.child("", flat);
    v.weight("x.own", own);
    v.state("cache", cache);
  }
};

}  // namespace

TEST_CASE("the tree of modules, in declared order, with the names of the checkpoint") {
  const auto llama = random_llama();
  CHECK(names_of(llama->children()) == std::vector<std::string>{"model", "lm_head"});
  CHECK(names_of(llama->model.children()) == std::vector<std::string>{"embed_tokens", "layers.0", "layers.1", "norm"});
  const auto below = names_of(llama->descendants());
  REQUIRE(below.size() == 2 + 2 + 2 * (1 + 4 + 5 + 3));
  CHECK(below[0] == "model");
  CHECK(below[1] == "model.embed_tokens");
  CHECK(below[2] == "model.layers.0");
  CHECK(below[3] == "model.layers.0.input_layernorm");
  CHECK(below[4] == "model.layers.0.self_attn");
  CHECK(below[5] == "model.layers.0.self_attn.q_proj");
  CHECK(below.back() == "lm_head");
  CHECK(llama->qualified_name().empty());
  CHECK(llama->model.layers[1].self_attn.k_proj.qualified_name() == "model.layers.1.self_attn.k_proj");
  CHECK(std::string(llama->descendants()[4].module->type_name()) == "LlamaAttention");
}

TEST_CASE("parameters: own ones and all, named below the module that is asked") {
  const auto llama = random_llama();
  CHECK(llama->local_parameters().empty());
  CHECK(names_of(llama->lm_head.local_parameters()) == std::vector<std::string>{"weight"});
  const auto all = llama->parameters();
  CHECK(all.size() == 23);
  CHECK(all[0].name == "model.embed_tokens.weight");
  CHECK(all.back().name == "lm_head.weight");
  CHECK(names_of(llama->model.layers[1].mlp.parameters()) ==
        std::vector<std::string>{"gate_proj.weight", "up_proj.weight", "down_proj.weight"});
  CHECK(all.back().weight == &llama->lm_head.weight);
}

TEST_CASE("a child without path gives its members to its parent") {
  Renamed m;
  CHECK(names_of(m.children()) == std::vector<std::string>{"plain", "a.b"});
  CHECK(names_of(m.local_parameters()) == std::vector<std::string>{"weight", "x.own"});
  CHECK(names_of(m.parameters()) == std::vector<std::string>{"weight", "x.own", "plain.weight", "a.b.weight"});
}

// The text form: printed, read back, and read when it is wrong.
#include <doctest/doctest.h>

#include <random>

#include "frontend/graph/ops.h"
#include "frontend/graph/printer.h"
#include "frontend/graph/reader.h"
#include "frontend/graph/types.h"
#include "frontend/graph/verifier.h"
#include "tests/frontend/graph/support.h"

namespace modelc::graph::test {

namespace {

std::string error_of(std::string_view text) {
  const Result<Module> m = read(text);
  return m ? "read" : m.error().text();
}
bool contains(const std::string& s, std::string_view part) { return s.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a decoder reads and prints back to the same bytes") {
  const std::string text = tiny_decoder_text();
  const Module m = parsed(text);
  CHECK(print(m) == text);
  CHECK(m.name == "Tiny");
  CHECK(m.context == 64);
  CHECK(m.of(m.root).name == "Tiny");
  CHECK(m.config.size() == 4);
  CHECK(std::get<bool>(m.config[3].value));
  const Class& decoder = m.classes[m.root.index - 1];
  REQUIRE(decoder.children.size() == 3);
  CHECK(decoder.children[1].elements.size() == 3);
  CHECK(decoder.children[1].elements[0] == decoder.children[1].elements[1]);
  CHECK_FALSE(decoder.children[1].elements[0] == decoder.children[1].elements[2]);
  CHECK(decoder.functions[0].body.ops[2].source.empty());
  REQUIRE(decoder.functions[0].body.ops[2].body.has_value());
  CHECK(decoder.functions[0].body.ops[2].body->ops[0].source == "layer(h, at)");
}

TEST_CASE("instances of weights come in declared order with their full names") {
  const Module m = parsed(tiny_decoder_text());
  const std::vector<WeightInstance> all = weight_instances(m);
  std::vector<std::string> names;
  for (const WeightInstance& w : all) names.push_back(w.name);
  REQUIRE(names.size() == 1 + 3 * (1 + 5 + 1 + 1 + 3) + 1 + 1);
  CHECK(names[0] == "model.embed_tokens.weight");
  CHECK(names[1] == "model.layers.0.input_layernorm.weight");
  CHECK(names[2] == "model.layers.0.self_attn.q_proj.weight");
  CHECK(names[3] == "model.layers.0.self_attn.q_proj.bias");
  CHECK(names[7] == "model.layers.0.self_attn.rope.factors");
  CHECK(names.back() == "lm_head.weight");
  CHECK(all[7].decl->default_value == 1.0);
}

TEST_CASE("places and sources may be left out") {
  const std::string text = print(parsed(tiny_decoder_text()), {.places = false});
  CHECK_FALSE(contains(text, "source"));
  CHECK_FALSE(contains(text, " @ "));
  CHECK(contains(text, "stage \"q_proj\""));
  CHECK(print(parsed(text)) == text);
}

TEST_CASE("everything that a module holds survives") {
  Module m;
  m.name = "a model";                            // not an identifier
  m.file = "x \"y\"\n\\.model";
  add_prelude_axes(m.dims);
  const DimId frames = m.dims.of_axis(m.dims.add_axis({.name = "frames", .lo = 2, .hi = 3000, .by = 2}));
  m.config = {
      {"n", "int", std::int64_t{3}}, {"x", "float", 3.0}, {"y", "float", 1e300 * 1e10}, {"s", "string", "a\"b\x01"}, {"b", "bool", false}};
  CheckpointRules rules;
  rules.aliases = {{"a.b", "c", "", "", "f:1:2"}, {"d", "e", "c.tied", "tied = false from config.json:4", ""}};
  rules.ignores = {{"**.x"}, {"y.{i}", "i in 3..", "f:2:2"}, {"made", "", "f:2:3", "a.const"}};
  rules.sets = {{"f:3:3", {"each", "stacked"}}};
  rules.maps = {{.file = {"file.{i}"}, .model = {"model.{i}"}, .where = "f:3:4"},
                {.file = {"a", "b"}, .model = {"c"}, .via = "concat(0, [1, 2])", .only = "1 in 0..3", .set = 0, .alternative = 1},
                {.file = {}, .model = {"n.weight"}, .via = "offset(-1)"}};
  rules.encodes = {{.pattern = "**",
                    .only = "",
                    .name = "e(1)",
                    .axes = "... n",
                    .parts = {{"codes", "{name}", "u8", "(... n)"}},
                    .value = "(f32 codes)"}};
  CheckpointRules other;
  other.format = "gguf";
  other.architecture = "some";
  m.checkpoints = {rules, other};
  m.policy = {{"compute", false, DType::bf16}, {"**.norm", true, DType::f32}};
  m.placement = {{"model.layers", 0, 16, "vulkan:12", "x \"y\".model:135:5"},
                 {"a.b", 3, {}, "cpu", ""},
                 {"c", {}, 4, "vulkan:0", ""},
                 {"**", {}, {}, "cpu", "f:1:2"}};
  Class leaf;
  leaf.name = leaf.definition = "Leaf";
  leaf.leaf = true;
  WeightDecl w;
  w.name = "weight";
  w.path = "";
  w.type = tensor(DType::bf16, {m.dims.constant(2)});
  w.required_dtype = DType::bf16;
  w.default_value = -0.5;
  w.origins = {"one", "two"};
  leaf.weights = {w};
  leaf.order = {{'w', 0}};
  m.classes.push_back(leaf);

  Class c;
  c.name = "Whole";
  c.definition = "whole thing";
  c.states = {{"ring", StateKind::ring, {3, 8}, std::nullopt, {}}, {"cross", StateKind::cross_cache, {4, 2, 8}, 9, {"f", 7, 8}}};
  c.children = {
      {"one", "", false, {ClassId{0}}, {}}, {"many", "m.any", true, {ClassId{0}, ClassId{0}}, {}}, {"empty", "empty", true, {}, {}}};
  c.order = {{'m', 2}, {'s', 0}, {'m', 0}, {'s', 1}, {'m', 1}};
  Function f;
  f.name = "strange";
  f.kind = FunctionKind::entry;
  f.signature = "entry strange(…)";
  f.values = {{index_tensor(m.dims.floor_div(frames, 4), {frames, m.dims.constant(3)}), "x", ""},
              {Type{TypeKind::sequences, DType::f32, {}, {}}, "at", ""},
              {tensor(DType::boolean, {}), "has space", "one"},
              {tensor(DType::f32, {}), "x", ""},
              {tensor(DType::f32, {}), "", ""},
              {tensor(DType::f32, {}), "_", ""},
              {tensor(DType::f32, {}), "", ""},
              {tensor(DType::f32, {}), "", ""}};
  f.inputs = {{ValueId{0}, "x", std::nullopt}, {ValueId{1}, "other name", std::nullopt}, {ValueId{2}, "has space", 1.0}};
  Op all;
  all.kind = OpKind::e2m1;
  all.operands = {ValueId{0}, std::nullopt, ValueId{2}};
  all.results = {ValueId{3}, ValueId{4}};
  all.attrs = {{"a", std::int64_t{-7}},
               {"b", 0.1},
               {"c", true},
               {"d", std::string("\\\"\n")},
               {"e", std::vector<std::int64_t>{}},
               {"f", std::vector<std::int64_t>{1, -2}},
               {"g", std::vector<double>{}},
               {"h", std::vector<double>{1, -1.5, 1e-320}},
               {"i", -std::numeric_limits<double>::infinity()},
               {"odd name", std::int64_t{INT64_MAX}}};
  all.where = {"f.model", 3, 4};
  Op own;
  own.kind = OpKind::custom;
  own.operands = {ValueId{3}};
  own.results = {ValueId{6}};
  own.body = Block{{ValueId{7}}, {}, {ValueId{7}}};
  own.custom =
      Custom{"odd name", {frames, m.dims.constant(3)}, {{0, 32, {m.dims.floor_div(frames, 32)}}, {1, 1, {frames, frames, frames}}}};
  m.shaders = {{"odd name", "a b.comp", "#version 450\n\"x\" \\ ü\tmain", {"float16", "odd"}, {"f.model", 3, 4}}, {"f", "c", "", {}, {}}};
  Op loop;
  loop.kind = OpKind::repeat;
  loop.member = ".many";
  loop.operands = {ValueId{3}};
  loop.results = {ValueId{5}};
  loop.body = Block{};
  f.body.ops = {all, own, loop};
  f.body.results = {ValueId{4}, ValueId{3}};
  f.result_names = {"", "y"};
  c.functions = {f};
  m.classes.push_back(c);
  m.root = ClassId{1};

  const std::string text = print(m);
  INFO(text);
  const Module back = parsed(text);
  CHECK(print(back) == text);
  CHECK(back.file == m.file);
  CHECK(back.classes[1].order == std::vector<std::pair<char, std::uint32_t>>{{'m', 0}, {'s', 0}, {'m', 1}, {'s', 1}, {'m', 2}});
  CHECK(back.checkpoints[0].aliases[1].because == "tied = false from config.json:4");
  CHECK(back.classes[0].weights[0].path.empty());
  CHECK(back.classes[0].weights[0].origins == w.origins);
  CHECK(back.classes[1].functions[0].body.ops[0].attrs == all.attrs);
  CHECK(back.classes[1].functions[0].body.ops[0].operands == all.operands);
  CHECK(back.classes[1].functions[0].values[2].name == "has space");
  CHECK(back.classes[1].functions[0].values[7].name == "_");
  CHECK(back.classes[1].functions[0].body.ops[1].custom->name == "odd name");
  CHECK(back.classes[1].functions[0].body.ops[1].custom->dispatches.size() == 2);
  REQUIRE(back.placement.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(back.placement[i].pattern == m.placement[i].pattern);
    CHECK(back.placement[i].first == m.placement[i].first);
    CHECK(back.placement[i].end == m.placement[i].end);
    CHECK(back.placement[i].device == m.placement[i].device);
    CHECK(back.placement[i].where == m.placement[i].where);
  }
  CHECK(back.shaders[0].text == m.shaders[0].text);
  CHECK(back.shaders[0].required == m.shaders[0].required);
  CHECK(graph::text(back.classes[1].functions[0].values[0].type, back.dims) == "index(div(frames, 4))[frames, 3]");
  CHECK(std::get<double>(back.config[1].value) == 3.0);
  CHECK(back.dims.axes().back().by == 2);
}

TEST_CASE("an invalid module prints, and what it prints is refused") {
  Module m = parsed(tiny_decoder_text());
  m.root = ClassId{77};
  m.classes[0].order.clear();
  Class& last = m.classes.back();
  last.children[0].elements[0] = ClassId{99};
  last.functions[0].body.ops[0].operands[0] = ValueId{1000};
  last.functions[0].body.ops[1].kind = static_cast<OpKind>(9999);
  last.functions[0].inputs[0].value = ValueId{1001};
  CHECK_FALSE(read(print(m)).ok());
}

TEST_CASE("errors name the line") {
  CHECK(contains(error_of(""), "line 1: `graph` is missing before the end"));
  CHECK(contains(error_of("graph 2"), "form 1"));
  CHECK(contains(error_of("graph 1\nmodule A root B"), "line 2: there is no class B"));
  const std::pair<const char*, const char*> cases[] = {
      {"%y: f32[2] = nag(%x)\nreturn %y", "line 10: there is no operation nag"},
      {"%y: f32[2] = neg(%z)\nreturn %y", "line 10: the value %z is not known here"},
      {"%x: f32[2] = neg(%x)\nreturn %x", "line 10: the value %x is there already"},
      {"%y: f33[2] = neg(%x)\nreturn %y", "`f33` is no type"},
      {"%y: f32[heads] = neg(%x)\nreturn %y", "line 10: `heads` is no dim"},
      {"%y: f32[2] = neg(%x; a: 1, a: 2)\nreturn %y", "the argument a is there already"},
      {"%y: f32[2] = neg(%x; a: [1, 2.0])\nreturn %y", "with and without a point"},
      {"%y: f32[2] = neg(%x; a: \"", "a word that cannot be read"},
      {"%y: f32[2] = neg(%x; a: \"\\q\")\nreturn %y", "a word that cannot be read"},
      {"%y: f32[2] = neg(%x; a: 99999999999999999999)\nreturn %y", "a word that cannot be read"},
      {"%y: f32[2] = neg(%x", "is missing before"},
      {"%y: f32[2] = neg %z)\nreturn %y", "line 10: `:` is missing before `)`"},
      {"return %x as x", "a string is missing"},
      {"%y: index(-5 +)[2] = neg(%x)\nreturn %y", "is no dim"},
      {"%y: f32[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1] = neg(%x)\nreturn %y", "too many axes"},
  };
  for (const auto& [body, message] : cases) {
    const std::string error = error_of(module_text("%x: f32[2]", body));
    INFO(error);
    CHECK(contains(error, message));
  }
  const std::pair<const char*, const char*> members[] = {
      {"children a: [T * 99999999]", "too many elements"},           {"children a: [Nothing]", "line 8: there is no class Nothing"},
      {"child a: T * 2", "a member or a function is wanted"},        {"state s: kv_store[1]", "`kv_store` is no kind of state"},
      {"const c: f32[2] = nothing", "there is no function nothing"}, {"weight w: f32[2] matrx", "`vector` is missing before `matrx`"},
      {"weight w: f32[2] vector dtype f99", "not a dtype"},          {"weight w: f32[2] vector @ \"f\":99999999999:1", "too large"},
  };
  for (const auto& [member, message] : members) {
    const std::string error = error_of(module_text("%x: f32[2]", "return %x", member));
    INFO(error);
    CHECK(contains(error, message));
  }
  CHECK(contains(error_of("graph 1\nmodule A root A\naxis a: 1..\naxis a: 1.."), "line 4: the axis a is there already"));
  CHECK(contains(error_of("graph 1\nmodule A root A\naxis a: 5..3"), "empty or negative range"));
  CHECK(contains(error_of("graph 1\nmodule A root A\nclass A: A {}\nclass A: A {}"), "line 4: the class A is there already"));
}

TEST_CASE("nesting is bounded") {
  std::string body = "%a: f32[2] = neg(%x)\n";
  for (int i = 0; i < 10000; ++i) body += "repeat \"a\"() {\n";
  CHECK(contains(error_of(module_text("%x: f32[2]", body)), "nested too deep"));
  CHECK(contains(error_of("graph 1\nmodule A root A\nclass A: A { weight w: f32[" + std::string(10000, '(') + "] matrix }"), "is no dim"));
}

TEST_CASE("no text brings the reader, the verifier or the printer down") {
  const std::string text = tiny_decoder_text();
  for (std::size_t n = 0; n < text.size(); n += 31) CHECK_FALSE(read(std::string_view(text).substr(0, n)).ok());
  std::mt19937 rng(3);
  const std::string alphabet = "{}()[],:;=*.@+-%\"_ \n0129azf\\/";
  const std::vector<std::string> words = {"\"layers\"",
                                          "%h",
                                          "%1",
                                          "f32[tokens, 8]",
                                          "repeat",
                                          "call",
                                          "\"\"",
                                          "99",
                                          "Attention",
                                          "child",
                                          "next",
                                          "return",
                                          "index(tokens)[batch]",
                                          "Batch",
                                          "weight",
                                          "attend",
                                          "carry %q: f32[2]"};
  int whole = 0, sound = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string bad = text;
    for (int edits = static_cast<int>(rng() % 3) + 1; edits > 0; --edits) {
      const std::size_t at = rng() % bad.size();
      switch (rng() % 4) {
        case 0: bad[at] = alphabet[rng() % alphabet.size()]; break;
        case 1: bad.erase(at, rng() % 12); break;
        case 2: bad.insert(at, words[rng() % words.size()]); break;
        default: {
          const std::size_t from = rng() % bad.size();
          bad.insert(at, bad.substr(from, rng() % 60));
        }
      }
    }
    if (const Result<Module> m = read(bad)) {
      ++whole;
      sound += verify(*m).empty() ? 1 : 0;
      CHECK(print(*read(print(*m))) == print(*m));
    }
  }
  CHECK(whole > 50);                             // the edits reach beyond the reader
  CHECK(sound < whole);
}

}  // namespace modelc::graph::test

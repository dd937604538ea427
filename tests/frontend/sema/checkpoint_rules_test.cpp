// Checkpoint blocks, joined; and the sections of a model.
#include <doctest/doctest.h>

#include "modules_support.h"

using namespace modelc;
using namespace modelc::sema::test;

namespace {

constexpr std::string_view members =
    "emb: Embedding(9, c.d)  layers: [Block(c.d) for i in 0..3]  head: Linear(c.d, 9)  extra: Linear(c.d, c.d) if "
    "c.tied\n"
    "forward(x: index(9)[tokens]) { let h = emb(x)  for l in layers { h = l(h) }  return head(extra(h) if c.tied else "
    "h) }\n";

Model with_rules(std::string_view rules, std::string_view block = "", std::string_view tied = "false") {
  Model m(around("d: dim  tied: bool = false", std::string(members) + std::string(rules),
                 "module Block(n: dim) { p: Linear(n, n)  norm: RMSNorm(n, eps: 1e-5)\n forward(x: [tokens, n]) -> "
                 "[tokens, n] { return p(norm(x)) }\n" +
                     std::string(block) + " }"));
  m.config("{\n \"d\": 4,\n \"tied\": " + std::string(tied) + " }");
  return m;
}

graph::CheckpointRules rules(std::string_view text, std::string_view block = "", std::string_view tied = "false") {
  Model m = with_rules(text, block, tied);
  const auto& all = m.good().graph.checkpoints;
  REQUIRE(!all.empty());
  CHECK(all[0].format == "safetensors");
  return all[0];
}

}  // namespace

TEST_CASE("aliases by name, and those that the configuration turns off with the reason") {
  const auto on = rules("checkpoint safetensors { alias head.weight = emb.weight when c.tied }", "", "true");
  REQUIRE(on.aliases.size() == 1);
  CHECK(on.aliases[0].weight == "head.weight");
  CHECK(on.aliases[0].target == "emb.weight");
  CHECK(on.aliases[0].when.empty());
  CHECK(has(on.aliases[0].where, "main.model:12:"));
  const auto off = rules("checkpoint safetensors { alias head.weight = emb.weight when c.tied }");
  REQUIRE(off.aliases.size() == 1);
  CHECK(off.aliases[0].when == "c.tied");
  CHECK(has(off.aliases[0].because, "tied = false from config.json:3"));
}

TEST_CASE("an alias with an index stands for each") {
  const auto all = rules("checkpoint safetensors { alias layers.{i}.norm.weight = layers.0.norm.weight }");
  REQUIRE(all.aliases.size() == 2);                        // layers.0 is no alias of itself
  CHECK(all.aliases[1].weight == "layers.2.norm.weight");
}

TEST_CASE("ignores and renames, in the model and below, with the instance's path") {
  const auto all = rules("checkpoint safetensors { ignore **.inv_freq, \"*_bias\"  transformer.h.{i} = layers.{i}  wte = emb }",
                         "checkpoint safetensors { dense = p  ignore masked_bias }");
  REQUIRE(all.ignores.size() == 3);
  CHECK(all.ignores[0].pattern == "**.inv_freq");
  CHECK(all.ignores[1].pattern == "*_bias");
  CHECK(all.ignores[2].pattern == "transformer.h.{1}.masked_bias");   // the three layers are one class, and have one rule
  CHECK(all.ignores[2].only == "1 in 0..2");
  REQUIRE(all.maps.size() == 3);
  CHECK(all.maps[0].file[0] == "transformer.h.{i}");
  CHECK(all.maps[0].model[0] == "layers.{i}");
  CHECK(all.maps[2].file[0] == "transformer.h.{1}.dense");
  CHECK(all.maps[2].model[0] == "layers.{1}.p");
  CHECK(all.maps[2].only == "1 in 0..2");
}

TEST_CASE("a const that a file holds: read by none, made by a writer") {
  const std::string made = "const ones: f32[c.d] = arange(c.d) * 0.0 + 1.0\n";
  const auto all = rules(made + "checkpoint safetensors { file.ones = ones  file.ids = ones when c.tied }");
  REQUIRE(all.ignores.size() == 1);
  CHECK(all.ignores[0].pattern == "file.ones");
  CHECK(all.ignores[0].made_of == "ones");
  CHECK(all.maps.empty());
  const auto wrong = [&](const std::string& rule) { return with_rules(made + "checkpoint safetensors { " + rule + " }").messages(); };
  CHECK(has(wrong("a.{i} = ones"), "would write several"));
  CHECK(has(wrong("[a, b] = ones via concat(0, [1, 3])"), "one tensor"));
  CHECK(has(wrong("a = ones via transpose(0, 0)"), "is written as it is"));
  CHECK(has(with_rules("const ids: i32[c.d] = arange(c.d) as i32\ncheckpoint safetensors { a = ids }").messages(),
            "a const of whole numbers"));
}

TEST_CASE("where an outer rule speaks of one element, the elements are read each for itself") {
  const auto all = rules("checkpoint safetensors { first = layers.0 }", "checkpoint safetensors { dense = p }");
  REQUIRE(all.maps.size() == 4);
  CHECK(all.maps[1].file[0] == "first.dense");
  CHECK(all.maps[2].file[0] == "layers.1.dense");
  CHECK(all.maps[2].only.empty());
}

TEST_CASE("a rule on an absent weight is void; a condition that is false makes it so too") {
  CHECK(rules("checkpoint safetensors { alias extra.weight = emb.weight  alias head.bias = extra.bias }").aliases.empty());
  CHECK(rules("checkpoint safetensors { a = emb when c.tied  ignore b when c.tied }").maps.empty());
}

TEST_CASE("a derived block joins the base's, a rule replacing the one for the same; override starts anew") {
  const auto joined = [](std::string_view derived) {
    Model n("import base\nimport nn.linear\nconfig D extends C { }\nmodel M(c: D) extends Base(c) { " + std::string(derived) + " }");
    n.file("base.model",
           "import nn.linear\nconfig C { d: dim }\nmodel Base(c: C) { a: Linear(c.d, c.d)  b: Linear(c.d, c.d)\n"
           " forward(x: [tokens, c.d]) { return b(a(x)) }\n checkpoint safetensors { one = a  ignore q  alias b.weight "
           "= a.weight } }\n");
    return n.config(R"({"d": 4})").good().graph.checkpoints[0];
  };
  const auto replaced = joined("checkpoint safetensors { two = a  ignore r }");
  REQUIRE(replaced.maps.size() == 1);
  CHECK(replaced.maps[0].file[0] == "two");
  CHECK(replaced.ignores.size() == 2);
  CHECK(replaced.aliases.size() == 1);
  const auto anew = joined("override checkpoint safetensors { two = a }");
  CHECK(anew.ignores.empty());
  CHECK(anew.aliases.empty());
  CHECK(joined("remove checkpoint safetensors").maps.empty());
}

TEST_CASE("encode with plain is nothing, with an encoding its shapes and its value as lists") {
  const std::string q = "encode \"**\" as stored(c.q) }";
  const auto model = [&](std::string_view json) {
    Model m(around("d: dim  q: Quantization?",
                   "p: Linear(c.d, c.d)  forward(x: [tokens, c.d]) { return p(x) }  checkpoint safetensors { " + q,
                   "import nn.quantization"));
    m.config(json);
    return m.good().graph.checkpoints[0].encodes;
  };
  CHECK(model(R"({"d": 4})").empty());
  const auto fp8 = model(R"({"d": 4, "q": {"quant_method": "fp8", "weight_block_size": [128, 64]}})");
  REQUIRE(fp8.size() == 1);
  CHECK(fp8[0].pattern == "**");
  CHECK(fp8[0].name == "fp8_block(128, 64)");
  CHECK(fp8[0].axes == "... n k");
  REQUIRE(fp8[0].parts.size() == 2);
  CHECK(fp8[0].parts[1].at == "{name}_scale_inv");
  CHECK(fp8[0].parts[1].dtype == "f32");
  CHECK(fp8[0].parts[1].shape == "(... (ceil_div n 128) (ceil_div k 64))");
  CHECK(fp8[0].value == "(* (f32 codes) (slice (repeat (repeat scales 128 -2) 64 -1) -2 0 n -1 0 k))");
  const auto mxfp4 = model(R"({"d": 4, "q": {"quant_method": "mxfp4"}})");
  REQUIRE(mxfp4.size() == 1);
  CHECK(mxfp4[0].parts[0].shape == "(... (/ k 32) 16)");
  CHECK(mxfp4[0].value == "(shape (* (e2m1 (nibbles blocks)) (exp2 (- (f32 (shape scales 1 (/ k 32) 1)) 127))) 2 -1)");
}

TEST_CASE("transforms with their arguments worked out, for safetensors and for GGUF") {
  for (const char* format : {"safetensors", "gguf"}) {
    CAPTURE(std::string(format));
    Model m = with_rules("checkpoint " + std::string(format) +
                         " { t.{i} = layers.{i}.p via transpose(0, 1), reshape([c.d / 2, c.d * 2]) when i >= 1 and i < c.d - 2\n"
                         "[a, b] = head.weight via concat(0, [2 * c.d, 1])  for RMSNorm { weight via offset(-1) }\n"
                         "e.{e}.w = emb.weight via stack(e) }");
    const auto& all = m.good().graph.checkpoints;
    const auto& maps = std::string(format) == "gguf" ? all.at(1).maps : all.at(0).maps;
    REQUIRE(maps.size() == 4);
    CHECK(maps[0].via == "transpose(0, 1), reshape([2, 8])");
    CHECK(maps[0].only == "i in 1..; i in 0..1");
    CHECK(maps[1].file == std::vector<std::string>{"a", "b"});
    CHECK(maps[1].via == "concat(0, [8, 1])");
    CHECK(maps[2].file.empty());
    CHECK(maps[2].model[0] == "layers.{1}.norm.weight");
    CHECK(maps[2].via == "offset(-1)");
    CHECK(maps[2].only == "1 in 0..2");
    CHECK(maps[3].via == "stack(e)");
  }
}

TEST_CASE("the sets of a one_of, shared by the instances of a module") {
  const auto all = rules("", "checkpoint safetensors { one_of { bare { }  short { q = p } } }");
  REQUIRE(all.sets.size() == 1);
  CHECK(all.sets[0].alternatives == std::vector<std::string>{"bare", "short"});
  REQUIRE(all.maps.size() == 1);
  CHECK(all.maps[0].set == 0);
  CHECK(all.maps[0].alternative == 1);
}

TEST_CASE("conditions on an index bound it; an alias asks for each weight") {
  const auto all = rules(
      "checkpoint safetensors { ignore x.{i}.** when i >= 3 and i != 5\n"
      "alias layers.{i}.norm.weight = layers.0.norm.weight when i == 2 }");
  REQUIRE(all.ignores.size() == 1);
  CHECK(all.ignores[0].only == "i in 3..; i in 0..4,6..");
  REQUIRE(all.aliases.size() == 1);
  CHECK(all.aliases[0].weight == "layers.2.norm.weight");
  CHECK(with_rules("checkpoint safetensors { ignore x.{i}.{j} when i == j }").codes() == "E0432");
  CHECK(with_rules("checkpoint safetensors { ignore x.{i} when i % 2 == 0 }").codes() == "E0432");
}

TEST_CASE("E0430: rules that name nothing, with the nearest name") {
  Model m = with_rules("checkpoint safetensors { alias head.weight = emb.wieght }");
  CHECK(m.codes() == "E0430");
  CHECK(has(m.messages(), "did you mean `emb.weight`?"));
  CHECK(with_rules("checkpoint safetensors { alias haed.weight = emb.weight }").codes() == "E0430");
  CHECK(with_rules("checkpoint safetensors { a = layers.{i}.q }").codes() == "E0430");
  CHECK(with_rules("checkpoint gguf { a = hed }").codes() == "E0430");
  CHECK(with_rules("", "checkpoint gguf { a = pp }").codes() == "E0430");
  CHECK(with_rules("checkpoint gguf { config { widht = arch.x } }").codes() == "E0430");
  CHECK(with_rules("checkpoint safetensors { alias layers.{i}.p.weight = emb.{i} }").codes() == "E0430");
}

TEST_CASE("E0431: an alias between unlike shapes says both") {
  Model m = with_rules("checkpoint safetensors { alias head.weight = layers.0.p.weight }");
  CHECK(m.codes() == "E0431");
  CHECK(has(m.messages(), "`head.weight` is [9, d] = [9, 4]"));
  CHECK(has(m.messages(), "`layers.0.p.weight` is [d, d] = [4, 4]"));
  CHECK(has(m.messages(), "d = 4 from config.json:2"));
}

TEST_CASE("E0432: rules that say nothing") {
  CHECK(with_rules("checkpoint onnx { }").codes() == "E0432");
  CHECK(with_rules("checkpoint gguf { a = head via trnaspose(0, 1) }").codes() == "E0432");
  CHECK(with_rules("checkpoint gguf { a = head via transpose(0) }").codes() == "E0432");
  CHECK(with_rules("checkpoint safetensors { config { d = arch.x } }").codes() == "E0432");
  CHECK(with_rules("checkpoint safetensors { encode \"**\" as 3 }").codes() == "E0432");
  CHECK(with_rules("checkpoint safetensors { a.* = layers.{i} }").codes() == "E0432");
  CHECK(rules("checkpoint safetensors { a = layers.{i} }").maps.size() == 1);   // an index only in the model: all are that tensor
  CHECK(with_rules("checkpoint safetensors { x.{i} = head }").codes() == "E0432");
  CHECK(with_rules("checkpoint safetensors { x = head via stack(e) }").codes() == "E0432");
  CHECK(with_rules("checkpoint safetensors { [a, b] = head }").codes() == "E0432");
  CHECK(with_rules("checkpoint safetensors { a = [head.weight, emb.weight] }").codes() == "E0432");
  CHECK(with_rules("checkpoint safetensors { emb.weight via stack(e) }").codes() == "E0432");
  CHECK(with_rules("checkpoint safetensors { a = emb via cast(f99) }").codes() == "E0432");
  CHECK(with_rules("checkpoint safetensors { a = emb via reshape(c.d) }").codes() == "E0432");
  CHECK(with_rules("checkpoint safetensors { a = emb via transpose(0, c.tied) }").codes() == "E0432");
  CHECK(with_rules("checkpoint safetensors { one_of { a { ignore x }  b { } } }").codes() == "E0432");
  Model fits = with_rules("checkpoint safetensors { a = head.weight via deinterleave_rope_rows(2) }");
  CHECK(fits.codes() == "E0432");
  CHECK(has(fits.messages(), "deinterleave_rope_rows(2): [9, 4] is not whole heads: 2 of them"));
  CHECK(with_rules("checkpoint gguf { for C { weight via offset(1) } }").codes() == "E0432");
}

TEST_CASE("conditions are checked, in gguf blocks too") {
  CHECK(with_rules("checkpoint safetensors { ignore a when c.d }").codes() == "E0310");
  CHECK(with_rules("checkpoint gguf { ignore a when c.d }").codes() == "E0310");
  CHECK(with_rules("checkpoint gguf { ignore a when c.teid }").codes() == "E0315");
  CHECK(with_rules("checkpoint gguf { alias head.weight = emb.weight when undeclared }").codes() == "E0301");
}

TEST_CASE("a base's rule on a member that the derived module removed is void") {
  Model m(
      "import nn.linear\nconfig C { d: dim }\nmodule A(n: dim) { p: Linear(n, n)  forward(x: [tokens, n]) { return "
      "p(x) }\n"
      " checkpoint gguf { pp = p } }\nmodule B(n: dim) extends A(n) { remove p  q: Linear(n, n)  override forward(x: "
      "[tokens, n]) { return q(x) } }\n"
      "model M(c: C) { b: B(c.d)  forward(x: [tokens, c.d]) { return b(x) } }");
  CHECK(m.config(R"({"d": 4})").codes().empty());
}

TEST_CASE("sections are checked, and a note says which take effect elsewhere or later: `quantize` and `shard`") {
  Model m = with_rules(
      "policy { compute: bf16  residual: f32  **.norm: f32 }  quantize { layers.*.p: q8_0 or file  head, \"**.x\": "
      "never below f16 }\n"
      "shard { c.d over tensor_parallel }  place { layers[0..2]: gpu(0)  \"**\": gpu(1) }");
  const auto& notes = m.good().notes;
  REQUIRE(notes.size() == 2);
  for (const std::string& note : notes)
    CHECK(has(note, has(note, "`quantize`") ? "takes effect in `modelc convert" : "takes effect in a later version"));
  CHECK(has(notes[0], "main.model:"));
}

TEST_CASE("place: each line is data of the graph, and what it comes to is said") {
  Model m = with_rules("place { layers[c.d - 4..div(c.d, 2)]: gpu(1)  layers[2..]: cpu(0)  \"layers.*.norm\": gpu(7)  head: gpu(0) }");
  const std::vector<PlaceRule>& placement = m.good().graph.placement;
  REQUIRE(placement.size() == 4);
  const auto shown = [&](std::size_t i) {
    const auto end = [](const std::optional<std::int64_t>& e) { return e ? std::to_string(*e) : "-"; };
    return placement[i].pattern + " " + end(placement[i].first) + " " + end(placement[i].end) + " " + placement[i].device;
  };
  CHECK(shown(0) == "layers 0 2 vulkan:1");
  CHECK(shown(1) == "layers 2 - cpu");
  CHECK(shown(2) == "layers.*.norm - - vulkan:7");
  CHECK(shown(3) == "head - - vulkan:0");
  CHECK(placement[0].where == "main.model:12:9");
  CHECK(placement[3].where.starts_with("main.model:12:"));
  CHECK(m.good().notes.empty());
  REQUIRE(m.good().facts.size() == 1);
  CHECK(m.good().facts[0] ==
        "main.model:12:1: `place`: `layers[0..2]` on gpu(1): 4 weights; `layers[2..]` on cpu(0): 2 weights; "
        "`layers.*.norm` on gpu(7): 0 weights; `head` on gpu(0): 1 weight; by no line, so on the CPU: 1 weight");
  CHECK(with_rules("place { \"**\": gpu(0) }").good().facts[0].ends_with("`**` on gpu(0): 8 weights"));
  CHECK(with_rules("").good().facts.empty());
  CHECK(with_rules("").good().graph.placement.empty());
}

TEST_CASE("E0433: devices that place cannot name") {
  Model m = with_rules("place { head: cpu(1) }");
  CHECK(m.codes() == "E0433");
  CHECK(has(m.messages(), "there is one CPU device, cpu(0)"));
  CHECK(has(m.messages(), "help: write cpu(0)"));
  CHECK(has(m.messages(), "main.model:12:19"));
  CHECK(has(with_rules("place { head: gpu(1024) }").messages(), "a GPU has a number up to 1023, not 1024"));
  CHECK(with_rules("place { head: gpu(1023) }").good().graph.placement[0].device == "vulkan:1023");
}

TEST_CASE("E0433: a range of place goes past the list, or ends before it begins") {
  for (const char* range : {"0..4", "2..1", "0-1..1", "1..9"}) {
    CAPTURE(std::string(range));
    Model m = with_rules("place { layers[" + std::string(range) + "]: gpu(0)  \"**\": gpu(1) }");
    CHECK(m.codes() == "E0433");
    CHECK(has(m.messages(),
              range[1] == '-' ? "the range begins at -1, and the first element is 0" : "`layers` has 3 elements in this configuration"));
  }
  for (const char* range : {"0..2", "1..3", "0..0", "1.."}) {
    CAPTURE(std::string(range));
    CHECK(with_rules("place { layers[" + std::string(range) + "]: gpu(0) }").codes().empty());
  }
  // A list that another configuration has: its length is not known, its ends are.
  CHECK(with_rules("place { extra[5..9]: gpu(0) }").codes().empty());
  CHECK(has(with_rules("place { extra[2..1]: gpu(0) }").messages(), "the range 2..1 ends before it begins"));
  CHECK(has(with_rules("place { extra[0-2..]: gpu(0) }").messages(), "the range begins at -2"));
}

TEST_CASE("a derived model's section replaces its base's") {
  Model n(
      "import base\nimport nn.linear\nconfig D extends C { }\nmodel M(c: D) extends Base(c) { policy { compute: f32 } "
      "place { a: gpu(2) } }");
  n.file("base.model",
         "import nn.linear\nconfig C { d: dim }\nmodel Base(c: C) { a: Linear(c.d, c.d)  forward(x: [tokens, c.d]) { "
         "return a(x) }\n"
         " policy { nobody: f32 } place { nobody: gpu(0)  \"**\": gpu(1) } }\n");
  CHECK(n.config(R"({"d": 4})").codes().empty());
  REQUIRE(n.good().graph.policy.size() == 1);
  CHECK(n.good().graph.policy[0].target == "compute");
  REQUIRE(n.good().graph.placement.size() == 1);
  CHECK(n.good().graph.placement[0].device == "vulkan:2");
}

TEST_CASE("E0433: sections that name nothing") {
  for (const char* section : {"policy { compute: f33 }", "policy { layers.*.nrom: f32 }", "quantize { head: q9_0 }",
                              "quantize { haed: q8_0 }", "place { lyers[0..2]: gpu(0) }", "place { layers[0..1.5]: gpu(0) }",
                              "shard { c.tied over tensor_parallel }", "shard { c.d over tensor_paralel }", "place { head: gup(0) }"}) {
    CAPTURE(std::string(section));
    CHECK(with_rules(section).codes() == "E0433");
  }
  CHECK(has(with_rules("policy { layers.*.nrom: f32 }").messages(), "did you mean `norm`?"));
}

namespace {

// Two sizes of heads over one weight, `w` of them in one product; `off` is what a condition leaves out.
Model sharded(const std::string& factors, std::string_view config, const std::string& weights = "a: Linear(c.d, c.heads * c.d)") {
  Model m(around("d, heads, kv: dim  inner: dim = 8  steps: int  off: bool = false",
                 weights +
                     "  gone: Linear(c.inner, c.d) if c.off\nlet width = c.heads * c.d  fused: Linear(c.d, width)\n"
                     "forward(x: [tokens, c.d]) { let y = fused(x)  return x * float(c.steps + c.kv) }\nshard { " +
                     factors + " over tensor_parallel }"));
  m.config(config);
  return m;
}
constexpr std::string_view sizes = R"({"d": 4, "heads": 4, "kv": 3, "steps": 5})";

}  // namespace

TEST_CASE("shard: a factor that some weight has says nothing but that it takes effect later") {
  for (const char* factor : {"c.d", "c.heads", "width", "c.heads, c.d"}) {
    CAPTURE(std::string(factor));
    Model m = sharded(factor, sizes);
    INFO(m.messages());
    REQUIRE(m.program().has_value());
    CHECK(m.program()->notes.size() == 1);
  }
}

TEST_CASE("shard: what no text uses in a size is an error; what this configuration has on no axis, a note") {
  Model never = sharded("c.steps", sizes);
  CHECK(never.codes() == "E0433");
  CHECK(has(never.messages(), "`c.steps` is in no size of a weight"));
  CHECK(has(never.messages(), "name a value that the shape of some `param` is made of"));
  Model none = sharded("c.inner", sizes);
  REQUIRE(none.program().has_value());
  REQUIRE(none.program()->notes.size() == 2);
  CHECK(has(none.program()->notes[0], "no weight of this configuration has an axis with the factor `c.inner`"));
  Model there = sharded("c.inner", R"({"d": 4, "heads": 4, "kv": 3, "steps": 5, "off": true})");
  REQUIRE(there.program().has_value());
  CHECK(there.program()->notes.size() == 1);
}

TEST_CASE("shard: the nearest name of an axis") {
  Model m(around("size, sizes: dim",
                 "a: Linear(c.size, c.size)  forward(x: [tokens, c.size]) { return a(x) * float(c.sizes) }\n"
                 "shard { c.sizes over tensor_parallel }"));
  CHECK(has(m.config(R"({"size": 4, "sizes": 4})").messages(), "did you mean `size`?"));
}

TEST_CASE("E0434: an axis that has the factor in one part of a sum divides all the same, or is refused") {
  const std::string fused = "qkv: Linear(c.d, (c.heads + 2 * c.kv) * c.d)";
  Model uneven = sharded("c.heads", R"({"d": 5, "heads": 4, "kv": 3, "steps": 5})", fused);
  CHECK(uneven.codes().find("E0434") == 0);
  CHECK(has(uneven.messages(), "is no multiple of it: 50 by 4"));
  CHECK(has(uneven.messages(), "(heads + 2 * kv) * d = (4 + 2 * 3) * 5 = 50"));
  CHECK(has(uneven.messages(), "heads = 4 from"));
  CHECK(sharded("c.heads", R"({"d": 5, "heads": 4, "kv": 2, "steps": 5})", fused).program().has_value());
}

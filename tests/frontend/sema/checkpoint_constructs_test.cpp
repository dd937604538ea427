// Checkpoint blocks, encodings and sections: of every construct a text with it and one without, on a file of real tensors.
// What comes out is each weight's numbers, what the plan makes of them backwards, notes and messages.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "constructs_support.h"
#include "modules_support.h"
#include "runtime/base/json.h"
#include "runtime/base/metadata.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/weight_data.h"

using namespace modelc;
using namespace modelc::sema::test;

namespace {

struct Tensor {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  double first = 1;                              // its elements are first, first + 1, …
};

std::int64_t count(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// A folder with a model.safetensors of these, removed with the object.
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("modelc_constructs_" + std::to_string(::getpid()));

  explicit Folder(const std::vector<Tensor>& tensors) {
    std::filesystem::create_directories(path);
    std::string header = "{", data;
    for (const Tensor& t : tensors) {
      const std::size_t begin = data.size();
      for (std::int64_t i = 0; i < count(t.shape); ++i) {
        if (t.dtype == "F32") {
          const float v = static_cast<float>(t.first) + static_cast<float>(i);
          data.append(reinterpret_cast<const char*>(&v), 4);
        } else if (t.dtype == "I8") {
          data += static_cast<char>(static_cast<int>(t.first) + i);
        } else {
          FAIL("dtype");
        }
      }
      std::string shape;
      for (const std::int64_t d : t.shape) shape += (shape.empty() ? "" : ",") + std::to_string(d);
      header += (header == "{" ? "\"" : ",\"") + t.name + "\":{\"dtype\":\"" + t.dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
                std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
    }
    header += "}";
    const std::uint64_t size = header.size();
    std::ofstream out(path / "model.safetensors", std::ios::binary);
    out.write(reinterpret_cast<const char*>(&size), 8);
    out << header << data;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

std::string numbers(const std::vector<float>& values) {
  std::string out;
  for (const float v : values) out += " " + std::to_string(v);
  return out;
}

// Of a plan backwards: the weights' elements numbered on, as the file would hold them.
std::string written(const TransformPlan& plan, std::size_t weights) {
  std::vector<HostArray> model;
  float at = 0;
  for (std::size_t i = 0; i < weights; ++i) {
    HostArray a{Encoding::f32, plan.shapes.back()[i], {}};
    a.bytes.resize(static_cast<std::size_t>(count(a.shape)) * 4);
    for (std::int64_t k = 0; k < count(a.shape); ++k, ++at) std::memcpy(a.bytes.data() + 4 * k, &at, 4);
    model.push_back(std::move(a));
  }
  const auto file = to_file(plan, model);
  if (!file) return file.error().text();
  std::string out;
  for (const HostArray& a : *file) {
    std::vector<float> values(a.bytes.size() / 4);
    std::memcpy(values.data(), a.bytes.data(), values.size() * 4);
    out += " |" + numbers(values);
  }
  return out;
}

// Everything that a checkpoint makes of the model's weights.
Outcome loaded(const std::string& text, const std::string& config, const std::vector<Tensor>& tensors) {
  Model m(text);
  m.config(config);
  if (!m.program()) return {false, m.messages()};
  const graph::Module& graph = m.program()->graph;
  std::string out = m.messages();
  for (const std::string& note : m.program()->notes) out += note.substr(note.find(": ")) + "\n";
  const Folder folder(tensors);
  auto opened = open_checkpoint(folder.path.string());
  if (!opened) FAIL(opened.error().text());
  const auto index = std::make_shared<const CheckpointIndex>(std::move(*opened));
  std::vector<MappingWeight> weights;
  for (const graph::WeightInstance& w : graph::weight_instances(graph)) {
    MappingWeight one;
    one.name = w.name;
    for (const graph::DimId d : w.decl->type.shape) one.shape.push_back(graph.dims.value(d).value_or(-1));
    one.dtype = w.decl->required_dtype;
    one.has_default = w.decl->default_value.has_value();
    one.own = w.decl->path;
    weights.push_back(std::move(one));
  }
  const Mapping mapping = map_weights(weights, rules_for(graph.checkpoints, *index), *index, {});
  for (const Problem& p : mapping.problems) out += p.kind + ": " + p.message + "\n";
  for (const std::string& note : mapping.notes) out += note + "\n";
  if (!mapping.problems.empty()) return {false, out};
  CheckpointData data(index);
  bool good = true;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const WeightSource& source = mapping.sources[i];
    out += weights[i].name + ":";
    if (source.kind == WeightSource::Kind::default_value) {
      out += " default\n";
      continue;
    }
    const auto values = read_weight_f32(data, mapping, source, weights[i].shape);
    out += values ? numbers(*values) : values.error().text();
    good = good && values;
    if (source.own) {
      const auto equal = compare_alias(data, mapping, source, weights[i].name, weights[i].shape);
      out += equal ? *equal : equal.error().text();
      good = good && equal;
    }
    if (source.plan) out += "\n  backwards:" + written(*source.plan, source.plan->shapes.back().size());
    out += "\n";
  }
  return {good, out};
}

void check(std::span<const Case> cases, const std::vector<Tensor>& tensors) {
  check_constructs(cases, [&](const std::string& text, const std::string& config) { return loaded(text, config, tensors); });
}

// A model with the weights w [2, 3], v [3] and two layers of w [3] each, and this block.
std::string with_rules(const std::string& rules, const std::string& before = "", const std::string& head = "checkpoint safetensors") {
  return around("t: bool = false",
                "param w: [2, 3]  param v: [3]  layers: [L(3) for i in 0..2]\n"
                "forward(x: [tokens, 3]) { let h = x * v  for l in layers { h = l(h) }  return linear(h, w) if not c.t else h }\n" +
                    head + " { " + rules + " }",
                before + " module L(n: dim) { param w: [n]  forward(x: [tokens, n]) -> [tokens, n] { return x * w } }");
}
std::vector<Tensor> file(std::vector<Tensor> more, bool with_w = true, bool with_v = true) {
  std::vector<Tensor> all = {{"layers.0.w", "F32", {3}, 100}, {"layers.1.w", "F32", {3}, 200}};
  if (with_w) all.push_back({"w", "F32", {2, 3}, 1});
  if (with_v) all.push_back({"v", "F32", {3}, 50});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

TEST_CASE("rules that name") {
  const Case renamed[] = {
      {"a rule", with_rules("«old = w»"), "{}"},
      {"the name in the file", with_rules("«old¦odd» = w"), "{}"},
      {"the name in the model", with_rules("old = «w¦layers.0.w»"), "{}"},
      {"when", with_rules("old = w «when c.t»"), "{}"},
      {"a format", with_rules("old = w", "", "checkpoint «safetensors¦gguf»"), "{}"},
      {"ignore", with_rules("old = w  «ignore v.lost»"), "{}"},
  };
  const std::vector<Tensor> old = file({{"old", "F32", {2, 3}, 7}}, false);
  check(std::span(renamed).first(5), old);
  std::vector<Tensor> lost = old;
  lost.push_back({"v.lost", "F32", {1}});
  check(std::span(renamed).last(1), lost);

  const std::vector<Tensor> two = file({{"a.b.c", "F32", {1}}, {"a.d.c", "F32", {1}}});
  const Case starred[] = {
      {"* of a pattern", with_rules("ignore a.«*¦b».c"), "{}"},           {"** of a pattern", with_rules("ignore «**¦*».c"), "{}"},
      {"* within a component", with_rules("ignore \"a.«*¦b».c\""), "{}"}, {"several ignores", with_rules("ignore a.b.c«, a.d.c»"), "{}"},
      {"when of an ignore", with_rules("ignore **.c «when c.t»"), "{}"},
  };
  check(starred, two);

  const Case prefixes[] = {
      {"a prefix", with_rules("«h.{i} = layers.{i}¦h.{i}.w = layers.{i}.v»"), "{}"},
      {"an index", with_rules("h.«{i}¦0» = layers.«{i}¦0»"), "{}"},
      {"a condition on indices", with_rules("h.{i} = layers.{i} «when i >= 5»"), "{}"},
  };
  check(prefixes, {{"w", "F32", {2, 3}}, {"v", "F32", {3}}, {"h.0.w", "F32", {3}, 10}, {"h.1.w", "F32", {3}, 20}});

  const Case rest[] = {{"the rest of a name", with_rules("x.{«rest*¦rest»}.old = {«rest*¦rest»}.w"), "{}"}};
  check(rest, {{"x.old", "F32", {2, 3}}, {"v", "F32", {3}}, {"x.layers.0.old", "F32", {3}, 10}, {"x.layers.1.old", "F32", {3}, 20}});
  const Case shared[] = {{"an index in the model alone", with_rules("shared = layers.«{i}¦0».w"), "{}"}};
  check(shared, {{"w", "F32", {2, 3}}, {"v", "F32", {3}}, {"shared", "F32", {3}, 10}});
}

TEST_CASE("aliases: absent, equal, different") {
  const Case cases[] = {{"alias", with_rules("«alias layers.1.w = layers.0.w»"), "{}"},
                        {"the target of an alias", with_rules("alias layers.1.w = «layers.0.w¦v»"), "{}"},
                        {"when of an alias", with_rules("alias layers.1.w = layers.0.w «when c.t»"), "{}"}};
  const auto with_second = [](double first) {
    std::vector<Tensor> t = {{"w", "F32", {2, 3}}, {"v", "F32", {3}, 50}, {"layers.0.w", "F32", {3}, 100}};
    if (first != 0) t.push_back({"layers.1.w", "F32", {3}, first});
    return t;
  };
  check(cases, with_second(0));
  check(std::span(cases).first(1), with_second(100));
  check(std::span(cases).first(1), with_second(101));
}

TEST_CASE("transforms, in both directions") {
  const auto via = [](const std::string& text) { return with_rules("old = w via " + text); };
  const Case six[] = {
      {"reshape", via("«reshape([6])»"), "{}"},
      {"reshape's sizes", via("reshape(«[6]¦[3, 2]»)"), "{}"},
  };
  check(six, file({{"old", "F32", {6}}}, false));
  const Case turned[] = {{"transpose", via("«transpose(0, 1)»"), "{}"}, {"transpose's axes", via("transpose(0, «1¦0»)"), "{}"}};
  check(turned, file({{"old", "F32", {3, 2}}}, false));
  const Case same_shape[] = {
      {"offset", with_rules("old = w «via offset(-1)»"), "{}"},
      {"offset's number", via("offset(«2¦3»)"), "{}"},
      {"cast", with_rules("old = w «via cast(bf16)»"), "{}"},
      {"a second transform", via("offset(1)«, offset(2)»"), "{}"},
      {"the order of transforms", via("«transpose(0, 1), reshape([2, 3])¦reshape([2, 3]), reshape([2, 3])»"), "{}"},
      {"deinterleave_rope_rows", with_rules("old = w «via deinterleave_rope_rows(1)»"), "{}"},
  };
  check(same_shape, file({{"old", "F32", {2, 3}, 300.3}}, false));
  const Case negative[] = {{"log_negated", with_rules("old = w «via log_negated()»"), "{}"}};
  check(negative, file({{"old", "F32", {2, 3}, -300.3}}, false));
  const std::string four = "param w: [8, 1]  forward(x: [tokens, 1]) { return linear(x, w) } checkpoint safetensors { old = w via ";
  const Case rope[] = {
      {"the heads of deinterleave_rope_rows", around("", four + "deinterleave_rope_rows(«2¦1») }"), "{}"},
      {"the rows of deinterleave_rope_rows", around("", four + "deinterleave_rope_rows(1«, 4») }"), "{}"},
  };
  check(rope, {{"old", "F32", {8, 1}}});
  const Case stacked[] = {{"stack", with_rules("old.{e} = w «via stack(e)»"), "{}"},
                          {"stack's index", with_rules("old.{e} = w via stack(«e¦f»)"), "{}"}};
  check(stacked, file({{"old.0", "F32", {3}, 10}, {"old.1", "F32", {3}, 20}}, false));
  const Case cut[] = {{"split", with_rules("old = [layers.0.w, layers.1.w] «via split(0)»"), "{}"},
                      {"unzip against split", with_rules("old = [layers.0.w, layers.1.w] via «unzip¦split»(0)"), "{}"}};
  const std::vector<Tensor> one = {{"w", "F32", {2, 3}}, {"v", "F32", {3}}, {"old", "F32", {6}, 10}};
  check(cut, one);
  const Case order[] = {{"the order of several tensors", with_rules("old = [layers.«0¦1».w, layers.«1¦0».w] via split(0)"), "{}"}};
  check(order, one);
  const Case joined[] = {{"concat", with_rules("[a, b] = w «via concat(0, [1, 1])»"), "{}"},
                         {"concat's axis", with_rules("[a, b] = w via concat(«0¦1», [1, 1])"), "{}"},
                         {"concat's sizes", with_rules("[a, b] = w via concat(0, [1, «1¦2»])"), "{}"}};
  check(joined, file({{"a", "F32", {1, 3}, 10}, {"b", "F32", {1, 3}, 20}}, false));
  const Case alone[] = {
      {"a rule without a name in the file", with_rules("«v via offset(1)»"), "{}"},
      {"its condition", with_rules("v via offset(1) «when c.t»"), "{}"},
      {"for a type of module", with_rules("«for L { w via offset(1) }»"), "{}"},
      {"the type of a `for`",
       with_rules("for «L¦K» { w via offset(1) }", "module K(n: dim) { param w: [n] forward(x: [n]) { return w * x } }"), "{}"}};
  check(alone, file({}));
}

TEST_CASE("sets of which one holds") {
  const std::string sets = "one_of { each { e.{i} = w via stack(i) }  whole { whole = w } «plain {}» }";
  const Case plain[] = {{"an alternative without rules", with_rules(sets), "{}"}};
  check(plain, file({}));
  const Case cases[] = {
      {"one_of", with_rules("«one_of { each { e.{i} = w via stack(i) } whole { whole = w } }»"), "{}"},
      {"an alternative", with_rules("one_of { each { e.{i} = w via stack(i) } «whole { whole = w }¦other { other = w }» }"), "{}"}};
  check(cases, file({{"whole", "F32", {2, 3}, 30}}, false));
}

TEST_CASE("blocks of modules, of bases, of derived models") {
  const auto block = [](const std::string& in_module, const std::string& in_model) {
    return around("", "p: P()  forward(x: [tokens, 3]) { return p(x) } checkpoint safetensors { " + in_model + " }",
                  "module P() { param w: [3]  forward(x: [..., 3]) -> [..., 3] { return x * w } " + in_module + " }");
  };
  const Case inner[] = {{"a block in a module", block("«checkpoint safetensors { inner = w }»", ""), "{}"},
                        {"an outer rule", block("checkpoint safetensors { inner = w }", "«outer.w = p.w»"), "{}"}};
  check(std::span(inner).first(1), {{"p.inner", "F32", {3}, 5}});
  check(std::span(inner).last(1), {{"outer.w", "F32", {3}, 5}});
  const auto derived = [](const std::string& more) {
    return "config C { d: dim = 3 } module B(c: C) { param w: [c.d]  forward(x: [tokens, c.d]) { return x * w }\n"
           " checkpoint safetensors { old = w  ignore lost } } model M(c: C) extends B(c) { " +
           more + " }";
  };
  const Case joined[] = {{"a derived rule for the same weight", derived("checkpoint safetensors { «new = w» }"), "{}"},
                         {"override of a block", derived("«override» checkpoint safetensors { new = w }"), "{}"},
                         {"remove of a block", derived("«remove checkpoint safetensors»"), "{}"}};
  check(std::span(joined).first(2), {{"new", "F32", {3}, 5}, {"lost", "F32", {1}}});
  check(std::span(joined).last(1), {{"old", "F32", {3}, 5}});
}

TEST_CASE("encodings of parts") {
  const auto encoded = [](const std::string& encoding, const std::string& rule) {
    return around(
        "t: bool = false",
        "param w: [2, 4]  forward(x: [tokens, 4]) { return linear(x, w) if not c.t else x }  checkpoint safetensors { " + rule + " }",
        encoding);
  };
  const auto pair = [](const std::string& of = "[n, k]", const std::string& scale = "f32[n, 1]",
                       const std::string& value = "codes as f32 * scale") {
    return "encoding pair(times: float = 1.0) of " + of +
           " { part codes at \"{name}_codes\": i8[n, k]  part scale at \"{name}_scale\": " + scale + "  value (" + value + ") * times }";
  };
  const Case cases[] = {
      {"encode", encoded(pair(), "«encode \"**\" as pair()»"), "{}"},
      {"the pattern of encode", encoded(pair(), "encode «w¦x» as pair()"), "{}"},
      {"when of encode", encoded(pair(), "encode w as pair() «when c.t»"), "{}"},
      {"an argument of an encoding", encoded(pair(), "encode w as pair(«2.0»)"), "{}"},
      {"the value of an encoding", encoded(pair("[n, k]", "f32[n, 1]", "codes as f32 «* scale»"), "encode w as pair()"), "{}"},
      {"the shape of a part", encoded(pair("[n, k]", "f32[n, «1¦2»]"), "encode w as pair()"), "{}"},
      {"the dtype of a part", encoded(pair("[n, k]", "«f32¦f16»[n, 1]"), "encode w as pair()"), "{}"},
      {"the axes of an encoding", encoded(pair("[«n, k¦..., n, k»]"), "encode w as pair()"), "{}"},
  };
  check(std::span(cases).first(7), {{"w_codes", "I8", {2, 4}, -3}, {"w_scale", "F32", {2, 1}, 2}});
  const auto stacked = [&](const std::string& of) {
    return around(
        "",
        "param w: [2, 2, 4]  forward(x: [tokens, 4]) { return linear(x, w[0, .., ..]) }  checkpoint safetensors { encode w as stack_of() }",
        "encoding stack_of() of " + of + " { part codes at \"{name}_codes\": i8[" + (of.find("...") == std::string::npos ? "" : "..., ") +
            "n, k]  value codes as f32 }");
  };
  const Case axes[] = {{"... of an encoding", stacked("[«..., »n, k]"), "{}"}};
  check(axes, {{"w_codes", "I8", {2, 2, 4}, -3}});
  const Case at[] = {
      {"where a part lies",
       encoded("encoding one() of [n, k] { part codes at \"{name}«_codes»\": i8[n, k]  value codes as f32 }", "encode w as one()"), "{}"}};
  check(at, {{"w_codes", "I8", {2, 4}, -3}});
}

TEST_CASE("a configuration from a file's metadata") {
  const auto made = [](const std::string& text, const std::string&) -> Outcome {
    source::SourceManager sources;
    diag::Sink sink;
    MetadataBuilder b;
    b.add_string("general.architecture", "some");
    b.add_u32("some.size", 32);
    b.add_u32("some.heads", 4);
    const std::vector<std::string> tokens = {"a", "b"};
    b.add_strings("tokens", tokens);
    const auto imports = sema::load_imports(sources, sources.add("main.model", "language 1\n" + text), {}, sink);
    REQUIRE(imports);
    const auto tree = sema::config_of_metadata(*imports, {b.build(), [](std::string_view t) { return t == "out"; }, "x.gguf"}, sink);
    if (tree) return {true, dump(*tree)};
    std::string said;
    for (const diag::Diagnostic& d : sink.diagnostics()) said += d.message + d.help;
    return {false, said};
  };
  const auto lines = [](const std::string& text, const std::string& head = "gguf \"some\"") {
    return "config C { d: dim } model M(c: C) { forward(x: [tokens, c.d]) { return x } checkpoint " + head + " { config { " + text +
           " } } }";
  };
  const Case cases[] = {
      {"a line", lines("«d = arch.size» ignore arch.size, arch.heads"), ""},
      {"a key path", lines("d«.e» = arch.size ignore arch.heads"), ""},
      {"arch", lines("d = «arch¦other».size ignore arch.size, arch.heads"), ""},
      {"ignore", lines("d = arch.size «ignore arch.heads»"), ""},
      {"several ignores", lines("ignore arch.size«, arch.heads»"), ""},
      {"??", lines("d = arch.gone «?? 7» ignore arch.size, arch.heads"), ""},
      {"has", lines("d = has(«out¦gone») ignore arch.size, arch.heads"), ""},
      {"len", lines("d = «len(tokens)¦2 + 1» ignore arch.size, arch.heads"), ""},
      {"an architecture", lines("d = arch.size ignore arch.heads", "gguf «\"other\"»"), ""},
      // Only writing asks for the condition; to a reader such lines come before the one without.
      {"when of a line", lines("d = arch.size d = arch.heads «when c.d == 1»"), ""},
  };
  check_constructs(cases, made);
}

TEST_CASE("sections: what each line comes to") {
  const auto model = [](const std::string& section) {
    return around(
        "heads: dim = 2  d: dim = 4  n: int = 3",
        "layers: [B(c.heads * c.d) for i in 0..3]  head: Linear(c.heads * c.d, c.d)\n"
        "forward(x: [tokens, c.heads * c.d]) { let h = x  for l in layers { h = l(h) }  return head(h) * float(c.n) }\n" +
            section,
        "module B(n: dim) { p: Linear(n, n)  norm: RMSNorm(n, eps: 1e-5)  forward(x: [tokens, n]) -> [tokens, n] { return p(norm(x)) } }");
  };
  const auto outcome = [](const std::string& text, const std::string& config) -> Outcome {
    Model m(text);
    m.config(config);
    if (!m.program()) return {false, m.messages()};
    std::string out = m.graph();                 // the policy stands in it
    for (const std::string& note : m.program()->notes) out += note.substr(note.find(": ")) + "\n";
    return {true, out};
  };
  const Case cases[] = {
      {"policy", model("«policy { compute: bf16 }»"), "{}"},
      {"a line of policy", model("policy { compute: bf16 «residual: f32» }"), "{}"},
      {"the type of a policy", model("policy { compute: «bf16¦f16» }"), "{}"},
      {"what a policy is for", model("policy { «cache¦state»: f16 }"), "{}"},
      {"a module of a policy", model("policy { «**.norm¦head»: f32 }"), "{}"},
      {"several modules of a policy", model("policy { **.norm«, head»: f32 }"), "{}"},
      {"quantize", model("«quantize { **.p: q8_0 }»"), "{}"},
      {"the target of quantize", model("quantize { «**.p¦head»: q8_0 }"), "{}"},
      {"several targets of quantize", model("quantize { **.p«, head»: q8_0 }"), "{}"},
      {"the type of quantize", model("quantize { **.p: «q8_0¦q4_0» }"), "{}"},
      {"or file", model("quantize { **.p: q8_0 «or file» }"), "{}"},
      {"never below", model("quantize { \"**\": q8_0  head: «never below» f16 }"), "{}"},
      {"later lines of quantize", model("quantize { \"**\": q8_0 «head: q4_0» }"), "{}"},
      {"shard", model("«shard { c.heads over tensor_parallel }»"), "{}"},
      {"a factor", model("shard { «c.heads¦c.d» over tensor_parallel }"), "{}"},
      {"several factors", model("shard { c.heads«, c.d» over tensor_parallel }"), "{}"},
      {"what it is split over", model("shard { c.heads over «tensor_parallel¦expert_parallel» }"), "{}"},
      {"place", model("«place { \"**\": gpu(0) }»"), "{}"},
      {"the target of place", model("place { «head¦layers»: gpu(0) }"), "{}"},
      {"the range of place", model("place { layers«[0..2]»: gpu(0) }"), "{}"},
      {"the end of a range of place", model("place { layers[0..«2¦1»]: gpu(0) }"), "{}"},
      {"a device", model("place { head: «gpu¦cpu»(0) }"), "{}"},
      {"a device's number", model("place { head: gpu(«0¦1») }"), "{}"},
      {"the first match of place", model("place { «head: gpu(1)» \"**\": gpu(0) }"), "{}"},
  };
  check_constructs(cases, outcome);
}

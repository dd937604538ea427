// Where weights come from by rules with transforms, sets and encodings: what the mapping says, and what is then read.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runtime/checkpoint/coded.h"
#include "runtime/checkpoint/mapping_names.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/safetensors/writer.h"
#include "runtime/checkpoint/weight_data.h"

using namespace modelc;

namespace {

// Tensors in a file of this test's own.
class File {
 public:
  File() : path_(std::filesystem::temp_directory_path() / ("modelc-sources-" + std::to_string(getpid()) + ".safetensors")) {}
  ~File() { std::filesystem::remove(path_); }
  File& add(const std::string& name, TensorShape shape, float first = 0) {
    std::vector<float> v(static_cast<std::size_t>(*element_count(shape)));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = first + static_cast<float>(i);
    REQUIRE(writer_.add_f32(name, std::move(shape), v).ok());
    return *this;
  }
  File& bytes(const std::string& name, Encoding e, TensorShape shape, const std::vector<std::uint8_t>& data) {
    REQUIRE(writer_.add(name, *dtype_of(e), std::move(shape), std::as_bytes(std::span(data))).ok());
    return *this;
  }
  const CheckpointIndex& index() {
    if (!index_) {
      REQUIRE(writer_.write(path_.string()).ok());
      auto opened = open_checkpoint(path_.string());
      if (!opened) FAIL(opened.error().text());
      index_ = std::make_shared<const CheckpointIndex>(std::move(*opened));
    }
    return *index_;
  }
  Mapping map(const std::vector<MappingWeight>& weights, const MappingRules& rules) { return map_weights(weights, rules, index(), {}); }
  std::vector<float> read(const Mapping& m, std::size_t i, const TensorShape& shape) {
    CheckpointData data(index_);
    auto v = read_weight_f32(data, m, m.sources[i], shape);
    if (!v) FAIL(v.error().text());
    return *v;
  }

 private:
  std::filesystem::path path_;
  SafetensorsWriter writer_;
  std::shared_ptr<const CheckpointIndex> index_;
};

MappingWeight weight(const std::string& name, TensorShape shape, bool has_default = false) {
  MappingWeight w;
  w.name = name;
  w.shape = std::move(shape);
  w.where = "some.model:3:5";
  w.has_default = has_default;
  return w;
}
std::string texts(const Mapping& m) {
  std::string s;
  for (const Problem& p : m.problems) {
    s += p.kind + "|" + p.message;
    for (const auto& n : p.notes) s += "|" + n;
    s += "\n";
  }
  return s;
}
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a fused tensor is cut into rows that stay where they lie") {
  File f;
  f.add("qkv", {8, 2});
  MappingRules rules;
  rules.maps = {{.file = {"qkv"}, .model = {"q", "k", "v"}, .via = "split(0)"}};
  const std::vector<MappingWeight> weights = {weight("q", {4, 2}), weight("k", {2, 2}), weight("v", {2, 2})};
  const Mapping m = f.map(weights, rules);
  CHECK(texts(m) == "");
  CHECK(m.sources[1].as_stored());
  REQUIRE(m.sources[1].parts.size() == 1);
  CHECK(m.sources[1].parts[0].first == 4);
  CHECK(m.sources[1].parts[0].rows == 2);
  CHECK(f.read(m, 1, {2, 2}) == std::vector<float>{8, 9, 10, 11});
  CHECK(m.notes == std::vector<std::string>{"made by `via split(0)`: q", "made by `via split(0)`: k", "made by `via split(0)`: v"});
}

TEST_CASE("numbered tensors are stacked where they lie; one that lacks is named") {
  File f;
  f.add("l.0.e.0.w", {2, 3}, 0).add("l.0.e.1.w", {2, 3}, 100).add("l.0.e.2.w", {2, 3}, 200);
  MappingRules rules;
  rules.maps = {{.file = {"l.{1}.e.{e}.w"}, .model = {"l.{1}.experts"}, .via = "stack(e)"}};
  const Mapping m = f.map({weight("l.0.experts", {3, 2, 3})}, rules);
  CHECK(texts(m) == "");
  CHECK(m.sources[0].as_stored());
  REQUIRE(m.sources[0].parts.size() == 3);
  CHECK(f.read(m, 0, {3, 2, 3})[6] == 100);
  const std::string lacks = texts(f.map({weight("l.0.experts", {5, 2, 3})}, rules));
  INFO(lacks);
  CHECK(has(lacks, "missing-weight|l.0.experts: of the 5 tensors that make it the checkpoint lacks 2|missing: l.0.e.{3,4}.w"));
  const std::string extra = texts(f.map({weight("l.0.experts", {2, 2, 3})}, rules));
  CHECK(has(extra, "unexpected-tensor|l.0.e.2.w"));
  const std::string wide = texts(f.map({weight("l.0.experts", {3, 2, 4})}, rules));
  INFO(wide);
  CHECK(has(wide, "shape|l.0.experts"));
  CHECK(has(texts(f.map({weight("l.0.experts", {})}, rules)), "layout|l.0.experts: the checkpoint rule does not fit: stack(e)"));
}

TEST_CASE("moves that change the order are made in memory, each weight its own result") {
  File f;
  f.add("gate_up", {1, 2, 4});                             // [E, size, 2 inner], gate and up in turn
  MappingRules rules;
  rules.maps = {{.file = {"gate_up"}, .model = {"gate", "up"}, .via = "transpose(1, 2), unzip(1)"}};
  const Mapping m = f.map({weight("gate", {1, 2, 2}), weight("up", {1, 2, 2})}, rules);
  CHECK(texts(m) == "");
  CHECK_FALSE(m.sources[0].as_stored());
  CHECK(f.read(m, 0, {1, 2, 2}) == std::vector<float>{0, 4, 2, 6});
  CHECK(f.read(m, 1, {1, 2, 2}) == std::vector<float>{1, 5, 3, 7});
  CHECK(has(texts(f.map({weight("gate", {1, 2, 3}), weight("up", {1, 2, 3})}, rules)),
            "expected [1, 3, 4], of which transpose(1, 2), unzip(1) makes [1, 2, 3]"));
  CHECK(has(texts(f.map({weight("gate", {1, 2, 2})}, rules)), "which the model does not have"));
}

TEST_CASE("`via` without a name is added to every weight that matches; indices are bounded") {
  File f;
  f.add("n.0.w", {2}, 1).add("n.1.w", {2}, 1);
  MappingRules rules;
  rules.maps = {{.file = {}, .model = {"n.{1}.w"}, .via = "offset(-1)", .only = "1 in 1.."}};
  const Mapping m = f.map({weight("n.0.w", {2}), weight("n.1.w", {2})}, rules);
  CHECK(texts(m) == "");
  CHECK(f.read(m, 0, {2}) == std::vector<float>{1, 2});
  CHECK(f.read(m, 1, {2}) == std::vector<float>{0, 1});
}

TEST_CASE("one_of: exactly one set, and what each lacks") {
  MappingRules rules;
  rules.sets = {{"some.model:9:9", {"each", "stacked"}}};
  rules.maps = {{.file = {"e.{e}.w"}, .model = {"x"}, .via = "stack(e)", .set = 0, .alternative = 0},
                {.file = {"all"}, .model = {"x"}, .set = 0, .alternative = 1}};
  const std::vector<MappingWeight> weights = {weight("x", {2, 3})};
  File each, stacked, both, none;
  each.add("e.0.w", {3}).add("e.1.w", {3}, 10);
  stacked.add("all", {2, 3});
  both.add("all", {2, 3}).add("e.0.w", {3}).add("e.1.w", {3});
  none.add("e.0.w", {3});
  const Mapping a = each.map(weights, rules);
  CHECK(texts(a) == "");
  CHECK(each.read(a, 0, {2, 3})[3] == 10);
  CHECK(a.notes[0] == "of `one_of` at some.model:9:9, `each` is what the checkpoint has");
  CHECK(texts(stacked.map(weights, rules)) == "");
  CHECK(has(texts(both.map(weights, rules)), "one-of|the checkpoint has the tensors of each and stacked"));
  CHECK(texts(none.map(weights, rules)) ==
        "one-of|the checkpoint has none of the sets `each` and `stacked` whole|`each` lacks e.1.w|`stacked` lacks all\n");
}

TEST_CASE("one_of with an empty set: names as they stand") {
  MappingRules rules;
  rules.sets = {{"some.model:9:9", {"bare", "prefixed"}}};
  rules.maps = {{.file = {"bert.{rest*}"}, .model = {"{rest*}"}, .set = 0, .alternative = 1}};
  const std::vector<MappingWeight> weights = {weight("a.b", {2}), weight("c", {2})};
  File bare, prefixed;
  bare.add("a.b", {2}).add("c", {2});
  prefixed.add("bert.a.b", {2}).add("bert.c", {2});
  CHECK(texts(bare.map(weights, rules)) == "");
  CHECK(texts(prefixed.map(weights, rules)) == "");
}

TEST_CASE("in a GGUF file modules without a rule have their parent's name") {
  MappingRules rules;
  rules.format = "gguf";
  rules.maps = {{.file = {"blk.{i}"}, .model = {"model.layers.{i}"}},
                {.file = {"blk.{1}.attn_q"}, .model = {"model.layers.{1}.self_attn.q_proj"}},
                {.file = {"rope_freqs.weight"}, .model = {"model.layers.*.self_attn.rope.factors"}}};
  const std::vector<MappingWeight> weights = {weight("model.layers.0.self_attn.q_proj.weight", {2}),
                                              weight("model.layers.0.self_attn.sinks", {2}), weight("model.norm.weight", {2}),
                                              weight("model.layers.0.self_attn.rope.factors", {2}, true)};
  File f;
  f.add("blk.0.attn_q.weight", {2}).add("blk.0.sinks", {2}).add("weight", {2}).add("rope_freqs.weight", {2});
  const Mapping m = f.map(weights, rules);
  CHECK(texts(m) == "");
  CHECK(m.sources[3].kind == WeightSource::Kind::tensor);
}

TEST_CASE("parts: fp8 codes with block scales, mixed with plain tensors; a lacking part is an error") {
  MappingRules rules;
  rules.encodes = {
      {.pattern = "**",
       .only = "",
       .name = "fp8_block(2, 2)",
       .axes = "... n k",
       .parts = {{"codes", "{name}", "f8_e4m3", "(... n k)"}, {"scales", "{name}_scale_inv", "f32", "(... (ceil_div n 2) (ceil_div k 2))"}},
       .value = "(* (f32 codes) (slice (repeat (repeat scales 2 -2) 2 -1) -2 0 n -1 0 k))"}};
  File f;
  f.bytes("w", Encoding::f8_e4m3, {3, 3}, {0x38, 0x40, 0xb8, 0x01, 0x7e, 0x08, 0x30, 0x00, 0x44})
      .add("w_scale_inv", {2, 2}, 1)
      .add("plain", {2, 2});
  const Mapping m = f.map({weight("w", {3, 3}), weight("plain", {2, 2})}, rules);
  CHECK(texts(m) == "");
  CHECK_FALSE(m.sources[0].as_stored());
  // torch.float8_e4m3fn: 1, 2, -1, 2^-9, 448, 2^-6, 0.5, 0, 3; the scales of 2 by 2 blocks are 1, 2 / 3, 4.
  CHECK(f.read(m, 0, {3, 3}) == std::vector<float>{1, 2, -2, 0.001953125F, 448, 0.03125F, 1.5F, 0, 12});
  CHECK(f.read(m, 1, {2, 2}) == std::vector<float>{0, 1, 2, 3});
  File alone;
  alone.bytes("w", Encoding::f8_e4m3, {2, 2}, {0, 0, 0, 0});
  CHECK(has(texts(alone.map({weight("w", {2, 2})}, rules)), "parts|w is stored as fp8_block(2, 2), and not all of its parts are there"));
  CHECK(has(texts(alone.map({weight("w", {2, 2})}, {})), "dtype|w: stored as f8_e4m3 in"));
  File shape;
  shape.bytes("w", Encoding::f8_e4m3, {2, 2}, {0, 0, 0, 0}).add("w_scale_inv", {2, 2});
  CHECK(has(texts(shape.map({weight("w", {2, 2})}, rules)),
            "layout|w: w_scale_inv is f32 [2, 2], and as a part of fp8_block(2, 2) for [2, 2] it would be f32 [1, 1]"));
}

TEST_CASE("parts: mxfp4 blocks before an unzip") {
  MappingRules rules;
  rules.maps = {{.file = {"gu"}, .model = {"g", "u"}, .via = "unzip(0)"}};
  rules.encodes = {{.pattern = "gu",
                    .only = "",
                    .name = "mxfp4()",
                    .axes = "... k",
                    .parts = {{"blocks", "{name}_blocks", "u8", "(... (/ k 32) 16)"}, {"scales", "{name}_scales", "u8", "(... (/ k 32))"}},
                    .value = "(shape (* (e2m1 (nibbles blocks)) (exp2 (- (f32 (shape scales 1 (/ k 32) 1)) 127))) 2 -1)"}};
  std::vector<std::uint8_t> blocks(32, 0x21);              // 0.5, then 1
  blocks[16] = 0xf7;                                       // row 1: 6, then -6
  File f;
  f.bytes("gu_blocks", Encoding::u8, {2, 1, 16}, blocks).bytes("gu_scales", Encoding::u8, {2, 1}, {127, 129});
  const Mapping m = f.map({weight("g", {1, 32}), weight("u", {1, 32})}, rules);
  CHECK(texts(m) == "");
  const auto g = f.read(m, 0, {1, 32}), u = f.read(m, 1, {1, 32});
  CHECK(g[0] == 0.5F);
  CHECK(g[1] == 1);
  CHECK(u[0] == 24);
  CHECK(u[1] == -24);
  CHECK(u[2] == 2);
  CHECK(has(texts(f.map({weight("g", {1, 33}), weight("u", {1, 33})}, rules)),
            "a tensor of shape [2, 33] is not in whole blocks of mxfp4()"));
}

TEST_CASE("formulas that do not read, and hostile sizes, are errors") {
  MappingRules::Encode e{.pattern = "x", .only = "", .name = "e", .axes = "n", .parts = {{"codes", "{name}", "u8", "(n)"}}, .value = ""};
  const HostArray codes{Encoding::u8, {2}, {std::byte{1}, std::byte{2}}};
  for (const char* value :
       {"", "(", "(f32)", "(nope codes)", "(+ codes", "(repeat codes 0 -1)", "(repeat codes 99999999999 -1)", "(repeat codes 2 7)",
        "(slice codes -1 0 9)", "(shape codes 1 3)", "(shape codes 9 1)", "missing", "(nibbles 3)", "(repeat codes 2 -1)"}) {
    e.value = value;
    CAPTURE(std::string(value));
    CHECK_FALSE(decode(e, {2}, std::span(&codes, 1)).ok());
  }
  e.value = "(- (* codes 2) 1)";
  const auto good = decode(e, {2}, std::span(&codes, 1));
  REQUIRE(good.ok());
  e.parts[0].shape = "((/ n 3))";
  CHECK_FALSE(part_shapes(e, {4}).ok());
  CHECK_FALSE(part_shapes(e, {4, 4}).ok());
}

TEST_CASE("what a weight is read as is known without reading it: plain, moved, offset, cast, of parts that differ") {
  File f;
  const std::vector<std::uint8_t> narrow(16, 1);
  for (const char* name : {"plain", "turned", "moved", "other", "tail", "declared"}) f.bytes(name, Encoding::bf16, {2, 4}, narrow);
  f.add("head", {2, 4}).add("wide", {2, 4});
  MappingRules rules;
  rules.maps = {{.file = {"turned"}, .model = {"w.turned"}, .via = "transpose(0, 1)"},
                {.file = {"moved"}, .model = {"w.moved"}, .via = "offset(1)"},
                {.file = {"other"}, .model = {"w.other"}, .via = "cast(f16)"},
                {.file = {"tail", "head"}, .model = {"w.both"}, .via = "concat(0, [2, 2])"}};
  std::vector<MappingWeight> weights = {weight("plain", {2, 4}),   weight("w.turned", {4, 2}), weight("w.moved", {2, 4}),
                                        weight("w.other", {2, 4}), weight("w.both", {4, 4}),   weight("declared", {2, 4}),
                                        weight("wide", {2, 4}),    weight("none", {3}, true)};
  weights[5].dtype = DType::f32;
  const Mapping m = map_weights(weights, rules, f.index(), {.auto_cast = true});
  REQUIRE(texts(m) == "");
  const Encoding expected[] = {Encoding::bf16, Encoding::bf16, Encoding::f32, Encoding::f16,
                               Encoding::f32,  Encoding::f32,  Encoding::f32, Encoding::f32};
  CheckpointData data(std::make_shared<const CheckpointIndex>(f.index()));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    CAPTURE(weights[i].name);
    CHECK(read_encoding(f.index(), m.sources[i]) == expected[i]);
    if (weights[i].has_default) continue;
    const auto read = read_weight(data, m, m.sources[i], weights[i].shape);
    REQUIRE_MESSAGE(read, read.error().text());
    CHECK(read->encoding == expected[i]);
  }
}

TEST_CASE("bounds of indices read as they are written") {
  const auto only = parse_only("i in 0..2,5..; 1 in 7");
  REQUIRE(only);
  CHECK(only->hold({{"i", "1"}, {"1", "7"}}));
  CHECK(only->hold({{"i", "5000"}}));
  CHECK_FALSE(only->hold({{"i", "3"}}));
  CHECK_FALSE(only->hold({{"i", "1"}, {"1", "8"}}));
  CHECK_FALSE(parse_only("i"));
  CHECK_FALSE(parse_only("i in x"));
}

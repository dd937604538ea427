// The verifier accepts a sound graph and finds each kind of fault planted in it.
#include "frontend/graph/verifier.h"

#include <doctest/doctest.h>

#include "frontend/graph/ops.h"
#include "frontend/graph/reader.h"
#include "frontend/graph/types.h"
#include "tests/frontend/graph/support.h"

namespace modelc::graph::test {

namespace {

bool contains(const std::string& s, std::string_view part) { return s.find(part) != std::string::npos; }

Class& find_class(Module& m, std::string_view name) {
  for (Class& c : m.classes)
    if (c.name == name) return c;
  FAIL("no such class");
  return m.classes[0];
}
Op& find_op_of(Function& f, OpKind kind) {
  for (Op& op : f.body.ops)
    if (op.kind == kind) return op;
  FAIL("no such op");
  return f.body.ops[0];
}

// The decoder with a piece of text replaced, everywhere or once.
std::string edited(std::string_view from, std::string_view to, bool all = false) {
  std::string text = tiny_decoder_text();
  std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  for (; at != std::string::npos; at = all ? text.find(from, at + to.size()) : std::string::npos) text.replace(at, from.size(), to);
  return text;
}

// Plants a fault in the decoder; the verifier must say `message`.
template <class F> void planted(const char* message, F plant) {
  Module m = parsed(tiny_decoder_text());
  plant(m);
  std::string all;
  for (const std::string& f : verify(m)) all += f + "\n";
  INFO(all);
  CAPTURE(message);
  CHECK(contains(all, message));
}

void edit_finds(std::string_view from, std::string_view to, std::string_view message) {
  const std::string faults = faults_of(edited(from, to));
  INFO(faults);
  CHECK(contains(faults, message));
}

}  // namespace

TEST_CASE("a sound graph has no faults") { CHECK(faults_of(tiny_decoder_text()) == ""); }

TEST_CASE("faults of the module") {
  planted("root: is no class", [](Module& m) { m.root = ClassId{99}; });
  planted("context: is not at least 1", [](Module& m) { m.context = 0; });
  planted("class Decoder: the name is taken twice", [](Module& m) { m.classes[0].name = "Decoder"; });
  planted("the name is no identifier", [](Module& m) { m.classes[0].name = "a-b"; });
  planted("axis \"a b\": the name is no identifier", [](Module& m) { m.dims.add_axis({.name = "a b", .hi = {}}); });
  planted("axis wide: the range is empty or negative", [](Module& m) { m.dims.add_axis({.name = "wide", .lo = 9, .hi = 3}); });
  planted("Decoder.norm: class Tiny must stand before it", [](Module& m) { find_class(m, "Decoder").children[2].elements[0] = m.root; });
  planted("Decoder.norm: there is no such class", [](Module& m) { find_class(m, "Decoder").children[2].elements[0] = ClassId{99}; });
  const auto place = [](const std::string& fault, const PlaceRule& rule) {
    planted(("place " + fault).c_str(), [&](Module& m) { m.placement = {{.pattern = "**", .device = "cpu"}, rule}; });
  };
  place("\"\": the pattern is empty", {.pattern = "", .device = "cpu"});
  place("\"a\": the range is negative or ends before it begins", {.pattern = "a", .first = -1, .device = "cpu"});
  place("\"a\": the range is negative or ends before it begins", {.pattern = "a", .first = 3, .end = 2, .device = "cpu"});
  place("\"a\": the range is negative or ends before it begins", {.pattern = "a", .end = -1, .device = "cpu"});
  place("\"a\": there is no device \"tpu\"", {.pattern = "a", .device = "tpu"});
  place("\"a\": there is no device \"vulkan\"", {.pattern = "a", .device = "vulkan"});          // one name a device: vulkan:0
  planted("a single child has one element", [](Module& m) { find_class(m, "Tiny").children[0].elements.clear(); });
  planted("model.weight: two weights have this name", [](Module& m) {
    find_class(m, "Decoder").children[0].path = "";
    find_class(m, "Decoder").children[2].path = "";
  });
  planted("more than 4194304 weights", [](Module& m) {
    for (const char* name : {"Decoder", "DecoderLayer", "Attention"}) {
      ChildDecl d = find_class(m, name).children[0];
      d.name = d.path = "many";
      d.list = true;
      d.elements.assign(400, d.elements[0]);
      find_class(m, name).order.emplace_back('m', static_cast<std::uint32_t>(find_class(m, name).children.size()));
      find_class(m, name).children.push_back(d);
    }
    find_class(m, "Decoder").children[1].elements.assign(40000, find_class(m, "Decoder").children[1].elements[0]);
  });
}

TEST_CASE("faults of members") {
  planted("Linear_q.bias: the name is taken twice", [](Module& m) { find_class(m, "Linear_q").weights[0].name = "bias"; });
  planted("Linear_q.weight: the shape f32[tokens, 8] is not known at compile time",
          [](Module& m) { find_class(m, "Linear_q").weights[0].type.shape[0] = m.dims.of_axis(*m.dims.find_axis("tokens")); });
  planted("Linear_q.weight: a size of 0", [](Module& m) { find_class(m, "Linear_q").weights[0].type.shape[0] = DimId{}; });
  planted("a dim beyond 64 bits", [](Module& m) { find_class(m, "Linear_q").weights[0].type.shape[0] = DimTable::too_large; });
  planted("a dim that is not in the table", [](Module& m) { find_class(m, "Linear_q").weights[0].type.shape[0] = DimId{12345}; });
  planted("f64 is how a file holds numbers", [](Module& m) { find_class(m, "Linear_q").weights[0].type.dtype = DType::f64; });
  planted("Linear_q.weight: a weight needs a path", [](Module& m) { find_class(m, "Linear_q").weights[0].path = ""; });
  planted("Linear_q: the order does not name each member once", [](Module& m) { find_class(m, "Linear_q").order.pop_back(); });
  planted("Linear_q: the order does not name each member once", [](Module& m) { find_class(m, "Linear_q").order[1] = {'w', 0}; });
  planted("Attention: a leaf has no state and no children", [](Module& m) { find_class(m, "Attention").leaf = true; });
  planted("Attention.forward: a leaf has no functions but inits", [](Module& m) { find_class(m, "Attention").leaf = true; });
  planted("freqs: is f32[3], freqs gives f32[2]",
          [](Module& m) { find_class(m, "RotaryEmbedding").consts[0].type.shape[0] = m.dims.constant(3); });
  planted("there is no function that computes it", [](Module& m) { find_class(m, "RotaryEmbedding").consts[0].init = FunctionId{4}; });
  planted("freqs is no init function", [](Module& m) { find_class(m, "RotaryEmbedding").functions[0].kind = FunctionKind::entry; });
  planted("cache: has 2 sizes, wanted 3", [](Module& m) { find_class(m, "Attention").states[0].sizes.pop_back(); });
  planted("cache: a size is 0", [](Module& m) { find_class(m, "Attention").states[0].sizes[1] = 0; });
  planted("a window is at least 1", [](Module& m) { find_class(m, "Attention").states[0].window = 0; });
  planted("Tiny.forward: the name is taken twice",
          [](Module& m) { find_class(m, "Tiny").functions.push_back(find_class(m, "Tiny").functions[0]); });
  planted("the input input_ids cannot have 0.500000 by default",
          [](Module& m) { find_class(m, "Tiny").functions[0].inputs[0].default_value = 0.5; });
  planted("the input at cannot have", [](Module& m) { find_class(m, "Tiny").functions[0].inputs[1].default_value = 1.0; });
  planted("0 names for 1 results", [](Module& m) { find_class(m, "Tiny").functions[0].result_names.clear(); });
  planted("an index is i32", [](Module& m) { find_class(m, "Tiny").functions[0].values[0].type.dtype = DType::i64; });
}

TEST_CASE("faults of order and scope") {
  auto forward = [](Module& m) -> Function& { return find_class(m, "GatedMLP").functions[0]; };
  planted("is used before it is defined", [&](Module& m) { std::swap(forward(m).body.ops[0], forward(m).body.ops[1]); });
  planted("defines  again", [&](Module& m) { forward(m).body.ops[1].results = forward(m).body.ops[0].results; });
  planted("operand 0 is not in the table", [&](Module& m) { forward(m).body.ops[1].operands[0] = ValueId{500}; });
  planted("a result is not in the table", [&](Module& m) { forward(m).body.ops[1].results[0] = ValueId{500}; });
  planted("the input x is no value", [&](Module& m) { forward(m).inputs[0].value = ValueId{500}; });
  planted("a result is no value", [&](Module& m) { forward(m).body.results[0] = ValueId{500}; });
  planted("is of another block", [](Module& m) {
    Function& f = find_class(m, "Decoder").functions[0];
    f.body.ops.back().operands[0] = find_op_of(f, OpKind::repeat).body->ops[0].results[0];
  });
  planted("no kind of operation", [&](Module& m) { forward(m).body.ops[1].kind = static_cast<OpKind>(5000); });
  planted("more than one Batch", [&](Module& m) {
    forward(m).values.push_back({Type{TypeKind::batch, DType::f32, {}, {}}, "at", ""});
    forward(m).values.push_back({Type{TypeKind::batch, DType::f32, {}, {}}, "at", ""});
    forward(m).inputs.push_back({ValueId{9}, "a", {}});
    forward(m).inputs.push_back({ValueId{10}, "b", {}});
  });
}

TEST_CASE("faults of members, calls and loops in functions") {
  edit_finds("weight \"q_proj.weight\"", "weight \"q_proj.wight\"", "class Attention has no member \"q_proj.wight\"");
  edit_finds("weight \"q_proj.weight\"", "weight \"q_proj.bias\"", "result 0 is f32[16, 8], but must be f32[16]");
  edit_finds("weight \"q_proj.weight\"", "weight \"rope.freqs\"", "\"rope.freqs\" is no weight");
  edit_finds("constant_ref \"rope.freqs\"", "constant_ref \"rope.factors\"", "\"rope.factors\" is no const");
  edit_finds("append \"cache\"", "append \"cash\"", "class Attention has no member \"cash\"");
  edit_finds("append \"cache\"", "append \"q_proj\"", "\"q_proj\" is no state");
  edit_finds("append \"cache\"", "append", "append: no state, a KVCache, is named");
  edit_finds("attend \"cache\"", "attend", "attend: k is missing");
  edit_finds("stage \"q_proj\"", "stage \"q_prj\"", "no child at the stage \"q_prj\"");
  edit_finds("call \"self_attn\".forward(%2, %at)", "call \"self_attn\".backward(%2, %at)", "class Attention has no function backward");
  edit_finds("call \"self_attn\".forward(%2, %at)", "call \"self_attn\".forward(%2)", "1 operands, Attention.forward takes 2");
  edit_finds("call \"self_attn\".forward(%2, %at)", "call \"self_attn\".forward(%at, %2)",
             "the input x of Attention.forward is f32[tokens, 8], not Batch");
  edit_finds("call \"self_attn\".forward(%2, %at)", "call \"self_attn\".forward(_, %at)", "the input x of Attention.forward is missing");
  edit_finds("call \"self_attn\".forward(%2, %at)", "call \"\".forward(%2, %at)", "there is no loop");
  edit_finds("%3: f32[tokens, 8] = call", "%3: f32[tokens, 9] = call", "result 0 is f32[tokens, 9], but must be f32[tokens, 8]");
  edit_finds("repeat \"layers\"", "repeat \"norm\"", "\"norm\" is no list of children");
  edit_finds("field: \"outputs\"", "field: \"output\"", "a Batch has no field \"output\"");
  edit_finds("batch_field(%at; field: \"positions\")", "batch_field(%x; field: \"positions\")", "wants a Batch");
  edit_finds("index(64)[tokens] = batch_field", "index(63)[tokens] = batch_field",
             "result 0 is index(63)[tokens], but must be index(64)[tokens]");
  edit_finds("literal(value: 10000.0)", "literal(value: 10000)", "wants the argument value, a float");
  edit_finds("literal(value: 10000.0)", "constant_ref \"freqs\"", "the const is declared later, or is this one");
  edit_finds("carry %h.3: f32[tokens, 8]", "carry %h.3: f32[tokens, 8], %h.5: f32[2]", "carries 1 values in, 2 inside, 1 on and 1 out");
  // Every class of element is looked at: the second one's layer takes something else.
  planted("DecoderLayer_2.forward is f32[tokens, 9], not f32[tokens, 8]", [](Module& m) {
    Function& f = find_class(m, "DecoderLayer_2").functions[0];
    f.values[0].type.shape[1] = m.dims.constant(9);
  });
  planted("class DecoderLayer_2 has no function forward", [](Module& m) { find_class(m, "DecoderLayer_2").functions[0].name = "other"; });
  planted("carries f32[tokens, 8] in, but has it as f32[tokens, 9]", [](Module& m) {
    Function& f = find_class(m, "Decoder").functions[0];
    f.values[find_op_of(f, OpKind::repeat).results[0].index].type.shape[1] = m.dims.constant(9);
  });
  planted("has no body", [](Module& m) { find_op_of(find_class(m, "Decoder").functions[0], OpKind::repeat).body.reset(); });
  planted("only a repeat, a moe and a custom have a body",
          [](Module& m) { find_class(m, "Tiny").functions[0].body.ops[1].body = Block{}; });
  planted("only a call has a callee", [](Module& m) { find_class(m, "Tiny").functions[0].body.ops[1].callee = "f"; });
  planted("takes no member", [](Module& m) { find_op_of(find_class(m, "Tiny").functions[0], OpKind::take).member = "model"; });
  planted("takes no named arguments", [](Module& m) { find_op_of(find_class(m, "Tiny").functions[0], OpKind::weight).attrs["a"] = true; });
  planted("an init function computes from weights and consts alone", [](Module& m) {
    Op op;
    op.kind = OpKind::append;
    find_class(m, "RotaryEmbedding").functions[0].body.ops.push_back(op);
  });
}

TEST_CASE("types follow from the shape rules") {
  edit_finds("%3: f32[tokens, 12] = silu(%2)", "%3: f32[tokens, 13] = silu(%2)",
             "result 0 is f32[tokens, 13], but must be f32[tokens, 12]");
  edit_finds("= silu(%2)", "= rms_norm(%2, _)", "rms_norm: argument eps is missing");
  edit_finds("= silu(%2)", "= silu(%2, %2)", "silu: 2 operands, wanted 1");
  edit_finds("= silu(%2)", "= silu(_)", "silu: x is missing");
  edit_finds("= silu(%2)", "= silu(%2; x: 1)", "silu: there is no argument x");
  edit_finds("rms_norm(%x, %1; eps: 1e-05)", "rms_norm(%x, %1; eps: 1)", "rms_norm: eps must be a float");
}

TEST_CASE("a custom operation is its body, which sees its operands alone, and shaders that are there") {
  const std::string sound = R"(graph 1
module T root T
axis tokens: 1..
shader "f.comp" of f text "void main() {}"
host "f.h" of f from [f32, f32] to [f32] text "void f() {}"
class T: T {
  forward forward(%x: f32[tokens, 6], %g: f32[6]) {
    %y: f32[tokens, 6] = custom(%x, %g) of f sizes [tokens, 6] shader 0 local 64 groups [tokens] host 0 {
      carry %a: f32[tokens, 6], %b: f32[6]
      %m: f32[tokens, 6] = mul(%a, %b)
      next %m
    }
    return %y
  }
}
)";
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = sound;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    const auto read = modelc::graph::read(text);
    if (!read) return read.error().message;
    const std::vector<std::string> faults = modelc::graph::verify(*read);
    return faults.empty() ? std::string() : faults.front();
  };
  const auto finds = [&](std::string_view from, std::string_view to, std::string_view fault) {
    const std::string found = with(from, to);
    INFO(found);
    CHECK(found.find(fault) != std::string::npos);
  };
  CHECK(with("mul", "mul") == "");
  finds("mul(%a, %b)", "mul(%x, %b)", "of another block");
  finds("carry %a: f32[tokens, 6], %b", "carry %a: f32[tokens, 6], %c: f32[6], %b", "its body takes 3 values");
  finds("carry %a: f32[tokens, 6]", "carry %a: f32[6, tokens]", "and is given");
  finds("shader 0", "shader 1", "there is no shader 1");
  finds("groups [tokens]", "groups []", "one to three axes");
  finds("local 64", "local 0", "a group of 0");
  finds("%y: f32[tokens, 6] = custom", "%y: f32[tokens, 7] = custom", "its body gives");
  CHECK(with(" shader 0 local 64 groups [tokens] host 0 {", " {") == "");
  finds("host 0", "host 1", "there is no host code of that number");
  finds("from [f32, f32]", "from [f32]", "its host code takes and gives other types");
  finds("from [f32, f32]", "from [f32, i32]", "its host code takes and gives other types");
  finds("to [f32]", "to [i32]", "its host code takes and gives other types");
  finds("custom(%x, %g) of", "custom(%x, %g; a: 1) of", "takes no named arguments");
}

TEST_CASE("the body of a moe is elementwise, from its two rows to one") {
  const std::string sound = R"(graph 1
module T root T
axis tokens: 1..
class T: T {
  forward forward(%x: f32[tokens, 6], %e: index(3)[tokens, 2], %p: f32[tokens, 2], %a: f32[3, 4, 6], %d: f32[3, 6, 4]) {
    %o: f32[4, 4] = literal2
    %y: f32[tokens, 6] = moe(%x, %e, %p, %a, %a, %d, _, _, _) {
      carry %g: f32[4], %u: f32[4]
      %s: f32[4] = silu(%g)
      %m: f32[4] = mul(%s, %u)
      next %m
    }
    return %y
  }
}
)";
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = sound;
    const auto swap = [&](std::string_view a, std::string_view b) {
      const std::size_t at = text.find(a);
      REQUIRE(at != std::string::npos);
      text.replace(at, a.size(), b);
    };
    swap("    %o: f32[4, 4] = literal2\n", "");
    if (!from.empty()) swap(from, to);
    return faults_of(text);
  };
  CHECK(with("", "") == "");
  CHECK(contains(with("silu(%g)", "softmax(%g, _)"), "its body has softmax, which is not elementwise"));
  CHECK(contains(with("carry %g: f32[4], %u: f32[4]", "carry %g: f32[4], %u: f32[5]"), "its body has f32[5], wanted f32[4]"));
  CHECK(contains(with("next %m", "next %m, %s"), "its body takes 2 values and gives 2, wanted 2 and 1"));
  CHECK(contains(with("mul(%s, %u)", "mul(%s, %p)"), "its body uses a value of outside"));
  CHECK(contains(with("next %m", "next %p"), "its body gives a value of outside"));
  CHECK(contains(
      with(" {\n      carry %g: f32[4], %u: f32[4]\n      %s: f32[4] = silu(%g)\n      %m: f32[4] = mul(%s, %u)\n      next %m\n    }", ""),
      "has no body"));
  CHECK(contains(with("return %y", "return %s"), "is of another block"));
}

TEST_CASE("members of a loop's element") {
  const std::string text = R"(graph 1
module T root T
axis tokens: 1..
class Linear: Linear leaf {
  weight weight: f32[3, 3] matrix
}
class T: T {
  children layers: [Linear * 2]
  forward forward(%x: f32[tokens, 3]) {
    %y: f32[tokens, 3] = repeat "layers"(%x) {
      carry %h: f32[tokens, 3]
      %w: f32[3, 3] = weight ".weight"
      %z: f32[tokens, 3] stage "." = linear(%h, %w, _)
      next %z
    }
    return %y
  }
}
)";
  CHECK(faults_of(text) == "");
  std::string outside = text;
  outside.replace(outside.find("%y: f32[tokens, 3] = repeat"), 0, "%v: f32[3, 3] = weight \".weight\"\n");
  CHECK(contains(faults_of(outside), "there is no loop"));
}

}  // namespace modelc::graph::test

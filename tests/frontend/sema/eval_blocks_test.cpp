// Blocks, and what is handed to the builder of the graph: a stand-in that writes down what it is asked.
#include <doctest/doctest.h>

#include "frontend/syntax/parser.h"
#include "tests/frontend/sema/values_support.h"

using namespace modelc;
using namespace modelc::sema;
using namespace modelc::sema::test;

namespace {

struct Layers : Member {
  explicit Layers(std::string n) : name(std::move(n)) {}
  std::string describe() const override { return "the child `" + name + "`"; }
  std::string name;
};

// Each value is a tensor whose number stands for the text of how it was made.
struct Recorder : TensorContext {
  std::vector<std::string> made;
  std::vector<std::string> log;

  Value make(std::string text) {
    made.push_back(std::move(text));
    return Value::tensor({graph::ValueId{static_cast<std::uint32_t>(made.size() - 1)}, {}});
  }
  std::string text(const Value& v) const {
    if (v.is(ValueKind::tensor)) return made[v.as_graph().id.index];
    if (v.is(ValueKind::list) || v.is(ValueKind::tuple)) {
      std::string out = "[";
      for (const Value& item : v.items()) out += (out.size() > 1 ? ", " : "") + text(item);
      return out + "]";
    }
    if (v.is(ValueKind::member)) return static_cast<const Layers&>(*v.as_member()).name;
    return show(v);
  }
  std::string text(std::span<const Argument> arguments) const {
    std::string out;
    for (const Argument& a : arguments) {
      out += (out.empty() ? "" : ", ") + (a.name.empty() ? "" : std::string(a.name) + ": ") + text(a.value);
    }
    return out;
  }
  Value unary(ast::UnaryOp op, const Value& x, source::Span) override { return make(ast::spelling(op) + text(x)); }
  Value binary(ast::BinaryOp op, const Value& a, const Value& b, source::Span) override {
    return make("(" + text(a) + " " + ast::spelling(op) + " " + text(b) + ")");
  }
  Value call_op(std::string_view name, std::span<const Argument> arguments, source::Span) override {
    if (name == "split") return Value::tuple({make("left"), make("right")});
    return make(std::string(name) + "(" + text(arguments) + ")");
  }
  Value call_custom(const Symbol& op, std::span<const Argument> arguments, source::Span) override {
    return make("custom " + op.name + "(" + text(arguments) + ")");
  }
  Value call_member(const Value& member, std::string_view name, std::span<const Argument> arguments, source::Span) override {
    const std::string call = text(member) + (name.empty() ? "" : "." + std::string(name)) + "(" + text(arguments) + ")";
    if (name == "append") {
      log.push_back(call);
      return Value::none();
    }
    return make(call);
  }
  Value field(const Value& object, const ast::Name& name) override {
    if (name.text == "sub") return Value::member(std::make_shared<Layers>(text(object) + ".sub"));
    return make(text(object) + "." + name.text);
  }
  Value cast(const Value& x, const CastTarget& target, source::Span) override {
    std::string to;
    if (target.is_index) to += "index";
    if (target.bound) to += "<" + show(*target.bound) + ">";
    if (target.dtype) to += std::string(name(*target.dtype));
    if (target.shape) {
      to += "[";
      for (const ShapeAxis& axis : *target.shape) to += (to.back() == '[' ? "" : ",") + (axis.ellipsis ? "..." : show(axis.size));
      to += "]";
    }
    return make("(" + text(x) + " as " + to + ")");
  }
  Value slice(const Value& x, std::span<const SliceValue> slices, source::Span) override {
    std::string out = text(x) + "[";
    for (const SliceValue& s : slices) {
      if (out.back() != '[') out += ", ";
      if (s.kind == ast::SliceKind::ellipsis) out += "...";
      if (s.kind == ast::SliceKind::whole) out += "..";
      if (s.kind == ast::SliceKind::index) out += show(s.low);
      if (s.kind == ast::SliceKind::range) out += show(s.low) + ".." + show(s.high) + (s.step.is_none() ? "" : " by " + show(s.step));
    }
    return make(out + "]");
  }
  std::optional<std::vector<Value>> elements(const Value& member) override {
    if (text(member) != "layers") return std::nullopt;
    return std::vector<Value>{Value::member(std::make_shared<Layers>("layers.0")), Value::member(std::make_shared<Layers>("layers.1"))};
  }
  std::optional<std::vector<Value>> fold(const Value& list, const ast::ForStatement&, std::span<const Carried> carried,
                                         const FoldBody& body) override {
    std::vector<Value> inside;
    for (const Carried& c : carried) inside.push_back(make("carried " + c.name));
    const auto after = body(Value::member(std::make_shared<Layers>("element")), inside);
    if (!after) return std::nullopt;
    std::vector<Value> out;
    for (std::size_t i = 0; i < carried.size(); ++i) {
      out.push_back(
          make("fold over " + text(list) + " of " + carried[i].name + " from " + text(carried[i].value) + " by " + text((*after)[i])));
    }
    return out;
  }
  void named(const Value& value, const ast::Name& name) override { log.push_back(name.text + " = " + text(value)); }
};

// The names that a forward sees.
struct Run {
  explicit Run(std::string_view body, std::string_view declarations = "")
      : session(std::string(declarations) + "\nfn body(x) " + std::string(body)) {
    session.evaluator->set_tensors(&recorder);
    const Symbol& fn = session.symbol("body");
    const auto& decl = ast::as<ast::FunctionDecl>(*fn.decl);
    Environment env = session.environment();
    env.define("x", recorder.make("x"), {});
    env.define("y", recorder.make("y"), {});
    env.define("n", Value::integer(4), {});
    env.define("none_value", Value::none(), {});
    env.define("layers", Value::member(std::make_shared<Layers>("layers")), {});
    env.define("proj", Value::member(std::make_shared<Layers>("proj")), {});
    env.define("cache", Value::member(std::make_shared<Layers>("cache")), {});
    env.define("at", Value::batch({graph::ValueId{0}, {graph::TypeKind::batch, {}, {}, {}}}), {});
    env.define("bias", Value::absent({"bias", {}, "its condition `has_bias` is false"}), {});
    value = session.evaluator->run(*decl.block, env);
  }
  std::string result() { return value.is_error() ? session.codes() : recorder.text(value); }
  Recorder recorder;
  Session session;
  Value value;
};

std::string run(std::string_view body, std::string_view declarations = "") {
  Run r(body, declarations);
  return r.result();
}

std::string message(std::string_view body) {
  Run r(body);
  CHECK(r.session.sink.has_errors());
  return r.session.messages();
}

}  // namespace

TEST_CASE("what touches a tensor goes to the builder, what does not is computed") {
  CHECK(run("{ return x + 2 * n }") == "(x + 8)");
  CHECK(run("{ return n / 2 - x }") == "(2 - x)");
  CHECK(run("{ return -x }") == "-x");
  CHECK(run("{ return x > 0 and x < 1 }") == "((x > 0) and (x < 1))");
  CHECK(run("{ return silu(x) * silu(1.0) }") == "(silu(x) * 0.7310585786300049)");
  CHECK(run("{ return max(x, axis: 1) }") == "max(x, axis: 1)");
  CHECK(run("{ return max(n, 3) + x }") == "(4 + x)");
  CHECK(run("{ return arange(n) }") == "arange(4)");
  CHECK(run("{ return linear(x, y, bias) }") == "linear(x, y, the absent `bias`)");
  CHECK(run("{ return softcap(x, none) }") == "softcap(x, none)");
  CHECK(run("{ return concat([x, y]) }") == "concat([x, y])");
  CHECK(run("{ return proj(x) }") == "proj(x)");
  CHECK(run("{ return proj.entry_name(x, at: y) }") == "proj.entry_name(x, at: y)");
  CHECK(run("{ return proj.weight }") == "proj.weight");
  CHECK(run("{ return at.positions as f32[tokens, 1] }") == "(a Batch.positions as f32[tokens,1])");
  CHECK(run("{ return x as index(n)[..., n * 2] }") == "(x as index<4>[...,8])");
  CHECK(run("{ return x[.., 0, ..., 1..n by 2, 0..seq] }") == "x[.., 0, ..., 1..4 by 2, 0..seq]");
  CHECK(run("{ return x if n == 4 else y }") == "x");
  CHECK(run("{ return [m(x) for m in layers] }") == "[layers.0(x), layers.1(x)]");
  CHECK(run("{ return layers[1](x) }") == "layers.1(x)");
  CHECK(run("{ return x * len(layers) }") == "(x * 2)");
  CHECK(run("{ return gate(x, y) }", "fn gate(a, b) = silu(a) * b") == "(silu(x) * y)");
  CHECK(run("{ return twist(x) }", "op twist(x: [n]) -> [n] { reference x }") == "custom twist(x)");
}

TEST_CASE("statements") {
  Run r("{ let a = x + 1  let (l, r) = split(a, [1, 2])  cache.append(l, r)  return r, l }");
  CHECK(r.result() == "[right, left]");
  CHECK(r.recorder.log == std::vector<std::string>{"a = (x + 1)", "l = left", "r = right", "cache.append(left, right)"});
  CHECK(run("{ let h = x  for layer in layers { h = layer(h, at) } return h }") ==
        "fold over layers of h from x by element(carried h, a Batch)");
  CHECK(run("{ let h = x let g = y for m in layers { let t = m(h) g = t + g h = t } return g, h }") ==
        "[fold over layers of g from y by (element(carried h) + carried g), "
        "fold over layers of h from x by element(carried h)]");
  CHECK(run("{ for layer in layers { layer.sub.append(x) } return x }") == "x");
  CHECK(run("{ cache.append(x) }") == "none");
}

TEST_CASE("statements out of place") {
  CHECK(holds(message("{ return x return y }"), "nothing stands behind `return`"));
  CHECK(holds(message("{ h = x return x }"), "write `let h = …`"));
  CHECK(holds(message("{ let h = x h = y return h }"), "assigned outside of a `for`"));
  CHECK(holds(message("{ for l in layers { x = l(x) } return x }"), "`x` was not made by a `let` before the loop"));
  CHECK(holds(message("{ for l in layers { let t = l(x) t = x } return x }"), "`t` was not made by a `let` before the loop"));
  CHECK(holds(message("{ for l in layers { hh = l(x) } return x }"), "E0301"));
  CHECK(holds(message("{ for l in layers { return x } return x }"), "`return` cannot stand in a `for`"));
  CHECK(holds(message("{ for l in [1, 2] { cache.append(l) } return x }"), "`for` goes over a list of children"));
  CHECK(holds(message("{ let (a, b) = x return a }"), "E0327"));
  CHECK(holds(message("{ let (a, b, c) = split(x, [1]) return a }"), "2 results"));
  CHECK(holds(message("{ proj(x) return x }"), "the result of this call is not used"));
  CHECK(holds(message("{ let x = y return x }"), "`x` is already a name here"));
  CHECK(holds(message("{ let tokens = y return x }"), "`tokens` is a run-time axis"));
}

TEST_CASE("operands that a tensor cannot meet") {
  CHECK(holds(message("{ return x * seq }"), "E0324"));
  CHECK(holds(message("{ return x + \"a\" }"), "takes a tensor or a number, not a string"));
  CHECK(holds(message("{ return x + none_value }"), "E0316"));
  CHECK(holds(message("{ return x + bias }"), "`bias` is absent here: its condition `has_bias` is false"));
  CHECK(holds(message("{ return bias ?? x }"), "E0317"));
  CHECK(holds(message("{ return x if x > 0 else y }"), "write `where(condition, a, b)`"));
  CHECK(holds(message("{ return x if bias is none else y }"), "E0317"));
  CHECK(holds(message("{ return match x { 1 => x _ => y } }"), "E0310"));
  CHECK(holds(message("{ return x in [1] }"), "E0310"));
  CHECK(holds(message("{ return x.shape }"), "a tensor has no fields"));
  CHECK(holds(message("{ return x(1) }"), "elements are read with brackets"));
  CHECK(holds(message("{ return x as f31 }"), "`f31` is no element type"));
  CHECK(holds(message("{ return x as [n - 4] }"), "a size is at least 1: found"));
  CHECK(holds(message("{ return x as [1.5] }"), "a size is a whole number"));
  CHECK(holds(message("{ return seq as f32 }"), "E0324"));
  CHECK(holds(message("{ return x[1.5] }"), "an index is a whole number"));
}

TEST_CASE("a fn with a mistake in several statements says them all, each once") {
  Run r("{ let a = nothing + 1  let b = a + 1  let c = neither  return b + c }");
  CHECK(r.result() == "E0301 E0301");
}

TEST_CASE("members without a graph being built") {
  Session s("");
  Environment env = s.environment();
  env.define("proj", Value::member(std::make_shared<Layers>("proj")), {});
  for (const std::string_view text : {"proj(1)", "proj.entry_name(1)", "proj.weight", "1 as f32", "softmax([1])"}) {
    s.sink.clear();
    CHECK(s.evaluator->eval(s.expression(text), env).is_error());
    CHECK(s.codes() == "E0323");
  }
}

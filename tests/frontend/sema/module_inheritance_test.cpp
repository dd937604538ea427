// extends, override, remove: what is replaced, what is refused.
#include <doctest/doctest.h>

#include "modules_support.h"

using namespace modelc::sema::test;

namespace {

// A base of two projections around which the tests build.
constexpr std::string_view base = R"(
  module Base(size: dim) {
    let twice = size * 2
    up:   Linear(size, twice)
    norm: RMSNorm(size, eps: 1e-5)
    forward(x: [tokens, size]) -> [tokens, twice] { return up(norm(x)) }
  }
)";

std::string with_base(std::string_view derived, std::string_view members = "a: Derived(c.d)   forward(x: [tokens, c.d]) { return a(x) }") {
  return around("d: dim", members, std::string(base) + std::string(derived));
}

std::string codes(std::string_view derived) { return Model(with_base(derived)).config(R"({"d": 4})").codes(); }
std::string messages(std::string_view derived) { return Model(with_base(derived)).config(R"({"d": 4})").messages(); }

}  // namespace

TEST_CASE("a derived module has the base's members, and calls what it puts in their place") {
  Model m(with_base("module Derived(size: dim) extends Base(size) { override norm: LayerNorm(size, eps: 1e-6) }"));
  m.config(R"({"d": 4})");
  const std::string text = m.part("Derived");
  CHECK(has(text, "child up: Linear\n"));
  CHECK(has(text, "child norm: LayerNorm\n"));
  CHECK(has(text, "layer_norm(%x,"));
  CHECK(has(text, "linear("));
}

TEST_CASE("an override stands where the overridden member stood, a new member at the end") {
  Model m(
      with_base("module Derived(size: dim) extends Base(size) { extra: Linear(size, size)   override up: Linear(size, 2 * size, "
                "has_bias: true)\n"
                "  override forward(x: [tokens, size]) { return extra(up(x) as [2 * tokens, size]) + norm(x)[0..1] } }"));
  m.config(R"({"d": 4})");
  const std::string text = m.part("Derived");
  CHECK(text.find("child up:") < text.find("child norm:"));
  CHECK(text.find("child norm:") < text.find("child extra:"));
}

TEST_CASE("a base's text sees the base's parameters, a derived text those of both") {
  Model m(
      with_base("module Derived(width: dim) extends Base(width) { override forward(x: [tokens, width]) { return "
                "up(norm(x)) as [tokens, 2, size] } }"));
  m.config(R"({"d": 4})");
  CHECK(has(m.part("Derived"), "reshape("));
}

TEST_CASE("a base may lack forward, and chains are allowed") {
  Model m(around("d: dim", "a: Top(c.d)   forward(x: [tokens, c.d]) { return a(x) }",
                 "module Low(n: dim) { p: Linear(n, n)  fn both(x) = p(p(x)) }\n"
                 "module Mid(n: dim) extends Low(n) { q: Linear(n, n) }\n"
                 "module Top(n: dim) extends Mid(n) { forward(x: [tokens, n]) { return both(q(x)) } }\n"));
  m.config(R"({"d": 4})");
  const std::string text = m.part("Top");
  CHECK(has(text, "stage \"q\""));
  CHECK(text.find("stage \"p\"") != text.rfind("stage \"p\""));
}

TEST_CASE("what is removed is gone, and its name is free") {
  Model m(
      with_base("module Derived(size: dim) extends Base(size) { remove norm   norm: Linear(size, size)\n"
                "  override forward(x: [tokens, size]) { return up(norm(x)) } }"));
  m.config(R"({"d": 4})");
  CHECK(has(m.part("Derived"), "child norm: Linear"));
}

TEST_CASE("E0340: override and remove of what is not there") {
  CHECK(codes("module Derived(size: dim) extends Base(size) { override nrom: Identity() }") == "E0340");
  CHECK(has(messages("module Derived(size: dim) extends Base(size) { override nrom: Identity() }"), "did you mean `norm`?"));
  CHECK(codes("module Derived(size: dim) extends Base(size) { remove nrom }") == "E0340");
  CHECK(has(messages("module Derived(size: dim) extends Base(size) { remove nrom }"), "did you mean `norm`?"));
  CHECK(codes("module Derived(size: dim) extends Base(size) { remove checkpoint gguf }") == "E0340");
  CHECK(codes("module Derived(size: dim) extends Base(size) { override checkpoint gguf { } }") == "E0340");
  CHECK(codes("module Derived(n: dim) extends Base(n) { override param norm: [n] }") == "E0340");
  CHECK(has(messages("module Derived(n: dim) extends Base(n) { override param norm: [n] }"), "a param here and a child in the base"));
  CHECK(codes("module Derived(n: dim) { override norm: Identity()  forward(x: [tokens, n]) { return norm(x) } }") == "E0340");
}

TEST_CASE("E0303: one name space, with both places") {
  const auto twice = [](std::string_view members) {
    return Model(around("d: dim", "a: A(c.d)  forward(x: [tokens, c.d]) { return a(x) }",
                        "axis frames: 1..9\nmodule A(n: dim) { " + std::string(members) + " forward(x: [tokens, n]) { return x } }"))
        .config(R"({"d": 4})")
        .messages();
  };
  for (const char* members : {"let n = 3", "let a = 1  let a = 2", "let a = 1  fn a(x) = x", "param a: [n]  a: Linear(n, n)",
                              "state tokens: KVCache(1, 1)", "let frames = 1", "fn forward(x) = x"}) {
    CAPTURE(std::string(members));
    const std::string said = twice(members);
    CHECK(has(said, "E0303"));
    CHECK(has(said, "main.model:"));
  }
  CHECK(has(twice("let n = 3"), "the parameter is declared here"));
  CHECK(has(twice("let a = 1  let a = 2"), "the first is here"));
  CHECK(has(messages("module Derived(size: dim) extends Base(size) { norm: Identity() }"), "write `override`"));
  CHECK(has(messages("module Derived(size: dim) extends Base(size) { let twice = 3 }"), "already has a let `twice`"));
  CHECK(has(messages("module Derived(norm: dim) extends Base(norm) { }"), "would hide it"));
  CHECK(has(messages("module Derived(size: dim) extends Base(size + 1) { }"), "one module, one value"));
  CHECK(has(messages("module Derived(size: dim) extends Base(size) { override norm: Identity()  override norm: Identity() }"), "E0303"));
  CHECK(has(messages("module Derived(a: dim, a: dim) extends Base(a) { }"), "two parameters `a`"));
  CHECK(has(messages("module Derived(size: dim) extends Base(size) { context 4  context 5 }"), "`context` stands twice"));
  CHECK(has(messages("module Derived(size: dim) extends Base(size) { policy { }  policy { } }"), "stands twice"));
}

TEST_CASE("E0303: a parameter of forward is a name of the module too") {
  const std::string said =
      Model(around("d: dim", "a: Linear(c.d, c.d)  forward(a: [tokens, c.d]) { return a }")).config(R"({"d": 4})").messages();
  CHECK(has(said, "E0303"));
}

TEST_CASE("E0341: a base that cannot be one") {
  CHECK(codes("module Derived(size: dim) extends Bsae(size) { }") == "E0341");
  CHECK(has(messages("module Derived(size: dim) extends Bsae(size) { }"), "did you mean `Base`?"));
  CHECK(codes("module Derived(size: dim) extends C(size) { }") == "E0341");
  CHECK(has(messages("module Derived(size: dim) extends C(size) { }"), "is a config, not a module"));
  CHECK(codes("module Other(n: dim) extends Derived(n) { }\nmodule Derived(n: dim) extends Other(n) { }") == "E0341 E0341");
}

TEST_CASE("the arguments of a base are checked like any") {
  CHECK(codes("module Derived(n: dim) extends Base(n, 3) { }") == "E0313");
  CHECK(codes("module Derived(n: dim) extends Base(sise: n) { }") == "E0313");
  CHECK(codes("module Derived(n: dim) extends Base(\"x\") { }") == "E0314");
}

TEST_CASE("W0340: a base's member that the overridden forward alone used") {
  const std::string said =
      messages("module Derived(size: dim) extends Base(size) { override forward(x: [tokens, size]) { return up(x) } }");
  CHECK(has(said, "warning[W0340]"));
  CHECK(has(said, "`Derived` no longer uses the child `norm` of its base `Base`"));
  CHECK(has(said, "remove norm"));
}

// match, is, if, ??, lists, comprehensions, indices.
#include <doctest/doctest.h>

#include "tests/frontend/sema/values_support.h"

using namespace modelc;
using namespace modelc::sema;
using namespace modelc::sema::test;

namespace {

struct Bound {
  explicit Bound(std::string_view json)
      : session(R"(
variant Scaling by kind {
    "default" | "none" { }
    "linear"           { factor: float }
    "yarn" | "su"      { factor: float    low: int? }
}
config C {
    scaling: Scaling?
    window:  int?
    act:     string = "silu"
    names:   map[int]?
}
fn of(s) = match s {
    none | "default" => 0
    "linear" as l    => l.factor
    "yarn" as y      => y.factor + (y.low ?? 1)
}
)") {
    config = session.bind("C", json);
    INFO(session.messages());
    REQUIRE_FALSE(config.is_error());
  }
  std::string eval(std::string_view expr) {
    Environment env = session.environment();
    env.define("c", config, {});
    const Value v = session.evaluator->eval(session.expression(expr), env);
    return v.is_error() ? session.codes() : show(v);
  }
  Session session;
  Value config;
};

std::string value_of(std::string_view expr) {
  Session s("");
  const Value v = s.eval(expr);
  return v.is_error() ? s.codes() : show(v);
}

}  // namespace

TEST_CASE("match on the case of a variant sees its fields") {
  CHECK(Bound("{}").eval("of(c.scaling)") == "0");
  CHECK(Bound(R"({"scaling": null})").eval("of(c.scaling)") == "0");
  CHECK(Bound(R"({"scaling": {"kind": "none"}})").eval("of(c.scaling)") == "0");
  CHECK(Bound(R"({"scaling": {"kind": "linear", "factor": 2}})").eval("of(c.scaling)") == "2.0");
  CHECK(Bound(R"({"scaling": {"kind": "yarn", "factor": 4, "low": 3}})").eval("of(c.scaling)") == "7.0");
  CHECK(Bound(R"({"scaling": {"kind": "su", "factor": 4}})").eval("of(c.scaling)") == "5.0");
}

TEST_CASE("is asks for a case, for none, for a literal") {
  Bound yarn(R"({"scaling": {"kind": "yarn", "factor": 4}, "window": 7})");
  CHECK(yarn.eval("c.scaling is \"yarn\"") == "true");
  CHECK(yarn.eval("c.scaling is \"su\"") == "true");
  CHECK(yarn.eval("c.scaling is \"linear\"") == "false");
  CHECK(yarn.eval("c.scaling is not \"linear\"") == "true");
  CHECK(yarn.eval("c.scaling is not none") == "true");
  CHECK(yarn.eval("c.window is none") == "false");
  CHECK(yarn.eval("c.window is 7") == "true");
  CHECK(yarn.eval("c.act is \"silu\"") == "true");
  CHECK(yarn.eval("c.scaling.factor if c.scaling is \"yarn\" else 1.0") == "4.0");
  Bound none("{}");
  CHECK(none.eval("c.scaling is none") == "true");
  CHECK(none.eval("c.scaling is \"yarn\"") == "false");
  CHECK(none.eval("c.window ?? 12") == "12");
  CHECK(none.eval("c.window ?? c.window ?? 3") == "3");
}

TEST_CASE("what a match or `is` cannot mean") {
  Bound yarn(R"({"scaling": {"kind": "yarn", "factor": 4}})");
  CHECK(yarn.eval("c.scaling is \"yarm\"") == "E0319");
  CHECK(holds(yarn.session.messages(), "Scaling has no case \"yarm\""));
  CHECK(holds(yarn.session.messages(), "did you mean `yarn`?"));
  const auto codes = [](std::string_view json, std::string_view expr) {
    Bound b(json);
    b.eval(expr);
    return b.session.messages();
  };
  CHECK(holds(codes("{}", "c.scaling is \"other\""), "E0319"));
  CHECK(holds(codes(R"({"scaling": {"kind": "yarn", "factor": 4}})", "match c.scaling { \"yarn\" => 1 }"),
              "this match on Scaling misses none, \"default\" and \"linear\""));
  CHECK(holds(codes("{}", "match c.scaling { none => 0 \"yarn\" => 1 }"), "E0318"));
  CHECK(holds(codes("{}", "match c.scaling { _ => 0 \"yarn\" => 1 }"), "stands behind `_`"));
  CHECK(holds(codes("{}", "match c.scaling { none => 0 \"yarn\" => 1 \"yarn\" => 2 _ => 3 }"), "has an arm already"));
  CHECK(holds(codes("{}", "match c.act { \"gelu\" => 1 }"), "this match has no arm for \"silu\""));
  CHECK(holds(codes("{}", "match c.act { 1 => 1 _ => 2 }"), "a string is never 1"));
  CHECK(holds(codes("{}", "match [1] { 1 => 1 _ => 2 }"), "E0310"));
  CHECK(holds(codes(R"({"scaling": {"kind": "yarn", "factor": 4}})", "c.scaling == \"yarn\""), "c.scaling is \"yarn\""));
}

TEST_CASE("a field of another case, of nothing, of none") {
  Bound linear(R"({"scaling": {"kind": "linear", "factor": 2}})");
  CHECK(linear.eval("c.scaling.low") == "E0315");
  CHECK(holds(linear.session.messages(), "the case \"linear\" of Scaling has no field `low`"));
  CHECK(holds(linear.session.messages(), "it is a field of \"yarn\""));
  Bound none("{}");
  CHECK(none.eval("c.scaling.factor") == "E0316");
  CHECK(holds(none.session.messages(), "scaling = none (absent from config.json)"));
  Bound other("{}");
  CHECK(other.eval("c.windo") == "E0315");
  CHECK(holds(other.session.messages(), "did you mean `window`?"));
  CHECK(Bound("{}").eval("c.act.length") == "E0315");
  CHECK(Bound("{}").eval("c.window + 1") == "E0316");
}

TEST_CASE("match on texts and numbers") {
  CHECK(value_of("match \"b\" { \"a\" | \"b\" => 1 _ => 2 }") == "1");
  CHECK(value_of("match 3 { 1 => 10 3 => 30 }") == "30");
  CHECK(value_of("match none { none => 1 _ => 2 }") == "1");
  CHECK(value_of("match true { true => 1 false => 2 }") == "1");
  // Only the arm that is taken is evaluated.
  CHECK(value_of("match 1 { 1 => 5 _ => 1 / 0 }") == "5");
  CHECK(value_of("5 if true else 1 / 0") == "5");
  CHECK(value_of("5 ?? 1 / 0") == "5");
}

TEST_CASE("lists and what is made of them") {
  CHECK(value_of("[1, \"a\", [true]]") == "[1, \"a\", [true]]");
  CHECK(value_of("[i * i for i in 0..4]") == "[0, 1, 4, 9]");
  CHECK(value_of("[i for i in 2..2]") == "[]");
  CHECK(value_of("[i for i in 3..1]") == "[]");
  CHECK(value_of("[i for i in 0..(2 - 10)]") == "E0307");
  CHECK(value_of("[i for i in 0..6 if i % 2 == 1]") == "[1, 3, 5]");
  CHECK(value_of("[s for s in [\"a\", \"b\"]]") == "[\"a\", \"b\"]");
  CHECK(value_of("[[j for j in 0..i] for i in 1..3]") == "[[0], [0, 1]]");
  CHECK(value_of("[5, 6, 7][1]") == "6");
  CHECK(value_of("[5, 6, 7, 8][1..3]") == "[6, 7]");
  CHECK(value_of("[5, 6, 7, 8][0..4 by 2]") == "[5, 7]");
  CHECK(value_of("[5, 6][2]") == "E0322");
  CHECK(value_of("[5, 6][-1]") == "E0322");
  CHECK(value_of("[5, 6][1..3]") == "E0322");
  CHECK(value_of("[5, 6][..]") == "E0322");
  CHECK(value_of("[5, 6][0, 1]") == "E0322");
  CHECK(value_of("3[0]") == "E0322");
  CHECK(value_of("[5][\"a\"]") == "E0307");
  CHECK(value_of("[i for i in 0..1.5]") == "E0307");
  CHECK(value_of("[i for i in 3]") == "E0307");
  CHECK(value_of("[i for i in 0..3 if i]") == "E0310");
  // The first element that fails is said, and only that.
  CHECK(value_of("[6 / i for i in 1..6]") == "E0308");
  CHECK(value_of("[\"full\" if (i + 1) % 3 == 0 else \"sliding\" for i in 0..3]") == "[\"sliding\", \"sliding\", \"full\"]");
}

TEST_CASE("a list has a bound, and so a number of a configuration cannot make a loop of it") {
  CHECK(value_of("[i for i in 0..2000000000]") == "E0320");
  CHECK(value_of("len([i for i in 0..1000000])") == "1000000");
  CHECK(value_of("[i for i in (-9223372036854775807)..9223372036854775807]") == "E0320");
}

TEST_CASE("maps are read by key") {
  Bound b(R"({"names": {"a": 1, "b": 2}})");
  CHECK(b.eval("len(c.names)") == "2");
  CHECK(b.eval("c.names[\"b\"]") == "2");
  CHECK(b.eval("\"a\" in c.names") == "true");
  CHECK(b.eval("\"z\" in c.names") == "false");
  CHECK(b.eval("c.names[\"bb\"]") == "E0322");
  CHECK(holds(Bound(R"({"names": {}})").eval("c.names.a"), "E0315"));
}

// The closed world: keys that are bound, ignored, refused; --set; inheritance.
#include <doctest/doctest.h>

#include "tests/frontend/sema/values_support.h"

using namespace modelc;
using namespace modelc::sema;
using namespace modelc::sema::test;

namespace {

std::string errors(std::string_view text, std::string_view json, std::vector<ConfigInput::Override> overrides = {}) {
  Session s(text);
  return s.bind_errors("C", json, std::move(overrides));
}

std::string codes(std::string_view text, std::string_view json, std::vector<ConfigInput::Override> overrides = {}) {
  Session s(text);
  s.bind("C", json, std::move(overrides));
  return s.codes();
}

}  // namespace

TEST_CASE("every key of the file is named, or refused by name with the way out") {
  constexpr std::string_view text = "config C { hidden_size: dim = 1 }";
  const std::string message = errors(text, "{\n\"hiden_size\": 64}");
  CHECK(holds(message, "E0201"));
  CHECK(holds(message, "nothing in C binds `hiden_size` = 64"));
  CHECK(holds(message, "config.json:2"));
  CHECK(holds(message, "did you mean `hidden_size`?"));
  CHECK(holds(message, "ignore"));
  CHECK(codes(text, R"({"a": 1, "b": {"c": 2}, "d": null})") == "E0201 E0201");
}

TEST_CASE("ignore and refuse take keys, paths and patterns") {
  CHECK(codes("config C { ignore a, b }", R"({"a": 1, "b": [2]})") == "");
  CHECK(codes("config C { ignore \"*_token_id\", \"*dropout*\" }", R"({"eos_token_id": 1, "attention_dropout": 0.1, "dropout": 0})") == "");
  CHECK(codes("config C { ignore \"*_token_id\" }", R"({"token_id": 1})") == "E0201");
  CHECK(codes("config C { ignore \"transformers.js_config\" }", R"({"transformers.js_config": {"a": 1}})") == "");
  CHECK(codes("config C { ignore a.b }", R"({"a": {"b": 1}})") == "");
  CHECK(codes("config C { ignore a.b }", R"({"a": {"b": 1, "c": 2}})") == "E0201");
  CHECK(codes("config C { ignore \"a*\" }", R"({"x": {"ab": 1}})") == "E0201");
  const std::string message = errors("config C { refuse sliding_window }", "{\n\"sliding_window\": 4096}");
  CHECK(holds(message, "E0202"));
  CHECK(holds(message, "`sliding_window` = 4096 is refused by C"));
  CHECK(holds(message, "config.json:2"));
  CHECK(holds(message, "--set sliding_window=null"));
  CHECK(codes("config C { refuse sliding_window }", R"({"sliding_window": null})") == "");
  CHECK(codes("config C { refuse a.b }", R"({"a": {"b": 1, "c": 2}})") == "E0202 E0201");
  CHECK(holds(errors("config C { refuse a.b }", R"({"a": {"c": 2}})"), "`a.c` = 2"));
}

TEST_CASE("binding wins over both; a written-out key over a pattern; the derived config over its base") {
  CHECK(codes("config B { refuse a } config C extends B { a: int }", R"({"a": 1})") == "");
  CHECK(codes("config B { ignore a } config C extends B { refuse a }", R"({"a": 1})") == "E0202");
  CHECK(codes("config B { refuse a } config C extends B { ignore a }", R"({"a": 1})") == "");
  CHECK(codes("config C { ignore \"a*\" refuse ab }", R"({"ab": 1, "ac": 1})") == "E0202");
  CHECK(codes("config B { refuse ab } config C extends B { ignore \"a*\" }", R"({"ab": 1})") == "");
  CHECK(codes("config C { ignore a refuse a }", "{}") == "E0219");
}

TEST_CASE("an object that fields read from is judged key by key") {
  constexpr std::string_view text = "config C { theta: float from rope.theta  deep: int from rope.inner.deep = 0 }";
  CHECK(codes(text, R"({"rope": {"theta": 1.0, "inner": {"deep": 3}}})") == "");
  CHECK(codes(text, R"({"rope": {"theta": 1.0}})") == "");
  CHECK(holds(errors(text, R"({"rope": {"theta": 1.0, "type": "x"}})"), "nothing in C binds `rope.type` = \"x\""));
  CHECK(holds(errors(text, R"({"rope": {"theta": 1.0, "inner": {"other": 3}}})"), "`rope.inner.other` = 3"));
  CHECK(holds(errors(text, R"({"rope": 3})"), "E0204"));
  CHECK(holds(errors(text, R"({"rope": 3})"), "nothing in C binds `rope` = 3"));
}

TEST_CASE("nested configs are closed, too") {
  constexpr std::string_view text = R"(
      config Inner { a: int  ignore b }
      config C { inner: Inner  more: list[Inner] = []  named: map[Inner]? })";
  CHECK(codes(text, R"({"inner": {"a": 1, "b": 2}})") == "");
  CHECK(holds(errors(text, R"({"inner": {"a": 1, "c": 2}})"), "nothing in Inner binds `inner.c` = 2"));
  CHECK(holds(errors(text, R"({"inner": {}})"), "`inner.a` is missing in `inner` of config.json"));
  CHECK(codes(text, R"({"inner": 3})") == "E0203");
  CHECK(codes(text, R"({"inner": {"a": 1}, "more": [{"a": 1}, {"a": 2, "b": 0}]})") == "");
  CHECK(holds(errors(text, R"({"inner": {"a": 1}, "more": [{"a": 1}, {"a": 2, "x": 0}]})"), "nothing in Inner binds `more[1].x` = 0"));
  CHECK(holds(errors(text, R"({"inner": {"a": 1}, "named": {"k": {"a": 2, "x": 0}}})"), "`named.k.x` = 0"));
  Session s(text);
  const Value c = s.bind("C", R"({"inner": {"a": 5}})");
  Environment env = s.environment();
  env.define("c", c, {});
  CHECK(s.evaluator->eval(s.expression("c.inner.a"), env).as_int() == 5);
}

TEST_CASE("--set supplies, overrides and takes away") {
  constexpr std::string_view text = "config C { a: int  b: int from x.b | b = 0  refuse r  ignore i }";
  Session s(text);
  const Value c = s.bind("C", "{\n\"a\": 1}", {{"a", 2}, {"x.b", 7}});
  CHECK(s.codes() == "");
  CHECK(field_text(c, "a") == "2");
  CHECK(field_text(c, "b") == "7");
  CHECK(s.notes == std::vector<std::string>{"a = 2 by --set (config.json:2 says 1)", "x.b = 7 by --set"});
  CHECK(formula_origins(c.as_config().find("a")->value.formula()) == std::vector<std::string>{"a = 2 from --set a=2"});
  CHECK(codes(text, R"({"a": 1, "r": 1})", {{"r", Json()}}) == "");
  CHECK(codes(text, R"({"a": 1})", {{"a", Json()}}) == "E0204");
  CHECK(codes(text, R"({})", {{"a", 1}, {"a", "x"}}) == "E0203");
  CHECK(codes(text, R"({})", {{"a", "x"}, {"a", 1}}) == "");
  // A later value takes the place of all that was said below its key.
  CHECK(codes(text, R"({"a": 1})", {{"x.b", 7}, {"x", Json()}}) == "E0213");
  CHECK(codes(text, R"({"a": 1})", {{"x.b", "no"}, {"x", JsonObject()}}) == "");
  CHECK(codes(text, R"({"a": 1})", {{"x.b", 7}, {"x", 2}, {"xb", 3}}) != "");
  const std::string unknown = errors(text, R"({"a": 1})", {{"aa", 2}});
  CHECK(holds(unknown, "E0213"));
  CHECK(holds(unknown, "--set aa=2"));
  CHECK(codes(text, R"({"a": 1})", {{"nothing", Json()}}) == "E0213");
  CHECK(codes(text, R"({"a": 1})", {{"a.b", 2}}) == "E0218");
  CHECK(codes(text, R"({"a": 1})", {{"x..b", 2}}) == "E0213");
  CHECK(codes(text, R"({"a": 1})", {{"", 2}}) == "E0213");
  CHECK(codes(text, R"({"a": 1})", {{"r", 2}}) == "E0202");
  Session ignored(text);
  ignored.bind("C", R"({"a": 1})", {{"i", 2}});
  CHECK(ignored.codes() == "");
  CHECK(ignored.notes.back() == "--set i=2 has no effect: C ignores the key");
}

TEST_CASE("inheritance: fields are added, overridden and removed, in chains") {
  constexpr std::string_view text = R"(
      config A { kind: "a"  size: dim  rest: int = size  let twice = 2 * size  fn plus(x) = x + size  require size > 1 }
      config B extends A { override kind: "b"  extra: bool = false }
      config C extends B { override kind: "c"  override rest: int = 7  remove twice  let twice = 3 * size })";
  Session s(text);
  const Value c = s.bind("C", R"({"kind": "c", "size": 4})");
  CHECK(s.codes() == "");
  CHECK(field_text(c, "rest") == "7");
  CHECK(field_text(c, "twice") == "12");
  CHECK(c.as_config().definition->is_a(s.symbol("A")));
  CHECK(c.as_config().definition->is_a(s.symbol("C")));
  // Where its base is asked, the derived one passes; not the other way.
  Session m(std::string(text) + " module M(c: A) { } module N(c: C) { }");
  Environment env = m.environment();
  env.define("c", m.bind("C", R"({"kind": "c", "size": 4})"), {});
  env.define("a", m.bind("A", R"({"kind": "a", "size": 4})"), {});
  CHECK_FALSE(m.evaluator->eval(m.expression("M(c)"), env).is_error());
  CHECK(m.codes() == "");
  CHECK(m.evaluator->eval(m.expression("N(a)"), env).is_error());
  CHECK(m.codes() == "E0314");
  CHECK(codes(text, R"({"kind": "b", "size": 4})") == "E0210");
  CHECK(codes(text, R"({"kind": "c", "size": 1})") == "E0207");
}

TEST_CASE("wrong definitions") {
  CHECK(holds(errors("config C { a: int a: int }", "{}"), "`a` is declared twice in C"));
  CHECK(holds(errors("config C { override a: int }", "{}"), "`a` overrides nothing"));
  CHECK(holds(errors("config B { a: int } config C extends B { a: int }", "{}"), "write `override a: …`"));
  CHECK(holds(errors("config B { let a = 1 } config C extends B { let a = 2 }", "{}"), "write `remove a` first"));
  CHECK(holds(errors("config C { remove a }", "{}"), "`remove a`: no base has this name"));
  CHECK(holds(errors("config B { abc: int } config C extends B { remove abd }", "{}"), "did you mean `abc`?"));
  CHECK(holds(errors("config C extends D { }", "{}"), "no config `D` is known here"));
  CHECK(holds(errors("fn D(x) = x config C extends D { }", "{}"), "`D` is a fn, not a config"));
  CHECK(holds(errors("config C extends C { }", "{}"), "C extends itself"));
  CHECK(holds(errors("config B extends C { } config C extends B { }", "{}"), "E0214"));
  CHECK(holds(errors("config C { a, b: int from x }", "{}"), "`from` belongs to a field of one name"));
  CHECK(holds(errors("config C { a: itn }", "{}"), "no type `itn` is known here"));
  CHECK(holds(errors("config C { a: module }", "{}"), "E0329"));
  CHECK(holds(errors("config C { a: f32[3] }", "{}"), "E0329"));
  CHECK(holds(errors("config C { a: [3] }", "{}"), "E0329"));
  CHECK(holds(errors("config C { a: fn }", "{}"), "E0329"));
  CHECK(holds(errors("config C { a: none }", "{}"), "E0329"));
  CHECK(holds(errors("config C { a: int = hiden }", "{}"), "no name `hiden` is known here"));
  CHECK(holds(errors("config C { hidden: int let x = hiden }", "{}"), "did you mean `hidden`?"));
  CHECK(holds(errors("config C { fn f(x) = y }", "{}"), "E0301"));
  CHECK(holds(errors("config C { a: int fn f(a) = a }", "{}"), "E0303"));
  std::string chain = "config C0 { }";
  for (int i = 1; i < 100; ++i) { chain += " config C" + std::to_string(i) + " extends C" + std::to_string(i - 1) + " { }"; }
  CHECK(holds(errors(chain + " config C extends C99 { }", "{}"), "a chain of more than 64 configs"));
}

TEST_CASE("a definition is wrong without a configuration, too") {
  Session s("config C { a: int = hiden }");
  CHECK_FALSE(check_config(*s.evaluator, s.symbol("C")));
  CHECK(s.codes() == "E0301");
  Session good("config C { a: int = b b: int }");
  CHECK(check_config(*good.evaluator, good.symbol("C")));
}

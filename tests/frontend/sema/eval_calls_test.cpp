// Names, fns, recipes and their arguments.
#include <doctest/doctest.h>

#include "tests/frontend/sema/values_support.h"

using namespace modelc;
using namespace modelc::sema;
using namespace modelc::sema::test;

namespace {

constexpr std::string_view modules = R"(
fn double(x) = 2 * x
fn mean_of(a, b) {
    let s = a + b
    return s / 2.0
}
fn forever(x) = forever(x + 1)
fn fork(x) = fork(x + 1) + fork(x + 2)
fn pair(a) { return a, a + 1 }

interface FeedForward(size: dim) { forward(x: [tokens, size]) -> [tokens, size] }
interface Bare { forward(x: [tokens]) }

module Linear(in_dim: dim, out_dim: dim, has_bias: bool = false) { }
module Scaled(size: dim, scale: float = size ^ -0.5, window: int? = none, kind: "halves" | "adjacent" = "halves") { }
module Block(size: dim, norm: module, ff: FeedForward(size), more: list[FeedForward(size)] = [], act: fn = silu,
             maybe: module? = none) { }
module Lists(a: list[int], b: list[string, 2] = ["x", "y"]) { }
module Plain { }
encoding blocks(rows: dim, columns: dim) of [..., n, k] {
    part codes at "{name}": u8[..., n, k]
    value codes as f32
}
encoding fixed of [..., k] {
    part codes at "{name}": u8[..., k]
    value codes as f32
}
config C { a: int }
variant V by kind { "x" {} }
)";

std::string show_of(std::string_view expr) {
  Session s(modules);
  const Value v = s.eval(expr);
  return v.is_error() ? s.codes() : show(v, 1000);
}

std::string message_of(std::string_view expr) {
  Session s(modules);
  CHECK(s.eval(expr).is_error());
  CHECK(s.sink.error_count() == 1);
  return s.messages();
}

}  // namespace

TEST_CASE("fns are expanded, with their arguments by place or by name") {
  CHECK(show_of("double(3)") == "6");
  CHECK(show_of("double(x: 3)") == "6");
  CHECK(show_of("mean_of(1, b: 2)") == "1.5");
  CHECK(show_of("(fn(a, b) = a * b)(2, 3)") == "6");
  CHECK(show_of("pair(1)") == "(1, 2)");
  CHECK(show_of("double") == "double");
}

TEST_CASE("a fn written in place captures what stands around it") {
  Session s(modules);
  Environment env = s.environment();
  env.define("k", Value::integer(10), {});
  const Value f = s.evaluator->eval(s.expression("fn(x) = x * k"), env);
  env.define("k", Value::integer(99), {});
  env.define("f", f, {});
  CHECK(s.evaluator->eval(s.expression("f(2)"), env).as_int() == 20);
  // Two that capture equal things are equal; the same text with another capture is not.
  const ast::Expr& text = s.expression("fn(x) = x * k");
  Environment ten = s.environment(), eleven = s.environment(), other_ten = s.environment();
  ten.define("k", Value::integer(10), {});
  other_ten.define("k", Value::integer(10), {});
  eleven.define("k", Value::integer(11), {});
  CHECK(equal(s.evaluator->eval(text, ten), s.evaluator->eval(text, other_ten)));
  CHECK_FALSE(equal(s.evaluator->eval(text, ten), s.evaluator->eval(text, eleven)));
}

TEST_CASE("wrong arguments of a fn") {
  CHECK(holds(message_of("double()"), "the fn `double` lacks `x` here"));
  CHECK(holds(message_of("double(1, 2)"), "the fn `double` takes 1 argument, not more"));
  CHECK(holds(message_of("double(y: 1)"), "has no parameter `y`"));
  CHECK(holds(message_of("mean_of(1, a: 2)"), "`a` is given twice"));
  CHECK(holds(message_of("mean_of(a: 1, 2)"), "a positional argument stands before those with a name"));
  CHECK(holds(message_of("3(1)"), "E0311"));
  CHECK(holds(message_of("\"a\"()"), "is a string and cannot be called"));
}

TEST_CASE("a mistake inside a fn names the call") {
  const std::string message = message_of("double(\"a\")");
  CHECK(holds(message, "`*` takes numbers, not a string"));
  CHECK(holds(message, "in this call of `double`"));
}

TEST_CASE("fns that call themselves without end are stopped") {
  CHECK(holds(message_of("forever(0)"), "E0320"));
  CHECK(holds(message_of("forever(0)"), "fns call each other more than 64 deep"));
  CHECK(holds(message_of("fork(0)"), "E0320"));
  // Work that stays below the depth but not below the number of steps.
  Session s("fn wide(n) = 0 if n == 0 else wide(n - 1) + wide(n - 1)", {64, 1'000'000, 100'000});
  CHECK(s.eval("wide(40)").is_error());
  CHECK(s.codes() == "E0320");
  CHECK(holds(s.messages(), "more than 100,000 expressions"));
}

TEST_CASE("nesting of expressions in fns does not exhaust the stack") {
  std::string deep = "x";
  for (int i = 0; i < 90; ++i) deep = "(" + deep + " + 1)";
  Session s("fn f(x) = f(" + deep + ") if x > 0 else 0");
  CHECK(s.eval("f(1)").is_error());
  CHECK(s.codes() == "E0320");
}

TEST_CASE("names: unknown ones with the nearest, and those that are no values") {
  CHECK(holds(message_of("doubel(1)"), "E0301"));
  CHECK(holds(message_of("doubel(1)"), "did you mean `double`?"));
  CHECK(holds(message_of("tokns + 1"), "did you mean `tokens`?"));
  CHECK(holds(message_of("C"), "`C` is a config, not a value"));
  CHECK(holds(message_of("V"), "E0306"));
  CHECK(holds(message_of("KVCache(1, 2)"), "`KVCache` is a kind of state"));
  CHECK(holds(message_of("f32"), "`f32` is a type, not a value"));
}

TEST_CASE("a module with its arguments is a recipe") {
  CHECK(show_of("Linear(4, 8)") == "Linear(in_dim: 4, out_dim: 8, has_bias: false)");
  CHECK(show_of("Linear(4, out_dim: 8, has_bias: true)") == "Linear(in_dim: 4, out_dim: 8, has_bias: true)");
  CHECK(show_of("Linear") == "Linear");
  CHECK(show_of("Plain") == "Plain()");
  CHECK(show_of("Plain()") == "Plain()");
  CHECK(show_of("Scaled(64)") == "Scaled(size: 64, scale: 0.125, window: none, kind: \"halves\")");
  CHECK(show_of("Scaled(64, 1, 3, kind: \"adjacent\")") == "Scaled(size: 64, scale: 1.0, window: 3, kind: \"adjacent\")");
  CHECK(show_of("Block(8, norm: Linear(8, 8), ff: Linear(8, 8), act: double)") ==
        "Block(size: 8, norm: Linear(in_dim: 8, out_dim: 8, has_bias: false), "
        "ff: Linear(in_dim: 8, out_dim: 8, has_bias: false), more: [], act: double, maybe: none)");
  CHECK(show_of("blocks(1, 2)") == "blocks(rows: 1, columns: 2)");
  CHECK(show_of("fixed") == "fixed()");
  CHECK(show_of("plain") == "plain");
}

TEST_CASE("recipes are equal when their modules and arguments are") {
  Session s(modules);
  CHECK(equal(s.eval("Linear(2 + 2, 8)"), s.eval("Linear(4, 8, has_bias: false)")));
  CHECK_FALSE(equal(s.eval("Linear(4, 8)"), s.eval("Linear(8, 4)")));
  CHECK_FALSE(equal(s.eval("Linear(4, 8)"), s.eval("Linear")));
  CHECK_FALSE(equal(s.eval("blocks(1, 2)"), s.eval("plain")));
  // 1 as a float argument and 1.0 are the same.
  CHECK(canonical(s.eval("Scaled(4, 1)")) == canonical(s.eval("Scaled(4, 1.0)")));
}

TEST_CASE("a number argument keeps the formula, or takes the parameter's name") {
  Session s(modules);
  Environment env = s.environment();
  env.define("heads", Value::integer(4, named_formula("heads", "4", "from config.json:5")), {});
  const Value recipe = s.evaluator->eval(s.expression("Linear(10, heads * 16)"), env);
  const auto& arguments = recipe.as_recipe().arguments;
  CHECK(formula_text(arguments[0].second.formula()) == "in_dim");
  CHECK(show_formula(arguments[1].second) == "heads * 16 = 4 * 16 = 64");
  const Environment scope = s.evaluator->module_scope(recipe.as_recipe());
  CHECK(show_formula(s.evaluator->eval(s.expression("in_dim * out_dim"), scope)) == "in_dim * (heads * 16) = 10 * (4 * 16) = 640");
}

TEST_CASE("arguments of the wrong type") {
  CHECK(holds(message_of("Linear(0, 8)"), "the argument `in_dim` of the module `Linear` is `dim`: found an int, 0"));
  CHECK(holds(message_of("Linear(1.5, 8)"), "found a float, 1.5"));
  CHECK(holds(message_of("Linear(4, 8, 1)"), "E0314"));
  CHECK(holds(message_of("Linear(4)"), "the module `Linear` lacks `out_dim` here"));
  CHECK(holds(message_of("Linear(4, 8, bias: true)"), "E0313"));
  CHECK(holds(message_of("Linear(none, 8)"), "E0316"));
  CHECK(holds(message_of("Scaled(4, window: 1.5)"), "is `int?`: found a float"));
  CHECK(holds(message_of("Scaled(4, kind: \"halvs\")"), "did you mean `halves`?"));
  CHECK(holds(message_of("Block(8, 3, Linear(8, 8))"), "the argument `norm` of the module `Block` is `module`: found an int, 3"));
  CHECK(holds(message_of("Block(8, Linear, Linear(8, 8))"), "`Linear` has none here"));
  CHECK(holds(message_of("Block(8, Linear(8, 8), 4)"), "E0314"));
  CHECK(holds(message_of("Block(8, Linear(8, 8), Linear(8, 8), act: 4)"), "E0314"));
  CHECK(holds(message_of("Lists([1, 2.5])"), "element 1 of the argument `a`"));
  CHECK(holds(message_of("Lists([1], [\"x\"])"), "has 1 element, expected 2"));
  CHECK(holds(message_of("Lists(3)"), "is `list[int]`: found an int, 3"));
  CHECK(holds(message_of("Linear(4, 8)(3)"), "is a recipe, not a member"));
  CHECK(holds(message_of("plain(1)"), "E0311"));
}

TEST_CASE("interfaces are asked of the checker with their arguments") {
  struct Checker : InterfaceChecker {
    std::string seen;
    bool fits(const Recipe& recipe, const Symbol& interface, std::span<const std::pair<std::string, Value>> arguments,
              source::Span) override {
      seen += recipe.symbol->name + " as " + interface.name;
      for (const auto& [name, value] : arguments) seen += " " + name + "=" + show(value);
      seen += ";";
      return true;
    }
  } checker;
  Session s(modules);
  s.evaluator->set_interfaces(&checker);
  s.eval("Block(8, Linear(1, 2), Linear(8, 8), more: [Linear(8, 8)])");
  CHECK(s.codes() == "");
  CHECK(checker.seen == "Linear as FeedForward size=8;Linear as FeedForward size=8;");
}

TEST_CASE("locals share one name space with what is around them") {
  Session s("fn f(tokens) = tokens\nfn g(a) { let a = 1 return a }\nfn h(a) = [a for a in 0..2]");
  s.eval("f(1)");
  CHECK(holds(s.messages(), "`tokens` is a run-time axis"));
  s.sink.clear();
  s.eval("g(1)");
  CHECK(s.codes() == "E0303");
  s.sink.clear();
  s.eval("h(1)");
  CHECK(s.codes() == "E0303");
}

TEST_CASE("unknown types are named") {
  const auto message = [](std::string_view text) {
    Session s(text);
    CHECK(s.eval("M(1)").is_error());
    return s.messages();
  };
  CHECK(holds(message("module M(a: itn) { }"), "no type `itn` is known here"));
  CHECK(holds(message("module M(a: itn) { }"), "did you mean `int`?"));
  CHECK(holds(message("module N { }  module M(a: N) { }"), "`N` is a module, not a type"));
  CHECK(holds(message("module M(a: f32[4]) { }"), "is a type of tensors"));
  CHECK(holds(message("module M(a: [tokens]) { }"), "E0329"));
  CHECK(holds(message("module M(a: int(3)) { }"), "`int` takes no arguments"));
}

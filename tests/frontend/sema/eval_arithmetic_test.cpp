// Operators and functions on values that are known early.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/frontend/sema/values_support.h"

using namespace modelc;
using namespace modelc::sema;
using namespace modelc::sema::test;

namespace {

std::string value_of(std::string_view expr) {
  Session s("");
  const Value v = s.eval(expr);
  return v.is_error() ? s.codes() : show(v);
}

}  // namespace

TEST_CASE("whole numbers stay whole, and widen beside a float") {
  CHECK(value_of("2 + 3 * 4") == "14");
  CHECK(value_of("7 - 10") == "-3");
  CHECK(value_of("6 / 3") == "2");
  CHECK(value_of("7 % 4") == "3");
  CHECK(value_of("-7 % 4") == "1");
  CHECK(value_of("1 + 0.5") == "1.5");
  CHECK(value_of("6.0 / 4") == "1.5");
  CHECK(value_of("2.0 * 3") == "6.0");
  CHECK(value_of("7.5 % 2") == "1.5");
  CHECK(value_of("-2 ^ 2") == "-4.0");
  CHECK(value_of("64 ^ -0.5") == "0.125");
  CHECK(value_of("2 ^ 3 ^ 2") == "512.0");
  CHECK(value_of("2 ^ 2") == "4.0");
  CHECK(value_of("1_000_000 * 1000000") == "1000000000000");
}

TEST_CASE("a division of whole numbers is exact or an error") {
  Session s("");
  CHECK(s.eval("d / h", {{"d", "30"}, {"h", "4"}}).is_error());
  CHECK(s.codes() == "E0308");
  CHECK(holds(s.messages(), "`d / h` = 30 / 4 does not come out even"));
  CHECK(holds(s.messages(), "div"));
  CHECK(value_of("0 / 5") == "0");
  CHECK(value_of("-6 / 3") == "-2");
}

TEST_CASE("what has no result is an error") {
  CHECK(value_of("1 / 0") == "E0309");
  CHECK(value_of("1 % 0") == "E0309");
  CHECK(value_of("1.0 / 0") == "E0309");
  CHECK(value_of("log(0)") == "E0309");
  CHECK(value_of("sqrt(-1)") == "E0309");
  CHECK(value_of("(-8) ^ 0.5") == "E0309");
  CHECK(value_of("9223372036854775807 + 1") == "E0309");
  CHECK(value_of("-9223372036854775807 - 2") == "E0309");
  CHECK(value_of("4611686018427387904 * 2") == "E0309");
  CHECK(value_of("(-9223372036854775807 - 1) / -1") == "E0309");
  CHECK(value_of("-(-9223372036854775807 - 1)") == "E0309");
  CHECK(value_of("abs(-9223372036854775807 - 1)") == "E0309");
  CHECK(value_of("div(-9223372036854775807 - 1, -1)") == "E0309");
  CHECK(value_of("div(1, 0)") == "E0309");
  CHECK(value_of("1e308 * 10") == "E0309");
  CHECK(value_of("int(1e30)") == "E0309");
  CHECK(value_of("exp(1000)") == "E0309");
}

TEST_CASE("comparison and logic") {
  CHECK(value_of("1 < 2") == "true");
  CHECK(value_of("2 <= 1.5") == "false");
  CHECK(value_of("1 == 1.0") == "true");
  CHECK(value_of("9007199254740993 == 9007199254740992") == "false");
  CHECK(value_of("\"a\" == \"a\"") == "true");
  CHECK(value_of("\"a\" != \"b\"") == "true");
  CHECK(value_of("true == false") == "false");
  CHECK(value_of("[1, 2] == [1, 2.0]") == "true");
  CHECK(value_of("not true or true") == "true");
  CHECK(value_of("true and not false") == "true");
  CHECK(value_of("1 in [2, 1]") == "true");
  CHECK(value_of("\"a\" in [\"b\"]") == "false");
  CHECK(value_of("not (3 in [1, 2])") == "true");
  // The right side is not looked at where the left one decides.
  CHECK(value_of("false and 1 / 0 == 1") == "false");
  CHECK(value_of("true or 1 / 0 == 1") == "true");
}

TEST_CASE("operands of the wrong kind are named") {
  const auto message = [](std::string_view expr) {
    Session s("");
    CHECK(s.eval(expr).is_error());
    CHECK(s.sink.error_count() == 1);
    return s.messages();
  };
  CHECK(holds(message("1 + \"a\""), "E0307"));
  CHECK(holds(message("1 + \"a\""), "`+` takes numbers, not a string"));
  CHECK(holds(message("true * 2"), "`*` takes numbers, not a bool"));
  CHECK(holds(message("\"a\" < \"b\""), "`<` takes numbers, not a string"));
  CHECK(holds(message("\"1\" == 1"), "compares two values of one kind, not a string with an int"));
  CHECK(holds(message("1 and true"), "E0310"));
  CHECK(holds(message("not 1"), "`not` takes a bool, not an int"));
  CHECK(holds(message("1 if 2 else 3"), "a condition is a bool that is known early, not an int"));
  CHECK(holds(message("1 in 2"), "`in` looks in a list, not in an int"));
  CHECK(holds(message("-\"a\""), "`-` takes a number, not a string"));
  CHECK(holds(message("sqrt(\"a\")"), "`sqrt` takes a number, not a string"));
  CHECK(holds(message("none + 1"), "E0316"));
}

TEST_CASE("functions on numbers") {
  CHECK(value_of("div(7, 2)") == "3");
  CHECK(value_of("div(-7, 2)") == "-4");
  CHECK(value_of("ceil_div(7, 2)") == "4");
  CHECK(value_of("ceil_div(-7, 2)") == "-3");
  CHECK(value_of("ceil_div(576, 128)") == "5");
  CHECK(value_of("int(2.9)") == "2");
  CHECK(value_of("int(-2.9)") == "-2");
  CHECK(value_of("float(1) / 4") == "0.25");
  CHECK(value_of("min(3, 1, 2)") == "1");
  CHECK(value_of("max(1, 2.5)") == "2.5");
  CHECK(value_of("max([1, 5, 2])") == "5");
  CHECK(value_of("clamp(5, 0, 3)") == "3");
  CHECK(value_of("clamp(0.5, 0, 1)") == "0.5");
  CHECK(value_of("abs(-3)") == "3");
  CHECK(value_of("abs(-0.5)") == "0.5");
  CHECK(value_of("floor(1.5)") == "1.0");
  CHECK(value_of("ceil(1.5)") == "2.0");
  CHECK(value_of("sqrt(16)") == "4.0");
  CHECK(value_of("rsqrt(16)") == "0.25");
  CHECK(value_of("relu(-1)") == "0.0");
  CHECK(value_of("len([1, 2, 3])") == "3");
  CHECK(value_of("len([])") == "0");
  CHECK(value_of("exp2(3)") == "8.0");
  Session s("");
  CHECK(s.eval("log(8) / log(2)").as_real() == doctest::Approx(3));
  CHECK(s.eval("2 * pi").as_real() == doctest::Approx(6.283185307179586));
  CHECK(s.eval("sigmoid(0)").as_real() == doctest::Approx(0.5));
  CHECK(s.eval("silu(1)").as_real() == doctest::Approx(0.7310585786300049));
  CHECK(s.eval("gelu(1)").as_real() == doctest::Approx(0.8413447460685429));
  CHECK(s.eval("gelu_tanh(1)").as_real() == doctest::Approx(0.8411919906082768));
  CHECK(s.eval("quick_gelu(1)").as_real() == doctest::Approx(0.8457957659328212));
  CHECK(s.eval("softplus(1)").as_real() == doctest::Approx(1.3132616875182228));
  CHECK(s.eval("softplus(800)").as_real() == doctest::Approx(800));
  CHECK(s.eval("expm1(1e-10)").as_real() == doctest::Approx(1e-10));
  CHECK(s.eval("tanh(0.5)").as_real() == doctest::Approx(std::tanh(0.5)));
  CHECK(s.eval("erf(0.5) + sin(1) + cos(1)").as_real() == doctest::Approx(std::erf(0.5) + std::sin(1) + std::cos(1)));
  CHECK(s.codes() == "");
}

TEST_CASE("functions given the wrong arguments") {
  CHECK(value_of("div(1)") == "E0313");
  CHECK(value_of("sqrt(1, 2)") == "E0313");
  CHECK(value_of("div(a: 1, b: 2)") == "E0313");
  CHECK(value_of("max(1)") == "E0313");
  CHECK(value_of("clamp(1, 3, 2)") == "E0307");
  CHECK(value_of("len(3)") == "E0307");
  CHECK(value_of("div(1.5, 2)") == "E0307");
  CHECK(value_of("max(1, \"a\")") == "E0307");
  CHECK(value_of("arange(3)") == "E0323");
  CHECK(value_of("softmax(1)") == "E0323");
}

TEST_CASE("a number remembers the formula that led to it") {
  Session s("fn area(w, h) = w * h");
  Environment env = s.environment();
  env.define("heads", Value::integer(4, named_formula("heads", "4", "from config.json:5")), {});
  env.define("d", Value::integer(16, named_formula("d", "16", "", named_formula("head_dim", "16", "from config.json:7"))), {});
  const Value product = s.evaluator->eval(s.expression("heads * (d + 2) - 1"), env);
  CHECK(formula_text(product.formula()) == "heads * (d + 2) - 1");
  CHECK(formula_values(product.formula()) == "4 * (16 + 2) - 1");
  CHECK(show_formula(product) == "heads * (d + 2) - 1 = 4 * (16 + 2) - 1 = 71");
  CHECK(formula_origins(product.formula()) ==
        std::vector<std::string>{"heads = 4 from config.json:5", "d = head_dim = 16 from config.json:7"});
  // A fn's parameter keeps what it was given.
  CHECK(show_formula(s.evaluator->eval(s.expression("area(heads, 3)"), env)) == "heads * h = 4 * 3 = 12");
  CHECK(show_formula(s.evaluator->eval(s.expression("2 * 3"), env)) == "6");
  CHECK(show_formula(s.evaluator->eval(s.expression("ceil_div(heads, 3)"), env)) == "ceil_div(heads, 3) = ceil_div(4, 3) = 2");
  CHECK(show_formula(s.evaluator->eval(s.expression("-heads ^ 2"), env)) == "-heads ^ 2 = -4 ^ 2 = -16.0");
  CHECK(show_formula(s.evaluator->eval(s.expression("(2 ^ heads) ^ 2"), env)) == "(2 ^ heads) ^ 2 = (2 ^ 4) ^ 2 = 256.0");
  CHECK(show_formula(s.evaluator->eval(s.expression("heads - (d - 1)"), env)) == "heads - (d - 1) = 4 - (16 - 1) = -11");
  CHECK(s.codes() == "");
}

TEST_CASE("a formula does not grow without bound") {
  Session s("");
  Environment env = s.environment();
  Value x = Value::integer(1, named_formula("x", "1", "from config.json:1"));
  for (int i = 0; i < 200; ++i) {
    Environment inner = env;
    inner.define("x", x, {});
    x = s.evaluator->eval(s.expression("x + x - x"), inner);
  }
  CHECK(x.as_int() == 1);
  CHECK(x.formula()->size <= max_formula_size);
}

TEST_CASE("equality and keys ignore formulas, and tell values apart") {
  Session s("");
  const Value named = Value::integer(4, named_formula("heads", "4", "from config.json:5"));
  CHECK(equal(named, Value::integer(4)));
  CHECK(canonical(named) == canonical(Value::real(4)));
  const std::vector<std::string> different = {"1",      "1.5", "\"1\"",  "true",  "false", "none", "[1]", "[[1]]",
                                              "[1, 1]", "[]",  "(1, 1)", "\"a\"", "\"b\"", "-1",   "0.1", "0.2"};
  for (std::size_t i = 0; i < different.size(); ++i) {
    for (std::size_t j = 0; j < different.size(); ++j) {
      CAPTURE(different[i]);
      CAPTURE(different[j]);
      const Value a = s.eval(different[i]), b = s.eval(different[j]);
      CHECK(equal(a, b) == (i == j));
      CHECK((canonical(a) == canonical(b)) == (i == j));
    }
  }
}

TEST_CASE("sizes of run time") {
  Session s("axis frames: 2..3000 by 2");
  CHECK(show(s.eval("2 * tokens + 1")) == "2 * tokens + 1");
  CHECK(s.eval("tokens - tokens").is(ValueKind::integer));
  CHECK(s.eval("2 * tokens / tokens").as_int() == 2);
  CHECK(show(s.eval("div(frames + 1, 2)")) == "div(frames + 1, 2)");
  CHECK(s.dims.text(s.eval("ceil_div(frames, 2)").as_dim()) == "div(frames + 1, 2)");
  CHECK(s.dims.axis(*s.dims.find_axis("frames")).hi == std::optional<std::int64_t>(3000));
  CHECK(s.dims.axis(*s.dims.find_axis("frames")).by == 2);
  CHECK(s.codes() == "");
}

TEST_CASE("sizes of run time are sizes and no more") {
  const auto codes = [](std::string_view expr) {
    Session s("module M(n: dim) { }");
    CHECK(s.eval(expr).is_error());
    return s.codes();
  };
  CHECK(codes("tokens < 3") == "E0324");
  CHECK(codes("tokens == batch") == "E0324");
  CHECK(codes("tokens * 1.5") == "E0324");
  CHECK(codes("tokens ^ 2") == "E0324");
  CHECK(codes("tokens % 2") == "E0324");
  CHECK(codes("tokens / 2") == "E0308");
  CHECK(codes("sqrt(tokens)") == "E0324");
  CHECK(codes("div(tokens, 0)") == "E0309");
  CHECK(codes("div(tokens, batch)") == "E0324");
  CHECK(codes("M(tokens)") == "E0324");
  CHECK(codes("[i for i in 0..tokens]") == "E0324");
  CHECK(codes("[1, 2][tokens]") == "E0324");
  CHECK(codes("1 if tokens is none else 2") == "E0310");
  CHECK(codes("tokens * 9223372036854775807 * 9223372036854775807") == "E0309");
}

TEST_CASE("an axis is declared with whole numbers in order") {
  const auto codes = [](std::string_view axis) {
    Session s(axis);
    s.eval("a");
    return s.codes();
  };
  CHECK(codes("axis a: 1..") == "");
  CHECK(codes("axis a: 3..2") == "E0328");
  CHECK(codes("axis a: 0..2") == "E0307");
  CHECK(codes("axis a: 1..tokens") == "E0328");
  CHECK(codes("axis a: 1..8 by 0") == "E0307");
}

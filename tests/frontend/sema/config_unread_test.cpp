// Fields that nothing reads.
#include <doctest/doctest.h>

#include "tests/frontend/sema/values_support.h"

using namespace modelc;
using namespace modelc::sema;
using namespace modelc::sema::test;

namespace {

// The names of the fields that are reported when the expression has been evaluated with `c` bound.
struct Unread {
  Unread(std::string_view text, std::string_view json) : session(text), config(session.bind("C", json)) {
    INFO(session.messages());
    REQUIRE_FALSE(config.is_error());
  }
  std::string after(std::string_view expr, TensorContext* = nullptr) {
    Environment env = session.environment();
    env.define("c", config, {});
    session.evaluator->eval(session.expression(expr), env);
    INFO(session.messages());
    REQUIRE_FALSE(session.sink.has_errors());
    report_unread_fields(*session.evaluator, config, "M");
    std::string names;
    for (const diag::Diagnostic& d : session.sink.diagnostics()) {
      CHECK(d.code->text == "E0212");
      const auto begin = d.message.find('`') + 1;
      names += (names.empty() ? "" : " ") + d.message.substr(begin, d.message.find('`', begin) - begin);
    }
    return names;
  }
  Session session;
  Value config;
};

constexpr std::string_view text = R"(
fn area(x) = x.w * x.h
fn unused_branch(x) = x.h
module Layer(c: C, i: int) {
    let k = c.w
    fn f(x) = c.h
    child: Other(c) if c.deep
}
module Other(d: C) extends Base(d) { param w: [d.w] }
module Base(e: C) {
    forward(x: [tokens, e.h]) -> [tokens, e.h] { return x }
}
variant V by t { "a" { x, y: int } "b" { z: int } }
config C {
    w, h: int
    deep: bool = false
    v: V?
    kind: "x" = "x"
    kinds: list["x"] = []
}
)";

}  // namespace

TEST_CASE("reading a field is using it in an expression") {
  CHECK(Unread(text, R"({"w": 1, "h": 2})").after("1") == "w h deep v");
  CHECK(Unread(text, R"({"w": 1, "h": 2})").after("c.w") == "h deep v");
  CHECK(Unread(text, R"({"w": 1, "h": 2})").after("area(c)") == "deep v");
  const std::string message = [] {
    Unread u(text, R"({"w": 1, "h": 2})");
    u.after("[c.h, c.deep, c.v is none]");
    return u.session.messages();
  }();
  CHECK(holds(message, "nothing in M reads `w` of C"));
  CHECK(holds(message, "ignore w"));
}

TEST_CASE("a branch that is not taken reads what it mentions, through fns and modules") {
  constexpr std::string_view json = R"({"w": 1, "h": 2})";
  CHECK(Unread(text, json).after("c.w if c.deep else 1") == "h v");
  CHECK(Unread(text, json).after("1 if not c.deep else area(c)") == "v");
  CHECK(Unread(text, json).after("1 ?? c.w") == "h deep v");
  CHECK(Unread(text, json).after("c.deep and c.w == 1") == "h v");
  CHECK(Unread(text, json).after("match c.v { none => 1 \"a\" as a => c.w _ => c.h }") == "deep");
  CHECK(Unread(text, json).after("[c.w for i in 0..0]") == "h deep v");
  CHECK(Unread(text, json).after("[c.w for i in 0..3 if i > 5]") == "h deep v");
  CHECK(Unread(text, json).after("1 if true else Other(c)") == "deep v");
  CHECK(Unread(text, json).after("1 if true else Layer(c, 0)") == "v");
  CHECK(Unread(text, json).after("1 if true else [Layer(c, i: i) for i in 0..2]") == "v");
  CHECK(Unread(text, json).after("1 if true else (fn(q) = q.w)(c)") == "h deep v");
}

TEST_CASE("the fields of a case count as well, once the variant is read") {
  CHECK(Unread(text, R"({"w": 1, "h": 2, "v": {"t": "a", "x": 1, "y": 2}})").after("[area(c), c.deep, c.v.x]") == "y");
  CHECK(Unread(text, R"({"w": 1, "h": 2, "v": {"t": "a", "x": 1, "y": 2}})").after("[area(c), c.deep]") == "v");
  CHECK(Unread(text, R"({"w": 1, "h": 2, "v": {"t": "a", "x": 1, "y": 2}})")
            .after("[area(c), c.deep, match c.v { \"a\" as a => a.x if true else a.y _ => 0 }]") == "");
}

TEST_CASE("the config's own expressions read") {
  constexpr std::string_view own = R"(
      config C {
          a, b, c0, d, e, f: int
          g: list[int, a] = [0 for i in 0..b]
          let k = c0
          fn fun(x) = x + d
          require e > 0
          h: int in 0..f = 1
      })";
  CHECK(Unread(own, R"({"a": 1, "b": 1, "c0": 1, "d": 1, "e": 1, "f": 1, "g": [4]})").after("1") == "g h");
}

TEST_CASE("nested configs are judged as well") {
  constexpr std::string_view nested = "config I { p, q: int } config C { i: I  n: int }";
  CHECK(Unread(nested, R"({"i": {"p": 1, "q": 2}, "n": 3})").after("c.i.p + c.n") == "q");
  CHECK(Unread(nested, R"({"i": {"p": 1, "q": 2}, "n": 3})").after("c.n") == "i");
}

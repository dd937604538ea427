#include "frontend/graph/dims.h"

#include <doctest/doctest.h>

#include <random>

namespace modelc::graph {

namespace {

struct Table {
  DimTable dims;
  DimId t, b, f;                                 // tokens, batch, frames: 2..3000 by 2
  Table() {
    t = dims.of_axis(dims.add_axis({.name = "tokens", .hi = {}}));
    b = dims.of_axis(dims.add_axis({.name = "batch", .hi = 8}));
    f = dims.of_axis(dims.add_axis({.name = "frames", .lo = 2, .hi = 3000, .by = 2}));
  }
  DimId c(std::int64_t v) { return dims.constant(v); }
  DimId parse(std::string_view s) {
    const auto d = dims.parse(s);
    INFO(std::string(s));
    REQUIRE(d.has_value());
    return *d;
  }
};

std::int64_t floor_of(std::int64_t a, std::int64_t d) { return a / d - (a % d < 0 ? 1 : 0); }

// A random dim, built by the table and worked out directly beside it.
struct Pair {
  DimId dim;
  std::int64_t value;
};
Pair random_dim(Table& x, const std::vector<std::int64_t>& sizes, std::mt19937& rng, int depth) {
  auto pick = [&rng](int n) { return static_cast<int>(rng() % static_cast<unsigned>(n)); };
  if (depth == 0 || pick(5) == 0) {
    const int which = pick(4);
    if (which < 3) return {which == 0 ? x.t : which == 1 ? x.b : x.f, sizes[static_cast<std::size_t>(which)]};
    const std::int64_t v = pick(13) - 6;
    return {x.c(v), v};
  }
  const Pair a = random_dim(x, sizes, rng, depth - 1), b = random_dim(x, sizes, rng, depth - 1);
  switch (pick(4)) {
    case 0: return {x.dims.add(a.dim, b.dim), a.value + b.value};
    case 1: return {x.dims.sub(a.dim, b.dim), a.value - b.value};
    case 2: return {x.dims.mul(a.dim, b.dim), a.value * b.value};
    default: {
      const std::int64_t d = pick(6) + 1;
      return {x.dims.floor_div(a.dim, d), floor_of(a.value, d)};
    }
  }
}

}  // namespace

TEST_CASE("equal polynomials have equal ids") {
  Table x;
  CHECK(x.c(0) == DimId{});
  CHECK(x.c(576) == x.dims.mul(x.c(9), x.c(64)));
  CHECK(x.dims.add(x.t, x.b) == x.dims.add(x.b, x.t));
  CHECK(x.dims.sub(x.t, x.t) == DimId{});
  const DimId square = x.dims.mul(x.dims.add(x.t, x.b), x.dims.add(x.t, x.b));
  CHECK(square == x.parse("tokens * tokens + 2 * tokens * batch + batch * batch"));
  CHECK_FALSE(x.t == x.b);
  CHECK(x.dims.value(x.c(-3)) == -3);
  CHECK_FALSE(x.dims.value(x.t).has_value());
}

TEST_CASE("random dims evaluate as their formula, and read back from their text") {
  std::mt19937 rng(11);
  Table x;
  int non_trivial = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::vector<std::int64_t> sizes = {static_cast<std::int64_t>(rng() % 20 + 1), static_cast<std::int64_t>(rng() % 8 + 1),
                                             2 * static_cast<std::int64_t>(rng() % 10 + 1)};
    const Pair p = random_dim(x, sizes, rng, 4);
    if (p.dim == DimTable::too_large) continue;
    INFO(x.dims.text(p.dim));
    CHECK(x.dims.evaluate(p.dim, sizes) == p.value);
    CHECK(x.dims.parse(x.dims.text(p.dim)) == p.dim);
    if (const auto top = x.dims.upper_bound(p.dim)) CHECK(p.value <= *top);
    non_trivial += x.dims.is_constant(p.dim) ? 0 : 1;
  }
  CHECK(non_trivial > 1500);
}

TEST_CASE("floor division folds as far as coefficients divide") {
  Table x;
  CHECK(x.dims.floor_div(x.parse("4 * tokens + 2"), 4) == x.t);
  CHECK(x.dims.floor_div(x.parse("2 * tokens + 4 * batch"), 2) == x.parse("tokens + 2 * batch"));
  CHECK(x.dims.floor_div(x.parse("6 * tokens + 3"), 4) == x.parse("tokens + div(tokens + 1, 2)"));
  CHECK(x.dims.floor_div(x.dims.floor_div(x.t, 2), 3) == x.dims.floor_div(x.t, 6));
  CHECK(x.dims.value(x.dims.floor_div(x.c(-7), 2)) == -4);
  const DimId d = x.dims.floor_div(x.parse("frames + 1"), 2);
  CHECK(x.dims.text(d) == "div(frames + 1, 2)");
  CHECK(x.dims.terms(d).size() == 1);
  CHECK(x.dims.atom(x.dims.terms(d)[0].atoms[0]).divisor == 2);
}

TEST_CASE("exact division is polynomial division") {
  Table x;
  CHECK(x.dims.exact_div(x.parse("6 * tokens + 4"), x.c(2)) == x.parse("3 * tokens + 2"));
  CHECK_FALSE(x.dims.exact_div(x.parse("6 * tokens + 3"), x.c(2)).has_value());
  CHECK(x.dims.exact_div(x.parse("tokens * batch"), x.b) == x.t);
  CHECK_FALSE(x.dims.exact_div(x.t, x.b).has_value());
  CHECK_FALSE(x.dims.exact_div(x.t, x.c(0)).has_value());
  CHECK(x.dims.exact_div(x.c(0), x.t) == x.c(0));
  std::mt19937 rng(5);
  for (int i = 0; i < 300; ++i) {
    const Pair a = random_dim(x, {3, 4, 6}, rng, 2), b = random_dim(x, {3, 4, 6}, rng, 2);
    const DimId product = x.dims.mul(a.dim, b.dim);
    if (product == DimTable::too_large || b.dim == x.c(0)) continue;
    INFO(x.dims.text(product) << " by " << x.dims.text(b.dim));
    CHECK(x.dims.exact_div(product, b.dim) == a.dim);
  }
}

TEST_CASE("what leaves 64 bits is too large, and stays so") {
  Table x;
  const std::int64_t most = INT64_MAX;
  const DimId huge = x.dims.add(x.c(most), x.c(1));
  CHECK(huge == DimTable::too_large);
  CHECK(x.c(INT64_MIN) == DimTable::too_large);
  CHECK(x.dims.mul(x.parse("4000000000 * tokens"), x.c(4000000000)) == DimTable::too_large);
  for (DimId d : {x.dims.add(huge, x.t), x.dims.sub(x.t, huge), x.dims.mul(huge, x.c(0)), x.dims.floor_div(huge, 2)})
    CHECK(d == DimTable::too_large);
  CHECK_FALSE(x.dims.value(huge).has_value());
  CHECK_FALSE(x.dims.evaluate(huge, {1, 1, 2}).has_value());
  CHECK_FALSE(x.dims.upper_bound(huge).has_value());
  CHECK_FALSE(DimTable::same(huge, huge));
  CHECK(DimTable::same(x.t, x.t));
  CHECK(x.dims.text(huge) == "?");
  CHECK_FALSE(x.dims.parse("?").has_value());
  // More terms or factors than a dim may have.
  DimId many = x.t;
  for (int i = 0; i < 20; ++i) many = x.dims.mul(many, x.parse("tokens + batch + frames + 1"));
  CHECK(many == DimTable::too_large);
}

TEST_CASE("evaluation is checked") {
  Table x;
  CHECK(x.dims.evaluate(x.parse("2 * tokens + 1"), {5, -1, -1}) == 11);
  CHECK_FALSE(x.dims.evaluate(x.parse("tokens + batch"), {5, -1, -1}).has_value());
  CHECK_FALSE(x.dims.evaluate(x.f, {5}).has_value());
  CHECK_FALSE(x.dims.evaluate(x.parse("tokens * tokens"), {4'000'000'000, 1, 2}).has_value());
}

TEST_CASE("upper bounds") {
  Table x;
  CHECK(x.dims.upper_bound(x.parse("2 * frames + 1")) == 6001);
  CHECK(x.dims.upper_bound(x.parse("batch * frames")) == 24000);
  CHECK_FALSE(x.dims.upper_bound(x.t).has_value());
  CHECK(x.dims.upper_bound(x.parse("10 - tokens")) == 9);
  CHECK(x.dims.upper_bound(x.parse("div(frames - 1, 2)")) == 1499);
  CHECK(x.dims.upper_bound(x.parse("batch - frames")) == 6);
}

TEST_CASE("texts of dims") {
  Table x;
  CHECK(x.dims.text(x.c(0)) == "0");
  CHECK(x.dims.text(x.parse("1 - tokens")) == "-tokens + 1");
  CHECK(x.dims.text(x.parse("(tokens + 1) * 2")) == "2 * tokens + 2");
  for (const char* bad : {"", "tokens tokens", "heads", "2 *", "div(tokens)", "div(tokens, 0)", "div(tokens, -1)", "(tokens",
                          "99999999999999999999", "1.5", "tokens)", "div(tokens, batch)", "+ 1"})
    CHECK_FALSE(x.dims.parse(bad).has_value());
  CHECK_FALSE(x.dims.parse(std::string(1000, '(') + "1" + std::string(1000, ')')).has_value());
}

TEST_CASE("a table may be copied, and references to terms stay") {
  Table x;
  const auto& terms = x.dims.terms(x.t);
  DimTable copy = x.dims;
  for (int i = 0; i < 1000; ++i) x.dims.mul(x.t, x.c(i));
  CHECK(terms.size() == 1);
  CHECK(copy.parse("tokens") == x.t);
  CHECK(copy.find_axis("frames").has_value());
  CHECK_FALSE(copy.find_axis("frame").has_value());
}

TEST_CASE("the prelude's axes") {
  DimTable dims;
  add_prelude_axes(dims);
  for (const char* name : {"tokens", "outputs", "batch", "seq"}) CHECK(dims.find_axis(name).has_value());
}

}  // namespace modelc::graph

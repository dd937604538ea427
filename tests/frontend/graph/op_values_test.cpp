// What operations give where PyTorch has no word to say, or another: nothing to reduce, numbers that are none, run-time
// sizes, bad data. Worked out by hand.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/frontend/graph/support.h"

namespace modelc::graph::test {

using eval::array;
using eval::Array;
using eval::bool_array;
using eval::index_array;

TEST_CASE("reductions of nothing") {
  const std::map<std::string, eval::Input> in = {{"x", array({2, 2}, {1, 2, 3, 4})}, {"w", bool_array({2, 2}, {0, 0, 0, 1})}};
  const char* inputs = "%x: f32[2, 2], %w: bool[2, 2]";
  CHECK(value(inputs, "f32[2]", "sum(%x, %w)", in).reals == std::vector<float>{0, 4});
  CHECK(value(inputs, "f32[2]", "mean(%x, %w)", in).reals == std::vector<float>{0, 4});
  CHECK(value(inputs, "f32[2]", "max_reduce(%x, %w)", in).reals == std::vector<float>{-INFINITY, 4});
  CHECK(value(inputs, "f32[2]", "min_reduce(%x, %w)", in).reals == std::vector<float>{INFINITY, 4});
  CHECK(value(inputs, "index(2)[2]", "argmax(%x, %w)", in).integers == std::vector<std::int64_t>{0, 1});
  CHECK(value(inputs, "f32[2, 2]", "softmax(%x, %w)", in).reals == std::vector<float>{0, 0, 0, 1});
  CHECK(value("%x: i32[2], %w: bool[2]", "i32[]", "max_reduce(%x, %w)", {{"x", index_array({2}, {1, 2})}, {"w", bool_array({2}, {0, 0})}})
            .integers[0] == INT32_MIN);
}

TEST_CASE("softmax takes large numbers, and equal ones share") {
  CHECK(value("%x: f32[4]", "f32[4]", "softmax(%x, _)", {{"x", array({4}, {1e30f, 1e30f, -1e30f, 0})}}).reals ==
        std::vector<float>{0.5, 0.5, 0, 0});
}

TEST_CASE("min and max hand on what is not a number") {
  const float nan = std::nanf("");
  const std::map<std::string, eval::Input> in = {{"a", array({3}, {nan, 1, 2})}, {"b", array({3}, {1, nan, 3})}};
  for (const char* op : {"min(%a, %b)", "max(%a, %b)"}) {
    const Array y = value("%a: f32[3], %b: f32[3]", "f32[3]", op, in);
    CHECK(std::isnan(y.reals[0]));
    CHECK(std::isnan(y.reals[1]));
    CHECK(y.reals[2] == (op[1] == 'i' ? 2 : 3));
  }
  CHECK(std::isnan(value("%x: f32[2]", "f32[]", "max_reduce(%x, _)", {{"x", array({2}, {nan, 1})}}).reals[0]));
  CHECK(std::isnan(value("%x: f32[1]", "f32[1]", "relu(%x)", {{"x", array({1}, {nan})}}).reals[0]));
}

TEST_CASE("one rounding an operation") {
  // 1 + 2^-24 is 1 in f32, and so is the next: step by step nothing is gained.
  const auto y = outputs_of(module_text("%x: f32[1], %e: f32[1]", "%a: f32[1] = add(%x, %e)\n%b: f32[1] = add(%a, %e)\nreturn %b"),
                            {{"x", array({1}, {1})}, {"e", array({1}, {0x1p-24f})}});
  CHECK(y[0].reals[0] == 1.0f);
  // A sum is f64 inside: 2^24 ones after 2^24 are not lost.
  CHECK(value("%x: f32[4]", "f32[]", "sum(%x, _)", {{"x", array({4}, {0x1p24f, 1, 1, 1})}}).reals[0] == 0x1p24f + 4);
}

TEST_CASE("the halves' grids") {
  using eval::round_to;
  CHECK(round_to(DType::f16, 65504) == 65504);
  CHECK(round_to(DType::f16, 65519.9) == 65504);
  CHECK(round_to(DType::f16, 65520) == INFINITY);
  CHECK(round_to(DType::f16, -65520) == -INFINITY);
  CHECK(round_to(DType::f16, 0x1p-24) == 0x1p-24f);
  CHECK(round_to(DType::f16, 0x1p-25) == 0);                         // a tie, to even
  CHECK(round_to(DType::f16, 0x1.8p-25) == 0x1p-24f);
  CHECK(round_to(DType::f16, 2049) == 2048);
  CHECK(round_to(DType::f16, 2051) == 2052);
  CHECK(round_to(DType::bf16, 1 + 0x1p-8) == 1);
  CHECK(round_to(DType::bf16, 1 + 0x1.8p-8) == 1 + 0x1p-7f);
  CHECK(round_to(DType::bf16, 3.4e38) == INFINITY);
  CHECK(round_to(DType::bf16, 0x1p-133) == 0x1p-133f);
  CHECK(round_to(DType::f32, 1 + 0x1p-30) == 1);
}

TEST_CASE("attention, worked out by hand") {
  // Keys are such that the logits of the query are log 1, log 3, log 2.
  const float l3 = std::log(3.0f), l2 = std::log(2.0f);
  const Array q = array({3, 1, 1}, {1, 1, 1}), k = array({3, 1, 1}, {0, l3, l2}), v = array({3, 1, 1}, {6, 12, 24});
  const std::string inputs = "%q: f32[3, 1, 1], %k: f32[3, 1, 1], %v: f32[3, 1, 1]";
  auto run = [&](const std::string& attrs) {
    return value(inputs, "f32[3, 1, 1]", "attend(%q, %k, %v, _, _, _, _; " + attrs + ")", {{"q", q}, {"k", k}, {"v", v}}).reals;
  };
  const std::vector<float> full = run("mask: \"full\", scale: 1.0");
  for (float y : full) CHECK(y == doctest::Approx((6 + 36 + 48) / 6.0).epsilon(1e-6));
  const std::vector<float> causal = run("mask: \"causal\", scale: 1.0");
  CHECK(causal[0] == 6);
  CHECK(causal[1] == doctest::Approx((6 + 36) / 4.0).epsilon(1e-6));
  CHECK(causal[2] == doctest::Approx(15).epsilon(1e-6));
  const std::vector<float> window = run("mask: \"causal\", scale: 1.0, window: 2");
  CHECK(window[1] == doctest::Approx(10.5).epsilon(1e-6));
  CHECK(window[2] == doctest::Approx((36 + 48) / 5.0).epsilon(1e-6));
  CHECK(run("mask: \"causal\", scale: 1.0, window: 1") == std::vector<float>{6, 12, 24});
  CHECK(run("mask: \"full\", scale: 0.0")[0] == 14);
}

TEST_CASE("head h reads key head h / (H / Hk)") {
  // Values tell the key heads apart: 4 query heads on 2.
  const Array q = array({1, 4, 1}, {1, 1, 1, 1}), k = array({1, 2, 1}, {1, 1}), v = array({1, 2, 1}, {10, 20});
  const Array y = value("%q: f32[1, 4, 1], %k: f32[1, 2, 1], %v: f32[1, 2, 1]", "f32[1, 4, 1]",
                        "attend(%q, %k, %v, _, _, _, _; mask: \"full\", scale: 1.0)", {{"q", q}, {"k", k}, {"v", v}});
  CHECK(y.reals == std::vector<float>{10, 10, 20, 20});
}

TEST_CASE("a sink takes its share, and a row that sees nothing gives 0") {
  const Array q = array({1, 1, 1}, {1}), k = array({1, 1, 1}, {0}), v = array({1, 1, 1}, {8});
  const std::map<std::string, eval::Input> in = {
      {"q", q}, {"k", k}, {"v", v}, {"s", array({1}, {std::log(3.0f)})}, {"m", bool_array({1}, {0})}};
  const std::string inputs = "%q: f32[1, 1, 1], %k: f32[1, 1, 1], %v: f32[1, 1, 1], %s: f32[1], %m: bool[1]";
  CHECK(value(inputs, "f32[1, 1, 1]", "attend(%q, %k, %v, _, %s, _, _; mask: \"full\", scale: 1.0)", in).reals[0] ==
        doctest::Approx(2).epsilon(1e-6));
  CHECK(value(inputs, "f32[1, 1, 1]", "attend(%q, %k, %v, _, _, %m, _; mask: \"full\", scale: 1.0)", in).reals[0] == 0);
  CHECK(value(inputs, "f32[1, 1, 1]", "attend(%q, %k, %v, _, %s, %m, _; mask: \"full\", scale: 1.0)", in).reals[0] == 0);
}

TEST_CASE("rope's two pairings differ by an order of channels alone") {
  const std::map<std::string, eval::Input> in = {{"x", array({1, 4}, {1, 2, 3, 4})},
                                                 {"a", array({1, 2}, {0, static_cast<float>(M_PI / 2)})}};
  const std::string inputs = "%x: f32[1, 4], %a: f32[1, 2]";
  const Array halves = value(inputs, "f32[1, 4]", "rope(%x, %a; pairs: \"halves\")", in);
  const Array adjacent = value(inputs, "f32[1, 4]", "rope(%x, %a; pairs: \"adjacent\")", in);
  CHECK(distance(halves.reals, {1, -4, 3, 2}) < 1e-6);               // (1, 3) stays, (2, 4) turns to (-4, 2)
  CHECK(distance(adjacent.reals, {1, 2, -4, 3}) < 1e-6);             // (1, 2) stays, (3, 4) turns to (-4, 3)
}

TEST_CASE("run-time sizes in slices, ranges and shapes") {
  const auto y = outputs_of(module_text("%x: f32[seq, 2]",
                                        "%a: f32[seq - 1, 2] = slice(%x; axis: 0, stop: \"seq - 1\")\n"
                                        "%b: f32[2] = slice(%x; axis: 0, drop: true, start: \"seq - 1\")\n"
                                        "%c: f32[seq] = arange(count: \"seq\")\n"
                                        "%d: f32[div(seq + 1, 2), 2] = slice(%x; axis: 0, step: 2)\n"
                                        "%e: f32[2 * seq] = reshape(%x)\n"
                                        "%f: f32[2 * seq - 1, 2] = concat(%a, %x; axis: 0)\n"
                                        "%g: f32[seq, 3] = pad(%x; before: 1, after: 0)\n"
                                        "return %a, %b, %c, %d, %e, %f, %g"),
                            {{"x", array({3, 2}, {1, 2, 3, 4, 5, 6})}});
  CHECK(y[0].reals == std::vector<float>{1, 2, 3, 4});
  CHECK(y[1].reals == std::vector<float>{5, 6});
  CHECK(y[2].reals == std::vector<float>{0, 1, 2});
  CHECK(y[3].reals == std::vector<float>{1, 2, 5, 6});
  CHECK(y[4].shape == eval::Shape{6});
  CHECK(y[5].reals == std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4, 5, 6});
  CHECK(y[6].reals == std::vector<float>{0, 1, 2, 0, 3, 4, 0, 5, 6});
}

TEST_CASE("data that an operation cannot take is an error") {
  const std::string sliced = module_text("%x: f32[seq]", "%y: f32[seq - 3] = slice(%x; axis: 0, start: 3)\nreturn %y");
  CHECK(run_error(sliced, {{"x", array({2}, {1, 2})}}).kind == "size");
  const std::string one = module_text("%x: f32[seq]", "%y: f32[] = slice(%x; axis: 0, start: 3, drop: true)\nreturn %y");
  CHECK(run_error(one, {{"x", array({2}, {1, 2})}}).kind == "slice-range");
  const std::string cast = module_text("%x: f32[1]", "%y: i32[1] = cast(%x; dtype: \"i32\")\nreturn %y");
  CHECK(run_error(cast, {{"x", array({1}, {std::nanf("")})}}).kind == "cast-range");
  CHECK(run_error(cast, {{"x", array({1}, {1e10f})}}).kind == "integer-range");
  const std::string index = module_text("%x: f32[1]", "%y: index(5)[1] = cast(%x; dtype: \"i32\")\nreturn %y");
  CHECK(run_error(index, {{"x", array({1}, {5})}}).message == "cast is index(5)[1], and has 5 at 0, not in 0..5");
  CHECK(outputs_of(index, {{"x", array({1}, {4.9f})}})[0].integers[0] == 4);
  const std::string product = module_text("%x: i32[1]", "%y: i32[1] = mul(%x, %x)\nreturn %y");
  CHECK(run_error(product, {{"x", index_array({1}, {100000})}}).kind == "integer-range");
  const std::string mod = module_text("%x: i32[1], %z: i32[1]", "%y: i32[1] = mod(%x, %z)\nreturn %y");
  CHECK(run_error(mod, {{"x", index_array({1}, {1})}, {"z", index_array({1}, {0})}}).kind == "division-by-zero");
}

}  // namespace modelc::graph::test

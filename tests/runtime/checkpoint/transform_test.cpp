// Transforms between a file's tensors and a model's weights: against PyTorch, and there and back.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "runtime/checkpoint/transform.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "runtime/base/json.h"
#include "runtime/encoding/convert.h"

using namespace modelc;

namespace {

HostArray of(const Json& j, Encoding encoding) {
  HostArray x;
  x.encoding = encoding;
  for (const Json& d : *j.find("shape")->as_array()) x.shape.push_back(*d.as_int());
  for (const Json& v : *j.find("values")->as_array()) {
    // The number's low bytes: moves do not look at what they move.
    const std::int64_t n = *v.as_int();
    const std::size_t size = static_cast<std::size_t>(block_bytes(encoding));
    std::byte bytes[8] = {};
    std::memcpy(bytes, &n, std::min<std::size_t>(size, 8));
    x.bytes.insert(x.bytes.end(), bytes, bytes + size);
  }
  return x;
}
std::vector<HostArray> all_of(const Json& list, Encoding encoding) {
  std::vector<HostArray> out;
  for (const Json& j : *list.as_array()) out.push_back(of(j, encoding));
  return out;
}
void check_equal(const std::vector<HostArray>& a, const std::vector<HostArray>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].shape == b[i].shape);
    CHECK(a[i].encoding == b[i].encoding);
    CHECK(a[i].bytes == b[i].bytes);
  }
}
std::vector<TensorShape> shapes(const std::vector<HostArray>& arrays) {
  std::vector<TensorShape> out;
  for (const HostArray& x : arrays) out.push_back(x.shape);
  return out;
}
TransformPlan planned(const std::string& via, std::vector<TensorShape> model) {
  auto steps = parse_transforms(via);
  REQUIRE(steps.ok());
  auto plan = plan_transforms(*steps, std::move(model));
  if (!plan) FAIL(plan.error().text());
  return *plan;
}
std::string refusal(const std::string& via, std::vector<TensorShape> model) {
  auto steps = parse_transforms(via);
  REQUIRE(steps.ok());
  auto plan = plan_transforms(*steps, std::move(model));
  return plan ? "" : plan.error().message;
}
HostArray floats(TensorShape shape, const std::vector<float>& v) {
  HostArray x{Encoding::f32, std::move(shape), std::vector<std::byte>(4 * v.size())};
  std::memcpy(x.bytes.data(), v.data(), x.bytes.size());
  return x;
}

}  // namespace

TEST_CASE("PyTorch's results, in both directions, whatever the elements are") {
  const auto file = read_json_file("tests/runtime/checkpoint/transform_cases.json");
  REQUIRE(file.ok());
  for (Encoding encoding : {Encoding::u8, Encoding::bf16, Encoding::f32, Encoding::f64, Encoding::i64})
    for (const Json& c : *file->root.as_array()) {
      CAPTURE(std::string(*c.find("via")->as_string()));
      const auto stored = all_of(*c.find("file"), encoding), weights = all_of(*c.find("model"), encoding);
      const TransformPlan plan = planned(std::string(*c.find("via")->as_string()), shapes(weights));
      CHECK(plan.file() == shapes(stored));
      auto made = to_model(plan, stored);
      if (!made) FAIL(made.error().text());
      check_equal(*made, weights);
      auto back = to_file(plan, weights);
      if (!back) FAIL(back.error().text());
      check_equal(*back, stored);
    }
}

TEST_CASE("there and back on random shapes, chains and encodings, blocks as wholes") {
  std::mt19937 random(3);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); };
  int planned_chains = 0;
  for (int round = 0; round < 3000; ++round) {
    const Encoding encodings[] = {Encoding::f16, Encoding::f32, Encoding::u8, Encoding::q8_0, Encoding::q4_0};
    const Encoding e = encodings[below(5)];
    const std::int64_t block = block_elements(e);
    TensorShape shape;
    for (std::int64_t i = 0, rank = 1 + below(4); i < rank; ++i) shape.push_back(1 + below(5));
    shape.back() *= block;
    std::vector<TensorShape> model(static_cast<std::size_t>(1 + below(3)), shape);
    std::string via;
    for (std::int64_t i = 0, steps = 1 + below(3); i < steps; ++i) {
      const std::string axis = std::to_string(below(static_cast<std::int64_t>(shape.size())));
      const std::string other = std::to_string(below(static_cast<std::int64_t>(shape.size())));
      const std::string all[] = {"transpose(" + axis + ", " + other + ")",
                                 "stack(e)",
                                 "split(" + axis + ")",
                                 "unzip(" + axis + ")",
                                 "deinterleave_rope_rows(1)",
                                 "concat(" + axis + ", [1, 2])"};
      via += (via.empty() ? "" : ", ") + all[below(6)];
    }
    auto steps = parse_transforms(via);
    REQUIRE(steps.ok());
    const auto plan = plan_transforms(*steps, model);
    if (!plan) continue;
    std::vector<HostArray> weights;
    for (const TensorShape& s : model) {
      HostArray x{e, s, std::vector<std::byte>(static_cast<std::size_t>(*stored_bytes(e, s)))};
      for (std::byte& b : x.bytes) b = static_cast<std::byte>(random());
      weights.push_back(std::move(x));
    }
    auto file = to_file(*plan, weights);
    if (!file) {                                           // only a cut through blocks may be refused
      CHECK(block > 1);
      continue;
    }
    ++planned_chains;
    auto back = to_model(*plan, *file);
    if (!back) FAIL(via << ": " << back.error().text());
    check_equal(*back, weights);
  }
  CHECK(planned_chains > 300);
}

TEST_CASE("offset adds in f32, cast rounds to nearest even") {
  const TransformPlan plan = planned("offset(-1)", {{3}});
  auto made = to_model(plan, {floats({3}, {1.5F, 0.25F, -2})});
  REQUIRE(made.ok());
  CHECK((*made)[0].bytes == floats({3}, {0.5F, -0.75F, -3}).bytes);
  auto back = to_file(plan, *made);
  REQUIRE(back.ok());
  CHECK((*back)[0].bytes == floats({3}, {1.5F, 0.25F, -2}).bytes);
  // A bf16 weight gets f32 of it: 1 + w has more bits than bf16.
  HostArray narrow{Encoding::bf16, {1}, {std::byte{0x80}, std::byte{0x3b}}};   // 2^-8
  auto wide = to_model(planned("offset(1)", {{1}}), {narrow});
  REQUIRE(wide.ok());
  CHECK((*wide)[0].encoding == Encoding::f32);
  CHECK(std::bit_cast<float>(load_u32((*wide)[0].bytes.data())) == 1.00390625F);
  auto cast_to = to_model(planned("cast(bf16)", {{3}}), {floats({3}, {1.00390625F, 1.01171875F, 3})});
  REQUIRE(cast_to.ok());
  CHECK((*cast_to)[0].encoding == Encoding::bf16);
  CHECK(load_u16((*cast_to)[0].bytes.data()) == 0x3f80);   // a tie, to even
  CHECK(load_u16((*cast_to)[0].bytes.data() + 2) == 0x3f82);
}

TEST_CASE("log_negated takes the logarithm and undoes it, in f32; what has none is refused") {
  const TransformPlan plan = planned("reshape([2, 1]), log_negated()", {{2}});
  auto made = to_model(plan, {floats({2, 1}, {-1, -0.2F})});
  REQUIRE(made.ok());
  // In double, rounded once.
  CHECK((*made)[0].bytes == floats({2}, {0, static_cast<float>(std::log(static_cast<double>(0.2F)))}).bytes);
  auto back = to_file(plan, *made);
  REQUIRE(back.ok());
  CHECK((*back)[0].shape == TensorShape{2, 1});
  CHECK(std::bit_cast<float>(load_u32((*back)[0].bytes.data())) == -1);
  CHECK(std::abs(std::bit_cast<float>(load_u32((*back)[0].bytes.data() + 4)) + 0.2F) <= 0x1p-26F);       // the logarithm was rounded
  for (const float x : {0.0F, 0.5F, std::numeric_limits<float>::quiet_NaN()}) {
    const auto refused = to_model(plan, {floats({2, 1}, {-1, x})});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message == "log_negated(): an element is not below 0");
  }
}

TEST_CASE("what does not fit is said with the shapes") {
  CHECK(refusal("transpose(0, 2)", {{2, 3}}) == "transpose(0, 2): a tensor of shape [2, 3] has no such axis");
  CHECK(refusal("reshape([4])", {{2, 3}}) == "reshape([4]): [4] has not as many elements as [2, 3]");
  CHECK(refusal("stack(e)", {{2}, {2}}) == "stack(e): one weight is stacked of several tensors, not 2");
  CHECK(refusal("stack(e)", {{}}) != "");
  CHECK(refusal("split(0)", {{2, 3}}) == "split(0): it makes several weights of one tensor: [a, b]");
  CHECK(refusal("split(0)", {{2, 3}, {2, 4}}) == "split(0): [2, 3] and [2, 4] cannot be parts of one tensor");
  CHECK(refusal("unzip(0)", {{2, 3}, {4, 3}}) == "unzip(0): [2, 3] and [4, 3] differ");
  CHECK(refusal("concat(0, [1, 2])", {{4}}) == "concat(0, [1, 2]): the sizes add up to 3, not to 4 of [4]");
  CHECK(refusal("concat(0, [1, 9])", {{4}}) == "concat(0, [1, 9]): the sizes add up to more than 4 of [4]");
  CHECK(refusal("deinterleave_rope_rows(2)", {{6, 3}}) ==
        "deinterleave_rope_rows(2): a head of [6, 3] has 3 rows, and 3 of them are no pairs of it");
  CHECK(refusal("deinterleave_rope_rows(4)", {{6, 3}}) == "deinterleave_rope_rows(4): [6, 3] is not whole heads: 4 of them");
  for (const char* text : {"transpose(0)", "turn(1)", "stack", "reshape(3)", "cast(f99)", "deinterleave_rope_rows(0)", "offset(x)",
                           "log_negated(1)", "concat(0, [-1])", "split(1"})
    CHECK_FALSE(parse_transforms(text).ok());
  // Blocks move as wholes.
  const TransformPlan plan = planned("transpose(0, 1)", {{32, 2}});
  HostArray packed{Encoding::q8_0, {2, 32}, std::vector<std::byte>(68)};
  const auto made = to_model(plan, {packed});
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().message == "transpose(0, 1): a tensor stored as q8_0 moves in whole blocks of 32 along its last axis: [2, 32]");
  // A tensor of another size than planned is no undefined read.
  CHECK_FALSE(to_model(plan, {HostArray{Encoding::f32, {2, 32}, std::vector<std::byte>(8)}}).ok());
}

TEST_CASE("the text of transforms reads back") {
  for (const char* t : {"transpose(0, -1)", "reshape([2, 3])", "stack(e)", "split(1)", "concat(0, [1, 2])", "unzip(2)",
                        "deinterleave_rope_rows(4)", "deinterleave_rope_rows(4, 64)", "offset(-1)", "log_negated()", "cast(bf16)"}) {
    const auto steps = parse_transforms(t);
    REQUIRE(steps.ok());
    REQUIRE(steps->size() == 1);
    CHECK(text((*steps)[0]) == t);
  }
}

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "runtime/tensor/tensor.h"

#include <doctest/doctest.h>

#include <vector>

using namespace modelc;

TEST_CASE("shapes") {
  const Shape none, some{2, 3, 4};
  CHECK(none.rank() == 0);
  CHECK(none.count() == 1);
  CHECK(none.text() == "[]");
  CHECK(some.rank() == 3);
  CHECK(some.count() == 24);
  CHECK(some[0] == 2);
  CHECK(some[-1] == 4);
  CHECK(some.text() == "[2, 3, 4]");
  const std::vector<std::int64_t> axes = {2, 3, 4};
  CHECK(Shape(std::span<const std::int64_t>(axes)) == some);
  CHECK_FALSE(some == Shape{2, 3});
  CHECK_FALSE(some == Shape{2, 3, 5});
  CHECK(Shape{3, 0}.count() == 0);
}

TEST_CASE("tensors are views") {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const Buffer buffer{reinterpret_cast<std::byte*>(values.data()), 24, 0};
  const Tensor t{&buffer, 4, DType::f32, {5}};
  CHECK(t);
  CHECK_FALSE(Tensor{});
  CHECK(t.count() == 5);
  CHECK(t.size() == 20);
  CHECK(t.host<float>()[0] == 2);
  CHECK(t.as({5, 1}).shape == Shape{5, 1});
  CHECK(t.as({5, 1}).host<float>() == t.host<float>());
  CHECK(Tensor{}.host<float>() == nullptr);
  const Buffer far{nullptr, 24, 7};
  CHECK(Tensor{&far, 0, DType::f32, {6}}.host<float>() == nullptr);
}

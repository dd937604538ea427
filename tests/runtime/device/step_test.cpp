#include "runtime/device/step.h"

#include "runtime/device/round.h"
#include "tests/runtime/device/llama_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

struct Buffers : Step::Frame {
  explicit Buffers(Step& s, std::int64_t bytes) : Frame(s, bytes), step(s) {}
  Tensor view(std::int64_t offset, Shape shape) const { return f32(offset, shape); }
  std::int64_t axis() const { return tokens() * 100 + outputs() * 10 + batch(); }
  Step& step;
};

std::vector<float> values_of(const Tensor& t) { return {t.host<float>(), t.host<float>() + t.count()}; }

struct Setting {
  std::unique_ptr<Device> device = good(open_cpu({}));
  StepMemory memory{*device};
  const Buffer* buffer = good(device->allocate(1024));
  Tensor arena{buffer, 0, DType::u8, {1024}};
  ~Setting() { device->free(buffer); }
};

}  // namespace

TEST_CASE("frames are a stack in the arena") {
  Setting s;
  Step step(s.memory, s.arena, {1, 2, 3}, nullptr, nullptr, nullptr);
  const Buffers a(step, 256);
  CHECK(a.axis() == 123);
  CHECK(a.view(0, {4}).offset == 0);
  CHECK(a.view(64, {4, 2}).offset == 64);
  {
    const Buffers b(step, 128);
    CHECK(b.view(0, {1}).offset == 256);
    const Buffers c(step, 640);
    CHECK(c.view(0, {1}).offset == 384);
  }
  const Buffers d(step, 768);
  CHECK(d.view(0, {1}).offset == 256);
}

TEST_CASE("without an arena each frame has memory of its own") {
  Setting s;
  Step step(s.memory, {}, {}, nullptr, nullptr, nullptr);
  const Buffers a(step, 256), b(step, 0);
  CHECK(a.view(0, {64}).buffer != b.view(0, {0}).buffer);
}

TEST_CASE("a value is computed once a step, also from another one") {
  Setting s;
  for (int round = 1; round <= 2; ++round) {
    Step step(s.memory, s.arena, {}, nullptr, nullptr, nullptr);
    int computed = 0;
    const auto inner = [&](const Tensor& out) {
      ++computed;
      step.arange(out, static_cast<float>(round));
    };
    const auto outer = [&](const Tensor& out) { step.copy(step.once({5}, {3}, inner), out); };
    CHECK(values_of(step.once({0}, {3}, outer)) ==
          std::vector<float>{0.0F + static_cast<float>(round), 1.0F + static_cast<float>(round), 2.0F + static_cast<float>(round)});
    static_cast<void>(step.once({5}, {3}, inner));
    static_cast<void>(step.once({0}, {3}, outer));
    CHECK(computed == 1);
  }
}

TEST_CASE("arange and lists of numbers") {
  Setting s;
  Step step(s.memory, s.arena, {}, nullptr, nullptr, nullptr);
  const Buffers b(step, 64);
  const Tensor t = b.view(0, {4});
  step.arange(t, 1.5F, 0.25F);
  CHECK(values_of(t) == std::vector<float>{1.5F, 1.75F, 2.0F, 2.25F});
  step.values({3, 1, 4, 1}, t);
  CHECK(values_of(t) == std::vector<float>{3, 1, 4, 1});
}

TEST_CASE("the batch's fields are tensors of the step") {
  Setting s;
  const std::vector<std::int64_t> lengths = {2, 1};
  const Batch at = good(Batch::make(lengths, Outputs::last));
  Step step(s.memory, s.arena, {3, 2, 2}, &at, nullptr, nullptr);
  const auto ints = [](const Tensor& t) {
    CHECK(t.dtype == DType::i32);
    return std::vector<std::int32_t>(t.host<std::int32_t>(), t.host<std::int32_t>() + t.count());
  };
  CHECK(ints(step.positions()) == at.positions);
  CHECK(ints(step.lengths()) == at.lengths);
  CHECK(ints(step.sequence()) == at.sequence);
  CHECK(ints(step.output_rows()) == at.outputs);
  CHECK(ints(step.last_rows()) == at.last);
  CHECK(step.positions().buffer == step.positions().buffer);
}

TEST_CASE("fused calls are taken apart when they are traced, to the same bits") {
  Setting s;
  const auto llama = random_llama({.device = std::shared_ptr<Device>(s.device.get(), [](Device*) {})});
  std::vector<std::string> names;
  const std::vector<LayerHook> hooks = {[&](const LayerValue& v) { names.emplace_back(v.name); }};
  Step plain(s.memory, s.arena, {1, 1, 1}, nullptr, nullptr, nullptr), traced(s.memory, s.arena, {1, 1, 1}, nullptr, nullptr, &hooks);
  CHECK_FALSE(plain.traced());
  CHECK(traced.traced());
  const auto& mlp = llama->model.layers[0].mlp;
  const Buffers b(plain, 1024);
  const Tensor x = b.view(0, {1, 32}), gated = b.view(128, {1, 48}), again = b.view(320, {1, 48});
  plain.arange(x, -1, 0.1F);
  constexpr MapKernel mul = {"mul", [](const MapArgs& a, std::int64_t begin, std::int64_t end) {
                               map_rows<2>(a, begin, end, [](float p, float q) { return p * q; });
                             }};
  plain.linear_map(x, mlp.product.gate_up_proj, mul, gated, {&mlp, {"gate_proj", "up_proj"}});
  traced.linear_map(x, mlp.product.gate_up_proj, mul, again, {&mlp, {"gate_proj", "up_proj"}});
  CHECK(values_of(gated) == values_of(again));
  const Tensor sum = b.view(512, {1, 32}), sum2 = b.view(640, {1, 32});
  plain.linear_add(gated, mlp.product.down_proj, x, sum, {&mlp, {"down_proj"}});
  traced.linear_add(gated, mlp.product.down_proj, x, sum2, {&mlp, {"down_proj"}});
  CHECK(values_of(sum) == values_of(sum2));
  CHECK(names == std::vector<std::string>{"model.layers.0.mlp.gate_proj", "model.layers.0.mlp.up_proj", "model.layers.0.mlp.down_proj"});
}

TEST_CASE("a step that runs by the policy rounds where it is told to, and takes fused calls apart to do so; another does not") {
  Setting s;
  const auto llama = random_llama({.device = std::shared_ptr<Device>(s.device.get(), [](Device*) {})});
  std::vector<std::string> names;
  const std::vector<LayerHook> hooks = {[&](const LayerValue& v) { names.emplace_back(v.name); }};
  Step exact(s.memory, s.arena, {1, 1, 1}, nullptr, nullptr, nullptr);
  Step rounding(s.memory, s.arena, {1, 1, 1}, nullptr, nullptr, nullptr, true),
      traced(s.memory, s.arena, {1, 1, 1}, nullptr, nullptr, &hooks, true);
  const auto& mlp = llama->model.layers[0].mlp;
  const Buffers b(exact, 1024);
  const Tensor x = b.view(0, {1, 32}), y = b.view(128, {1, 48}), z = b.view(320, {1, 48}), product = b.view(512, {1, 32}),
               sum = b.view(640, {1, 32}), again = b.view(768, {1, 32});
  const auto bf16 = [](std::vector<float> v) {
    for (float& e : v) e = math::bf16(e);
    return v;
  };
  exact.arange(y, -1, 0.0371F);
  const std::vector<float> before = values_of(y);
  exact.round(y, DType::bf16);
  CHECK(values_of(y) == before);
  rounding.round(y, DType::f32);
  CHECK(values_of(y) == before);
  rounding.round(y, DType::bf16);
  CHECK(values_of(y) == bf16(before));
  CHECK(values_of(y) != before);

  constexpr MapKernel plain = {"plain", [](const MapArgs& a, std::int64_t begin, std::int64_t end) {
                                 map_rows<1>(a, begin, end, [](float p) { return p * 1.1F; });
                               }};
  constexpr MapKernel rounded = {"rounded", [](const MapArgs& a, std::int64_t begin, std::int64_t end) {
                                   map_rows<1>(a, begin, end, [](float p) { return math::bf16(p * 1.1F); });
                                 }};
  exact.map({plain, rounded}, {y}, z);
  const std::vector<float> wide = values_of(z);
  rounding.map({plain, rounded}, {y}, z);
  CHECK(values_of(z) == bf16(wide));
  rounding.map(plain, {y}, z);
  CHECK(values_of(z) == wide);

  // The product is rounded before it is added.
  exact.arange(x, 3, 0.01F);
  exact.linear(y, mlp.product.down_proj, {product});
  std::vector<float> wanted = bf16(values_of(product));
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += values_of(x)[i];
  rounding.linear_add(y, mlp.product.down_proj, x, sum, {&mlp, {"down_proj"}, DType::bf16});
  CHECK(values_of(sum) == wanted);
  traced.linear_add(y, mlp.product.down_proj, x, again, {&mlp, {"down_proj"}, DType::bf16});
  CHECK(values_of(again) == wanted);
  CHECK(names.size() == 1);
  rounding.linear_add(y, mlp.product.down_proj, x, sum, {&mlp, {"down_proj"}});
  exact.linear_add(y, mlp.product.down_proj, x, again, {&mlp, {"down_proj"}, DType::bf16});
  CHECK(values_of(sum) == values_of(again));
  CHECK(values_of(sum) != wanted);
}

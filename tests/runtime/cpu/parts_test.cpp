// Tensors of activations a little larger, and much larger, than what one binding of a shader shows: what other suites check on
// small ones is the same there. A device of its own, with bindings of 64 KiB, beside the CPU.
#include "runtime/device/math.h"
#include "runtime/kv_cache/kv_cache.h"
#include "tests/runtime/cpu/kernel_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

constexpr std::int64_t seen = 64 * 1024;

// What an operation leaves in its results on a device: it is given the device and the memory of its tensors.
using Operation = std::function<std::vector<Tensor>(Device&, Tensors&, Random&)>;

// The same numbers on the CPU and on the device of small bindings; nothing where no driver is.
void check_same(const Operation& operation, double within) {
  std::vector<std::vector<float>> expected;
  {
    const auto cpu = open_cpu({1, {}});
    REQUIRE(cpu.ok());
    Tensors tensors(**cpu);
    Random random(7);
    for (const Tensor& t : operation(**cpu, tensors, random)) expected.push_back(values_of(t));
  }
  const auto devices = vulkan_test_devices(seen);
  if (devices.empty()) return;
  Device& device = *devices.back();
  Tensors tensors(device);
  Random random(7);
  const auto results = operation(device, tensors, random);
  REQUIRE(results.size() == expected.size());
  const Status done = device.finish();
  if (!done) FAIL_CHECK(done.error().text());
  for (std::size_t i = 0; i < results.size(); ++i) {
    REQUIRE(results[i].size() > seen);                     // or the test says nothing
    check_near(values_of(results[i]), std::vector<double>(expected[i].begin(), expected[i].end()), within);
  }
}

Tensor numbers(Tensors& tensors, Random& random, Shape shape) { return tensors.f32(shape, random.numbers(shape.count())); }

}  // namespace

TEST_CASE("over a binding: norms, turned channels, rows of a table, reductions") {
  for (const std::int64_t rows : {17, 100}) {              // 68,000 bytes, and six times as much
    CAPTURE(rows);
    const std::int64_t n = 1000;
    check_same(
        [&](Device& d, Tensors& tensors, Random& random) {
          const Tensor x = numbers(tensors, random, {rows, n}), y = numbers(tensors, random, {rows, n}), w = numbers(tensors, random, {n});
          const Tensor a = tensors.empty({rows, n}), b = tensors.empty({rows, n}), c = tensors.empty({rows, n}),
                       e = tensors.empty({rows, n});
          d.rms_norm(x, w, {1e-5F, 1}, a);
          d.add_rms_norm(x, y, w, {1e-5F, 0}, b, c);
          d.layer_norm(x, w, w, {1e-5F, 0}, e);
          return std::vector<Tensor>{a, b, c, e};
        },
        1e-5);
    check_same(
        [&](Device& d, Tensors& tensors, Random& random) {
          const Tensor x = numbers(tensors, random, {rows, 10, 100});
          const Tensor cos = numbers(tensors, random, {rows, 40}), sin = numbers(tensors, random, {rows, 40});
          const Tensor a = tensors.empty({rows, 10, 100}), b = tensors.empty({rows, 10, 100});
          d.rope(x, cos, sin, Pairs::halves, a);
          d.rope(x, cos, sin, Pairs::adjacent, b);
          return std::vector<Tensor>{a, b};
        },
        1e-6);
    check_same(
        [&](Device& d, Tensors& tensors, Random& random) {
          const Tensor x = numbers(tensors, random, {rows, n}), out = tensors.empty({2 * rows, n});
          std::vector<std::int32_t> which;
          for (std::int64_t i = 0; i < 2 * rows; ++i) which.push_back(static_cast<std::int32_t>(random.below(rows)));
          d.take_rows(x, tensors.i32(which), out);
          return std::vector<Tensor>{out};
        },
        0);
    check_same(
        [&](Device& d, Tensors& tensors, Random& random) {
          const Tensor x = numbers(tensors, random, {rows, 4, 250}), soft = tensors.empty({rows, 4, 250}),
                       running = tensors.empty({rows, 4, 250});
          std::vector<std::uint8_t> some;
          for (std::int64_t i = 0; i < rows * 4; ++i) some.push_back(random.below(3) > 0 ? 1 : 0);
          const Tensor where = tensors.bytes_of(DType::boolean, {rows, 4}, std::as_bytes(std::span(some)));
          d.reduce(Reduction::softmax, x, {.axis = 1, .where = where}, soft);
          d.reduce(Reduction::cumsum, x, {.axis = 1, .where = where}, running);
          return std::vector<Tensor>{soft, running};
        },
        1e-5);
  }
  // One number a row: more of them than a binding shows, from rows of two.
  check_same(
      [&](Device& d, Tensors& tensors, Random& random) {
        const Tensor x = numbers(tensors, random, {20000, 2}), sums = tensors.empty({20000});
        d.reduce(Reduction::sum, x, {.axis = 1}, sums);
        return std::vector<Tensor>{sums};
      },
      1e-6);
}

TEST_CASE("over a binding: expressions of inputs of its shape, broadcast along any axis, of flags; copies across axes") {
  const MapKernel kernel = with_shader(
      {"sum_of_three", [](const MapArgs& a, std::int64_t begin,
                          std::int64_t end) { map_rows<3>(a, begin, end, [](float x, float y, float z) { return x + 2 * y - z; }); }},
      "fff", "x0 + 2.0 * x1 - x2");
  struct Form {
    Shape out, y, z;
  };
  for (const Form& f : {Form{{17, 1000}, {17, 1000}, {1000}}, Form{{90, 7, 60}, {7, 1}, {90, 1, 60}}, Form{{1, 2, 40000}, {2, 40000}, {1}},
                        Form{{3, 20000}, {3, 1}, {20000}}})
    check_same(
        [&](Device& d, Tensors& tensors, Random& random) {
          const Tensor x = numbers(tensors, random, f.out), y = numbers(tensors, random, f.y), z = numbers(tensors, random, f.z);
          const Tensor out = tensors.empty(f.out), flags = tensors.bytes_of(DType::boolean, f.out, {}), again = tensors.empty(f.out);
          const Tensor inputs[] = {x, y, z}, from_flags[] = {flags, y, z};
          d.map(kernel, inputs, out);
          d.map(kernel, inputs, flags);
          d.map(kernel, from_flags, again);
          d.map(kernel, std::array{x, y, x}, x);           // in place
          return std::vector<Tensor>{out, again, x};
        },
        1e-6);
  check_same(
      [&](Device& d, Tensors& tensors, Random& random) {
        const Tensor x = numbers(tensors, random, {30, 11, 70}), turned = tensors.empty({70, 11, 30}), inner = tensors.empty({30, 70, 11});
        const Tensor part = tensors.empty({30, 11, 140}), filled = tensors.empty({30, 11, 70});
        d.copy_strided(Strided(x).transpose(0, 2), Strided(turned));
        d.copy_strided(Strided(x).transpose(1, 2), Strided(inner));
        d.copy_strided(Strided(x).repeat(2, 2), Strided(part));
        d.fill(3, filled);
        return std::vector<Tensor>{turned, inner, part, filled};
      },
      0);
}

TEST_CASE("over a binding: products of few and of many tokens, the logits wider than all the rest, convolutions") {
  for (const std::int64_t m : {2, 3, 70}) {
    CAPTURE(m);
    check_same(
        [&](Device& d, Tensors& tensors, Random& random) {
          const std::int64_t k = 300, n = m == 70 ? 333 : 15000;   // one row of n is seen
          const StoredRows s = store_as(Encoding::bf16, random.numbers(n * k));
          Matrix w;
          w.columns = k;
          RowBlock b;
          b.encoding = Encoding::bf16;
          b.rows = n;
          b.row_bytes = k * 2;
          b.data = tensors.bytes_of(DType::u8, {n * k * 2}, s.bytes);
          b.bias = numbers(tensors, random, {n});
          w.blocks.push_back(b);
          const Tensor x = numbers(tensors, random, {m, k}), residual = numbers(tensors, random, {m, n});
          const Tensor out = tensors.empty({m, n});
          d.linear(x, w, {&out, 1}, residual);
          return std::vector<Tensor>{out};
        },
        2e-4);
  }
  check_same(
      [&](Device& d, Tensors& tensors, Random& random) {
        const Tensor x = numbers(tensors, random, {9, 3, 1000}), w = numbers(tensors, random, {4, 3, 5}),
                     bias = numbers(tensors, random, {4});
        const Tensor out = tensors.empty({9, 4, 1000});
        d.conv(x, w, bias, {.stride = 1, .padding = 2}, out);
        return std::vector<Tensor>{out};
      },
      1e-5);
}

TEST_CASE("over a binding: queries, and keys and values of several sequences or heads, each of which fits") {
  for (const bool cached : {false, true})
    check_same(
        [&](Device& d, Tensors& tensors, Random& random) {
          const std::int64_t heads = 6, kv = 3, dim = 40;
          const std::vector<std::int64_t> lengths = {90, 3, 120, 1, 60};
          const Batch at = *Batch::make(lengths, Outputs::all);
          begin_step(d, tensors, at);
          const std::int64_t n = at.tokens();
          const Tensor q = numbers(tensors, random, {n, heads, dim}), k = numbers(tensors, random, {n, kv, dim}),
                       v = numbers(tensors, random, {n, kv, dim}), out = tensors.empty({n, heads, dim});
          AttendArgs args;
          args.scale = 0.2F;
          if (cached) {
            auto store = d.reserve({.sizes = {kv, dim, dim}, .dtype = DType::f32}, 150, 5);
            REQUIRE(store.ok());
            auto& cache = static_cast<KvCache&>(**store);
            d.append(cache, k, v, at);
            d.attend(q, cache, at, args, out);
            REQUIRE(d.finish().ok());
          } else {
            d.attend(q, k, v, at, args, out);
          }
          return std::vector<Tensor>{out};
        },
        1e-5);
  check_same(
      [&](Device& d, Tensors& tensors, Random& random) {
        const Tensor q = numbers(tensors, random, {7, 30, 4, 32}), k = numbers(tensors, random, {7, 50, 2, 32}),
                     v = numbers(tensors, random, {7, 50, 2, 32}), out = tensors.empty({7, 30, 4, 32});
        std::vector<std::uint8_t> some;
        for (int i = 0; i < 7 * 50; ++i) some.push_back(random.below(3) > 0 ? 1 : 0);
        AttendArgs args{.mask = Mask::full, .scale = 0.2F};
        args.keep = tensors.bytes_of(DType::boolean, {7, 50}, std::as_bytes(std::span(some)));
        d.attend(q, k, v, args, out);
        return std::vector<Tensor>{out};
      },
      1e-5);
}

TEST_CASE("loops of more rounds than a software driver carries out") {
  // llvmpipe ends an invocation's loops after 65,535 rounds in all, with what it has by then.
  const auto cpu = open_cpu({1, {}});
  REQUIRE(cpu.ok());
  static const std::shared_ptr<Device> gpu = [] {
    auto d = open_vulkan({});
    return d ? std::shared_ptr<Device>(std::move(*d)) : nullptr;
  }();
  if (gpu == nullptr) return;
  std::vector<std::vector<float>> results[2];
  Device* devices[] = {cpu->get(), gpu.get()};
  for (int i = 0; i < 2; ++i) {
    Device& d = *devices[i];
    Tensors tensors(d);
    Random random(3);
    const std::int64_t n = 40, m = 9000, width = 600'000;
    const Tensor q = numbers(tensors, random, {n, 4, 256}), k = numbers(tensors, random, {m, 2, 256}),
                 v = numbers(tensors, random, {m, 2, 256}), attended = tensors.empty({n, 4, 256});
    d.attend(q, k, v, {.mask = Mask::full, .scale = 0.0625F}, attended);
    const Tensor x = numbers(tensors, random, {2, width}), norm = tensors.empty({2, width}), soft = tensors.empty({2, width});
    d.layer_norm(x, {}, {}, {1e-5F, 0}, norm);
    d.reduce(Reduction::softmax, x, {.axis = 1}, soft);
    for (const Tensor& t : {attended, norm, soft}) results[i].push_back(values_of(t));
    const Status done = d.finish();
    REQUIRE(done.ok());
  }
  for (std::size_t r = 0; r < results[0].size(); ++r)
    check_near(results[1][r], std::vector<double>(results[0][r].begin(), results[0][r].end()), r == 1 ? 1e-3 : 2e-6);
  // What one invocation has to do alone is refused there, by name; elsewhere it is right.
  Tensors tensors(*gpu);
  Random random(3);
  const Tensor x = numbers(tensors, random, {70'000}), sums = tensors.empty({70'000});
  REQUIRE(gpu->finish().ok());                             // of a step that fails nothing is run
  gpu->reduce(Reduction::cumsum, x, {.axis = 0}, sums);
  const Status s = gpu->finish();
  const bool software = gpu->description().find("llvmpipe") != std::string::npos;
  CHECK(s.ok() != software);
  if (!s) CHECK(s.error().text().find("loops of 70,000 rounds") != std::string::npos);
}

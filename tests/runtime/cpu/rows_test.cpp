#include <algorithm>

#include "runtime/device/map.h"
#include "runtime/device/math.h"
#include "runtime/device/step.h"
#include "tests/runtime/cpu/kernel_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

const std::vector<std::int64_t> widths = {1, 3, 15, 16, 17, 67, 576};

std::vector<double> rms_norm(std::span<const float> x, std::span<const float> w, double eps, double offset, std::int64_t n) {
  std::vector<double> out(x.size());
  const auto width = static_cast<std::size_t>(n);
  for (std::size_t r = 0; r < x.size(); r += width) {
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i) squares += static_cast<double>(x[r + i]) * x[r + i];
    const double f = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
    for (std::size_t i = 0; i < width; ++i) out[r + i] = x[r + i] * f * (w.empty() ? 1.0 : w[i] + offset);
  }
  return out;
}

}  // namespace

TEST_CASE("rms_norm: weight, offset, none; small inputs make eps count; in place") {
  on_every_device([](Device& device) {
    for (const std::int64_t n : widths)
      for (const std::int64_t rows : {1, 5, 40}) {
        CAPTURE(n);
        Random random(static_cast<unsigned>(n));
        Tensors tensors(device);
        auto x = random.numbers(rows * n);
        for (float& v : x) v *= 0.003F;                    // mean square 1e-5: as large as eps
        const auto w = random.numbers(n);
        const Tensor in = tensors.f32({rows, n}, x), weight = tensors.f32({n}, w), out = tensors.empty({rows, n});
        device.rms_norm(in, weight, {1e-5F, 1.0F}, out);
        check_near(values_of(out), rms_norm(x, w, 1e-5, 1, n), 3e-6);
        device.rms_norm(in, {}, {1e-6F, 0}, out);
        check_near(values_of(out), rms_norm(x, {}, 1e-6, 0, n), 3e-6);
        device.rms_norm(in, {}, {1e-6F, 0}, in);
        CHECK(values_of(in) == values_of(out));
      }
  });
}

TEST_CASE("add_rms_norm: the sum and its norm; the sum over either operand") {
  on_every_device([](Device& device) {
    for (const std::int64_t n : widths) {
      const std::int64_t rows = 7;
      Random random(static_cast<unsigned>(n) + 1);
      Tensors tensors(device);
      const auto x = random.numbers(rows * n), y = random.numbers(rows * n), w = random.numbers(n);
      std::vector<float> both(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) both[i] = x[i] + y[i];
      const Tensor a = tensors.f32({rows, n}, x), b = tensors.f32({rows, n}, y), weight = tensors.f32({n}, w);
      const Tensor sum = tensors.empty({rows, n}), out = tensors.empty({rows, n}), again = tensors.empty({rows, n});
      device.add_rms_norm(a, b, weight, {1e-5F, 0}, sum, out);
      CHECK(values_of(sum) == both);
      check_near(values_of(out), rms_norm(both, w, 1e-5, 0, n), 3e-6);
      device.rms_norm(sum, weight, {1e-5F, 0}, again);     // fusing changes no bit
      CHECK(values_of(again) == values_of(out));
      device.add_rms_norm(a, b, weight, {1e-5F, 0}, a, again);
      CHECK(values_of(a) == both);
      CHECK(values_of(again) == values_of(out));
    }
  });
}

TEST_CASE("layer_norm: a large mean costs no digits; weight and bias may be absent") {
  on_every_device([](Device& device) {
    for (const std::int64_t n : widths)
      for (const bool with : {true, false}) {
        const std::int64_t rows = 6;
        Random random(static_cast<unsigned>(n) + 2);
        Tensors tensors(device);
        auto x = random.numbers(rows * n);
        for (float& v : x) v += 100;
        const auto w = random.numbers(n), b = random.numbers(n);
        std::vector<double> expected(x.size());
        for (std::size_t r = 0; r < x.size(); r += static_cast<std::size_t>(n)) {
          double mean = 0, var = 0;
          for (std::int64_t i = 0; i < n; ++i) mean += x[r + static_cast<std::size_t>(i)];
          mean /= static_cast<double>(n);
          for (std::int64_t i = 0; i < n; ++i) var += std::pow(x[r + static_cast<std::size_t>(i)] - mean, 2);
          var /= static_cast<double>(n);
          for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
            expected[r + i] = (x[r + i] - mean) / std::sqrt(var + 1e-5) * (with ? w[i] : 1) + (with ? b[i] : 0);
        }
        const Tensor in = tensors.f32({rows, n}, x), out = tensors.empty({rows, n});
        const Tensor weight = with ? tensors.f32({n}, w) : Tensor{}, bias = with ? tensors.f32({n}, b) : Tensor{};
        device.layer_norm(in, weight, bias, {1e-5F, 0}, out);
        check_near(values_of(out), expected, 3e-5);
        device.layer_norm(in, weight, bias, {1e-5F, 0}, in);
        CHECK(values_of(in) == values_of(out));
      }
  });
}

TEST_CASE("rope: halves and adjacent, whole heads and the first channels only, in place") {
  on_every_device([](Device& device) {
    for (const std::int64_t d : {2, 6, 16, 34, 64})
      for (const std::int64_t half : {d / 2, d / 4}) {
        if (half == 0) continue;
        const std::int64_t tokens = 5, heads = 3;
        Random random(static_cast<unsigned>(d));
        Tensors tensors(device);
        const auto x = random.numbers(tokens * heads * d);
        std::vector<float> cos, sin;
        for (std::int64_t t = 0; t < tokens; ++t)
          for (std::int64_t i = 0; i < half; ++i) {
            const double angle = static_cast<double>(t + 3) / std::pow(100.0, 2.0 * static_cast<double>(i) / static_cast<double>(d));
            cos.push_back(static_cast<float>(std::cos(angle)));
            sin.push_back(static_cast<float>(std::sin(angle)));
          }
        for (const Pairs pairs : {Pairs::halves, Pairs::adjacent}) {
          std::vector<double> expected(x.begin(), x.end());
          for (std::int64_t t = 0; t < tokens; ++t)
            for (std::int64_t h = 0; h < heads; ++h)
              for (std::int64_t i = 0; i < half; ++i) {
                const auto row = static_cast<std::size_t>((t * heads + h) * d);
                const auto a = row + static_cast<std::size_t>(pairs == Pairs::halves ? i : 2 * i);
                const auto b = row + static_cast<std::size_t>(pairs == Pairs::halves ? i + half : 2 * i + 1);
                const double c = cos[static_cast<std::size_t>(t * half + i)], s = sin[static_cast<std::size_t>(t * half + i)];
                expected[a] = x[a] * c - x[b] * s;
                expected[b] = x[b] * c + x[a] * s;
              }
          const Tensor in = tensors.f32({tokens, heads, d}, x), out = tensors.empty({tokens, heads, d});
          const Tensor c = tensors.f32({tokens, half}, cos), s = tensors.f32({tokens, half}, sin);
          device.rope(in, c, s, pairs, out);
          check_near(values_of(out), expected, 1e-6);
          device.rope(in, c, s, pairs, in);
          CHECK(values_of(in) == values_of(out));
        }
      }
  });
}

TEST_CASE("take and take_rows") {
  on_every_device([](Device& device) {
    for (const Encoding encoding : {Encoding::f32, Encoding::f16, Encoding::bf16})
      for (const std::int64_t n : widths) {
        const std::int64_t count = 9;
        Random random(static_cast<unsigned>(n) + 5);
        Tensors tensors(device);
        const StoredRows stored = store_as(encoding, random.numbers(count * n));
        Matrix table;
        table.columns = n;
        RowBlock b;
        b.encoding = encoding;
        b.rows = count;
        b.row_bytes = n * block_bytes(encoding);
        b.data = tensors.bytes_of(DType::u8, {static_cast<std::int64_t>(stored.bytes.size())}, stored.bytes,
                                  tensors.placed(3, encoding != Encoding::f32));
        table.blocks.push_back(b);
        const std::vector<std::int32_t> rows = {8, 0, 3, 3, 7};
        const Tensor index = tensors.i32(rows), out = tensors.empty({5, n}), out2 = tensors.empty({5, n});
        device.take(table, index, 0.5F, out);
        device.take_rows(tensors.f32({count, n}, stored.values), index, out2);
        const auto a = values_of(out), c = values_of(out2);
        int wrong = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
          const auto width = static_cast<std::size_t>(n);
          const float expected = stored.values[static_cast<std::size_t>(rows[i / width]) * width + i % width];
          if (a[i] != expected * 0.5F || c[i] != expected) ++wrong;
        }
        CHECK(wrong == 0);
      }
  });
}

namespace {}  // namespace

TEST_CASE("map: inputs broadcast as NumPy's do, from f32, i32 and bool") {
  const MapKernel three = with_shader(
      {"three", [](const MapArgs& a, std::int64_t begin,
                   std::int64_t end) { map_rows<3>(a, begin, end, [](float x, float y, float z) { return x * 100 + y * 10 + z; }); }},
      "fff", "x0 * 100.0 + x1 * 10.0 + x2");
  const MapKernel seven = with_shader(
      {"seven", [](const MapArgs& a, std::int64_t begin, std::int64_t end) { map_rows<0>(a, begin, end, [] { return 7.0F; }); }}, "",
      "7.0");
  const MapKernel twice = with_shader(
      {"twice", [](const MapArgs& a, std::int64_t begin, std::int64_t end) { map_rows<1>(a, begin, end, [](float x) { return 2 * x; }); }},
      "f", "2.0 * x0");
  on_every_device([&](Device& device) {
    Random random(17);
    for (int round = 0; round < 60; ++round) {
      CAPTURE(round);
      Tensors tensors(device);
      const int rank = static_cast<int>(random.below(5));
      std::vector<std::int64_t> axes;
      for (int i = 0; i < rank; ++i) axes.push_back(1 + random.below(i == rank - 1 ? 70 : 5));
      const Shape shape{std::span<const std::int64_t>(axes)};
      std::vector<Tensor> inputs;
      std::vector<std::vector<float>> seen;
      for (int i = 0; i < 3; ++i) {
        // Some last axes, some of them 1.
        const auto first = static_cast<std::size_t>(random.below(rank + 1));
        std::vector<std::int64_t> own(axes.begin() + static_cast<std::ptrdiff_t>(first), axes.end());
        for (auto& a : own)
          if (random.below(3) == 0) a = 1;
        const Shape s{std::span<const std::int64_t>(own)};
        std::vector<std::int32_t> whole;
        std::vector<float> real;
        std::vector<std::uint8_t> truth;
        for (std::int64_t n = 0; n < s.count(); ++n) {
          whole.push_back(static_cast<std::int32_t>(random.below(50)));
          real.push_back(random.number());
          truth.push_back(static_cast<std::uint8_t>(random.below(2)));
        }
        if (i == 0) seen.push_back(real);
        else if (i == 1) seen.emplace_back(whole.begin(), whole.end());
        else seen.emplace_back(truth.begin(), truth.end());
        if (i == 0) inputs.push_back(tensors.f32(s, real));
        else if (i == 1) inputs.push_back(tensors.bytes_of(DType::i32, s, std::as_bytes(std::span(whole))));
        else inputs.push_back(tensors.bytes_of(DType::boolean, s, std::as_bytes(std::span(truth))));
      }
      const Tensor out = tensors.empty(shape);
      device.map(three, inputs, out);
      const auto got = values_of(out);
      int wrong = 0;
      for (std::int64_t n = 0; n < shape.count(); ++n) {
        float in[3];
        for (int i = 0; i < 3; ++i) {
          const Tensor& t = inputs[static_cast<std::size_t>(i)];
          std::int64_t rest = n, at = 0, stride = 1;
          for (int k = 1; k <= t.shape.rank(); ++k) {
            const std::int64_t position = rest % shape[-k];
            rest /= shape[-k];
            if (t.shape[-k] != 1) at += position * stride;
            stride *= t.shape[-k];
          }
          in[i] = seen[static_cast<std::size_t>(i)][static_cast<std::size_t>(at)];
        }
        if (got[static_cast<std::size_t>(n)] != in[0] * 100 + in[1] * 10 + in[2]) ++wrong;
      }
      CHECK(wrong == 0);
    }
    Tensors tensors(device);
    const Tensor x = tensors.f32({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
    device.map(twice, {&x, 1}, x);
    CHECK(values_of(x) == std::vector<float>{2, 4, 6, 8, 10, 12});
    device.map(seven, {}, x);
    CHECK(values_of(x) == std::vector<float>(6, 7.0F));
    device.copy(x, x);
    const Tensor y = tensors.empty({6});
    device.copy(x, y);
    CHECK(values_of(y) == std::vector<float>(6, 7.0F));
  });
}

TEST_CASE("map: twelve inputs, whose strides are more than push constants hold") {
  constexpr int n = MapArgs::max_inputs;
  std::string expression;
  for (int i = 0; i < n; ++i) expression += (i > 0 ? " + " : "") + std::to_string(i + 1) + ".0 * x" + std::to_string(i);
  const MapKernel many = with_shader({"many",
                                      [](const MapArgs& a, std::int64_t begin, std::int64_t end) {
                                        map_rows<n>(a, begin, end, [](auto... x) {
                                          float total = 0, factor = 1;
                                          ((total += factor * x, factor += 1), ...);
                                          return total;
                                        });
                                      }},
                                     std::string(n, 'f'), expression);
  on_every_device([&](Device& device) {
    Tensors tensors(device);
    const std::int64_t a = 5, b = 7, c = 11;
    // Two in a row with other sizes: the second's must not take the place of the first's.
    std::vector<std::pair<Tensor, std::vector<float>>> results;
    for (const std::int64_t rows : {a, a + 2}) {
      std::vector<Tensor> inputs;
      std::vector<float> expected(static_cast<std::size_t>(rows * b * c), 0.0F);
      for (int i = 0; i < n; ++i) {
        const bool in[] = {(i & 1) == 0, (i & 2) == 0, (i & 4) == 0};   // along which axes it has numbers
        const Shape s = {in[0] ? rows : 1, in[1] ? b : 1, in[2] ? c : 1};
        std::vector<float> values;
        for (std::int64_t k = 0; k < s.count(); ++k) values.push_back(static_cast<float>((k * 7 + i) % 13));
        inputs.push_back(tensors.f32(s, values));
        for (std::int64_t x = 0; x < rows; ++x)
          for (std::int64_t y = 0; y < b; ++y)
            for (std::int64_t z = 0; z < c; ++z)
              expected[static_cast<std::size_t>((x * b + y) * c + z)] +=
                  static_cast<float>(i + 1) *
                  values[static_cast<std::size_t>(((in[0] ? x : 0) * s[1] + (in[1] ? y : 0)) * s[2] + (in[2] ? z : 0))];
      }
      results.emplace_back(tensors.empty({rows, b, c}), expected);
      device.map(many, inputs, results.back().first);
    }
    for (const auto& [got, expected] : results) CHECK(values_of(got) == expected);
  });
}

TEST_CASE("a row that is not there ends the step") {
  on_every_device([](Device& device) {
    Tensors tensors(device);
    const Tensor x = tensors.empty({3, 2}), out = tensors.empty({1, 2});
    Matrix table;
    table.columns = 2;
    table.blocks.push_back({Encoding::f32, 3, 8, x});
    for (const std::int32_t row : {-1, 3, 1 << 30}) {
      const Tensor index = tensors.i32(std::vector<std::int32_t>{row});
      // The CPU sees it at once, a GPU says it when the step ends.
      const auto fails = [&](const std::function<void()>& f) {
        try {
          f();
        } catch (const StepFailure& e) { return e.error.kind == "index-range"; }
        const Status s = device.finish();
        return !s && s.error().kind == "index-range" && s.error().message.find(std::to_string(row)) != std::string::npos;
      };
      CHECK(fails([&] { device.take_rows(x, index, out); }));
      CHECK(fails([&] { device.take(table, index, 1.0F, out); }));
    }
  });
}

TEST_CASE("map: whole numbers stay exact, results of other types") {
  on_every_device([](Device& device) {
    Tensors tensors(device);
    // Beyond 2^24, where floats have no odd numbers.
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 77; ++i) ids.push_back(16777217 + 2 * i);
    const Tensor in = tensors.i32(ids), out = tensors.bytes_of(DType::i32, {77}, {});
    const MapKernel next =
        with_shader({"next", [](const MapArgs& a, std::int64_t begin,
                                std::int64_t end) { map_typed<std::int32_t>(a, begin, end, [](std::int32_t id) { return id + 2; }); }},
                    "i", "x0 + 2");
    device.map(next, {&in, 1}, out);
    int wrong = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) wrong += elements_of<std::int32_t>(out)[i] != ids[i] + 2;
    CHECK(wrong == 0);

    // A bool from whole numbers and floats, broadcast over rows.
    const std::vector<float> limits = {16777218.0F, 16777300.0F};
    const Tensor columns = tensors.f32({2, 1}, limits), flags = tensors.bytes_of(DType::boolean, {2, 77}, {});
    const MapKernel below = with_shader({"below",
                                         [](const MapArgs& a, std::int64_t begin, std::int64_t end) {
                                           map_typed<std::int32_t, float>(a, begin, end, [](std::int32_t id, float limit) {
                                             return id < static_cast<std::int32_t>(limit) ? 1.0F : 0.0F;
                                           });
                                         }},
                                        "if", "x0 < int(x1) ? 1.0 : 0.0");
    const Tensor inputs[] = {in, columns};
    device.map(below, inputs, flags);
    const auto got = elements_of<std::uint8_t>(flags);
    for (std::size_t r = 0; r < 2; ++r)
      for (std::size_t i = 0; i < 77; ++i) wrong += (got[r * 77 + i] != 0) != (ids[i] < static_cast<std::int32_t>(limits[r]));
    CHECK(wrong == 0);

    // And a bool as a float.
    const Tensor sum = tensors.empty({2, 77});
    const MapKernel half =
        with_shader({"half", [](const MapArgs& a, std::int64_t begin,
                                std::int64_t end) { map_rows<1>(a, begin, end, [](float flag) { return flag * 0.5F; }); }},
                    "f", "x0 * 0.5");
    device.map(half, {&flags, 1}, sum);
    const auto sums = values_of(sum);
    for (std::size_t i = 0; i < 154; ++i) wrong += sums[i] != (got[i] ? 0.5F : 0.0F);
    CHECK(wrong == 0);
  });
}

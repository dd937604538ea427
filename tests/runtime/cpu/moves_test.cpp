// Copies between orders, reductions, the choice of experts and their products, convolutions, against plain loops in double.
#include <algorithm>
#include <numeric>

#include "runtime/device/math.h"
#include "runtime/device/step.h"
#include "tests/runtime/cpu/kernel_support.h"

using namespace modelc;
using namespace modelc::test;

TEST_CASE("strided copies: slices, transposes, expansions and repetitions, read and written") {
  on_every_device([](Device& device) {
    Random random(1);
    Tensors tensors(device);
    const auto values = random.numbers(3 * 5 * 7);
    const Tensor x = tensors.f32({3, 5, 7}, values);
    const auto at = [&](std::int64_t i, std::int64_t j, std::int64_t k) { return values[static_cast<std::size_t>((i * 5 + j) * 7 + k)]; };

    const Tensor turned = tensors.empty({7, 5, 3}), part = tensors.empty({3, 5, 3}), wide = tensors.empty({3, 10, 7});
    device.copy_strided(Strided(x).transpose(0, 2), Strided(turned));
    device.copy_strided(Strided(x).slice(2, 1, 6, 2), Strided(part));
    device.copy_strided(Strided(x).repeat(1, 2), Strided(wide));
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t j = 0; j < 5; ++j) {
        for (std::int64_t k = 0; k < 7; ++k) {
          CHECK(values_of(turned)[(k * 5 + j) * 3 + i] == at(i, j, k));
          CHECK(values_of(wide)[(i * 10 + 2 * j + 1) * 7 + k] == at(i, j, k));
        }
        for (std::int64_t k = 0; k < 3; ++k) CHECK(values_of(part)[(i * 5 + j) * 3 + k] == at(i, j, 1 + 2 * k));
      }
    // Into a part of a larger tensor, whose other elements stay; one image for a whole batch.
    const Tensor whole = tensors.empty({3, 9, 7}), many = tensors.empty({4, 5, 7});
    device.fill(2.5, whole);
    device.copy_strided(Strided(x), Strided(whole).slice(1, 3, 8));
    CHECK(values_of(whole)[2 * 7 + 6] == 2.5F);
    CHECK(values_of(whole)[3 * 7] == at(0, 0, 0));
    CHECK(values_of(whole)[(2 * 9 + 7) * 7 + 6] == at(2, 4, 6));
    CHECK(values_of(whole)[(2 * 9 + 8) * 7] == 2.5F);
    device.copy_strided(Strided(Step::rows(x, 1, 2)).expand({4, 5, 7}), Strided(many));
    CHECK(values_of(many)[3 * 35 + 34] == at(1, 4, 6));
    // Whole numbers and bools become floats.
    const std::int32_t numbers[] = {5, -3, 9, 0};
    const std::uint8_t bools[] = {1, 0, 0, 1};
    const Tensor four = tensors.empty({2, 2});
    device.copy_strided(Strided(tensors.i32(numbers).as({2, 2})).transpose(0, 1), Strided(four));
    CHECK(values_of(four) == std::vector<float>{5, 9, -3, 0});
    device.copy_strided(Strided(tensors.bytes_of(DType::boolean, {2, 2}, std::as_bytes(std::span(bools)))), Strided(four));
    CHECK(values_of(four) == std::vector<float>{1, 0, 0, 1});
  });
}

TEST_CASE("a slice that is not all there fails") {
  on_every_device([](Device& device) {
    Tensors tensors(device);
    const Tensor x = tensors.empty({4, 3});
    CHECK_THROWS_AS(Strided(x).slice(0, 2, 5), StepFailure);
    CHECK_THROWS_AS(Strided(x).slice(1, 2, 1), StepFailure);
    CHECK_THROWS_AS(Step::rows(x, -1, 2), StepFailure);
    CHECK(Step::rows(x, 4, 4).count() == 0);
  });
}

TEST_CASE("reductions along every axis, of all and of some") {
  on_every_device([](Device& device) {
    for (const std::int64_t n : {1, 5, 17, 67})
      for (const std::int64_t inner : {1, 3, 33})
        for (const bool some : {false, true}) {
          CAPTURE(n);
          CAPTURE(inner);
          Random random(static_cast<unsigned>(n));
          Tensors tensors(device);
          const std::int64_t outer = 3;
          const auto values = random.numbers(outer * n * inner);
          std::vector<std::uint8_t> kept;
          for (std::int64_t i = 0; i < outer * n; ++i) kept.push_back(!some || (i / n != 1 && random.below(3) > 0));
          const Tensor x = tensors.f32({outer, n, inner}, values);
          const Tensor where = tensors.bytes_of(DType::boolean, {outer, n}, std::as_bytes(std::span(kept)));
          const ReduceArgs args{.axis = 1, .where = some ? where : Tensor{}, .eps = 1e-12F};
          // Partial sums of 67 such numbers reach 8 to 16, where an addition rounds by up to 2^-21: together beyond 1e-6, in some order.
          const double added = n > 17 ? 2e-6 : 1e-6;
          std::vector<double> sum, mean, largest, soft(values.size()), running(values.size());
          std::vector<std::int32_t> best;
          for (std::int64_t o = 0; o < outer; ++o)
            for (std::int64_t i = 0; i < inner; ++i) {
              double total = 0, weights = 0, most = -INFINITY;
              std::int64_t count = 0, place = 0;
              for (std::int64_t j = 0; j < n; ++j) {
                const auto k = static_cast<std::size_t>((o * n + j) * inner + i);
                if (kept[static_cast<std::size_t>(o * n + j)]) {
                  total += values[k], ++count;
                  if (values[k] > most) most = values[k], place = j;
                }
                running[k] = total;
              }
              const auto weight = [&](std::int64_t j) {
                const bool counts = kept[static_cast<std::size_t>(o * n + j)] != 0;
                return counts ? std::exp(values[static_cast<std::size_t>((o * n + j) * inner + i)] - most) : 0.0;
              };
              for (std::int64_t j = 0; j < n; ++j) weights += weight(j);
              for (std::int64_t j = 0; j < n; ++j)
                soft[static_cast<std::size_t>((o * n + j) * inner + i)] = weights > 0 ? weight(j) / weights : 0;
              sum.push_back(total);
              mean.push_back(count > 0 ? total / static_cast<double>(count) : 0);
              largest.push_back(most);
              best.push_back(static_cast<std::int32_t>(place));
            }
          const Tensor one = tensors.empty({outer, inner}), all = tensors.empty({outer, n, inner});
          device.reduce(Reduction::sum, x, args, one);
          check_near(values_of(one), sum, added);
          device.reduce(Reduction::mean, x, args, one);
          check_near(values_of(one), mean, 1e-6);
          device.reduce(Reduction::max, x, args, one);
          for (std::size_t i = 0; i < largest.size(); ++i) CHECK(values_of(one)[i] == static_cast<float>(largest[i]));
          Tensor places = one;
          places.dtype = DType::i32;
          device.reduce(Reduction::argmax, x, args, places);
          CHECK(elements_of<std::int32_t>(places) == best);
          device.reduce(Reduction::softmax, x, args, all);
          check_near(values_of(all), soft, 1e-6);
          device.reduce(Reduction::cumsum, x, args, all);
          check_near(values_of(all), running, added);
        }
  });
}

TEST_CASE("experts: rows in several blocks, packed ones too; tokens alone give the same bits") {
  const MapKernel gated = with_shader(
      {"gated", [](const MapArgs& a, std::int64_t begin,
                   std::int64_t end) { map_rows<2>(a, begin, end, [](float gate, float up) { return math::silu(gate) * up; }); }},
      "ff", "math_silu(x0) * x1");
  on_every_device([&](Device& device) {
    for (const Encoding encoding : {Encoding::f32, Encoding::bf16, Encoding::q8_0}) {
      Random random(9);
      Tensors tensors(device);
      const std::int64_t count = 5, d = 32, f = 96, k = 2, tokens = 7;
      std::vector<std::vector<float>> numbers;
      const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
        Matrix m;
        m.columns = columns;
        numbers.emplace_back();
        for (const std::int64_t some : {rows * 2, rows * (count - 2)}) {
          const StoredRows s = random_row(encoding, some * columns, random);
          RowBlock b;
          b.encoding = encoding;
          b.rows = some;
          b.row_bytes = static_cast<std::int64_t>(s.bytes.size()) / some;
          b.data = tensors.bytes_of(DType::u8, {static_cast<std::int64_t>(s.bytes.size())}, s.bytes);
          b.first = m.rows();
          m.blocks.push_back(b);
          numbers.back().insert(numbers.back().end(), s.values.begin(), s.values.end());
        }
        return m;
      };
      const Matrix gate = matrix(f, d), up = matrix(f, d), down = matrix(d, f);
      const auto bias = random.numbers(count * d), x = random.numbers(tokens * d), weights = random.numbers(tokens * k);
      std::vector<std::int32_t> chosen;
      for (std::int64_t i = 0; i < tokens * k; ++i) chosen.push_back(static_cast<std::int32_t>(i % 4)); // one never
      const ExpertArgs args{&gate, &up, &down, {}, {}, tensors.f32({count, d}, bias), count};
      const Tensor in = tensors.f32({tokens, d}, x), w = tensors.f32({tokens, k}, weights), out = tensors.empty({tokens, d});
      const Tensor which = tensors.i32(chosen).as({tokens, k});
      device.experts(in, which, w, args, gated, out);

      const auto product = [&](std::size_t m, std::int64_t row, std::span<const double> v) {
        double s = 0;
        for (std::size_t j = 0; j < v.size(); ++j)
          s += static_cast<double>(numbers[m][static_cast<std::size_t>(row) * v.size() + j]) * v[j];
        return s;
      };
      std::vector<double> expected(static_cast<std::size_t>(tokens * d));
      for (std::int64_t t = 0; t < tokens; ++t)
        for (std::int64_t i = 0; i < k; ++i) {
          const std::int64_t e = chosen[static_cast<std::size_t>(t * k + i)];
          const std::vector<double> row(x.begin() + t * d, x.begin() + (t + 1) * d);
          std::vector<double> hidden;
          for (std::int64_t j = 0; j < f; ++j) {
            const double g = product(0, e * f + j, row);
            hidden.push_back(g / (1 + std::exp(-g)) * product(1, e * f + j, row));
          }
          for (std::int64_t j = 0; j < d; ++j)
            expected[static_cast<std::size_t>(t * d + j)] += static_cast<double>(weights[static_cast<std::size_t>(t * k + i)]) *
                                                             (product(2, e * d + j, hidden) + bias[static_cast<std::size_t>(e * d + j)]);
        }
      check_near(values_of(out), expected, encoding == Encoding::f32 ? 2e-4 : 2e-3);
      for (std::int64_t t = 0; t < tokens; ++t) {
        const Tensor alone = tensors.empty({1, d});
        device.experts(Step::rows(in, t, t + 1), Step::rows(which, t, t + 1), Step::rows(w, t, t + 1), args, gated, alone);
        CHECK(values_of(alone) == values_of(Step::rows(out, t, t + 1)));
      }
      const std::int32_t wrong[] = {0, 5};
      const auto fails = [&] { // at once, or when the step ends
        try {
          device.experts(Step::rows(in, 0, 1), tensors.i32(wrong).as({1, k}), Step::rows(w, 0, 1), args, gated, tensors.empty({1, d}));
        } catch (const StepFailure& e) { return e.error.kind == "index-range"; }
        const Status s = device.finish();
        return !s && s.error().kind == "index-range" && s.error().message == "expert 5 is chosen of 5";
      };
      CHECK(fails());
    }
  });
}

TEST_CASE("convolutions of one and two axes: stride, padding, dilation, groups") {
  on_every_device([](Device& device) {
    for (const std::int64_t groups : {1, 2})
      for (const std::int64_t stride : {1, 3})
        for (const std::int64_t padding : {0, 2}) {
          Random random(4);
          Tensors tensors(device);
          const std::int64_t batch = 2, c = 4, n = 11, m = 9, o = 6, kn = 3, km = 2, dilation = 2;
          const auto size = [&](std::int64_t in, std::int64_t k) { return (in + 2 * padding - dilation * (k - 1) - 1) / stride + 1; };
          const std::int64_t on = size(n, kn), om = size(m, km);
          const auto x = random.numbers(batch * c * n * m), w = random.numbers(o * c / groups * kn * km), b = random.numbers(o);
          std::vector<double> expected;
          for (std::int64_t s = 0; s < batch; ++s)
            for (std::int64_t r = 0; r < o; ++r)
              for (std::int64_t i = 0; i < on; ++i)
                for (std::int64_t j = 0; j < om; ++j) {
                  double sum = b[static_cast<std::size_t>(r)];
                  for (std::int64_t q = 0; q < c / groups; ++q)
                    for (std::int64_t p = 0; p < kn; ++p)
                      for (std::int64_t l = 0; l < km; ++l) {
                        const std::int64_t y = i * stride + p * dilation - padding, z = j * stride + l * dilation - padding;
                        if (y < 0 || y >= n || z < 0 || z >= m) continue;
                        const std::int64_t channel = r / (o / groups) * (c / groups) + q;
                        sum += static_cast<double>(w[static_cast<std::size_t>(((r * (c / groups) + q) * kn + p) * km + l)]) *
                               x[static_cast<std::size_t>(((s * c + channel) * n + y) * m + z)];
                      }
                  expected.push_back(sum);
                }
          const Tensor out = tensors.empty({batch, o, on, om});
          const ConvArgs args{.stride = stride, .padding = padding, .dilation = dilation, .groups = groups};
          device.conv(tensors.f32({batch, c, n, m}, x), tensors.f32({o, c / groups, kn, km}, w), tensors.f32({o}, b), args, out);
          check_near(values_of(out), expected, 1e-5);
        }
  });
}

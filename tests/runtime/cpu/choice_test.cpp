// The choice of experts, and experts of many tokens, against plain loops in double.
#include <algorithm>
#include <numeric>

#include "runtime/device/math.h"
#include "tests/runtime/cpu/kernel_support.h"

using namespace modelc;
using namespace modelc::test;

TEST_CASE("route: with groups, however many, the best of the best groups, largest first; of equals the lower index") {
  struct Form {
    std::int64_t n, k, groups, keep;
    bool two, renormalize, bias;
  };
  on_every_device([](Device& device) {
    for (const Form& f : {Form{8, 2, 1, 1, false, false, false}, Form{60, 4, 1, 1, false, true, true}, Form{64, 8, 8, 4, true, true, true},
                          Form{128, 6, 64, 7, true, false, true}, Form{130, 5, 65, 3, false, true, false},
                          Form{600, 9, 200, 30, true, true, true}, Form{256, 3, 128, 128, false, false, true}}) {
      CAPTURE(f.groups);
      CAPTURE(f.n);
      Random random(static_cast<unsigned>(f.n + f.groups));
      Tensors tensors(device);
      const std::int64_t rows = 70, size = f.n / f.groups;
      std::vector<float> scores(static_cast<std::size_t>(rows * f.n)), bias(static_cast<std::size_t>(f.n));
      for (float& s : scores) s = static_cast<float>(random.below(40)) / 16;   // many are equal, and sums of two are exact
      for (float& s : bias) s = f.bias ? static_cast<float>(random.below(5)) / 16 : 0;
      std::vector<std::int32_t> expected;
      std::vector<double> weights;
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto score = [&](std::int64_t i) {
          return static_cast<double>(scores[static_cast<std::size_t>(r * f.n + i)]) +
                 static_cast<double>(bias[static_cast<std::size_t>(i)]);
        };
        std::vector<std::int64_t> groups(static_cast<std::size_t>(f.groups)), all;
        std::iota(groups.begin(), groups.end(), 0);
        const auto of_group = [&](std::int64_t g) {
          std::vector<double> own;
          for (std::int64_t i = g * size; i < (g + 1) * size; ++i) own.push_back(score(i));
          std::sort(own.rbegin(), own.rend());
          return own[0] + (f.two && size > 1 ? own[1] : 0);
        };
        std::stable_sort(groups.begin(), groups.end(), [&](std::int64_t a, std::int64_t b) { return of_group(a) > of_group(b); });
        for (std::int64_t g = 0; g < f.keep; ++g)
          for (std::int64_t i = 0; i < size; ++i) all.push_back(groups[static_cast<std::size_t>(g)] * size + i);
        std::sort(all.begin(), all.end());
        std::stable_sort(all.begin(), all.end(), [&](std::int64_t a, std::int64_t b) { return score(a) > score(b); });
        double sum = 0;
        for (std::int64_t i = 0; i < f.k; ++i) {
          expected.push_back(static_cast<std::int32_t>(all[static_cast<std::size_t>(i)]));
          weights.push_back(static_cast<double>(scores[static_cast<std::size_t>(r * f.n + all[static_cast<std::size_t>(i)])]));
          sum += weights.back();
        }
        for (std::int64_t i = 0; i < f.k; ++i)
          weights[weights.size() - 1 - static_cast<std::size_t>(i)] *= 2.5 / (f.renormalize ? sum + 1e-20 : 1);
      }
      const Tensor chosen = tensors.i32(std::vector<std::int32_t>(static_cast<std::size_t>(rows * f.k))).as({rows, f.k});
      const Tensor out = tensors.empty({rows, f.k});
      const RouteArgs args{f.groups, f.keep, f.two, f.renormalize, 2.5F};
      device.route(tensors.f32({rows, f.n}, scores), f.bias ? tensors.f32({f.n}, bias) : Tensor{}, args, chosen, out);
      CHECK(elements_of<std::int32_t>(chosen) == expected);
      check_near(values_of(out), weights, 1e-5);
    }
  });
}

TEST_CASE("experts: many tokens, whatever they choose, are each as alone to the bit; an expert that is not there is said") {
  const MapKernel gated = with_shader(
      {"gated_too", [](const MapArgs& a, std::int64_t begin,
                       std::int64_t end) { map_rows<2>(a, begin, end, [](float gate, float up) { return math::silu(gate) * up; }); }},
      "ff", "math_silu(x0) * x1");
  on_every_device([&](Device& device) {
    for (const Encoding encoding : {Encoding::f32, Encoding::q4_0})
      for (const bool even : {false, true}) {
        CAPTURE(even);
        Random random(21);
        Tensors tensors(device);
        const std::int64_t count = 6, d = 64, f = 32, k = 3, tokens = 83;
        std::vector<std::vector<float>> values;
        const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
          const StoredRows s = random_row(encoding, rows * count * columns, random);
          Matrix m;
          m.columns = columns;
          RowBlock b;
          b.encoding = encoding;
          b.rows = rows * count;
          b.row_bytes = static_cast<std::int64_t>(s.bytes.size()) / b.rows;
          b.data = tensors.bytes_of(DType::u8, {static_cast<std::int64_t>(s.bytes.size())}, s.bytes);
          m.blocks.push_back(b);
          values.push_back(s.values);
          return m;
        };
        const Matrix gate = matrix(f, d), up = matrix(f, d), down = matrix(d, f);
        const auto x = random.numbers(tokens * d), weights = random.numbers(tokens * k), bias = random.numbers(count * f);
        std::vector<std::int32_t> chosen;
        for (std::int64_t i = 0; i < tokens * k; ++i)      // all in turn; or nearly all the same one, and one never
          chosen.push_back(static_cast<std::int32_t>(even ? i % count : random.below(20) == 0 ? random.below(count - 1) : 2));
        const ExpertArgs args{&gate, &up, &down, tensors.f32({count, f}, bias), {}, {}, count};
        const Tensor in = tensors.f32({tokens, d}, x), w = tensors.f32({tokens, k}, weights), out = tensors.empty({tokens, d});
        const Tensor which = tensors.i32(chosen).as({tokens, k});
        device.experts(in, which, w, args, gated, out);
        const auto product = [&](std::size_t m, std::int64_t row, std::span<const double> v) {
          double s = 0;
          for (std::size_t j = 0; j < v.size(); ++j)
            s += static_cast<double>(values[m][static_cast<std::size_t>(row) * v.size() + j]) * v[j];
          return s;
        };
        std::vector<double> expected(static_cast<std::size_t>(tokens * d));
        for (std::int64_t t = 0; t < tokens; ++t)
          for (std::int64_t i = 0; i < k; ++i) {
            const std::int64_t e = chosen[static_cast<std::size_t>(t * k + i)];
            const std::vector<double> row(x.begin() + t * d, x.begin() + (t + 1) * d);
            std::vector<double> hidden;
            for (std::int64_t j = 0; j < f; ++j) {
              const double g = product(0, e * f + j, row) + static_cast<double>(bias[static_cast<std::size_t>(e * f + j)]);
              hidden.push_back(g / (1 + std::exp(-g)) * product(1, e * f + j, row));
            }
            for (std::int64_t j = 0; j < d; ++j)
              expected[static_cast<std::size_t>(t * d + j)] +=
                  static_cast<double>(weights[static_cast<std::size_t>(t * k + i)]) * product(2, e * d + j, hidden);
          }
        check_near(values_of(out), expected, 1e-3);
        for (std::int64_t t = 0; t < tokens; t += 9) {
          const Tensor alone = tensors.empty({1, d});
          const auto row = [&](const Tensor& of) {
            Tensor part = of;
            part.offset += t * of.shape[1] * 4;
            part.shape = {1, of.shape[1]};
            return part;
          };
          device.experts(row(in), row(which), row(w), args, gated, alone);
          CHECK(values_of(alone) == values_of(row(out)));
        }
      }
  });
}

#include "runtime/device/map.h"
#include "runtime/device/math.h"
#include "tests/runtime/cpu/kernel_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

struct Block {
  std::int64_t rows;
  Encoding encoding;
  bool bias;
  std::int64_t shift;
  std::int64_t padding;
};

// A matrix of such blocks, and its results in double.
struct Product {
  Matrix matrix;
  std::vector<std::vector<float>> weights, biases;         // by block

  Product(Tensors& tensors, Random& random, std::int64_t k, const std::vector<Block>& blocks) {
    matrix.columns = k;
    for (const Block& b : blocks) {
      RowBlock block;
      block.encoding = b.encoding;
      block.rows = b.rows;
      block.row_bytes = k / block_elements(b.encoding) * block_bytes(b.encoding) + tensors.placed(b.padding, b.encoding != Encoding::f32);
      const std::int64_t padding = tensors.placed(b.padding, b.encoding != Encoding::f32);
      block.result = static_cast<int>(matrix.blocks.size());
      weights.emplace_back();
      std::vector<std::byte> stored;
      for (std::int64_t r = 0; r < b.rows; ++r) {
        const StoredRows row = random_row(b.encoding, k, random);
        weights.back().insert(weights.back().end(), row.values.begin(), row.values.end());
        stored.insert(stored.end(), row.bytes.begin(), row.bytes.end());
        // What lies between rows must never be read as a weight.
        if (r + 1 < b.rows) stored.insert(stored.end(), static_cast<std::size_t>(padding), std::byte{0xFF});
      }
      block.data = tensors.bytes_of(DType::u8, {static_cast<std::int64_t>(stored.size())}, stored,
                                    tensors.placed(b.shift, b.encoding != Encoding::f32));
      biases.push_back(b.bias ? random.numbers(b.rows) : std::vector<float>());
      if (b.bias) block.bias = tensors.f32({b.rows}, biases.back());
      matrix.blocks.push_back(block);
    }
  }
  double element(std::size_t block, std::span<const float> x, std::int64_t row) const {
    double s = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      s += static_cast<double>(x[i]) * weights[block][static_cast<std::size_t>(row) * x.size() + i];
    return biases[block].empty() ? s : s + biases[block][static_cast<std::size_t>(row)];
  }
  std::vector<double> expected(std::size_t block, std::span<const float> x, std::int64_t m, std::int64_t k) const {
    std::vector<double> out;
    for (std::int64_t t = 0; t < m; ++t)
      for (std::int64_t r = 0; r < matrix.blocks[block].rows; ++r)
        out.push_back(element(block, x.subspan(static_cast<std::size_t>(t * k), static_cast<std::size_t>(k)), r));
    return out;
  }
};

constexpr Encoding quantised[] = {Encoding::q4_0, Encoding::q4_1, Encoding::q5_0, Encoding::q5_1,
                                  Encoding::q8_0, Encoding::q4_k, Encoding::q5_k, Encoding::q6_k};

constexpr double within = 5e-5;                           // of sums of up to 1300 products

const MapKernel& silu_mul() {
  static const MapKernel kernel = with_shader(
      {"silu_mul", [](const MapArgs& a, std::int64_t begin,
                      std::int64_t end) { map_rows<2>(a, begin, end, [](float gate, float up) { return math::silu(gate) * up; }); }},
      "ff", "math_silu(x0) * x1");
  return kernel;
}

}  // namespace

TEST_CASE("linear: all encodings, shapes that are multiples of nothing, rows at odd addresses") {
  on_every_device([](Device& device) {
    for (const Encoding encoding : {Encoding::f32, Encoding::f16, Encoding::bf16})
      for (const std::int64_t m : {1, 2, 3, 4, 5, 6, 7, 17, 67, 150})
        for (const std::int64_t k : {1, 3, 17, 67, 256, 1100, 1300}) {
          if (m > 17 && k > 300 && m != 67) continue;      // keeps the test short
          const std::int64_t n = m * k % 3 == 0 ? 67 : m % 2 == 0 ? 17 : 3;
          CAPTURE(name(encoding));
          CAPTURE(m);
          CAPTURE(n);
          CAPTURE(k);
          Random random(static_cast<unsigned>(m * 1000 + k));
          Tensors tensors(device);
          const Product p(tensors, random, k, {{n, encoding, m % 2 == 0, 1 + m % 3, k % 2 == 0 ? 0 : 3}});
          const auto x = random.numbers(m * k);
          const Tensor out = tensors.empty({m, n});
          device.linear(tensors.f32({m, k}, x), p.matrix, {&out, 1}, {});
          check_near(values_of(out), p.expected(0, x, m, k), within);
        }
  });
}

TEST_CASE("linear: quantised rows, decoded in the kernel") {
  on_every_device([](Device& device) {
    for (const Encoding encoding : quantised)
      for (const std::int64_t m : {1, 2, 5, 7, 67})
        for (const std::int64_t blocks : {1, 3, 5}) {
          const std::int64_t k = blocks * std::max(block_elements(encoding), 96), n = m % 2 == 0 ? 17 : 67;
          CAPTURE(name(encoding));
          CAPTURE(m);
          CAPTURE(k);
          Random random(static_cast<unsigned>(m * 1000 + k));
          Tensors tensors(device);
          const Product p(tensors, random, k, {{n, encoding, m % 2 == 0, 1 + m % 3, k % 3}});
          const auto x = random.numbers(m * k);
          const Tensor out = tensors.empty({m, n});
          device.linear(tensors.f32({m, k}, x), p.matrix, {&out, 1}, {});
          check_near(values_of(out), p.expected(0, x, m, k), within);
        }
  });
}

// x as fast products take it: in each 32 multiples of the largest / 4095; and how far that may be from x.
struct RoundedNumbers {
  std::vector<float> values, error;
};
RoundedNumbers rounded(std::span<const float> x) {
  RoundedNumbers r;
  for (std::size_t begin = 0; begin < x.size(); begin += 32) {
    float most = 0;
    for (std::size_t i = begin; i < begin + 32; ++i) most = std::max(most, std::fabs(x[i]));
    for (std::size_t i = begin; i < begin + 32; ++i) {
      r.values.push_back(most > 0 ? std::nearbyint(x[i] * (4095.0F / most)) * (most / 4095.0F) : 0.0F);
      r.error.push_back(most / 8190.0F);
    }
  }
  return r;
}

TEST_CASE("linear, fast: quantised rows with activations of 13 bits, within what the rounding allows") {
  on_every_fast_device([](Device& device) {
    for (const Encoding encoding : quantised)
      for (const std::int64_t m : {1, 2, 3, 4, 5, 7, 9, 67})
        for (const std::int64_t blocks : {1, 2, 3, 5, 7, 22}) {
          if (m > 9 && blocks > 7) continue;               // keeps the test short
          const std::int64_t k = blocks * block_elements(encoding);
          const std::int64_t n = m % 2 == 0 ? 17 : m == 3 ? 1 : 75;   // 75: a panel that is not full is the last
          CAPTURE(name(encoding));
          CAPTURE(m);
          CAPTURE(n);
          CAPTURE(k);
          Random random(static_cast<unsigned>(m * 1000 + k));
          Tensors tensors(device);
          Product p(tensors, random, k, {{n, encoding, m % 2 == 0, 1 + m % 3, k % 3}});
          p.matrix.mode = Mode::fast;
          auto x = random.numbers(m * k);
          if (k > 32) std::fill_n(x.begin(), 32, 0.0F);    // a group of nothing
          x.back() = 40;                                   // and one that a single element spoils
          const RoundedNumbers r = rounded(x);
          const Tensor out = tensors.empty({m, n});
          device.linear(tensors.f32({m, k}, x), p.matrix, {&out, 1}, {});
          const auto got = values_of(out);
          check_near(got, p.expected(0, r.values, m, k), within);
          const auto exact = p.expected(0, x, m, k);
          int beyond = 0;
          for (std::int64_t t = 0; t < m; ++t)
            for (std::int64_t row = 0; row < n; ++row) {
              double bound = 0;
              for (std::int64_t i = 0; i < k; ++i)
                bound += static_cast<double>(r.error[static_cast<std::size_t>(t * k + i)]) *
                         std::fabs(p.weights[0][static_cast<std::size_t>(row * k + i)]);
              const auto at = static_cast<std::size_t>(t * n + row);
              beyond += !(std::fabs(got[at] - exact[at]) <= bound * 1.001 + within * (1 + std::fabs(exact[at])));
            }
          CHECK(beyond == 0);
        }
  });
}

TEST_CASE("linear, fast: what is not finite shows, in its token alone; other encodings are as in exact") {
  on_every_fast_device([](Device& device) {
    Random random(21);
    for (const Encoding encoding : {Encoding::q8_0, Encoding::q4_k, Encoding::q6_k})
      for (const std::int64_t m : {3, 12})
        for (const float bad : {NAN, INFINITY}) {
          Tensors tensors(device);
          const std::int64_t k = 512, n = 37;
          Product p(tensors, random, k, {{n, encoding, false, 0, 0}, {n, Encoding::bf16, true, 0, 0}});
          auto x = random.numbers(m * k);
          x[static_cast<std::size_t>(k + 300)] = bad;      // of the second token
          const std::vector<Tensor> outs = {tensors.empty({m, n}), tensors.empty({m, n})};
          const std::vector<Tensor> exact = {tensors.empty({m, n}), tensors.empty({m, n})};
          const Tensor in = tensors.f32({m, k}, x);
          device.linear(in, p.matrix, exact, {});
          p.matrix.mode = Mode::fast;
          device.linear(in, p.matrix, outs, {});
          const auto got = values_of(outs[0]);
          int finite = 0;
          for (const float v : got) finite += std::isfinite(v);
          CHECK(finite == (m - 1) * n);
          for (std::int64_t i = 0; i < n; ++i) CHECK(!std::isfinite(got[static_cast<std::size_t>(n + i)]));
          const auto a = values_of(outs[1]), b = values_of(exact[1]);
          for (std::size_t i = 0; i < a.size(); ++i) CHECK((a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))));
        }
  });
}

TEST_CASE("linear, fast: codes at their ends fit the sums") {
  on_every_fast_device([](Device& device) {
    for (const Encoding encoding : quantised)
      for (const std::int64_t m : {1, 6})
        for (const int fill : {0x00, 0x80, 0xFF}) {
          CAPTURE(name(encoding));
          CAPTURE(m);
          CAPTURE(fill);
          Tensors tensors(device);
          Random random(1);
          const std::int64_t k = 768, n = 5;
          Product p(tensors, random, k, {{n, encoding, false, 0, 0}});
          // All bytes alike, but for scales of 2^-7.
          const RowBlock& b = p.matrix.blocks[0];
          const std::int64_t blocks = n * k / block_elements(encoding), bytes = block_bytes(encoding);
          std::vector<std::size_t> scales = {encoding == Encoding::q6_k ? 208u : 0u};
          if (encoding == Encoding::q4_1 || encoding == Encoding::q5_1 || encoding == Encoding::q4_k || encoding == Encoding::q5_k)
            scales.push_back(2);
          std::vector<std::byte> rows(static_cast<std::size_t>(blocks * bytes), std::byte(fill));
          const std::uint16_t scale = f16_from_f32(1.0F / 128);
          for (std::int64_t i = 0; i < blocks; ++i)
            for (const std::size_t at : scales) std::memcpy(rows.data() + i * bytes + static_cast<std::int64_t>(at), &scale, 2);
          device.write(rows, b.data);
          REQUIRE(decode(encoding, rows.data(), p.weights[0]));
          p.matrix.mode = Mode::fast;
          for (const float x : {1.0F, -1.0F}) {
            const std::vector<float> all(static_cast<std::size_t>(m * k), x);
            const Tensor out = tensors.empty({m, n});
            device.linear(tensors.f32({m, k}, all), p.matrix, {&out, 1}, {});
            check_near(values_of(out), p.expected(0, all, m, k), within);
          }
        }
  });
}

TEST_CASE("linear: a packed product of mixed encodings, and a result whose rows are of two") {
  on_every_device([](Device& device) {
    for (const std::int64_t m : {1, 5, 40}) {
      const Mode mode = m == 5 ? Mode::fast : Mode::exact; // of the halves of an expression
      Random random(static_cast<unsigned>(m) + 77);
      Tensors tensors(device);
      const std::int64_t k = 768;
      Product p(tensors, random, k,
                {{97, Encoding::q4_k, false, 0, 0},
                 {31, Encoding::q6_k, true, 2, 0},
                 {70, Encoding::f16, true, 1, 6},
                 {5, Encoding::q8_0, false, 3, 0}});
      // The last two are one result of 75 columns.
      p.matrix.blocks[3].result = 2;
      p.matrix.blocks[3].first = 70;
      const auto x = random.numbers(m * k);
      const std::vector<Tensor> outs = {tensors.empty({m, 97}), tensors.empty({m, 31}), tensors.empty({m, 75})};
      device.linear(tensors.f32({m, k}, x), p.matrix, outs, {});
      for (std::size_t b = 0; b < 2; ++b) check_near(values_of(outs[b]), p.expected(b, x, m, k), within);
      const auto first = p.expected(2, x, m, k), second = p.expected(3, x, m, k);
      std::vector<double> joined;
      for (std::ptrdiff_t t = 0; t < m; ++t) {
        joined.insert(joined.end(), first.begin() + t * 70, first.begin() + (t + 1) * 70);
        joined.insert(joined.end(), second.begin() + t * 5, second.begin() + (t + 1) * 5);
      }
      check_near(values_of(outs[2]), joined, within);

      // The same two as the halves of an expression: 75 rows of q5_0, and 75 in two pieces.
      Product gated(tensors, random, k,
                    {{75, Encoding::q5_0, false, 0, 0}, {70, Encoding::q4_1, true, 1, 6}, {5, Encoding::bf16, true, 3, 0}});
      gated.matrix.mode = mode;
      gated.matrix.blocks[2].result = 1;
      gated.matrix.blocks[2].first = 70;
      const Tensor out = tensors.empty({m, 75}), apart = tensors.empty({m, 75}), in = tensors.f32({m, k}, x);
      const std::vector<Tensor> parts = {tensors.empty({m, 75}), tensors.empty({m, 75})};
      device.linear_map(in, gated.matrix, silu_mul(), out);
      device.linear(in, gated.matrix, parts, {});
      device.map(silu_mul(), parts, apart);
      CHECK(values_of(apart) == values_of(out));
    }
  });
}

TEST_CASE("take: rows of quantised tables are what they decode to, to the bit") {
  on_every_device([](Device& device) {
    for (const Encoding encoding : quantised) {
      CAPTURE(name(encoding));
      Random random(5);
      Tensors tensors(device);
      const std::int64_t k = 768, count = 7;
      const StoredRows s = random_blocks(encoding, count * k, random);
      const std::int64_t row_bytes = static_cast<std::int64_t>(s.bytes.size()) / count;
      Matrix table;
      table.columns = k;
      // In two blocks, as a table that a file keeps in two tensors.
      table.blocks.push_back(
          {encoding, 4, row_bytes,
           tensors.bytes_of(DType::u8, {4 * row_bytes}, std::span(s.bytes).first(static_cast<std::size_t>(4 * row_bytes)), 1)});
      table.blocks.push_back(
          {encoding, 3, row_bytes,
           tensors.bytes_of(DType::u8, {3 * row_bytes}, std::span(s.bytes).subspan(static_cast<std::size_t>(4 * row_bytes)), 3)});
      table.blocks[1].first = 4;
      const std::vector<std::int32_t> rows = {6, 0, 3, 4, 4};
      const Tensor out = tensors.empty({5, k});
      device.take(table, tensors.i32(rows), 1.0F, out);
      int wrong = 0;
      for (std::size_t r = 0; r < rows.size(); ++r)
        for (std::size_t i = 0; i < static_cast<std::size_t>(k); ++i)
          wrong += values_of(out)[r * 768 + i] != s.values[static_cast<std::size_t>(rows[r]) * 768 + i];
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("linear: several blocks of unlike encodings and sizes are one product") {
  on_every_device([](Device& device) {
    for (const std::int64_t m : {1, 5, 40}) {
      Random random(static_cast<unsigned>(m));
      Tensors tensors(device);
      const std::int64_t k = 200;
      const Product p(tensors, random, k,
                      {{97, Encoding::bf16, false, 0, 0}, {1, Encoding::f32, true, 2, 0}, {300, Encoding::f16, true, 1, 6}});
      const auto x = random.numbers(m * k);
      const std::vector<Tensor> outs = {tensors.empty({m, 97}), tensors.empty({m, 1}), tensors.empty({m, 300})};
      device.linear(tensors.f32({m, k}, x), p.matrix, outs, {});
      for (std::size_t b = 0; b < 3; ++b) check_near(values_of(outs[b]), p.expected(b, x, m, k), within);
    }
  });
}

TEST_CASE("linear: the residual is added, also in place") {
  on_every_device([](Device& device) {
    for (const std::int64_t m : {1, 3, 20}) {
      Random random(static_cast<unsigned>(m) + 9);
      Tensors tensors(device);
      const std::int64_t k = 50, n = 133;
      const Product p(tensors, random, k, {{n, Encoding::bf16, true, 0, 0}});
      const auto x = random.numbers(m * k), r = random.numbers(m * n);
      auto expected = p.expected(0, x, m, k);
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += r[i];
      const Tensor in = tensors.f32({m, k}, x), out = tensors.empty({m, n}), residual = tensors.f32({m, n}, r);
      device.linear(in, p.matrix, {&out, 1}, residual);
      check_near(values_of(out), expected, within);
      device.linear(in, p.matrix, {&residual, 1}, residual);
      CHECK(values_of(residual) == values_of(out));
    }
  });
}

TEST_CASE("linear: no columns give the bias, no rows and no tokens nothing") {
  on_every_device([](Device& device) {
    Random random(3);
    Tensors tensors(device);
    const Product none(tensors, random, 0, {{5, Encoding::f32, true, 0, 0}});
    const Tensor out = tensors.empty({2, 5});
    device.linear(tensors.empty({2, 0}), none.matrix, {&out, 1}, {});
    for (std::size_t i = 0; i < 10; ++i) CHECK(values_of(out)[i] == none.biases[0][i % 5]);
    const Product some(tensors, random, 8, {{5, Encoding::f32, true, 0, 0}});
    const Tensor no_tokens = tensors.empty({0, 5});
    device.linear(tensors.empty({0, 8}), some.matrix, {&no_tokens, 1}, {});
  });
}

TEST_CASE("linear: a token's bits depend neither on its neighbours nor on the threads") {
  for (const cpu::Kernels* kernels : cpu::available_kernels()) {
    CAPTURE(kernels->isa);
    for (const Encoding encoding : {Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q4_1, Encoding::q6_k, Encoding::q8_0})
      for (const std::int64_t k : {67, 700, 1280, 1312}) {
        if (k % block_elements(encoding) != 0) continue;
        const Mode mode = k == 1312 || encoding == Encoding::q6_k ? Mode::fast : Mode::exact;
        CAPTURE(name(encoding));
        CAPTURE(k);
        const std::int64_t m = 80, n = 110;
        std::vector<float> first;
        for (const int threads : {1, 2, 3}) {
          auto device = open_cpu({threads, kernels->isa});
          REQUIRE(device.ok());
          Random random(11);
          Tensors tensors(**device);
          Product p(tensors, random, k, {{n, encoding, true, 0, 0}});
          p.matrix.mode = mode;
          const auto x = random.numbers(m * k);
          const Tensor in = tensors.f32({m, k}, x), out = tensors.empty({m, n});
          (*device)->linear(in, p.matrix, {&out, 1}, {});
          const auto whole = values_of(out);
          if (first.empty()) first = whole;
          CHECK(whole == first);
          for (std::int64_t begin = 0, pieces = 1; begin < m; begin += pieces++) {
            const std::int64_t count = std::min(pieces, m - begin);
            Tensor part = in, result = tensors.empty({count, n});
            part.offset = begin * k * 4;
            part.shape = {count, k};
            (*device)->linear(part, p.matrix, {&result, 1}, {});
            const auto rows = values_of(result);
            CHECK(std::equal(rows.begin(), rows.end(), whole.begin() + begin * n));
          }
        }
      }
  }
}

TEST_CASE("linear_map: the blocks' products through an expression") {
  on_every_device([](Device& device) {
    for (const Encoding encoding : {Encoding::f32, Encoding::bf16})
      for (const std::int64_t m : {1, 2, 7, 150})
        for (const std::int64_t n : {1, 31, 90}) {
          CAPTURE(m);
          CAPTURE(n);
          Random random(static_cast<unsigned>(m * n));
          Tensors tensors(device);
          const std::int64_t k = 45;
          const Product p(tensors, random, k, {{n, encoding, true, 1, 0}, {n, Encoding::f16, false, 0, 2}});
          const auto x = random.numbers(m * k);
          const auto gate = p.expected(0, x, m, k), up = p.expected(1, x, m, k);
          std::vector<double> expected;
          for (std::size_t i = 0; i < gate.size(); ++i) expected.push_back(gate[i] / (1 + std::exp(-gate[i])) * up[i]);
          const Tensor in = tensors.f32({m, k}, x), out = tensors.empty({m, n});
          device.linear_map(in, p.matrix, silu_mul(), out);
          check_near(values_of(out), expected, 5e-5);
          // The same bits as the products and then the expression.
          const std::vector<Tensor> parts = {tensors.empty({m, n}), tensors.empty({m, n})};
          const Tensor apart = tensors.empty({m, n});
          device.linear(in, p.matrix, parts, {});
          device.map(silu_mul(), parts, apart);
          CHECK(values_of(apart) == values_of(out));
        }
  });
}

TEST_CASE("f16: subnormals, the largest number and infinity; bf16: every exponent") {
  on_every_device([](Device& device) {
    const std::vector<float> numbers = {0.0F, -0.0F, 5.9604645e-8F, -6.0e-5F, 65504.0F, -65504.0F, 1e-30F, -1e30F};
    for (const Encoding encoding : {Encoding::f16, Encoding::bf16}) {
      Tensors tensors(device);
      for (const float number : numbers) {
        if (encoding == Encoding::f16 && std::fabs(number) > 65504.0F) continue;
        const StoredRows s = store_as(encoding, std::vector<float>(37, number));
        Matrix table;
        table.columns = 37;
        RowBlock b;
        b.encoding = encoding;
        b.rows = 1;
        b.row_bytes = 74;
        b.data = tensors.bytes_of(DType::u8, {74}, s.bytes, 1);
        table.blocks.push_back(b);
        const Tensor out = tensors.empty({1, 37});
        device.take(table, tensors.i32(std::vector<std::int32_t>{0}), 1.0F, out);
        CHECK(values_of(out) == s.values);
        const std::vector<float> one = {1.0F};
        const Tensor product = tensors.empty({1, 1});
        std::vector<float> unit(37, 0.0F);
        unit[36] = 1.0F;
        device.linear(tensors.f32({1, 37}, unit), table, {&product, 1}, {});
        CHECK(values_of(product)[0] == s.values[0]);
      }
      // Infinity and NaN stay what they are.
      const std::uint16_t infinity = encoding == Encoding::f16 ? 0x7C00 : 0x7F80, nan = encoding == Encoding::f16 ? 0x7E00 : 0x7FC0;
      Matrix table;
      table.columns = 1;
      RowBlock b;
      b.encoding = encoding;
      b.rows = 2;
      b.row_bytes = 2;
      const std::vector<std::uint16_t> bits = {infinity, nan};
      b.data = tensors.bytes_of(DType::u8, {4}, std::as_bytes(std::span(bits)));
      table.blocks.push_back(b);
      const Tensor out = tensors.empty({2, 1});
      device.take(table, tensors.i32(std::vector<std::int32_t>{0, 1}), 1.0F, out);
      CHECK(std::isinf(values_of(out)[0]));
      CHECK(std::isnan(values_of(out)[1]));
    }
  });
}

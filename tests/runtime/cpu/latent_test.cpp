// Attention over latents on every device, against keys and values that are made of the latents, in double.
#include <algorithm>
#include <cmath>

#include "runtime/kv_cache/kv_cache.h"
#include "tests/runtime/cpu/kernel_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

struct Case {
  std::int64_t heads = 1, n = 1, v = 1, rank = 1, rope = 1;
  Mask mask = Mask::causal;
  DType cache = DType::f32;
  std::vector<std::pair<Encoding, std::int64_t>> blocks = {};          // of `up`: encoding and rows; none: f32, all
  float scale() const { return static_cast<float>(1 / std::sqrt(static_cast<double>(n + rope))); }
};

// `up` on the device, as blocks of one result, and its numbers.
struct Up {
  Matrix matrix;
  std::vector<float> values;                               // [heads · (n + v), rank]

  Up(Tensors& tensors, Random& random, const Case& c) {
    matrix.columns = c.rank;
    auto blocks = c.blocks;
    if (blocks.empty()) blocks = {{Encoding::f32, c.heads * (c.n + c.v)}};
    std::int64_t first = 0;
    for (const auto& [encoding, rows] : blocks) {
      RowBlock b;
      b.encoding = encoding;
      b.rows = rows;
      b.first = first;
      b.row_bytes = c.rank / block_elements(encoding) * block_bytes(encoding);
      std::vector<std::byte> stored;
      for (std::int64_t r = 0; r < rows; ++r) {
        const StoredRows row = random_row(encoding, c.rank, random);
        stored.insert(stored.end(), row.bytes.begin(), row.bytes.end());
        values.insert(values.end(), row.values.begin(), row.values.end());
      }
      b.data = tensors.bytes_of(DType::u8, {rows * b.row_bytes}, stored, encoding == Encoding::f32 ? 4 : 2);
      matrix.blocks.push_back(b);
      first += rows;
    }
    REQUIRE(first == c.heads * (c.n + c.v));
  }
};

struct Sequence {
  std::vector<float> nope, rope, latent, key;              // of all its positions
};
// Latents are small where there are many, so that what is made of them is not large and an absolute bound says something.
Sequence random_sequence(Random& random, const Case& c, std::int64_t length) {
  Sequence s{random.numbers(length * c.heads * c.n), random.numbers(length * c.heads * c.rope), random.numbers(length * c.rank),
             random.numbers(length * c.rope)};
  for (float& x : s.latent) x *= 2 / std::sqrt(static_cast<float>(c.rank) + 3);
  return s;
}

// Tokens [begin, end) of a call after which the sequence is `length` long.
std::vector<double> expected_rows(const Case& c, const std::vector<float>& up, const Sequence& s, std::int64_t begin, std::int64_t end,
                                  std::int64_t length) {
  const auto at = [](const std::vector<float>& x, std::int64_t i) { return static_cast<double>(x[static_cast<std::size_t>(i)]); };
  // Keys and values: [length, heads, n + v].
  std::vector<double> made(static_cast<std::size_t>(length * c.heads * (c.n + c.v)), 0.0), out;
  for (std::int64_t j = 0; j < length; ++j)
    for (std::int64_t row = 0; row < c.heads * (c.n + c.v); ++row)
      for (std::int64_t i = 0; i < c.rank; ++i)
        made[static_cast<std::size_t>(j * c.heads * (c.n + c.v) + row)] += at(up, row * c.rank + i) * at(s.latent, j * c.rank + i);
  for (std::int64_t t = begin; t < end; ++t)
    for (std::int64_t h = 0; h < c.heads; ++h) {
      const std::int64_t seen = c.mask == Mask::causal ? t + 1 : length;
      std::vector<double> logits;
      const auto own = [&](std::int64_t j) { return made.data() + (j * c.heads + h) * (c.n + c.v); };
      for (std::int64_t j = 0; j < seen; ++j) {
        double dot = 0;
        for (std::int64_t i = 0; i < c.n; ++i) dot += at(s.nope, (t * c.heads + h) * c.n + i) * own(j)[i];
        for (std::int64_t i = 0; i < c.rope; ++i) dot += at(s.rope, (t * c.heads + h) * c.rope + i) * at(s.key, j * c.rope + i);
        logits.push_back(dot * static_cast<double>(c.scale()));
      }
      const double largest = *std::max_element(logits.begin(), logits.end());
      double total = 0;
      for (double& l : logits) total += l = std::exp(l - largest);
      for (std::int64_t i = 0; i < c.v; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < seen; ++j) sum += logits[static_cast<std::size_t>(j)] * own(j)[c.n + i];
        out.push_back(sum / total);
      }
    }
  return out;
}

// A cache of the device, and sequences that are fed into it.
class Fed {
 public:
  Fed(Device& device, const Case& c, const Matrix& up, int slots, std::int64_t capacity)
      : device_(device),
        case_(c),
        up_(up),
        store_(*device.reserve(
            {.kind = StateSlot::Kind::latent_cache, .sizes = {c.rank, c.rope}, .dtype = c.cache, .member = device.members() - 1}, capacity,
            slots)),
        cache_(static_cast<LatentCache&>(*store_)) {
    fill_with_nonsense(cache_.rows.buffer);
  }
  struct Piece {
    int slot;
    const Sequence* sequence;
    std::int64_t tokens;
  };

  // Appends and attends; the result is [tokens of all pieces][heads][v].
  std::vector<float> step(const std::vector<Piece>& pieces) {
    Batch at;
    Sequence all;
    for (const Piece& p : pieces) {
      const std::int64_t begin = cache_.held[static_cast<std::size_t>(p.slot)], end = begin + p.tokens;
      add_sequence(at, p.slot, begin, p.tokens);
      const auto add = [&](std::vector<float>& to, const std::vector<float>& from, std::int64_t width) {
        to.insert(to.end(), from.begin() + begin * width, from.begin() + end * width);
      };
      add(all.nope, p.sequence->nope, case_.heads * case_.n);
      add(all.rope, p.sequence->rope, case_.heads * case_.rope);
      add(all.latent, p.sequence->latent, case_.rank);
      add(all.key, p.sequence->key, case_.rope);
    }
    Tensors tensors(device_);
    begin_step(device_, tensors, at);
    const std::int64_t n = at.tokens();
    device_.append(cache_, tensors.f32({n, case_.rank}, all.latent), tensors.f32({n, case_.rope}, all.key), at);
    const Tensor out = tensors.empty({n, case_.heads, case_.v});
    const LatentArgs args{tensors.f32({n, case_.heads, case_.n}, all.nope), tensors.f32({n, case_.heads, case_.rope}, all.rope), &up_,
                          case_.mask, case_.scale()};
    device_.attend_latent(args, cache_, at, out);
    return values_of(out);
  }
  LatentCache& cache() { return cache_; }

 private:
  Device& device_;
  Case case_;
  const Matrix& up_;
  std::unique_ptr<StateStore> store_;
  LatentCache& cache_;
};

constexpr double within = 1e-5;
constexpr std::uint64_t one_slot = 128 * 1024;            // bytes of a token's queries, or of what a slot holds, here at most

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {1, 1, 1, 1, 1},
      {3, 6, 5, 7, 8},                                     // a rank that is no multiple of anything
      {5, 16, 24, 40, 12},
      {2, 33, 17, 300, 2},                                 // more columns than a panel has
      {70, 4, 3, 16, 8},                                   // more heads than one piece holds
      {4, 16, 16, 32, 16, Mask::full},
  };
  return all;
}

void on_both(const std::function<void(Device&)>& check) { on_every_device(check, one_slot); }

}  // namespace

TEST_CASE("attend_latent: prefill, and every number of tokens after others") {
  on_both([](Device& device) {
    for (const Case& c : cases()) {
      CAPTURE(c.heads);
      CAPTURE(c.rank);
      Random random(static_cast<unsigned>(c.heads * 100 + c.rank));
      Tensors tensors(device);
      const Up up(tensors, random, c);
      const Sequence s = random_sequence(random, c, 100);
      Fed whole(device, c, up.matrix, 1, 100);
      const auto all = whole.step({{0, &s, 100}});
      const auto expected = expected_rows(c, up.values, s, 0, 100, 100);
      check_near(all, expected, within);
      if (c.mask == Mask::full) continue;                  // a row then sees what comes later in its call
      Fed pieces(device, c, up.matrix, 1, 102);
      std::vector<float> parts;
      for (const std::int64_t n : {1, 1, 14, 1, 3, 43, 36, 1}) {
        const auto part = pieces.step({{0, &s, n}});
        parts.insert(parts.end(), part.begin(), part.end());
      }
      check_near(parts, expected, within);
      if (tensors.on_host()) CHECK(parts == all);          // bit for bit
    }
  });
}

TEST_CASE("attend_latent: `up` in every encoding that products read, in blocks that begin within a head") {
  for (const Encoding e : {Encoding::f16, Encoding::bf16, Encoding::q4_0, Encoding::q4_1, Encoding::q5_0, Encoding::q5_1, Encoding::q8_0,
                           Encoding::q4_k, Encoding::q5_k, Encoding::q6_k})
    on_both([&](Device& device) {
      CAPTURE(name(e));
      REQUIRE(device.reads(e, MatrixUse::product));
      // Rows for keys and for values are cut: 3 heads of 9 + 4 rows.
      Case c{3, 9, 4, block_elements(e) > 1 ? 2 * block_elements(e) : 45, 6, Mask::causal, DType::f32, {}};
      c.blocks = {{e, 5}, {Encoding::f32, 6}, {e, 10}, {e, 18}};
      Random random(static_cast<unsigned>(e) + 7);
      Tensors tensors(device);
      const Up up(tensors, random, c);
      const Sequence s = random_sequence(random, c, 30);
      Fed fed(device, c, up.matrix, 1, 30);
      auto got = fed.step({{0, &s, 24}});
      for (const std::int64_t n : {1, 5}) {
        const auto more = fed.step({{0, &s, n}});
        got.insert(got.end(), more.begin(), more.end());
      }
      check_near(got, expected_rows(c, up.values, s, 0, 30, 30), 3 * within);
    });
}

TEST_CASE("attend_latent: a ragged batch gives what each sequence gives alone; rows of others are not seen") {
  on_both([](Device& device) {
    const Case c{5, 16, 24, 40, 12};
    Random random(8);
    Tensors tensors(device);
    const Up up(tensors, random, c);
    std::vector<Sequence> sequences;
    const std::vector<std::int64_t> lengths = {40, 3, 90, 1};
    for (const std::int64_t n : lengths) sequences.push_back(random_sequence(random, c, n));
    Fed together(device, c, up.matrix, 4, 100);
    std::vector<std::vector<float>> got(4);
    const auto feed = [&](const std::vector<std::pair<int, std::int64_t>>& pieces) {
      std::vector<Fed::Piece> p;
      for (const auto& [i, n] : pieces) p.push_back({3 - i, &sequences[static_cast<std::size_t>(i)], n});
      const auto out = together.step(p);
      auto at = out.begin();
      for (const auto& [i, n] : pieces) {
        auto& to = got[static_cast<std::size_t>(i)];
        to.insert(to.end(), at, at + n * c.heads * c.v);
        at += n * c.heads * c.v;
      }
    };
    feed({{2, 50}, {0, 39}, {1, 2}});
    feed({{0, 1}, {3, 1}, {1, 1}, {2, 40}});
    for (std::size_t i = 0; i < 4; ++i) {
      check_near(got[i], expected_rows(c, up.values, sequences[i], 0, lengths[i], lengths[i]), within);
      Fed alone(device, c, up.matrix, 1, 100);
      if (tensors.on_host()) CHECK(alone.step({{0, &sequences[i], lengths[i]}}) == got[i]);
    }
  });
}

TEST_CASE("attend_latent: a cache in f16 or bf16 gives what the latents that it holds give, in half the memory") {
  on_every_fast_device([](Device& device) {
    for (Case c : cases()) {
      c.cache = c.rank % 8 == 0 ? DType::bf16 : DType::f16;
      CAPTURE(c.rank);
      Random random(static_cast<unsigned>(c.rank));
      Tensors tensors(device);
      const Up up(tensors, random, c);
      const Sequence s = random_sequence(random, c, 90);
      Sequence rounded = s;
      for (auto* values : {&rounded.latent, &rounded.key})
        for (float& x : *values) x = c.cache == DType::f16 ? f32_from_f16(f16_from_f32(x)) : f32_from_bf16(bf16_from_f32(x));
      Fed fed(device, c, up.matrix, 1, 90);
      check_near(fed.step({{0, &s, 90}}), expected_rows(c, up.values, rounded, 0, 90, 90), within);
      CHECK(fed.cache().bytes() == 90 * (c.rank + c.rope) * 2);
    }
  });
}

TEST_CASE("attend_latent: more tokens than queries wait at a time, and keys that are spread over workgroups") {
  on_both([](Device& device) {
    // 64 heads of 288 + 256 numbers: 120 tokens on the CPU; the last binding shows one.
    const Case many{64, 3, 2, 256, 32};
    Random random(5);
    Tensors tensors(device);
    const Up up(tensors, random, many);
    const Sequence s = random_sequence(random, many, 100);
    Fed fed(device, many, up.matrix, 1, 110);
    check_near(fed.step({{0, &s, 100}}), expected_rows(many, up.values, s, 0, 100, 100), within);
  });
  on_every_device(
      [](Device& device) {
        const Case few{2, 8, 8, 24, 8};
        Random random(6);
        Tensors tensors(device);
        const Up up(tensors, random, few);
        const std::int64_t n = 1100;
        const Sequence s = random_sequence(random, few, n);
        Fed fed(device, few, up.matrix, 2, n);
        fed.step({{1, &s, n - 3}});
        std::vector<float> got;
        for (int i = 0; i < 3; ++i) {
          const auto one = fed.step({{1, &s, 1}});
          got.insert(got.end(), one.begin(), one.end());
        }
        check_near(got, expected_rows(few, up.values, s, n - 3, n, n), within);
      },
      256 * 1024);
}

TEST_CASE("attend_latent over a cache that was cut back sees what is left and what came after") {
  on_both([](Device& device) {
    const Case c{3, 6, 5, 7, 8};
    Random random(4);
    Tensors tensors(device);
    const Up up(tensors, random, c);
    const Sequence s = random_sequence(random, c, 40), other = random_sequence(random, c, 40);
    Sequence joined = s;                                   // the other's from position 10 on
    const auto from_ten = [](std::vector<float>& to, const std::vector<float>& from) {
      std::copy(from.begin() + static_cast<std::ptrdiff_t>(from.size() / 4), from.end(),
                to.begin() + static_cast<std::ptrdiff_t>(to.size() / 4));
    };
    from_ten(joined.nope, other.nope), from_ten(joined.rope, other.rope);
    from_ten(joined.latent, other.latent), from_ten(joined.key, other.key);
    Fed fed(device, c, up.matrix, 1, 40);
    fed.step({{0, &s, 30}});
    // A call that fails: its rows are written, and the cache is as long as before.
    const Sequences at{{0}};
    REQUIRE(fed.cache().begin(at).ok());
    fed.step({{0, &s, 5}});
    CHECK(fed.cache().held[0] == 35);
    fed.cache().rollback(at);
    CHECK(fed.cache().held[0] == 30);
    CHECK(fed.cache().truncate(0, 10) == 10);
    const auto got = fed.step({{0, &joined, 20}});
    check_near(got, expected_rows(c, up.values, joined, 10, 30, 30), within);
  });
}

TEST_CASE("combine: rows of w added up, for any sizes, in one order, on top of what is there") {
  Random random(2);
  for (const cpu::Kernels* kernels : cpu::available_kernels()) {
    CAPTURE(kernels->isa);
    std::vector<float> scratch(static_cast<std::size_t>(kernels->combine_scratch()) + 16);
    float* aligned = reinterpret_cast<float*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 1, 1}, std::array<std::int64_t, 3>{1, 40, 300},
                                  std::array<std::int64_t, 3>{9, 17, 5}, std::array<std::int64_t, 3>{6, 33, 513}}) {
      const std::vector<float> x = random.numbers(m * (n + 2)), w = random.numbers(n * (k + 1));
      std::vector<float> out(static_cast<std::size_t>(m * (k + 3)), 7.0F);
      cpu::CombineArgs a;
      a.x = x.data();
      a.x_stride = n + 2;
      a.w = reinterpret_cast<const std::byte*>(w.data());
      a.w_stride = (k + 1) * 4;
      a.m = m, a.n = n, a.k = k;
      a.out = out.data();
      a.out_stride = k + 3;
      a.scratch = aligned;
      kernels->combine(a);
      std::vector<double> expected(out.size(), 7.0);
      for (std::int64_t t = 0; t < m; ++t)
        for (std::int64_t c = 0; c < k; ++c) {
          double sum = 0;
          for (std::int64_t i = 0; i < n; ++i)
            sum += static_cast<double>(x[static_cast<std::size_t>(t * (n + 2) + i)]) * w[static_cast<std::size_t>(i * (k + 1) + c)];
          expected[static_cast<std::size_t>(t * (k + 3) + c)] = sum;
        }
      check_near(out, expected, within);
      // One token alone has the same bits; and so has a sum in two parts.
      std::vector<float> alone(out.size(), 7.0F);
      cpu::CombineArgs b = a;
      b.m = 1;
      for (std::int64_t t = 0; t < m; ++t) {
        b.x = x.data() + t * a.x_stride;
        b.out = alone.data() + t * a.out_stride;
        b.w = a.w, b.n = (n + 1) / 2, b.add = false;
        kernels->combine(b);
        b.x += b.n, b.w += b.n * b.w_stride, b.n = n - b.n, b.add = true;
        kernels->combine(b);
      }
      CHECK(alone == out);
    }
  }
}

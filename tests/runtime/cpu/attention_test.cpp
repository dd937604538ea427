#include <algorithm>

#include "runtime/kv_cache/kv_cache.h"
#include "tests/runtime/cpu/kernel_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

struct Case {
  std::int64_t heads = 1, kv_heads = 1, d = 8, dv = 8;
  AttendArgs args;
  std::vector<float> sinks;
  DType cache = DType::f32;                                // of keys and values
};

// What one query row of one head gives over positions [lo, hi) of its sequence, in double.
std::vector<double> one_row(const Case& c, std::span<const float> q, std::span<const float> k, std::span<const float> v,
                            std::int64_t position, std::int64_t length, std::int64_t head) {
  const std::int64_t kv = head / (c.heads / c.kv_heads);
  const std::int64_t hi = c.args.mask == Mask::causal ? std::min(position + 1, length) : length;
  const std::int64_t lo = c.args.window > 0 ? std::max<std::int64_t>(0, position + 1 - c.args.window) : 0;
  std::vector<double> scores, out(static_cast<std::size_t>(c.dv), 0.0);
  double most = c.sinks.empty() ? -INFINITY : c.sinks[static_cast<std::size_t>(head)];
  for (std::int64_t p = lo; p < hi; ++p) {
    double s = 0;
    for (std::int64_t i = 0; i < c.d; ++i)
      s += static_cast<double>(q[static_cast<std::size_t>(i)]) * k[static_cast<std::size_t>((p * c.kv_heads + kv) * c.d + i)];
    s *= c.args.scale;
    if (c.args.softcap > 0) s = c.args.softcap * std::tanh(s / c.args.softcap);
    scores.push_back(s);
    most = std::max(most, s);
  }
  if (scores.empty()) return out;
  double sum = c.sinks.empty() ? 0 : std::exp(c.sinks[static_cast<std::size_t>(head)] - most);
  for (std::int64_t p = lo; p < hi; ++p) {
    const double w = std::exp(scores[static_cast<std::size_t>(p - lo)] - most);
    sum += w;
    for (std::int64_t i = 0; i < c.dv; ++i)
      out[static_cast<std::size_t>(i)] += w * v[static_cast<std::size_t>((p * c.kv_heads + kv) * c.dv + i)];
  }
  for (double& x : out) x /= sum;
  return out;
}

struct Sequence {
  std::vector<float> q, k, v;                              // of all its positions
  std::int64_t length = 0;
};
Sequence random_sequence(Random& random, const Case& c, std::int64_t length) {
  return {random.numbers(length * c.heads * c.d), random.numbers(length * c.kv_heads * c.d), random.numbers(length * c.kv_heads * c.dv),
          length};
}

// Rows [begin, end) of [positions][width].
std::span<const float> rows(const std::vector<float>& values, std::int64_t width, std::int64_t begin, std::int64_t end) {
  return std::span(values).subspan(static_cast<std::size_t>(begin * width), static_cast<std::size_t>((end - begin) * width));
}

// A cache of the device, and sequences that are fed into it.
class Fed {
 public:
  Fed(Device& device, const Case& c, int slots, std::int64_t capacity)
      : device_(device),
        case_(c),
        store_(*device.reserve({.sizes = {c.kv_heads, c.d, c.dv}, .dtype = c.cache}, capacity, slots)),
        cache_(static_cast<KvCache&>(*store_)) {
    for (const Buffer* b : {cache_.keys.buffer, cache_.values.buffer}) fill_with_nonsense(b);
  }
  struct Piece {
    int slot;
    const Sequence* sequence;
    std::int64_t tokens;
  };

  // Appends and attends; the result is [tokens of all pieces][heads][dv].
  std::vector<float> step(const std::vector<Piece>& pieces) {
    Batch at;
    std::vector<float> q, k, v;
    for (const Piece& p : pieces) {
      const std::int64_t begin = cache_.held[static_cast<std::size_t>(p.slot)], end = begin + p.tokens;
      add_sequence(at, p.slot, begin, p.tokens);
      const auto add = [](std::vector<float>& to, std::span<const float> from) { to.insert(to.end(), from.begin(), from.end()); };
      add(q, rows(p.sequence->q, case_.heads * case_.d, begin, end));
      add(k, rows(p.sequence->k, case_.kv_heads * case_.d, begin, end));
      add(v, rows(p.sequence->v, case_.kv_heads * case_.dv, begin, end));
    }
    Tensors tensors(device_);
    const std::int64_t n = at.tokens();
    begin_step(device_, tensors, at);
    AttendArgs args = case_.args;
    if (!case_.sinks.empty()) args.sinks = tensors.f32({case_.heads}, case_.sinks);
    device_.append(cache_, tensors.f32({n, case_.kv_heads, case_.d}, k), tensors.f32({n, case_.kv_heads, case_.dv}, v), at);
    const Tensor out = tensors.empty({n, case_.heads, case_.dv});
    device_.attend(tensors.f32({n, case_.heads, case_.d}, q), cache_, at, args, out);
    return values_of(out);
  }
  KvCache& cache() { return cache_; }

 private:
  Device& device_;
  Case case_;
  std::unique_ptr<StateStore> store_;
  KvCache& cache_;
};

std::vector<double> expected_rows(const Case& c, const Sequence& s, std::int64_t begin, std::int64_t end, std::int64_t length) {
  std::vector<double> out;
  for (std::int64_t t = begin; t < end; ++t)
    for (std::int64_t h = 0; h < c.heads; ++h) {
      const auto row = one_row(c, rows(s.q, c.d, t * c.heads + h, t * c.heads + h + 1), s.k, s.v, t, length, h);
      out.insert(out.end(), row.begin(), row.end());
    }
  return out;
}

constexpr double within = 3e-6;
constexpr std::uint64_t one_head = 64 * 1024;             // bytes that keys or values of one head of a cache take here, at most

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](std::int64_t heads, std::int64_t kv, std::int64_t d, std::int64_t dv) -> Case& {
    Case c{heads, kv, d, dv, {}, {}, DType::f32};
    c.args.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
    all.push_back(c);
    return all.back();
  };
  add(1, 1, 1, 1);
  add(3, 3, 8, 8);
  add(9, 3, 64, 64);
  add(6, 2, 17, 5);                                        // values of another width
  add(70, 1, 16, 33);                                      // more heads on one kv head than one piece holds
  add(4, 2, 16, 16).args.window = 4;
  add(4, 2, 16, 16).args.window = 100;
  add(4, 2, 16, 16).args.softcap = 0.3F;
  add(4, 2, 16, 16).args.mask = Mask::full;
  Case& sinks = add(4, 2, 16, 16);
  sinks.sinks = {-1.0F, 0.0F, 5.0F, 40.0F};
  Case& all_of_it = add(4, 1, 32, 32);
  all_of_it.sinks = {-1.0F, 0.0F, 2.0F, 1.0F};
  all_of_it.args.window = 33;
  all_of_it.args.softcap = 2.0F;
  return all;
}

}  // namespace

TEST_CASE("attend over a cache: prefill, and every number of tokens after others") {
  on_every_device(
      [](Device& device) {
        for (const Case& c : cases()) {
          CAPTURE(c.heads);
          CAPTURE(c.d);
          CAPTURE(c.args.window);
          Random random(static_cast<unsigned>(c.heads * 100 + c.d));
          const Sequence s = random_sequence(random, c, 150);
          Fed whole(device, c, 1, 150);
          const auto all = whole.step({{0, &s, 150}});
          check_near(all, expected_rows(c, s, 0, 150, 150), within);
          if (c.args.mask == Mask::full) continue;             // a row then sees what comes later in its call
          Fed pieces(device, c, 1, 160);
          std::int64_t at = 0;
          for (const std::int64_t n : {1, 1, 14, 1, 47, 1, 64, 20, 1}) {
            const auto part = pieces.step({{0, &s, n}});
            CHECK(std::equal(part.begin(), part.end(), all.begin() + at * c.heads * c.dv));
            at += n;
          }
          REQUIRE(at == 150);
        }
      },
      one_head);
}

TEST_CASE("attend over a cache in f16 or bf16: what the same keys and values give that it holds, and half the memory") {
  on_every_fast_device([](Device& device) {
    for (Case c : cases()) {
      c.cache = c.d == 16 ? DType::bf16 : DType::f16;
      CAPTURE(c.heads);
      CAPTURE(c.d);
      CAPTURE(c.args.window);
      Random random(static_cast<unsigned>(c.heads * 100 + c.d));
      const Sequence s = random_sequence(random, c, 150);
      Sequence rounded = s;
      for (auto* values : {&rounded.k, &rounded.v})
        for (float& x : *values) x = c.cache == DType::f16 ? f32_from_f16(f16_from_f32(x)) : f32_from_bf16(bf16_from_f32(x));
      Fed whole(device, c, 1, 160);
      const auto all = whole.step({{0, &s, 150}});
      check_near(all, expected_rows(c, rounded, 0, 150, 150), within);
      CHECK(whole.cache().bytes() == 2 * 160 * c.kv_heads * (c.d + c.dv));
      if (c.args.mask == Mask::full) continue;
      Fed pieces(device, c, 1, 160);
      std::int64_t at = 0;
      for (const std::int64_t n : {1, 15, 47, 1, 85, 1}) {
        const auto part = pieces.step({{0, &s, n}});
        CHECK(std::equal(part.begin(), part.end(), all.begin() + at * c.heads * c.dv));
        at += n;
      }
      REQUIRE(at == 150);
    }
  });
}

TEST_CASE("f32 to f16 and bf16 as the plain conversion rounds it; in f16 finite numbers stay finite") {
  std::vector<float> numbers = {0.0F,    -0.0F,    1.0F,       65504.0F, 65519.0F, 65520.0F, -65536.0F, 3.4e38F,  5.9604645e-8F,
                                2.9e-8F, -3.0e-8F, 6.1035e-5F, 6.1e-5F,  1e-40F,   INFINITY, -INFINITY, 0.333333F};
  Random random(31);
  for (int i = 0; i < 5000; ++i) numbers.push_back(std::ldexp(random.number(), static_cast<int>(random.below(46)) - 30));
  for (const cpu::Kernels* kernels : cpu::available_kernels()) {
    CAPTURE(kernels->isa);
    std::vector<std::uint16_t> got(numbers.size());
    kernels->narrow(cpu::Stored::f16, numbers.data(), static_cast<std::int64_t>(numbers.size()), got.data());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const float bounded = std::isinf(numbers[i]) ? numbers[i] : std::clamp(numbers[i], -65504.0F, 65504.0F);
      CAPTURE(numbers[i]);
      CHECK(got[i] == f16_from_f32(bounded));
    }
    kernels->narrow(cpu::Stored::bf16, numbers.data(), static_cast<std::int64_t>(numbers.size()), got.data());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      CAPTURE(numbers[i]);
      CHECK(got[i] == bf16_from_f32(numbers[i]));
    }
    const float nan = NAN;
    kernels->narrow(cpu::Stored::f16, &nan, 1, got.data());
    CHECK(std::isnan(f32_from_f16(got[0])));
    kernels->narrow(cpu::Stored::bf16, &nan, 1, got.data());
    CHECK(std::isnan(f32_from_bf16(got[0])));
  }
}

TEST_CASE("attend: long sequences in chunks, one token or many, whatever the threads") {
  Case c{4, 2, 16, 16, {}, {}, DType::f32};
  c.args.scale = 0.25F;
  for (const std::int64_t window : {0, 700}) {
    c.args.window = window;
    Random random(4);
    const Sequence s = random_sequence(random, c, 1300);
    const auto last = expected_rows(c, s, 1296, 1300, 1300);
    for (const cpu::Kernels* kernels : cpu::available_kernels()) {
      std::vector<float> first;
      for (const int threads : {1, 2, 5}) {
        auto device = open_cpu({threads, kernels->isa});
        REQUIRE(device.ok());
        Fed fed(**device, c, 1, 1300);
        fed.step({{0, &s, 1296}});
        std::vector<float> got;
        for (int i = 0; i < 4; ++i) {
          const auto one = fed.step({{0, &s, 1}});
          got.insert(got.end(), one.begin(), one.end());
        }
        check_near(got, last, within);
        Fed again(**device, c, 1, 1300);
        const auto whole = again.step({{0, &s, 1300}});
        CHECK(std::equal(got.begin(), got.end(), whole.end() - static_cast<std::ptrdiff_t>(got.size())));
        if (first.empty()) first = got;
        CHECK(got == first);
      }
    }
  }
}

TEST_CASE("attend: a ragged batch equals each alone") {
  on_every_device(
      [](Device& device) {
        Case c{6, 2, 24, 24, {}, {}, DType::f32};
        c.args.scale = 0.2F;
        Random random(8);
        std::vector<Sequence> sequences;
        for (const std::int64_t n : {40, 3, 90, 1}) sequences.push_back(random_sequence(random, c, n));
        Fed together(device, c, 4, 100);
        std::vector<std::vector<float>> got(4);
        const auto feed = [&](const std::vector<std::pair<int, std::int64_t>>& pieces) {
          std::vector<Fed::Piece> p;
          for (const auto& [i, n] : pieces) p.push_back({3 - i, &sequences[static_cast<std::size_t>(i)], n});
          const auto out = together.step(p);
          std::ptrdiff_t at = 0;
          for (const auto& [i, n] : pieces) {
            got[static_cast<std::size_t>(i)].insert(got[static_cast<std::size_t>(i)].end(), out.begin() + at,
                                                    out.begin() + at + n * c.heads * c.dv);
            at += n * c.heads * c.dv;
          }
        };
        feed({{2, 50}, {0, 39}, {1, 2}});
        feed({{0, 1}, {3, 1}, {1, 1}, {2, 40}});
        for (std::size_t i = 0; i < 4; ++i) {
          Fed alone(device, c, 1, 100);
          CHECK(alone.step({{0, &sequences[i], sequences[i].length}}) == got[i]);
        }
      },
      one_head);
}

TEST_CASE("attend without state: each segment by itself") {
  on_every_device(
      [](Device& device) {
        for (Case c : cases()) {
          Random random(static_cast<unsigned>(c.heads + c.d));
          const std::vector<std::int64_t> lengths = {5, 33, 1, 70};
          const Batch at = *Batch::make(lengths, Outputs::all);
          Tensors tensors(device);
          std::vector<float> q, k, v;
          std::vector<double> expected;
          for (const std::int64_t n : lengths) {
            const Sequence s = random_sequence(random, c, n);
            q.insert(q.end(), s.q.begin(), s.q.end());
            k.insert(k.end(), s.k.begin(), s.k.end());
            v.insert(v.end(), s.v.begin(), s.v.end());
            const auto rows_of = expected_rows(c, s, 0, n, n);
            expected.insert(expected.end(), rows_of.begin(), rows_of.end());
          }
          const std::int64_t n = at.tokens();
          begin_step(device, tensors, at);
          if (!c.sinks.empty()) c.args.sinks = tensors.f32({c.heads}, c.sinks);
          const Tensor out = tensors.empty({n, c.heads, c.dv});
          device.attend(tensors.f32({n, c.heads, c.d}, q), tensors.f32({n, c.kv_heads, c.d}, k), tensors.f32({n, c.kv_heads, c.dv}, v), at,
                        c.args, out);
          check_near(values_of(out), expected, within);
        }
      },
      one_head);
}

TEST_CASE("attend over a cross cache: all that was set, wherever the tokens stand") {
  on_every_device(
      [](Device& device) {
        for (Case c : cases()) {
          if (c.d != c.dv || c.args.window > 0) continue;
          c.args.mask = Mask::full;
          const bool narrow = device.has_fast_mode() && c.d == 16;
          for (const std::int64_t n : {1, 15, 16, 33, 150}) {
            CAPTURE(c.heads);
            CAPTURE(c.d);
            CAPTURE(n);
            const StateSlot slot{
                .kind = StateSlot::Kind::cross_cache, .sizes = {n, c.kv_heads, c.d}, .dtype = narrow ? DType::bf16 : DType::f32};
            const auto store = *device.reserve(slot, 7, 3);
            auto& cache = static_cast<KvCache&>(*store);
            for (const Buffer* b : {cache.keys.buffer, cache.values.buffer}) fill_with_nonsense(b);
            Random random(static_cast<unsigned>(c.heads * 100 + c.d + n));
            // Slots 2 and 0 are set, then 2 again.
            std::vector<Sequence> set = {random_sequence(random, c, n), random_sequence(random, c, n)};
            Tensors tensors(device);
            const auto put = [&](const std::vector<std::int32_t>& slots, const std::vector<const Sequence*>& what) {
              std::vector<float> k, v;
              for (const Sequence* s : what) k.insert(k.end(), s->k.begin(), s->k.end()), v.insert(v.end(), s->v.begin(), s->v.end());
              const Shape shape{static_cast<std::int64_t>(what.size()), n, c.kv_heads, c.d};
              REQUIRE(device.begin({}, nullptr, {}).ok());
              device.set(cache, tensors.f32(shape, k), tensors.f32(shape, v), Sequences{slots});
            };
            put({2, 0}, {&set[1], &set[1]});
            put({2}, {&set[0]});
            // A token behind many others of slot 0, and the first three of slot 2.
            Batch at;
            at.slots = {0, 2};
            at.positions = {900, 0, 1, 2};
            at.lengths = {901, 3, 3, 3};
            at.sequence = {0, 1, 1, 1};
            at.outputs = {0, 1, 2, 3};
            at.last = {0, 3};
            at.starts = {0, 1, 4};
            begin_step(device, tensors, at);
            const std::vector<float> q = random.numbers(4 * c.heads * c.d);
            AttendArgs args = c.args;
            if (!c.sinks.empty()) args.sinks = tensors.f32({c.heads}, c.sinks);
            const Tensor out = tensors.empty({4, c.heads, c.d});
            device.attend(tensors.f32({4, c.heads, c.d}, q), cache, at, args, out);
            if (narrow)
              for (Sequence& s : set)
                for (auto* values : {&s.k, &s.v})
                  for (float& x : *values) x = f32_from_bf16(bf16_from_f32(x));
            std::vector<double> expected;
            for (std::int64_t t = 0; t < 4; ++t)
              for (std::int64_t h = 0; h < c.heads; ++h) {
                const Sequence& s = set[t == 0 ? 1 : 0];
                const auto row = one_row(c, rows(q, c.d, t * c.heads + h, t * c.heads + h + 1), s.k, s.v, 0, n, h);
                expected.insert(expected.end(), row.begin(), row.end());
              }
            check_near(values_of(out), expected, within);
          }
        }
      },
      one_head);
}

TEST_CASE("attend: rows that see nothing give 0, also with sinks") {
  on_every_device(
      [](Device& device) {
        for (const bool with_sinks : {false, true}) {
          Case c{2, 1, 8, 8, {}, {}};
          Fed fed(device, c, 1, 32);
          const Batch at = *Batch::make(std::vector<std::int64_t>{3}, Outputs::all);
          Random random(2);
          Tensors tensors(device);
          begin_step(device, tensors, at);
          AttendArgs args;
          const std::vector<float> sinks = {1.0F, 2.0F};
          if (with_sinks) args.sinks = tensors.f32({2}, sinks);
          const Tensor out = tensors.empty({3, 2, 8});
          device.attend(tensors.f32({3, 2, 8}, random.numbers(48)), fed.cache(), at, args, out);   // nothing was appended
          CHECK(values_of(out) == std::vector<float>(48, 0.0F));
        }
      },
      one_head);
}

TEST_CASE("attend: a NaN shows in its own row and in those that see it, no other") {
  on_every_device(
      [](Device& device) {
        Case c{2, 1, 8, 8, {}, {}};
        Random random(2);
        Sequence s = random_sequence(random, c, 20);
        s.k[12 * 8 + 3] = NAN;                                 // position 12
        s.v[15 * 8] = NAN;                                     // position 15, channel 0
        Fed fed(device, c, 1, 32);
        const auto out = fed.step({{0, &s, 20}});
        for (std::int64_t t = 0; t < 20; ++t)
          for (std::int64_t i = 0; i < 16; ++i) {
            CAPTURE(t);
            CHECK(std::isnan(out[static_cast<std::size_t>(t * 16 + i)]) == (t >= 12));
          }
        Sequence broken = random_sequence(random, c, 3);
        for (std::size_t i = 0; i < 8; ++i) broken.q[16 + i] = NAN;   // position 1, head 0
        Fed other(device, c, 1, 32);
        const auto rows_of = other.step({{0, &broken, 3}});
        for (std::size_t i = 0; i < rows_of.size(); ++i) CHECK(std::isnan(rows_of[i]) == (i / 8 == 2));
      },
      one_head);
}

TEST_CASE("attend: large scores neither overflow nor lose the largest") {
  on_every_device(
      [](Device& device) {
        Case c{2, 1, 16, 4, {}, {}};
        c.args.scale = 30.0F;
        Random random(6);
        const Sequence s = random_sequence(random, c, 200);
        Fed fed(device, c, 1, 200);
        check_near(fed.step({{0, &s, 200}}), expected_rows(c, s, 0, 200, 200), 1e-3);
      },
      one_head);
}

TEST_CASE("attend: rectangular sequences, more keys than rows, keys left out, causal and windows") {
  on_every_device(
      [](Device& device) {
        struct Form {
          Mask mask;
          std::int64_t n, m, window;
          bool keep, sinks;
        };
        for (const Form& f : {Form{Mask::full, 5, 23, 0, false, false}, Form{Mask::full, 19, 19, 0, true, false},
                              Form{Mask::full, 3, 600, 0, true, true}, Form{Mask::causal, 37, 37, 0, true, false},
                              Form{Mask::causal, 21, 21, 4, true, true}, Form{Mask::causal, 18, 18, 5, false, false}}) {
          CAPTURE(f.m);
          CAPTURE(f.window);
          const std::int64_t sequences = 3, heads = 6, kv_heads = 2, d = 12, dv = 7;
          Random random(static_cast<unsigned>(f.m * 10 + f.n));
          Tensors tensors(device);
          const auto q = random.numbers(sequences * f.n * heads * d), k = random.numbers(sequences * f.m * kv_heads * d),
                     v = random.numbers(sequences * f.m * kv_heads * dv), sinks = random.numbers(heads);
          std::vector<std::uint8_t> keep(static_cast<std::size_t>(sequences * f.m), 1);
          if (f.keep)
            for (std::size_t i = 0; i < keep.size(); ++i) {
          // The second sequence sees nothing at all.
              const bool second = static_cast<std::int64_t>(i) / f.m == 1;
              keep[i] = !second && random.below(3) > 0 ? 1 : 0;
            }
          AttendArgs args{.mask = f.mask, .scale = 0.3F, .window = f.window};
          if (f.keep) args.keep = tensors.bytes_of(DType::boolean, {sequences, f.m}, std::as_bytes(std::span(keep)));
          if (f.sinks) args.sinks = tensors.f32({heads}, sinks);
          const Tensor out = tensors.empty({sequences, f.n, heads, dv});
          device.attend(tensors.f32({sequences, f.n, heads, d}, q), tensors.f32({sequences, f.m, kv_heads, d}, k),
                        tensors.f32({sequences, f.m, kv_heads, dv}, v), args, out);

          std::vector<double> expected;
          for (std::int64_t s = 0; s < sequences; ++s)
            for (std::int64_t i = 0; i < f.n; ++i)
              for (std::int64_t h = 0; h < heads; ++h) {
                std::vector<double> logits;
                std::vector<std::int64_t> seen;
                for (std::int64_t j = 0; j < f.m; ++j) {
                  if (keep[static_cast<std::size_t>(s * f.m + j)] == 0) continue;
                  if (f.mask == Mask::causal && (j > i || (f.window > 0 && i - j >= f.window))) continue;
                  double dot = 0;
                  for (std::int64_t c = 0; c < d; ++c)
                    dot += static_cast<double>(q[static_cast<std::size_t>(((s * f.n + i) * heads + h) * d + c)]) *
                           k[static_cast<std::size_t>(((s * f.m + j) * kv_heads + h / 3) * d + c)];
                  logits.push_back(dot * static_cast<double>(args.scale));
                  seen.push_back(j);
                }
                double total = f.sinks ? std::exp(static_cast<double>(sinks[static_cast<std::size_t>(h)])) : 0;
                for (const double l : logits) total += std::exp(l);
                for (std::int64_t c = 0; c < dv; ++c) {
                  double sum = 0;
                  for (std::size_t j = 0; j < seen.size(); ++j)
                    sum += std::exp(logits[j]) * v[static_cast<std::size_t>(((s * f.m + seen[j]) * kv_heads + h / 3) * dv + c)];
                  expected.push_back(seen.empty() ? 0 : sum / total);
                }
              }
          check_near(values_of(out), expected, 1e-5);
        }
      },
      one_head);
}

TEST_CASE("attend: few queries over many keys, which a GPU spreads over workgroups and then puts together") {
  on_every_device(
      [](Device& device) {
        for (const bool all : {false, true}) {
          Case c{3, 1, 16, 24, {}, {}, DType::f32};
          c.args.scale = 0.25F;
          if (all) {
            c.sinks = {-1.0F, 3.0F, 40.0F};
            c.args.window = 700;
            c.args.softcap = 2.0F;
          }
          CAPTURE(all);
          Random random(12);
          const std::int64_t n = 1100;
          Sequence s = random_sequence(random, c, n), other = random_sequence(random, c, 700);
          Fed fed(device, c, 2, n);
          fed.step({{0, &s, n - 5}, {1, &other, 640}});
          std::vector<float> got;
          for (int i = 0; i < 3; ++i) {
            const auto one = fed.step({{0, &s, 1}});
            got.insert(got.end(), one.begin(), one.end());
          }
          check_near(got, expected_rows(c, s, n - 5, n - 2, n), within);
          const auto two = fed.step({{1, &other, 2}, {0, &s, 2}});
          auto expected = expected_rows(c, other, 640, 642, 642);
          const auto rest = expected_rows(c, s, n - 2, n, n);
          expected.insert(expected.end(), rest.begin(), rest.end());
          check_near(two, expected, within);
        }
        // A NaN in one part shows in its row; without it the row is as it was.
        Case c{1, 1, 8, 8, {}, {}};
        Random random(3);
        for (const bool value : {false, true}) {
          Sequence s = random_sequence(random, c, 1200);
          (value ? s.v : s.k)[700 * 8 + 1] = NAN;
          Fed fed(device, c, 1, 1200);
          fed.step({{0, &s, 690}});
          for (const float x : fed.step({{0, &s, 1}})) CHECK(!std::isnan(x));
          fed.step({{0, &s, 508}});
          const auto row = fed.step({{0, &s, 1}});
          for (std::size_t i = 0; i < 8; ++i) CHECK(std::isnan(row[i]) == (!value || i == 1));
        }
      },
      256 * 1024);
}

TEST_CASE("attend: wide heads and values, over any number of channels") {
  on_every_device(
      [](Device& device) {
        for (const auto& [heads, kv, d, dv] : {std::array<std::int64_t, 4>{2, 1, 576, 512}, std::array<std::int64_t, 4>{3, 3, 40, 513},
                                               std::array<std::int64_t, 4>{4, 2, 700, 1300}, std::array<std::int64_t, 4>{2, 1, 9000, 3}}) {
          CAPTURE(d);
          Case c{heads, kv, d, dv, {}, {}, DType::f32};
          c.args.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
          c.sinks = std::vector<float>(static_cast<std::size_t>(heads), 0.5F);
          Random random(static_cast<unsigned>(d));
          const Sequence s = random_sequence(random, c, 70);
          Fed whole(device, c, 1, 70), pieces(device, c, 1, 70);
          const auto all = whole.step({{0, &s, 70}});
          check_near(all, expected_rows(c, s, 0, 70, 70), d > 1000 ? 3 * within : within);   // longer sums
          pieces.step({{0, &s, 68}});
          const auto last = pieces.step({{0, &s, 2}});
          CHECK(std::equal(last.begin(), last.end(), all.end() - static_cast<std::ptrdiff_t>(last.size())));
        }
      },
      3 * 1024 * 1024);
}

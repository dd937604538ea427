// What goes over a state token by token, against plain loops in double over all tokens that a sequence has had.
#include <numeric>

#include "tests/runtime/cpu/kernel_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

constexpr int slots = 4;

// A call of some sequences: which slot, how many tokens.
struct Call {
  std::vector<std::pair<int, std::int64_t>> sequences;
  std::int64_t tokens() const {
    return std::accumulate(sequences.begin(), sequences.end(), std::int64_t{0}, [](std::int64_t n, const auto& s) { return n + s.second; });
  }
};
// Ragged, in any order of slots; slot 1 has no part in it. The second and the third go on where the ones before ended.
const std::vector<Call> calls = {{{{2, 5}, {0, 1}, {3, 9}}}, {{{0, 1}, {3, 1}, {2, 2}}}, {{{3, 17}}}};

// The batch of a call, whose step begins; `seen`: tokens of each slot before it.
class Begun {
 public:
  Begun(Device& device, Tensors& tensors, const Call& call, std::vector<std::int64_t>& seen) {
    for (const auto& [slot, tokens] : call.sequences) {
      std::int64_t& before = seen[static_cast<std::size_t>(slot)];
      add_sequence(at, slot, before, tokens);
      before += tokens;
    }
    begin_step(device, tensors, at);
  }
  Batch at;
};

// Rows of a call's tensor, in its order of tokens, given to f(slot, place of the row).
template <class F> void each_token(const Call& call, F&& f) {
  std::int64_t row = 0;
  for (const auto& [slot, tokens] : call.sequences)
    for (std::int64_t t = 0; t < tokens; ++t) f(static_cast<std::size_t>(slot), row++);
}

// A state of all slots: zeros, and in slot 1, which nobody may touch, something else.
std::vector<float> fresh_state(std::int64_t size) {
  std::vector<float> v(static_cast<std::size_t>(slots * size));
  std::fill(v.begin() + size, v.begin() + 2 * size, 0.25F);
  return v;
}
void untouched(const Tensor& state, std::int64_t size) {
  const auto v = values_of(state);
  CHECK(std::all_of(v.begin() + size, v.begin() + 2 * size, [](float x) { return x == 0.25F; }));
}

// Numbers that are of the same size whatever the token: above 0 and below 1.
std::vector<float> between(Random& random, std::int64_t n, float least, float most) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v) x = least + (most - least) * static_cast<float>(random.below(1 << 20)) / static_cast<float>(1 << 20);
  return v;
}

struct Ssd {
  std::int64_t heads, groups, p, n;
  std::vector<float> x, dt, a, b, c, d;                    // of a call
  void fill(Random& random, std::int64_t tokens) {
    x = random.numbers(tokens * heads * p);
    dt = between(random, tokens * heads, 0.01F, 1);
    b = random.numbers(tokens * groups * n);
    c = random.numbers(tokens * groups * n);
  }
  ScanArgs on(Tensors& t, std::int64_t tokens) const {
    return {t.f32({tokens, heads, p}, x),  t.f32({tokens, heads}, dt),    t.f32({heads}, a),
            t.f32({tokens, groups, n}, b), t.f32({tokens, groups, n}, c), t.f32({heads}, d)};
  }
  // One token of a sequence: moves its state [heads, p, n] on.
  void step(std::int64_t row, double* s, std::vector<double>& out) const {
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t shared = (row * groups + h / (heads / groups)) * n;
      const double by = dt[static_cast<std::size_t>(row * heads + h)], kept = std::exp(by * a[static_cast<std::size_t>(h)]);
      for (std::int64_t i = 0; i < p; ++i) {
        const double given = x[static_cast<std::size_t>((row * heads + h) * p + i)];
        double sum = d[static_cast<std::size_t>(h)] * given;
        for (std::int64_t j = 0; j < n; ++j) {
          double& e = s[(h * p + i) * n + j];
          e = kept * e + by * given * b[static_cast<std::size_t>(shared + j)];
          sum += e * c[static_cast<std::size_t>(shared + j)];
        }
        out.push_back(sum);
      }
    }
  }
};

struct Delta {
  std::int64_t key_heads, heads, dk, dv;
  float normalize;
  std::vector<float> q, k, v, decay, beta;
  void fill(Random& random, std::int64_t tokens) {
    q = random.numbers(tokens * key_heads * dk);
    k = random.numbers(tokens * key_heads * dk);
    if (normalize == 0)                                    // keys longer than 1 make it diverge
      for (float& e : k) e /= static_cast<float>(2 * dk);
    v = random.numbers(tokens * heads * dv);
    decay = between(random, tokens * heads, -2, 0);
    beta = between(random, tokens * heads, 0, 1);
  }
  DeltaArgs on(Tensors& t, std::int64_t tokens) const {
    return {t.f32({tokens, key_heads, dk}, q),
            t.f32({tokens, key_heads, dk}, k),
            t.f32({tokens, heads, dv}, v),
            t.f32({tokens, heads}, decay),
            t.f32({tokens, heads}, beta),
            0.3F,
            normalize};
  }
  std::vector<double> row(const std::vector<float>& of, std::int64_t at) const {
    std::vector<double> r(of.begin() + at * dk, of.begin() + (at + 1) * dk);
    if (normalize == 0) return r;
    double squares = static_cast<double>(normalize);
    for (const double e : r) squares += e * e;
    for (double& e : r) e /= std::sqrt(squares);
    return r;
  }
  void step(std::int64_t token, double* state, std::vector<double>& out) const {
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t shared = token * key_heads + h / (heads / key_heads);
      const std::vector<double> query = row(q, shared), key = row(k, shared);
      const auto at = static_cast<std::size_t>(token * heads + h);
      double* s = state + h * dk * dv;
      for (std::int64_t j = 0; j < dv; ++j) {
        double held = 0, sum = 0;
        for (std::int64_t i = 0; i < dk; ++i)
          held += (s[i * dv + j] *= std::exp(static_cast<double>(decay[at]))) * key[static_cast<std::size_t>(i)];
        const double change = beta[at] * (v[at * static_cast<std::size_t>(dv) + static_cast<std::size_t>(j)] - held);
        for (std::int64_t i = 0; i < dk; ++i)
          sum += (s[i * dv + j] += key[static_cast<std::size_t>(i)] * change) * query[static_cast<std::size_t>(i)];
        out.push_back(0.30000001192092896 * sum);
      }
    }
  }
};

void run(Device& d, const Ssd& s, Tensors& t, const Tensor& state, const Batch& at, const Tensor& out) {
  d.ssd_scan(s.on(t, at.tokens()), state, at, out);
}
void run(Device& d, const Delta& s, Tensors& t, const Tensor& state, const Batch& at, const Tensor& out) {
  d.gated_delta(s.on(t, at.tokens()), state, at, out);
}

// Calls one after another: their results and the states after them.
template <class Scan> void check_scan(Device& device, Scan scan, std::int64_t size, std::int64_t width, Random& random,
                                      const std::vector<Call>& all_calls = calls) {
  Tensors tensors(device);
  const Tensor state = tensors.f32({slots, size}, fresh_state(size));
  std::vector<double> expected_state(static_cast<std::size_t>(slots * size));
  std::vector<std::int64_t> seen(slots);
  for (const Call& call : all_calls) {
    scan.fill(random, call.tokens());
    std::vector<double> expected;
    each_token(call, [&](std::size_t slot, std::int64_t row) {
      scan.step(row, expected_state.data() + static_cast<std::int64_t>(slot) * size, expected);
    });
    const Begun step(device, tensors, call, seen);
    const Tensor out = tensors.empty({call.tokens(), width});
    run(device, scan, tensors, state, step.at, out);
    check_near(values_of(out), expected, 1e-5);
    std::vector<double> all = expected_state;
    std::fill(all.begin() + size, all.begin() + 2 * size, 0.25);
    check_near(values_of(state), all, 1e-5);
    untouched(state, size);
  }
}

// A prompt whole, cut, and behind another sequence: the same bits.
template <class Scan> void check_cut(Device& device, Scan scan, std::int64_t size, std::int64_t width, Random& random) {
  constexpr std::int64_t tokens = 11;
  scan.fill(random, tokens);
  // Results of slot 3, whose tokens come in these pieces, and its state then; `before`: of another sequence in the same call, whose
  // tokens are the prompt's first.
  const auto go = [&](const std::vector<std::int64_t>& pieces, std::int64_t before) {
    Tensors tensors(device);                               // so that the state is on the same member of a set each time
    const Tensor state = tensors.f32({slots, size}, fresh_state(size));
    std::vector<std::int64_t> seen(slots);
    std::vector<float> results;
    std::int64_t first = 0;
    for (const std::int64_t n : pieces) {
      Scan part = scan;
      const auto cut = [&](std::vector<float>& of) {
        const auto each = static_cast<std::int64_t>(of.size()) / tokens;
        std::vector<float> rows(of.begin(), of.begin() + before * each);
        rows.insert(rows.end(), of.begin() + first * each, of.begin() + (first + n) * each);
        of = std::move(rows);
      };
      if constexpr (std::is_same_v<Scan, Ssd>)
        for (auto* of : {&part.x, &part.dt, &part.b, &part.c}) cut(*of);
      else
        for (auto* of : {&part.q, &part.k, &part.v, &part.decay, &part.beta}) cut(*of);
      Call call;
      if (before > 0) call.sequences.emplace_back(0, before);
      call.sequences.emplace_back(3, n);
      const Begun step(device, tensors, call, seen);
      const Tensor out = tensors.empty({before + n, width});
      run(device, part, tensors, state, step.at, out);
      const auto values = values_of(out);
      results.insert(results.end(), values.begin() + before * width, values.end());
      first += n;
    }
    const auto left = values_of(state);
    results.insert(results.end(), left.begin() + 3 * size, left.end());
    return results;
  };
  const auto whole = go({tokens}, 0);
  CHECK(whole == go({1, 7, 3}, 0));
  CHECK(whole == go({tokens}, 2));
}

}  // namespace

TEST_CASE("a causal convolution: any kernel, prompts shorter than it, calls that go on") {
  on_every_device([](Device& device) {
    for (const std::int64_t k : {1, 2, 4, 7, 40})
      for (const std::int64_t c : {3, 90})
        for (const bool biased : {false, true}) {
          CAPTURE(k);
          CAPTURE(c);
          Random random(7);
          Tensors tensors(device);
          const std::int64_t size = (k - 1) * c;
          const Tensor ring = tensors.f32({slots, k - 1, c}, fresh_state(size));
          const auto w = random.numbers(c * k), b = random.numbers(c);
          std::vector<std::vector<float>> had(slots, std::vector<float>(static_cast<std::size_t>(size)));
          std::vector<std::int64_t> seen(slots);
          for (const Call& call : calls) {
            const auto x = random.numbers(call.tokens() * c);
            std::vector<double> expected;
            each_token(call, [&](std::size_t slot, std::int64_t row) {
              had[slot].insert(had[slot].end(), x.begin() + row * c, x.begin() + (row + 1) * c);
              for (std::int64_t i = 0; i < c; ++i) {
                double sum = biased ? static_cast<double>(b[static_cast<std::size_t>(i)]) : 0.0;
                for (std::int64_t j = 0; j < k; ++j)
                  sum += static_cast<double>(w[static_cast<std::size_t>(i * k + j)]) *
                         had[slot][had[slot].size() - static_cast<std::size_t>((k - j) * c - i)];
                expected.push_back(sum);
              }
            });
            const Begun step(device, tensors, call, seen);
            const Tensor out = tensors.empty({call.tokens(), c});
            device.causal_conv1d(tensors.f32({call.tokens(), c}, x), tensors.f32({c, k}, w), biased ? tensors.f32({c}, b) : Tensor{}, ring,
                                 step.at, out);
            check_near(values_of(out), expected, 1e-5);
            const auto kept = values_of(ring);
            for (std::size_t s = 0; s < slots; ++s)
              if (s != 1)
                CHECK(std::vector<float>(kept.begin() + static_cast<std::int64_t>(s) * size,
                                         kept.begin() + static_cast<std::int64_t>(s + 1) * size) ==
                      std::vector<float>(had[s].end() - size, had[s].end()));
            untouched(ring, size);
          }
        }
  });
}

TEST_CASE("a state-space scan: heads in groups, sizes of no tile, calls that go on, prompts that are cut") {
  on_every_device([](Device& device) {
    for (const auto& [heads, groups, p, n] :
         {std::array<std::int64_t, 4>{4, 2, 5, 7}, {6, 3, 33, 16}, {1, 1, 64, 40}, {2, 1, 1, 150}, {1, 1, 3, 1100}}) {
      CAPTURE(n);
      Random random(8);
      Ssd s{heads, groups, p, n, {}, {}, {}, {}, {}, {}};
      s.a = between(random, heads, -2, -0.1F);
      s.d = random.numbers(heads);
      check_scan(device, s, heads * p * n, heads * p, random);
      check_cut(device, s, heads * p * n, heads * p, random);
    }
  });
}

TEST_CASE("a gated delta rule: heads that share keys, sizes of no tile, calls that go on, prompts that are cut") {
  on_every_device([](Device& device) {
    for (const float normalize : {0.0F, 1e-6F})
      for (const auto& [key_heads, heads, dk, dv] :
           {std::array<std::int64_t, 4>{2, 4, 5, 7}, {1, 3, 16, 70}, {2, 2, 33, 16}, {1, 1, 130, 1}, {1, 1, 900, 4}}) {
        CAPTURE(dk);
        CAPTURE(normalize);
        Random random(9);
        const Delta s{key_heads, heads, dk, dv, normalize, {}, {}, {}, {}, {}};
        check_scan(device, s, heads * dk * dv, heads * dv, random);
        check_cut(device, s, heads * dk * dv, heads * dv, random);
      }
  });
}

TEST_CASE("scans over states of the sizes that models have, and more tokens than a driver's loops go") {
  on_every_device(
      [](Device& device) {
        const std::vector<Call> long_calls = {{{{2, 3}, {0, 500}, {3, 1}}}, {{{3, 40}, {0, 1}}}};
        Random random(10);
        Ssd s{2, 1, 64, 128, {}, {}, {}, {}, {}, {}};
        s.a = between(random, 2, -0.5F, -0.01F);
        s.d = random.numbers(2);
        check_scan(device, s, 2 * 64 * 128, 2 * 64, random, long_calls);
        check_scan(device, Delta{1, 2, 128, 128, 1e-6F, {}, {}, {}, {}, {}}, 2 * 128 * 128, 2 * 128, random, long_calls);
      },
      256 * 1024);
}

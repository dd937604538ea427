// How fast products and attention are on this machine, beside its limits measured in the same run: a streaming read of
// the same bytes (few tokens: memory is the limit) and multiply-adds in registers (many tokens: arithmetic is).
//
//   bench_linear [threads] [isa]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "runtime/base/thread_team.h"
#include "runtime/encoding/convert.h"
#include "runtime/device/device.h"
#include "runtime/kv_cache/kv_cache.h"

using namespace modelc;

namespace {

using Vector = float __attribute__((vector_size(64)));

// With one thread the process's own time, so that other programs on the machine disturb less.
bool own_time = false;
double now() {
  std::timespec t{};
  clock_gettime(own_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Median seconds of f() after a warm-up, over about half a second.
template <class F> double seconds(F&& f) {
  f();
  std::vector<double> times;
  const double begin = now();
  while (times.size() < 5 || (now() - begin < 0.5 && times.size() < 1000)) {
    const double t = now();
    f();
    times.push_back(now() - t);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

volatile float sink = 0;

// One stream a thread, or four that lie far apart: the faster is what memory gives.
template <int streams> double read_seconds(ThreadTeam& team, const std::byte* data, std::int64_t size) {
  const std::int64_t piece = 1024 * 1024, apart = piece / streams;
  return seconds([&] {
    team.run(size / piece, 1, [&](std::int64_t begin, std::int64_t end, int) {
      Vector a[4] = {};
      for (std::int64_t n = begin; n < end; ++n)
        for (std::int64_t at = 0; at < apart; at += 256 / streams)
          for (int i = 0; i < 4; ++i) {
            Vector v;
            std::memcpy(&v, data + n * piece + i % streams * apart + at + i / streams * 64, 64);
            a[i] += v;
          }
      if (a[0][0] + a[1][1] + a[2][2] + a[3][3] == 12345.0F) sink = 1;
    });
  });
}
double streaming_read(ThreadTeam& team, const std::byte* data, std::int64_t size) {
  return std::min(read_seconds<1>(team, data, size), read_seconds<4>(team, data, size));
}

double fma_peak(ThreadTeam& team) {
  constexpr int chains = 16, rounds = 1 << 20;
  const double s = seconds([&] {
    team.run(team.size(), 1, [&](std::int64_t, std::int64_t, int worker) {
      Vector a[chains], x, y;
      for (int i = 0; i < 16; ++i) x[i] = 1.0F + static_cast<float>(i + worker) * 1e-7F, y[i] = 1e-7F;
      for (auto& v : a) v = x;
      for (int r = 0; r < rounds; ++r)
        for (auto& v : a) v = v * x + y;
      float total = 0;
      for (auto& v : a) total += v[0];
      if (total == 12345.0F) sink = 1;
    });
  });
  return 2.0 * chains * 16 * rounds * team.size() / s / 1e9;
}

Tensor tensor(Device& device, Shape shape) {
  Tensor t{nullptr, 0, DType::f32, shape};
  auto buffer = device.allocate(std::max<std::int64_t>(t.size(), 4));
  if (!buffer) std::abort();
  t.buffer = *buffer;
  static std::mt19937 random(1);
  float* p = t.host<float>();
  for (std::int64_t i = 0; i < t.count(); ++i) p[i] = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
  return t;
}

// Copies of one matrix, so many that they do not stay in a cache.
struct Matrices {
  std::vector<Matrix> all;
  std::int64_t bytes_of_one = 0;
  const std::byte* data = nullptr;
};
Matrices matrices(Device& device, Encoding encoding, std::int64_t n, std::int64_t k) {
  Matrices m;
  m.bytes_of_one = n * k * block_bytes(encoding);
  const std::int64_t copies = std::max<std::int64_t>(1, 400'000'000 / m.bytes_of_one);
  auto buffer = device.allocate(copies * m.bytes_of_one);
  if (!buffer) std::abort();
  const Tensor values = tensor(device, {n, k});
  const float* from = values.host<float>();
  std::byte* to = (*buffer)->host;
  for (std::int64_t i = 0; i < n * k; ++i) {
    const std::uint16_t h = encoding == Encoding::bf16 ? bf16_from_f32(from[i]) : f16_from_f32(from[i]);
    if (encoding == Encoding::f32) std::memcpy(to + i * 4, from + i, 4);
    else std::memcpy(to + i * 2, &h, 2);
  }
  for (std::int64_t c = 1; c < copies; ++c) std::memcpy(to + c * m.bytes_of_one, to, static_cast<std::size_t>(m.bytes_of_one));
  for (std::int64_t c = 0; c < copies; ++c) {
    Matrix w;
    w.columns = k;
    RowBlock b;
    b.encoding = encoding;
    b.rows = n;
    b.row_bytes = k * block_bytes(encoding);
    b.data = {*buffer, c * m.bytes_of_one, DType::u8, {m.bytes_of_one}};
    w.blocks.push_back(b);
    m.all.push_back(w);
  }
  m.data = to;
  device.free(values.buffer);
  return m;
}

void linear_line(Device& device, ThreadTeam& team, Encoding encoding, std::int64_t m, std::int64_t n, std::int64_t k, double peak) {
  Matrices w = matrices(device, encoding, n, k);
  const Tensor x = tensor(device, {m, k}), out = tensor(device, {m, n});
  const double all = static_cast<double>(w.bytes_of_one) * static_cast<double>(w.all.size());
  const double flops = 2.0 * static_cast<double>(m * n * k);
  if (m <= 4) {
    const double read = streaming_read(team, w.data, static_cast<std::int64_t>(all));
    const double s = seconds([&] {
      for (const Matrix& one : w.all) device.linear(x, one, {&out, 1}, {});
    });
    std::printf("%-5s [%4ld,%5ld] x [%5ld,%5ld]  %7.2f GB/s  read %7.2f GB/s  share %.2f\n", name(encoding).data(), static_cast<long>(m),
                static_cast<long>(k), static_cast<long>(n), static_cast<long>(k), all / s / 1e9, all / read / 1e9, read / s);
  } else {
    std::size_t next = 0;
    const double s = seconds([&] { device.linear(x, w.all[next++ % w.all.size()], {&out, 1}, {}); });
    std::printf("%-5s [%4ld,%5ld] x [%5ld,%5ld]  %7.1f GFLOP/s  share of the peak %.2f\n", name(encoding).data(), static_cast<long>(m),
                static_cast<long>(k), static_cast<long>(n), static_cast<long>(k), flops / s / 1e9, flops / s / 1e9 / peak);
  }
  device.free(w.all[0].blocks[0].data.buffer);
  device.free(x.buffer);
  device.free(out.buffer);
}

void attend_line(Device& device, std::int64_t tokens, std::int64_t before, std::int64_t heads, std::int64_t kv_heads, std::int64_t d) {
  auto store = device.reserve({.sizes = {kv_heads, d, d}}, before + tokens, 1);
  if (!store) std::abort();
  auto& cache = static_cast<KvCache&>(**store);
  const auto batch_of = [](std::int64_t begin, std::int64_t n) {
    Batch b = *Batch::make(std::vector<std::int64_t>{n}, Outputs::all);
    for (auto& p : b.positions) p += static_cast<std::int32_t>(begin);
    for (auto& l : b.lengths) l += static_cast<std::int32_t>(begin);
    return b;
  };
  const Tensor k0 = tensor(device, {std::max<std::int64_t>(before, 1), kv_heads, d});
  if (before > 0) device.append(cache, k0, k0, batch_of(0, before));
  const Tensor q = tensor(device, {tokens, heads, d}), k = tensor(device, {tokens, kv_heads, d});
  const Tensor out = tensor(device, {tokens, heads, d});
  const Batch at = batch_of(before, tokens);
  device.append(cache, k, k, at);
  const double s = seconds([&] { device.attend(q, cache, at, {.scale = 0.125F}, out); });
  const double pairs = static_cast<double>(tokens) * (static_cast<double>(before) + static_cast<double>(tokens + 1) / 2);
  std::printf("attend %4ld tokens after %5ld, heads %ld/%ld x %ld: %9.1f us  %6.1f GFLOP/s  %6.1f GB/s of cache\n",
              static_cast<long>(tokens), static_cast<long>(before), static_cast<long>(heads), static_cast<long>(kv_heads),
              static_cast<long>(d), s * 1e6, 4.0 * pairs * static_cast<double>(heads * d) / s / 1e9,
              8.0 * static_cast<double>((before + tokens) * kv_heads * d) / s / 1e9);
  for (const Tensor* t : {&k0, &q, &k, &out}) device.free(t->buffer);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 0;
  own_time = threads == 1;
  auto opened = open_cpu({threads, argc > 2 ? argv[2] : ""});
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().text().c_str());
    return 2;
  }
  Device& device = **opened;
  ThreadTeam team(threads);
  const double peak = fma_peak(team);
  std::printf("%s; f32 multiply-adds of this build: %.0f GFLOP/s\n", device.description().c_str(), peak);
  for (const Encoding e : {Encoding::f32, Encoding::bf16, Encoding::f16}) {
    linear_line(device, team, e, 1, 1536, 576, peak);
    linear_line(device, team, e, 1, 8192, 2048, peak);
    linear_line(device, team, e, 4, 8192, 2048, peak);
    for (const std::int64_t m : {16, 128, 512}) {
      linear_line(device, team, e, m, 1536, 576, peak);
      linear_line(device, team, e, m, 8192, 2048, peak);
      linear_line(device, team, e, m, 2048, 8192, peak);
    }
  }
  attend_line(device, 1, 100, 9, 3, 64);
  attend_line(device, 1, 4000, 9, 3, 64);
  attend_line(device, 1, 4000, 32, 8, 64);
  attend_line(device, 128, 0, 9, 3, 64);
  attend_line(device, 512, 0, 32, 8, 64);
  attend_line(device, 512, 2000, 32, 8, 64);
  return 0;
}

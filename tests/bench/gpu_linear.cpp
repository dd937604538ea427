// How fast a GPU's products with weights are, by encoding: of one token and of four (bytes of weights a second), of many (multiply-adds
// a second). Times on the clock and of this process's own threads, which are what counts where the driver computes on the CPU.
//
//   bench_gpu_linear [vulkan:N] [-s] [ENCODING…]            -s: small shapes alone
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/strings.h"
#include "runtime/device/device.h"

using namespace modelc;

namespace {

double now(clockid_t clock) {
  std::timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

Tensor filled(Device& device, DType dtype, Shape shape, unsigned mask) {
  Tensor t{nullptr, 0, dtype, shape};
  const auto buffer = device.allocate(std::max<std::int64_t>(t.size(), 4));
  if (!buffer) {
    std::fprintf(stderr, "%s\n", buffer.error().text().c_str());
    std::exit(2);
  }
  t.buffer = *buffer;
  std::vector<std::byte> bytes(static_cast<std::size_t>(t.size()));
  unsigned state = 1;
  // Bytes up to 0x3F: as scales and as numbers of 16 and 32 bits they are finite and about 1 at most.
  for (std::byte& b : bytes) b = static_cast<std::byte>((state = state * 1664525U + 1013904223U) >> 24 & mask);
  device.write(bytes, t);
  return t;
}

struct Seconds {
  double clock = 0, own = 0;
};

// The median of several batches; in each the device is waited for once.
template <class F> Seconds seconds(Device& device, F&& f) {
  const auto batch = [&](int n) {
    const double clock = now(CLOCK_MONOTONIC), own = now(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < n; ++i) f();
    if (const Status s = device.finish(); !s) {
      std::fprintf(stderr, "%s\n", s.error().text().c_str());
      std::exit(2);
    }
    return Seconds{(now(CLOCK_MONOTONIC) - clock) / n, (now(CLOCK_PROCESS_CPUTIME_ID) - own) / n};
  };
  batch(1);                                                // makes pipelines
  const double one = batch(1).clock;
  const int n = static_cast<int>(std::clamp(0.05 / std::max(one, 1e-6), 1.0, 200.0));
  std::vector<double> clocks, owns;
  for (int i = 0; i < 5; ++i) {
    const Seconds s = batch(n);
    clocks.push_back(s.clock), owns.push_back(s.own);
  }
  std::sort(clocks.begin(), clocks.end());
  std::sort(owns.begin(), owns.end());
  return {clocks[2], owns[2]};
}

void line(Device& device, Encoding encoding, std::int64_t m, std::int64_t n, std::int64_t k) {
  if (k % block_elements(encoding) != 0) return;
  Matrix w;
  w.columns = k;
  RowBlock b;
  b.encoding = encoding;
  b.rows = n;
  b.row_bytes = k / block_elements(encoding) * block_bytes(encoding);
  b.data = filled(device, DType::u8, {n * b.row_bytes}, 0x3F);
  w.blocks.push_back(b);
  const Tensor x = filled(device, DType::f32, {m, k}, 0x3F), out = filled(device, DType::f32, {m, n}, 0);
  const Seconds s = seconds(device, [&] { device.linear(x, w, {&out, 1}, {}); });
  const double flops = 2.0 * static_cast<double>(m * n * k), bytes = static_cast<double>(n * b.row_bytes);
  std::printf("%-5s %4ld x [%5ld,%5ld] %10.3f ms, own %10.3f ms %8.2f GB/s %8.2f GFLOP/s\n", name(encoding).data(), static_cast<long>(m),
              static_cast<long>(n), static_cast<long>(k), s.clock * 1e3, s.own * 1e3, bytes / s.clock / 1e9, flops / s.clock / 1e9);
  std::fflush(stdout);
  for (const Tensor* t : {&std::as_const(b.data), &x, &out}) device.free(t->buffer);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> encodings;
  int number = 0;
  bool small = false;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a.starts_with("vulkan:")) number = std::atoi(a.c_str() + 7);
    else if (a == "-s") small = true;
    else encodings.push_back(a);
  }
  auto device = open_vulkan({.device = number});
  if (!device) {
    std::fprintf(stderr, "%s\n", device.error().text().c_str());
    return 2;
  }
  std::printf("%s\n", (*device)->description().c_str());
  for (const Encoding e : {Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0, Encoding::q4_0, Encoding::q4_1, Encoding::q5_0,
                           Encoding::q5_1, Encoding::q4_k, Encoding::q5_k, Encoding::q6_k}) {
    if (!encodings.empty() && std::find(encodings.begin(), encodings.end(), name(e)) == encodings.end()) continue;
    for (const std::int64_t m : {1, 4, 64, 512}) {
      if (small && m > 64) continue;
      line(**device, e, m, 1536, 512);
      line(**device, e, m, 512, 1536);
      if (small) continue;
      line(**device, e, m, 2048, 2048);
      line(**device, e, m, 8192, 2048);
    }
  }
  return 0;
}

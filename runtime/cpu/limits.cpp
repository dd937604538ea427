#include "runtime/cpu/limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "runtime/base/thread_team.h"
#include "runtime/cpu/isa.h"
#include "runtime/device/device.h"
#include "runtime/device/limits.h"

namespace modelc {
namespace cpu {
namespace {

using Clock = std::chrono::steady_clock;

// The median seconds of f(): three calls at least, then as many as fit into a fifth of a second.
template <class F> double median_seconds(F&& f) {
  std::vector<double> times;
  const auto begin = Clock::now();
  const auto since = [](Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); };
  while (times.size() < 3 || (since(begin) < 0.2 && times.size() < 1000)) {
    const auto t = Clock::now();
    f();
    times.push_back(since(t));
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return std::max(times[times.size() / 2], 1e-12);
}

// Those that run here, the plainest first.
std::vector<const LimitKernels*> available_limits() {
  std::vector<const LimitKernels*> all = {&limit_kernels_portable};
#if defined(__x86_64__)
  for (const LimitKernels* k : {&limit_kernels_avx2, &limit_kernels_avx512})
    for (const Kernels* set : available_kernels())
      if (std::strcmp(k->isa, set->isa) == 0) all.push_back(k);
#endif
  return all;
}

struct Piece {
  const std::byte* data;
  std::int64_t size;
};

// The tensors in pieces that a thread reads in one go.
std::vector<Piece> pieces_of(std::span<const Tensor> data) {
  constexpr std::int64_t largest = 1 << 20, smallest = 1 << 12;
  std::vector<Piece> pieces;
  for (const Tensor& t : data) {
    const std::byte* at = t.host<std::byte>();
    if (at == nullptr) continue;
    for (std::int64_t from = 0; from < t.size(); from += largest)
      if (const std::int64_t n = std::min(largest, t.size() - from); n >= smallest) pieces.push_back({at + from, n});
  }
  return pieces;
}

DeviceLimits measure_limits(std::span<const Tensor> data, int threads, const char* isa) {
  DeviceLimits out;
  out.isa = isa;
  const std::vector<Piece> pieces = pieces_of(data);
  for (const Piece& p : pieces) out.bytes_read += p.size;
  std::vector<int> numbers;
  for (int n = 1; n < threads; n *= 2) numbers.push_back(n);
  numbers.push_back(threads);
  const std::vector<const LimitKernels*> sets = available_limits();
  const LimitKernels* reader = sets.back();                // the widest, unless the device's own is one of them
  for (const LimitKernels* k : sets)
    if (std::strcmp(k->isa, isa) == 0) reader = k;
  std::atomic<float> sink{0};                              // where results go, so that the work is done
  for (const int n : numbers) {
    ThreadTeam team(n);
    LimitsOfThreads l;
    l.threads = n;
    if (!pieces.empty()) {
      double best = 0;
      for (const int streams : {1, 4}) {
        const double s = median_seconds([&] {
          team.run(static_cast<std::int64_t>(pieces.size()), 1, [&](std::int64_t begin, std::int64_t end, int) {
            float total = 0;
            for (std::int64_t i = begin; i < end; ++i)
              total += reader->read(pieces[static_cast<std::size_t>(i)].data, pieces[static_cast<std::size_t>(i)].size, streams);
            sink.store(total, std::memory_order_relaxed);
          });
        });
        best = std::max(best, static_cast<double>(out.bytes_read) / s);
      }
      l.read_bytes_per_second = best;
    }
    const auto operations_per_second = [&](const auto& k) {
      // A millisecond or so in one call: the start of the team is then nothing.
      constexpr std::int64_t rounds = 1 << 18;
      const double s = median_seconds([&] {
        team.run(n, 1, [&](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t i = begin; i < end; ++i) sink.store(k.multiply_adds(rounds), std::memory_order_relaxed);
        });
      });
      return static_cast<double>(k.operations_of_a_round * rounds * n) / s;
    };
    for (const LimitKernels* k : sets) l.flops.emplace_back(k->isa, operations_per_second(*k));
    for (const NarrowLimitKernel& k : narrow_limit_kernels())
      if (extensions().*k.needs) l.narrow.emplace_back(k.what, operations_per_second(k));
    out.by_threads.push_back(std::move(l));
  }
  return out;
}

}  // namespace
}  // namespace cpu

DeviceLimits measure_cpu_limits(std::span<const Tensor> data, const CpuOptions& options) {
  const auto kernels = cpu::choose_kernels(options.isa);
  if (!kernels) return {};
  const int threads = options.threads > 0 ? options.threads : ThreadTeam::available_processors();
  return cpu::measure_limits(data, threads, (*kernels)->isa);
}

}  // namespace modelc

// What measures the machine itself, compiled for each instruction set as the kernels are.
#include "runtime/cpu/limits.h"

#include "runtime/cpu/kernels/simd.h"

#define MODELC_JOIN_(a, b) a##b
#define MODELC_JOIN(a, b) MODELC_JOIN_(a, b)
#define MODELC_TEXT_(a) #a
#define MODELC_TEXT(a) MODELC_TEXT_(a)

namespace modelc::cpu {
namespace MODELC_ISA {
namespace {

// Every 64 bytes of [data, data + size) are touched once, from `streams` places that lie far apart.
template <int streams> float read_streams(const std::byte* data, int64_t size) {
  constexpr int64_t line = 64, vector = lanes * 4;
  const int64_t apart = size / streams / line * line;
  F sum[4] = {zero(), zero(), zero(), zero()};
  for (int64_t at = 0; at < apart; at += line)
    for (int s = 0; s < streams; ++s)
      for (int64_t i = 0; i < line; i += vector) sum[s % 4] = sum[s % 4] + load(reinterpret_cast<const float*>(data + s * apart + at + i));
  float out[lanes], total = 0;
  store(out, sum[0] + sum[1] + sum[2] + sum[3]);
  for (int64_t i = 0; i < lanes; ++i) total += out[i];
  return total;
}

float read(const std::byte* data, int64_t size, int streams) {
  return streams == 4 ? read_streams<4>(data, size) : read_streams<1>(data, size);
}

// As many chains as the longest latency needs; nothing leaves the registers.
constexpr int chains = 12;
float multiply_adds(int64_t rounds) {
  F a[chains], x = splat(0.999999F), y = splat(1e-6F);
  hold(x);
  hold(y);
  for (int i = 0; i < chains; ++i) a[i] = splat(1.0F + 1e-6F * static_cast<float>(i));
  for (int64_t r = 0; r < rounds; ++r)
    for (int i = 0; i < chains; ++i) a[i] = fma(a[i], x, y);
  float out[lanes], total = 0;
  for (int i = 0; i < chains; ++i) {
    store(out, a[i]);
    total += out[0];
  }
  return total;
}

}  // namespace
}  // namespace MODELC_ISA

const LimitKernels MODELC_JOIN(limit_kernels_, MODELC_ISA) = {
    .isa = MODELC_TEXT(MODELC_ISA),
    .read = MODELC_ISA::read,
    .multiply_adds = MODELC_ISA::multiply_adds,
    .operations_of_a_round = 2 * MODELC_ISA::chains * MODELC_ISA::lanes,
};

}  // namespace modelc::cpu

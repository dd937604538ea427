// How fast the multiply-adds of narrow numbers go that some processors have, in registers. Each function is compiled for its own
// instructions, whatever the rest is compiled for, and is called only where the processor has them.
#include "runtime/cpu/limits.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace modelc::cpu {
namespace {

constexpr int chains = 12;                                 // as many as the longest latency needs

__attribute__((target("avx512f,avx512vnni"))) float int8_vnni(std::int64_t rounds) {
  __m512i a[chains], x = _mm512_set1_epi8(1), y = _mm512_set1_epi8(1);
  __asm__("" : "+v"(x), "+v"(y));                          // not constants to the compiler
  for (__m512i& v : a) v = _mm512_setzero_si512();
  for (std::int64_t r = 0; r < rounds; ++r)
    for (__m512i& v : a) v = _mm512_dpbusd_epi32(v, x, y);
  alignas(64) std::int32_t out[16];
  __m512i total = _mm512_setzero_si512();
  for (const __m512i& v : a) total = _mm512_add_epi32(total, v);
  _mm512_store_si512(out, total);
  return static_cast<float>(out[0]);
}

__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512fp16"))) float f16_avx512(std::int64_t rounds) {
  __m512h a[chains], x = _mm512_set1_ph(static_cast<_Float16>(0.5F)), y = _mm512_set1_ph(static_cast<_Float16>(0.5F));
  __asm__("" : "+v"(x), "+v"(y));
  for (__m512h& v : a) v = y;
  for (std::int64_t r = 0; r < rounds; ++r)
    for (__m512h& v : a) v = _mm512_fmadd_ph(v, x, y);
  alignas(64) std::int32_t out[16];
  __m512i total = _mm512_setzero_si512();
  for (const __m512h& v : a) total = _mm512_add_epi32(total, _mm512_castph_si512(v));
  _mm512_store_si512(out, total);
  return static_cast<float>(out[0]);
}

// Eight tiles of 16 rows of 64 bytes: four sums, two of the left operand, two of the right.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t columns[16] = {64, 64, 64, 64, 64, 64, 64, 64};   // in bytes
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);
constexpr int products = 4;

// A macro, as each function has instructions of its own. The barrier keeps the stores that fill the configuration: g++ 12 declares
// _tile_loadconfig as reading eight bytes of it.
#define MODELC_TILES(PRODUCT)                       \
  const TileConfig config;                          \
  __asm__ volatile("" : : "r"(&config) : "memory"); \
  _tile_loadconfig(&config);                        \
  _tile_zero(0);                                    \
  _tile_zero(1);                                    \
  _tile_zero(2);                                    \
  _tile_zero(3);                                    \
  _tile_zero(4);                                    \
  _tile_zero(5);                                    \
  _tile_zero(6);                                    \
  _tile_zero(7);                                    \
  for (std::int64_t r = 0; r < rounds; ++r) {       \
    PRODUCT(0, 4, 6);                               \
    PRODUCT(1, 4, 7);                               \
    PRODUCT(2, 5, 6);                               \
    PRODUCT(3, 5, 7);                               \
  }                                                 \
  alignas(64) float out[16 * 16];                   \
  _tile_stored(0, out, 64);                         \
  __asm__ volatile("" : : "r"(out) : "memory");     \
  _tile_release();                                  \
  return out[0]

__attribute__((target("amx-tile,amx-bf16"))) float bf16_amx(std::int64_t rounds) { MODELC_TILES(_tile_dpbf16ps); }
__attribute__((target("amx-tile,amx-int8"))) float int8_amx(std::int64_t rounds) { MODELC_TILES(_tile_dpbusd); }
#undef MODELC_TILES

constexpr NarrowLimitKernel all[] = {
    {"int8 multiply-adds, avx512vnni", &Extensions::avx512vnni, int8_vnni, 2 * chains * 64},
    {"f16 multiply-adds, avx512fp16", &Extensions::avx512fp16, f16_avx512, 2 * chains * 32},
    {"bf16 multiply-adds, amx", &Extensions::amx_bf16, bf16_amx, 2 * products * 16 * 16 * 32},
    {"int8 multiply-adds, amx", &Extensions::amx_int8, int8_amx, 2 * products * 16 * 16 * 64},
};

}  // namespace

std::span<const NarrowLimitKernel> narrow_limit_kernels() { return all; }

}  // namespace modelc::cpu
#else
namespace modelc::cpu {

std::span<const NarrowLimitKernel> narrow_limit_kernels() { return {}; }

}  // namespace modelc::cpu
#endif

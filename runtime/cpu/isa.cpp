#include "runtime/cpu/isa.h"

#include <algorithm>

#include "runtime/base/strings.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace modelc::cpu {
namespace {

struct Has {
  bool avx2 = false, avx512 = false;
  Extensions beyond;
};

#if defined(__x86_64__)
// Which registers the system saves at a switch of threads (XCR0).
std::uint64_t saved_registers() {
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<std::uint64_t>(high) << 32 | low;
}

// Linux gives a process the tiles' large state when it asks.
bool tiles_allowed() {
#if defined(__linux__)
  constexpr long request_permission = 0x1023, tile_data = 18;
  return ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

Has ask() {
  const auto bit = [](unsigned word, int n) { return (word >> n & 1u) != 0; };
  Has has;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return has;
  const bool fma = bit(c, 12), xsave = bit(c, 27), avx = bit(c, 28), f16c = bit(c, 29);
  if (!xsave || !avx) return has;
  const std::uint64_t saved = saved_registers();
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return has;
  const bool vnni = bit(c, 11), fp16 = bit(d, 23), amx_bf16 = bit(d, 22), amx_tile = bit(d, 24), amx_int8 = bit(d, 25);
  const bool avx2 = bit(b, 5), f = bit(b, 16), dq = bit(b, 17), bw = bit(b, 30), vl = bit(b, 31);
  has.avx2 = avx2 && fma && f16c && (saved & 0x06) == 0x06;
  has.avx512 = has.avx2 && f && dq && bw && vl && (saved & 0xE6) == 0xE6;
  has.beyond.avx512vnni = has.avx512 && vnni;
  has.beyond.avx512fp16 = has.avx512 && fp16;
  if (amx_tile && (saved & 0x60000) == 0x60000 && tiles_allowed()) {
    has.beyond.amx_bf16 = amx_bf16;
    has.beyond.amx_int8 = amx_int8;
  }
  return has;
}
#endif

const Has& here() {
#if defined(__x86_64__)
  static const Has has = ask();
#else
  static const Has has;
#endif
  return has;
}

}  // namespace

std::vector<const Kernels*> available_kernels() {
  std::vector<const Kernels*> all = {&kernels_portable};
#if defined(__x86_64__)
  const Has& has = here();
  if (has.avx2) all.push_back(&kernels_avx2);
  if (has.avx512) all.push_back(&kernels_avx512);
  if (has.beyond.avx512vnni) all.push_back(&kernels_avx512vnni);
#endif
  return all;
}

const Extensions& extensions() { return here().beyond; }

Result<const Kernels*> choose_kernels(const std::string& isa) {
  const auto all = available_kernels();
  if (isa.empty()) return all.back();
  for (const Kernels* k : all)
    if (isa == k->isa) return k;
  std::vector<std::string> names;
  for (const Kernels* k : all) names.emplace_back(k->isa);
  const std::vector<std::string> known = {"portable", "avx2", "avx512", "avx512vnni"};
  Error e;
  if (std::find(known.begin(), known.end(), isa) == known.end()) {
    e.kind = "isa-unknown";
    e.message = "unknown instruction set " + quote(isa) + "; there are " + listed(known);
    if (auto near = nearest(isa, known)) e.help = "did you mean " + *near + "?";
  } else {
    e.kind = "isa-missing";
    e.message = "instruction set " + isa + " is not to be had here; this machine has " + listed(names);
    e.help = "leave --isa out to take the best, " + names.back();
  }
  return e;
}

}  // namespace modelc::cpu

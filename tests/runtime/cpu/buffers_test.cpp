#include "runtime/cpu/buffers.h"

#include "runtime/kv_cache/kv_cache.h"
#include "tests/runtime/cpu/kernel_support.h"

using namespace modelc;

TEST_CASE("buffers are aligned, large ones zero and taken page by page") {
  cpu::Buffers buffers;
  for (const std::int64_t size : {0, 1, 63, 64, 1000, (1 << 20) + 1}) {
    auto b = buffers.allocate(size);
    REQUIRE(b.ok());
    CHECK((*b)->size == size);
    CHECK(reinterpret_cast<std::uintptr_t>((*b)->host) % 64 == 0);
    buffers.free(*b);
  }
  auto huge = buffers.allocate(std::int64_t{1} << 36);     // 64 GiB that nobody touches
  if (huge) {
    CHECK(std::to_integer<int>((*huge)->host[(std::int64_t{1} << 36) - 1]) == 0);
    buffers.free(*huge);
  }
  auto absurd = buffers.allocate(std::int64_t{1} << 60);
  REQUIRE_FALSE(absurd.ok());
  CHECK(absurd.error().kind == "out-of-memory");
}

TEST_CASE("imported bytes are used where they lie") {
  auto device = open_cpu({});
  REQUIRE(device.ok());
  const std::vector<std::byte> bytes(100, std::byte{7});
  auto b = (*device)->import(std::span(bytes).subspan(3));
  REQUIRE(b.ok());
  CHECK((*b)->host == bytes.data() + 3);
  (*device)->free(*b);
}

TEST_CASE("a cache whose size passes all numbers is refused") {
  auto device = open_cpu({});
  REQUIRE(device.ok());
  KvCache cache;
  cache.heads = 8;
  cache.dim = cache.value_dim = 1 << 20;
  cache.capacity = std::int64_t{1} << 39;
  const Status s = (*device)->reserve(cache, 1000);
  REQUIRE_FALSE(s.ok());
  CHECK(s.error().kind == "out-of-memory");
}

TEST_CASE("instruction sets: the best, one by name, and names that are refused") {
  auto best = open_cpu({3, ""});
  REQUIRE(best.ok());
  CHECK((*best)->description() == std::string("CPU, 3 threads, ") + cpu::available_kernels().back()->isa);
  auto plain = open_cpu({1, "portable"});
  REQUIRE(plain.ok());
  CHECK((*plain)->description() == "CPU, 1 thread, portable");
  auto wrong = open_cpu({1, "avx"});
  REQUIRE_FALSE(wrong.ok());
  CHECK(wrong.error().message == "unknown instruction set \"avx\"; there are portable, avx2 and avx512");
  CHECK(wrong.error().help == "did you mean avx2?");
  if (cpu::available_kernels().size() < 3) {
    auto missing = open_cpu({1, "avx512"});
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().kind == "isa-missing");
  }
  CHECK_FALSE(open_cpu({-1, ""}).ok());
}

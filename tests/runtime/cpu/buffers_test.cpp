#include "runtime/cpu/buffers.h"

#include <fstream>

#include "runtime/kv_cache/kv_cache.h"
#include "tests/runtime/base/temporary_folder.h"
#include "tests/runtime/cpu/kernel_support.h"

using namespace modelc;
using modelc::test::TemporaryFolder;

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

TEST_CASE("a file's bytes are used where they lie, and the file lives as long as the buffer") {
  auto device = open_cpu({});
  REQUIRE(device.ok());
  const TemporaryFolder folder;
  std::ofstream(folder / "bytes") << std::string(100, 'a') << 'b';
  auto opened = MappedFile::open(folder / "bytes");
  REQUIRE(opened.ok());
  auto file = std::make_shared<const MappedFile>(std::move(*opened));
  const std::byte* begin = file->data();
  auto b = (*device)->place(file, 3, 98);
  REQUIRE(b.ok());
  CHECK((*b)->host == begin + 3);
  CHECK((*b)->size == 98);
  CHECK((*b)->owner == device->get());
  CHECK_FALSE((*device)->place(file, 3, 99).ok());
  CHECK_FALSE((*device)->place(file, 200, 0).ok());
  CHECK_FALSE((*device)->place(file, 0, -1).ok());
  const std::weak_ptr<const MappedFile> alive = file;
  file.reset();
  CHECK_FALSE(alive.expired());
  CHECK(std::to_integer<int>((*b)->host[97]) == 'b');
  (*device)->free(*b);
  CHECK(alive.expired());
}

TEST_CASE("a cache whose size passes all numbers is refused") {
  auto device = open_cpu({});
  REQUIRE(device.ok());
  const auto s = (*device)->reserve({.sizes = {8, 1 << 20, 1 << 20}}, std::int64_t{1} << 39, 1000);
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
  CHECK(wrong.error().message == "unknown instruction set \"avx\"; there are portable, avx2, avx512 and avx512vnni");
  CHECK(wrong.error().help == "did you mean avx2?");
  if (cpu::available_kernels().size() < 3) {
    auto missing = open_cpu({1, "avx512"});
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().kind == "isa-missing");
  }
  CHECK_FALSE(open_cpu({-1, ""}).ok());
}

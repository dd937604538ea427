#include <doctest/doctest.h>

#include <unistd.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <thread>

#include "runtime/encoding/convert.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/tensor_data.h"
#include "tests/runtime/base/temporary_folder.h"
#include "tests/runtime/checkpoint/safetensors_text.h"

using namespace modelc;
using test::entry;

namespace {

std::string raw(const auto& value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); }

std::shared_ptr<CheckpointIndex> index_at(const std::string& path) {
  Result<CheckpointIndex> r = open_checkpoint(path);
  if (!r) FAIL(r.error().text());
  return std::make_shared<CheckpointIndex>(*std::move(r));
}

}  // namespace

TEST_CASE("f16 and bf16 to f32 and back, every value") {
  for (std::uint32_t b = 0; b < 0x10000; ++b) {
    const auto bits = static_cast<std::uint16_t>(b);
    const float half = f32_from_f16(bits);
    const auto sign = bits >> 15, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    if (exponent == 31 && fraction != 0) {
      REQUIRE(std::bit_cast<std::uint32_t>(half) ==
              (static_cast<std::uint32_t>(sign) << 31 | 0x7f800000u | static_cast<std::uint32_t>(fraction) << 13));
      REQUIRE(std::isnan(f32_from_f16(f16_from_f32(half))));
    } else {
      // By the definition of the format.
      double expected = exponent == 31  ? std::numeric_limits<double>::infinity()
                        : exponent == 0 ? std::ldexp(fraction, -24)
                                        : std::ldexp(1024 + fraction, exponent - 25);
      if (sign) expected = -expected;
      REQUIRE(half == static_cast<float>(expected));
      REQUIRE(std::signbit(half) == (sign == 1));
      REQUIRE(f16_from_f32(half) == bits);
    }
    const float brain = f32_from_bf16(bits);
    REQUIRE(std::bit_cast<std::uint32_t>(brain) == b << 16);
    if (!std::isnan(brain)) REQUIRE(bf16_from_f32(brain) == bits);
    else REQUIRE(std::isnan(f32_from_bf16(bf16_from_f32(brain))));
  }
}

TEST_CASE("rounding to f16 and bf16 is to nearest, ties to even") {
  // Between each two neighbours: the middle goes to the even one, what is nearer goes where it is nearer.
  for (std::uint32_t b = 0; b < 0x7bff; ++b) {
    const float low = f32_from_f16(static_cast<std::uint16_t>(b)), high = f32_from_f16(static_cast<std::uint16_t>(b + 1));
    const float middle = low + (high - low) / 2;
    REQUIRE(f16_from_f32(middle) == (b % 2 ? b + 1 : b));
    REQUIRE(f16_from_f32(std::nextafter(middle, low)) == b);
    REQUIRE(f16_from_f32(std::nextafter(middle, high)) == b + 1);
    REQUIRE(f16_from_f32(-middle) == (0x8000u | (b % 2 ? b + 1 : b)));
  }
  CHECK(f16_from_f32(65519.996f) == 0x7bff);
  CHECK(f16_from_f32(65520.0f) == 0x7c00);
  CHECK(f16_from_f32(1e30f) == 0x7c00);
  CHECK(f16_from_f32(std::numeric_limits<float>::denorm_min()) == 0);
  CHECK(f16_from_f32(std::numeric_limits<float>::infinity()) == 0x7c00);
  CHECK(bf16_from_f32(std::bit_cast<float>(0x3f808000u)) == 0x3f80);
  CHECK(bf16_from_f32(std::bit_cast<float>(0x3f818000u)) == 0x3f82);
  CHECK(bf16_from_f32(std::bit_cast<float>(0x3f808001u)) == 0x3f81);
  CHECK(bf16_from_f32(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(std::isnan(f32_from_bf16(bf16_from_f32(std::bit_cast<float>(0x7f800001u)))));
}

TEST_CASE("tensors at odd addresses are read right") {
  test::TemporaryFolder folder;
  const float f[] = {1.5f, -0.0f};
  const double d[] = {0.1, 1e300};
  const std::int64_t l = -5;
  const std::string data = "\x01\x02\x03" + raw(f) + raw(d) + raw(std::uint16_t{0x3c00}) + raw(l) + raw(std::uint16_t{0xbf80});
  const std::string header = "{" + entry("u", "U8", "[3]", 0, 3) + "," + entry("f", "F32", "[2]", 3, 11) + "," +
                             entry("d", "F64", "[2]", 11, 27) + "," + entry("h", "F16", "[1]", 27, 29) + "," +
                             entry("l", "I64", "[1]", 29, 37) + "," + entry("b", "BF16", "[1]", 37, 39) + "}";
  const auto index = index_at(folder.write("model.safetensors", test::safetensors(header, data)));
  for (FileAccess access : {FileAccess::map, FileAccess::read}) {
    CheckpointData tensors(index, access);
    const auto f32 = [&](const char* name) { return *tensors.read_f32(*index->find(name)); };
    CHECK(f32("f")[0] == 1.5f);
    CHECK(std::signbit(f32("f")[1]));
    CHECK(f32("d")[0] == 0.1f);
    CHECK(std::isinf(f32("d")[1]));
    CHECK(f32("h")[0] == 1.0f);
    CHECK(f32("b")[0] == -1.0f);
    CHECK(*tensors.read_i64(*index->find("l")) == std::vector<std::int64_t>{-5});
    CHECK(*tensors.read_i64(*index->find("u")) == std::vector<std::int64_t>{1, 2, 3});
    CHECK(tensors.read_f32(*index->find("u")).error().kind == "encoding");
    CHECK(tensors.read_i64(*index->find("f")).error().kind == "encoding");
    const Result<TensorBytes> bytes = tensors.bytes("f");
    REQUIRE(bytes.ok());
    CHECK(bytes->size == 8);
    CHECK(bytes->owner->mapped() == (access == FileAccess::map));
  }
}

TEST_CASE("integers of every width") {
  test::TemporaryFolder folder;
  const std::string data = raw(std::uint64_t{1} << 63) + raw(std::int32_t{-7}) + raw(std::uint32_t{0xfffffff9}) + raw(std::int16_t{-7}) +
                           raw(std::uint16_t{0xfff9}) + raw(std::int8_t{-7}) + "\x01";
  const std::string header = "{" + entry("u64", "U64", "[1]", 0, 8) + "," + entry("i32", "I32", "[1]", 8, 12) + "," +
                             entry("u32", "U32", "[1]", 12, 16) + "," + entry("i16", "I16", "[1]", 16, 18) + "," +
                             entry("u16", "U16", "[1]", 18, 20) + "," + entry("i8", "I8", "[1]", 20, 21) + "," +
                             entry("bool", "BOOL", "[1]", 21, 22) + "}";
  const auto index = index_at(folder.write("model.safetensors", test::safetensors(header, data)));
  CheckpointData tensors(index);
  const auto value = [&](const char* name) { return (*tensors.read_i64(*index->find(name)))[0]; };
  CHECK(tensors.read_i64(*index->find("u64")).error().kind == "range");
  CHECK(value("i32") == -7);
  CHECK(value("u32") == 4294967289);
  CHECK(value("i16") == -7);
  CHECK(value("u16") == 65529);
  CHECK(value("i8") == -7);
  CHECK(value("bool") == 1);
}

TEST_CASE("a file that changed since its header was read") {
  test::TemporaryFolder folder;
  const std::string path = folder.write("model.safetensors", test::safetensors_of(std::vector<std::string>{"a", "b"}));
  const auto index = index_at(path);
  const auto size = static_cast<off_t>(index->files()[0].size);
  for (FileAccess access : {FileAccess::map, FileAccess::read}) {
    REQUIRE(truncate(path.c_str(), size - 4) == 0);
    CheckpointData shrunk(index, access);
    const Result<TensorBytes> r = shrunk.bytes("a");
    REQUIRE_FALSE(r.ok());
    CHECK(r.error().kind == "file-shrunk");
    CHECK(r.error().message.find("model.safetensors") != std::string::npos);
    REQUIRE(truncate(path.c_str(), size + 4) == 0);
    CHECK(shrunk.bytes("a").error().kind == "file-grown");
    // Of the right size again, but its bytes may have changed. The failure is not kept.
    REQUIRE(truncate(path.c_str(), size) == 0);
    CHECK(shrunk.bytes("a").error().kind == "file-changed");
    CHECK(CheckpointData(index_at(path), access).bytes("a").ok());
  }
  // Another file of the same size in its place, and other bytes in the same file.
  for (const bool replaced : {true, false}) {
    const auto before = index_at(path);
    const std::string bytes = test::slurp(path);
    if (replaced) std::filesystem::rename(folder.write("other", bytes), path);
    else std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::milliseconds(1));
    CheckpointData data(before);
    CHECK(data.bytes("a").error().kind == "file-changed");
  }
  CheckpointData gone(index);
  std::filesystem::remove(path);
  CHECK(gone.bytes("a").error().kind == "no-such-file");
}

TEST_CASE("a file that is cut short while it is mapped is an error, not a signal") {
  test::TemporaryFolder folder;
  constexpr std::size_t elements = 16'384;
  const std::string path =
      folder.write("model.safetensors", test::safetensors("{" + entry("a", "F32", "[16384]", 0, 4 * elements) + "}", 4 * elements));
  const auto index = index_at(path);
  CheckpointData data(index);
  REQUIRE(data.read_f32(*index->find("a")).ok());
  REQUIRE(truncate(path.c_str(), 100) == 0);
  const Result<std::vector<float>> r = data.read_f32(*index->find("a"));
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().kind == "file-shrunk");
  CHECK(r.error().help.find("--no-mmap") != std::string::npos);
  // Once more, in a mapping that lies where the first one did or elsewhere.
  folder.write("model.safetensors", test::safetensors("{" + entry("a", "F32", "[16384]", 0, 4 * elements) + "}", 4 * elements));
  const auto again = index_at(path);
  CheckpointData fresh(again);
  CHECK(fresh.read_f32(*again->find("a")).ok());
  // A deleted file keeps its bytes for whoever has it open.
  std::filesystem::remove(path);
  CHECK(fresh.read_f32(*again->find("a")).ok());
}

TEST_CASE("a name that is not there suggests one") {
  test::TemporaryFolder folder;
  const auto index = index_at(folder.write("m.safetensors", test::safetensors_of(std::vector<std::string>{"layers.1.up_proj.weight"})));
  CheckpointData tensors(index);
  const Result<TensorBytes> r = tensors.bytes("layers.1.upproj.weight");
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().kind == "missing-tensor");
  CHECK(r.error().help == "it holds \"layers.1.up_proj.weight\"");
}

TEST_CASE("bytes stay alive and are asked for from several threads") {
  test::TemporaryFolder folder;
  const auto index = index_at(folder.write("model.safetensors", test::safetensors("{" + entry("a", "F32", "[1]", 0, 4) + "}", raw(2.5f))));
  CheckpointData tensors(index);
  std::vector<std::thread> threads;
  std::vector<float> values(4);
  for (std::size_t t = 0; t < values.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        values[t] = (*tensors.read_f32(*index->find("a")))[0];
        if (i % 10 == 0) tensors.release(0);
      }
    });
  for (std::thread& t : threads) t.join();
  for (float v : values) CHECK(v == 2.5f);
  const Result<TensorBytes> kept = tensors.bytes("a");
  tensors.release(0);
  float v = 0;
  std::memcpy(&v, kept->data, sizeof v);
  CHECK(v == 2.5f);
}
